//! The facade: one cluster, opened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use pgclinic_format::control_file::{ControlFault, FILE_BYTES, State};
use pgclinic_format::digest::Algorithm;
use pgclinic_format::oid::{DEFAULT_TABLESPACE, GLOBAL_TABLESPACE, PG_DATABASE};
use pgclinic_format::{ControlFile, Fork, Layout, Lsn, MultiXactId, Oid, RelationMap, Xid};
use pgclinic_source::{Clock, Presence, Source, SourceError, SourceErrorKind, read_all};

use crate::build::{Build, build_of};
use crate::catalog::{Catalog, Depth};
use crate::chain::Link;
use crate::collation::MachineCollations;
use crate::collator::Collator;
use crate::columns::ColumnNames;
use crate::error::{OpenError, Trouble};
use crate::files::{ForkFiles, Home, homes, list_folder};
use crate::heap_scan::HeapScan;
use crate::manifest::ManifestState;
use crate::multixact::MultiXacts;
use crate::read_again::ReadAgain;
use crate::row_places::RowPlaces;
use crate::transaction_log::{PAGES_PER_FILE, TransactionLog, XIDS_PER_BYTE};
use crate::wal::{Chain, LabelState, Recovery, Replay, Stop, WalSurvey, control_from_wal};
use crate::witness::{LostDatabase, lost_databases};
use crate::words::Words;

const CONTROL_FILE: &str = "global/pg_control";

/// Bytes that a shutdown checkpoint takes in the WAL at most, page headers included.
pub const CHECKPOINT_BYTES: u64 = 256;

/// What could be made of `global/pg_control`.
#[derive(Clone, PartialEq, Debug)]
pub enum ControlState {
    /// Read, with a right checksum.
    Right(ControlFile),
    /// Read, but its checksum is wrong: its fields are not to be trusted.
    WrongCrc(ControlFile),
    /// It makes no sense.
    Fault(ControlFault),
    /// It cannot be read.
    Unreadable(String),
}

impl ControlState {
    /// The file, if its checksum is right.
    pub fn trusted(&self) -> Option<&ControlFile> {
        match self {
            ControlState::Right(control) => Some(control),
            _ => None,
        }
    }
}

/// A database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Database {
    /// OID; 0 stands for the shared relations.
    pub oid: Oid,
    /// Name; `None` when only its folder is known.
    pub name: Option<String>,
    /// `encoding`, as the server numbers it (6 is UTF8).
    pub encoding: Option<i32>,
    /// Its default tablespace.
    pub tablespace: Oid,
    /// Dropping it was interrupted: its files may be gone.
    pub invalid: bool,
    /// `datfrozenxid`: no row of it needs the status of an older transaction.
    pub frozen_xid: Option<Xid>,
    /// `datminmxid`: no row of it needs the members of an older multixact.
    pub min_multi: Option<MultiXactId>,
}

impl Database {
    /// One of which only a folder is known.
    fn unnamed(home: &Home) -> Self {
        Database {
            oid: home.database,
            name: None,
            encoding: None,
            tablespace: home.tablespace,
            invalid: false,
            frozen_xid: None,
            min_multi: None,
        }
    }
}

/// Whether a server is at work on the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Server {
    /// None is: the files stay as they are.
    Away,
    /// One is: any of them may change at any time.
    AtWork,
}

impl Server {
    /// `backup_label`. A server at work has begun long ago: the label is that of a backup being made of it.
    fn label(self, source: &dyn Source) -> LabelState {
        match self {
            Server::Away => LabelState::read(source),
            Server::AtWork => LabelState::None,
        }
    }
}

/// What is known of a cluster behind a complete recovery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// The next transaction.
    pub next_xid: Xid,
    /// The next multixact.
    pub next_multi: MultiXactId,
    /// The next member of multixacts.
    pub next_multi_offset: u32,
    /// Databases whose folders recovery removes or copies, which is not done in memory.
    pub remade_databases: BTreeSet<Oid>,
    /// Tablespaces in which recovery makes files, and their folders where it must.
    pub grown_tablespaces: BTreeSet<Oid>,
}

