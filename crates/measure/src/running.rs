//! A cluster whose server is at work: figures as the files have them when they are read.
//!
//! Names, columns and what became of transactions are those of the end of the WAL; pages come as
//! the files have them. A relation that is removed, rewritten or cut before all of it was read is
//! measured anew by a newer look, together with its indexes and its long values, or told as
//! dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::mem::take;

use pgclinic_cluster::wal::ReplaySpace;
use pgclinic_cluster::{
    Catalog, Cluster, DatabaseContext, ForkContext, ForkFiles, OpenError, ReadGap, Relation,
    selected,
};
use pgclinic_format::Oid;
use pgclinic_model::Progress;
use pgclinic_model::document::{MeasureDocument, NotChecked};
use pgclinic_scan::live::{CatalogReads, FreshView, Left, Round, Rounds, RoundsEnd, rounds};
use pgclinic_spill::Part;

use super::job::Job;
use super::losses::{self, MissingFile};
use super::pass;
use super::run::{self, MeasureOptions};

const NOTE: &str = "a server is running: figures are as the files had them, each relation at the moment in which it was read; what only the server's memory has is not in them";

/// The files as they are now, and the same with catalogs and status files as WAL tells them.
fn view_of<'v>(cluster: &Cluster, options: &MeasureOptions) -> Result<FreshView<'v>, OpenError> {
    let space = ReplaySpace {
        memory: options.memory.part(Part::ReplayedNames),
        spill_folder: None,
    };
    // A round takes longer than the server needs for any page: nobody waits.
    FreshView::take(cluster, &|| {}, &|view| view.replayed_catalogs(&space))
}

/// What is measured of a database.
enum Wanted {
    All,
    Moved(Moved),
}

/// What was not there any more when it was to be read.
#[derive(Default)]
struct Moved {
    /// Tables with all that belongs to them, by OID, with their names.
    tables: BTreeMap<Oid, String>,
    /// Files of relations that no catalog knew.
    files: BTreeSet<(Oid, Oid)>,
}

impl Moved {
    fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.files.is_empty()
    }

    fn add(&mut self, fork: &ForkContext<'_>, catalog: &Catalog) {
        match fork.relation {
            None => {
                let files = (fork.files.home.tablespace, fork.files.filenode);
                self.files.insert(files);
            }
            Some(relation) => {
                let table = table_of(catalog, relation);
                let known = catalog.relations.get(&table).unwrap_or(relation);
                self.tables.insert(table, known.qualified_name());
            }
        }
    }

    fn holds(&self, files: &ForkFiles, catalog: &Catalog) -> bool {
        let number = (files.home.tablespace, files.filenode);
        let relation = catalog.by_file(number.0, number.1);
        let table = relation.map(|relation| table_of(catalog, relation));
        self.files.contains(&number) || table.is_some_and(|table| self.tables.contains_key(&table))
    }
}

/// The table that an index, a TOAST relation or its index belongs to; any other relation stands for
/// itself.
fn table_of(catalog: &Catalog, relation: &Relation) -> Oid {
    let of_index = relation.index.as_ref().map(|index| index.table);
    let table = of_index.unwrap_or(relation.oid);
    let owner = catalog.relations.get(&table).map(|own| own.toast_of);
    owner.filter(|owner| *owner != 0).unwrap_or(table)
}

/// Measures all that is asked for.
pub(super) fn measure(
    cluster: &Cluster,
    options: &MeasureOptions,
    progress: &dyn Progress,
    document: &mut MeasureDocument,
) {
    document.notes.push(NOTE.into());
    let mut run = Run {
        cluster,
        options,
        progress,
        document,
        open: BTreeMap::new(),
        missing: BTreeMap::new(),
        catalog_reads: CatalogReads::default(),
    };
    if let Ok(RoundsEnd::Lost(why)) = rounds(&mut run, progress) {
        let what = "what the server moved while it was read".to_owned();
        let why = format!("the cluster cannot be opened again: {why}");
        run::leave_out(&mut document.coverage, what, why);
    }
    let place = |own: &pgclinic_model::document::MeasuredRelation| {
        let names = (own.schema.clone(), own.relation.clone());
        (own.database_oid, names, own.path.clone())
    };
    document.relations.sort_by_cached_key(place);
}

