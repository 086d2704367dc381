//! The page checksum: 32 lanes of FNV-1a, folded to 16 bits.
//!
//! The field itself counts as zero, and the block number is mixed in, so that a page at another
//! place is found. Truth: `src/include/storage/checksum_impl.h`.

use crate::types::BlockNo;

const LANES: usize = 32;
const ROW_BYTES: usize = LANES * 4;
const PRIME: u32 = 16_777_619;
const BASE: [u32; LANES] = [
    0x5B1F_36E9,
    0xB852_5960,
    0x02AB_50AA,
    0x1DE6_6D2A,
    0x79FF_467A,
    0x9BB9_F8A3,
    0x217E_7CD2,
    0x83E1_3D2C,
    0xF8D4_474F,
    0xE39E_B970,
    0x42C6_AE16,
    0x9932_16FA,
    0x7B09_3B5D,
    0x98DA_FF3C,
    0xF718_902A,
    0x0B1C_9CDB,
    0xE58F_764B,
    0x1876_36BC,
    0x5D7B_3BB1,
    0xE73D_E7DE,
    0x92BE_C979,
    0xCCA6_C0B2,
    0x304A_0979,
    0x85AA_43D4,
    0x7831_25BB,
    0x6CA8_EAA2,
    0xE407_EAC6,
    0x4B5C_FC3E,
    0x9FBF_8C76,
    0x15CA_20BE,
    0xF2CA_9FD3,
    0x959B_D756,
];

/// The checksum a page should carry at `block`, 1 to 65535. `page` is one block; bytes beyond a
/// multiple of 128 would not count, and no block size leaves any.
pub fn page_checksum(page: &[u8], block: BlockNo) -> u16 {
    fold(lanes(page) ^ block)
}

/// The checksum with the block number left out, which [`checksum_at`] turns into the checksum
/// at any block: for asking where a page belongs without reading it again.
pub fn page_hash(page: &[u8]) -> u32 {
    lanes(page)
}

/// [`page_hash`] of four pages of one length, quicker than one after the other.
pub fn page_hashes(pages: [&[u8]; 4]) -> [u32; 4] {
    lanes_of_four(pages)
}

/// The checksum of a page with hash `page_hash` at `block`.
pub fn checksum_at(page_hash: u32, block: BlockNo) -> u16 {
    fold(page_hash ^ block)
}

#[expect(clippy::cast_possible_truncation, reason = "below 65,536")]
fn fold(sum: u32) -> u16 {
    (sum % 65_535 + 1) as u16
}

/// Every single bit of `page` whose flip would make the checksum `stored` true at `block`, as the
/// bit's number from the page's start; bits of the stored field itself are left out. About one
/// candidate turns up by chance on any 8 kB page, so a candidate proves nothing by itself.
pub fn single_bit_candidates(page: &[u8], block: BlockNo, stored: u16) -> Vec<usize> {
    let mut page = page.to_vec();
    if let Some(field) = page.get_mut(8..10) {
        field.fill(0);
    }
    let whole = lanes(&page);
    (0..LANES)
        .flat_map(|lane| lane_candidates(&page, lane, whole ^ block, stored))
        .collect()
}

/// The candidates in one lane: only its own sum changes, from the flipped row on.
fn lane_candidates(page: &[u8], lane: usize, whole: u32, stored: u16) -> Vec<usize> {
    let words: Vec<u32> = page
        .as_chunks::<ROW_BYTES>()
        .0
        .iter()
        .filter_map(|row| {
            row.as_chunks::<4>()
                .0
                .get(lane)
                .map(|word| u32::from_le_bytes(*word))
        })
        .collect();
    let mut sum = BASE.get(lane).copied().unwrap_or_default();
    let others = whole ^ finish_lane(sum, &words);
    let mut found = Vec::new();
    for (row, word) in words.iter().enumerate() {
        let rest = words.get(row + 1..).unwrap_or_default();
        for bit in 0..32 {
            let in_field = row == 0 && lane == 2 && bit < 16;
            if !in_field && fold(others ^ finish_lane(mix(sum, word ^ (1 << bit)), rest)) == stored
            {
                found.push((row * LANES + lane) * 32 + bit);
            }
        }
        sum = mix(sum, *word);
    }
    found
}