/// An opened cluster.
pub struct Cluster {
    pub(crate) source: Arc<dyn Source>,
    /// The major's row.
    pub layout: &'static Layout,
    /// The control file.
    pub control: ControlState,
    /// Build options, from the control file if it can be trusted.
    pub build: Build,
    /// Commit log.
    pub transactions: TransactionLog,
    /// Multixacts.
    pub multixacts: MultiXacts,
    /// Databases by OID, as `pg_database` and the folders tell.
    pub databases: BTreeMap<Oid, Database>,
    /// Databases whose rows are lost and whose directories are there; they stand among the others too. Not asked for while a server
    /// runs.
    pub lost_databases: Vec<LostDatabase>,
    /// Folders with relation files.
    pub homes: Vec<Home>,
    /// What could not be read while opening.
    pub troubles: Vec<Trouble>,
    /// What the libraries of this machine say, for who knows it to fill in.
    pub machine: MachineCollations,
    /// Who can order text under the collations of this machine's libraries, for who has one.
    pub collator: Option<Arc<dyn Collator>>,
    pub(crate) running: bool,
    pub(crate) labelled: bool,
    pub(crate) manifest: OnceLock<Option<ManifestState>>,
    pub(crate) links: Vec<Link>,
    /// WAL that the backup needs is none of its own: another backup builds on it, or a server has it still.
    pub wal_is_elsewhere: bool,
    /// Of files that passed by once: the checksums that were made then. What they do not have cannot be summed any more.
    pub known_sums: Option<BTreeMap<String, (Algorithm, Vec<u8>)>>,
    /// A part of its files is known not to be there, as of an archive that was cut: one that is missing, or short, proves nothing.
    pub is_partial: bool,
    /// Where the control file cannot be trusted, what WAL says in its place.
    from_wal: Option<ControlFile>,
    is_replayed: bool,
    replayed_to: Option<Lsn>,
    /// Of a server at work, the files of `pg_xact` that it writes to, as they were before the end of its WAL was looked for.
    pub(crate) status_before: BTreeMap<String, Vec<u8>>,
    recovered: Option<Recovered>,
    recovery: OnceLock<Option<Recovery>>,
    replay: OnceLock<Option<Replay>>,
    survey: OnceLock<Option<WalSurvey>>,
    older: OnceLock<Option<Chain>>,
}

impl Cluster {
    /// Reads version, control file, folders and databases. An incremental backup by itself is refused.
    pub fn open(source: Arc<dyn Source>) -> Result<Self, OpenError> {
        let label = LabelState::read(source.as_ref());
        if matches!(&label, LabelState::Read(label) if label.follows.is_some()) {
            return Err(OpenError::Incremental);
        }
        Self::open_any(source, &label, Server::Away)
    }

    /// The same while a server is at work on the files: they are those of a crash that has not happened yet. What is
    /// read is as old as the moment in which it was read.
    pub fn open_running(source: Arc<dyn Source>) -> Result<Self, OpenError> {
        Self::open_as(source, Server::AtWork)
    }

    /// A newer look at a cluster whose server is at work.
    pub fn reopened(&self) -> Result<Self, OpenError> {
        let newer = Self::open_as(Arc::clone(&self.source), self.server())?;
        Ok(Cluster {
            machine: self.machine.clone(),
            collator: self.collator.clone(),
            ..newer
        })
    }

    /// The same cluster of a server at work; pages that are not sound are read again before anybody sees them.
    pub fn reading_again(self, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let checksums = self.checksums();
        let again = ReadAgain::new(self.source, self.build, checksums, clock);
        Self::open_as(Arc::new(again), Server::AtWork)
    }

    /// Control file and WAL were read as of one moment.
    pub fn is_steady(&self) -> bool {
        let whole = |stop| matches!(stop, Stop::End | Stop::Elsewhere);
        let replay = self.replay();
        self.troubles.is_empty()
            && replay.is_some_and(|replay| whole(replay.stop) && replay.troubles.is_empty())
    }

    /// What was opened before, seen anew.
    pub(crate) fn open_as(source: Arc<dyn Source>, server: Server) -> Result<Self, OpenError> {
        let label = server.label(source.as_ref());
        Self::open_any(source, &label, server)
    }

    /// The same of an incremental backup too, of which some files are there in parts only.
    pub(crate) fn open_any(
        source: Arc<dyn Source>,
        label: &LabelState,
        server: Server,
    ) -> Result<Self, OpenError> {
        let major = read_version(source.as_ref())?;
        let control = read_control(source.as_ref())?;
        Self::made_of((major, control), source, label, server)
    }

