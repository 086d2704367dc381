//! The map of a BRIN index and its summaries contradict each other.
//!
//! Truth: `src/backend/access/brin/{brin_revmap.c,brin_pageops.c}`. A summary and its place in the
//! map are written together, so that no crash leaves one without the other.

use pgclinic_format::brin::{
    BrinTuple, PAGE_REGULAR, PAGE_REVMAP, map_entry, map_entry_at, page_type,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, LpFlags, Page};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_model::plural;
use pgclinic_scan::PageReader;

use crate::brin::{Map, Stored};
use crate::findings::{Draft, Findings};
use crate::index::words;
use crate::relation_check::{RelationCheck, RelationCx};

/// A page of the map where summaries should be, or the other way round.
pub static BRIN_PAGE_TYPE: Rule = Rule::from_page(include_str!("../../rules/brin-page-type.md"));

/// The map leads to something that is not the summary of the range.
pub static BRIN_MAP_ENTRY: Rule = Rule::from_page(include_str!("../../rules/brin-map-entry.md"));

/// A summary that cannot be read.
pub static BRIN_SUMMARY: Rule = Rule::from_page(include_str!("../../rules/brin-summary.md"));

/// A summary that the map does not lead to.
pub static BRIN_SUMMARY_UNREFERENCED: Rule =
    Rule::from_page(include_str!("../../rules/brin-summary-unreferenced.md"));

/// See the rules.
pub struct BrinMap;

impl RelationCheck for BrinMap {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &BRIN_PAGE_TYPE,
                &BRIN_MAP_ENTRY,
                &BRIN_SUMMARY,
                &BRIN_SUMMARY_UNREFERENCED,
            ]
        }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Brin
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let Some(map) = Map::of(relation) else {
            return;
        };
        let stored = match Stored::columns(relation.fork) {
            Some(Ok(stored)) => Some(stored.into_iter().map(|column| column.layouts).collect()),
            Some(Err(class)) => {
                let why = format!("operator class {class} is not built in");
                relation.not_checked(out, "values of the summaries", &why, true);
                None
            }
            None => None,
        };
        let targets = relation.pages();
        let mut hold = Hold {
            relation,
            map,
            targets,
            stored,
            out,
        };
        hold.all();
    }
}

/// What is held against what.
struct Hold<'r, 'a> {
    relation: &'r RelationCx<'a>,
    map: Map<'a>,
    /// Pages that the map leads to.
    targets: PageReader<'a>,
    stored: Option<Vec<Vec<pgclinic_format::ColumnLayout>>>,
    out: &'r mut Findings,
}

impl Hold<'_, '_> {
    fn all(&mut self) {
        let blocks = BlockNo::try_from(self.relation.fork.blocks).unwrap_or(BlockNo::MAX);
        let mut pages = self.relation.pages();
        for block in 1..blocks {
            if self.relation.is_interrupted() {
                return;
            }
            let in_map = block <= self.map.last_page;
            let Some(page) = pages.page(block) else {
                let zeroed = pages
                    .bytes(block)
                    .is_some_and(|page| page.iter().all(|byte| *byte == 0));
                if in_map && zeroed {
                    self.tell_type(block, "an empty page");
                }
                continue;
            };
            match (in_map, page_type(page)) {
                (true, Some(PAGE_REVMAP)) => self.map_page(page, block),
                (false, Some(PAGE_REGULAR)) => self.summaries(page, block),
                (true, Some(PAGE_REGULAR)) => self.tell_type(block, "a page of summaries"),
                (false, Some(PAGE_REVMAP)) => self.tell_type(block, "a page of the map"),
                _ => {}
            }
        }
    }

    fn tell_type(&mut self, block: BlockNo, what: &str) {
        let message = match self.map.last_page {
            0 => format!("{what} in block {block}, and there is no map yet"),
            last => format!("{what} in block {block}, the map goes from block 1 to {last}"),
        };
        let draft = self.relation.draft(&BRIN_PAGE_TYPE, block, message);
        self.out.add(draft.follows(self.relation.fork, 0));
    }

