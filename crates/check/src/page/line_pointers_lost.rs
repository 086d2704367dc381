//! A page has no line pointer, or not all of those that it had, and its rows or entries still lie
//! on it.
//!
//! A page that holds nothing has `pd_upper` at `pd_special`: `PageInit` begins so, and whatever
//! takes the last item from a page moves `pd_upper` back (`PageRepairFragmentation`,
//! `PageIndexTupleDelete` and `PageIndexMultiDelete` in `src/backend/storage/page/bufpage.c`).
//! `PageTruncateLinePointerArray` never takes the last line pointer. Of a table's page the line
//! pointers that `pd_lower` has cut off are told by what they say; `heap_force_kill` of
//! `pg_surgery` also leaves rows that no line pointer names, but no line pointer that names them.

use pgclinic_format::Page;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::VACUUM_TAKES_ALL_POINTERS;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static LINE_POINTERS_LOST: Rule =
    Rule::from_page(include_str!("../../rules/line-pointers-lost.md"));

/// See [`LINE_POINTERS_LOST`].
pub struct LinePointersLost;

/// Where `pd_lower` and `pd_upper` stand.
const BOUNDS: (usize, usize) = (12, 16);

impl PageCheck for LinePointersLost {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&LINE_POINTERS_LOST] }
    }

    fn wants(&self) -> Wants {
        Wants {
            screened: false,
            ..Wants::LINE_POINTERS
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let (upper, special) = (page.pd_upper(), page.pd_special());
        let is_bare = page.line_pointer_count() == 0;
        let is_of_rows = cx.fork.method == Some(AccessMethod::Heap);
        let lost = match special.checked_sub(upper) {
            None => None,
            Some(0) => (is_of_rows && has_rows_without_pointers(page, cx)).then(|| not_empty(page)),
            Some(bytes) if is_bare => Some(all_lost(page, bytes)),
            Some(_) if is_of_rows => some_lost(page),
            Some(_) => None,
        };
        if let Some(draft) = lost {
            out.add(draft.bytes(BOUNDS.0, BOUNDS.1));
        }
    }
}

/// Bytes of rows lie on a page of a table that has no line pointer, and no VACUUM leaves it so.
pub(crate) fn has_rows_without_pointers(page: Page<'_>, cx: &PageCx<'_>) -> bool {
    cx.fork.major() < VACUUM_TAKES_ALL_POINTERS && page.has_bytes_without_pointers()
}

fn not_empty(page: Page<'_>) -> Draft {
    let (lower, upper) = (page.pd_lower(), page.pd_upper());
    let message = format!(
        "pd_lower {lower} and pd_upper {upper} are those of a page that never held a row, and its free space is not all zero"
    );
    Draft::new(&LINE_POINTERS_LOST, message)
}

fn all_lost(page: Page<'_>, bytes: u16) -> Draft {
    let (lower, upper, special) = (page.pd_lower(), page.pd_upper(), page.pd_special());
    let message = format!(
        "pd_lower {lower} leaves no line pointer, and {bytes} bytes of rows or entries lie from pd_upper {upper} to pd_special {special}"
    );
    Draft::new(&LINE_POINTERS_LOST, message).fact("item_bytes", bytes)
}

fn some_lost(page: Page<'_>) -> Option<Draft> {
    let rows = page.line_pointers_cut_off().len() as u64;
    (rows > 0).then_some(())?;
    let lower = page.pd_lower();
    let stand = if rows == 1 {
        "1 line pointer stands after it, and names a row"
    } else {
        &format!("{rows} line pointers stand after it, and name rows")
    };
    let message = format!(
        "pd_lower {lower} ends the line pointers too early: {stand} that no line pointer before it names"
    );
    Some(Draft::new(&LINE_POINTERS_LOST, message).rows(rows))
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder, put_u16, put_u32};
    use pgclinic_format::{LinePointer, LpFlags};

    use super::*;
    use crate::trial::Trial;

    const LOWER_AT: usize = 12;

    #[test]
    fn rows_without_line_pointers_are_told() {
        let row = TupleBuilder::new(0).finish();
        let mut page = PageBuilder::new(8192, &[]).item(&row).finish(0);
        let told = |page: &[u8]| Trial::table().told(&LinePointersLost, page);
        assert_eq!(told(&page), [""; 0]);
        put_u16(&mut page, LOWER_AT, 24);
        let mut emptied = page.clone();
        put_u16(&mut emptied, LOWER_AT + 2, 8192);
        assert_eq!(told(&emptied), [""; 0]);
        let trial = Trial {
            major: 16,
            ..Trial::table()
        };
        let of_16 = trial.told(&LinePointersLost, &emptied);
        assert!(of_16[0].contains("never held a row"), "{of_16:?}");
        let expected = "line-pointers-lost: pd_lower 24 leaves no line pointer, and 24 bytes of rows or entries lie from pd_upper 8168 to pd_special 8192";
        assert_eq!(told(&page), [expected]);
        let empty = PageBuilder::new(8192, &[]).finish(0);
        assert_eq!(told(&empty), [""; 0]);
    }

    #[test]
    fn rows_whose_line_pointers_were_cut_off_are_told() {
        let row = TupleBuilder::new(0).finish();
        let rows = (0..5).fold(PageBuilder::new(8192, &[]), |page, _| page.item(&row));
        let whole = rows.finish(0);
        let told = |page: &[u8]| Trial::table().told(&LinePointersLost, page);
        let cut = |lower: u16| {
            let mut page = whole.clone();
            put_u16(&mut page, LOWER_AT, lower);
            page
        };
        assert_eq!(told(&whole), [""; 0]);
        let expected = "line-pointers-lost: pd_lower 40 ends the line pointers too early: 1 line pointer stands after it, and names a row that no line pointer before it names";
        assert_eq!(told(&cut(40)), [expected]);
        let expected = "line-pointers-lost: pd_lower 28 ends the line pointers too early: 4 line pointers stand after it, and name rows that no line pointer before it names";
        assert_eq!(told(&cut(28)), [expected]);
    }

    /// What stands behind `pd_lower` names no row, or one that another line pointer names.
    #[test]
    fn what_a_server_leaves_behind_pd_lower_is_silent() {
        let row = TupleBuilder::new(0).finish();
        let killed = LinePointer::new(0, LpFlags::Dead, 0);
        let page = PageBuilder::new(8192, &[]).item(&row).item(&row);
        let mut page = page.line_pointer(killed).finish(0);
        let told = |page: &[u8]| Trial::table().told(&LinePointersLost, page);
        let same = LinePointer::new(8168, LpFlags::Normal, 24);
        let free = LinePointer::new(4096, LpFlags::Normal, 24);
        for pointer in [same, free] {
            put_u32(&mut page, 36, pointer.0);
            assert_eq!(told(&page), [""; 0]);
        }
    }
}
