//! A cluster whose server is at work: everything is looked at, then what was made or grew meanwhile, and then once more what
//! seemed wrong.
//!
//! A page that is read while the server writes it may be torn; a file that was listed may be dropped, rewritten or cut before it
//! is read; a page may be younger than the WAL that was read. So nothing above a note is told at first sight. Suspicious pages
//! are put aside and read again (`again.rs`); what checks of whole files find has to be found twice, with a newer look at control
//! file, WAL, catalogs and folders between, so that nothing which was there both times can have been on its way.
//!
//! A run that goes on from a state knows by it which bytes of which files were looked at, and what waits for a second look. What the
//! server did in between is to it what the server does in a pause: files that grew or were made meanwhile are looked at in any case.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, Home, selected};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, Oid};
use pgclinic_model::Progress;
use pgclinic_model::document::{CheckDocument, Finding, Level, NotChecked};
use pgclinic_source::Presence;
use pgclinic_spill::Part;

use crate::check::{DatabaseCx, ForkCx};
use crate::unreachable::tell_relations;
use crate::walker::again::{Again, Newer};
use crate::walker::books::Books;
use crate::walker::job::jobs_of;
use crate::walker::recovered::Clusters;
use crate::walker::{
    CheckOptions, Course, carry, catalogs, catalogs_at_once, check_against_files, check_whole,
    document, forks_of, pass, system_identifier,
};

/// How often what was made or grew meanwhile is looked for.
const FOLLOWED_MAX: usize = 4;
/// How often a look that met a file on its way is taken anew.
const LOOKS_MAX: usize = 4;
/// How often catalogs are read that are not whole, as a page that is damaged makes them.
const CATALOGS_MAX: usize = 3;
/// How often what seemed wrong is looked at again.
const AGAIN_MAX: usize = 3;

/// A page to ask the server for.
#[derive(Clone, Copy, Debug)]
pub struct AskedPage<'a> {
    /// Name of its database; shared relations have none.
    pub database: Option<&'a str>,
    /// OID of the tablespace.
    pub tablespace: Oid,
    /// Number in the name of the file.
    pub filenode: Oid,
    /// Fork.
    pub fork: Fork,
    /// Block through all segments.
    pub block: BlockNo,
    /// It is of the main fork of a table.
    pub holds_rows: bool,
}

/// What the server says of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerSays {
    /// No relation has the file any more.
    Gone,
    /// It cannot read the page, in its own words.
    Refuses(String),
    /// It reads the page, out of its memory or the file.
    Reads,
}

/// Who stands beside the run and knows of time, and of the server.
pub trait Bystander: Sync {
    /// Lets the server get on: long enough that a page that was being written is whole.
    fn wait(&self);

    /// Asks the server for a page; nothing where nobody can.
    fn ask(&self, _page: &AskedPage<'_>) -> Option<ServerSays> {
        None
    }
}

/// Checks a cluster that was opened with [`Cluster::open_running`]. `elapsed_s` is left at 0: the clock is the caller's.
pub fn check_running(
    course: Course<'_>,
    cluster: &Cluster,
    options: &CheckOptions,
    progress: &dyn Progress,
    bystander: &dyn Bystander,
) -> CheckDocument {
    let mut books = course.books();
    forget_what_is_gone(cluster, &mut books);
    let mut run = Run {
        options,
        progress,
        bystander,
        books,
        rounds: 0,
        visited: course.begun(),
        postponed: BTreeMap::new(),
        course,
    };
    run.everything(cluster);
    run.again(cluster);
    carry(cluster, options, &mut run.books);
    run.books.leave_unsettled(cluster, options.level);
    run.books.interrupted = progress.is_interrupted();
    if !run.books.interrupted {
        run.course.is_complete(&run.books);
    }
    document::write(cluster, options, run.books)
}

/// What an earlier run looked at and is cut off by now is looked at again when something else stands there.
fn forget_what_is_gone(cluster: &Cluster, books: &mut Books) {
    books.looked_at.retain(|path, bytes| {
        let len = cluster.source().len(path);
        *bytes = len.as_ref().map_or(0, |len| (*bytes).min(*len));
        len.is_ok()
    });
}

