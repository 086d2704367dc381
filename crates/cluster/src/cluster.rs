//! The facade: one cluster, opened. How it comes to be is in [`crate::open`], what of it may be
//! compared in [`crate::comparison`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use pgclinic_format::backup_manifest::BackupManifest;
use pgclinic_format::control_file;
use pgclinic_format::digest::Algorithm;
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, ControlFile, Fork, Layout, Lsn, Oid, RelationMap};
use pgclinic_source::{Presence, Source, SourceError, SourceErrorKind, read_all};

use crate::backup::{BackupStart, MANIFEST, ManifestState};
use crate::build::Build;
use crate::catalog_encoding::CatalogEncoding;
use crate::collation::MachineCollations;
use crate::collator::Collator;
use crate::comparison::Comparison;
use crate::control_state::{ControlState, read_control};
use crate::database::{Database, LostDatabase};
use crate::error::ReadGap;
use crate::files::{DatabaseDirectory, ForkFiles, list_folder};
use crate::multixact::MultiXacts;
use crate::settings::SettingsFiles;
use crate::state::{Recovered, State};
use crate::transaction_log::TransactionLog;
use crate::wal::{Chain, LabelState, Recovery, Replay, WalSurvey, is_signalled};

/// Bytes of older WAL that are read for a witness alone where nothing raises the question.
const ASIDE_BYTES: u64 = 256 << 20;
/// Bytes that a shutdown checkpoint takes in the WAL at most, page headers included.
pub const CHECKPOINT_BYTES: u64 = 256;

fn end_of_checkpoint(control: &ControlFile) -> Lsn {
    Lsn(control.checkpoint_lsn.0.saturating_add(CHECKPOINT_BYTES))
}

/// An opened cluster: what was read of it, what that means, and what is read when it is first asked
/// for.
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
    /// Databases whose rows are lost and whose directories are there; they stand among the others
    /// too. Not asked for while a server runs.
    pub lost_databases: Vec<LostDatabase>,
    /// No page and no row of `pg_database` is missing.
    pub(crate) database_rows_are_whole: bool,
    pub(crate) leftovers: OnceLock<BTreeSet<Oid>>,
    /// Folders with relation files.
    pub homes: Vec<DatabaseDirectory>,
    /// What could not be read while opening.
    pub troubles: Vec<ReadGap>,
    /// What the libraries of this machine say, for who knows it to fill in.
    pub machine: MachineCollations,
    /// Who can order text under the collations of this machine's libraries, for who has one.
    pub collator: Option<Arc<dyn Collator>>,
    pub(crate) state: State,
    pub(crate) settings: OnceLock<SettingsFiles>,
    pub(crate) backup: Backup,
    pub(crate) wal: WalReadings,
}

/// What makes the files those of a backup.
#[derive(Default)]
pub(crate) struct Backup {
    /// A `backup_label` is there, read or not: no server has started on the files.
    pub(crate) is_labelled: bool,
    pub(crate) wal: BackupWal,
    /// The backups that the cluster is put together from.
    pub(crate) links: Vec<Link>,
    manifest: OnceLock<Option<ManifestState>>,
}

/// Where the WAL is kept that a backup needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum BackupWal {
    #[default]
    InPgWal,
    Elsewhere,
}

/// What the write-ahead log says; all but the control file is read when it is first asked for.
#[derive(Default)]
pub(crate) struct WalReadings {
    /// What stands in for a control file that cannot be trusted.
    pub(crate) control: Option<ControlFile>,
    recovery: OnceLock<Option<Recovery>>,
    replay: OnceLock<Option<Replay>>,
    survey: OnceLock<Option<WalSurvey>>,
    pub(crate) older: OnceLock<Option<Chain>>,
    recent: OnceLock<Option<Chain>>,
}

/// One backup of a chain.
pub struct Link {
    /// How the person named it.
    pub name: String,
    /// Its own files, parts as they are.
    pub cluster: Cluster,
    pub(crate) start: BackupStart,
    pub(crate) follows: Option<BackupStart>,
}

impl Link {
    /// Its `START WAL LOCATION`.
    pub fn started_at(&self) -> Lsn {
        self.start.lsn
    }
}

