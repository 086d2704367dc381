//! The pages of a hash index against its meta page and against each other.
//!
//! One walk along the chain of every bucket, then one over the overflow pages that no chain
//! reached. Memory: a bit an overflow page.
//!
//! Truth: `src/backend/access/hash/README`, `hashovfl.c`, `hashpage.c`.

use pgclinic_format::hash::{
    self, Entry, LH_BITMAP_PAGE, LH_BUCKET_BEING_POPULATED, LH_BUCKET_BEING_SPLIT,
    LH_BUCKET_NEEDS_SPLIT_CLEANUP, LH_BUCKET_PAGE, LH_OVERFLOW_PAGE, LH_UNUSED_PAGE, Meta, Opaque,
    Use,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::document::Level;
use pgclinic_model::plural;
use pgclinic_model::{Rule, Severity};
use pgclinic_scan::PageReader;

use crate::findings::{Draft, Findings};
use crate::hash::meta_sense::is_sound;
use crate::hash::rules::{
    HASH_BITMAP_WRONG, HASH_BUCKET_WRONG, HASH_CHAIN_BROKEN, HASH_PAGE_MISPLACED, HASH_SPLIT_STATE,
};
use crate::index::words;
use crate::relation_check::{RelationCheck, RelationCx};

/// See the rules of `hash_rules`.
pub struct HashChains;

impl RelationCheck for HashChains {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &HASH_PAGE_MISPLACED,
                &HASH_CHAIN_BROKEN,
                &HASH_BUCKET_WRONG,
                &HASH_SPLIT_STATE,
                &HASH_BITMAP_WRONG,
            ]
        }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Hash
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        // A split or a new overflow page that replay has still to finish looks like damage.
        if !relation.settled() || relation.fork.blocks == 0 {
            return;
        }
        let mut pages = relation.pages();
        let meta_page = pages.page(0).map(|page| page.bytes().to_vec());
        let page = meta_page.as_deref().and_then(Page::parse);
        let meta = page.and_then(Meta::parse);
        let sound = |meta: &Meta<'_>| {
            is_sound(*meta, page.map_or(0, Page::len), Some(relation.fork.blocks))
        };
        let Some(meta) = meta.filter(sound) else {
            return relation.not_checked(out, "bucket chains", "the meta page is damaged", false);
        };
        let words = usize::try_from(meta.overflow_pages().div_ceil(64)).unwrap_or(0);
        let mut walk = Walk {
            relation,
            meta,
            buckets: pages,
            chain: relation.pages(),
            reached: vec![0; words],
            out,
        };
        walk.all_buckets();
        walk.buckets_ahead();
        walk.overflow_pages();
    }
}

struct Walk<'a, 'b> {
    relation: &'b RelationCx<'a>,
    meta: Meta<'b>,
    buckets: PageReader<'a>,
    chain: PageReader<'a>,
    /// A bit for each overflow page that a chain led to.
    reached: Vec<u64>,
    out: &'b mut Findings,
}

/// What stands in a block.
enum Found {
    /// A page of a hash index.
    Page(Opaque),
    /// Only zeros.
    Zeroed,
    /// Damaged in a way that the checks of pages tell.
    ToldElsewhere,
}

fn find(reader: &mut PageReader<'_>, block: BlockNo) -> Found {
    if let Some(page) = reader.page(block) {
        return hash::opaque(page).map_or(Found::ToldElsewhere, Found::Page);
    }
    let zeroed = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    match reader.bytes(block) {
        Some(bytes) if zeroed(bytes) => Found::Zeroed,
        _ => Found::ToldElsewhere,
    }
}

impl Walk<'_, '_> {
    fn tell(&mut self, rule: &'static Rule, block: BlockNo, words: String) {
        let draft = self.relation.draft(rule, block, words);
        self.out.add(draft);
    }

    fn all_buckets(&mut self) {
        for bucket in 0..=self.meta.maxbucket() {
            if self.relation.is_interrupted() {
                return;
            }
            if let Some(block) = self.meta.block_of_bucket(bucket) {
                self.bucket(bucket, block);
            }
        }
    }

