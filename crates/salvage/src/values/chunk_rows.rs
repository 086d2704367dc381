//! The rows of a page of a TOAST relation, whatever state the page is in.

use pgclinic_cluster::TransactionLog;
use pgclinic_format::toast_chunk::CHUNK_COLUMNS;
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Page, Varlena, varlena};

use crate::carve::{self, PageState, Probe};
use crate::visible::VersionFate;

/// The rows of a page of a TOAST relation, dead or not, from line pointer `first` on. Those of a
/// page that does not name them all are found by their structure, and are numbered in the order in
/// which they stand.
pub(crate) fn chunk_rows<'p>(
    page: Page<'p>,
    block: BlockNo,
    first: u16,
    log: &TransactionLog,
) -> Box<dyn Iterator<Item = (u16, HeapTuple<'p>)> + 'p> {
    let skipped = usize::from(first.max(1) - 1);
    if PageState::of(page) == PageState::Sound && carve::is_filled(page) {
        let pointers = page.line_pointers().skip(skipped);
        let normal = pointers.filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
        return Box::new(normal.filter_map(move |(item, pointer)| {
            Some((item, HeapTuple::parse(page.item(pointer)?)?))
        }));
    }
    let mut fits = |attribute: usize, value: &[u8]| match attribute {
        2 => matches!(
            varlena::parse(value),
            Ok((Varlena::Short(_) | Varlena::Plain(_), _))
        ),
        _ => true,
    };
    let mut probe = Probe::new(&CHUNK_COLUMNS, u64::MAX, log, &mut fits);
    let found = carve::of_broken_page(page, block, &mut probe);
    Box::new(
        (1..)
            .zip(found)
            .skip(skipped)
            .map(|(item, found)| (item, found.tuple)),
    )
}

/// How probably a chunk belongs to a value that is wanted, 0 for one that counts; the index prefers
/// lower ranks.
pub(crate) fn rank(verdict: VersionFate) -> u8 {
    match verdict {
        VersionFate::Live => 0,
        VersionFate::PerhapsLive | VersionFate::PerhapsDeleted | VersionFate::PerhapsReplaced => 1,
        VersionFate::Carved => 2,
        VersionFate::Deleted => 3,
        VersionFate::Aborted => 4,
    }
}
