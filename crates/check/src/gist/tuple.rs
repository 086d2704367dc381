//! An entry of a GiST page that does not fit its size, its columns or its place.
//!
//! Truth: `index_form_tuple` in `src/backend/access/common/indextuple.c`, `gistFormTuple` in
//! `src/backend/access/gist/gistutil.c`.

use pgclinic_format::gist::{GistItem, GistPage, TUPLE_IS_INVALID, TUPLE_IS_VALID};
use pgclinic_format::index_tuple::INDEX_AM_RESERVED_BIT;
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_format::{ColumnLayout, LpFlags, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// Entry and columns.
pub static GIST_TUPLE: Rule = Rule::from_page(include_str!("../../rules/gist-tuple.md"));

/// Left by old servers.
pub static GIST_INVALID_TUPLE: Rule =
    Rule::from_page(include_str!("../../rules/gist-invalid-tuple.md"));

/// See [`GIST_TUPLE`] and [`GIST_INVALID_TUPLE`].
pub struct GistTuple;

impl PageCheck for GistTuple {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIST_TUPLE, &GIST_INVALID_TUPLE] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(gist) = GistPage::parse(page).filter(|_| !page.is_new()) else {
            return;
        };
        let columns = columns(gist, cx);
        for item in gist.items() {
            if let Some(message) = fault(gist, item, columns) {
                out.add(at(page, &GIST_TUPLE, item, message));
            } else if !gist.is_leaf() && item.tuple.t_tid().offset == TUPLE_IS_INVALID {
                let child = item.tuple.t_tid().block;
                let message = format!("the entry for block {child} is marked as invalid");
                out.add(at(page, &GIST_INVALID_TUPLE, item, message));
            }
        }
        for (number, pointer) in gist.line_pointers() {
            if pointer.flags() == LpFlags::Unused {
                let message = "a line pointer without an entry";
                out.add(Draft::new(&GIST_TUPLE, message).item(number));
            }
        }
    }
}

/// Inner pages keep the key columns only.
fn columns<'a>(page: GistPage<'_>, cx: &PageCx<'a>) -> Option<&'a [ColumnLayout]> {
    let columns = cx.fork.columns?;
    let index = cx.fork.relation?.index.as_ref()?;
    if page.is_leaf() {
        Some(columns)
    } else {
        columns.get(..usize::from(index.key_count))
    }
}

fn at(page: Page<'_>, rule: &'static Rule, item: GistItem<'_>, message: String) -> Draft {
    let draft = Draft::new(rule, message).item(item.number);
    let range = page
        .line_pointer(item.number)
        .and_then(|pointer| pointer.range());
    match range {
        Some(range) => draft.bytes(range.start, range.end),
        None => draft,
    }
}

fn fault(
    page: GistPage<'_>,
    item: GistItem<'_>,
    columns: Option<&[ColumnLayout]>,
) -> Option<String> {
    let tuple = item.tuple;
    let (size, len) = (tuple.size(), tuple.item().len());
    if size != len {
        return Some(format!("an entry of {size} bytes in an item of {len}"));
    }
    if tuple.has(INDEX_AM_RESERVED_BIT) {
        return Some(format!(
            "t_info {:#06x} has a bit that GiST does not use",
            tuple.t_info()
        ));
    }
    place_fault(page, item).or_else(|| walk_fault(item, columns?))
}

fn place_fault(page: GistPage<'_>, item: GistItem<'_>) -> Option<String> {
    let tid = item.tuple.t_tid();
    // No block of 32 kB has more rows.
    let row = (1..=2048).contains(&tid.offset) && tid.block != INVALID_BLOCK;
    let child = matches!(tid.offset, TUPLE_IS_VALID | TUPLE_IS_INVALID);
    match page.is_leaf() {
        true if !row => Some(format!("{tid} is no row")),
        false if !child => Some(format!(
            "an inner entry has line pointer number {}",
            tid.offset
        )),
        _ => None,
    }
}

fn walk_fault(item: GistItem<'_>, columns: &[ColumnLayout]) -> Option<String> {
    let mut walk = item.tuple.attributes(columns);
    for attribute in walk.by_ref() {
        if let Err(fault) = attribute {
            return Some(format!(
                "the value of column {} at byte {} of the entry cannot be read",
                fault.attribute, fault.at
            ));
        }
    }
    let (end, size) = (walk.end(), item.tuple.size());
    (end.next_multiple_of(8) != size)
        .then(|| format!("the values end at byte {end} of an entry of {size} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Trial;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};
    use pgclinic_format::gist::{F_LEAF, PAGE_ID};
    use pgclinic_format::index_page::AccessMethod;

    fn said(flags: u16, tuple: &[u8]) -> Vec<String> {
        let mut special = [0; 16];
        put_u32(&mut special, 8, INVALID_BLOCK);
        put_u16(&mut special, 12, flags);
        put_u16(&mut special, 14, PAGE_ID);
        let page = PageBuilder::new(8192, &special).item(tuple).finish(0);
        let mut trial = Trial::index(AccessMethod::Gist);
        trial.columns = Some(vec![ColumnLayout {
            attlen: 8,
            attalign: 8,
        }]);
        let mut index = pgclinic_cluster::Index::default();
        index.key_count = 1;
        trial.relation.index = Some(index);
        trial.told(&GistTuple, &page)
    }

    fn tuple(offset: u16, info: u16) -> [u8; 16] {
        let mut tuple = [0; 16];
        put_u16(&mut tuple, 4, offset);
        put_u16(&mut tuple, 6, info);
        tuple
    }

    #[test]
    fn entries_fit_their_pages() {
        assert!(said(F_LEAF, &tuple(1, 16)).is_empty());
        assert!(said(0, &tuple(TUPLE_IS_VALID, 16)).is_empty());
        assert_eq!(
            said(F_LEAF, &tuple(0, 16)),
            ["1 gist-tuple: (0,0) is no row"]
        );
        assert_eq!(
            said(0, &tuple(7, 16)),
            ["1 gist-tuple: an inner entry has line pointer number 7"]
        );
        assert_eq!(
            said(0, &tuple(TUPLE_IS_INVALID, 16)),
            ["1 gist-invalid-tuple: the entry for block 0 is marked as invalid"]
        );
    }

    #[test]
    fn entries_are_as_long_as_their_values() {
        assert_eq!(
            said(F_LEAF, &tuple(1, 24)),
            ["1 gist-tuple: an entry of 24 bytes in an item of 16"]
        );
        let mut long = tuple(1, 24).to_vec();
        long.extend([0; 8]);
        assert_eq!(
            said(F_LEAF, &long),
            ["1 gist-tuple: the values end at byte 16 of an entry of 24 bytes"]
        );
        assert_eq!(
            said(F_LEAF, &tuple(1, 0x2010)),
            ["1 gist-tuple: t_info 0x2010 has a bit that GiST does not use"]
        );
    }
}
