//! Text in a btree that is not in the order of the collation's library.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use pgclinic_cluster::{Collation, CollationVersion, Collator, Index, Relation};
use pgclinic_format::attribute::Attribute;
use pgclinic_format::index_page::{AccessMethod, btree_flags, btree_links};
use pgclinic_format::index_tuple::{INDEX_AM_RESERVED_BIT, IndexTuple};
use pgclinic_format::order::{Order, Unordered};
use pgclinic_format::{BlockNo, ColumnLayout, Oid, Page, varlena};
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::catalogs::collation_version_changed::version_here;
use crate::findings::Findings;
use crate::relation_check::{RelationCheck, RelationCx};

/// `BTP_LEAF`, and what takes a page out of the tree: `BTP_DELETED`, `BTP_META`, `BTP_HALF_DEAD`.
const LEAF: u16 = 0x0001;
const OUTSIDE: u16 = 0x0004 | 0x0008 | 0x0010;
/// In a pivot's row number: how many columns it kept. With this bit the tuple is no pivot but a
/// list.
const OFFSET_MASK: u16 = 0x0FFF;
const IS_POSTING: u16 = 0x2000;
/// Pairs that are asked at once, and their bytes.
const PAIRS_MAX: usize = 2000;
const BYTES_MAX: usize = 1 << 20;
/// A key is not much larger than a page when it is unpacked.
const KEY_BYTES_MAX: u32 = 16 << 20;

const TEXT_FAMILY: Oid = 1994;
const BPCHAR_FAMILY: Oid = 426;

/// The rule.
pub static BTREE_NOT_IN_COLLATION_ORDER: Rule =
    Rule::from_page(include_str!("../../rules/btree-not-in-collation-order.md"));

/// See [`BTREE_NOT_IN_COLLATION_ORDER`].
pub struct BtreeNotInCollationOrder;

impl RelationCheck for BtreeNotInCollationOrder {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BTREE_NOT_IN_COLLATION_ORDER] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Btree
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let Some(mut asker) = Asker::of(relation) else {
            return;
        };
        let mut pages = relation.pages();
        let blocks = u32::try_from(pages.blocks()).unwrap_or(u32::MAX);
        for block in 1..blocks {
            if relation.is_interrupted() {
                return;
            }
            if let Some(page) = pages.page(block) {
                asker.take_page(block, page, out);
            }
        }
        asker.ask_all(out);
    }
}

/// Key columns, from 0, about whose order a library is asked.
pub(crate) fn columns_asked(relation: &RelationCx<'_>) -> Vec<usize> {
    let keys = Asker::of(relation).map_or_else(Vec::new, |asker| asker.keys);
    let asked = |key: &Key<'_>| matches!(key.comparison, KeyComparison::Library { .. });
    let columns = keys.iter().enumerate().filter(|(_, key)| asked(key));
    columns.map(|(column, _)| column).collect()
}

/// One key column.
struct Key<'a> {
    is_descending: bool,
    comparison: KeyComparison<'a>,
}

enum KeyComparison<'a> {
    Known(Order),
    Library {
        collation: &'a Collation,
        is_padded: bool,
    },
    None,
}

/// Collects pairs until there are enough of them to ask.
struct Asker<'a> {
    relation: &'a RelationCx<'a>,
    collator: &'a dyn Collator,
    encoding: i32,
    layouts: &'a [ColumnLayout],
    keys: Vec<Key<'a>>,
    waiting: BTreeMap<usize, Batch>,
}

/// Two neighbours, the left one first.
type Texts = (Vec<u8>, Vec<u8>);

#[derive(Default)]
struct Batch {
    places: Vec<(BlockNo, u16)>,
    pairs: Vec<Texts>,
    bytes: usize,
}

impl<'a> Asker<'a> {
    /// Nothing when nobody can be asked, or there is nothing to ask.
    fn of(relation: &'a RelationCx<'a>) -> Option<Self> {
        let cluster = relation.fork.cluster?;
        let collator = cluster.collator.as_deref()?;
        let own = relation.fork.relation?;
        let index = own.index.as_ref()?;
        let database = cluster.databases.get(&relation.catalog.database)?;
        let keys = keys_of(relation, own, index)?;
        let asks = |key: &Key<'_>| matches!(key.comparison, KeyComparison::Library { .. });
        keys.iter().any(asks).then_some(())?;
        Some(Asker {
            relation,
            collator,
            encoding: database.encoding?,
            layouts: own.layouts.as_ref()?.get(..keys.len())?,
            keys,
            waiting: BTreeMap::new(),
        })
    }

    /// The entries of a leaf, and its high key.
    fn take_page(&mut self, block: BlockNo, page: Page<'_>, out: &mut Findings) {
        let (Some(flags), Some((_, next, _))) = (btree_flags(page), btree_links(page)) else {
            return;
        };
        if flags & LEAF == 0 || flags & OUTSIDE != 0 {
            return;
        }
        let mut before: Option<IndexTuple<'_>> = None;
        let mut high_key = None;
        for (number, pointer) in page.line_pointers() {
            let Some(tuple) = page.item(pointer).and_then(IndexTuple::parse) else {
                continue;
            };
            if number == 1 && next != 0 {
                high_key = Some(tuple);
                continue;
            }
            if let Some(before) = before {
                self.take_pair(before, tuple, (block, number), out);
            }
            before = Some(tuple);
        }
        if let (Some(last), Some(high_key)) = (before, high_key) {
            self.take_pair(last, high_key, (block, 1), out);
        }
    }

