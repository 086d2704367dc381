//! An entry of a GIN index cannot be read, or its rows are not as many or not in the order that
//! they must be.
//!
//! Truth: `GinFormTuple` and `ginReadTuple` in `src/backend/access/gin/ginentrypage.c`.

use pgclinic_format::Page;
use pgclinic_format::gin::{EntryTuple, KeyShape, OFFSET_MAX, PageKind, Posting, PostingRows};
use pgclinic_model::Rule;
use pgclinic_model::plural;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::gin::{entries, gin_page};

/// The rule.
pub static GIN_ENTRY: Rule = Rule::from_page(include_str!("../../rules/gin-entry.md"));

/// See [`GIN_ENTRY`].
pub struct GinEntry;

impl PageCheck for GinEntry {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIN_ENTRY] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some((_, kind)) = gin_page(page, cx) else {
            return;
        };
        if !matches!(
            kind,
            PageKind::EntryLeaf | PageKind::EntryInner | PageKind::Pending
        ) {
            return;
        }
        for (item, entry) in entries(page) {
            if let Some(why) = fault(entry, kind, cx) {
                out.add(Draft::new(&GIN_ENTRY, format!("entry {item}: {why}")).item(item));
            }
        }
    }
}

fn fault(entry: EntryTuple<'_>, kind: PageKind, cx: &PageCx<'_>) -> Option<String> {
    if let Some(fault) = entry.size_fault() {
        return Some(fault.to_string());
    }
    let mut key_end = 8;
    if let Some(columns) = cx.fork.columns {
        match entry.key(KeyShape { columns }) {
            Ok((_, end)) => key_end = end,
            Err(fault) => return Some(fault.to_string()),
        }
    }
    match kind {
        PageKind::Pending => {
            let tid = entry.t_tid();
            let possible = tid.offset > 0 && tid.offset <= OFFSET_MAX;
            (!possible).then(|| format!("no row can be numbered {tid}"))
        }
        PageKind::EntryLeaf => match entry.rows_fault(key_end) {
            Some(fault) => Some(fault.to_string()),
            None => rows_fault(entry.posting()?),
        },
        _ => None,
    }
}

fn rows_fault(posting: Posting<'_>) -> Option<String> {
    let Posting::List { count, rows } = posting else {
        return None;
    };
    match counted(rows) {
        Err(fault) => Some(fault.to_string()),
        Ok(found) if found != usize::from(count) => Some(format!(
            "{count} by its header, {found} in its list",
            count = plural(count, "row")
        )),
        Ok(_) => None,
    }
}

fn counted(rows: PostingRows<'_>) -> Result<usize, pgclinic_format::gin::PostingFault> {
    let mut found = 0;
    for row in rows {
        row?;
        found += 1;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Trial;
    use pgclinic_format::ColumnLayout;
    use pgclinic_format::build::PageBuilder;
    use pgclinic_format::index_page::AccessMethod;

    /// A leaf with the key `a` and two rows; the rows' header says `count`.
    fn leaf(count: u8, second: u8) -> Vec<u8> {
        let entry = [
            0, 0x80, 12, 0, count, 0, 24, 0, 5, b'a', 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, second, 0, 0, 0,
        ];
        PageBuilder::new(8192, &[0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 2, 0])
            .item(&entry)
            .finish(1)
    }

    fn said(page: &[u8]) -> Vec<String> {
        let mut trial = Trial::index(AccessMethod::Gin);
        trial.columns = Some(vec![ColumnLayout {
            attlen: -1,
            attalign: 4,
        }]);
        trial.block = 1;
        trial.told(&GinEntry, page)
    }

    #[test]
    fn rows_are_counted_and_rise() {
        assert!(said(&leaf(2, 3)).is_empty());
        assert_eq!(
            said(&leaf(3, 3)),
            ["1 gin-entry: entry 1: 3 rows by its header, 2 in its list"]
        );
        assert_eq!(
            said(&leaf(2, 0)),
            ["1 gin-entry: entry 1: row (1,1) stands after row (1,1)"]
        );
        assert_eq!(
            said(&leaf(2, 0x81)),
            ["1 gin-entry: entry 1: a compressed number has no end"]
        );
    }
}