    /// With what is known of its major and its control file.
    pub(crate) fn made_of(
        (major, control): (Option<u16>, ControlState),
        source: Arc<dyn Source>,
        label: &LabelState,
        server: Server,
    ) -> Result<Self, OpenError> {
        let running = server == Server::AtWork;
        let layout = choose_layout(major, &control)?;
        refuse_other_names(&control)?;
        let mut troubles = Vec::new();
        let build = build_of(source.as_ref(), &control);
        let from_wal = match (control.trusted(), running) {
            (None, false) => control_from_wal(source.as_ref(), layout, build, label),
            _ => None,
        };
        let page_bytes = usize::try_from(build.block_size).unwrap_or(8192);
        let labelled = *label != LabelState::None;
        let known = control.trusted().or(from_wal.as_ref());
        let settled = known
            .filter(|control| control.is_shut_down() && !labelled && !running)
            .map(|control| &control.checkpoint);
        let next_multi =
            settled.map(|checkpoint| (checkpoint.next_multi, checkpoint.next_multi_offset));
        let version_folder = format!("PG_{}_{}", layout.major, layout.catalog_version);
        let homes = homes(source.as_ref(), &version_folder, &mut troubles);
        let next_xid = settled.map(|checkpoint| checkpoint.next_xid());
        let mut cluster = Cluster {
            transactions: TransactionLog::new(Arc::clone(&source), page_bytes, next_xid),
            multixacts: MultiXacts::new(Arc::clone(&source), page_bytes, next_multi),
            homes,
            troubles,
            running,
            labelled,
            from_wal: from_wal.clone(),
            ..Cluster::unknown(source, layout, control, build)
        };
        cluster.databases = cluster.read_databases();
        if running {
            cluster.status_before = cluster.status_now();
        }
        Ok(cluster)
    }

    /// The files of `pg_xact` to which a server at work writes. What committed before the redo point of the control file is in
    /// them; what commits from now on has its record in WAL that is read later.
    fn status_now(&self) -> BTreeMap<String, Vec<u8>> {
        let Some(control) = self.control.trusted() else {
            return BTreeMap::new();
        };
        let bytes_max = u64::from(self.build.block_size) * PAGES_PER_FILE;
        let per_file = u32::try_from(bytes_max * XIDS_PER_BYTE).unwrap_or(u32::MAX);
        let next = control.checkpoint.next_xid();
        let before = Xid(next.0.wrapping_sub(per_file));
        let paths = [before, next].map(|xid| self.transactions.file_of(xid));
        let read = |path: String| {
            let bytes = read_all(self.source.as_ref(), &path, bytes_max).ok()?;
            Some((path, bytes))
        };
        paths.into_iter().filter_map(read).collect()
    }

    /// Stands for the unknown cluster of some relation files: pages have this layout and size. Of transactions only what rows
    /// say themselves is known, unless `pg_xact` lies beside the files.
    pub fn of_files(source: Arc<dyn Source>, layout: &'static Layout, build: Build) -> Self {
        let control = ControlState::Unreadable("there are relation files only".into());
        Cluster::unknown(source, layout, control, build)
    }

    /// The same for folders of databases, of which nothing else is left.
    pub fn of_folders(
        source: Arc<dyn Source>,
        layout: &'static Layout,
        build: Build,
        homes: Vec<Home>,
    ) -> Self {
        let mut cluster = Cluster::of_files(source, layout, build);
        for home in &homes {
            let unnamed = || Database::unnamed(home);
            cluster
                .databases
                .entry(home.database)
                .or_insert_with(unnamed);
        }
        cluster.homes = homes;
        cluster
    }