    fn bucket(&mut self, bucket: u32, block: BlockNo) {
        let opaque = match find(&mut self.buckets, block) {
            Found::Page(opaque) => opaque,
            Found::ToldElsewhere => return,
            Found::Zeroed => {
                let words = format!("the first page of bucket {bucket} is all zero");
                return self.tell(&HASH_PAGE_MISPLACED, block, words);
            }
        };
        if opaque.page_type() != LH_BUCKET_PAGE {
            let name = hash::type_name(opaque.page_type());
            let words = format!("the first page of bucket {bucket} belongs here, not {name} page");
            return self.tell(&HASH_PAGE_MISPLACED, block, words);
        }
        if opaque.bucket != bucket {
            let words = format!(
                "the page calls itself one of bucket {}, and bucket {bucket} begins here",
                opaque.bucket
            );
            return self.tell(&HASH_PAGE_MISPLACED, block, words);
        }
        self.split_state(opaque, bucket, block);
        let halves = LH_BUCKET_BEING_SPLIT | LH_BUCKET_NEEDS_SPLIT_CLEANUP;
        let twin = (opaque.flags & halves != 0).then(|| self.meta.split_from(bucket));
        let homes = [bucket, twin.unwrap_or(bucket)];
        if let Some(page) = self.buckets.page(block) {
            let draft = stray(self.relation, self.meta, page, block, homes);
            self.out.drafts.extend(draft);
        }
        self.follow(bucket, block, opaque.next, homes);
    }

    /// `hasho_prevblkno` of a first page, and both ends of a split that has not ended.
    fn split_state(&mut self, opaque: Opaque, bucket: u32, block: BlockNo) {
        let last = self.meta.maxbucket();
        if !(bucket..=last).contains(&opaque.prev) {
            let words = format!(
                "hasho_prevblkno {} of the first page of bucket {bucket} is no last bucket between {bucket} and {last}",
                opaque.prev
            );
            return self.tell(&HASH_SPLIT_STATE, block, words);
        }
        let (other, wanted, words) = if opaque.flags & LH_BUCKET_BEING_SPLIT != 0 {
            let words = "is being split, and the other end is not being filled";
            (
                self.meta.split_from(bucket),
                LH_BUCKET_BEING_POPULATED,
                words,
            )
        } else if opaque.flags & LH_BUCKET_BEING_POPULATED != 0 {
            let words = "is being filled, and the other end is not being split";
            (origin(bucket), LH_BUCKET_BEING_SPLIT, words)
        } else {
            return;
        };
        let Some(there) = self.meta.block_of_bucket(other).filter(|_| other <= last) else {
            return;
        };
        let Found::Page(found) = find(&mut self.chain, there) else {
            return;
        };
        let fits = found.page_type() == LH_BUCKET_PAGE && found.bucket == other;
        if fits && found.flags & wanted == 0 {
            let words = format!("bucket {bucket} {words}: bucket {other} in block {there}");
            let draft = self.relation.draft(&HASH_SPLIT_STATE, block, words);
            self.out.add(draft.follows(self.relation.fork, there));
        }
    }

    fn follow(&mut self, bucket: u32, first: BlockNo, mut next: BlockNo, homes: [u32; 2]) {
        let mut before = first;
        // Every step marks a page that was not marked before, so the walk ends.
        while next != INVALID_BLOCK {
            if let Err(words) = self.enter(next) {
                let words = format!("hasho_nextblkno {next} {words}");
                let draft = self.relation.draft(&HASH_CHAIN_BROKEN, before, words);
                let says = words::no_block(self.relation.fork, next);
                return self
                    .out
                    .add(says.into_iter().fold(draft, Draft::server_says));
            }
            let (name, opaque) = match find(&mut self.chain, next) {
                Found::ToldElsewhere => return,
                Found::Zeroed => ("zeroed", None),
                Found::Page(opaque) => (hash::type_name(opaque.page_type()), Some(opaque)),
            };
            let of_chain = |opaque: &Opaque| opaque.page_type() == LH_OVERFLOW_PAGE;
            let Some(opaque) = opaque.filter(of_chain) else {
                let words =
                    format!("{name} page in the chain of bucket {bucket}, after block {before}");
                let draft = self.relation.draft(&HASH_CHAIN_BROKEN, next, words);
                return self.out.add(draft.follows(self.relation.fork, before));
            };
            if opaque.bucket != bucket {
                let words = format!(
                    "a page of bucket {} is in the chain of bucket {bucket}, after block {before}",
                    opaque.bucket
                );
                let draft = self.relation.draft(&HASH_CHAIN_BROKEN, next, words);
                return self.out.add(draft.follows(self.relation.fork, before));
            }
            if opaque.prev != before {
                let words = format!(
                    "hasho_prevblkno {} is not {before}, the page before",
                    opaque.prev
                );
                let draft = self.relation.draft(&HASH_CHAIN_BROKEN, next, words);
                self.out.add(draft.follows(self.relation.fork, before));
            }
            if let Some(page) = self.chain.page(next) {
                let draft = stray(self.relation, self.meta, page, next, homes);
                self.out.drafts.extend(draft);
            }
            (before, next) = (next, opaque.next);
        }
    }

