//! A relation, its measures, and what they add up.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, RwLock, RwLockReadGuard};

use pgclinic_cluster::{Catalog, RelKind};
use pgclinic_format::heap_tuple::HEAP_HASVARWIDTH;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{
    Attribute, Attributes, BlockNo, ColumnLayout, HeapTuple, Page, PlainAttributes, Varlena,
    varlena,
};

use super::MeasureOptions;
use super::compression_trial::Picked;
use super::page_rows::{PageRow, judge};
use super::places::Places;
use super::{
    COLUMN_MEASURES, ColumnAt, ColumnMeasure, LeafLook, MEASURES, Measure, PageAt, StoredValue,
    Sums, Whole, sample,
};
use crate::check::ForkCx;
use crate::document::{Figure, MeasuredColumn, MeasuredRelation, Sections};

/// Relations with lower numbers are the server's own.
const FIRST_NORMAL_OID: u32 = 16384;
/// What a sample cannot tell: it does not know the last page with a live row.
const NOT_OF_A_SAMPLE: (&str, &str) = ("table", "vacuum_truncates_bytes");

/// A relation, its measures, and what they have added up.
pub(super) struct Job<'a> {
    pub(super) fork: ForkCx<'a>,
    /// Ranges of blocks of a sample.
    pub(super) groups: Option<Vec<Range<u64>>>,
    measures: Vec<&'static dyn Measure>,
    columns: Vec<ColumnJob>,
    only_varlena: bool,
    /// One, or for a sample one for each part of the jackknife.
    parts: Vec<Mutex<Tally>>,
    places: RwLock<Places>,
    /// By column; empty where no trial was asked for.
    picked: Mutex<Vec<Picked>>,
    tries: bool,
    keeps_places: AtomicBool,
}

struct ColumnJob {
    index: usize,
    type_name: String,
    measures: Vec<&'static dyn ColumnMeasure>,
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