    /// Nothing was looked at yet.
    fn unknown(
        source: Arc<dyn Source>,
        layout: &'static Layout,
        control: ControlState,
        build: Build,
    ) -> Self {
        let page_bytes = usize::try_from(build.block_size).unwrap_or(8192);
        Cluster {
            transactions: TransactionLog::new(Arc::clone(&source), page_bytes, None),
            multixacts: MultiXacts::new(Arc::clone(&source), page_bytes, None),
            source,
            layout,
            control,
            build,
            databases: BTreeMap::new(),
            lost_databases: Vec::new(),
            homes: Vec::new(),
            troubles: Vec::new(),
            machine: MachineCollations::default(),
            collator: None,
            running: false,
            labelled: false,
            manifest: OnceLock::new(),
            links: Vec::new(),
            wal_is_elsewhere: false,
            known_sums: None,
            is_partial: false,
            from_wal: None,
            is_replayed: false,
            replayed_to: None,
            status_before: BTreeMap::new(),
            recovered: None,
            recovery: OnceLock::new(),
            replay: OnceLock::new(),
            survey: OnceLock::new(),
            older: OnceLock::new(),
        }
    }

    /// With the limits of a recovery whose work the files already show.
    pub(crate) fn with_limits_of(mut self, replay: &Replay) -> Self {
        let page_bytes = usize::try_from(self.build.block_size).unwrap_or(8192);
        let source = || Arc::clone(&self.source);
        if replay.is_complete() {
            let next_multi = (replay.next_multi, replay.next_multi_offset);
            self.transactions = TransactionLog::new(source(), page_bytes, Some(replay.next_xid));
            self.multixacts = MultiXacts::new(source(), page_bytes, Some(next_multi));
        }
        self.is_replayed = true;
        self.replayed_to = replay.is_complete().then_some(replay.end.record);
        self
    }

    /// The same where every record was applied.
    pub(crate) fn with_recovered(mut self, replay: &Replay) -> Self {
        self.recovered = Some(Recovered {
            next_xid: replay.next_xid,
            next_multi: replay.next_multi,
            next_multi_offset: replay.next_multi_offset,
            remade_databases: replay.remade_databases().clone(),
            grown_tablespaces: replay.grown_tablespaces(),
        });
        self
    }

    /// Its files show what a recovery in memory made of them.
    pub fn is_replayed(&self) -> bool {
        self.is_replayed
    }

    /// Up to where the records of all WAL that there is were followed. Of a server at work this is the moment which the status
    /// of its transactions is of.
    pub fn replayed_to(&self) -> Option<Lsn> {
        self.replayed_to
    }

    /// Where all write-ahead log ends that there is, if nothing says that some is missing: no page can have been changed later. `None`
    /// where the control file alone tells that nothing is to be recovered, so that nobody asks for WAL.
    pub fn wal_end(&self) -> Option<Lsn> {
        let is_settled = !self.needs_recovery();
        let settled = self.control_from_wal().filter(|_| is_settled);
        let settled =
            settled.map(|control| control.checkpoint_lsn.0.saturating_add(CHECKPOINT_BYTES));
        self.replayed_to.or(settled.map(Lsn))
    }

    /// It was shut down in good order, or all of its recovery was done in memory, so that files and catalogs must agree. In any other
    /// state replay may still create, fill, truncate and remove files; and where a part of the files is not there, it may be the part
    /// that is missed.
    pub fn is_settled(&self) -> bool {
        if self.is_partial {
            return false;
        }
        let control = self.control.trusted().filter(|_| !self.is_running());
        self.recovered.is_some() || control.is_some_and(ControlFile::is_shut_down)
    }

