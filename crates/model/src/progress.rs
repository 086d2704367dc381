//! How far a run is, for whoever shows it.

/// How the run tells where it is, and is told to stop.
pub trait Progress: Sync {
    /// More bytes lie ahead.
    fn expect(&self, bytes: u64);
    /// All that lies ahead was expected: from here on a share of it is known, and the time left.
    fn foresee(&self) {}
    /// So many bytes were looked at.
    fn advance(&self, bytes: u64);
    /// Somebody wants it to stop: what was found so far is still told.
    fn is_interrupted(&self) -> bool;
}