fn finish_lane(sum: u32, words: &[u32]) -> u32 {
    words
        .iter()
        .chain(&[0, 0])
        .fold(sum, |sum, word| mix(sum, *word))
}

#[inline(always)]
fn mix(sum: u32, word: u32) -> u32 {
    let folded = sum ^ word;
    folded.wrapping_mul(PRIME) ^ (folded >> 17)
}

#[inline(always)]
fn mix_row(sums: &mut [u32; LANES], row: &[u8; ROW_BYTES]) {
    let (words, _) = row.as_chunks::<4>();
    for (sum, word) in sums.iter_mut().zip(words) {
        *sum = mix(*sum, u32::from_le_bytes(*word));
    }
}

/// One body, compiled for several instruction sets; see docs/benchmarks.md for what it gains.
#[multiversion::multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl",
    "x86_64+avx2",
    "x86_64+sse4.1"
))]
fn lanes(page: &[u8]) -> u32 {
    let [sum] = sums_of([page]);
    sum
}

/// Each multiplication waits for the one of the row before; four pages at once fill the wait.
#[multiversion::multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl",
    "x86_64+avx2",
    "x86_64+sse4.1"
))]
fn lanes_of_four(pages: [&[u8]; 4]) -> [u32; 4] {
    sums_of(pages)
}

#[inline(always)]
fn sums_of<const N: usize>(pages: [&[u8]; N]) -> [u32; N] {
    let mut sums = [BASE; N];
    let rows = pages.map(|page| page.as_chunks::<ROW_BYTES>().0);
    let count = rows.iter().map(|rows| rows.len()).min().unwrap_or(0);
    for index in 0..count {
        for (sums, rows) in sums.iter_mut().zip(rows) {
            let Some(row) = rows.get(index) else { continue };
            if index > 0 {
                mix_row(sums, row);
            } else {
                let mut first = *row;
                first[8..10].fill(0);
                mix_row(sums, &first);
            }
        }
    }
    sums.map(|mut sums| {
        for _ in 0..2 {
            for sum in &mut sums {
                *sum = mix(*sum, 0);
            }
        }
        sums.iter().fold(0, |all, sum| all ^ sum)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An 8 kB page filled with a pattern of bytes, as signed 16-bit sums at blocks 0, 50, 100.
    fn golden(pattern: &[u8], expected: [i16; 3]) {
        let page: Vec<u8> = pattern.iter().copied().cycle().take(8192).collect();
        let sums = [0, 50, 100].map(|block| page_checksum(&page, block).cast_signed());
        assert_eq!(sums, expected, "pattern {pattern:x?}");
    }

    #[test]
    fn sums_are_the_servers() {
        golden(&[0x01], [1175, 1225, 1139]);
        golden(&[0x04], [28338, 28352, 28438]);
        golden(&[0xFF], [3612, 3598, 3648]);
        golden(&[0xAB, 0xCD], [-30781, -30795, -30881]);
        golden(&[0xE6, 0xD6], [-16269, -16251, -16305]);
        golden(&[0x4A, 0x5E], [-27377, -27391, -27349]);
    }

    #[test]
    fn a_flipped_bit_is_among_its_candidates() {
        let mut page: Vec<u8> = (0..8192u32).map(|at| (at * 7 % 251) as u8).collect();
        let stored = page_checksum(&page, 9);
        page[4000] ^= 0x20;
        assert!(single_bit_candidates(&page, 9, stored).contains(&(4000 * 8 + 5)));
    }

    #[test]
    fn four_at_once_are_the_same_as_one_by_one() {
        let pages: Vec<Vec<u8>> = (0..4u8)
            .map(|page| (0..8192u32).map(|at| (at % 249) as u8 ^ page).collect())
            .collect();
        let [a, b, c, d] = [0, 1, 2, 3].map(|page: usize| pages[page].as_slice());
        assert_eq!(page_hashes([a, b, c, d]), [a, b, c, d].map(page_hash));
    }

    #[test]
    fn the_field_itself_does_not_count() {
        let mut page = vec![7u8; 1024];
        let sum = page_checksum(&page, 3);
        page[8] = 99;
        assert_eq!(page_checksum(&page, 3), sum);
        assert_eq!(checksum_at(page_hash(&page), 3), sum);
    }
}
