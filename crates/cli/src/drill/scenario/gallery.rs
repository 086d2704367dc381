//! The gallery: a page for each message, and the scenarios that bring it about.

use super::scene::{Object, Sums};

/// A page of the guide.
pub(crate) struct Page {
    /// The file without its ending.
    pub(crate) name: &'static str,
    /// The message in plain words.
    pub(crate) title: &'static str,
    /// Stands in what a server says in one of the scenarios at least.
    pub(crate) needle: &'static str,
    /// Where it comes from.
    pub(crate) about: &'static str,
}

/// A wound of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// The page that it belongs to.
    pub(crate) page: &'static str,
    pub(crate) object: Object,
    pub(crate) injury: &'static str,
    pub(crate) sums: &'static [Sums],
}

const BOTH: &[Sums] = &[Sums::Off, Sums::On];
const WITH: &[Sums] = &[Sums::On];

const fn scenario(page: &'static str, object: Object, injury: &'static str) -> Scenario {
    Scenario {
        page,
        object,
        injury,
        sums: BOTH,
    }
}

const fn with_sums(page: &'static str, object: Object, injury: &'static str) -> Scenario {
    Scenario {
        page,
        object,
        injury,
        sums: WITH,
    }
}

impl Scenario {
    /// One that is on no page.
    pub(crate) const fn of(injury: &'static str, object: Object) -> Self {
        scenario("", object, injury)
    }

    /// What a user types: the page, what is hurt, and how.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}/{}", self.page, self.object.name(), self.injury)
    }
}

/// Every page, in the order of the index.
pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "invalid-page",
        title: "invalid page in block … of relation …",
        needle: "invalid page in block",
        about: "The header of a page fails the few tests that the server makes when it reads one: flag bits, the order of `pd_lower`, `pd_upper` and `pd_special`, and the checksum where there is one.",
    },
    Page {
        name: "page-verification-failed",
        title: "page verification failed, calculated checksum … but expected …",
        needle: "page verification failed, calculated checksum",
        about: "The header is fine and some byte of the page is not: only data checksums see it. Without them the same bytes are read as if nothing had happened.",
    },
    Page {
        name: "zeroing-out-page",
        title: "invalid page in block …; zeroing out page",
        needle: "zeroing out page",
        about: "`zero_damaged_pages` is on: instead of an error the server puts zeros in place of the page, and goes on without its rows. It helps only against pages that the server refuses.",
    },
    Page {
        name: "invalid-memory-alloc-request-size",
        title: "invalid memory alloc request size …",
        needle: "invalid memory alloc request size",
        about: "A length in a row or a line pointer is nonsense, and the server asked for so much memory, often nearly 2^64 bytes.",
    },
    Page {
        name: "server-crashed",
        title: "server process (PID …) was terminated by signal 11: Segmentation fault",
        needle: "was terminated by signal",
        about: "An offset or a length led out of the page, or a pointer out of the memory of the process. All sessions end and the server recovers, until the row is read again.",
    },
    Page {
        name: "could-not-access-status-of-transaction",
        title: "could not access status of transaction …",
        needle: "could not access status of transaction",
        about: "`xmin` or `xmax` of a row names a transaction of which `pg_xact` has no page. Nothing is wrong with the transactions: the row is.",
    },
    Page {
        name: "multixact-apparent-wraparound",
        title: "MultiXactId … has not been created yet -- apparent wraparound",
        needle: "has not been created yet -- apparent wraparound",
        about: "`xmax` of a row is marked as a multixact and names one that does not exist.",
    },
    Page {
        name: "concurrent-change-in-progress",
        title: "concurrent insert in progress within table …",
        needle: "in progress within table",
        about: "`xmin` or `xmax` of a row names a transaction that has not begun. For a scan such a transaction is at work, so that the row is silently missing; only `CREATE INDEX` warns.",
    },
    Page {
        name: "xid-before-relfrozenxid",
        title: "found xmin … from before relfrozenxid …",
        needle: "from before relfrozenxid",
        about: "A row that is not frozen names a transaction older than everything that is not frozen. Only `VACUUM` compares the two.",
    },
    Page {
        name: "toast-chunk-number",
        title: "unexpected chunk number …, missing chunk number … for toast value …",
        needle: "chunk number",
        about: "A TOASTed value lies in pieces in the TOAST table. A piece is not there, or has another number; or the row points to a value that is absent.",
    },
    Page {
        name: "toast-chunk-size",
        title: "unexpected chunk size … for toast value …",
        needle: "unexpected chunk size",
        about: "A piece of a TOASTed value is longer or shorter than its number says.",
    },
    Page {
        name: "found-toasted-toast-chunk",
        title: "found toasted toast chunk for toast value …",
        needle: "found toasted toast chunk",
        about: "The header of a piece of a TOASTed value claims that the piece lies elsewhere itself, or is compressed by itself, which no piece does.",
    },
    Page {
        name: "sequence-returned-no-row",
        title: "query to get data of sequence … returned 0 rows (expected 1)",
        needle: "returned 0 rows (expected 1)",
        about: "A sequence is a table of one row on one page, and its row is gone. `SELECT` finds no row and says nothing; `pg_dump` counts.",
    },
    Page {
        name: "sequence-bad-magic",
        title: "bad magic number in sequence …",
        needle: "bad magic number in sequence",
        about: "The page of a sequence has lost the mark that `nextval` looks for. A `SELECT`, and with it `pg_dump`, does not look for it.",
    },
    Page {
        name: "short-read",
        title: "could not read block … in file …: read only … of 8192 bytes",
        needle: "read only",
        about: "A file is shorter than an index or a reader expects: it was truncated.",
    },
    Page {
        name: "missing-file",
        title: "could not open file …: No such file or directory",
        needle: "could not open file",
        about: "The file of a relation is gone.",
    },
    Page {
        name: "index-page-corrupted",
        title: "index … contains unexpected zero page at block …",
        needle: "unexpected zero page at block",
        about: "A page of an index is no page of an index. The rows are all in the table.",
    },
];

