//! A cluster whose server is at work: everything is looked at, then what was made or grew
//! meanwhile, and then once more what seemed wrong.
//!
//! A page that is read while the server writes it may be torn; a file that was listed may be
//! dropped, rewritten or cut before it is read; a page may be younger than the WAL that was read.
//! So nothing above a note is told at first sight. Suspicious pages are put aside and read again
//! (`recheck.rs`); what checks of whole files find has to be found twice, with a newer look at
//! control file, WAL, catalogs and folders between, so that nothing which was there both times can
//! have been on its way.
//!
//! A run that goes on from a state knows by it which bytes of which files were looked at, and what
//! waits for a second look. What the server did in between is to it what the server does in a
//! pause: files that grew or were made meanwhile are looked at in any case.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use pgclinic_cluster::unreachable::tell_relations;
use pgclinic_cluster::wal::Replayed;
use pgclinic_cluster::{
    Catalog, Cluster, DatabaseContext, DatabaseDirectory, ForkFiles, OpenError, selected,
};
use pgclinic_format::Oid;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Progress;
use pgclinic_model::document::{CheckDocument, Finding, Level, NotChecked};
use pgclinic_model::plural;
use pgclinic_scan::LIVE_LIMITS;
use pgclinic_scan::live::{
    CatalogReads, FreshView, Left, LiveServer, Look, Round, Rounds, RoundsEnd, SecondLook,
    SuspectOf, ViewPosition, look_again, rounds,
};
use pgclinic_source::Presence;
use pgclinic_spill::Part;

use crate::check::ForkCx;
use crate::run_state::Spot;
use crate::walker::database_relations::DatabaseRelations;
use crate::walker::half_dropped;
use crate::walker::job::jobs_of;
use crate::walker::recheck::{NewerView, Recheck, print_of, tell_unseen};
use crate::walker::recovered::Clusters;
use crate::walker::relations::disconnected;
use crate::walker::resting_tables::RestingLook;
use crate::walker::run_ledger::RunLedger;
use crate::walker::{
    CheckOptions, ResumableRun, carry, catalogs, catalogs_at_once, check_against_files,
    check_whole, document, forks_of, pass, system_identifier,
};

/// Checks a cluster that was opened as [running](pgclinic_cluster::OpenOptions::running).
/// `elapsed_s` is left at 0: the clock is the caller's.
pub fn check_running(
    course: ResumableRun<'_>,
    cluster: &Cluster,
    options: &CheckOptions,
    progress: &dyn Progress,
    server: &dyn LiveServer,
) -> CheckDocument {
    let mut books = course.books();
    forget_what_is_gone(cluster, &mut books);
    let mut run = Run {
        cluster,
        options,
        progress,
        server,
        books,
        visited: course.begun(),
        half_dropped: BTreeSet::new(),
        left_behind: BTreeSet::new(),
        catalog_reads: CatalogReads::default(),
        course,
    };
    run.everything();
    run.again();
    run.losses();
    run.comparisons();
    run.databases_that_stayed();
    carry(cluster, options, &mut run.books);
    run.books.leave_unsettled(cluster, options.level);
    run.books.interrupted = progress.is_interrupted();
    if run.books.interrupted {
        run.books.skip(run.bytes_left());
    } else {
        run.course.is_complete(&run.books);
    }
    document::write(cluster, options, run.books)
}

/// What an earlier run looked at and is cut off by now is looked at again when something else
/// stands there.
fn forget_what_is_gone(cluster: &Cluster, books: &mut RunLedger) {
    books.looked_at.retain(|path, bytes| {
        let len = cluster.source().len(path);
        *bytes = len.as_ref().map_or(0, |len| (*bytes).min(*len));
        len.is_ok()
    });
}

struct Run<'a> {
    cluster: &'a Cluster,
    options: &'a CheckOptions,
    progress: &'a dyn Progress,
    server: &'a dyn LiveServer,
    course: ResumableRun<'a>,
    books: RunLedger,
    /// Databases whose catalogs were held against their files.
    visited: BTreeSet<Oid>,
    /// Databases that were half dropped at the first look.
    half_dropped: BTreeSet<Oid>,
    /// Directories that an interrupted `CREATE DATABASE` left, or one that is at work.
    left_behind: BTreeSet<Oid>,
    catalog_reads: CatalogReads,
}