    /// Its catalogs and status files are those that a complete recovery leaves.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.recovered.as_ref()
    }

    /// Where the bytes come from.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// The server was not shut down in good order, or a `backup_label` sends it back to an earlier
    /// checkpoint. Also while a server is at work: what it has in memory only, its files do not show.
    pub fn needs_recovery(&self) -> bool {
        let begun = |control: &ControlFile| {
            control.state != State::ShutDown || self.labelled || self.running
        };
        match self.known_control() {
            Some(control) => begun(control),
            None => self.labelled && !self.is_partial,
        }
    }

    /// The control file; where it cannot be trusted, what the write-ahead log says of recovery in its place.
    fn known_control(&self) -> Option<&ControlFile> {
        self.control.trusted().or_else(|| self.control_from_wal())
    }

    /// Where the control file cannot be trusted: identifier, checkpoint and state as the write-ahead log has them, and no other
    /// field. Nothing where no checkpoint is in `pg_wal`: then whether recovery is due is unknown.
    pub fn control_from_wal(&self) -> Option<&ControlFile> {
        self.from_wal.as_ref().filter(|_| !self.is_partial)
    }

    /// A server is at work on the files, as whoever opened the cluster knew.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Pages and index entries are of one moment, so that an entry without its page proves that the page is lost. Files of a crash
    /// and of a base backup are not until recovery has run.
    pub(crate) fn is_of_one_moment(&self) -> bool {
        let is_at_rest = !self.needs_recovery() || self.recovered.is_some();
        is_at_rest && !self.running && !self.is_partial
    }

    pub(crate) fn server(&self) -> Server {
        match self.running {
            true => Server::AtWork,
            false => Server::Away,
        }
    }

    /// Where recovery would begin, and what lies in `pg_wal`. `None` where neither the control file nor WAL tells.
    pub fn recovery(&self) -> Option<&Recovery> {
        let plan = || {
            let source = self.source.as_ref();
            let label = self.server().label(source);
            Recovery::plan(source, self.layout, self.known_control()?, label)
        };
        self.recovery.get_or_init(plan).as_ref()
    }

    /// What recovery would do, read once from the WAL that is there. `None` for a cluster that
    /// needs no recovery, and where nothing tells where it begins.
    pub fn replay(&self) -> Option<&Replay> {
        let read = || {
            let recovery = self.recovery().filter(|_| self.needs_recovery())?;
            let control = self.known_control()?;
            let source = self.source.as_ref();
            Some(match self.running {
                true => Replay::read_to_the_present(source, recovery, control),
                false => Replay::read(source, recovery, control),
            })
        };
        self.replay.get_or_init(read).as_ref()
    }

    /// The checkpoint record and the heads of WAL segments, read once. `None` where nothing
    /// tells where recovery begins, and where `pg_wal` cannot be listed.
    pub fn wal_survey(&self) -> Option<&WalSurvey> {
        let take = || {
            let known = |recovery: &&Recovery| !recovery.files.is_unreadable;
            let recovery = self.recovery().filter(known)?;
            Some(WalSurvey::take(self.source.as_ref(), recovery))
        };
        self.survey.get_or_init(take).as_ref()
    }

    /// The records of segments that are older than the redo point, read once.
    pub fn older_wal(&self) -> Option<&Chain> {
        let read = || {
            let (recovery, survey) = (self.recovery()?, self.wal_survey()?);
            Some(survey.older(self.source.as_ref(), recovery))
        };
        self.older.get_or_init(read).as_ref()
    }

    /// A server at work has written WAL since it was read: what is compared with its end tells
    /// nothing.
    pub fn wal_has_grown(&self) -> bool {
        let (Some(replay), Some(recovery)) = (self.replay(), self.recovery()) else {
            return false;
        };
        replay.has_grown(self.source.as_ref(), recovery)
    }

    /// A server has written another control file since this one was read.
    pub fn control_has_moved(&self) -> bool {
        let now = read_control(self.source.as_ref());
        now.is_ok_and(|now| now != self.control)
    }

    /// Data checksums are on; unknown without a control file to trust.
    pub fn checksums(&self) -> Option<bool> {
        self.control.trusted().map(ControlFile::checksums)
    }

    /// The forks in one folder.
    pub fn files(&self, home: &Home) -> Result<Vec<ForkFiles>, Trouble> {
        list_folder(self.source.as_ref(), home, self.build.segment_bytes)
            .map_err(|error| Trouble::new(&home.folder, error))
    }

    /// What `postgresql.auto.conf` or `postgresql.conf` says of a setting, in lower case.
    pub fn setting(&self, name: &str) -> Option<String> {
        crate::settings::setting(self.source.as_ref(), name)
    }

    /// How the words in the catalogs of a database are read.
    pub fn words(&self, database: Oid) -> Words {
        let known = self.databases.get(&database);
        Words::of(known.and_then(|database| database.encoding))
    }

    /// Relations, columns and types of a database, or of `0`, the shared ones.
    pub fn catalog(&self, database: Oid) -> Catalog {
        Catalog::read(self, database, Depth::Columns)
    }

    /// Relations of a database by name, kind and file, without columns: quicker.
    pub fn catalog_names(&self, database: Oid) -> Catalog {
        Catalog::read(self, database, Depth::Names)
    }

    /// The folder of a database's own catalogs.
    pub(crate) fn catalog_home(&self, database: Oid) -> Option<&Home> {
        let mut own = self.homes.iter().filter(|home| home.database == database);
        let may_have_a_map = |home: &&Home| {
            let path = format!("{}/pg_filenode.map", home.folder);
            !Presence::of_file(self.source.as_ref(), &path).is_missing()
        };
        own.clone().find(may_have_a_map).or_else(|| own.next())
    }

    /// The relation map in a folder.
    pub fn relation_map(&self, home: &Home) -> Result<RelationMap, String> {
        let path = format!("{}/pg_filenode.map", home.folder);
        let bytes =
            read_all(self.source.as_ref(), &path, 4096).map_err(|error| error.to_string())?;
        RelationMap::parse(&bytes).map_err(|fault| fault.to_string())
    }

    /// The file of a mapped catalog: by the map, else by the number it was born with.
    pub(crate) fn mapped_file(&self, home: &Home, catalog: Oid) -> Oid {
        let map = self.relation_map(home).ok().filter(RelationMap::is_right);
        map.and_then(|map| map.filenode(catalog)).unwrap_or(catalog)
    }

    /// What was asked for so far, is there or may be there, and could not be reached, by path: every run tells it at its end.
    pub fn unreadable(&self) -> Vec<Trouble> {
        // Settings may lie outside of the data directory, where a copy of it leads nowhere.
        let lies_elsewhere = |error: &SourceError| {
            error.kind == SourceErrorKind::Dangling && error.path.ends_with(".conf")
        };
        let failures = self.source.unreadable().into_iter();
        let failures = failures.filter(|error| !lies_elsewhere(error));
        failures.map(|error| Trouble::from(&error)).collect()
    }

    /// The segments of one fork, asked one by one; empty when the file is not there. At one that is out of reach it ends too,
    /// and [`Cluster::unreadable`] has its name.
    pub(crate) fn fork_files(&self, home: &Home, filenode: Oid, fork: Fork) -> ForkFiles {
        let mut files = ForkFiles {
            home: home.clone(),
            filenode,
            fork,
            temporary: None,
            segments: Vec::new(),
        };
        for number in 0.. {
            let Ok(len) = self.source.len(&files.path(number)) else {
                break;
            };
            files.segments.push(crate::files::Segment { number, len });
            if len < self.build.segment_bytes {
                break;
            }
        }
        files
    }

    fn read_databases(&mut self) -> BTreeMap<Oid, Database> {
        let mut databases: BTreeMap<Oid, Database> = BTreeMap::new();
        for home in self.homes.iter().filter(|home| home.database != 0) {
            let unnamed = || Database::unnamed(home);
            databases.entry(home.database).or_insert_with(unnamed);
        }
        let global = Home {
            tablespace: GLOBAL_TABLESPACE,
            database: 0,
            folder: "global".into(),
        };
        let files = self.fork_files(&global, self.mapped_file(&global, PG_DATABASE), Fork::Main);
        let columns = ColumnNames::built_in(self.layout.pg_database);
        let mut rows = HeapScan::new(self, &files, &columns.layouts).noting_places();
        let (oid, name) = (columns.index("oid"), columns.index("datname"));
        let (encoding, tablespace) = (columns.index("encoding"), columns.index("dattablespace"));
        let limit = columns.index("datconnlimit");
        let (frozen, min_multi) = (columns.index("datfrozenxid"), columns.index("datminmxid"));
        rows.each_that_may_count(|row| {
            let (Some(oid), Some(name)) = (row.u32(oid), row.name_bytes(name)) else {
                return;
            };
            let encoding = row.u32(encoding).map(u32::cast_signed);
            let database = Database {
                oid,
                name: Some(Words::of(encoding).shared().readable(name)),
                encoding,
                tablespace: row.u32(tablespace).unwrap_or(DEFAULT_TABLESPACE),
                invalid: row.u32(limit) == Some((-2i32).cast_unsigned()),
                frozen_xid: row.u32(frozen).map(Xid),
                min_multi: row.u32(min_multi).map(MultiXactId),
            };
            databases.insert(oid, database);
        });
        let trouble = (!rows.is_whole()).then(|| {
            let why = format!(
                "{} pages and {} rows of pg_database cannot be read",
                rows.unreadable.len(),
                rows.broken_rows
            );
            Trouble::new("names of databases", why)
        });
        let places = rows.places();
        self.troubles.extend(trouble);
        self.find_lost_databases(&global, places.as_ref(), &mut databases);
        databases
    }

    /// Names those whose rows are lost.
    fn find_lost_databases(
        &mut self,
        global: &Home,
        places: Option<&RowPlaces>,
        databases: &mut BTreeMap<Oid, Database>,
    ) {
        let Some(places) = places else {
            return;
        };
        self.lost_databases = lost_databases(self, global, places, databases);
        let proves = self.is_of_one_moment();
        for lost in &self.lost_databases {
            if let Some(database) = databases.get_mut(&lost.oid) {
                database.name.clone_from(&lost.name);
            }
            if !proves {
                continue;
            }
            let name = lost.name.clone().unwrap_or_else(|| lost.oid.to_string());
            let why = "its row in pg_database is lost, and with it encoding, owner and settings";
            let what = format!("what pg_database says of database {name}");
            self.troubles.push(Trouble::new(what, why));
        }
    }
}