struct Run<'a> {
    options: &'a CheckOptions,
    progress: &'a dyn Progress,
    bystander: &'a dyn Bystander,
    course: Course<'a>,
    books: Books,
    /// Rounds that were begun.
    rounds: usize,
    /// Databases whose catalogs were held against their files.
    visited: BTreeSet<Oid>,
    /// Databases whose catalogs could not be read whole, and how often.
    postponed: BTreeMap<Oid, usize>,
}

impl Run<'_> {
    fn everything(&mut self, cluster: &Cluster) {
        let newer = match cluster.is_steady() {
            true => None,
            false => self.newer(cluster),
        };
        self.round(newer.as_ref().unwrap_or(cluster), true);
        for _ in 0..FOLLOWED_MAX {
            if self.progress.is_interrupted() {
                return;
            }
            let is_open = self.is_open();
            let left = cluster
                .reopened()
                .map_or(true, |now| self.is_anything_left(&now));
            if !left && !is_open {
                return;
            }
            let Some(view) = self.newer(cluster) else {
                return;
            };
            self.round(&view, false);
        }
        let now = cluster.reopened().ok();
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
        let all = std::iter::once(0).chain(view.databases.keys().copied());
        all.filter(|database| selected::database(&self.options.selection, view, *database))
            .collect()
    }

    /// A database waits for a look at catalogs that are not on their way.
    fn is_open(&self) -> bool {
        let mut postponed = self.postponed.keys();
        postponed.any(|database| !self.visited.contains(database))
    }

    /// A page of the catalogs may have been half written when it was read.
    fn is_postponed(&mut self, catalog: &Catalog) -> bool {
        if catalog.troubles.is_empty() || self.visited.contains(&catalog.database) {
            return false;
        }
        let count = self.postponed.entry(catalog.database).or_default();
        *count += 1;
        *count < CATALOGS_MAX
    }

    /// Looks at what no round has looked at.
    fn round(&mut self, view: &Cluster, first: bool) {
        self.rounds += 1;
        let replayed = view.replayed_catalogs(&self.options.names_space());
        let names = replayed.as_ref().map_or(view, |(after, _)| after);
        let clusters = clusters(view, names);
        if first && !self.course.is_whole_done() {
            self.books.troubles(&view.troubles);
            if self.options.selection.is_everything() {
                check_whole(clusters, self.options, &mut self.books);
            }
            self.course.whole_is_done(&self.books);
        }
        let mut databases = self.databases(view);
        databases.retain(|database| first || self.has_grown(view, *database));
        for some in databases.chunks(catalogs_at_once(self.options)) {
            for catalog in catalogs(names, some, self.options.level) {
                if self.is_postponed(&catalog) {
                    self.bystander.wait();
                } else if !self.progress.is_interrupted() {
                    self.database(clusters, &catalog);
                }
            }
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

    fn database(&mut self, clusters: Clusters<'_>, catalog: &Catalog) {
        let view = clusters.cluster;
        let (mut forks, troubles) = forks_of(view, catalog);
        if is_dropped(view, catalog) {
            return;
        }
        let first = self.visited.insert(catalog.database);
        if first {
            self.books.troubles(&catalog.troubles);
            self.books.unlisted(&troubles);
            tell_relations(view, catalog, &troubles, &mut self.books.coverage);
            let cx = DatabaseCx {
                cluster: view,
                catalog,
                forks: &forks,
            };
            check_against_files(clusters, &cx, self.options, &mut self.books);
        } else {
            forks.retain(|files| self.is_new(files) || self.is_left(view, files));
        }
        forks.retain(|files| self.is_told_enough(catalog, files));
        let cx = DatabaseCx {
            cluster: view,
            catalog,
            forks: &forks,
        };
        let relations = self.books.coverage.relations;
        let jobs = jobs_of(&cx, self.options, &mut self.books);
        // Each counts with its pages, so that a state counts those that are done.
        self.books.coverage.relations = relations;
        if first {
            self.course.round_is_done(catalog, &[], &self.books);
        }
        for jobs in self.course.rounds_of_files(jobs) {
            self.files(view, &jobs);
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

    /// Some relation files, of which nothing has to be done again.
    fn files(&mut self, view: &Cluster, jobs: &[ForkCx<'_>]) {
        let main = jobs.iter().filter(|job| job.fork() == Fork::Main);
        let fresh = main.filter(|job| self.is_new(job.files)).count();
        self.books.coverage.relations += fresh as u64;
        self.pages(view, jobs);
        if !self.progress.is_interrupted() {
            self.mark(view, jobs.iter().map(|job| job.files));
            self.course.keep(&self.books);
        }
    }

    fn pages(&mut self, view: &Cluster, jobs: &[ForkCx<'_>]) {
        let options = self.options;
        let budget = options.memory.part(Part::LeafSummaries);
        let before = self.books.coverage.bytes_seen;
        self.progress.expect(pass::bytes(jobs, &self.books));
        pass::run(
            jobs,
            view.source().as_ref(),
            system_identifier(view),
            options,
            &budget,
            self.progress,
            &mut self.books,
        );
        self.books.settle_damage(jobs);
        self.books.main_bytes += self.books.coverage.bytes_seen - before;
    }

    /// The catalogs name the file and the columns of its rows: where they were read while they changed, a later look tells more.
    fn is_told_enough(&self, catalog: &Catalog, files: &ForkFiles) -> bool {
        let relation = catalog.by_file(files.home.tablespace, files.filenode);
        match relation {
            None => self.rounds > 1 || files.temporary.is_some(),
            Some(own) if own.page_method() == Some(AccessMethod::Heap) => {
                let needed = self.options.level >= Level::Structure;
                !needed || own.layouts.is_some() || self.rounds > FOLLOWED_MAX
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

    /// A newer look, taken anew while it meets files on their way. Nothing where the cluster cannot be opened any more.
    fn newer(&mut self, cluster: &Cluster) -> Option<Cluster> {
        let (mut newest, mut why) = (None, String::new());
        for look in 0..LOOKS_MAX {
            if look > 0 {
                self.bystander.wait();
            }
            match cluster.reopened() {
                Ok(view) if view.is_steady() => return Some(view),
                Ok(view) => newest = Some(view),
                Err(error) => why = error.to_string(),
            }
        }
        if newest.is_none() {
            self.lost(&why);
        }
        newest
    }

    fn lost(&mut self, why: &str) {
        self.books.not_checked(NotChecked {
            what: "what the server made or changed while the run went on".into(),
            why: format!("the cluster cannot be opened again: {why}"),
            inherent: false,
        });
    }

    /// Looks once more at what seemed wrong.
    fn again(&mut self, cluster: &Cluster) {
        let (spots, omitted) = self.books.suspects.take();
        let mut held = std::mem::take(&mut self.books.held);
        if omitted > 0 {
            let gap = NotChecked {
                what: format!("{omitted} more pages in which something seemed wrong"),
                why: "there are too many for a second look: stop the server and check all of it"
                    .into(),
                inherent: false,
            };
            self.books.stays_open(None, gap);
        }
        let mut again = Again::new(spots);
        for look in 1..=AGAIN_MAX {
            if again.is_done() && held.is_empty() {
                break;
            }
            self.bystander.wait();
            again.remember(cluster);
            let Some(view) = self.newer(cluster) else {
                break;
            };
            let replayed = view.replayed_catalogs(&self.options.names_space());
            let names = replayed.as_ref().map_or(&view, |(after, _)| after);
            if !held.is_empty() {
                self.files_again(clusters(&view, names), &held);
                held.clear();
            }
            let is_last = look == AGAIN_MAX || self.progress.is_interrupted();
            let newer = Newer {
                view: &view,
                names,
                bystander: self.bystander,
                is_last,
            };
            again.look(newer, self.options, &mut self.books);
            if is_last {
                break;
            }
        }
        again.tell(&mut self.books);
    }

    /// Of what checks of files found, that counts which they find again.
    fn files_again(&mut self, clusters: Clusters<'_>, held: &BTreeMap<String, Finding>) {
        let mut second = Books::new();
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
            let cx = DatabaseCx {
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

/// The directory is not there any more; one that is out of reach may be.
fn is_gone(view: &Cluster, home: &Home) -> bool {
    Presence::of_directory(view.source().as_ref(), &home.folder).is_missing()
}
