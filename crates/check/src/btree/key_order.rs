//! Which of two tuples of a btree comes first.

use std::borrow::Cow;
use std::cmp::Ordering;

use pgclinic_cluster::{Catalog, Relation};
use pgclinic_format::attribute::Attribute;
use pgclinic_format::btree::BtreeTuple;
use pgclinic_format::index_tuple::INDEX_NULL_MASK;
use pgclinic_format::order::{Order, Word};
use pgclinic_format::{ColumnLayout, PlainAttributes, varlena};

use crate::btree::fixed_keys::FixedKeys;

/// Offset of the first attribute of a tuple without nulls.
pub(super) const DATA_AT: usize = 8;
/// The most that one key may unpack to, in bytes: no key is larger than a page by much.
const KEY_BYTES_MAX: u32 = 16 << 20;

/// What decides between tuples of equal keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tie {
    /// The lowest row number of each.
    Lowest,
    /// The highest row number of the first, the lowest of the second.
    HighestFirst,
    /// Nothing: equal keys are equal.
    Keys,
}

/// The order of an index's tuples, chosen once an index.
#[derive(Debug)]
pub struct KeyOrder {
    columns: Vec<KeyColumn>,
    layouts: Vec<ColumnLayout>,
    /// The only key column has this many bytes in every tuple.
    single_fixed: Option<usize>,
    fixed: Option<FixedKeys>,
    unordered: Vec<Unordered>,
    equal_image: Option<bool>,
}

/// A key column whose order is not known here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unordered {
    /// From 0.
    pub column: usize,
    /// The reason, with the column's name.
    pub why: String,
}

#[derive(Debug)]
struct KeyColumn {
    order: Option<Order>,
    /// Where the order is a library's: of its answers only `Equal` counts.
    equality: Option<Order>,
    descending: bool,
    nulls_first: bool,
}

impl KeyOrder {
    /// For an index whose columns and operator classes the catalogs tell.
    pub fn of_index(relation: &Relation, catalog: &Catalog) -> Option<KeyOrder> {
        let index = relation.index.as_ref()?;
        let layouts = relation.layouts.clone()?;
        let columns = relation.columns.as_ref()?;
        let mut keys = Vec::new();
        let mut unordered = Vec::new();
        for (number, column) in columns.iter().enumerate().take(index.key_count.into()) {
            let ty = catalog.type_info(column.type_oid);
            let order = match catalog.key_order(index, number, &ty) {
                Some(order) => order.map_err(|why| why.to_string()),
                None => Err("the catalogs do not tell its operator class".into()),
            };
            let order = order.map_err(|why| {
                unordered.push(Unordered {
                    column: number,
                    why: format!("column {}: {why}", column.name),
                });
            });
            let order = order.ok();
            let options = index.options.get(number).copied().unwrap_or(0);
            let equality = match order {
                Some(_) => None,
                None => catalog
                    .key_equality(index, number, &ty)
                    .and_then(Result::ok),
            };
            keys.push(KeyColumn {
                order,
                equality,
                descending: options & 1 != 0,
                nulls_first: options & 2 != 0,
            });
        }
        let fixed = FixedKeys::new(&layouts, keys.iter().map(KeyColumn::words));
        let single = (keys.len() == 1).then(|| layouts.first()).flatten();
        Some(KeyOrder {
            single_fixed: single.and_then(|layout| usize::try_from(layout.attlen).ok()),
            columns: keys,
            layouts,
            fixed,
            unordered,
            equal_image: index
                .is_equal_image(|collation| Some(catalog.collation(collation)?.deterministic)),
        })
    }

    /// Keys that stand at one place in every entry and compare as numbers do.
    pub(crate) fn fixed(&self) -> Option<&FixedKeys> {
        self.fixed.as_ref()
    }

    /// Columns of the index, included ones too.
    pub fn column_count(&self) -> usize {
        self.layouts.len()
    }

    /// Key columns.
    pub fn key_count(&self) -> usize {
        self.columns.len()
    }

    /// Whether equal keys look alike; unknown where a function of somebody's own decides.
    pub fn is_equal_image(&self) -> Option<bool> {
        self.equal_image
    }

    /// The walk over a tuple's columns.
    pub fn layouts(&self) -> &[ColumnLayout] {
        &self.layouts
    }

    /// All columns fit the entry and stand in it as they are: nothing more is to be asked of its
    /// shape.
    #[inline]
    pub fn fits_plainly(&self, tuple: BtreeTuple<'_>) -> bool {
        let stored = tuple.stored_columns(self.layouts.len());
        let mut values = PlainAttributes::new(tuple.key_bytes(), DATA_AT);
        !tuple.0.has(INDEX_NULL_MASK)
            && self.layouts.get(..stored).is_some_and(|layouts| {
                layouts
                    .iter()
                    .all(|layout| values.payload(*layout).is_some())
            })
    }

    /// Some key column is null.
    pub fn has_null(&self, tuple: BtreeTuple<'_>) -> bool {
        let layouts = self.layouts.get(..self.columns.len()).unwrap_or_default();
        let mut keys = tuple.0.attributes(layouts);
        keys.any(|key| matches!(key, Ok(Attribute::Null)))
    }

    /// Key columns whose order is not known here, with the reason.
    pub fn unordered(&self) -> &[Unordered] {
        &self.unordered
    }

