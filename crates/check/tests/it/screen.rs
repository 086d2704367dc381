//! The screen's promise: where it is content, every check that it may stand in for would have been
//! silent. Held over real pages of every kind, hurt at random in the places where a little says
//! much.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;
use pgclinic_check::check::Checksum;
use pgclinic_check::fast_path::{FastPath, FastPathVerdict};
use pgclinic_check::walker::is_asked;
use pgclinic_check::{Findings, ForkCx, PAGE_CHECKS, PageCheck, PageCx, fork_cx};
use pgclinic_cluster::{Cluster, DatabaseContext, ForkFiles, read_block};
use pgclinic_format::Page;
use pgclinic_model::Level;
use pgclinic_servers::Checksums;
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{all_majors, seed};

/// Pages of one fork that are hurt.
const PAGES: u64 = 3;
/// Wounds of one page.
const WOUNDS: usize = 60;

/// A wrong checksum is never among the wounds, and multixacts stand on too few pages.
const UNPROVOKED: [&str; 3] = ["checksum-mismatch", "multixact-flags", "multixact-updater"];

/// What a run has seen.
#[derive(Default)]
struct Tally {
    wounds: u64,
    /// Pages by what the screen made of them.
    glances: BTreeMap<FastPathVerdict, u64>,
    /// Screened checks that spoke on pages that the screen passed on.
    spoke: BTreeSet<&'static str>,
    /// Words by the rule that the screen missed.
    missed: BTreeMap<&'static str, String>,
}

/// A few bytes of a page are changed, one to three times.
fn hurt(bytes: &mut [u8], rng: &mut Rng) {
    for _ in 0..rng.usize(1..=3) {
        let (at, end) = place(bytes, rng);
        let Some(part) = bytes.get_mut(at..end).filter(|part| !part.is_empty()) else {
            continue;
        };
        match rng.u8(0..6) {
            0 | 1 => part[rng.usize(..part.len())] ^= 1 << rng.u8(..8),
            2 => part[rng.usize(..part.len())] = rng.u8(..),
            3 => shift(part, rng),
            4 => part.fill(*rng.choice(&[0, 0xFF, b' ', 1]).expect("some")),
            _ => rng.fill(part),
        }
    }
}

/// A number a little greater or smaller.
fn shift(part: &mut [u8], rng: &mut Rng) {
    let Some(low) = part.first_chunk_mut::<2>() else {
        return;
    };
    let by = *rng.choice(&[1, 2, 4, 8, 24, 0x8000]).expect("some");
    let number = u16::from_le_bytes(*low);
    let moved = if rng.bool() {
        number.wrapping_add(by)
    } else {
        number.wrapping_sub(by)
    };
    *low = moved.to_le_bytes();
}

/// Where it hurts: page header, a line pointer, a row's header, a row's first bytes, the special
/// space, anywhere.
fn place(bytes: &[u8], rng: &mut Rng) -> (usize, usize) {
    let page = Page::parse(bytes).expect("a page");
    let count = page.line_pointer_count();
    let number = rng.u16(1..=count.max(1));
    let item = page
        .line_pointer(number)
        .and_then(pgclinic_format::LinePointer::range);
    let len = *rng.choice(&[1usize, 2, 2, 4]).expect("some");
    let at = match (rng.u8(0..12), item) {
        (0, _) => rng.usize(10..24),
        (1 | 2, _) if count > 0 => 20 + 4 * usize::from(number) + rng.usize(..4),
        (3..=5, Some(item)) => item.start + rng.usize(..24),
        (6 | 7, Some(item)) => item.start + 23 + rng.usize(..12),
        (8..=10, Some(item)) if !item.is_empty() => rng.usize(item),
        (11, _) => bytes.len() - rng.usize(1..=16),
        _ => rng.usize(..bytes.len()),
    };
    (at, (at + len).min(bytes.len()))
}

