//! A relation, its measures, and what they add up.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, RwLock, RwLockReadGuard};

use pgclinic_cluster::{Catalog, RelKind};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::document::{MeasuredRelation, Sections};

use super::MeasureOptions;
use super::columns::{Columns, PlacedRow, RowWalk};
use super::compression_trial::Picked;
use super::page_rows::{PageRow, judge};
use super::places::Places;
use super::{LeafLook, MEASURES, Measure, PageAt, Sums, Whole, named, sample};
use crate::check::ForkCx;

/// What a sample cannot tell: it does not know the last page with a live row.
const NOT_OF_A_SAMPLE: (&str, &str) = ("table", "vacuum_truncates_bytes");

/// A relation, its measures, and what they have added up.
pub(super) struct Job<'a> {
    pub(super) fork: ForkCx<'a>,
    /// Ranges of blocks of a sample.
    pub(super) groups: Option<Vec<Range<u64>>>,
    measures: Vec<&'static dyn Measure>,
    columns: Columns,
    /// One, or for a sample one for each part of the jackknife.
    parts: Vec<Mutex<Tally>>,
    places: RwLock<Places>,
    /// By column; empty where no trial was asked for.
    picked: Mutex<Vec<Picked>>,
    tries: bool,
    keeps_places: AtomicBool,
    /// Not all of the file is there any more.
    moved: AtomicBool,
}

/// What was added up.
#[derive(Clone, Default)]
pub(super) struct Tally {
    sums: Vec<Sums>,
    /// By column and measure.
    columns: Vec<Vec<Sums>>,
    pages: u64,
    empty_pages: u64,
    broken_pages: u64,
}

impl Tally {
    /// Pages that could not be read.
    pub(super) fn broken(pages: u64) -> Self {
        Tally {
            pages,
            broken_pages: pages,
            ..Tally::default()
        }
    }

    fn absorb(&mut self, other: &Tally) {
        absorb_all(&mut self.sums, &other.sums);
        let columns = self.columns.len().max(other.columns.len());
        self.columns.resize(columns, Vec::new());
        for (own, more) in self.columns.iter_mut().zip(&other.columns) {
            absorb_all(own, more);
        }
        self.pages += other.pages;
        self.empty_pages += other.empty_pages;
        self.broken_pages += other.broken_pages;
    }

    /// As if the whole relation had been seen.
    fn scaled(&self, times: f64) -> Tally {
        let grown = |amount: u64| (amount as f64 * times).round() as u64;
        let all = |sums: &Vec<Sums>| sums.iter().map(|sums| sums.scaled(times)).collect();
        Tally {
            sums: all(&self.sums),
            columns: self.columns.iter().map(all).collect(),
            pages: grown(self.pages),
            empty_pages: grown(self.empty_pages),
            broken_pages: grown(self.broken_pages),
        }
    }
}

fn absorb_all(own: &mut Vec<Sums>, more: &[Sums]) {
    own.resize(own.len().max(more.len()), Sums::default());
    for (sums, more) in own.iter_mut().zip(more) {
        sums.absorb(more);
    }
}

impl<'a> Job<'a> {
    /// `sample` is the share of a large relation that is read.
    pub(super) fn new(fork: ForkCx<'a>, catalog: &Catalog, options: &MeasureOptions) -> Self {
        let measures = MEASURES.iter().copied();
        let measures: Vec<_> = measures.filter(|measure| measure.fits(&fork)).collect();
        let columns = Columns::of(&fork, catalog);
        let groups = options.sample_percent.and_then(|percent| {
            sample::groups(fork.blocks, percent, u64::from(fork.files.filenode))
        });
        let parts = if groups.is_some() { sample::PARTS } else { 1 };
        let keeps_places = groups.is_none() && wants_places(&fork);
        Job {
            parts: (0..parts).map(|_| Mutex::default()).collect(),
            places: RwLock::default(),
            tries: options.trial_clock.is_some(),
            picked: Mutex::default(),
            keeps_places: AtomicBool::new(keeps_places),
            moved: AtomicBool::new(false),
            fork,
            groups,
            measures,
            columns,
        }
    }

    /// Adds up the pages of a chunk. What is kept of places is paid out of `room`.
    pub(super) fn chunk(&self, bytes: &[u8], first: u64, room: &AtomicI64) {
        let mut work = Work {
            job: self,
            tally: Tally {
                sums: vec![Sums::default(); self.measures.len()],
                ..Tally::default()
            },
            walk: self.columns.walk(&self.fork, self.tries),
            places: self
                .keeps_places
                .load(Ordering::Relaxed)
                .then(Places::default),
        };
        let size = usize::try_from(self.fork.build.block_size).unwrap_or(8192);
        let mut rows = Vec::new();
        for (bytes, block) in bytes.chunks_exact(size).zip(first..) {
            let block = BlockNo::try_from(block).unwrap_or(BlockNo::MAX);
            work.page(bytes, block, &mut rows);
        }
        let (mut tally, places) = (work.tally, work.places);
        if let Some(walk) = work.walk {
            let (sums, picked) = walk.finish();
            tally.columns = sums;
            self.keep_picked(picked);
        }
        if let Some(places) = places {
            self.keep(places, room);
        }
        self.absorb(first, &tally);
    }