    /// Which comes first. `None` when nothing tells: the collation is a library's, or a value does
    /// not decode.
    #[inline]
    pub fn compare(&self, a: BtreeTuple<'_>, b: BtreeTuple<'_>, tie: Tie) -> Option<Ordering> {
        let keys = match self.compare_single(a, b) {
            Some(ordering) => ordering,
            None => match self.compare_plainly(a, b) {
                Some(ordering) => ordering,
                None => self.compare_columns(a, b)?,
            },
        };
        if keys != Ordering::Equal {
            return Some(keys);
        }
        // No row number is minus infinity, as `None` is the least of all options.
        Some(match tie {
            Tie::Keys => Ordering::Equal,
            Tie::Lowest => a.lowest_tid().cmp(&b.lowest_tid()),
            Tie::HighestFirst => a.highest_tid().cmp(&b.lowest_tid()),
        })
    }

    /// The short way for what nearly every index is: one column of fixed size without nulls.
    #[inline]
    fn compare_single(&self, a: BtreeTuple<'_>, b: BtreeTuple<'_>) -> Option<Ordering> {
        let len = self.single_fixed?;
        let column = self.columns.first()?;
        let value = |tuple: BtreeTuple<'_>| {
            let whole = !tuple.0.has(INDEX_NULL_MASK) && tuple.stored_columns(1) > 0;
            whole.then_some(())?;
            Some(std::ops::Range {
                start: DATA_AT,
                end: DATA_AT + len,
            })
        };
        let (left, right) = (value(a)?, value(b)?);
        let ordering = column
            .order
            .as_ref()?
            .compare(a.0.item().get(left)?, b.0.item().get(right)?)?;
        Some(column.directed(ordering))
    }

    /// The way of all tuples without nulls whose keys stand as they are; `None` asks for the long
    /// way.
    #[inline]
    fn compare_plainly(&self, a: BtreeTuple<'_>, b: BtreeTuple<'_>) -> Option<Ordering> {
        let all = self.layouts.len();
        let whole = |tuple: BtreeTuple<'_>| {
            !tuple.0.has(INDEX_NULL_MASK) && tuple.stored_columns(all) >= self.columns.len()
        };
        (whole(a) && whole(b)).then_some(())?;
        let mut left = PlainAttributes::new(a.0.item(), DATA_AT);
        let mut right = PlainAttributes::new(b.0.item(), DATA_AT);
        for (column, layout) in self.columns.iter().zip(&self.layouts) {
            let ordering = column.compare(left.payload(*layout)?, right.payload(*layout)?)?;
            if ordering != Ordering::Equal {
                return Some(ordering);
            }
        }
        Some(Ordering::Equal)
    }

    #[inline(never)]
    fn compare_columns(&self, a: BtreeTuple<'_>, b: BtreeTuple<'_>) -> Option<Ordering> {
        let all = self.layouts.len();
        let stored = |tuple: BtreeTuple<'_>| tuple.stored_columns(all).min(self.columns.len());
        let (left, right) = (stored(a), stored(b));
        let mut left_values = a.0.attributes(self.layouts.get(..left)?);
        let mut right_values = b.0.attributes(self.layouts.get(..right)?);
        for (column, layout) in self.columns.iter().zip(&self.layouts) {
            let (x, y) = match (left_values.next(), right_values.next()) {
                // What was cut off counts as less than every value.
                (None, None) => return Some(Ordering::Equal),
                (None, Some(_)) => return Some(Ordering::Less),
                (Some(_), None) => return Some(Ordering::Greater),
                (Some(x), Some(y)) => (x.ok()?, y.ok()?),
            };
            let ordering = match (x, y) {
                (Attribute::Value(x), Attribute::Value(y)) => {
                    let x = payload(a.0.bytes().get(x)?, *layout)?;
                    let y = payload(b.0.bytes().get(y)?, *layout)?;
                    column.compare(&x, &y)?
                }
                (Attribute::Value(_), _) => column.with_null(Ordering::Greater),
                (_, Attribute::Value(_)) => column.with_null(Ordering::Less),
                (_, _) => Ordering::Equal,
            };
            if ordering != Ordering::Equal {
                return Some(ordering);
            }
        }
        Some(Ordering::Equal)
    }
}

impl KeyColumn {
    fn words(&self) -> Option<(Vec<Word>, bool)> {
        Some((self.order.as_ref()?.words()?, self.descending))
    }

    fn compare(&self, x: &[u8], y: &[u8]) -> Option<Ordering> {
        let Some(order) = &self.order else {
            // Whoever orders them, equal bytes are equal.
            let equal = x == y || self.equality.as_ref()?.compare(x, y)?.is_eq();
            return equal.then_some(Ordering::Equal);
        };
        Some(self.directed(order.compare(x, y)?))
    }

    #[inline]
    fn directed(&self, ordering: Ordering) -> Ordering {
        if self.descending {
            ordering.reverse()
        } else {
            ordering
        }
    }

    /// `when_first` is the answer for an index that puts nulls first.
    fn with_null(&self, when_first: Ordering) -> Ordering {
        if self.nulls_first {
            when_first
        } else {
            when_first.reverse()
        }
    }
}

/// The bytes that the datum printer and the comparisons take; `None` for what no index keeps.
pub(crate) fn payload(bytes: &[u8], layout: ColumnLayout) -> Option<Cow<'_, [u8]>> {
    varlena::payload(layout.attlen, bytes, KEY_BYTES_MAX)
}