    /// Marks an overflow page as reached, or says why no chain can lead to this block.
    fn enter(&mut self, block: BlockNo) -> Result<(), &'static str> {
        if u64::from(block) >= self.relation.fork.blocks {
            return Err("is past the end of the index");
        }
        let Use::Overflow(bit) = self.meta.use_of(block) else {
            return Err("is no overflow page by the meta page");
        };
        if self.is_bitmap(bit, block) {
            return Err("is a bitmap page by the meta page");
        }
        let mask = 1u64 << (bit % 64);
        let word = usize::try_from(bit / 64).ok();
        let word = word.and_then(|word| self.reached.get_mut(word));
        match word {
            Some(word) if *word & mask == 0 => *word |= mask,
            _ => return Err("was reached before: chains meet or turn in a circle"),
        }
        Ok(())
    }

    fn is_bitmap(&self, bit: u32, block: BlockNo) -> bool {
        let map = bit >> self.meta.bmshift().min(31);
        self.meta.mapp(map) == Some(block)
    }

    fn is_reached(&self, bit: u32) -> bool {
        let word = usize::try_from(bit / 64).ok();
        let word = word.and_then(|word| self.reached.get(word));
        word.is_some_and(|word| word & (1 << (bit % 64)) != 0)
    }

    /// Pages of buckets that are laid out and not in use.
    fn buckets_ahead(&mut self) {
        let last = self.meta.maxbucket();
        let laid_out = hash::total_buckets(self.meta.ovflpoint());
        let laid_out = u32::try_from(laid_out).unwrap_or(u32::MAX);
        for bucket in last + 1..laid_out {
            if self.relation.is_interrupted() {
                return;
            }
            let Some(block) = self.meta.block_of_bucket(bucket) else {
                return;
            };
            if let Found::Page(opaque) = find(&mut self.buckets, block)
                && opaque.page_type() != LH_UNUSED_PAGE
            {
                let name = hash::type_name(opaque.page_type());
                let words = format!(
                    "{name} page stands where bucket {bucket} will be; the last one is {last}"
                );
                self.tell(&HASH_PAGE_MISPLACED, block, words);
            }
        }
    }

    fn overflow_pages(&mut self) {
        let shift = u32::from(self.meta.bmshift()).min(31);
        let mut map: Option<(u32, Vec<u8>)> = None;
        for bit in 0..self.meta.overflow_pages() {
            if self.relation.is_interrupted() {
                return;
            }
            let index = bit >> shift;
            if map.as_ref().is_none_or(|(held, _)| *held != index) {
                map = Some((index, self.read_bitmap(index)));
            }
            let within = bit & ((1 << shift) - 1);
            let used = map.as_ref().and_then(|(_, map)| is_set(map, within));
            if let (Some(used), Some(block)) = (used, self.meta.block_of_bit(bit)) {
                self.overflow_page(bit, block, used);
            }
        }
    }

    /// Empty when the page is none: what depends on it stays silent.
    fn read_bitmap(&mut self, index: u32) -> Vec<u8> {
        let Some(block) = self.meta.mapp(index) else {
            return Vec::new();
        };
        let bits = self.chain.page(block).and_then(hash::bitmap);
        if let Some(bits) = bits {
            return bits.to_vec();
        }
        let words = match find(&mut self.chain, block) {
            Found::Page(opaque) => {
                let name = hash::type_name(opaque.page_type());
                format!("bitmap {index} belongs here, not {name} page")
            }
            Found::Zeroed => format!("bitmap {index} belongs here, and the page is all zero"),
            Found::ToldElsewhere => return Vec::new(),
        };
        self.tell(&HASH_PAGE_MISPLACED, block, words);
        Vec::new()
    }

    fn overflow_page(&mut self, bit: u32, block: BlockNo, used: bool) {
        let reached = self.is_reached(bit) || self.is_bitmap(bit, block);
        let map_block = self.meta.mapp(bit >> self.meta.bmshift().min(31));
        let map_block = map_block.unwrap_or(block);
        if reached {
            if !used {
                let words = format!("block {block} is in use and marked as free");
                let draft = self.relation.draft(&HASH_BITMAP_WRONG, map_block, words);
                self.out.add(draft.follows(self.relation.fork, block));
            }
            return;
        }
        let (page_type, entries, bucket) = match find(&mut self.buckets, block) {
            Found::ToldElsewhere => return,
            Found::Zeroed => (LH_UNUSED_PAGE, 0, 0),
            Found::Page(opaque) => {
                let mut entries = 0u64;
                if let Some(page) = self.buckets.page(block) {
                    hash::for_each_row(page, &mut |_| entries += 1);
                }
                (opaque.page_type(), entries, opaque.bucket)
            }
        };
        match (page_type, used) {
            (LH_UNUSED_PAGE, false) => {}
            (LH_UNUSED_PAGE, true) => {
                let words = format!("block {block} is unused and marked as in use");
                let draft = self.relation.draft(&HASH_BITMAP_WRONG, map_block, words);
                // Nobody misses anything: only room is lost.
                self.out.add(
                    draft
                        .severity(Severity::Warning)
                        .follows_fork(self.relation.fork),
                );
            }
            (LH_OVERFLOW_PAGE, _) => {
                let words = format!(
                    "an overflow page of bucket {bucket} with {entries} is in no chain",
                    entries = plural(entries, "entry")
                );
                let draft = self.relation.draft(&HASH_CHAIN_BROKEN, block, words);
                let draft = draft.fact("entries", entries).fact("bucket", bucket);
                self.out.add(draft.follows_fork(self.relation.fork));
            }
            (other, _) => {
                let name = match other {
                    LH_BITMAP_PAGE => "bitmap page that the meta page does not name",
                    other => hash::type_name(other),
                };
                let words = format!("an overflow page belongs here, not {name} page");
                self.tell(&HASH_PAGE_MISPLACED, block, words);
            }
        }
    }
}