    fn keep_picked(&self, picked: Vec<Picked>) {
        let mut own = self.picked.lock().expect("no thread panics with values");
        let columns = own.len().max(picked.len());
        own.resize(columns, Picked::default());
        for (own, more) in own.iter_mut().zip(picked) {
            own.absorb(more);
        }
    }

    /// Where there is no room for all places, none are kept.
    fn keep(&self, places: Places, room: &AtomicI64) {
        let bytes = i64::try_from(places.bytes()).unwrap_or(i64::MAX);
        let mut own = self.places.write().expect("no thread panics with places");
        if room.fetch_sub(bytes, Ordering::Relaxed) >= bytes {
            own.absorb(places);
            return;
        }
        self.keeps_places.store(false, Ordering::Relaxed);
        let held = i64::try_from(own.bytes()).unwrap_or(i64::MAX);
        room.fetch_add(bytes + held, Ordering::Relaxed);
        *own = Places::default();
    }

    /// What is known of the places of its rows or leaves, if all of it is.
    pub(super) fn places(&self) -> Option<RwLockReadGuard<'_, Places>> {
        let kept = self.keeps_places.load(Ordering::Relaxed);
        kept.then(|| self.places.read().expect("no thread panics with places"))
    }

    /// There was no room for where its rows or leaves stand.
    pub(super) fn has_lost_places(&self) -> bool {
        self.groups.is_none()
            && wants_places(&self.fork)
            && !self.keeps_places.load(Ordering::Relaxed)
    }

    /// Where its rows stand is not kept because there are so many.
    pub(super) fn is_too_large(&self) -> bool {
        self.fork.blocks > PLACES_BLOCKS_MAX || self.has_lost_places()
    }

    /// The server has removed or cut the file since it was listed.
    pub(super) fn has_moved(&self) {
        self.moved.store(true, Ordering::Relaxed);
    }

    /// Its figures would be of a part of it.
    pub(super) fn is_moved(&self) -> bool {
        self.moved.load(Ordering::Relaxed)
    }

    /// Takes over what was added up from this block on.
    pub(super) fn absorb(&self, first: u64, tally: &Tally) {
        let part = match self.parts.len() {
            1 => 0,
            _ => sample::part_of(first),
        };
        if let Some(part) = self.parts.get(part) {
            part.lock()
                .expect("no thread panics with a tally")
                .absorb(tally);
        }
    }

    /// The values that were picked, by column.
    pub(super) fn take_picked(&self) -> Vec<Picked> {
        std::mem::take(&mut *self.picked.lock().expect("no thread panics with values"))
    }

    /// Its figures, with those of keys and of the trial of each column.
    pub(super) fn finish(
        self,
        keys: Option<Sections>,
        trials: Vec<Option<Sections>>,
    ) -> MeasuredRelation {
        let parts = self.parts.iter();
        let parts: Vec<Tally> = parts
            .map(|part| std::mem::take(&mut *part.lock().expect("no thread panics with a tally")))
            .collect();
        let mut whole = Tally::default();
        parts.iter().for_each(|part| whole.absorb(part));
        let pages = whole.pages;
        let whole = match self.groups {
            Some(_) => whole.scaled(self.growth_of(pages)),
            None => whole,
        };
        let mut sections = self.sections(&whole);
        let mut intervals = BTreeMap::new();
        if self.groups.is_some() {
            let (section, name) = NOT_OF_A_SAMPLE;
            if let Some(figure) = sections.get_mut(section).and_then(|own| own.get_mut(name)) {
                *figure = None;
            }
            intervals = self.intervals(&parts, &sections, pages);
        }
        sections.extend(keys.unwrap_or_default());
        let (fork, relation) = (&self.fork, self.fork.relation);
        let mut columns = self.columns.figures(fork, &whole.columns);
        for (column, trial) in columns.iter_mut().zip(trials) {
            column.sections.extend(trial.unwrap_or_default());
        }
        MeasuredRelation {
            database: fork.database.map(str::to_owned),
            schema: relation.map(|own| own.schema.clone()),
            relation: relation.map(|own| own.name.clone()),
            database_oid: fork.files.home.database,
            relation_oid: relation.map(|own| own.oid),
            filenode: fork.files.filenode,
            path: fork.files.path(0),
            kind: fork.kind,
            access_method: fork.method.map(|method| method.name().to_owned()),
            blocks: fork.blocks,
            bytes: fork.blocks.saturating_mul(u64::from(fork.build.block_size)),
            pages_not_measured: whole.broken_pages,
            sampled_pages: self.groups.is_some().then_some(pages),
            intervals,
            columns,
            sections,
        }
    }

    /// How many times as large the relation is as what was seen of it.
    fn growth_of(&self, pages: u64) -> f64 {
        self.fork.blocks as f64 / pages.max(1) as f64
    }

    fn sections(&self, tally: &Tally) -> Sections {
        let whole = Whole {
            fork: &self.fork,
            empty_pages: tally.empty_pages,
            broken_pages: tally.broken_pages,
        };
        let mut sections = Sections::new();
        let nothing = Sums::default();
        for (at, measure) in self.measures.iter().enumerate() {
            let values = measure.total(tally.sums.get(at).unwrap_or(&nothing), &whole);
            let named = named(measure.figures(), values);
            sections
                .entry(measure.section().into())
                .or_default()
                .extend(named);
        }
        sections
    }

    fn intervals(
        &self,
        parts: &[Tally],
        figures: &Sections,
        pages: u64,
    ) -> BTreeMap<String, BTreeMap<String, [f64; 2]>> {
        let without: Vec<Sections> = (0..parts.len())
            .filter_map(|left_out| {
                let mut rest = Tally::default();
                let others = parts
                    .iter()
                    .enumerate()
                    .filter(|(part, _)| *part != left_out);
                others.for_each(|(_, part)| rest.absorb(part));
                (rest.pages > 0).then(|| self.sections(&rest.scaled(self.growth_of(rest.pages))))
            })
            .collect();
        let unread = 1.0 - pages as f64 / self.fork.blocks.max(1) as f64;
        let mut intervals: BTreeMap<String, BTreeMap<String, [f64; 2]>> = BTreeMap::new();
        for (section, own) in figures {
            for name in own.keys() {
                let real = |own: &Sections| own.get(section)?.get(name)?.as_ref()?.as_real();
                let (whole, others) = (real(figures), without.iter().map(real));
                if let (Some(whole), Some(others)) = (whole, others.collect::<Option<Vec<_>>>())
                    && others.iter().any(|other| *other != whole)
                {
                    let interval = sample::interval(whole, &others, unread);
                    intervals
                        .entry(section.clone())
                        .or_default()
                        .insert(name.clone(), interval);
                }
            }
        }
        intervals
    }
}