    fn absorb(&mut self, other: Tally) {
        absorb_all(&mut self.sums, other.sums);
        self.columns
            .resize(self.columns.len().max(other.columns.len()), Vec::new());
        for (own, more) in self.columns.iter_mut().zip(other.columns) {
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

fn absorb_all(own: &mut Vec<Sums>, more: Vec<Sums>) {
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
        let columns = columns_of(&fork, catalog);
        let groups = options.sample_percent.and_then(|percent| {
            sample::groups(fork.blocks, percent, u64::from(fork.files.filenode))
        });
        let parts = if groups.is_some() { sample::PARTS } else { 1 };
        let keeps_places = groups.is_none() && wants_places(&fork);
        Job {
            only_varlena: columns.iter().all(|column| is_varlena(&fork, column)),
            parts: (0..parts).map(|_| Mutex::default()).collect(),
            places: RwLock::default(),
            tries: options.trial_clock.is_some(),
            picked: Mutex::new(match options.trial_clock {
                Some(_) => vec![Picked::default(); columns.len()],
                None => Vec::new(),
            }),
            keeps_places: AtomicBool::new(keeps_places),
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
            tally: self.empty_tally(),
            places: self
                .keeps_places
                .load(Ordering::Relaxed)
                .then(Places::default),
            picked: match self.tries {
                true => vec![Picked::default(); self.columns.len()],
                false => Vec::new(),
            },
        };
        let size = usize::try_from(self.fork.build.block_size).unwrap_or(8192);
        let mut rows = Vec::new();
        for (bytes, block) in bytes.chunks_exact(size).zip(first..) {
            let block = BlockNo::try_from(block).unwrap_or(BlockNo::MAX);
            work.page(bytes, block, &mut rows);
        }
        let Work {
            tally,
            places,
            picked,
            ..
        } = work;
        let mut own = self.picked.lock().expect("no thread panics with values");
        for (own, more) in own.iter_mut().zip(picked) {
            own.absorb(more);
        }
        drop(own);
        if let Some(places) = places {
            self.keep(places, room);
        }
        self.absorb(first, tally);
    }

    fn empty_tally(&self) -> Tally {
        let sums = |count: usize| vec![Sums::default(); count];
        Tally {
            sums: sums(self.measures.len()),
            columns: self
                .columns
                .iter()
                .map(|column| sums(column.measures.len()))
                .collect(),
            ..Tally::default()
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

    /// Takes over what was added up from this block on.
    pub(super) fn absorb(&self, first: u64, tally: Tally) {
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
        let parts: Vec<Tally> = self
            .parts
            .iter()
            .map(|part| part.lock().expect("no thread panics with a tally").clone())
            .collect();
        let mut whole = Tally::default();
        parts.iter().for_each(|part| whole.absorb(part.clone()));
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
        let mut columns = self.column_figures(&whole);
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
                others.for_each(|(_, part)| rest.absorb(part.clone()));
                (rest.pages > 0).then(|| self.sections(&rest.scaled(self.growth_of(rest.pages))))
            })
            .collect();
        let unread = 1.0 - pages as f64 / self.fork.blocks.max(1) as f64;
        let mut intervals: BTreeMap<String, BTreeMap<String, [f64; 2]>> = BTreeMap::new();
        for (section, own) in figures {
            for name in own.keys() {
                let whole = sample::as_number(figures, section, name);
                let others = without
                    .iter()
                    .map(|rest| sample::as_number(rest, section, name));
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

    fn column_figures(&self, tally: &Tally) -> Vec<MeasuredColumn> {
        let nothing = Sums::default();
        let measured = self.columns.iter().enumerate().filter_map(|(at, job)| {
            let column = self.at(job)?;
            let own = tally.columns.get(at);
            let mut sections = Sections::new();
            for (number, measure) in job.measures.iter().enumerate() {
                let sums = own.and_then(|own| own.get(number)).unwrap_or(&nothing);
                let named = named(measure.figures(), measure.total(sums, &column));
                sections
                    .entry(measure.section().into())
                    .or_default()
                    .extend(named);
            }
            Some(MeasuredColumn {
                number: column.column.attnum,
                name: column.column.name.clone(),
                type_name: job.type_name.clone(),
                sections,
            })
        });
        measured.collect()
    }

    fn at<'b>(&'b self, job: &'b ColumnJob) -> Option<ColumnAt<'b>> {
        let columns = self.fork.relation?.columns.as_ref()?;
        Some(ColumnAt {
            column: columns.get(job.index)?,
            type_name: &job.type_name,
            fork: &self.fork,
        })
    }
}

fn named(
    kinds: &[super::FigureKind],
    values: Vec<Option<Figure>>,
) -> impl Iterator<Item = (String, Option<Figure>)> {
    assert_eq!(values.len(), kinds.len(), "a value for each figure");
    kinds
        .iter()
        .zip(values)
        .map(|(kind, value)| (kind.name.to_owned(), value))
}

fn columns_of(fork: &ForkCx<'_>, catalog: &Catalog) -> Vec<ColumnJob> {
    let relation = fork
        .relation
        .filter(|relation| matches!(relation.kind, RelKind::Table | RelKind::MaterializedView));
    let columns = relation.and_then(|relation| relation.columns.as_deref());
    let live = columns
        .unwrap_or_default()
        .iter()
        .enumerate()
        .filter(|(_, column)| !column.dropped);
    let jobs = live.filter_map(|(index, column)| {
        let type_name = catalog.type_info(column.type_oid).name.clone();
        let at = ColumnAt {
            column,
            type_name: &type_name,
            fork,
        };
        let measures = COLUMN_MEASURES.iter().copied();
        let measures: Vec<_> = measures.filter(|measure| measure.fits(&at)).collect();
        (!measures.is_empty()).then_some(ColumnJob {
            index,
            type_name,
            measures,
        })
    });
    jobs.collect()
}

fn is_varlena(fork: &ForkCx<'_>, column: &ColumnJob) -> bool {
    let layout = fork.columns.and_then(|columns| columns.get(column.index));
    layout.is_some_and(|layout| layout.attlen == -1)
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
pub(super) const PLACES_BLOCKS_MAX: u64 = 65_536;

/// Columns that the short walk takes at once.
const PLAIN_COLUMNS: usize = 16;

/// One thread's share of a job.
struct Work<'w, 'a> {
    job: &'w Job<'a>,
    tally: Tally,
    places: Option<Places>,
    picked: Vec<Picked>,
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
        rows.clear();
        if fork.method == Some(AccessMethod::Heap) {
            judge(page, fork, rows);
        }
        let is_btree = fork.method == Some(AccessMethod::Btree) && block > 0;
        let leaf = is_btree.then(|| LeafLook::of(page)).flatten();
        let leaf = leaf.as_ref();
        let at = PageAt {
            fork,
            block,
            rows,
            leaf,
        };
        let mut whole = true;
        for (measure, sums) in self.job.measures.iter().zip(&mut self.tally.sums) {
            whole &= measure.page(page, &at, sums);
        }
        self.tally.broken_pages += u64::from(!whole);
        if !self.job.columns.is_empty() {
            let live = rows.iter().filter(|row| row.is_live());
            for row in live {
                let place = u64::from(block) << 16 | u64::from(row.number);
                row.tuple
                    .into_iter()
                    .for_each(|tuple| self.row(tuple, place));
            }
        }
        if let Some(places) = &mut self.places {
            match leaf {
                Some(look) => places.add_leaf(block, look),
                None if !is_btree => places.add_heap(page, block, rows),
                None => {}
            }
        }
    }

    fn row(&mut self, tuple: HeapTuple<'_>, place: u64) {
        let Some(layouts) = self.job.fork.columns else {
            return;
        };
        if self.job.only_varlena && !tuple.has(HEAP_HASVARWIDTH) {
            return;
        }
        let header_is_right = usize::from(tuple.t_hoff()) == tuple.expected_hoff()
            && usize::from(tuple.attribute_count()) <= layouts.len();
        if !header_is_right {
            return;
        }
        if tuple.null_bitmap().is_none() && self.plain_row(tuple, layouts, place) {
            return;
        }
        let mut wanted = (0..).zip(&self.job.columns).zip(&mut self.tally.columns);
        let Some(mut next) = wanted.next() else {
            return;
        };
        for (index, attribute) in Attributes::new(tuple, layouts).enumerate() {
            let Ok(attribute) = attribute else { return };
            let ((number, column), sums) = next;
            if index != column.index {
                next = ((number, column), sums);
                continue;
            }
            let bytes = match attribute {
                Attribute::Value(range) => tuple.bytes().get(range),
                Attribute::Null | Attribute::Missing => None,
            };
            if let Some(at) = self.job.at(column)
                && let Some(value) = stored(bytes, at.column.layout.attlen)
            {
                for (measure, sums) in column.measures.iter().zip(sums) {
                    measure.value(value, &at, sums);
                }
                if let (Some(picked), StoredValue::Varlena(..), Some(stored)) =
                    (self.picked.get_mut(number), value, bytes)
                {
                    picked.offer(place, stored, tuple.bytes().len());
                }
            }
            match wanted.next() {
                Some(more) => next = more,
                None => return,
            }
        }
    }
}

impl Work<'_, '_> {
    /// The short walk, for rows all of whose values stand as they are. `false`: it is not such a row, and nothing was counted.
    fn plain_row(&mut self, tuple: HeapTuple<'_>, layouts: &[ColumnLayout], place: u64) -> bool {
        let columns = &self.job.columns;
        if columns.len() > PLAIN_COLUMNS || usize::from(tuple.attribute_count()) != layouts.len() {
            return false;
        }
        let bytes = tuple.bytes();
        let mut ends = [(0, 0); PLAIN_COLUMNS];
        let mut walk = PlainAttributes::new(bytes, usize::from(tuple.t_hoff()));
        let mut wanted = columns.iter().zip(&mut ends).peekable();
        for (index, layout) in layouts.iter().enumerate() {
            let Some(payload) = walk.payload(*layout) else {
                return false;
            };
            if let Some((_, end)) = wanted.next_if(|(column, _)| column.index == index) {
                *end = (walk.end(), payload.len());
            }
            if wanted.peek().is_none() {
                break;
            }
        }
        for (number, (end, len)) in ends.iter().take(columns.len()).enumerate() {
            self.plain_value(
                number,
                bytes.get(..*end).unwrap_or_default(),
                *len,
                (place, bytes.len()),
            );
        }
        true
    }

    /// Counts the value whose payload of `len` bytes ends the bytes.
    fn plain_value(&mut self, number: usize, bytes: &[u8], len: usize, (place, row): (u64, usize)) {
        let (Some(column), Some(sums)) = (
            self.job.columns.get(number),
            self.tally.columns.get_mut(number),
        ) else {
            return;
        };
        let Some(at) = self.job.at(column) else {
            return;
        };
        let start = bytes.len().saturating_sub(len);
        let payload = bytes.get(start..).unwrap_or_default();
        let value = match at.column.layout.attlen {
            -1 => {
                // The last byte of a long header is 0 below 4 MiB, and a row is shorter.
                let is_short = start.checked_sub(1).and_then(|at| bytes.get(at));
                let header = if is_short.is_some_and(|byte| byte & 1 == 1) {
                    1
                } else {
                    4
                };
                if let Some(picked) = self.picked.get_mut(number) {
                    let stored = bytes.get(start.saturating_sub(header)..);
                    picked.offer(place, stored.unwrap_or_default(), row);
                }
                StoredValue::Varlena(Varlena::Plain(payload), len + header)
            }
            _ => StoredValue::Fixed(payload),
        };
        for (measure, sums) in column.measures.iter().zip(sums) {
            measure.value(value, &at, sums);
        }
    }
}

fn stored(bytes: Option<&[u8]>, attlen: i16) -> Option<StoredValue<'_>> {
    match attlen {
        -1 => {
            let (value, len) = varlena::parse(bytes?).ok()?;
            Some(StoredValue::Varlena(value, len))
        }
        _ => bytes.map(StoredValue::Fixed),
    }
}
