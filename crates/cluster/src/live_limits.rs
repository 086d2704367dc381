//! How often a reader looks again at files that a running server writes, and how long it waits.

use std::time::Duration;

/// One set of limits for everybody who reads beside a running server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveLimits {
    /// Rounds over what was made, grew or moved meanwhile, the first one included: as many as torn
    /// catalogs are read, and three for what stands in them.
    pub rounds: u32,
    /// Openings of the cluster for one view, until control file and WAL are of one moment.
    pub views: u32,
    /// Reads of one database's catalogs that are not whole by a page that cannot be read.
    pub catalog_reads: u32,
    /// The same where all pages are read and rows are missed. Where VACUUM FULL and checkpoints
    /// follow each other, every other read meets catalogs on their way.
    pub torn_catalog_reads: u32,
    /// Looks at what seemed wrong, after the first.
    pub second_looks: u32,
    /// Reads of one page that may be half written, after the first.
    pub page_reads: u32,
    /// Between two reads of a page. The server writes one in far less.
    pub page_wait: Duration,
    /// Waits for pages in a whole run: a file that is damaged everywhere must not hold it up.
    pub page_waits: u32,
    /// Between two looks at what seemed wrong.
    pub look_wait: Duration,
}

/// The limits of every run.
pub const LIVE_LIMITS: LiveLimits = LiveLimits {
    rounds: 8,
    views: 4,
    catalog_reads: 3,
    torn_catalog_reads: 5,
    second_looks: 3,
    page_reads: 5,
    page_wait: Duration::from_millis(20),
    page_waits: 500,
    look_wait: Duration::from_millis(500),
};
