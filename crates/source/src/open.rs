//! Opening what a spec names.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::{
    BackupChain, ChainShape, Clock, DataDirectory, Limit, Overlay, Result, SingleFile, Source,
    SourceError, SourceErrorKind, SourceSpec, TarBackup,
};

impl SourceSpec {
    /// Builds the source again. One in memory cannot be: its bytes are not part of the spec.
    pub fn open(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Source>> {
        Ok(match self {
            Self::DataDirectory { path } => Arc::new(DataDirectory::open(path)?),
            Self::SingleFile { path } => Arc::new(SingleFile::open(path)?),
            Self::TarBackup { path, spill_folder } => {
                let mut go_on = |_| ControlFlow::Continue(());
                Arc::new(TarBackup::open(path, spill_folder, &mut go_on)?)
            }
            Self::Chain {
                links,
                block_bytes,
                segment_blocks,
            } => {
                let links: Result<Vec<_>> = links.iter().map(|link| link.open(clock)).collect();
                let shape = ChainShape {
                    block_bytes: *block_bytes,
                    segment_blocks: *segment_blocks,
                };
                Arc::new(BackupChain::new(links?, shape)?)
            }
            Self::Memory { name } => {
                let why = "a source in memory exists only in the process that filled it";
                return Err(SourceError::new(name, SourceErrorKind::Refused, why));
            }
            Self::Server { url } => {
                let why = "only the process that is connected to a server reads its files";
                return Err(SourceError::new(url, SourceErrorKind::Refused, why));
            }
            Self::Overlay { under, patches } => {
                Arc::new(Overlay::new(under.open(clock)?, patches.clone())?)
            }
            Self::Replayed { under } => {
                let why = "a recovery in memory exists only in the process that did it";
                let name = format!("{under:?}");
                return Err(SourceError::new(&name, SourceErrorKind::Refused, why));
            }
            Self::Limit {
                under,
                bytes_per_second,
            } => Arc::new(Limit::new(
                under.open(clock)?,
                *bytes_per_second,
                Arc::clone(clock),
            )),
        })
    }
}
