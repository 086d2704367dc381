//! A relation, its measures, and what they add up.

use std::collections::BTreeMap;
use std::ops::Range;

use pgclinic_cluster::{Catalog, ForkContext, RelKind};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::document::{MeasuredRelation, Sections};

use super::columns::Columns;
use super::pass::Gathered;
use super::places::Places;
use super::tally::Tally;
use super::{MeasureOptions, PageSums, Sums, Whole, sample};

/// What a sample cannot tell: it does not know the last page with a live row.
const NOT_OF_A_SAMPLE: (&str, &str) = ("table", "vacuum_truncates_bytes");

/// A relation, its measures, and what they have added up.
pub(super) struct Job<'a> {
    pub(super) fork: ForkContext<'a>,
    /// Ranges of blocks of a sample.
    pub(super) groups: Option<Vec<Range<u64>>>,
    pub(super) columns: Columns,
    /// Values are picked for a trial of their compression.
    pub(super) tries: bool,
    /// What the pass has gathered.
    pub(super) gathered: Gathered,
}

impl<'a> Job<'a> {
    /// `sample` is the share of a large relation that is read.
    pub(super) fn new(fork: ForkContext<'a>, catalog: &Catalog, options: &MeasureOptions) -> Self {
        let columns = Columns::of(&fork, catalog);
        let groups = options.sample_percent.and_then(|percent| {
            sample::groups(fork.blocks, percent, u64::from(fork.files.filenode))
        });
        Job {
            tries: options.trial_clock.is_some(),
            gathered: Gathered::default(),
            fork,
            groups,
            columns,
        }
    }

    /// What nothing adds up to.
    pub(super) fn nothing(&self) -> Tally {
        Tally {
            of_pages: PageSums::of(&self.fork).unwrap_or_default(),
            of_columns: self.columns.nothing(),
            ..Tally::default()
        }
    }

    fn all_of<'t>(&self, parts: impl Iterator<Item = &'t Tally>) -> Tally {
        let mut all = self.nothing();
        parts.for_each(|part| all.absorb(part));
        all
    }

    /// Parts of its sums: one, or for a sample those of the jackknife.
    pub(super) fn parts(&self) -> usize {
        match self.groups {
            Some(_) => sample::PARTS,
            None => 1,
        }
    }

    /// The part that pages from this block on belong to.
    pub(super) fn part_of(&self, first_block: u64) -> usize {
        match self.groups {
            Some(_) => sample::part_of(first_block),
            None => 0,
        }
    }

    /// Where its rows or leaves stand is of use.
    pub(super) fn wants_places(&self) -> bool {
        self.groups.is_none() && wants_places(&self.fork)
    }

    /// What is known of the places of its rows or leaves, if all of it is.
    pub(super) fn places(&self) -> Option<&Places> {
        self.gathered.places.as_ref()
    }

    /// There was no room for where its rows or leaves stand.
    pub(super) fn has_lost_places(&self) -> bool {
        self.wants_places() && self.gathered.places.is_none()
    }

    /// Where its rows stand is not kept because there are so many.
    pub(super) fn is_too_large(&self) -> bool {
        self.fork.blocks > PLACES_BLOCKS_MAX || self.has_lost_places()
    }

    /// The server has removed or truncated the file since it was listed: its figures would be of a
    /// part of it.
    pub(super) fn is_moved(&self) -> bool {
        self.gathered.is_moved
    }

    /// Its figures, with those of keys and of the trial of each column.
    pub(super) fn finish(
        self,
        keys: Option<Sections>,
        trials: Vec<Option<Sections>>,
    ) -> MeasuredRelation {
        let parts = &self.gathered.parts;
        let mut whole = self.all_of(parts.iter());
        let pages = whole.pages;
        if self.groups.is_some() {
            whole.scale(self.growth_of(pages));
        }
        let mut sections = self.sections(&whole);
        let mut intervals = BTreeMap::new();
        if self.groups.is_some() {
            let (section, name) = NOT_OF_A_SAMPLE;
            if let Some(figure) = sections.get_mut(section).and_then(|own| own.get_mut(name)) {
                *figure = None;
            }
            intervals = self.intervals(parts, &sections, pages);
        }
        sections.extend(keys.unwrap_or_default());
        let (fork, relation) = (&self.fork, self.fork.relation);
        let mut columns = self.columns.figures(fork, &whole.of_columns);
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
        tally.of_pages.sections(&whole)
    }

    fn intervals(
        &self,
        parts: &[Tally],
        figures: &Sections,
        pages: u64,
    ) -> BTreeMap<String, BTreeMap<String, [f64; 2]>> {
        let without: Vec<Sections> = (0..parts.len())
            .filter_map(|left_out| {
                let others = parts.iter().enumerate();
                let others = others.filter(|(part, _)| *part != left_out);
                let mut rest = self.all_of(others.map(|(_, part)| part));
                (rest.pages > 0).then(|| {
                    rest.scale(self.growth_of(rest.pages));
                    self.sections(&rest)
                })
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
fn wants_places(fork: &ForkContext<'_>) -> bool {
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

/// Larger tables are taken as they lie: a row's place is that of the line pointer that its index
/// names.
const PLACES_BLOCKS_MAX: u64 = 65_536;
