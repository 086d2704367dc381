//! The meta page of a hash index contradicts itself, its pages' size or its file's length.
//!
//! Truth: `HashMetaPageData` in `src/include/access/hash.h`, `_hash_init_metabuffer` in
//! `src/backend/access/hash/hashpage.c`.

use pgclinic_cluster::Comparison;
use pgclinic_format::Page;
use pgclinic_format::hash::{self, BUCKET_MAX, Meta, SPLITPOINTS_MAX};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Rule;
use pgclinic_model::{plural, verb_of};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static HASH_META_INCONSISTENT: Rule =
    Rule::from_page(include_str!("../../rules/hash-meta-inconsistent.md"));

/// See [`HASH_META_INCONSISTENT`].
pub struct HashMetaInconsistent;

impl PageCheck for HashMetaInconsistent {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&HASH_META_INCONSISTENT] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        if cx.fork.method != Some(AccessMethod::Hash) || cx.block != 0 || page.is_new() {
            return;
        }
        let Some(meta) = Meta::parse(page) else {
            return;
        };
        // Where replay is due, the file may be longer or shorter than this page knows.
        let blocks = (cx.fork.limits.is_some() && cx.fork.may_compare(Comparison::PagesOfFork))
            .then_some(cx.fork.blocks);
        for fault in faults(meta, page.len(), blocks) {
            let (start, end) = fault.bytes;
            out.add(Draft::new(&HASH_META_INCONSISTENT, fault.words).bytes(start, end));
        }
    }
}

/// The meta page can be relied on for finding the other pages.
pub(crate) fn is_sound(meta: Meta<'_>, page_bytes: usize, blocks: Option<u64>) -> bool {
    faults(meta, page_bytes, blocks).is_empty()
}

struct Fault {
    words: String,
    bytes: (usize, usize),
}

/// A fault of the four bytes at `at` in the meta data.
fn fault(at: usize, len: usize, words: String) -> Fault {
    const CONTENTS_AT: usize = 24;
    Fault {
        words,
        bytes: (CONTENTS_AT + at, CONTENTS_AT + at + len),
    }
}

fn faults(meta: Meta<'_>, page_bytes: usize, blocks: Option<u64>) -> Vec<Fault> {
    let mut faults: Vec<Fault> = sizes(meta, page_bytes).into_iter().collect();
    let buckets = buckets(meta);
    let sound = buckets.is_none();
    faults.extend(buckets);
    if sound {
        let spares = spares(meta);
        let counted = spares.is_none();
        faults.extend(spares);
        if counted {
            faults.extend(bitmaps(meta));
            faults.extend(blocks.and_then(|blocks| file_length(meta, blocks)));
        }
    }
    faults
}

fn sizes(meta: Meta<'_>, page_bytes: usize) -> Option<Fault> {
    /// Header and special space of the page.
    const AROUND: usize = 24 + 16;
    /// The smallest `hashm_ffactor`.
    const FFACTOR_MIN: u16 = 10;
    /// An entry, its line pointer included.
    const ITEM_BYTES: usize = 20;
    let room = page_bytes.checked_sub(AROUND)?;
    let shift = room.ilog2();
    let (bsize, bmsize, bmshift) = (meta.bsize(), meta.bmsize(), meta.bmshift());
    if usize::from(bsize) != room {
        let words = format!("hashm_bsize {bsize} is not {room}, the room on a page");
        return Some(fault(18, 2, words));
    }
    if u32::from(bmsize) != 1 << shift {
        let words = format!("hashm_bmsize {bmsize} is not {}", 1 << shift);
        return Some(fault(20, 2, words));
    }
    if u32::from(bmshift) != shift + 3 {
        let words = format!("hashm_bmshift {bmshift} is not {}", shift + 3);
        return Some(fault(22, 2, words));
    }
    let (ffactor, most) = (meta.ffactor(), page_bytes / ITEM_BYTES);
    if ffactor < FFACTOR_MIN || usize::from(ffactor) > most.max(10) {
        let words = format!("hashm_ffactor {ffactor} is not between 10 and {most}");
        return Some(fault(16, 2, words));
    }
    (!meta.ntuples().is_finite())
        .then(|| fault(8, 8, format!("hashm_ntuples is {}", meta.ntuples())))
}

fn buckets(meta: Meta<'_>) -> Option<Fault> {
    let (last, high, low) = (meta.maxbucket(), meta.highmask(), meta.lowmask());
    if last > BUCKET_MAX {
        let words = format!("hashm_maxbucket {last} is above {BUCKET_MAX}");
        return Some(fault(24, 4, words));
    }
    if high & high.wrapping_add(1) != 0 {
        let words = format!("hashm_highmask {high:#x} is no mask");
        return Some(fault(28, 4, words));
    }
    if low != high >> 1 {
        let words = format!("hashm_lowmask {low:#x} is not half of hashm_highmask {high:#x}");
        return Some(fault(32, 4, words));
    }
    if !(low..=high).contains(&last) {
        let words =
            format!("hashm_maxbucket {last} is not between the masks {low:#x} and {high:#x}");
        return Some(fault(24, 4, words));
    }
    let (point, expected) = (meta.ovflpoint(), hash::spare_index(last + 1));
    (point != expected).then(|| {
        let words =
            format!("hashm_ovflpoint {point} is not {expected}, that of {last} as last bucket");
        fault(36, 4, words)
    })
}

