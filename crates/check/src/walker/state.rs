//! Going on where another run ended: what is kept of the books after each round, and whether it
//! still holds.

use std::collections::BTreeSet;

use crate::run_state::{Begin, DatabaseState, Owner, RunState, SavedBooks, SavedFinding};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pgclinic_cluster::{Catalog, Cluster, target_of};
use pgclinic_format::Oid;
use pgclinic_model::document::{Evidence, Tool};
use pgclinic_source::marks_of;

use crate::check::ForkCx;
use crate::findings::Findings;
use crate::walker::run_ledger::RunLedger;
use crate::walker::suspects::Suspects;
use crate::walker::{CheckOptions, Since};

pub(super) const SCHEMA: &str = "pgclinic.state/1";
/// Bytes of relations between two states, so that a run that is killed loses some seconds.
const ROUND_BYTES: u64 = 1 << 30;

/// Takes the state of a run from time to time.
pub trait StateKeeper {
    /// Everything up to here need not be done again.
    fn keep(&self, state: &RunState);
}

/// Where a run begins, and who keeps how far it came.
pub struct ResumableRun<'a> {
    /// How many bytes of relations are looked at between two states.
    pub round_bytes: u64,
    keeper: Option<&'a dyn StateKeeper>,
    state: RunState,
}

impl<'a> ResumableRun<'a> {
    /// From the beginning; `keeper` takes the state of a long run.
    pub fn new(
        cluster: &Cluster,
        options: &CheckOptions,
        keeper: Option<&'a dyn StateKeeper>,
    ) -> Self {
        let state = RunState {
            schema: SCHEMA.into(),
            tool: Tool::this(),
            files: marks_of(cluster.source().spec()),
            target: target_of(cluster, &options.spec),
            level: options.level,
            selection: options.selection.resume_key(),
            checkpoint: checkpoint_of(cluster),
            begin: begin_of(cluster),
            since: options.since.as_ref().map(Since::lsn),
            running: cluster.is_running(),
            complete: false,
            whole: false,
            databases: Default::default(),
            books: SavedBooks::default(),
        };
        ResumableRun {
            round_bytes: ROUND_BYTES,
            keeper,
            state,
        }
    }

    /// From where the run ended that wrote this state; why that cannot be, otherwise.
    pub fn resumed(
        cluster: &Cluster,
        options: &CheckOptions,
        keeper: Option<&'a dyn StateKeeper>,
        state: RunState,
    ) -> Result<Self, String> {
        let new = ResumableRun::new(cluster, options, keeper);
        let (then, now) = (&state, &new.state);
        let refuse = |what: &str, then: &dyn std::fmt::Display, now: &dyn std::fmt::Display| {
            Err(format!(
                "the state is of {what} {then}, and this run is of {now}"
            ))
        };
        let number = |state: &RunState| {
            let number = state.target.system_identifier.clone();
            number.unwrap_or_else(|| "an unknown number".into())
        };
        if then.schema != now.schema {
            return refuse("the form", &then.schema, &now.schema);
        }
        if then.tool != now.tool {
            return refuse("pgclinic", &then.tool.version, &now.tool.version);
        }
        if number(then) != number(now) {
            return refuse("the cluster", &number(then), &number(now));
        }
        if then.target.spec != now.target.spec {
            // Copies of one cluster have its number and checkpoint, and damage of their own.
            return refuse("the files in", &then.target.spec, &now.target.spec);
        }
        if then.target.kind != now.target.kind {
            return refuse("a target that is a", &then.target.kind, &now.target.kind);
        }
        if then.level != now.level {
            return refuse("level", &then.level.name(), &now.level.name());
        }
        if then.selection != now.selection {
            return refuse("the selection", &then.selection, &now.selection);
        }
        if then.since != now.since {
            return refuse("pages", &since_words(then), &since_words(now));
        }
        then.fits_files_of(now)?;
        if let Some(why) = then.is_of_other_files(cluster) {
            return Err(format!("{why}: begin again"));
        }
        if then.complete {
            return Err(
                "the run that wrote the state came to its end: nothing is left to do".into(),
            );
        }
        Ok(ResumableRun { state, ..new })
    }

    /// Hands out the state before anything is done, so that somebody who cannot keep it says so
    /// now.
    pub fn keep_first(&self) {
        if let Some(keeper) = self.keeper {
            keeper.keep(&self.state);
        }
    }

    /// The books so far.
    pub(super) fn books(&self) -> RunLedger {
        RunLedger::restored(self.state.books.clone())
    }

    /// The databases whose catalogs were held against their files.
    pub(super) fn begun(&self) -> BTreeSet<Oid> {
        self.state.databases.keys().copied().collect()
    }

    /// What belongs to no database is done.
    pub(super) fn is_whole_done(&self) -> bool {
        self.state.whole
    }

