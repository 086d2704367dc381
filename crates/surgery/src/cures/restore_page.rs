//! A page comes back as the WAL leaves it: the newest image, or the page of a backup or another
//! copy, with every later record of the block.

use pgclinic_cluster::Cluster;
use pgclinic_format::{Page, sequence};
use pgclinic_model::plan::Safety;

use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::{Cure, CureUnit, CuredFiles};
use crate::error::Result;

/// Name of the cure.
pub const RESTORE_PAGE: &str = "restore-page";

pub(super) const CURE: Cure = Cure {
    name: RESTORE_PAGE,
    summary: "give a page back from WAL, a backup or another copy",
    unit: CureUnit::Page,
    files: CuredFiles::Proven,
    draft: restore_page,
};

fn restore_page(place: &HeapPlace<'_>) -> Result<Draft> {
    let Some(proven) = place.proven else {
        return place.refuse("neither WAL nor a copy proves what the page was; name more of them with --wal, --backup or --standby");
    };
    if is_same_page(place.cluster, place.bytes, &proven.bytes) {
        return place.refuse("the page is as it should be");
    }
    let summary = "the page becomes what WAL says that it was, but for hint bits, which the server sets again";
    let mut draft = Draft::new(proven.bytes.clone(), summary, Safety::Exact);
    draft.evidence.clone_from(&proven.evidence);
    draft.replaces_page = true;
    if proven.is_unverified {
        draft.safety = Safety::Lossy;
        draft = draft.warn("the copy has no data checksums: whether its page is as it was written cannot be verified, and its values may be wrong");
    }
    if let Some(last) = logged_in_advance(&proven.bytes) {
        draft.safety = Safety::Lossy;
        draft.summary =
            format!("the sequence goes on after {last}, the value of its last record in WAL");
        draft = draft.warn("the server writes up to 32 numbers of a sequence to WAL before it gives them: as many of them may never be given, and none is given twice");
    }
    Ok(draft)
}

/// The last value of a sequence whose record may be ahead of its page. `nextval` logs 32 values
/// that it has not given yet, and no record says how many of them were given since: neither after a
/// shutdown, nor after a crash, whose recovery keeps a page that is older than its checkpoint. Only
/// a sequence that has given nothing (`setval(…, false)`, RESTART) is as its record has it, because
/// its next value is logged. Truth: `nextval_internal` in `src/backend/commands/sequence.c`.
fn logged_in_advance(page: &[u8]) -> Option<i64> {
    let (last, is_called) = sequence::last_value(Page::parse(page)?)?;
    is_called.then_some(last)
}

/// Whether two pages are equal, but for a checksum that a cluster without them never reads.
pub fn is_same_page(cluster: &Cluster, one: &[u8], other: &[u8]) -> bool {
    const PD_CHECKSUM: std::ops::Range<usize> = 8..10;
    if cluster.checksums() == Some(true) {
        return one == other;
    }
    let without = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes
            .get_mut(PD_CHECKSUM)
            .into_iter()
            .for_each(|field| field.fill(0));
        bytes
    };
    without(one) == without(other)
}
