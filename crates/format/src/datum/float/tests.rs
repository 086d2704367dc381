//! The quick way beside the slow one: Rust's own shortest digits, laid out with its own formatting.

#![allow(clippy::cast_possible_truncation, reason = "numbers are made of seeds")]

use super::*;

fn quick_f64(number: f64) -> String {
    let mut out = Vec::new();
    append_number_f64(number, &mut out);
    String::from_utf8(out).expect("digits")
}

fn quick_f32(number: f32) -> String {
    let mut out = Vec::new();
    append_f32(&number.to_le_bytes(), &mut out).expect("four bytes");
    String::from_utf8(out).expect("digits")
}

fn slow_f64(number: f64) -> String {
    if !number.is_finite() || number == 0.0 {
        return String::from_utf8_lossy(special(number)).into();
    }
    let decimal = Binary::of_f64(number).choose(
        Decimal::parse(&format!("{number:e}")),
        |digits| format!("{number:.digits$e}"),
        |text| text.parse() == Ok(number.abs()),
    );
    slowly(number.is_sign_negative(), decimal, 15)
}

fn slow_f32(number: f32) -> String {
    if !number.is_finite() || number == 0.0 {
        return String::from_utf8_lossy(special(number.into())).into();
    }
    let decimal = Binary::of_f32(number).choose(
        Decimal::parse(&format!("{number:e}")),
        |digits| format!("{number:.digits$e}"),
        |text| text.parse() == Ok(number.abs()),
    );
    slowly(number.is_sign_negative(), decimal, 6)
}

fn slowly(is_negative: bool, decimal: Decimal, wide: i32) -> String {
    let all = decimal.digits.to_string();
    let digits = all.trim_end_matches('0');
    let exponent = decimal.exponent + i32::try_from(all.len()).expect("few") - 1;
    let sign = if is_negative { "-" } else { "" };
    if exponent < -4 || exponent >= wide {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let e = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{e}{:02}", exponent.abs());
    }
    let places = usize::try_from(exponent.abs()).expect("few");
    match digits.split_at_checked(places + 1) {
        _ if exponent < 0 => format!("{sign}0.{}{digits}", "0".repeat(places - 1)),
        None | Some((_, "")) => format!("{sign}{digits:0<width$}", width = places + 1),
        Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
    }
}

fn both_ways(bits: u64) {
    let wide = f64::from_bits(bits);
    assert_eq!(quick_f64(wide), slow_f64(wide), "{bits:#x}");
    let [narrow, _] = [bits >> 32, bits].map(|bits| f32::from_bits((bits & 0xFFFF_FFFF) as u32));
    assert_eq!(quick_f32(narrow), slow_f32(narrow), "{bits:#x}");
}

/// A seeded row of numbers (splitmix64).
fn numbers() -> impl Iterator<Item = u64> {
    (1..).map(|step: u64| {
        let mixed = step.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    })
}

#[test]
fn any_bits_have_the_text_of_the_slow_way() {
    numbers().take(200_000).for_each(both_ways);
}

#[test]
fn every_power_of_two_and_its_neighbours() {
    for exponent in 0..=0x7FFu64 {
        let power = exponent << 52;
        for bits in power.saturating_sub(2)..=power + 2 {
            both_ways(bits);
        }
    }
    for exponent in 0..=0xFFu64 {
        let power = exponent << 23;
        for bits in power.saturating_sub(2)..=power + 2 {
            both_ways(bits << 32);
        }
    }
}

/// Sizes that people store: of few decimal digits, and of few binary ones, which may lie exactly
/// between two decimals.
#[test]
fn short_numbers_have_the_text_of_the_slow_way() {
    for (seed, step) in numbers().take(100_000).zip(0u32..) {
        let decimal = (seed >> (step % 60)) as f64 / 10f64.powi((step % 19).cast_signed());
        both_ways(decimal.to_bits());
        both_ways(u64::from((decimal as f32).to_bits()) << 32);
        let bits = (seed >> 11 | 1 << 52) as f64;
        let binary = bits * 2f64.powi(-(step % 80).cast_signed());
        both_ways(binary.to_bits());
        both_ways(binary.to_bits() & (u64::MAX << (step % 52)));
        let narrow = (seed >> 40 | 1 << 23) as f32 * 2f32.powi(8 - (step % 40).cast_signed());
        both_ways(u64::from(narrow.to_bits() & (u32::MAX << (step % 23))) << 32);
    }
}

/// As a server of major 15 printed them.
#[test]
fn of_two_that_are_equally_near_the_even_one_is_printed() {
    for (bits, text) in [
        (0x402b_3b42_0000_0000, "13.615737915039062"),
        (0x40f9_8e46_d100_0000, "104676.42602539062"),
        (0x42d7_8788_3476_8668, "103483492653593.62"),
        (0x430a_6f47_2505_627a, "930087593618511.2"),
        (0x4311_c3ee_aab3_0755, "1.2501261093933652e+15"),
    ] {
        assert_eq!(quick_f64(f64::from_bits(bits)), text);
    }
}

/// As a server of major 15 printed them.
#[test]
fn a_decimal_halfway_to_a_neighbour_is_not_short_enough() {
    for (bits, text) in [
        (0x4357_dcaf_0000_0000, "2.6866274566930432e+16"),
        (0x437f_3306_4000_0000, "1.4050921943348019e+17"),
    ] {
        assert_eq!(quick_f64(f64::from_bits(bits)), text);
    }
    for (bits, text) in [
        (0x4e52_1822, "8.8119923e+08"),
        (0x4f41_da38, "3.2523039e+09"),
        (0x51cb_a220, "1.09324796e+11"),
    ] {
        assert_eq!(quick_f32(f32::from_bits(bits)), text);
    }
}