impl Cluster {
    /// Nothing but what is given is known of it.
    pub(crate) fn unread(
        source: Arc<dyn Source>,
        layout: &'static Layout,
        control: ControlState,
        build: Build,
    ) -> Self {
        let page_bytes = usize::try_from(build.block_size).unwrap_or(8192);
        Cluster {
            transactions: TransactionLog::new(Arc::clone(&source), page_bytes, None),
            multixacts: MultiXacts::new(Arc::clone(&source), page_bytes, None),
            settings: OnceLock::new(),
            source,
            layout,
            control,
            build,
            databases: BTreeMap::new(),
            lost_databases: Vec::new(),
            database_rows_are_whole: false,
            leftovers: OnceLock::new(),
            homes: Vec::new(),
            troubles: Vec::new(),
            machine: MachineCollations::default(),
            collator: None,
            state: State::Stopped,
            backup: Backup::default(),
            wal: WalReadings::default(),
        }
    }

    pub(crate) fn page_bytes(&self) -> usize {
        usize::try_from(self.build.block_size).unwrap_or(8192)
    }

    /// A base backup on which no server has started: `backup_manifest` and `backup_label` lie side
    /// by side.
    pub fn is_base_backup(&self) -> bool {
        self.backup.is_labelled && !Presence::of_file(self.source.as_ref(), MANIFEST).is_missing()
    }

    /// The files come from a base backup, with a manifest or without: main forks of unlogged
    /// relations are not among them.
    pub fn leaves_unlogged_out(&self) -> bool {
        self.backup.is_labelled
    }

    /// A server in recovery removed the main forks of unlogged relations when it began, and copies
    /// their init forks over them when it ends: a standby never has any.
    pub fn removes_unlogged(&self) -> bool {
        use control_file::State::{InArchiveRecovery, InCrashRecovery, ShutDownInRecovery};
        let control = self.control.trusted();
        control.is_some_and(|control| {
            matches!(
                control.state,
                ShutDownInRecovery | InCrashRecovery | InArchiveRecovery
            )
        })
    }

    /// WAL that the backup needs is none of its own.
    pub(crate) fn wal_is_elsewhere(&self) -> bool {
        self.backup.wal == BackupWal::Elsewhere
    }

    /// The backups that the cluster is put together from; none where it is one of its own.
    pub fn links(&self) -> &[Link] {
        &self.backup.links
    }

    /// What the manifest of a base backup says, read once.
    pub fn manifest(&self) -> Option<&BackupManifest> {
        match self.manifest_state()? {
            ManifestState::Read(manifest) => Some(manifest),
            ManifestState::Wrong(_) | ManifestState::Unreadable(_) => None,
        }
    }

    /// The manifest of a base backup, or what is wrong with it.
    pub fn manifest_state(&self) -> Option<&ManifestState> {
        let read = || {
            let is_labelled = self.backup.is_labelled;
            is_labelled.then(|| ManifestState::read(self.source.as_ref()))?
        };
        self.backup.manifest.get_or_init(read).as_ref()
    }

    /// Its files show what a recovery in memory made of them.
    pub fn is_replayed(&self) -> bool {
        self.state.replayed().is_some()
    }

    /// Up to where the records of all WAL that there is were followed. Of a server at work this is
    /// the moment which the status of its transactions is of.
    pub fn replayed_to(&self) -> Option<Lsn> {
        self.state.replayed()?.end
    }

    /// Pages that were changed after the end of WAL that was replayed, and that an image of it
    /// hides now: some WAL is missing.
    pub fn pages_later_than_replay(&self) -> u64 {
        self.state.replayed().map_or(0, |own| own.later_pages)
    }

    /// Where all write-ahead log ends that there is, if nothing says that some is missing: no page
    /// can have been changed later. `None` where the control file alone tells that nothing is to be
    /// recovered, so that nobody asks for WAL.
    pub fn wal_end(&self) -> Option<Lsn> {
        let is_settled = !self.needs_recovery();
        let settled = self.control_from_wal().filter(|_| is_settled);
        self.replayed_to().or(settled.map(end_of_checkpoint))
    }

    /// Where WAL ends of a cluster whose control file says that nothing is to be recovered: no page
    /// can have been changed later.
    pub fn settled_wal_end(&self) -> Option<Lsn> {
        let is_settled = self.may_compare(Comparison::NumbersWithCheckpoint);
        let control = self.control.trusted().filter(|_| is_settled)?;
        Some(end_of_checkpoint(control))
    }

    /// The fewest blocks that WAL left of the main fork of a file, where a recovery in memory
    /// truncated it.
    pub(crate) fn truncated_to(&self, file: FileNumber) -> Option<BlockNo> {
        self.state.replayed()?.truncated.get(&file).copied()
    }