/// Every scenario, in the order of the pages.
pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario("invalid-page", Object::Table, "lower-beyond-upper"),
    scenario("invalid-page", Object::Toast, "lower-beyond-upper"),
    scenario("invalid-page", Object::Sequence, "page-flags"),
    scenario("invalid-page", Object::Catalog, "upper-beyond-special"),
    scenario("invalid-page", Object::Index, "page-flags"),
    with_sums("page-verification-failed", Object::Table, "flipped-bit"),
    with_sums("page-verification-failed", Object::Toast, "page-checksum"),
    with_sums(
        "page-verification-failed",
        Object::Sequence,
        "page-checksum",
    ),
    with_sums("page-verification-failed", Object::Catalog, "page-checksum"),
    with_sums("page-verification-failed", Object::Index, "page-checksum"),
    scenario("zeroing-out-page", Object::Table, "header-random"),
    scenario("zeroing-out-page", Object::Toast, "special-beyond-page"),
    scenario(
        "invalid-memory-alloc-request-size",
        Object::Table,
        "varlena-length-huge",
    ),
    scenario(
        "invalid-memory-alloc-request-size",
        Object::Table,
        "line-pointers-random",
    ),
    scenario("server-crashed", Object::Table, "hoff-larger"),
    scenario(
        "could-not-access-status-of-transaction",
        Object::Table,
        "system-columns-random",
    ),
    scenario(
        "could-not-access-status-of-transaction",
        Object::Owner,
        "system-columns-random",
    ),
    scenario(
        "could-not-access-status-of-transaction",
        Object::Catalog,
        "system-columns-random",
    ),
    scenario(
        "multixact-apparent-wraparound",
        Object::Table,
        "multixact-in-the-future",
    ),
    scenario(
        "multixact-apparent-wraparound",
        Object::Owner,
        "multixact-in-the-future",
    ),
    scenario(
        "multixact-apparent-wraparound",
        Object::Catalog,
        "multixact-in-the-future",
    ),
    scenario(
        "concurrent-change-in-progress",
        Object::Table,
        "xmin-in-the-future",
    ),
    scenario(
        "concurrent-change-in-progress",
        Object::Table,
        "xmax-in-the-future",
    ),
    scenario(
        "xid-before-relfrozenxid",
        Object::Table,
        "xmin-before-freeze",
    ),
    scenario("toast-chunk-number", Object::Toast, "chunk-number-shifted"),
    scenario("toast-chunk-number", Object::Toast, "line-pointer-dead"),
    scenario("toast-chunk-number", Object::Owner, "toast-value"),
    scenario("toast-chunk-size", Object::Toast, "chunk-shortened"),
    scenario(
        "found-toasted-toast-chunk",
        Object::Toast,
        "chunk-compressed",
    ),
    scenario("found-toasted-toast-chunk", Object::Toast, "chunk-external"),
    scenario(
        "sequence-returned-no-row",
        Object::Sequence,
        "sequence-row-gone",
    ),
    scenario("sequence-bad-magic", Object::Sequence, "sequence-magic"),
    scenario("short-read", Object::Table, "truncated-inside-block"),
    scenario("missing-file", Object::Table, "lost-file"),
    scenario("index-page-corrupted", Object::Index, "first-page-zeroed"),
];
