//! A small bounded set of open files, so that reading a segment in pieces opens it once.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Enough for the segments that a few threads read at once.
const KEPT_MAX: usize = 64;
/// Open files are a budget like memory: of what the process may open, one in so many stays open
/// here.
const KEPT_SHARE: u64 = 4;

/// Which file a name led to when it was looked up: device and inode.
pub(crate) type Identity = (u64, u64);

struct Kept {
    path: String,
    identity: Identity,
    file: Arc<File>,
}

/// Open files by path, the latest used last.
pub(crate) struct OpenFiles {
    kept: Mutex<VecDeque<Kept>>,
    kept_max: usize,
}

impl OpenFiles {
    /// As many as the limit on open files allows.
    pub(crate) fn within_limit(open_files_max: Option<u64>) -> Self {
        let share = open_files_max.map_or(KEPT_MAX, |max| {
            usize::try_from(max / KEPT_SHARE).unwrap_or(usize::MAX)
        });
        Self {
            kept: Mutex::default(),
            kept_max: share.clamp(1, KEPT_MAX),
        }
    }

    /// Lets go of the files that nobody reads at the moment, which closes them, and says whether
    /// there were any.
    pub(crate) fn close_idle(&self) -> bool {
        let mut kept = self.lock();
        let before = kept.len();
        kept.retain(|one| Arc::strong_count(&one.file) > 1);
        kept.len() < before
    }

    pub(crate) fn get(&self, path: &str) -> Option<Arc<File>> {
        let mut kept = self.lock();
        let found = kept.iter().position(|one| one.path == path)?;
        let one = kept.remove(found)?;
        let file = Arc::clone(&one.file);
        kept.push_back(one);
        Some(file)
    }

    /// Keeps a file; another thread may have opened the same one meanwhile, then the newer stays.
    pub(crate) fn keep(&self, path: &str, identity: Identity, file: &Arc<File>) {
        let mut kept = self.lock();
        kept.retain(|one| one.path != path);
        while kept.len() >= self.kept_max {
            kept.pop_front();
        }
        kept.push_back(Kept {
            path: path.to_owned(),
            identity,
            file: Arc::clone(file),
        });
    }

    /// Lets go of a file whose name now leads to another one.
    pub(crate) fn forget_unless(&self, path: &str, identity: Identity) {
        self.lock()
            .retain(|one| one.path != path || one.identity == identity);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_is_bounded_and_drops_the_longest_unused() -> std::io::Result<()> {
        let files = OpenFiles::within_limit(None);
        let file = Arc::new(File::open("/dev/null")?);
        files.keep("first", (0, 0), &file);
        for number in 0..200 {
            files.keep(&number.to_string(), (0, number), &file);
            assert!(
                files.get("first").is_some(),
                "used all the time, so it stays"
            );
        }
        assert_eq!(files.lock().len(), KEPT_MAX);
        assert!(files.get("5").is_none());
        Ok(())
    }

    #[test]
    fn a_file_behind_another_identity_is_dropped() -> std::io::Result<()> {
        let files = OpenFiles::within_limit(Some(1024));
        files.keep("name", (1, 2), &Arc::new(File::open("/dev/null")?));
        files.forget_unless("name", (1, 2));
        assert!(files.get("name").is_some());
        files.forget_unless("name", (1, 3));
        assert!(files.get("name").is_none());
        Ok(())
    }

    #[test]
    fn a_tight_limit_keeps_few_and_idle_ones_are_closed() -> std::io::Result<()> {
        let files = OpenFiles::within_limit(Some(20));
        let read = Arc::new(File::open("/dev/null")?);
        files.keep("read", (0, 0), &read);
        for number in 0..20 {
            let idle = Arc::new(File::open("/dev/null")?);
            files.keep(&number.to_string(), (0, number), &idle);
            files.get("read");
        }
        assert_eq!(files.lock().len(), 5);
        assert!(files.close_idle());
        assert!(files.get("read").is_some(), "somebody reads it");
        assert!(!files.close_idle());
        Ok(())
    }
}
