//! Pages that are corrected by what stands on them: whatever comes back is the page that was there.

use pgclinic_cluster::{Catalog, Cluster, DatabaseContext, ForkFiles, read_block};
use pgclinic_format::build::seal_page;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{BlockNo, Fork, Page};
use pgclinic_model::plan::Safety;
use pgclinic_servers::Checksums;
use pgclinic_surgery::cures::page_correction;
use pgclinic_testkit::{TempCopy, clinic, copy_of, open, seed, server};

/// Hurts a page.
type HurtPage = fn(&mut [u8]);
/// Hurts what is so far into a page.
type HurtItem = fn(&mut [u8], usize);

/// The tables of one database, read once.
struct Tables {
    _copy: TempCopy,
    cluster: Cluster,
    catalog: Catalog,
    forks: Vec<ForkFiles>,
}

/// A page that nothing is wrong with.
struct SoundPage<'a> {
    files: &'a ForkFiles,
    block: BlockNo,
    bytes: Vec<u8>,
}

/// What came of many pages.
#[derive(Default, Debug)]
struct Tally {
    exact: u32,
    lossy: u32,
    none: u32,
    wrong_exact: u32,
    wrong_lossy: u32,
}

impl Tally {
    fn pages(&self) -> u32 {
        self.exact + self.lossy + self.none + self.wrong_exact + self.wrong_lossy
    }
}

impl Tables {
    fn of(checksums: Checksums) -> Self {
        let copy = copy_of(&seed(&server(15), checksums));
        let cluster = open(&copy.pgdata);
        let catalog = clinic(&cluster);
        let homes = cluster.homes.iter();
        let own = homes.filter(|home| home.database == catalog.database);
        let forks = own.flat_map(|home| cluster.files(home).expect("a directory"));
        let forks = forks.collect();
        Tables {
            _copy: copy,
            cluster,
            catalog,
            forks,
        }
    }

    fn view(&self) -> DatabaseContext<'_> {
        DatabaseContext {
            cluster: &self.cluster,
            catalog: &self.catalog,
            forks: &self.forks,
        }
    }

    /// Every page of every table that holds a line pointer.
    fn pages(&self) -> Vec<SoundPage<'_>> {
        let mut pages = Vec::new();
        for files in self.forks.iter().filter(|files| files.fork == Fork::Main) {
            let tablespace = files.home.tablespace;
            let relation = self.catalog.by_file(tablespace, files.filenode);
            let method = relation.and_then(pgclinic_cluster::Relation::page_method);
            if method != Some(AccessMethod::Heap) {
                continue;
            }
            let build = self.cluster.build;
            for block in 0..files.blocks(build.block_size, build.segment_bytes) {
                let block = u32::try_from(block).expect("a block");
                let bytes = read_block(self.cluster.source().as_ref(), files, build, block);
                let bytes = bytes.expect("a page");
                if Page::parse(&bytes).is_some_and(|page| page.line_pointer_count() > 0) {
                    pages.push(SoundPage {
                        files,
                        block,
                        bytes,
                    });
                }
            }
        }
        pages
    }

    fn try_page(&self, page: &SoundPage<'_>, hurt: &[u8], tally: &mut Tally) {
        match page_correction(&self.view(), page.files, page.block, hurt) {
            Err(_) => tally.none += 1,
            Ok(found) => {
                let is_right = found.bytes == page.bytes;
                let own = match (found.safety, is_right) {
                    (Safety::Exact, true) => &mut tally.exact,
                    (Safety::Exact, false) => &mut tally.wrong_exact,
                    (_, true) => &mut tally.lossy,
                    (_, false) => &mut tally.wrong_lossy,
                };
                *own += 1;
            }
        }
    }

    /// Pages chosen at random, each with that many flipped bits.
    fn flipped(&self, count: usize, bits: usize) -> Tally {
        let mut random = fastrand::Rng::with_seed(20_261_125);
        let pages = self.pages();
        let mut tally = Tally::default();
        for _ in 0..count {
            let page = &pages[random.usize(..pages.len())];
            let mut hurt = page.bytes.clone();
            for _ in 0..bits {
                let bit = random.usize(..hurt.len() * 8);
                hurt[bit / 8] ^= 1 << (bit % 8);
            }
            self.try_page(page, &hurt, &mut tally);
        }
        tally
    }

    /// Every `step`-th page after `hurt`, as far as that changes it.
    fn each(&self, step: usize, hurt: impl Fn(&mut [u8])) -> Tally {
        let mut tally = Tally::default();
        for page in self.pages().iter().step_by(step) {
            let mut bytes = page.bytes.clone();
            hurt(&mut bytes);
            if bytes != page.bytes {
                self.try_page(page, &bytes, &mut tally);
            }
        }
        tally
    }
}