/// Page and place of a fork as the walker would hand them to the checks.
fn look(bytes: &[u8], block: u32, fork: &ForkCx<'_>, screen: &FastPath<'_>, tally: &mut Tally) {
    let page = Page::parse(bytes).expect("a page");
    tally.wounds += 1;
    if page.is_new() && page.is_zeroed() {
        return;
    }
    let glance = screen.glance(page, block);
    *tally.glances.entry(glance).or_default() += 1;
    let cx = PageCx {
        fork,
        block,
        checksum: Checksum::Right,
    };
    let screened = PAGE_CHECKS.iter().filter(|check| check.wants().screened);
    for check in screened.filter(|check| is_asked(check.wants(), page, fork)) {
        let Some(words) = said(*check, page, &cx) else {
            continue;
        };
        let name = check.rules().first().map_or("", |rule| rule.name);
        if glance.stands_in_for(*check) {
            let place = format!("{} block {block}: {words}", fork.files.path(0));
            tally.missed.entry(name).or_insert(place);
        } else {
            tally.spoke.insert(name);
        }
    }
}

fn said(check: &dyn PageCheck, page: Page<'_>, cx: &PageCx<'_>) -> Option<String> {
    let mut findings = Findings::default();
    check.check(page, cx, &mut findings);
    findings
        .take_drafts()
        .first()
        .map(|draft| format!("{draft:?}"))
}

fn hurt_fork(fork: &ForkCx<'_>, rng: &mut Rng, tally: &mut Tally) {
    let screen = FastPath::new(fork);
    let source = fork.source.expect("a cluster");
    for _ in 0..fork.blocks.min(PAGES) {
        let block = u32::try_from(rng.u64(..fork.blocks)).expect("a small cluster");
        let page = read_block(source, fork.files, fork.build, block).expect("a block");
        look(&page, block, fork, &screen, tally);
        for _ in 0..WOUNDS {
            let mut bytes = page.clone();
            hurt(&mut bytes, rng);
            look(&bytes, block, fork, &screen, tally);
        }
    }
}

fn forks_of(cluster: &Cluster, database: u32) -> Vec<ForkFiles> {
    let homes = cluster
        .homes
        .iter()
        .filter(|home| home.database == database);
    homes
        .flat_map(|home| cluster.files(home).expect("a directory"))
        .collect()
}

fn the_screen_keeps_its_promise(major: u16, level: Level) {
    let installation = all_majors().into_iter().find(|one| one.major == major);
    let pgdata = seed(&installation.expect("a major"), Checksums::On).pgdata;
    let source = Arc::new(DataDirectory::open(&pgdata).expect("a directory"));
    let cluster = Cluster::open(source).expect("a cluster");
    let (mut rng, mut tally) = (Rng::with_seed(u64::from(major)), Tally::default());
    for database in std::iter::once(0).chain(cluster.databases.keys().copied()) {
        let (catalog, forks) = (cluster.catalog(database), forks_of(&cluster, database));
        let view = DatabaseContext {
            cluster: &cluster,
            catalog: &catalog,
            forks: &forks,
        };
        for files in &forks {
            hurt_fork(&fork_cx(&view, files, level), &mut rng, &mut tally);
        }
    }
    let missed: Vec<String> = tally
        .missed
        .iter()
        .map(|(rule, words)| format!("{rule}: {words}"))
        .collect();
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
    let silent = PAGE_CHECKS.iter().filter(|check| {
        let wants = check.wants();
        let name = check.rules().first().map_or("", |rule| rule.name);
        wants.screened && wants.level <= level && !tally.spoke.contains(name)
    });
    let silent: Vec<&str> = silent
        .flat_map(|check| check.rules())
        .map(|rule| rule.name)
        .filter(|name| !UNPROVOKED.contains(name))
        .collect();
    assert!(silent.is_empty(), "no injury provoked these: {silent:?}");
    assert!(tally.wounds > 20_000, "{} injuries", tally.wounds);
    let of = |glance| tally.glances.get(&glance).copied().unwrap_or(0);
    assert!(
        of(FastPathVerdict::Plain) * 10 >= tally.wounds,
        "{:?}",
        tally.glances
    );
    let chained = of(FastPathVerdict::Right);
    assert!(
        level == Level::Pages || chained > 1_000,
        "{:?}",
        tally.glances
    );
}

#[test]
fn on_pages_of_18() {
    the_screen_keeps_its_promise(18, Level::Structure);
}

#[test]
fn on_pages_of_13() {
    the_screen_keeps_its_promise(13, Level::Structure);
}

#[test]
fn on_headers_alone() {
    the_screen_keeps_its_promise(18, Level::Pages);
}