/// Tables whose rows are ranked, and btrees whose leaves are walked.
fn wants_places(fork: &ForkCx<'_>) -> bool {
    let is_own = fork
        .relation
        .is_none_or(|relation| relation.oid < FIRST_NORMAL_OID);
    let is_toast = fork
        .relation
        .is_some_and(|relation| relation.kind == RelKind::Toast || relation.schema == "pg_toast");
    let wanted = match fork.method {
        Some(AccessMethod::Heap | AccessMethod::Btree) => !is_own && !is_toast,
        _ => false,
    };
    wanted && (fork.method == Some(AccessMethod::Btree) || fork.blocks <= PLACES_BLOCKS_MAX)
}

/// Larger tables are taken as they lie: a row's place is that of the line pointer that its index names.
const PLACES_BLOCKS_MAX: u64 = 65_536;

/// One thread's share of a job.
struct Work<'w, 'a> {
    job: &'w Job<'a>,
    tally: Tally,
    walk: Option<RowWalk<'w>>,
    places: Option<Places>,
}

impl Work<'_, '_> {
    fn page<'p>(&mut self, bytes: &'p [u8], block: BlockNo, rows: &mut Vec<PageRow<'p>>) {
        self.tally.pages += 1;
        let page = Page::parse(bytes);
        let Some(page) = page.filter(|page| page.is_new() || page.header_is_sane_to_the_server())
        else {
            self.tally.broken_pages += 1;
            return;
        };
        if page.is_new() {
            self.tally.empty_pages += 1;
            return;
        }
        let fork = &self.job.fork;
        let is_heap = fork.method == Some(AccessMethod::Heap);
        let is_btree = fork.method == Some(AccessMethod::Btree) && block > 0;
        let heap = is_heap.then(|| judge(page, fork, rows));
        let leaf = is_btree.then(|| LeafLook::of(page)).flatten();
        let at = PageAt {
            fork,
            block,
            heap: heap.as_ref(),
            leaf: leaf.as_ref(),
        };
        let mut whole = true;
        for (measure, sums) in self.job.measures.iter().zip(&mut self.tally.sums) {
            whole &= measure.page(page, &at, sums);
        }
        self.tally.broken_pages += u64::from(!whole);
        if let Some(walk) = &mut self.walk {
            walk_rows(walk, block, rows);
        }
        match (&mut self.places, leaf) {
            (Some(places), Some(look)) => places.add_leaf(block, &look),
            (Some(places), None) if is_heap => places.add_heap(page, block, rows),
            _ => {}
        }
    }
}

fn walk_rows(walk: &mut RowWalk<'_>, block: BlockNo, rows: &[PageRow<'_>]) {
    for row in rows.iter().filter(|row| row.is_live()) {
        let place = u64::from(block) << 16 | u64::from(row.number);
        if let Some(tuple) = row.tuple {
            walk.row(PlacedRow { tuple, place });
        }
    }
}
