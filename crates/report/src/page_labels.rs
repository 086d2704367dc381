//! Labels for a damaged page of which only the bytes are known.
//!
//! Everything that the page's own header claims is shown where it claims to be, cut to the page.

use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{HeapTuple, LinePointer, LpFlags, Page};
use pgclinic_model::document::{FileKind, HexRange};

/// `PageHeaderData`, truth: `src/include/storage/bufpage.h`.
const HEADER: [(&str, u64, u64); 8] = [
    ("pd_lsn", 0, 8),
    ("pd_checksum", 8, 10),
    ("pd_flags", 10, 12),
    ("pd_lower", 12, 14),
    ("pd_upper", 14, 16),
    ("pd_special", 16, 18),
    ("pd_pagesize_version", 18, 20),
    ("pd_prune_xid", 20, 24),
];

/// Labels, least important first: later ones cover earlier ones.
pub(crate) fn labels(bytes: &[u8], kind: FileKind) -> Vec<HexRange> {
    let Some(page) = Page::parse(bytes) else {
        return Vec::new();
    };
    if matches!(
        kind,
        FileKind::ControlFile | FileKind::RelationMap | FileKind::Slru | FileKind::Wal
    ) {
        return Vec::new();
    }
    let mut labels = vec![label(
        page.pd_lower(),
        page.pd_upper(),
        "free space",
        "free",
    )];
    let pointers = believable_pointers(page);
    for (number, pointer) in &pointers {
        item(page, *number, *pointer, kind, &mut labels);
    }
    if let Ok(end) = u16::try_from(page.len()) {
        labels.push(label(page.pd_special(), end, "special space", "special"));
    }
    line_pointers(&pointers, &mut labels);
    let header = HEADER.iter().map(|(name, start, end)| HexRange {
        bytes: [*start, *end],
        label: (*name).to_owned(),
        part: "header".into(),
    });
    labels.extend(header);
    labels
}

/// Line pointers up to `pd_lower`, or to the first item of an earlier one: where `pd_lower` lies,
/// its array would cover the whole page.
fn believable_pointers(page: Page<'_>) -> Vec<(u16, LinePointer)> {
    let mut floor = page.len();
    let mut pointers = Vec::new();
    for (number, pointer) in page.line_pointers() {
        let [_, end] = pointer_bytes(number);
        if end > floor {
            break;
        }
        if page.item(pointer).is_some() {
            floor = floor.min(usize::from(pointer.lp_off()));
        }
        pointers.push((number, pointer));
    }
    pointers
}

fn pointer_bytes(number: u16) -> [usize; 2] {
    let start = HEADER_BYTES + usize::from(number.saturating_sub(1)) * LinePointer::SIZE;
    [start, start + LinePointer::SIZE]
}

/// One label each; those of zeros at the end get one in common.
fn line_pointers(pointers: &[(u16, LinePointer)], labels: &mut Vec<HexRange>) {
    let used = pointers.iter().rposition(|(_, pointer)| pointer.0 != 0);
    let (used, zeros) = pointers.split_at(used.map_or(0, |last| last + 1));
    if let (Some((first, _)), Some((last, _))) = (zeros.first(), zeros.last()) {
        let ([start, _], [_, end]) = (pointer_bytes(*first), pointer_bytes(*last));
        let name = format!("line pointers {first} to {last}, all zeros");
        labels.push(wide(start, end, name, "line-pointer"));
    }
    for (number, _) in used {
        let [start, end] = pointer_bytes(*number);
        let name = format!("line pointer {number}");
        labels.push(wide(start, end, name, "line-pointer"));
    }
}

fn item(
    page: Page<'_>,
    number: u16,
    pointer: LinePointer,
    kind: FileKind,
    labels: &mut Vec<HexRange>,
) {
    let (Some(range), LpFlags::Normal | LpFlags::Dead) = (pointer.range(), pointer.flags()) else {
        return;
    };
    let tuple = page
        .item(pointer)
        .filter(|_| kind != FileKind::Index)
        .and_then(HeapTuple::parse);
    let Some(tuple) = tuple else {
        labels.push(wide(
            range.start,
            range.end,
            format!("item {number}"),
            "tuple-data",
        ));
        return;
    };
    let data = range
        .start
        .saturating_add(usize::from(tuple.t_hoff()))
        .min(range.end);
    labels.push(wide(
        range.start,
        data,
        format!("tuple header {number}"),
        "tuple-header",
    ));
    labels.push(wide(
        data,
        range.end,
        format!("tuple data {number}"),
        "tuple-data",
    ));
}

fn label(start: u16, end: u16, label: &str, part: &str) -> HexRange {
    wide(usize::from(start), usize::from(end), label.to_owned(), part)
}

fn wide(start: usize, end: usize, label: String, part: &str) -> HexRange {
    let offset = |at: usize| u64::try_from(at).unwrap_or(u64::MAX);
    HexRange {
        bytes: [offset(start), offset(end)],
        label,
        part: part.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::Hex;

    #[test]
    fn a_page_of_ones_gets_labels_without_harm() {
        let page = [0xFF; 1024];
        let labels = labels(&page, FileKind::Table);
        let hex = Hex::new(&page, &labels);
        assert_eq!(
            hex.label(12).map(|label| label.label.as_str()),
            Some("pd_lower")
        );
        assert_eq!(
            hex.label(24).map(|label| label.label.as_str()),
            Some("line pointer 1")
        );
    }
}
