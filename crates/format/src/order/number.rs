//! Values of fixed size.
//!
//! Truth: `nbtcompare.c`, `float.c`, `timestamp.c`, `date.c`, `itemptr.c`, `mac.c`, `mac8.c`, `uuid.c`.

use std::cmp::Ordering;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i128 = 86_400_000_000;
const DAYS_PER_MONTH: i128 = 30;

/// Both read as something ordered.
#[inline]
pub(super) fn fixed<const N: usize, T: Ord>(
    a: &[u8],
    b: &[u8],
    read: impl Fn([u8; N]) -> T,
) -> Option<Ordering> {
    let (a, b) = (read(a.try_into().ok()?), read(b.try_into().ok()?));
    Some(a.cmp(&b))
}

/// NaN is equal to itself and above all numbers; the two zeros are equal.
#[inline]
pub(super) fn floats<const N: usize, T: PartialOrd>(
    a: &[u8],
    b: &[u8],
    read: impl Fn([u8; N]) -> T,
) -> Option<Ordering> {
    let (a, b) = (read(a.try_into().ok()?), read(b.try_into().ok()?));
    let is_nan = |number: &T| number.partial_cmp(number).is_none();
    let order = a.partial_cmp(&b);
    Some(order.unwrap_or_else(|| is_nan(&a).cmp(&is_nan(&b))))
}

/// Block in two halves, the upper one first, then the item.
pub(super) fn tid([a, b, c, d, e, f]: [u8; 6]) -> (u16, u16, u16) {
    (
        u16::from_le_bytes([a, b]),
        u16::from_le_bytes([c, d]),
        u16::from_le_bytes([e, f]),
    )
}

/// Its length in microseconds, with months of 30 days.
pub(super) fn interval(bytes: [u8; 16]) -> i128 {
    let all = u128::from_le_bytes(bytes);
    // 64 bits of time, 32 of days, 32 of months.
    let time = (all as u64).cast_signed();
    let days = ((all >> 64) as u32).cast_signed();
    let months = ((all >> 96) as u32).cast_signed();
    let days = i128::from(months) * DAYS_PER_MONTH + i128::from(days);
    i128::from(time) + days * MICROS_PER_DAY
}

/// The moment in UTC, then the zone in seconds west.
pub(super) fn time_with_zone(bytes: [u8; 12]) -> (i64, i32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
    let time = i64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let zone = i32::from_le_bytes([i, j, k, l]);
    // The server's own sum wraps.
    let moment = time.wrapping_add(i64::from(zone) * MICROS_PER_SECOND);
    (moment, zone)
}

/// As the server's word for a value of one to eight bytes: sign bits above it change no order.
pub(super) fn images(a: &[u8], b: &[u8]) -> Option<Ordering> {
    (a.len() == b.len()).then(|| a.iter().rev().cmp(b.iter().rev()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_thirty_days_and_a_day_24_hours() {
        let of = |time: i64, days: i32, months: i32| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&time.to_le_bytes());
            bytes[8..12].copy_from_slice(&days.to_le_bytes());
            bytes[12..].copy_from_slice(&months.to_le_bytes());
            interval(bytes)
        };
        assert_eq!(of(0, 0, 1), of(0, 30, 0));
        assert_eq!(of(-86_400_000_000, 1, 0), 0);
        assert!(of(i64::MAX, i32::MAX, i32::MAX) > of(i64::MAX, i32::MAX, i32::MAX - 1));
        assert!(of(i64::MIN, i32::MIN, i32::MIN) < of(0, i32::MIN, i32::MIN));
    }

    #[test]
    fn nan_is_the_largest_float() {
        let compare = |a: f64, b: f64| {
            floats(&a.to_le_bytes(), &b.to_le_bytes(), f64::from_le_bytes).unwrap()
        };
        assert_eq!(compare(f64::NAN, f64::INFINITY), Ordering::Greater);
        assert_eq!(compare(f64::NEG_INFINITY, f64::NAN), Ordering::Less);
        assert_eq!(compare(f64::NAN, -f64::NAN), Ordering::Equal);
        assert_eq!(compare(-0.0, 0.0), Ordering::Equal);
    }
}