struct Run<'a> {
    cluster: &'a Cluster,
    options: &'a MeasureOptions,
    progress: &'a dyn Progress,
    document: &'a mut MeasureDocument,
    open: BTreeMap<Oid, Wanted>,
    /// Files that were missing when their database was looked at last.
    missing: BTreeMap<Oid, BTreeSet<MissingFile>>,
    catalog_reads: CatalogReads,
}

impl Rounds for Run<'_> {
    type View = FreshView<'static>;
    type Failure = Infallible;

    fn view(&mut self, _: Round) -> Result<Option<FreshView<'static>>, OpenError> {
        view_of(self.cluster, self.options).map(Some)
    }

    /// Measures what is open, and leaves the rest for a newer view.
    fn round(&mut self, view: &FreshView<'static>, round: Round) -> Result<Left, Infallible> {
        if round.is_first() {
            run::tell_troubles(view.cluster(), &mut self.document.coverage);
            let names = view.replayed_cluster();
            run::tell_passed_over(names, self.options, &mut self.document.coverage);
            let all = selected::databases(&self.options.selection, names).into_iter();
            self.open
                .extend(all.map(|database| (database, Wanted::All)));
        }
        for (database, wanted) in take(&mut self.open) {
            if self.progress.is_interrupted() {
                break;
            }
            let one = OneRound {
                view,
                options: self.options,
                progress: self.progress,
                round,
            };
            let before = Before {
                catalog_reads: &mut self.catalog_reads,
                missing: self.missing.entry(database).or_default(),
            };
            if let Some(wanted) = one.database(database, wanted, before, self.document) {
                self.open.insert(database, wanted);
            }
        }
        Ok(if self.open.is_empty() {
            Left::Nothing
        } else {
            Left::Something
        })
    }
}

/// What earlier rounds saw of a database.
struct Before<'a> {
    catalog_reads: &'a mut CatalogReads,
    missing: &'a mut BTreeSet<MissingFile>,
}

struct OneRound<'a> {
    view: &'a FreshView<'a>,
    options: &'a MeasureOptions,
    progress: &'a dyn Progress,
    round: Round,
}

