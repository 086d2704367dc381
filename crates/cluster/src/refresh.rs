//! Newer looks at a cluster whose server runs.

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::error::OpenError;
use crate::wal::{Replayed, Stop};

/// How often a look that met a file on its way is taken again.
const LOOKS_MAX: usize = 4;

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

    /// The same, taken again while it meets files on their way.
    ///
    /// # Errors
    ///
    /// As [`Cluster::open`].
    pub fn refresh_until_steady(&self) -> Result<Self, OpenError> {
        let mut newest = self.refresh()?;
        for _ in 1..LOOKS_MAX {
            if newest.is_steady() {
                break;
            }
            newest = self.refresh()?;
        }
        Ok(newest)
    }

    /// The same, and what `replay` makes of it. Where the server removed WAL between finding its end and applying it, another look is
    /// taken: what committed since would be known, and its changes would not.
    ///
    /// # Errors
    ///
    /// As [`Cluster::open`].
    pub fn refresh_and_replay(
        &self,
        replay: impl Fn(&Cluster) -> Option<(Cluster, Replayed)>,
    ) -> Result<(Cluster, Option<(Cluster, Replayed)>), OpenError> {
        let look = || -> Result<_, OpenError> {
            let view = self.refresh_until_steady()?;
            let replayed = replay(&view);
            Ok((view, replayed))
        };
        let mut newest = look()?;
        for _ in 1..LOOKS_MAX {
            let replayed = newest.1.as_ref();
            if replayed.is_none_or(|(_, replayed)| replayed.reached_end) {
                break;
            }
            newest = look()?;
        }
        Ok(newest)
    }

    /// Control file and WAL were read as of one moment.
    pub fn is_steady(&self) -> bool {
        let whole = |stop| matches!(stop, Stop::End | Stop::Elsewhere);
        let replay = self.replay();
        self.troubles.is_empty()
            && replay.is_some_and(|replay| whole(replay.stop) && replay.troubles.is_empty())
    }
}