impl<'a> Rounds for Run<'a> {
    type View = FreshView<'a>;
    type Failure = Infallible;

    /// What was opened, where that is of one moment; later a newer one, as long as there is
    /// anything to look at.
    fn view(&mut self, round: Round) -> Result<Option<FreshView<'a>>, OpenError> {
        let (cluster, options) = (self.cluster, self.options);
        if round.is_first() {
            let opened = || FreshView::of(cluster, &|view| names_of(view, options));
            if cluster.is_steady() {
                return Ok(Some(opened()));
            }
            let newer = newer(cluster, self.server, options);
            return Ok(Some(newer.unwrap_or_else(|error| {
                self.books.not_checked(lost(&error));
                opened()
            })));
        }
        let now = cluster.refresh();
        let is_left = now.map_or(true, |now| self.is_anything_left(&now));
        if is_left || self.is_open() {
            newer(cluster, self.server, options).map(Some)
        } else {
            Ok(None)
        }
    }

    fn round(&mut self, view: &FreshView<'a>, round: Round) -> Result<Left, Infallible> {
        self.all_databases(view, round);
        Ok(Left::Something)
    }
}

/// A newer view, with the catalogs as WAL tells them.
fn newer<'v>(
    cluster: &Cluster,
    server: &dyn LiveServer,
    options: &CheckOptions,
) -> Result<FreshView<'v>, OpenError> {
    let names = |view: &Cluster| names_of(view, options);
    FreshView::take(cluster, &|| server.wait(), &names)
}

fn names_of(view: &Cluster, options: &CheckOptions) -> Option<(Cluster, Replayed)> {
    view.replayed_catalogs(&options.names_space())
}

fn lost(why: &OpenError) -> NotChecked {
    NotChecked {
        what: "what the server made or changed while the run went on".into(),
        why: format!("the cluster cannot be opened again: {why}"),
        inherent: false,
    }
}