impl OneRound<'_> {
    /// What is left for a newer view.
    fn database(
        &self,
        database: Oid,
        wanted: Wanted,
        before: Before<'_>,
        document: &mut MeasureDocument,
    ) -> Option<Wanted> {
        let catalog_reads = before.catalog_reads;
        let names = self.view.replayed_cluster();
        if database != 0 && !names.databases.contains_key(&database) {
            let what = format!("database {database}");
            document.coverage.not_checked.push(dropped(what));
            return None;
        }
        let catalog = names.catalog(database);
        let (forks, troubles) = run::forks_of(self.view.cluster(), database);
        let is_torn = !troubles.is_empty() || !catalog.troubles.is_empty();
        if !is_torn {
            catalog_reads.are_whole(database);
        } else if catalog_reads.are_read_again(&catalog, self.view.position())
            && !self.round.is_last()
        {
            return Some(wanted);
        }
        for trouble in troubles.iter().chain(&catalog.troubles) {
            tell_trouble(trouble, document);
        }
        tell_dropped(&wanted, &catalog, document);
        let moved = self.relations((&catalog, &forks), &wanted, document);
        let is_unsure = self.tell_missing((&catalog, &forks), before.missing, document);
        if (!moved.is_empty() || is_unsure) && !self.round.is_last() {
            Some(Wanted::Moved(moved))
        } else {
            self.tell_unsteady(moved, document);
            self.tell_whole((&catalog, &forks), document);
            None
        }
    }

    /// Measures the relations that are wanted; what moved meanwhile is left out.
    fn relations(
        &self,
        (catalog, forks): (&Catalog, &[ForkFiles]),
        wanted: &Wanted,
        document: &mut MeasureDocument,
    ) -> Moved {
        let (options, view) = (self.options, self.view.cluster());
        let cx = DatabaseContext {
            cluster: view,
            catalog,
            forks,
        };
        let is_wanted = |files: &&ForkFiles| match wanted {
            Wanted::All => true,
            Wanted::Moved(moved) => moved.holds(files, catalog),
        };
        let chosen = forks.iter().filter(|files| run::is_measured(files));
        let chosen = chosen.filter(|files| selected::dependent(&options.selection, files, catalog));
        let mut jobs: Vec<Job<'_>> = chosen
            .filter(is_wanted)
            .filter(|files| !run::is_unknown(&cx, files, &mut document.coverage))
            .map(|files| ForkContext {
                // Transactions are those of the catalogs.
                cluster: Some(self.view.replayed_cluster()),
                ..ForkContext::new(&cx, files)
            })
            .map(|fork| Job::new(fork, catalog, options))
            .collect();
        let source = view.source().as_ref();
        pass::run(
            source,
            &mut jobs,
            options,
            (pass::Reader::Own, self.progress),
            &mut document.coverage,
        );
        let mut moved = Moved::default();
        for job in jobs.iter().filter(|job| job.is_moved()) {
            moved.add(&job.fork, catalog);
        }
        let (_, whole): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .partition(|job| moved.holds(job.fork.files, catalog));
        run::passed(&whole, &mut document.coverage);
        let coverage = &mut document.coverage;
        let mut measured = run::figures(whole, options, self.progress, coverage);
        document.relations.append(&mut measured);
        moved
    }

    /// Files that are missing at two looks are gone; whether some were missing at this one for the
    /// first time.
    fn tell_missing(
        &self,
        (catalog, forks): (&Catalog, &[ForkFiles]),
        before: &mut BTreeSet<MissingFile>,
        document: &mut MeasureDocument,
    ) -> bool {
        let cx = DatabaseContext {
            cluster: self.view.cluster(),
            catalog,
            forks,
        };
        let mut is_unsure = false;
        let mut now = BTreeSet::new();
        for (file, gap) in losses::missing_now(&cx, self.options) {
            if before.contains(&file) {
                gap.tell(&mut document.coverage);
            } else {
                is_unsure = true;
            }
            now.insert(file);
        }
        *before = now;
        is_unsure
    }

    /// What moved at every look.
    fn tell_unsteady(&self, moved: Moved, document: &mut MeasureDocument) {
        run::skipped(moved.tables.len(), &mut document.coverage);
        for name in moved.tables.into_values() {
            let why = "the server truncated or rewrote it each time while it was read";
            run::leave_out(&mut document.coverage, name, why.into());
        }
    }

    fn tell_whole(
        &self,
        (catalog, forks): (&Catalog, &[ForkFiles]),
        document: &mut MeasureDocument,
    ) {
        if catalog.database == 0 || self.progress.is_interrupted() {
            return;
        }
        let own = document.relations.iter();
        let own = own.filter(|own| own.database_oid == catalog.database);
        let measured: Vec<_> = own.cloned().collect();
        let cx = DatabaseContext {
            cluster: self.view.replayed_cluster(),
            catalog,
            forks,
        };
        run::tell_database(&cx, self.options, &measured, document);
    }
}

/// Tables that were there when they were to be read, and have no entry in the catalogs now.
fn tell_dropped(wanted: &Wanted, catalog: &Catalog, document: &mut MeasureDocument) {
    let Wanted::Moved(moved) = wanted else {
        return;
    };
    let tables = moved.tables.iter();
    let gone = tables.filter(|(oid, _)| !catalog.relations.contains_key(oid));
    let gone = gone.map(|(_, name)| dropped(name.clone()));
    document.coverage.not_checked.extend(gone);
}

/// Once, however many rounds come to the database after its catalogs are taken as they are.
fn tell_trouble(trouble: &ReadGap, document: &mut MeasureDocument) {
    let mut told = document.coverage.not_checked.iter();
    if !told.any(|gap| gap.what == trouble.what && gap.why == trouble.why) {
        let (what, why) = (trouble.what.clone(), trouble.why.clone());
        run::leave_out(&mut document.coverage, what, why);
    }
}

/// Nothing that is there was left out.
fn dropped(what: String) -> NotChecked {
    NotChecked {
        what,
        why: "dropped while the run went on".into(),
        inherent: true,
    }
}