    /// Its catalogs and status files are those that a complete recovery leaves.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.state.replayed()?.recovered.as_ref()
    }

    /// Where the bytes come from.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// The server was not shut down in good order, or a `backup_label` sends it back to an earlier
    /// checkpoint. Also while a server is at work: what it has in memory only, its files do not
    /// show.
    pub fn needs_recovery(&self) -> bool {
        match &self.state {
            State::Stopped => false,
            State::Crashed { .. } => true,
            State::Running { .. } => self.known_control().is_some(),
            State::Partial | State::Streamed(_) => self.recovery_is_due(),
        }
    }

    /// As the control file and the label say it, whatever else is known.
    pub(crate) fn recovery_is_due(&self) -> bool {
        match self.known_control() {
            Some(control) => {
                control.state != control_file::State::ShutDown || self.backup.is_labelled
            }
            None => self.backup.is_labelled && !self.is_partial(),
        }
    }

    /// The control file; where it cannot be trusted, what the write-ahead log says of recovery in
    /// its place.
    fn known_control(&self) -> Option<&ControlFile> {
        self.control.trusted().or_else(|| self.control_from_wal())
    }

    /// Where the control file cannot be trusted: identifier, checkpoint and state as the
    /// write-ahead log has them, and no other field. Nothing where no checkpoint is in `pg_wal`:
    /// then whether recovery is due is unknown.
    pub fn control_from_wal(&self) -> Option<&ControlFile> {
        self.wal.control.as_ref().filter(|_| !self.is_partial())
    }

    /// A server is at work on the files, as whoever opened the cluster knew.
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// What the control file says at this moment, which may be another than when it was opened.
    pub fn is_in_production_now(&self) -> bool {
        read_control(self.source().as_ref()).is_ok_and(|own| {
            own.trusted()
                .is_some_and(|own| own.state == control_file::State::InProduction)
        })
    }

    /// A part of its files is known not to be there: one that is missing, or short, proves nothing.
    pub fn is_partial(&self) -> bool {
        self.state.is_partial()
    }

    /// In what state the files are.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Of files that passed by once, the checksums that were made then, by path.
    pub fn streamed_checksums(&self) -> Option<&BTreeMap<String, (Algorithm, Vec<u8>)>> {
        match &self.state {
            State::Streamed(files) => Some(&files.checksums),
            _ => None,
        }
    }

    /// Where recovery would begin, and what lies in `pg_wal`. `None` where neither the control file
    /// nor WAL tells.
    pub fn recovery(&self) -> Option<&Recovery> {
        let plan = || {
            let source = self.source.as_ref();
            // A server that runs has begun long ago: the label is that of a backup being made of
            // it.
            let label = if self.is_running() {
                LabelState::None
            } else {
                LabelState::read(source)
            };
            Recovery::plan(source, self.layout, self.known_control()?, label)
        };
        self.wal.recovery.get_or_init(plan).as_ref()
    }

    /// What recovery would do, read once from the WAL that is there. `None` for a cluster that
    /// needs no recovery, and where nothing tells where it begins.
    pub fn replay(&self) -> Option<&Replay> {
        let read = || {
            let recovery = self.recovery().filter(|_| self.needs_recovery())?;
            let control = self.known_control()?;
            let source = self.source.as_ref();
            Some(if self.is_running() {
                Replay::read_to_the_present(source, recovery, control)
            } else {
                Replay::read(source, recovery, control)
            })
        };
        self.wal.replay.get_or_init(read).as_ref()
    }

    /// The checkpoint record and the heads of WAL segments, read once. `None` where nothing
    /// tells where recovery begins, and where `pg_wal` cannot be listed.
    pub fn wal_survey(&self) -> Option<&WalSurvey> {
        let take = || {
            let known = |recovery: &&Recovery| !recovery.files.is_unreadable;
            let recovery = self.recovery().filter(known)?;
            Some(WalSurvey::take(self.source.as_ref(), recovery))
        };
        self.wal.survey.get_or_init(take).as_ref()
    }

    /// The records of segments that are older than the redo point, read once.
    pub fn older_wal(&self) -> Option<&Chain> {
        let read = || {
            let (recovery, survey) = (self.recovery()?, self.wal_survey()?);
            Some(survey.older(self.source.as_ref(), recovery))
        };
        self.wal.older.get_or_init(read).as_ref()
    }

    /// The same where it was read already, or is soon read.
    pub(crate) fn older_wal_aside(&self) -> Option<&Chain> {
        if let Some(known) = self.wal.older.get() {
            return known.as_ref();
        }
        (self.older_wal_bytes()? <= ASIDE_BYTES).then_some(())?;
        self.older_wal()
    }

    /// Those of its last segments, which is soon read.
    pub(crate) fn recent_wal(&self) -> Option<&Chain> {
        let (recovery, survey) = (self.recovery()?, self.wal_survey()?);
        if self.wal.older.get().is_some() || survey.is_all_recent(recovery) {
            return self.older_wal();
        }
        let read = || Some(survey.recent(self.source.as_ref(), recovery));
        self.wal.recent.get_or_init(read).as_ref()
    }

    /// How much that is.
    pub(crate) fn older_wal_bytes(&self) -> Option<u64> {
        let (recovery, survey) = (self.recovery()?, self.wal_survey()?);
        let oldest = survey
            .oldest
            .checked_mul(u64::from(recovery.shape.segment_bytes))?;
        recovery.start.redo.0.checked_sub(oldest)
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
        now.is_ok_and(|now| now != self.control.clone().before_judged())
    }

    /// Data checksums are on; unknown without a control file to trust.
    pub fn checksums(&self) -> Option<bool> {
        self.control.trusted().map(ControlFile::checksums)
    }

    /// The forks in one folder.
    pub fn files(&self, home: &DatabaseDirectory) -> Result<Vec<ForkFiles>, ReadGap> {
        list_folder(self.source.as_ref(), home, self.build.segment_bytes)
            .map_err(|error| ReadGap::new(&home.folder, error))
    }

    /// The server is told to recover from an archive or to follow another server.
    pub fn is_signalled(&self) -> bool {
        is_signalled(self.source.as_ref())
    }

    /// What `postgresql.auto.conf` or `postgresql.conf` says of a setting, in lower case.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.settings_files().value(name)
    }

    /// What its settings files do not set has the server's default: they are all there.
    pub fn has_all_settings(&self) -> bool {
        self.settings_files().are_all()
    }

    fn settings_files(&self) -> &SettingsFiles {
        self.settings
            .get_or_init(|| SettingsFiles::read(self.source.as_ref()))
    }

    /// How the words in the catalogs of a database are read.
    pub fn words(&self, database: Oid) -> CatalogEncoding {
        let known = self.databases.get(&database);
        CatalogEncoding::of(known.and_then(|database| database.encoding))
    }

    /// The folder of a database's own catalogs.
    pub(crate) fn catalog_home(&self, database: Oid) -> Option<&DatabaseDirectory> {
        let mut own = self.homes.iter().filter(|home| home.database == database);
        let may_have_a_map = |home: &&DatabaseDirectory| {
            let path = format!("{}/pg_filenode.map", home.folder);
            !Presence::of_file(self.source.as_ref(), &path).is_missing()
        };
        own.clone().find(may_have_a_map).or_else(|| own.next())
    }

    /// The relation map in a folder.
    pub fn relation_map(&self, home: &DatabaseDirectory) -> Result<RelationMap, String> {
        let path = format!("{}/pg_filenode.map", home.folder);
        let bytes =
            read_all(self.source.as_ref(), &path, 4096).map_err(|error| error.to_string())?;
        RelationMap::parse(&bytes).map_err(|fault| fault.to_string())
    }

    /// The file of a mapped catalog: by the map, else by the number it was born with.
    pub(crate) fn mapped_file(&self, home: &DatabaseDirectory, catalog: Oid) -> Oid {
        let map = self.relation_map(home).ok().filter(RelationMap::is_right);
        map.and_then(|map| map.filenode(catalog)).unwrap_or(catalog)
    }

    /// What was asked for so far, is there or may be there, and could not be reached, by path:
    /// every run tells it at its end.
    pub fn unreadable(&self) -> Vec<ReadGap> {
        // Settings may lie outside of the data directory, where a copy of it leads nowhere.
        let lies_elsewhere = |error: &SourceError| {
            error.kind == SourceErrorKind::Dangling && error.path.ends_with(".conf")
        };
        let failures = self.source.unreadable().into_iter();
        let failures = failures.filter(|error| !lies_elsewhere(error));
        failures.map(|error| ReadGap::from(&error)).collect()
    }

    /// The segments of one fork, asked one by one; empty when the file is not there. At one that is
    /// out of reach it ends too, and [`Cluster::unreadable`] has its name.
    pub(crate) fn fork_files(
        &self,
        home: &DatabaseDirectory,
        filenode: Oid,
        fork: Fork,
    ) -> ForkFiles {
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
}