impl Run<'_> {
    fn everything(&mut self) {
        let progress = self.progress;
        match rounds(self, progress) {
            Ok(RoundsEnd::Lost(why)) => self.books.not_checked(lost(&why)),
            Ok(RoundsEnd::Unsettled) => self.tell_what_is_left(),
            Ok(RoundsEnd::Settled | RoundsEnd::Interrupted) => {}
        }
    }

    fn tell_what_is_left(&mut self) {
        let now = self.cluster.refresh().ok();
        if let Some(now) = now.filter(|now| self.is_anything_left(now)) {
            self.remember_what_is_left(&now);
            self.books.not_checked(NotChecked {
                what: "what the server added while the run came to its end".into(),
                why: "it writes as fast as it is read".into(),
                inherent: true,
            });
        }
    }

    /// Some database has bytes that were not looked at.
    fn is_anything_left(&self, now: &Cluster) -> bool {
        let databases = self.databases(now);
        databases
            .into_iter()
            .any(|database| self.has_grown(now, database))
    }

    /// A later run does not pass over what this one has not come to.
    fn remember_what_is_left(&mut self, now: &Cluster) {
        let asked = self.databases(now);
        let homes = now.homes.iter();
        let homes = homes.filter(|home| asked.contains(&home.database));
        let files = homes.flat_map(|home| now.files(home).unwrap_or_default());
        let left = files.filter(|files| self.is_left(now, files));
        let paths: Vec<String> = left.map(|files| files.path(0)).collect();
        self.books.unread.extend(paths);
    }

    /// Those that are asked for, with 0 for the shared relations.
    fn databases(&self, view: &Cluster) -> Vec<Oid> {
        let mut asked = selected::databases(&self.options.selection, view);
        asked.retain(|database| !self.left_behind.contains(database));
        asked
    }

    /// A database waits for a look at catalogs that are not on their way.
    fn is_open(&self) -> bool {
        let mut postponed = self.catalog_reads.databases();
        postponed.any(|database| !self.visited.contains(&database))
    }

    /// A page of the catalogs may have been half written when it was read.
    fn is_postponed(&mut self, catalog: &Catalog, position: ViewPosition) -> bool {
        let is_torn = !catalog.troubles.is_empty() && !self.visited.contains(&catalog.database);
        is_torn && self.catalog_reads.are_read_again(catalog, position)
    }

    /// No round has come to a database that is named, whether or not it has files.
    fn is_unvisited(&self, names: &Cluster, database: Oid) -> bool {
        let named = names.databases.get(&database);
        let is_named = named.is_some_and(|known| known.name.is_some() && !known.invalid);
        is_named && !self.visited.contains(&database)
    }

    /// Looks at what no round has looked at.
    fn all_databases(&mut self, fresh: &FreshView<'_>, round: Round) {
        let first = round.is_first();
        let (view, names) = (fresh.cluster(), fresh.replayed_cluster());
        let clusters = clusters(view, names);
        self.left_behind = selected::left_behind(&self.options.selection, names);
        if first {
            self.half_dropped = half_dropped::all(names);
        }
        if first && !self.course.is_whole_done() {
            self.books.troubles(&view.troubles);
            if self.options.selection.is_everything() {
                check_whole(clusters, self.options, &mut self.books);
            }
            self.course.whole_is_done(&self.books);
        }
        let mut databases = self.databases(view);
        databases.retain(|database| {
            first || self.has_grown(view, *database) || self.is_unvisited(names, *database)
        });
        for some in databases.chunks(catalogs_at_once(self.options)) {
            for catalog in catalogs(names, some, self.options.level) {
                if self.is_postponed(&catalog, fresh.position()) && !round.is_last() {
                    self.server.wait();
                } else if !self.progress.is_interrupted() {
                    self.database(clusters, &catalog, round);
                }
            }
        }
    }

    /// Tells what the catalogs of databases lack that no round came to, and that are still there:
    /// their rows in `pg_database` are lost, or a crash left their directories behind. And those
    /// whose `DROP DATABASE` was no work of this moment.
    fn databases_that_stayed(&mut self) {
        let mut left = self.databases(self.cluster);
        left.retain(|database| *database != 0 && !self.visited.contains(database));
        let is_done =
            left.is_empty() && self.half_dropped.is_empty() && self.left_behind.is_empty();
        if is_done || self.progress.is_interrupted() {
            return;
        }
        let fresh = match newer(self.cluster, self.server, self.options) {
            Ok(fresh) => fresh,
            Err(error) => return self.books.not_checked(lost(&error)),
        };
        let names = fresh.replayed_cluster();
        let still = &self.half_dropped & &half_dropped::all(names);
        half_dropped::tell(names, &still, &mut self.books);
        let left_behind = &self.left_behind & names.leftover_databases();
        for gap in selected::passed_over(names, &left_behind) {
            self.books.not_checked(gap);
        }
        let there: BTreeSet<Oid> = fresh
            .cluster()
            .homes
            .iter()
            .map(|home| home.database)
            .collect();
        left.retain(|database| there.contains(database));
        for database in left {
            let catalog = fresh.replayed_cluster().catalog(database);
            self.books.troubles(&catalog.troubles);
        }
    }

    /// A file of the database has bytes that were not looked at.
    fn has_grown(&self, view: &Cluster, database: Oid) -> bool {
        let mut homes = view.homes.iter().filter(|home| home.database == database);
        let visited = self.visited.contains(&database);
        homes.any(|home| match view.files(home) {
            Ok(files) => {
                let mut files = files.iter();
                files.any(|files| files.temporary.is_none() && self.is_left(view, files))
            }
            // What cannot be listed is told once, by the look that comes to the database.
            Err(_) => !visited && !is_gone(view, home),
        })
    }

    fn is_left(&self, view: &Cluster, files: &ForkFiles) -> bool {
        let mut segments = files.segments.iter();
        segments.any(|segment| {
            let looked_at = self.books.looked_at.get(&files.path(segment.number));
            whole_pages(view, segment.len) > looked_at.copied().unwrap_or(0)
        })
    }

    fn database(&mut self, clusters: Clusters<'_>, catalog: &Catalog, round: Round) {
        let view = clusters.cluster;
        let (mut forks, troubles) = forks_of(view, catalog);
        if is_dropped(view, catalog) || is_on_its_way(clusters, catalog) {
            return;
        }
        let first = self.visited.insert(catalog.database);
        if first {
            self.books.troubles(&catalog.troubles);
            self.books.unlisted(&troubles);
            tell_relations(view, catalog, &troubles, &mut self.books.coverage);
            let cx = DatabaseContext {
                cluster: view,
                catalog,
                forks: &forks,
            };
            check_against_files(clusters, &cx, self.options, &mut self.books);
        } else {
            forks.retain(|files| self.is_new(files) || self.is_left(view, files));
        }
        forks.retain(|files| self.is_told_enough(catalog, files, round));
        let cx = DatabaseContext {
            cluster: view,
            catalog,
            forks: &forks,
        };
        let before = self.books.counted_relations();
        let jobs = jobs_of(&cx, self.options, &mut self.books);
        // Each counts with its pages, so that a state counts those that are done.
        self.books.count_relations(before);
        if first {
            self.course.round_is_done(catalog, &[], &self.books);
        }
        for jobs in self.course.rounds_of_files(catalog, jobs) {
            self.files(view, catalog, &jobs);
        }
        self.mark(view, &forks);
        if !self.progress.is_interrupted() {
            self.course.database_is_done(catalog.database, &self.books);
        }
    }

    /// No round has met the file.
    fn is_new(&self, files: &ForkFiles) -> bool {
        !self.books.looked_at.contains_key(&files.path(0))
    }

    /// Of the databases that are asked for, what an interrupted run did not come to.
    fn bytes_left(&self) -> u64 {
        let selection = &self.options.selection;
        if !selection.is_everything() && !selection.is_of_whole_databases() {
            return 0;
        }
        let asked = self.databases(self.cluster);
        let homes = self.cluster.homes.iter();
        let forks = homes
            .filter(|home| asked.contains(&home.database))
            .filter_map(|home| self.cluster.files(home).ok());
        let all: u64 = forks.flatten().map(|files| files.bytes()).sum();
        all.saturating_sub(self.books.main_bytes)
    }

    /// Some relation files, of which nothing has to be done again.
    fn files(&mut self, view: &Cluster, catalog: &Catalog, jobs: &[ForkCx<'_>]) {
        let fresh = jobs.iter().filter(|job| self.is_new(job.files));
        let fresh: Vec<&ForkCx<'_>> = fresh.collect();
        self.pages(view, catalog, jobs);
        self.books.passed(fresh.into_iter());
        if !self.progress.is_interrupted() {
            self.mark(view, jobs.iter().map(|job| job.files));
            self.course.keep(&self.books);
        }
    }

    fn pages(&mut self, view: &Cluster, catalog: &Catalog, jobs: &[ForkCx<'_>]) {
        let options = self.options;
        let budget = options.memory.part(Part::LeafSummaries);
        let before = self.books.coverage.bytes_seen;
        self.progress.expect(pass::bytes(jobs, &self.books));
        let records = pass::run(
            jobs,
            pass::Reading::alone(view.source().as_ref(), self.progress),
            system_identifier(view),
            options,
            &budget,
            &mut self.books,
        );
        if options.since.is_none() && options.selection.blocks.is_none() {
            let relations = DatabaseRelations::new(jobs, records);
            self.books.suspicious.add(jobs, &relations);
            // At the deepest level all are compared.
            if options.level == Level::Structure && !self.progress.is_interrupted() {
                let found = disconnected((&relations, catalog), options, self.progress);
                let database = catalog.database;
                let found = found.into_iter().map(|owner| (database, owner));
                self.books.disconnected.extend(found);
            }
        }
        self.books.settle_damage(jobs);
        self.books.main_bytes += self.books.coverage.bytes_seen - before;
    }

    /// The catalogs name the file and the columns of its rows: where they were read while they
    /// changed, a later look tells more.
    fn is_told_enough(&self, catalog: &Catalog, files: &ForkFiles, round: Round) -> bool {
        let relation = catalog.by_file(files.home.tablespace, files.filenode);
        match relation {
            None => !round.is_first() || files.temporary.is_some(),
            Some(own) if own.page_method() == Some(AccessMethod::Heap) => {
                let needed = self.options.level >= Level::Structure;
                !needed || own.layouts.is_some() || round.is_last()
            }
            Some(_) => true,
        }
    }

    /// Nothing of these files is left for a later round but what will be added to them.
    fn mark<'f>(&mut self, view: &Cluster, forks: impl IntoIterator<Item = &'f ForkFiles>) {
        for files in forks {
            for segment in &files.segments {
                let bytes = whole_pages(view, segment.len);
                let own = self.books.looked_at.entry(files.path(segment.number));
                let own = own.or_default();
                *own = bytes.max(*own);
            }
        }
    }

    /// Looks twice at tables whose indexes know pages that their files do not have.
    fn losses(&mut self) {
        if self.books.suspicious.is_empty() || self.progress.is_interrupted() {
            return;
        }
        self.server.checkpoint();
        for _ in 0..LIVE_LIMITS.rounds {
            if let Err(why) = self.losses_twice() {
                self.books.not_checked(lost(&why));
                break;
            }
            // What an interruption kept from being seen is left to the run that goes on.
            if self.books.suspicious.is_empty() || self.progress.is_interrupted() {
                return;
            }
        }
        let suspicious = std::mem::take(&mut self.books.suspicious);
        suspicious.tell_unsettled(&mut self.books);
    }

    fn losses_twice(&mut self) -> Result<(), OpenError> {
        let (options, progress) = (self.options, self.progress);
        let mut suspicious = std::mem::take(&mut self.books.suspicious);
        let look = |run: &Self| {
            let view = newer(run.cluster, run.server, options)?;
            Ok(suspicious.look(&view, options, progress))
        };
        let looks = look(self).and_then(|first| {
            self.server.wait();
            Ok((first, look(self)?))
        });
        if let Ok((first, second)) = &looks
            && !progress.is_interrupted()
        {
            suspicious.settle(first, second, &mut self.books);
        }
        self.books.suspicious = suspicious;
        looks.map(drop)
    }

    /// Compares tables that rest as those of a stopped cluster: below the deepest level those whose
    /// indexes or sequences seemed wrong.
    fn comparisons(&mut self) {
        let is_whole = self.options.since.is_none() && self.options.selection.blocks.is_none();
        let is_deep = self.options.level >= Level::Full;
        let is_asked = is_deep || !self.books.disconnected.is_empty();
        if !is_asked || !is_whole || self.progress.is_interrupted() {
            return;
        }
        self.server.checkpoint();
        for _ in 0..LIVE_LIMITS.rounds {
            match self.compared_twice() {
                Ok(true) => return,
                Ok(false) => {}
                Err(why) => return self.books.not_checked(lost(&why)),
            }
        }
        let gap = NotChecked {
            what: "what comparisons of rows with index entries found".into(),
            why: "no two looks came without a checkpoint in between and with WAL that could be read whole: check again while the server writes less, or stop it".into(),
            inherent: false,
        };
        self.books.stays_open(None, gap);
    }

    /// Whether two looks could be held against each other, or the first found all sound.
    fn compared_twice(&mut self) -> Result<bool, OpenError> {
        let mut look = RestingLook {
            options: self.options,
            progress: self.progress,
            only: (self.options.level < Level::Full).then(|| self.books.disconnected.clone()),
        };
        let view = newer(self.cluster, self.server, self.options)?;
        let Some(mut first) = look.at(&view) else {
            self.server.wait();
            return Ok(false);
        };
        if !first.are_sound() && !self.progress.is_interrupted() {
            self.server.wait();
            look.only = Some(first.suspicious());
            let view = newer(self.cluster, self.server, self.options)?;
            let second = look.at(&view);
            let is_settled = second.is_some_and(|second| first.confirm(second, &mut self.books));
            if !is_settled {
                return Ok(false);
            }
        }
        first.tell_left_out(self.options.level, &mut self.books);
        Ok(true)
    }

    /// Looks once more at what seemed wrong.
    fn again(&mut self) {
        let (spots, omitted) = self.books.suspects.take();
        let held = std::mem::take(&mut self.books.held);
        if omitted > 0 {
            let gap = NotChecked {
                what: format!(
                    "{omitted} in which something seemed wrong",
                    omitted = plural(omitted, "more page")
                ),
                why: "there are too many for a second look: stop the server and check all of it"
                    .into(),
                inherent: false,
            };
            self.books.stays_open(None, gap);
        }
        let mut second = SecondRun {
            run: self,
            again: Recheck::new(),
            held,
            view: None,
        };
        let (server, progress) = (second.run.server, second.run.progress);
        let unseen = look_again(&mut second, spots, server, progress);
        tell_unseen(unseen.len(), &mut self.books);
    }

    /// Of what checks of files found, that counts which they find again.
    fn files_again(&mut self, clusters: Clusters<'_>, held: &BTreeMap<String, Finding>) {
        let mut second = RunLedger::new();
        if self.options.selection.is_everything() {
            check_whole(clusters, self.options, &mut second);
        }
        let databases: BTreeSet<Oid> = held
            .values()
            .filter_map(|finding| finding.place.database_oid)
            .collect();
        let databases: Vec<Oid> = databases.into_iter().collect();
        let names = clusters.recovered.unwrap_or(clusters.cluster);
        for catalog in catalogs(names, &databases, self.options.level) {
            let (forks, _told_already) = forks_of(clusters.cluster, &catalog);
            let cx = DatabaseContext {
                cluster: clusters.cluster,
                catalog: &catalog,
                forks: &forks,
            };
            check_against_files(clusters, &cx, self.options, &mut second);
        }
        for (id, finding) in second.held {
            if held.contains_key(&id) {
                self.books.findings.keep(finding);
            }
        }
    }
}