pub(crate) fn read_version(source: &dyn Source) -> Result<Option<u16>, OpenError> {
    let text = match read_all(source, "PG_VERSION", 64) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
        Err(error) if error.kind == SourceErrorKind::NotFound => {
            return match Presence::of_file(source, CONTROL_FILE) {
                Presence::There(_) => Ok(None),
                Presence::Missing => Err(OpenError::NoCluster {
                    missing: "PG_VERSION",
                }),
                Presence::Unreadable(error) => Err(error.into()),
            };
        }
        // The control file tells the major as well.
        Err(error) => {
            return match Presence::of_file(source, CONTROL_FILE) {
                Presence::There(_) => Ok(None),
                _ => Err(error.into()),
            };
        }
    };
    match text.parse::<u16>() {
        Ok(major) if Layout::of_major(major).is_some() => Ok(Some(major)),
        _ if text.parse::<f32>().is_ok() => Err(OpenError::Version { found: text }),
        _ => Ok(None),
    }
}

pub(crate) fn read_control(source: &dyn Source) -> Result<ControlState, OpenError> {
    let bytes = match read_all(source, CONTROL_FILE, FILE_BYTES as u64 * 2) {
        Ok(bytes) => bytes,
        Err(error) if error.kind == SourceErrorKind::NotFound => {
            return match Presence::of_directory(source, "base") {
                Presence::There(_) | Presence::Unreadable(_) => {
                    Ok(ControlState::Unreadable(error.to_string()))
                }
                Presence::Missing => Err(OpenError::NoCluster {
                    missing: "global/pg_control",
                }),
            };
        }
        Err(error) => return Ok(ControlState::Unreadable(error.to_string())),
    };
    match ControlFile::parse(&bytes) {
        Ok(control) if control.crc_is_right() => Ok(ControlState::Right(control)),
        Ok(control) => Ok(ControlState::WrongCrc(control)),
        Err(ControlFault::BigEndian) => Err(OpenError::ByteOrder),
        Err(fault) => Ok(ControlState::Fault(fault)),
    }
}