/// The bucket that this one was split off from.
fn origin(bucket: u32) -> u32 {
    match bucket.checked_ilog2() {
        Some(top) => bucket & !(1 << top),
        None => 0,
    }
}

fn is_set(map: &[u8], bit: u32) -> Option<bool> {
    let byte = map.get(usize::try_from(bit / 8).ok()?)?;
    Some(byte & (1 << (bit % 8)) != 0)
}

/// The first entry of a page whose hash code leads to another bucket.
fn stray(
    relation: &RelationCx<'_>,
    meta: Meta<'_>,
    page: Page<'_>,
    block: BlockNo,
    homes: [u32; 2],
) -> Option<Draft> {
    let mut first: Option<(Entry, u32)> = None;
    let mut count = 0u64;
    hash::for_each_row(page, &mut |entry| {
        let bucket = meta.bucket_of(entry.code);
        if !homes.contains(&bucket) {
            first = first.or(Some((entry, bucket)));
            count += 1;
        }
    });
    let (entry, bucket) = first?;
    let words = format!(
        "hash code {:#010x} belongs into bucket {bucket}, not {}",
        entry.code, homes[0]
    );
    let draft = relation.draft(&HASH_BUCKET_WRONG, block, words);
    let draft = draft.item(entry.item).fact("entries", count);
    Some(draft.fact("row", format!("({},{})", entry.block, entry.offset)))
}
