//! What became of every byte of a scan.

/// `seen = checked + skipped + unreadable`, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ledger {
    /// Bytes that were selected.
    pub seen: u64,
    /// Bytes that a consumer was given.
    pub checked: u64,
    /// Bytes that were left out: the run was interrupted, or the consumer failed on them.
    pub skipped: u64,
    /// Bytes that could not be read.
    pub unreadable: u64,
    /// Whole pages among those that were checked.
    pub pages: u64,
}

impl Ledger {
    /// Every byte went somewhere.
    pub fn is_balanced(&self) -> bool {
        self.seen == self.checked + self.skipped + self.unreadable
    }

    pub(crate) fn check(&mut self, bytes: u64, block_bytes: u64) {
        self.seen += bytes;
        self.checked += bytes;
        self.pages += bytes / block_bytes.max(1);
    }

    pub(crate) fn skip(&mut self, bytes: u64) {
        self.seen += bytes;
        self.skipped += bytes;
    }

    pub(crate) fn lose(&mut self, bytes: u64) {
        self.seen += bytes;
        self.unreadable += bytes;
    }

    /// Pages that a consumer was given, and on which it failed.
    pub(crate) fn fail(&mut self, pages: u64, block_bytes: u64) {
        self.checked -= pages * block_bytes;
        self.skipped += pages * block_bytes;
        self.pages -= pages;
    }

    /// Bytes that a consumer did not want: of pages that were not asked for.
    pub(crate) fn pass_over(&mut self, bytes: u64, block_bytes: u64) {
        self.seen -= bytes;
        self.checked -= bytes;
        self.pages -= bytes / block_bytes.max(1);
    }

    pub(crate) fn add(&mut self, other: &Ledger) {
        self.seen += other.seen;
        self.checked += other.checked;
        self.skipped += other.skipped;
        self.unreadable += other.unreadable;
        self.pages += other.pages;
    }
}
