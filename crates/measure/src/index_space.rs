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

use super::percent::percent;
use super::{Measure, PageAt, Sums, Whole, bytes, number, share};

/// Measures items and free space of an index, as `pgstattuple` does.
pub struct IndexSpace;

const LIVE: u8 = 0;
const LIVE_BYTES: u8 = 1;
const DEAD: u8 = 2;
const DEAD_BYTES: u8 = 3;
const FREE_BYTES: u8 = 4;

/// What a page adds.
enum Holds {
    /// Items from this one on.
    Items { first: u16 },
    /// Nothing: all of it is free.
    Nothing,
    /// What is not counted.
    Other,
}

impl Measure for IndexSpace {
    fn section(&self) -> &'static str {
        "index"
    }

    fn figures(&self) -> &'static [FigureKind] {
        const {
            &[
                bytes("table_len", "length of the index"),
                number("tuple_count", "items that are not marked dead"),
                bytes("tuple_len", "their bytes"),
                share("tuple_percent", "their share of the index"),
                number("dead_tuple_count", "items that are marked dead"),
                bytes("dead_tuple_len", "their bytes"),
                share("dead_tuple_percent", "their share of the index"),
                bytes("free_space", "bytes that new items may take"),
                share("free_percent", "free space's share of the index"),
            ]
        }
    }

    fn fits(&self, fork: &ForkContext<'_>) -> bool {
        matches!(
            fork.method,
            Some(AccessMethod::Btree | AccessMethod::Hash | AccessMethod::Gist)
        )
    }

    fn page(&self, page: Page<'_>, at: &PageAt<'_>, sums: &mut Sums) -> bool {
        let Some(holds) = holds(page, at) else {
            return false;
        };
        match holds {
            Holds::Other => {}
            Holds::Nothing => sums.add(FREE_BYTES, page.len() as u64),
            Holds::Items { first } => {
                sums.add(FREE_BYTES, u64::from(super::free_space(page, at)));
                let counts = match at.leaf {
                    Some(look) => [look.live, look.dead],
                    None => items(page, first),
                };
                for (slots, counts) in [[LIVE, LIVE_BYTES], [DEAD, DEAD_BYTES]].iter().zip(counts) {
                    for (slot, count) in slots.iter().zip(counts) {
                        sums.add(*slot, count);
                    }
                }
            }
        }
        true
    }

    fn total(&self, sums: &Sums, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let length = whole.bytes(whole.fork.blocks);
        let of_index =
            |slot| percent(sums.sum(slot) as f64, length as f64).or(Some(Figure::Real(0.0)));
        let count = |slot| Some(Figure::Count(sums.sum(slot)));
        let free = sums.sum(FREE_BYTES) + whole.bytes(whole.empty_pages);
        let free_share = percent(free as f64, length as f64).or(Some(Figure::Real(0.0)));
        vec![
            Some(Figure::Count(length)),
            count(LIVE),
            count(LIVE_BYTES),
            of_index(LIVE_BYTES),
            count(DEAD),
            count(DEAD_BYTES),
            of_index(DEAD_BYTES),
            Some(Figure::Count(free)),
            free_share,
        ]
    }
}

/// Items that are not marked dead and those that are, with their bytes.
fn items(page: Page<'_>, first: u16) -> [[u64; 2]; 2] {
    let mut counts = [[0; 2]; 2];
    for (_, pointer) in page.line_pointers().filter(|(item, _)| *item >= first) {
        let [live, dead] = &mut counts;
        let [number, bytes] = match pointer.flags() == LpFlags::Dead {
            true => dead,
            false => live,
        };
        *number += 1;
        *bytes += u64::from(pointer.lp_len());
    }
    counts
}

fn holds(page: Page<'_>, at: &PageAt<'_>) -> Option<Holds> {
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
