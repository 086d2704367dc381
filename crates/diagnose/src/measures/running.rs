//! A cluster whose server is at work: figures as the files have them when they are read.
//!
//! Names, columns and what became of transactions are those of the end of the WAL; pages come as the files have them. A relation
//! that is removed, rewritten or cut before all of it was read is measured anew by a newer look, together with its indexes and
//! its long values, or told as dropped.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_spill::Part;
use pgclinic_cluster::wal::ReplaySpace;
use pgclinic_cluster::{Catalog, Cluster, ForkFiles, Relation, selected};
use pgclinic_format::Oid;
use pgclinic_model::Progress;
use pgclinic_model::document::{Level, MeasureDocument, NotChecked};

use super::job::Job;
use super::pass;
use super::run::{self, MeasureOptions};
use crate::check::{DatabaseCx, ForkCx};
use crate::walker::fork_cx;

/// Looks at what moved while it was read, the first one included.
const LOOKS_MAX: usize = 5;

const NOTE: &str = "a server is at work: figures are as the files had them, each relation at the moment in which it was read; what only the server's memory has is not in them";

/// The files as they are now, and the same with catalogs and status files as WAL tells them.
struct Look {
    view: Cluster,
    names: Option<Cluster>,
}

impl Look {
    /// Nothing where the cluster cannot be opened any more.
    fn take(cluster: &Cluster, options: &MeasureOptions) -> Result<Self, String> {
        let space = ReplaySpace {
            memory: options.memory.part(Part::ReplayedNames),
            spill_folder: None,
        };
        let look = cluster.steady_with(|view| view.replayed_catalogs(&space));
        let (view, replayed) = look.map_err(|error| error.to_string())?;
        let names = replayed.map(|(after, _)| after);
        Ok(Look { view, names })
    }

    fn names(&self) -> &Cluster {
        self.names.as_ref().unwrap_or(&self.view)
    }
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

    fn add(&mut self, fork: &ForkCx<'_>, catalog: &Catalog) {
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

/// The table that an index, a TOAST relation or its index belongs to; any other relation stands for itself.
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
    let mut open: BTreeMap<Oid, Wanted> = BTreeMap::new();
    for look in 1..=LOOKS_MAX {
        let now = match Look::take(cluster, options) {
            Ok(now) => now,
            Err(why) => {
                let what = "what the server moved while it was read".to_owned();
                let why = format!("the cluster cannot be opened again: {why}");
                run::leave_out(&mut document.coverage, what, why);
                break;
            }
        };
        if look == 1 {
            run::tell_troubles(&now.view, &mut document.coverage);
            let all = run::databases(now.names(), options).into_iter();
            open.extend(all.map(|database| (database, Wanted::All)));
        }
        let round = Round {
            now: &now,
            options,
            progress,
            is_last: look == LOOKS_MAX,
        };
        open = round.run(open, document);
        if open.is_empty() || progress.is_interrupted() {
            break;
        }
    }
    let place = |own: &pgclinic_model::document::MeasuredRelation| {
        let names = (own.schema.clone(), own.relation.clone());
        (own.database_oid, names, own.path.clone())
    };
    document.relations.sort_by_cached_key(place);
}

struct Round<'a> {
    now: &'a Look,
    options: &'a MeasureOptions,
    progress: &'a dyn Progress,
    is_last: bool,
}

impl Round<'_> {
    /// What is left for a newer look.
    fn run(
        &self,
        open: BTreeMap<Oid, Wanted>,
        document: &mut MeasureDocument,
    ) -> BTreeMap<Oid, Wanted> {
        let mut left = BTreeMap::new();
        for (database, wanted) in open {
            if self.progress.is_interrupted() {
                break;
            }
            if let Some(wanted) = self.database(database, wanted, document) {
                left.insert(database, wanted);
            }
        }
        left
    }

    fn database(
        &self,
        database: Oid,
        wanted: Wanted,
        document: &mut MeasureDocument,
    ) -> Option<Wanted> {
        let Look { view, .. } = self.now;
        let names = self.now.names();
        if database != 0 && !names.databases.contains_key(&database) {
            let what = format!("database {database}");
            document.coverage.not_checked.push(dropped(what));
            return None;
        }
        let catalog = names.catalog(database);
        let (forks, troubles) = run::forks_of(view, database);
        let mut troubles = troubles.iter().chain(&catalog.troubles).peekable();
        if troubles.peek().is_some() && !self.is_last {
            return Some(wanted);
        }
        for trouble in troubles {
            let (what, why) = (trouble.what.clone(), trouble.why.clone());
            run::leave_out(&mut document.coverage, what, why);
        }
        tell_dropped(&wanted, &catalog, document);
        let moved = self.relations((&catalog, &forks), &wanted, document);
        match moved.is_empty() || self.is_last {
            false => Some(Wanted::Moved(moved)),
            true => {
                self.tell_unsteady(moved, document);
                self.tell_whole((&catalog, &forks), document);
                None
            }
        }
    }

    /// Measures the relations that are wanted; what moved meanwhile is left out.
    fn relations(
        &self,
        (catalog, forks): (&Catalog, &[ForkFiles]),
        wanted: &Wanted,
        document: &mut MeasureDocument,
    ) -> Moved {
        let (options, view) = (self.options, &self.now.view);
        let cx = DatabaseCx {
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
            .map(|files| ForkCx {
                // Transactions are those of the catalogs.
                cluster: Some(self.now.names()),
                ..fork_cx(&cx, files, Level::Pages)
            })
            .map(|fork| Job::new(fork, catalog, options))
            .collect();
        let source = view.source().as_ref();
        pass::run(
            source,
            &mut jobs,
            options,
            self.progress,
            &mut document.coverage,
        );
        let mut moved = Moved::default();
        for job in jobs.iter().filter(|job| job.is_moved()) {
            moved.add(&job.fork, catalog);
        }
        let (_, whole): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .partition(|job| moved.holds(job.fork.files, catalog));
        document.coverage.relations += whole.len() as u64;
        let coverage = &mut document.coverage;
        let mut measured = run::figures(whole, options, self.progress, coverage);
        document.relations.append(&mut measured);
        moved
    }

    /// What moved at every look.
    fn tell_unsteady(&self, moved: Moved, document: &mut MeasureDocument) {
        for name in moved.tables.into_values() {
            let why = "the server cut or rewrote it each time while it was read";
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
        let cx = DatabaseCx {
            cluster: self.now.names(),
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

/// Nothing that is there was left out.
fn dropped(what: String) -> NotChecked {
    NotChecked {
        what,
        why: "dropped while the run went on".into(),
        inherent: true,
    }
}
