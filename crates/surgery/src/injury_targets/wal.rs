//! Pages of WAL that can be hurt, by their numbers since the beginning of the WAL.

use pgclinic_cluster::Cluster;
use pgclinic_format::wal::WalPages;
use pgclinic_format::{BlockNo, Lsn};

use crate::injury_target::{InjuryTargetKind, wal_record_on};

/// Pages of older WAL that are offered.
const OLDER_MAX: usize = 64;

/// The pages of this kind.
pub(crate) fn pages(cluster: &Cluster, kind: InjuryTargetKind) -> Vec<BlockNo> {
    let Some((recovery, survey)) = cluster.recovery().zip(cluster.wal_survey()) else {
        return Vec::new();
    };
    let shape = &recovery.shape;
    let number = |at: Lsn| BlockNo::try_from(at.0 / u64::from(shape.page_bytes)).ok();
    let checkpoint = recovery.start.checkpoint;
    match kind {
        InjuryTargetKind::WalCheckpoint => Vec::from_iter(number(checkpoint)),
        InjuryTargetKind::WalHead => Vec::from_iter(number(shape.segment_of(checkpoint))),
        _ => {
            let Some(from) = survey.oldest.checked_mul(u64::from(shape.segment_bytes)) else {
                return Vec::new();
            };
            let redo = recovery.start.redo.0;
            let starts = (from..redo).step_by(usize::try_from(shape.page_bytes).unwrap_or(8192));
            // What is hurt lies before the redo point, also on the page that holds it.
            let fits = |page: &BlockNo| {
                let begin = u64::from(*page).saturating_mul(u64::from(shape.page_bytes));
                let bytes = read(cluster, *page).map(|(_, _, bytes)| bytes);
                let record = bytes.as_deref().and_then(wal_record_on);
                let offset = record.and_then(|at| u64::try_from(at).ok());
                offset.is_some_and(|at| begin.saturating_add(at) < redo)
            };
            let starts = starts.map(Lsn);
            starts
                .filter_map(number)
                .filter(fits)
                .take(OLDER_MAX)
                .collect()
        }
    }
}

/// Path, offset and bytes of a page.
pub(crate) fn read(cluster: &Cluster, page: BlockNo) -> Option<(String, u64, Vec<u8>)> {
    let recovery = cluster.recovery()?;
    let shape = &recovery.shape;
    let at = Lsn(u64::from(page).checked_mul(u64::from(shape.page_bytes))?);
    let mut pages = recovery.pages(cluster.source().as_ref());
    let path = pages.path_of(at)?;
    let bytes = pages.page(at)?.to_vec();
    Some((path, at.0 - shape.segment_of(at).0, bytes))
}
