//! What GiST keeps as keys, where the operator class is built in: does an inner key cover what lies
//! below it?
//!
//! Truth: `src/backend/access/gist/gistproc.c`, `src/backend/utils/adt/{tsgistidx,tsquery_gist,
//! rangetypes_gist,network_gist}.c`.

use pgclinic_cluster::OpClass;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::varlena;

use crate::gist::ranges::Range;

/// How the keys of a column are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyKind {
    /// Four `float8`: high x, high y, low x, low y.
    Box,
    /// `gtsvector`: a list of hashes, or their signature.
    Signature,
    /// A signature of 64 bits.
    Bits,
    /// A range, also for multiranges.
    Range,
    /// The bits that addresses have in common.
    Inet,
}

impl KeyKind {
    /// Of a built-in operator class.
    pub(crate) fn of(class: &OpClass) -> Option<KeyKind> {
        (class.oid < FIRST_NORMAL_OID).then_some(())?;
        Some(match class.name.as_str() {
            "box_ops" | "poly_ops" | "circle_ops" | "point_ops" => KeyKind::Box,
            "tsvector_ops" => KeyKind::Signature,
            "tsquery_ops" => KeyKind::Bits,
            "range_ops" | "multirange_ops" => KeyKind::Range,
            "inet_ops" => KeyKind::Inet,
            _ => return None,
        })
    }

    /// Whether the inner key covers the key below it; nothing where that cannot be decided.
    pub(crate) fn covers(self, upper: &[u8], lower: &[u8]) -> Option<bool> {
        match self {
            KeyKind::Box => box_covers(upper, lower),
            KeyKind::Bits => {
                let (upper, lower) = (whole(upper)?, whole(lower)?);
                Some(lower & !upper == 0)
            }
            KeyKind::Signature => signature_covers(payload(upper)?, payload(lower)?),
            KeyKind::Range => {
                Range::parse(payload(upper)?)?.covers(&Range::parse(payload(lower)?)?)
            }
            KeyKind::Inet => inet_covers(payload(upper)?, payload(lower)?),
        }
    }
}

fn payload(value: &[u8]) -> Option<&[u8]> {
    varlena::parse(value).ok()?.0.as_it_is()
}

fn whole(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|raw| u64::from_le_bytes(*raw))
}

/// What servers before 12 took for equal.
const EPSILON: f64 = 1.0e-6;

/// The four numbers of a box: high x, high y, low x, low y.
pub(crate) fn box_sides(bytes: &[u8]) -> Option<[f64; 4]> {
    let (sides, []) = bytes.as_chunks::<8>() else {
        return None;
    };
    let sides: &[[u8; 8]; 4] = sides.try_into().ok()?;
    Some(sides.map(f64::from_le_bytes))
}

/// Boxes with numbers that are none were sorted in other ways by old servers: no answer.
fn box_covers(upper: &[u8], lower: &[u8]) -> Option<bool> {
    let (upper, lower) = (box_sides(upper)?, box_sides(lower)?);
    let numbers = upper.iter().chain(&lower).all(|side| !side.is_nan());
    numbers.then_some(())?;
    let [high_x, high_y, low_x, low_y] = upper;
    let [own_high_x, own_high_y, own_low_x, own_low_y] = lower;
    Some(
        own_high_x <= high_x + EPSILON
            && own_high_y <= high_y + EPSILON
            && own_low_x >= low_x - EPSILON
            && own_low_y >= low_y - EPSILON,
    )
}

const ARRKEY: u32 = 0x01;
const ALLISTRUE: u32 = 0x04;

fn signature_covers(upper: &[u8], lower: &[u8]) -> Option<bool> {
    let (upper_flag, upper) = upper.split_first_chunk::<4>()?;
    let (lower_flag, lower) = lower.split_first_chunk::<4>()?;
    let (upper_flag, lower_flag) = (
        u32::from_le_bytes(*upper_flag),
        u32::from_le_bytes(*lower_flag),
    );
    if upper_flag & ALLISTRUE != 0 {
        return Some(true);
    }
    if upper_flag & ARRKEY != 0 {
        return None;
    }
    if lower_flag & ALLISTRUE != 0 {
        return Some(upper.iter().all(|byte| *byte == 0xFF));
    }
    if lower_flag & ARRKEY == 0 {
        let same = upper.len() == lower.len();
        return same.then(|| {
            upper
                .iter()
                .zip(lower)
                .all(|(upper, lower)| lower & !upper == 0)
        });
    }
    let bits = u32::try_from(upper.len().checked_mul(8)?).ok()?;
    let (hashes, _) = lower.as_chunks::<4>();
    let has = |hash: &[u8; 4]| {
        let bit = u32::from_le_bytes(*hash).checked_rem(bits)?;
        let byte = upper.get(usize::try_from(bit / 8).ok()?)?;
        Some(byte & (1 << (bit % 8)) != 0)
    };
    hashes
        .iter()
        .map(has)
        .try_fold(true, |all, one| one.map(|one| all && one))
}