/// The second look at all that seemed wrong.
struct SecondRun<'r, 'a> {
    run: &'r mut Run<'a>,
    again: Recheck,
    /// What checks of files found, until they are asked again.
    held: BTreeMap<String, Finding>,
    view: Option<FreshView<'static>>,
}

impl SecondLook for SecondRun<'_, '_> {
    type Place = Spot;
    type Print = blake3::Hash;
    type Claim = BTreeSet<String>;

    fn print(&self, place: &Spot) -> Option<blake3::Hash> {
        print_of(self.run.cluster, *place)
    }

    fn awaits_view(&self) -> bool {
        !self.held.is_empty()
    }

    fn refresh(&mut self) -> Option<ViewPosition> {
        let run = &mut *self.run;
        // Two views at once would take twice the memory.
        self.view = None;
        let view = match newer(run.cluster, run.server, run.options) {
            Ok(view) => self.view.insert(view),
            Err(why) => {
                run.books.not_checked(lost(&why));
                return None;
            }
        };
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            let clusters = clusters(view.cluster(), view.replayed_cluster());
            run.files_again(clusters, &held);
        }
        Some(view.position())
    }

    fn examine(&mut self, suspects: Vec<SuspectOf<Self>>, look: Look) -> Vec<SuspectOf<Self>> {
        let Some(view) = &self.view else {
            return suspects;
        };
        let newer = NewerView {
            view: view.cluster(),
            names: view.replayed_cluster(),
            server: self.run.server,
            look,
        };
        let (options, books) = (self.run.options, &mut self.run.books);
        self.again.look(suspects, newer, options, books)
    }
}