    pub(super) fn whole_is_done(&mut self, books: &RunLedger) {
        self.state.whole = true;
        self.keep(books);
    }

    /// The checks of a database against its files ran.
    pub(super) fn is_begun(&self, database: Oid) -> bool {
        self.state.databases.contains_key(&database)
    }

    pub(super) fn is_done(&self, database: Oid) -> bool {
        let state = self.state.databases.get(&database);
        state.is_some_and(|state| state.complete)
    }

    /// The jobs that are left, in rounds; all at once where nobody keeps a state.
    pub(super) fn rounds<'j>(
        &self,
        catalog: &Catalog,
        jobs: Vec<ForkCx<'j>>,
    ) -> Vec<Vec<ForkCx<'j>>> {
        if self.keeper.is_none() {
            return vec![jobs];
        }
        let done = self.state.databases.get(&catalog.database);
        let owner = |job: &ForkCx<'_>| owner(job, catalog);
        let is_left = |job: &ForkCx<'_>| {
            done.is_none_or(|state| state.tables.binary_search(&owner(job)).is_err())
        };
        let mut left: Vec<ForkCx<'j>> = jobs.into_iter().filter(is_left).collect();
        left.sort_by_key(|job| owner(job));
        self.parted(left, owner)
    }

    /// All jobs in rounds of some bytes, for a run that may come to a file again.
    /// A table and its indexes stay together.
    pub(super) fn rounds_of_files<'j>(
        &self,
        catalog: &Catalog,
        mut jobs: Vec<ForkCx<'j>>,
    ) -> Vec<Vec<ForkCx<'j>>> {
        match self.keeper {
            None => vec![jobs],
            Some(_) => {
                jobs.sort_by_key(|job| owner(job, catalog));
                self.parted(jobs, |job| owner(job, catalog))
            }
        }
    }

    /// Jobs in rounds of some bytes, those of one key together.
    fn parted<'j, K: PartialEq>(
        &self,
        jobs: Vec<ForkCx<'j>>,
        key: impl Fn(&ForkCx<'j>) -> K,
    ) -> Vec<Vec<ForkCx<'j>>> {
        let mut rounds: Vec<Vec<ForkCx<'j>>> = Vec::new();
        let (mut bytes, mut last) = (u64::MAX, None);
        for job in jobs {
            let next = Some(key(&job));
            if bytes >= self.round_bytes && next != last {
                rounds.push(Vec::new());
                bytes = 0;
            }
            bytes = bytes.saturating_add(job.files.bytes());
            last = next;
            rounds.extend(rounds.is_empty().then(Vec::new));
            if let Some(round) = rounds.last_mut() {
                round.push(job);
            }
        }
        rounds
    }

    /// The database's own checks, or a round of its relations, are done.
    pub(super) fn round_is_done(
        &mut self,
        catalog: &Catalog,
        jobs: &[ForkCx<'_>],
        books: &RunLedger,
    ) {
        let state: &mut DatabaseState = self.state.databases.entry(catalog.database).or_default();
        state
            .tables
            .extend(jobs.iter().map(|job| owner(job, catalog)));
        state.tables.sort_unstable();
        state.tables.dedup();
        self.keep(books);
    }

    pub(super) fn database_is_done(&mut self, database: Oid, books: &RunLedger) {
        let state = self.state.databases.entry(database).or_default();
        state.complete = true;
        state.tables.clear();
        self.keep(books);
    }

    pub(super) fn is_complete(&mut self, books: &RunLedger) {
        self.state.complete = true;
        self.keep(books);
    }

    /// Everything up to here need not be done again.
    pub(super) fn keep(&mut self, books: &RunLedger) {
        if let Some(keeper) = self.keeper {
            self.state.books = books.saved();
            keeper.keep(&self.state);
        }
    }
}

impl RunState {
    /// Other files were put in the place of those that the state is of, such as another copy of the
    /// cluster; in words.
    pub fn is_of_other_files(&self, cluster: &Cluster) -> Option<String> {
        let now = marks_of(cluster.source().spec());
        let mut pairs = self.files.iter().zip(&now);
        let other = pairs.find(|(then, now)| !then.may_be(now));
        let other = other.map(|(then, _)| then.path.as_str());
        let gone = || "their number".to_owned();
        let what = match other {
            Some(path) => Some(path.to_owned()),
            None => (self.files.len() != now.len() && !self.files.is_empty()).then(gone),
        };
        what.map(|what| {
            format!("the state is of other files at the same place ({what} is not what it was, as when a copy was restored there)")
        })
    }

    /// What was looked at is looked at as another run would find it now; why not, otherwise.
    fn fits_files_of(&self, now: &RunState) -> Result<(), String> {
        match (self.running, now.running) {
            (false, false) => self.has_stood_still(now),
            (true, true) => self.goes_on_beside(now),
            (true, false) => Err("the state is of a run beside a running server, and none is running now: begin again".into()),
            (false, true) => Err("the state is of a stopped cluster, and a server is running on it now: begin again".into()),
        }
    }