/// As many as `cargo xtask healed-pages` asks for, or what a test has time for.
fn flipped_pages() -> usize {
    let asked = std::env::var("PGCLINIC_FLIPPED_PAGES").ok();
    asked.and_then(|pages| pages.parse().ok()).unwrap_or(600)
}

#[test]
fn a_flipped_bit_never_makes_another_page() {
    let tables = Tables::of(Checksums::On);
    let one = tables.flipped(flipped_pages(), 1);
    eprintln!("one bit: {one:?}");
    assert_eq!(one.wrong_exact + one.wrong_lossy, 0, "{one:?}");
    // About a third of all pages have no second candidate by chance.
    assert!(one.exact + one.lossy > one.pages() / 4, "{one:?}");
    assert!(one.exact > 0, "{one:?}");
}

/// What was wrong before the checksum was made has no witness.
#[test]
fn a_page_with_its_true_checksum_is_left_alone() {
    let tables = Tables::of(Checksums::On);
    let mut tally = Tally::default();
    for page in tables.pages().iter().step_by(100) {
        let mut hurt = page.bytes.clone();
        hurt[12..14].fill(0);
        seal_page(&mut hurt, page.block);
        tables.try_page(page, &hurt, &mut tally);
    }
    assert!(tally.none > 0 && tally.none == tally.pages(), "{tally:?}");
}

#[test]
fn several_flipped_bits_are_never_exact_and_wrong() {
    let tables = Tables::of(Checksums::On);
    for bits in [2, 3] {
        let several = tables.flipped(300, bits);
        eprintln!("{bits} bits: {several:?}");
        assert_eq!(several.wrong_exact, 0, "{bits} bits: {several:?}");
    }
}

#[test]
fn header_fields_follow_from_the_rest() {
    let tables = Tables::of(Checksums::On);
    let hurts: [(&str, HurtPage); 5] = [
        ("pd_lower", |page| page[12..14].fill(0)),
        ("pd_upper", |page| page[14..16].copy_from_slice(&[7, 0])),
        ("pd_special", |page| page[16..18].fill(0xFF)),
        ("pd_pagesize_version", |page| page[18..20].fill(0)),
        ("all but pd_lsn", |page| {
            page[10..20].copy_from_slice(b"garbage!!!");
        }),
    ];
    for (name, hurt) in hurts {
        let tally = tables.each(17, hurt);
        eprintln!("{name}: {tally:?}");
        assert_eq!(
            tally.wrong_exact + tally.wrong_lossy,
            0,
            "{name}: {tally:?}"
        );
        assert!(tally.exact > tally.pages() / 2, "{name}: {tally:?}");
    }
}

#[test]
fn nothing_is_exact_without_checksums() {
    let tables = Tables::of(Checksums::Off);
    let constants = tables.each(17, |page| page[16..20].fill(0));
    assert_eq!(constants.lossy, constants.pages(), "{constants:?}");
    let lower = tables.each(2000, |page| page[12..14].fill(0xFF));
    eprintln!("pd_lower without checksums: {lower:?}");
    assert_eq!(lower.exact + lower.wrong_exact, 0, "{lower:?}");
}

#[test]
fn line_pointers_are_made_again_from_the_tuples() {
    let tables = Tables::of(Checksums::On);
    let second = HEADER_BYTES + 4;
    let hurts: [(&str, HurtItem); 2] = [
        ("one", |page, at| page[at..at + 4].fill(0xFF)),
        ("three", |page, at| page[at - 4..at + 8].fill(0x5A)),
    ];
    for (name, hurt) in hurts {
        let tally = tables.each(17, |page| {
            // Behind the last line pointer stands unused space, of which nothing tells.
            let count = Page::parse(page).map_or(0, Page::line_pointer_count);
            if count >= 3 {
                hurt(page, second);
            }
        });
        eprintln!("{name}: {tally:?}");
        assert_eq!(
            tally.wrong_exact + tally.wrong_lossy,
            0,
            "{name}: {tally:?}"
        );
        assert!(tally.exact > tally.pages() / 2, "{name}: {tally:?}");
    }
}