fn spares(meta: Meta<'_>) -> Option<Fault> {
    let mut before = 0;
    for phase in 0..SPLITPOINTS_MAX {
        let count = meta.spares(phase)?;
        let at = 52 + phase as usize * 4;
        let word = format!("hashm_spares[{phase}] {count}");
        if phase > meta.ovflpoint() && count != 0 {
            return Some(fault(at, 4, format!("{word} is past hashm_ovflpoint")));
        }
        if phase <= meta.ovflpoint() && count < before {
            let words = format!("{word} is less than the {before} of the phase before");
            return Some(fault(at, 4, words));
        }
        before = count;
    }
    let (free, pages) = (meta.firstfree(), meta.overflow_pages());
    (free > pages).then(|| {
        let words = format!(
            "hashm_firstfree {free} is past all {}",
            plural(pages, "overflow page")
        );
        fault(40, 4, words)
    })
}

fn bitmaps(meta: Meta<'_>) -> Option<Fault> {
    let (maps, most, pages) = (meta.nmaps(), meta.bitmaps_max(), meta.overflow_pages());
    let bits = 1u32.checked_shl(u32::from(meta.bmshift()))?;
    let expected = pages.div_ceil(bits);
    if maps == 0 || maps > most || maps != expected {
        let words = format!(
            "hashm_nmaps {maps} is not {expected}, for {} of {bits} a map",
            plural(pages, "overflow page")
        );
        return Some(fault(44, 4, words));
    }
    (0..most).find_map(|index| {
        let block = meta.mapp(index)?;
        let at = 444 + index as usize * 4;
        let word = format!("hashm_mapp[{index}] {block}");
        if index >= maps {
            return (block != 0).then(|| fault(at, 4, format!("{word} is past hashm_nmaps")));
        }
        // Each bitmap stands at the first bit of its own range.
        let own = meta.block_of_bit(index.checked_mul(bits)?)?;
        (block != own).then(|| {
            fault(
                at,
                4,
                format!("{word} is not {own}, the first page it maps"),
            )
        })
    })
}

fn file_length(meta: Meta<'_>, blocks: u64) -> Option<Fault> {
    let needed = meta.blocks();
    (blocks < needed).then(|| {
        let words = format!(
            "{needed} {are} described and the file has {blocks}",
            needed = plural(needed, "block"),
            are = verb_of(needed, "are")
        );
        fault(24, 4, words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};

    /// The meta page of a new index: two buckets and one bitmap.
    fn meta_page() -> Vec<u8> {
        let mut special = [0xFF; 16];
        put_u16(&mut special, 12, hash::LH_META_PAGE);
        put_u16(&mut special, 14, 0xFF80);
        let mut page = PageBuilder::new(8192, &special).finish(0);
        for (at, value) in [
            (0, 0x0644_0640),
            (4, 4),
            (24, 1),
            (28, 3),
            (32, 1),
            (36, 1),
            (44, 1),
        ] {
            put_u32(&mut page, 24 + at, value);
        }
        for (at, value) in [(16, 307), (18, 8152), (20, 4096), (22, 15)] {
            put_u16(&mut page, 24 + at, value);
        }
        put_u32(&mut page, 24 + 56, 1);
        put_u32(&mut page, 24 + 444, 3);
        page
    }

    fn said(at: usize, value: u32) -> Vec<String> {
        let mut page = meta_page();
        put_u32(&mut page, 24 + at, value);
        let pages = [page, vec![0; 8192], vec![0; 8192], vec![0; 8192]];
        ForkTrial::new(AccessMethod::Hash, &pages).messages(&HashMetaInconsistent, 0)
    }

    #[test]
    fn numbers_follow_from_each_other() {
        assert!(said(0, 0x0644_0640).is_empty());
        let cases = [
            (18, 8152 | 8192 << 16, "hashm_bmsize 8192 is not 4096"),
            (
                24,
                4,
                "hashm_maxbucket 4 is not between the masks 0x1 and 0x3",
            ),
            (28, 5, "hashm_highmask 0x5 is no mask"),
            (
                36,
                2,
                "hashm_ovflpoint 2 is not 1, that of 1 as last bucket",
            ),
            (60, 1, "hashm_spares[2] 1 is past hashm_ovflpoint"),
            (40, 2, "hashm_firstfree 2 is past all 1 overflow page"),
            (444, 2, "hashm_mapp[0] 2 is not 3, the first page it maps"),
            (56, 2, "5 blocks are described and the file has 4"),
        ];
        for (at, value, words) in cases {
            assert_eq!(said(at, value), [words]);
        }
    }
}
