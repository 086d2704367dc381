//! Line pointers, and what each of them names.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{LinePointer, LpFlags, Page};
use pgclinic_model::document::ItemAnatomy;

use super::cover::{Cover, Part};
use super::values::Columns;
use super::{AnatomyCx, ITEMS_MAX, PageKind, heap, index};

/// An item of the page: its number, where it begins, its bytes.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) number: u16,
    pub(super) at: usize,
    pub(super) bytes: &'a [u8],
}

/// All line pointers up to the limit, with labels.
pub(super) fn anatomies(page: Page<'_>, cx: &AnatomyCx<'_>, cover: &mut Cover) -> Vec<ItemAnatomy> {
    let columns = Columns::new(cx);
    let items = page.line_pointers().take(ITEMS_MAX);
    let items: Vec<ItemAnatomy> = items
        .map(|(number, pointer)| anatomy(page, number, pointer, &columns, cx, cover))
        .collect();
    for (number, _) in page.line_pointers() {
        let start = pointer_at(number);
        cover.paint(
            start..start + LinePointer::SIZE,
            Part::LinePointer,
            format!("line pointer {number}"),
        );
    }
    items
}

fn pointer_at(number: u16) -> usize {
    HEADER_BYTES + usize::from(number).saturating_sub(1) * LinePointer::SIZE
}

fn anatomy(
    page: Page<'_>,
    number: u16,
    pointer: LinePointer,
    columns: &Columns,
    cx: &AnatomyCx<'_>,
    cover: &mut Cover,
) -> ItemAnatomy {
    let mut anatomy = ItemAnatomy {
        item: number,
        at: u64::try_from(pointer_at(number)).unwrap_or(u64::MAX),
        lp_off: pointer.lp_off(),
        lp_flags: pointer.flags().name().into(),
        lp_len: pointer.lp_len(),
        fault: fault(page, number, pointer, cx.kind),
        header: Vec::new(),
        state: None,
        values: Vec::new(),
    };
    let (Some(range), Some(bytes)) = (pointer.range(), page.item(pointer)) else {
        anatomy.state = state_without_item(pointer);
        return anatomy;
    };
    let item = Item {
        number,
        at: range.start,
        bytes,
    };
    match cx.kind {
        PageKind::Method(AccessMethod::Heap | AccessMethod::Sequence) => {
            heap::fill(item, columns, cx, &mut anatomy, cover)
        }
        PageKind::Method(method) => index::fill(item, method, page, &mut anatomy, cover),
        _ => cover.paint(range, Part::TupleData, format!("item {number}")),
    }
    if pointer.flags() == LpFlags::Dead {
        anatomy.state = Some("dead: the line pointer says that nobody needs it".into());
    }
    anatomy
}

fn state_without_item(pointer: LinePointer) -> Option<String> {
    match pointer.flags() {
        LpFlags::Unused => Some("free for use".into()),
        LpFlags::Redirect => Some(format!("redirects to line pointer {}", pointer.lp_off())),
        LpFlags::Dead => Some("dead, without storage".into()),
        LpFlags::Normal => None,
    }
}

fn fault(page: Page<'_>, number: u16, pointer: LinePointer, kind: PageKind) -> Option<String> {
    let (offset, len) = (usize::from(pointer.lp_off()), usize::from(pointer.lp_len()));
    match pointer.flags() {
        LpFlags::Unused => (len != 0).then(|| format!("LP_UNUSED has lp_len {len}")),
        LpFlags::Dead if len == 0 => None,
        LpFlags::Redirect => redirect_fault(page, number, pointer, kind),
        LpFlags::Normal if len == 0 => Some("LP_NORMAL has lp_len 0".into()),
        LpFlags::Normal | LpFlags::Dead => {
            let end = offset + len;
            let array = usize::from(page.line_pointer_count()) * LinePointer::SIZE + HEADER_BYTES;
            let special = usize::from(page.pd_special()).min(page.len());
            if end > page.len() {
                Some(format!(
                    "the item ends at {end}, beyond the page of {} bytes",
                    page.len()
                ))
            } else if offset < array {
                Some(format!(
                    "the item begins at {offset}, inside header or line pointers that end at {array}"
                ))
            } else if end > special {
                Some(format!(
                    "the item ends at {end}, inside the special space that begins at {special}"
                ))
            } else {
                (offset % 8 != 0).then(|| format!("lp_off {offset} is not a multiple of 8"))
            }
        }
    }
}

fn redirect_fault(
    page: Page<'_>,
    number: u16,
    pointer: LinePointer,
    kind: PageKind,
) -> Option<String> {
    let target = pointer.lp_off();
    let count = page.line_pointer_count();
    let is_index = !matches!(
        kind,
        PageKind::Method(AccessMethod::Heap) | PageKind::Unknown
    );
    if is_index {
        Some("only tables have redirects".into())
    } else if target == 0 || target > count {
        Some(format!("redirects to line pointer {target} of {count}"))
    } else if target == number {
        Some("redirects to itself".into())
    } else {
        let flags = page.line_pointer(target)?.flags();
        (flags != LpFlags::Normal).then(|| {
            format!(
                "redirects to line pointer {target}, which is {}",
                flags.name()
            )
        })
    }
}
