//! Whether the summary of a range covers a value of a row: the value would be found through it.
//!
//! Truth: `src/backend/access/brin/brin_{minmax,inclusion,bloom,minmax_multi}.c`.

use std::borrow::Cow;
use std::cmp::Ordering;

use pgclinic_cluster::{Catalog, Index, Relation};
use pgclinic_format::datum::TypeInfo;
use pgclinic_format::order::{Order, default_order_of};
use pgclinic_format::value_hash::{ValueHash, hash_u32_seeded};
use pgclinic_format::{ColumnLayout, Oid, varlena};

use super::stored::Family;

/// Bytes that a compressed value may unpack to.
const UNPACKED_BYTES: u32 = 64 << 20;
/// `BLOOM_SEED_1` and `BLOOM_SEED_2`.
const BLOOM_SEEDS: [u64; 2] = [0x71d9_24af, 0xba48_b314];
/// `EPSILON` of geometric comparisons.
const EPSILON: f64 = 1.0e-6;
const BOX: Oid = 603;
const INET: Oid = 869;
const CIDR: Oid = 650;
/// What an index says of a column of ranges, whatever their type.
const ANY_RANGE: Oid = 3831;

/// How one column's summaries cover values.
pub(crate) enum Cover {
    /// Between two values.
    Between(Order),
    /// In a box.
    Box,
    /// In a network.
    Network,
    /// In a range, where the type's own order tells containment.
    Range(Order),
    /// In one of several ranges, or one of several values.
    Several(Order, ColumnLayout),
    /// By its hash.
    Hashed(ValueHash),
}

impl Cover {
    /// Of column `index`, from 0, of an index, or why it is not known.
    pub(crate) fn of(
        catalog: &Catalog,
        relation: &Relation,
        facts: &Index,
        index: usize,
        family: Family,
    ) -> Result<Cover, String> {
        let unknown = || "its type is unknown".to_owned();
        let columns = relation.columns.as_ref();
        let column = columns
            .and_then(|columns| columns.get(index))
            .ok_or_else(unknown)?;
        let class = facts.classes.get(index).ok_or_else(unknown)?;
        let own = match column.type_oid {
            ANY_RANGE => type_in_table(catalog, facts, index).ok_or_else(unknown)?,
            own => own,
        };
        let ty = catalog.type_info(own);
        let collation = facts.collations.get(index).copied().unwrap_or_default();
        let ordered =
            |ty: &TypeInfo| default_order_of(ty, collation, catalog).map_err(|why| why.to_string());
        match family {
            Family::MinMax => ordered(&ty).map(Cover::Between),
            Family::MinMaxMulti => Ok(Cover::Several(ordered(&ty)?, column.layout)),
            Family::Inclusion if column.type_oid == BOX => Ok(Cover::Box),
            Family::Inclusion if matches!(column.type_oid, INET | CIDR) => Ok(Cover::Network),
            Family::Inclusion => ordered(&ty).map(Cover::Range),
            Family::Bloom => {
                // Under a collation that is not deterministic, or is unknown, text is not hashed as
                // it is.
                let is_text = matches!(class.input_type, 25 | 1042);
                if is_text
                    && !catalog
                        .collation(collation)
                        .is_some_and(|text| text.deterministic)
                {
                    return Err("its collation may not be deterministic".into());
                }
                ValueHash::of_type(class.input_type)
                    .map(Cover::Hashed)
                    .ok_or_else(|| "the hash of its type is not known".into())
            }
        }
    }

    /// Nothing when a value does not decode. `stored` are the stored values, varlena headers
    /// included.
    pub(crate) fn covers(
        &self,
        stored: &[&[u8]],
        value: &[u8],
        column: ColumnLayout,
    ) -> Option<bool> {
        let first = *stored.first()?;
        match self {
            Cover::Between(order) => {
                let lowest = payload(column, first)?;
                let highest = payload(column, stored.get(1)?)?;
                Some(
                    order.compare(&lowest, value)?.is_le()
                        && order.compare(value, &highest)?.is_le(),
                )
            }
            Cover::Box | Cover::Network | Cover::Range(_) => {
                let marks = [*stored.get(1)?.first()?, *stored.get(2)?.first()?];
                self.includes(&payload(column, first)?, marks, value)
            }
            Cover::Several(order, layout) => {
                several(order, *layout, &varlena_payload(first)?, value)
            }
            Cover::Hashed(hash) => bloom(&varlena_payload(first)?, hash.of(value)?),
        }
    }

    /// `marks`: values that cannot be put together are in the range; empty ones are.
    fn includes(&self, union: &[u8], marks: [u8; 2], value: &[u8]) -> Option<bool> {
        let [unmergeable, empty] = marks.map(|mark| mark != 0);
        if unmergeable {
            return Some(true);
        }
        match self {
            Cover::Box => box_in(union, value),
            Cover::Network => network_in(union, value),
            Cover::Range(_) if is_empty_range(value)? => Some(empty),
            Cover::Range(order) if !is_empty_range(union)? => order.contains(union, value),
            _ => Some(false),
        }
    }
}

/// The type of the table's column that an index's column is made of.
fn type_in_table(catalog: &Catalog, facts: &Index, index: usize) -> Option<Oid> {
    let key = usize::try_from(*facts.keys.get(index)?).ok()?;
    let columns = catalog.relations.get(&facts.table)?.columns.as_ref()?;
    Some(columns.get(key.checked_sub(1)?)?.type_oid)
}

