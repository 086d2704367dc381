//! What `pgstattuple` says of an index: items and free space on its leaves and buckets.
//!
//! Truth: `pgstat_btree_page`, `pgstat_hash_page` and `pgstat_gist_page` in
//! `contrib/pgstattuple/pgstattuple.c`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::btree::BtreePage;
use pgclinic_format::gist::GistPage;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::line_pointer::LpFlags;
use pgclinic_format::{Page, hash};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::percent_of;
use super::sums::Items;
use super::{PageAt, PageMeasure, Sums, Whole, bytes, count, number, share};

sums! {
    /// Measures items and free space of an index, as `pgstattuple` does.
    pub struct IndexSpace {
        live: Items,
        dead: Items,
        free_bytes: u64,
    }
}

/// What a page adds.
enum Holds {
    /// Items from this one on.
    Items { first: u16 },
    /// Nothing: all of it is free.
    Nothing,
    /// What is not counted.
    Other,
}

impl PageMeasure for IndexSpace {
    const SECTION: &'static str = "index";
    const FIGURES: &'static [FigureKind] = &[
        bytes("table_len", "length of the index"),
        number("tuple_count", "items that are not marked dead"),
        bytes("tuple_len", "their bytes"),
        share("tuple_percent", "their share of the index"),
        number("dead_tuple_count", "items that are marked dead"),
        bytes("dead_tuple_len", "their bytes"),
        share("dead_tuple_percent", "their share of the index"),
        bytes("free_space", "bytes that new items may take"),
        share("free_percent", "free space's share of the index"),
    ];

    fn fits(fork: &ForkContext<'_>) -> bool {
        matches!(
            fork.method,
            Some(AccessMethod::Btree | AccessMethod::Hash | AccessMethod::Gist)
        )
    }

    fn add(&mut self, at: &PageAt<'_>) -> bool {
        let Some(holds) = holds(at) else {
            return false;
        };
        match holds {
            Holds::Other => {}
            Holds::Nothing => self.free_bytes += at.page.len() as u64,
            Holds::Items { first } => {
                self.free_bytes += u64::from(super::free_space(at));
                let [live, dead] = match at.leaf {
                    Some(look) => [look.live, look.dead],
                    None => items(at.page, first),
                };
                self.live.absorb(&live);
                self.dead.absorb(&dead);
            }
        }
        true
    }

    fn figures(&self, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let length = whole.bytes(whole.fork.blocks);
        let free = self.free_bytes + whole.bytes(whole.empty_pages);
        vec![
            count(length),
            count(self.live.count),
            count(self.live.bytes),
            percent_of(self.live.bytes, length),
            count(self.dead.count),
            count(self.dead.bytes),
            percent_of(self.dead.bytes, length),
            count(free),
            percent_of(free, length),
        ]
    }
}

/// Items that are not marked dead and those that are, with their bytes.
fn items(page: Page<'_>, first: u16) -> [Items; 2] {
    let [mut live, mut dead] = [Items::default(); 2];
    for (_, pointer) in page.line_pointers().filter(|(item, _)| *item >= first) {
        match pointer.flags() {
            LpFlags::Dead => dead.add(pointer.lp_len()),
            _ => live.add(pointer.lp_len()),
        }
    }
    [live, dead]
}

fn holds(at: &PageAt<'_>) -> Option<Holds> {
    let page = at.page;
    match at.fork.method? {
        // The first block of a btree and of a hash index is its meta page, that of GiST its root.
        AccessMethod::Btree | AccessMethod::Gist | AccessMethod::Hash if at.block == 0 => {
            Some(Holds::Other)
        }
        AccessMethod::Btree => {
            let tree = BtreePage::parse(page)?;
            Some(match (tree.is_ignored(), tree.is_leaf()) {
                (true, _) => Holds::Nothing,
                (false, true) => Holds::Items {
                    first: tree.first_data(),
                },
                (false, false) => Holds::Other,
            })
        }
        AccessMethod::Gist => {
            let is_leaf = GistPage::parse(page)?.is_leaf();
            Some(if is_leaf {
                Holds::Items { first: 1 }
            } else {
                Holds::Other
            })
        }
        AccessMethod::Hash => hash_holds(page),
        _ => None,
    }
}

fn hash_holds(page: Page<'_>) -> Option<Holds> {
    let opaque = hash::opaque(page)?;
    Some(match opaque.page_type() {
        hash::LH_UNUSED_PAGE => Holds::Nothing,
        _ if opaque.holds_entries() => Holds::Items { first: 1 },
        _ => Holds::Other,
    })
}