    fn has_stood_still(&self, now: &RunState) -> Result<(), String> {
        if self.checkpoint == now.checkpoint {
            return Ok(());
        }
        let what = "a server has been running in between: begin again";
        Err(format!(
            "the state is of the cluster at checkpoint {}, and it is at {} now: {what}",
            self.checkpoint, now.checkpoint
        ))
    }

    /// The server has gone on, and on the same way: the time between is like a pause of the run, in
    /// which each page was looked at at a moment of its own.
    fn goes_on_beside(&self, now: &RunState) -> Result<(), String> {
        let (Some(then), Some(now)) = (&self.begin, &now.begin) else {
            return Err("where the WAL is cannot be determined: begin again".into());
        };
        if then.timeline != now.timeline {
            return Err(format!(
                "the state is of timeline {}, and the cluster is on {} now: begin again",
                then.timeline, now.timeline
            ));
        }
        if then.redo > now.redo {
            Err(format!(
                "the state is of the cluster at {}, and it is at {} now: it was set back in between",
                then.redo, now.redo
            ))
        } else {
            Ok(())
        }
    }
}

/// The table that a fork is looked at with: its own, that of the index, or that whose long values
/// it keeps.
pub(super) fn owner(job: &ForkCx<'_>, catalog: &Catalog) -> Owner {
    let Some(relation) = job.relation else {
        return Owner::File(job.files.home.tablespace, job.files.filenode);
    };
    let indexed = relation.index.as_ref().map(|index| index.table);
    let table = indexed.and_then(|table| catalog.relations.get(&table));
    let table = table.unwrap_or(relation);
    match table.toast_of {
        0 => Owner::Table(table.oid),
        owner => Owner::Table(owner),
    }
}

fn checkpoint_of(cluster: &Cluster) -> String {
    let control = cluster.control.trusted();
    control.map_or("an unknown place".into(), |control| {
        control.checkpoint_lsn.to_string()
    })
}

/// Where the cluster is, by a control file to trust.
fn begin_of(cluster: &Cluster) -> Option<Begin> {
    let control = cluster.control.trusted()?;
    let homes = cluster.homes.iter();
    Some(Begin {
        redo: control.checkpoint.redo,
        timeline: cluster.recovery()?.timelines.target(),
        homes: homes.map(|home| (home.tablespace, home.database)).collect(),
    })
}

fn since_words(state: &RunState) -> String {
    match state.since {
        Some(lsn) => format!("that changed since {lsn}"),
        None => "whether they changed or not".into(),
    }
}

impl RunLedger {
    /// As plain data.
    fn saved(&self) -> SavedBooks {
        let evidence = self.evidence.iter();
        SavedBooks {
            coverage: self.coverage.clone(),
            findings: self.findings.saved(),
            relations: self.relations.clone(),
            evidence: evidence
                .map(|((path, block), page)| Evidence {
                    path: path.clone(),
                    block: *block,
                    page: STANDARD.encode(page),
                })
                .collect(),
            main_bytes: self.main_bytes,
            sums: self
                .sums
                .iter()
                .map(|(path, sum)| (path.clone(), STANDARD.encode(sum)))
                .collect(),
            booked: self.booked.clone(),
            unchanged: self.unchanged.clone(),
            looked_at: self.looked_at.clone(),
            suspects: self.suspects.saved(),
            suspicious: self.suspicious.clone(),
            disconnected: self.disconnected.clone(),
            held: self.held.values().map(SavedFinding::of).collect(),
            unread: self.unread.clone(),
            open: self.open.clone(),
        }
    }

    fn restored(saved: SavedBooks) -> Self {
        let evidence = saved.evidence.into_iter();
        let held = saved.held.into_iter().map(SavedFinding::restored);
        RunLedger {
            coverage: saved.coverage,
            findings: Findings::restored(saved.findings),
            relations: saved.relations,
            evidence: evidence
                .filter_map(|kept| {
                    Some(((kept.path, kept.block), STANDARD.decode(kept.page).ok()?))
                })
                .collect(),
            main_bytes: saved.main_bytes,
            sums: saved
                .sums
                .into_iter()
                .filter_map(|(path, sum)| Some((path, STANDARD.decode(sum).ok()?)))
                .collect(),
            booked: saved.booked,
            unchanged: saved.unchanged,
            looked_at: saved.looked_at,
            suspects: Suspects::restored(saved.suspects),
            suspicious: saved.suspicious,
            disconnected: saved.disconnected,
            held: held.map(|finding| (finding.id.clone(), finding)).collect(),
            unread: saved.unread,
            open: saved.open,
            ..RunLedger::new()
        }
    }
}