/// A value without its varlena header, unpacked; nothing when it stands in TOAST.
pub(crate) fn payload(layout: ColumnLayout, bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    varlena::payload(layout.attlen, bytes, UNPACKED_BYTES)
}

fn varlena_payload(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    varlena::payload(-1, bytes, UNPACKED_BYTES)
}

/// The type, ranges, values and the limit of both, then twice as many values as ranges, then
/// values.
fn several(order: &Order, layout: ColumnLayout, summary: &[u8], value: &[u8]) -> Option<bool> {
    const DATA_AT: usize = 16;
    let ranges = usize::try_from(u32_at(summary, 4)?).ok()?;
    let values = usize::try_from(u32_at(summary, 8)?).ok()?;
    let mut rest = summary.get(DATA_AT..)?;
    let mut next = || {
        let len = match layout.attlen {
            -1 => varlena::total_len(rest).ok()?,
            len => usize::try_from(len).ok()?,
        };
        let (bytes, behind) = rest.split_at_checked(len.max(1))?;
        rest = behind;
        payload(layout, bytes)
    };
    for _ in 0..ranges {
        let (lowest, highest) = (next()?, next()?);
        if order.compare(&lowest, value)?.is_le() && order.compare(value, &highest)?.is_le() {
            return Some(true);
        }
    }
    for _ in 0..values {
        if order.compare(&next()?, value)? == Ordering::Equal {
            return Some(true);
        }
    }
    Some(false)
}

/// Flags 2, hash functions 1, unused 1, bits 4, bits set 4, then the bits.
fn bloom(filter: &[u8], hash: u32) -> Option<bool> {
    const DATA_AT: usize = 12;
    let functions = u64::from(*filter.get(2)?);
    let bits = u64::from(u32_at(filter, 4)?);
    let [first, second] = BLOOM_SEEDS.map(|seed| hash_u32_seeded(hash, seed).checked_rem(bits));
    let (first, second) = (first?, second?);
    for number in 0..functions {
        let bit = (first + number * second) % bits;
        let at = DATA_AT.checked_add(usize::try_from(bit / 8).ok()?)?;
        if filter.get(at)? >> (bit % 8) & 1 == 0 {
            return Some(false);
        }
    }
    Some(true)
}

/// High x and y, then low x and y. What is not a number has no place.
fn box_in(outer: &[u8], inner: &[u8]) -> Option<bool> {
    let number = |bytes: &[u8], index: usize| {
        let bits = u64::from_le_bytes(*bytes.get(index * 8..)?.first_chunk()?);
        let number = f64::from_bits(bits);
        (!number.is_nan()).then_some(number)
    };
    for index in 0..4 {
        let (outer, inner) = (number(outer, index)?, number(inner, index)?);
        let fits = match index {
            0 | 1 => outer + EPSILON >= inner,
            _ => outer <= inner + EPSILON,
        };
        if !fits {
            return Some(false);
        }
    }
    Some(true)
}

/// Family, length of the prefix, address.
fn network_in(outer: &[u8], inner: &[u8]) -> Option<bool> {
    let (&[outer_family, prefix], outer) = outer.split_first_chunk()?;
    let (&[family, length], inner) = inner.split_first_chunk()?;
    if outer_family != family || prefix > length {
        return Some(false);
    }
    let whole = usize::from(prefix / 8);
    let same = outer.get(..whole)? == inner.get(..whole)?;
    let bits = prefix % 8;
    if !same || bits == 0 {
        return Some(same);
    }
    let difference = outer.get(whole)? ^ inner.get(whole)?;
    Some(difference >> (8 - bits) == 0)
}

/// The flags stand in the last byte of a range.
fn is_empty_range(range: &[u8]) -> Option<bool> {
    Some(range.last()? & 1 != 0)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_covers_longer_prefixes_of_its_family() {
        let ten = [2, 9, 10, 0x80, 0, 0];
        assert_eq!(network_in(&ten, &[2, 32, 10, 0xFF, 1, 1]), Some(true));
        assert_eq!(network_in(&ten, &[2, 32, 10, 0x7F, 1, 1]), Some(false));
        assert_eq!(network_in(&ten, &[2, 8, 10, 0, 0, 0]), Some(false));
        assert_eq!(network_in(&ten, &[3; 18]), Some(false));
    }

    #[test]
    fn a_box_covers_up_to_the_tolerance_of_the_server() {
        let bytes = |sides: [f64; 4]| sides.map(f64::to_le_bytes).concat();
        let outer = bytes([2.0, 2.0, 1.0, 1.0]);
        assert_eq!(
            box_in(&outer, &bytes([2.0000005, 2.0, 1.0, 1.0])),
            Some(true)
        );
        assert_eq!(box_in(&outer, &bytes([2.1, 2.0, 1.0, 1.0])), Some(false));
        assert_eq!(box_in(&outer, &bytes([f64::NAN, 2.0, 1.0, 1.0])), None);
    }

    #[test]
    fn a_bloom_filter_covers_what_set_its_bits() {
        let mut filter = vec![0, 0, 3, 0, 64, 0, 0, 0, 0, 0, 0, 0];
        filter.extend([0xFF; 8]);
        assert_eq!(bloom(&filter, 7), Some(true));
        filter[12..].fill(0);
        assert_eq!(bloom(&filter, 7), Some(false));
        filter[4] = 0;
        assert_eq!(bloom(&filter, 7), None, "no bits at all");
    }
}
