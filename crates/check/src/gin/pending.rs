//! The list of waiting entries, from the meta page to its end.
//!
//! Truth: `src/backend/access/gin/ginfast.c`.

use std::cmp::Ordering;

use pgclinic_format::gin::{Key, META_BLOCK, Meta, Opaque, PageKind};
use pgclinic_format::types::{INVALID_BLOCK, Tid};
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::plural;

use super::keys::KeyOrders;
use super::level::Walk;
use super::pages::entries;
use crate::findings::Findings;
use crate::gin::pending_list::GIN_PENDING_LIST;

/// What was met on the way.
#[derive(Default)]
struct Met {
    pages: u32,
    rows: i64,
    last: Option<BlockNo>,
    /// Free bytes of the last page.
    free: usize,
}

impl Walk<'_, '_> {
    /// Walks the list, and holds what it is against what the meta page says.
    pub(crate) fn pending(&mut self, out: &mut Findings) {
        let Some(meta) = self.pages.page(META_BLOCK).and_then(meta_of) else {
            return;
        };
        if meta.head == INVALID_BLOCK || meta.tail == INVALID_BLOCK {
            return;
        }
        if let Some(met) = self.pending_pages(meta, out) {
            self.hold_against(meta, &met, out);
        }
    }

    /// Nothing when the list does not come to its end.
    fn pending_pages(&mut self, meta: Meta, out: &mut Findings) -> Option<Met> {
        let mut met = Met::default();
        let mut at = Some(meta.head);
        while let Some(block) = at {
            // Links behind the end are told page by page.
            if self.relation.is_interrupted() || u64::from(block) >= self.relation.fork.blocks {
                return None;
            }
            let from = met.last.unwrap_or(META_BLOCK);
            if !self.reached.note(block) {
                let message = format!("the list comes to block {block}, which is in use already");
                let draft = self
                    .draft(&GIN_PENDING_LIST, from, message)
                    .fact("link", block);
                out.add(self.following(draft, [Some(block), None]));
                return None;
            }
            let Some(page) = self.pages.page(block) else {
                if self
                    .pages
                    .bytes(block)
                    .is_some_and(|page| page.iter().all(|byte| *byte == 0))
                {
                    let message = format!("the list comes from block {from} to this empty page");
                    let draft = self.draft(&GIN_PENDING_LIST, block, message);
                    out.add(self.following(draft, [Some(from), None]));
                }
                return None;
            };
            let opaque = Opaque::of(page)?;
            let kind = opaque.kind()?;
            if kind != PageKind::Pending {
                let message = format!("the list comes from block {from} to {}", kind.words());
                let draft = self.draft(&GIN_PENDING_LIST, block, message);
                out.add(self.following(draft, [Some(from), None]));
                return None;
            }
            met.pages = met.pages.saturating_add(1);
            met.rows = met.rows.saturating_add(i64::from(opaque.maxoff));
            met.free = usize::from(page.pd_upper().saturating_sub(page.pd_lower()));
            met.last = Some(block);
            let disorder = self.keys.as_ref().and_then(|keys| disorder(page, keys));
            if let Some((item, tid)) = disorder {
                let message =
                    format!("the key of entry {item} of row {tid} is not above the one before");
                out.add(self.draft(&GIN_PENDING_LIST, block, message).item(item));
            }
            at = opaque.right();
        }
        Some(met)
    }

    fn hold_against(&self, meta: Meta, met: &Met, out: &mut Findings) {
        let last = met.last.unwrap_or(META_BLOCK);
        let mut tell = |message: String, at: usize, len: usize| {
            let draft = self.draft(&GIN_PENDING_LIST, META_BLOCK, message);
            out.add(self.following(draft.bytes(at, at + len), [Some(last), None]));
        };
        if last != meta.tail {
            let message = format!("the list ends at block {last}, tail says {}", meta.tail);
            return tell(message, Meta::TAIL_AT, 4);
        }
        if met.pages != meta.pending_pages {
            let message = format!(
                "the list has {}, nPendingPages says {}",
                plural(met.pages, "page"),
                meta.pending_pages
            );
            tell(message, Meta::PENDING_PAGES_AT, 4);
        }
        if met.rows != meta.pending_rows {
            let message = format!(
                "the list holds {}, nPendingHeapTuples says {}",
                plural(met.rows, "row"),
                meta.pending_rows
            );
            tell(message, Meta::PENDING_ROWS_AT, 8);
        }
        if usize::try_from(meta.tail_free_bytes).is_ok_and(|bytes| bytes > met.free) {
            let message = format!(
                "the last page has {} bytes free, tailFreeSize says {}",
                met.free, meta.tail_free_bytes
            );
            tell(message, Meta::TAIL_FREE_AT, 4);
        }
    }
}

fn meta_of(page: Page<'_>) -> Option<Meta> {
    (Opaque::of(page)?.kind()? == PageKind::Meta).then_some(())?;
    Meta::of(page)
}

/// The first entry whose key is not above the one before in the same row and column.
fn disorder(page: Page<'_>, keys: &KeyOrders<'_>) -> Option<(u16, Tid)> {
    let mut before: Option<(Tid, Key<'_>)> = None;
    for (item, entry) in entries(page) {
        let tid = entry.t_tid();
        let Ok((key, _)) = entry.key(keys.shape()) else {
            before = None;
            continue;
        };
        if let Some((_, last)) =
            before.filter(|(row, last)| *row == tid && last.column == key.column)
            && keys.compare(&last, &key).is_some_and(Ordering::is_ge)
        {
            return Some((item, tid));
        }
        before = Some((tid, key));
    }
    None
}