    /// The first column in which two neighbours differ, if a library orders it.
    fn take_pair(
        &mut self,
        a: IndexTuple<'_>,
        b: IndexTuple<'_>,
        place: (BlockNo, u16),
        out: &mut Findings,
    ) {
        let found = self.parting(a, b);
        if let Some((column, pair)) = found {
            let batch = self.waiting.entry(column).or_default();
            batch.bytes += pair.0.len() + pair.1.len();
            batch.places.push(place);
            batch.pairs.push(pair);
            if batch.pairs.len() >= PAIRS_MAX || batch.bytes >= BYTES_MAX {
                let batch = std::mem::take(batch);
                self.ask(column, &batch, out);
            }
        }
    }

    fn parting(&self, a: IndexTuple<'_>, b: IndexTuple<'_>) -> Option<(usize, Texts)> {
        let stored = |tuple: IndexTuple<'_>| stored_columns(tuple).min(self.keys.len());
        let mut left = a.attributes(self.layouts.get(..stored(a))?);
        let mut right = b.attributes(self.layouts.get(..stored(b))?);
        for (column, (key, layout)) in self.keys.iter().zip(self.layouts).enumerate() {
            let (Attribute::Value(x), Attribute::Value(y)) =
                (left.next()?.ok()?, right.next()?.ok()?)
            else {
                // Where nulls stand is not the library's affair.
                return None;
            };
            let x = varlena::payload(layout.attlen, a.bytes().get(x)?, KEY_BYTES_MAX)?;
            let y = varlena::payload(layout.attlen, b.bytes().get(y)?, KEY_BYTES_MAX)?;
            if x == y {
                continue;
            }
            match &key.comparison {
                KeyComparison::None => return None,
                KeyComparison::Known(order) => {
                    if order.compare(&x, &y)?.is_ne() {
                        return None;
                    }
                }
                KeyComparison::Library { is_padded, .. } => {
                    let (x, y) = (trimmed(&x, *is_padded), trimmed(&y, *is_padded));
                    if x != y {
                        return Some((column, (x.to_vec(), y.to_vec())));
                    }
                }
            }
        }
        None
    }

    fn ask_all(&mut self, out: &mut Findings) {
        for (column, batch) in std::mem::take(&mut self.waiting) {
            self.ask(column, &batch, out);
        }
    }

    fn ask(&self, column: usize, batch: &Batch, out: &mut Findings) {
        let Some(key) = self.keys.get(column) else {
            return;
        };
        let KeyComparison::Library { collation, .. } = key.comparison else {
            return;
        };
        let answers = self
            .collator
            .compare(self.encoding, collation, &batch.pairs);
        let Some(answers) = answers else {
            let why = "the server that was asked for the order of text could not tell it";
            self.relation.not_checked(out, "order of keys", why, true);
            return;
        };
        let wrong = if key.is_descending {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        for ((block, item), answer) in batch.places.iter().zip(answers) {
            if answer == wrong {
                self.tell(*block, *item, collation, out);
            }
        }
    }

    fn tell(&self, block: BlockNo, item: u16, collation: &Collation, out: &mut Findings) {
        let name = &collation.name;
        let words = match item {
            1 => format!("the last entry is beyond the page's high key in collation \"{name}\""),
            _ => format!("the entry comes before the one to its left in collation \"{name}\""),
        };
        let draft = self
            .relation
            .draft(&BTREE_NOT_IN_COLLATION_ORDER, block, words)
            .item(item)
            .fact("collation", name.as_str())
            .follows(self.relation.fork, block);
        let cluster = self.relation.fork.cluster;
        let version =
            cluster.map(|cluster| version_here(cluster, self.relation.catalog, collation));
        let is_sure = matches!(
            version,
            Some(CollationVersion::Same | CollationVersion::Fixed)
        );
        out.add(if is_sure {
            draft
        } else {
            draft.severity(Severity::Warning)
        });
    }
}

fn keys_of<'a>(
    relation: &'a RelationCx<'a>,
    own: &'a Relation,
    index: &'a Index,
) -> Option<Vec<Key<'a>>> {
    let catalog = relation.catalog;
    let columns = own.columns.as_ref()?.iter().enumerate();
    let keys = columns
        .take(usize::from(index.key_count))
        .map(|(number, column)| {
            let ty = catalog.type_info(column.type_oid);
            let class = index.classes.get(number)?;
            let comparison = match catalog.key_order(index, number, &ty)? {
                Ok(order) => KeyComparison::Known(order),
                Err(Unordered::Collation(foreign))
                    if matches!(class.family, TEXT_FAMILY | BPCHAR_FAMILY)
                        && column.layout.attlen == -1 =>
                {
                    KeyComparison::Library {
                        collation: catalog.collation(foreign.oid)?,
                        is_padded: class.family == BPCHAR_FAMILY,
                    }
                }
                Err(_) => KeyComparison::None,
            };
            Some(Key {
                is_descending: index.options.get(number)? & 1 != 0,
                comparison,
            })
        });
    keys.collect()
}

/// Key columns that a tuple kept: a pivot that was cut says how many.
fn stored_columns(tuple: IndexTuple<'_>) -> usize {
    let offset = tuple.t_tid().offset;
    if tuple.has(INDEX_AM_RESERVED_BIT) && offset & IS_POSTING == 0 {
        usize::from(offset & OFFSET_MASK)
    } else {
        usize::MAX
    }
}

/// `char(n)` without the blanks it was filled up with.
fn trimmed(value: &[u8], is_padded: bool) -> &[u8] {
    let last = value.iter().rposition(|&byte| byte != b' ');
    let end = if is_padded {
        last.map_or(0, |last| last + 1)
    } else {
        value.len()
    };
    value.get(..end).unwrap_or(value)
}
