//! Newer looks at a cluster whose server runs.

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::error::OpenError;
use crate::wal::Stop;

impl Cluster {
    /// A newer look at a cluster whose server runs.
    ///
    /// # Errors
    ///
    /// As [`Cluster::open`].
    pub fn refresh(&self) -> Result<Self, OpenError> {
        let newer = Cluster::open(self.seen_through(Arc::clone(&self.source)))?;
        Ok(Cluster {
            machine: self.machine.clone(),
            collator: self.collator.clone(),
            ..newer
        })
    }

    /// Control file and WAL were read as of one moment.
    pub fn is_steady(&self) -> bool {
        let whole = |stop| matches!(stop, Stop::End | Stop::Elsewhere);
        let replay = self.replay();
        self.troubles.is_empty()
            && replay.is_some_and(|replay| whole(replay.stop) && replay.troubles.is_empty())
    }
}