/// A build with longer or shorter names is legal, and every catalog looks different there. Lengths
/// that no build has are left to the checks.
fn refuse_other_names(control: &ControlState) -> Result<(), OpenError> {
    let bytes = control.trusted().map(|control| control.name_data_len);
    let other = bytes
        .filter(|bytes| *bytes != 64 && (16..=8192).contains(bytes) && bytes.is_multiple_of(4));
    other.map_or(Ok(()), |bytes| Err(OpenError::NameLength { bytes }))
}

/// A right control file decides; without one, `PG_VERSION` does.
fn choose_layout(major: Option<u16>, control: &ControlState) -> Result<&'static Layout, OpenError> {
    let by_version = major.and_then(Layout::of_major);
    let by_control = control
        .trusted()
        .and_then(|control| Layout::of_catalog_version(control.catalog_version_no));
    if let (Some(version), Some(control)) = (by_version, by_control)
        && version.major != control.major
    {
        let why = format!(
            "PG_VERSION says {} and the control file {}: one of them is from another cluster",
            version.major, control.major
        );
        return Err(OpenError::Contradiction { why });
    }
    by_control.or(by_version).ok_or_else(|| OpenError::Version {
        found: "an unknown version: PG_VERSION and the control file are both unreadable".into(),
    })
}