    /// Every place of a page of the map leads to the summary of its range.
    fn map_page(&mut self, page: Page<'_>, block: BlockNo) {
        for index in 0..self.map.per_page {
            let Some(tid) = map_entry(page, index) else {
                continue;
            };
            let Some(range) = self.map.range_at(block, index) else {
                return;
            };
            if let Some((why, says)) = self.wrong_target(tid, range) {
                let at = map_entry_at(index);
                let message =
                    format!("the summary of the range from block {range} should be {tid}, {why}");
                let draft = self.relation.draft(&BRIN_MAP_ENTRY, block, message);
                let draft = draft.bytes(at, at + 6).fact("range", range);
                let draft = says.into_iter().fold(draft, Draft::server_says);
                self.out.add(draft.follows(self.relation.fork, tid.block));
            }
        }
    }

    /// Why no summary of the range stands there, and what a scan says that comes by.
    fn wrong_target(&mut self, tid: Tid, range: BlockNo) -> Option<(String, Option<String>)> {
        let fork = self.relation.fork;
        if u64::from(tid.block) >= fork.blocks {
            let says = words::no_block(fork, tid.block);
            return Some(("which is past the end of the index".into(), says));
        }
        let Some(page) = self.targets.page(tid.block) else {
            return Some(("which is on no page that was written".into(), None));
        };
        // The server asks the map again, and gives up when it gets the same answer.
        let says = Some("ERROR:  corrupted BRIN index: inconsistent range map".to_owned());
        if page_type(page) != Some(PAGE_REGULAR) {
            return Some(("which is on no page of summaries".into(), says));
        }
        let pointer = page.line_pointer(tid.offset);
        let used = pointer.filter(|pointer| pointer.flags() != LpFlags::Unused);
        let Some(used) = used else {
            // It takes the range for one without summary where there is no such line pointer.
            return Some(("where none is".into(), says.filter(|_| pointer.is_some())));
        };
        let found = BrinTuple::parse(page.item(used)?)?.bt_blkno();
        let why = format!("where that of the range from block {found} is");
        (found != range).then_some((why, says))
    }

    /// Every summary can be read, and the map leads to it.
    fn summaries(&mut self, page: Page<'_>, block: BlockNo) {
        for (item, pointer) in page.line_pointers() {
            if pointer.flags() != LpFlags::Normal {
                continue;
            }
            let Some(bytes) = page.item(pointer) else {
                continue;
            };
            if let Some(why) = self.unreadable(bytes) {
                let message = format!("summary {item}: {why}");
                let draft = self.relation.draft(&BRIN_SUMMARY, block, message);
                self.out.add(draft.item(item));
                continue;
            }
            let range = BrinTuple::parse(bytes).map_or(0, BrinTuple::bt_blkno);
            let (map_block, _) = self.map.place_of(range);
            let named = self.map.summary_of(range);
            if named
                != Some(Tid {
                    block,
                    offset: item,
                })
            {
                let instead = named.map_or("none".to_owned(), |tid| tid.to_string());
                let message = format!(
                    "summary {item} is that of the range from block {range}, for which the map names {instead}"
                );
                let draft = self
                    .relation
                    .draft(&BRIN_SUMMARY_UNREFERENCED, block, message);
                self.out
                    .add(draft.item(item).follows(self.relation.fork, map_block));
            }
        }
    }

    fn unreadable(&self, bytes: &[u8]) -> Option<String> {
        let Some(summary) = BrinTuple::parse(bytes) else {
            return Some(format!("{} bytes are too few for its header", bytes.len()));
        };
        let range = summary.bt_blkno();
        let pages = self.map.pages_per_range;
        if range % pages != 0 {
            return Some(format!(
                "no range of {pages} begins at block {range}",
                pages = plural(pages, "page")
            ));
        }
        let fault = summary.values(self.stored.as_deref()?).err()?;
        Some(fault.to_string())
    }
}