/// `GistInetKey` behind its header: family (0 for both), least netmask, common bits, address.
fn inet_covers(upper: &[u8], lower: &[u8]) -> Option<bool> {
    let ([family, least, common], address) = upper.split_first_chunk::<3>()?;
    let ([own_family, own_least, own_common], own_address) = lower.split_first_chunk::<3>()?;
    if *family == 0 {
        return Some(true);
    }
    if family != own_family || own_least < least || own_common < common {
        return Some(false);
    }
    let whole_bytes = usize::from(common / 8);
    let same = address.get(..whole_bytes)? == own_address.get(..whole_bytes)?;
    let rest = u32::from(common % 8);
    if rest == 0 {
        return Some(same);
    }
    let mask = !(0xFF_u8 >> rest);
    let differing = address.get(whole_bytes)? ^ own_address.get(whole_bytes)?;
    Some(same && differing & mask == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(sides: [f64; 4]) -> Vec<u8> {
        sides.iter().flat_map(|side| side.to_le_bytes()).collect()
    }

    #[test]
    fn a_box_covers_what_lies_in_it() {
        let outer = sides([10.0, 10.0, 0.0, 0.0]);
        let covers = |inner: [f64; 4]| KeyKind::Box.covers(&outer, &sides(inner));
        assert_eq!(covers([10.0, 10.0, 0.0, 0.0]), Some(true));
        assert_eq!(covers([11.0, 10.0, 0.0, 0.0]), Some(false));
        assert_eq!(covers([5.0, 5.0, 0.0, -1.0]), Some(false));
        assert_eq!(covers([f64::NAN, 5.0, 0.0, 0.0]), None);
        assert_eq!(KeyKind::Box.covers(&outer, &[0; 16]), None);
    }

    fn signature(flag: u32, data: &[u8]) -> Vec<u8> {
        let size = u32::try_from(8 + data.len()).expect("short") << 2;
        [&size.to_le_bytes(), &flag.to_le_bytes(), data].concat()
    }

    #[test]
    fn a_signature_covers_hashes_and_bits() {
        let upper = signature(2, &[0b101, 0]);
        let covers = |lower: Vec<u8>| KeyKind::Signature.covers(&upper, &lower);
        assert_eq!(covers(signature(ARRKEY, &[18, 0, 0, 0])), Some(true));
        assert_eq!(covers(signature(ARRKEY, &[17, 0, 0, 0])), Some(false));
        assert_eq!(covers(signature(2, &[0b100, 0])), Some(true));
        assert_eq!(covers(signature(2, &[0b110, 0])), Some(false));
        assert_eq!(covers(signature(2 | ALLISTRUE, &[])), Some(false));
        let all = signature(2 | ALLISTRUE, &[]);
        assert_eq!(
            KeyKind::Signature.covers(&all, &signature(2, &[255, 255])),
            Some(true)
        );
    }

    #[test]
    fn an_address_lies_under_its_common_bits() {
        let key = |family, least, common, address: [u8; 4]| {
            let mut bytes = vec![(8 << 1) | 1, family, least, common];
            bytes.extend(address);
            bytes
        };
        let upper = key(2, 16, 12, [10, 16, 0, 0]);
        let covers = |lower: Vec<u8>| KeyKind::Inet.covers(&upper, &lower);
        assert_eq!(covers(key(2, 32, 32, [10, 31, 1, 1])), Some(true));
        assert_eq!(covers(key(2, 32, 32, [10, 32, 1, 1])), Some(false));
        assert_eq!(covers(key(2, 8, 32, [10, 31, 1, 1])), Some(false));
        assert_eq!(covers(key(3, 32, 32, [10, 31, 1, 1])), Some(false));
    }
}