fn clusters<'a>(view: &'a Cluster, names: &'a Cluster) -> Clusters<'a> {
    Clusters {
        cluster: view,
        recovered: Some(names).filter(|after| after.recovered().is_some()),
    }
}

fn whole_pages(view: &Cluster, bytes: u64) -> u64 {
    bytes - bytes % u64::from(view.build.block_size.max(1))
}

/// The folder of the database is gone since the cluster was opened.
fn is_dropped(view: &Cluster, catalog: &Catalog) -> bool {
    let mut homes = view.homes.iter();
    let home = homes.find(|home| home.database == catalog.database);
    home.is_some_and(|home| is_gone(view, home)) && catalog.database != 0
}

/// The server is making the directory of a database, or removing it: no row that counts names it,
/// and not all of its catalogs are there. One that a crash left behind is told by its directory.
fn is_on_its_way(clusters: Clusters<'_>, catalog: &Catalog) -> bool {
    let names = clusters.recovered.unwrap_or(clusters.cluster);
    let named = names.databases.get(&catalog.database);
    let is_named = named.is_some_and(|known| known.name.is_some() && !known.invalid);
    catalog.database != 0 && !is_named && !catalog.troubles.is_empty()
}

/// The directory is not there any more; one that is out of reach may be.
fn is_gone(view: &Cluster, home: &DatabaseDirectory) -> bool {
    Presence::of_directory(view.source().as_ref(), &home.folder).is_missing()
}
