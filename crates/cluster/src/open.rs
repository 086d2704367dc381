//! How a cluster is opened: what is known of its files beforehand, and the one way from there to a
//! [`Cluster`].
//!
//! ```text
//! Cluster::open(source)                                          a stopped or crashed cluster, a base backup
//! Cluster::open(OpenOptions::of(source).running())               a server runs on the files
//! Cluster::open(OpenOptions::of(source).with_torn_page_retry(clock))
//! Cluster::open(OpenOptions::of(source).truncated().missing(gaps))   an archive without its end
//! Cluster::open(OpenOptions::of(source).streamed(files))         files that passed by once
//! Cluster::open(OpenOptions::chain(named))                       a full backup and incremental ones
//! Cluster::open(OpenOptions::of(source).without_cluster(layout, build, homes))  relation files alone
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use pgclinic_format::{ControlFile, Layout, Xid};
use pgclinic_source::{Clock, Source, read_all};

use crate::build::{Build, build_of};
use crate::chain;
use crate::cluster::{BackupWal, Cluster, Link};
use crate::control_state::{
    ControlState, choose_layout, read_control, read_version, refuse_other_names,
};
use crate::database::Database;
use crate::databases::read_databases;
use crate::error::{OpenError, ReadGap};
use crate::files::{DatabaseDirectory, homes};
use crate::major::{layout_of_wal, major_of_databases, major_of_others};
use crate::multixact::MultiXacts;
use crate::read_again::ReadAgain;
use crate::state::{State, StreamedFiles};
use crate::transaction_log::{PAGES_PER_FILE, TransactionLog, XIDS_PER_BYTE};
use crate::truncated;
use crate::wal::{LabelState, control_from_wal, judge, judge_age};

/// What is known of the files of a cluster before it is opened.
pub struct OpenOptions {
    files: Files,
    writer: Writer,
    /// A part of the files that cannot be had, in words.
    missing: Vec<ReadGap>,
    end: End,
    streamed: Option<StreamedFiles>,
    backup_wal: BackupWal,
    increments: Increments,
}

/// What the files are.
enum Files {
    OfCluster(Arc<dyn Source>),
    /// Backups with their names, the full one first.
    OfChain(Vec<(String, Arc<dyn Source>)>),
    /// Relation files, without anything that makes them a cluster.
    Alone(
        Arc<dyn Source>,
        &'static Layout,
        Build,
        Vec<DatabaseDirectory>,
    ),
}

/// Who writes to the files meanwhile.
#[derive(Clone)]
enum Writer {
    Nobody,
    Server,
    /// Pages that look half written are read again, after a wait by this clock.
    ServerWithRetry(Arc<dyn Clock>),
}

/// Whether the files that tell the version must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    There,
    Truncated,
}

/// Whether an incremental backup is opened by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Increments {
    Refused,
    /// Of a chain, or of a cluster that was opened already.
    Accepted,
}

impl<S: Source + 'static> From<Arc<S>> for OpenOptions {
    fn from(source: Arc<S>) -> Self {
        OpenOptions::of(source)
    }
}

impl From<Arc<dyn Source>> for OpenOptions {
    fn from(source: Arc<dyn Source>) -> Self {
        OpenOptions::of(source)
    }
}

impl OpenOptions {
    /// A cluster that nobody writes to, and all of whose files are there.
    pub fn of(source: Arc<dyn Source>) -> Self {
        OpenOptions::with_files(Files::OfCluster(source))
    }

    /// Backups with their names as one: the full one first, then those that build on it, in order.
    pub fn chain(named: Vec<(String, Arc<dyn Source>)>) -> Self {
        OpenOptions::with_files(Files::OfChain(named))
    }

    fn with_files(files: Files) -> Self {
        OpenOptions {
            files,
            writer: Writer::Nobody,
            missing: Vec::new(),
            end: End::There,
            streamed: None,
            backup_wal: BackupWal::InPgWal,
            increments: Increments::Refused,
        }
    }

    /// Relation files alone, of which no cluster is known: pages have this layout and size, and
    /// these are the directories of databases. Of transactions only what rows say themselves is
    /// known, unless `pg_xact` lies beside the files.
    #[must_use]
    pub fn without_cluster(
        self,
        layout: &'static Layout,
        build: Build,
        homes: Vec<DatabaseDirectory>,
    ) -> Self {
        let files = match self.files {
            Files::OfCluster(source) | Files::Alone(source, ..) => {
                Files::Alone(source, layout, build, homes)
            }
            // A chain has control files, which say what its pages look like.
            Files::OfChain(named) => Files::OfChain(named),
        };
        OpenOptions { files, ..self }
    }

    /// A server runs on the files: they are those of a crash that has not happened yet. What is
    /// read is as old as the moment in which it was read.
    #[must_use]
    pub fn running(self) -> Self {
        OpenOptions {
            writer: Writer::Server,
            ..self
        }
    }

    /// The same, and pages that are not sound are read again before anybody sees them.
    #[must_use]
    pub fn with_torn_page_retry(self, clock: Arc<dyn Clock>) -> Self {
        OpenOptions {
            writer: Writer::ServerWithRetry(clock),
            ..self
        }
    }

    /// A part of the files cannot be had, for these reasons; without a reason, all are there.
    #[must_use]
    pub fn missing(self, missing: Vec<ReadGap>) -> Self {
        OpenOptions { missing, ..self }
    }

    /// The end of the files is not there, and `PG_VERSION` and the control file may be in it: what
    /// there is of databases and WAL tells the major too.
    #[must_use]
    pub fn truncated(self) -> Self {
        OpenOptions {
            end: End::Truncated,
            ..self
        }
    }

    /// The files passed by once, and this is what is left of them.
    #[must_use]
    pub fn streamed(self, files: StreamedFiles) -> Self {
        OpenOptions {
            streamed: Some(files),
            ..self
        }
    }

    /// WAL that the backup needs is none of its own: another backup builds on it, or a server has
    /// it still.
    #[must_use]
    pub fn with_wal_elsewhere(self) -> Self {
        OpenOptions {
            backup_wal: BackupWal::Elsewhere,
            ..self
        }
    }

    /// An incremental backup by itself, some of whose files are there in parts only.
    pub(crate) fn accepting_increments(self) -> Self {
        OpenOptions {
            increments: Increments::Accepted,
            ..self
        }
    }

    fn state(&mut self) -> State {
        let is_partial = self.end == End::Truncated || !self.missing.is_empty();
        match (&self.writer, self.streamed.take()) {
            (Writer::Server | Writer::ServerWithRetry(_), _) => State::running(),
            (Writer::Nobody, Some(files)) => State::Streamed(StreamedFiles {
                is_partial: files.is_partial || is_partial,
                ..files
            }),
            (Writer::Nobody, None) if is_partial => State::Partial,
            // Until the control file was read.
            (Writer::Nobody, None) => State::Stopped,
        }
    }
}

impl Cluster {
    /// Reads version, control file, folders and databases.
    ///
    /// # Errors
    ///
    /// It is no cluster, or none that can be read: of another version, byte order or build; an
    /// incremental backup by itself; backups that are no chain. Or the source cannot be read.
    pub fn open(options: impl Into<OpenOptions>) -> Result<Self, OpenError> {
        let mut options = options.into();
        let state = options.state();
        match std::mem::replace(&mut options.files, Files::OfChain(Vec::new())) {
            Files::OfCluster(source) => open_files(source, state, options),
            Files::OfChain(named) => open_chain(named, state, options),
            Files::Alone(source, layout, build, homes) => {
                Ok(open_alone(source, layout, build, homes))
            }
        }
    }
}

fn open_files(
    source: Arc<dyn Source>,
    state: State,
    options: OpenOptions,
) -> Result<Cluster, OpenError> {
    let label = match state {
        // A server that runs has begun long ago: the label is that of a backup being made of it.
        State::Running { .. } => LabelState::None,
        _ => LabelState::read(source.as_ref()),
    };
    let is_incremental = matches!(&label, LabelState::Read(label) if label.follows.is_some());
    if is_incremental && options.increments == Increments::Refused {
        return Err(OpenError::Incremental);
    }
    let mut cluster = read_cluster(Arc::clone(&source), state.clone(), &label, options.end)?;
    if let Writer::ServerWithRetry(clock) = options.writer {
        let (build, checksums) = (cluster.build, cluster.checksums());
        let retrying = Arc::new(ReadAgain::new(source, build, checksums, clock));
        cluster = read_cluster(retrying, state, &label, options.end)?;
    }
    cluster.troubles.extend(options.missing);
    cluster.backup.wal = options.backup_wal;
    Ok(cluster)
}

fn open_alone(
    source: Arc<dyn Source>,
    layout: &'static Layout,
    build: Build,
    homes: Vec<DatabaseDirectory>,
) -> Cluster {
    let control = ControlState::Unreadable("there are relation files only".into());
    let mut cluster = Cluster::unread(source, layout, control, build);
    for home in &homes {
        let unnamed = || Database::unnamed(home);
        let of_home = cluster.databases.entry(home.database);
        of_home.or_insert_with(unnamed);
    }
    cluster.homes = homes;
    cluster
}

fn open_chain(
    named: Vec<(String, Arc<dyn Source>)>,
    state: State,
    options: OpenOptions,
) -> Result<Cluster, OpenError> {
    // Only the last one's WAL is ever replayed.
    let last = named.len().saturating_sub(1);
    let links = named.into_iter().enumerate();
    let links = links.map(|(number, (name, source))| {
        if number < last {
            open_link(name, source, BackupWal::Elsewhere)
        } else {
            open_link(name, source, BackupWal::InPgWal)
        }
    });
    let links = links.collect::<Result<Vec<Link>, OpenError>>()?;
    let mut cluster = open_files(chain::combined(&links)?, state, options)?;
    cluster.backup.links = links;
    Ok(cluster)
}

fn open_link(name: String, source: Arc<dyn Source>, wal: BackupWal) -> Result<Link, OpenError> {
    let label = LabelState::read(source.as_ref());
    let (start, follows) = chain::starts(&name, &label)?;
    let options = OpenOptions {
        backup_wal: wal,
        ..OpenOptions::of(source).accepting_increments()
    };
    let cluster = Cluster::open(options);
    let cluster = cluster.map_err(|error| chain::refused(&name, &error.to_string()))?;
    Ok(Link {
        name,
        cluster,
        start,
        follows,
    })
}

/// A `PG_VERSION` that all else contradicts is the file that is wrong.
fn read_major_and_control(source: &dyn Source) -> Result<(Option<u16>, ControlState), OpenError> {
    let version = match read_version(source) {
        Err(error) if !matches!(error, OpenError::Version { .. }) => return Err(error),
        version => version,
    };
    let control = read_control(source)?;
    let by_control = control.trusted();
    let by_control = by_control.and_then(|own| Layout::of_catalog_version(own.catalog_version_no));
    if let (Ok(Some(major)), Some(layout)) = (&version, by_control)
        && layout.major == *major
    {
        return Ok((Some(*major), control));
    }
    match major_of_others(source, &control) {
        Some(major) => Ok((Some(major), control)),
        None => match version? {
            None if by_control.is_none() => Ok((major_of_databases(source), control)),
            version => Ok((version, control)),
        },
    }
}

/// Reads what every cluster has.
fn read_cluster(
    source: Arc<dyn Source>,
    state: State,
    label: &LabelState,
    end: End,
) -> Result<Cluster, OpenError> {
    let (major, control) = match end {
        End::There => read_major_and_control(source.as_ref())?,
        End::Truncated => truncated::read_major_and_control(source.as_ref())?,
    };
    let layout = choose_layout(major, &control)?;
    refuse_other_names(&control)?;
    let is_running = matches!(state, State::Running { .. });
    // The server that runs has read its own.
    let control = match (end, is_running) {
        (End::There, false) => {
            let control = judge(source.as_ref(), layout, control);
            judge_age(source.as_ref(), layout, control, label)
        }
        _ => control,
    };
    let build = build_of(source.as_ref(), &control);
    let from_wal = match (control.trusted(), is_running) {
        (None, false) => control_from_wal(source.as_ref(), layout, build, label),
        _ => None,
    };
    let mut cluster = Cluster::unread(source, layout, control, build);
    cluster.state = state;
    cluster.wal.control = from_wal;
    cluster.backup.is_labelled = *label != LabelState::None;
    if cluster.state == State::Stopped && cluster.recovery_is_due() {
        cluster.state = State::Crashed { replayed: None };
    }
    set_limits(&mut cluster);
    let version_folder = format!("PG_{}_{}", layout.major, layout.catalog_version);
    let found = homes(
        cluster.source.as_ref(),
        &version_folder,
        &mut cluster.troubles,
    );
    cluster.homes = found;
    read_databases(&mut cluster);
    let before = status_now(&cluster);
    if let State::Running { status_before, .. } = &mut cluster.state {
        *status_before = before;
    }
    Ok(cluster)
}

/// After a shutdown the checkpoint tells which transactions there are.
fn set_limits(cluster: &mut Cluster) {
    let known = cluster.control.trusted().or(cluster.wal.control.as_ref());
    let is_settled = |control: &&ControlFile| {
        control.is_shut_down() && !cluster.backup.is_labelled && !cluster.is_running()
    };
    let Some(control) = known.filter(is_settled) else {
        return;
    };
    let (next_xid, checkpoint) = (control.checkpoint.next_xid(), &control.checkpoint);
    let next_multi = (checkpoint.next_multi, checkpoint.next_multi_offset);
    let page_bytes = cluster.page_bytes();
    let source = || Arc::clone(&cluster.source);
    let transactions = TransactionLog::new(source(), page_bytes, Some(next_xid));
    let multixacts = MultiXacts::new(source(), page_bytes, Some(next_multi));
    (cluster.transactions, cluster.multixacts) = (transactions, multixacts);
}

/// The files of `pg_xact` to which a server writes that runs. What committed before the redo point
/// of the control file is in them; what commits from now on has its record in WAL that is read
/// later.
fn status_now(cluster: &Cluster) -> BTreeMap<String, Vec<u8>> {
    let control = cluster.control.trusted().filter(|_| cluster.is_running());
    let Some(control) = control else {
        return BTreeMap::new();
    };
    let bytes_max = u64::from(cluster.build.block_size) * PAGES_PER_FILE;
    let per_file = u32::try_from(bytes_max * XIDS_PER_BYTE).unwrap_or(u32::MAX);
    let next = control.checkpoint.next_xid();
    let before = Xid(next.0.wrapping_sub(per_file));
    let paths = [before, next].map(|xid| cluster.transactions.file_of(xid));
    let read = |path: String| {
        let bytes = read_all(cluster.source.as_ref(), &path, bytes_max).ok()?;
        Some((path, bytes))
    };
    paths.into_iter().filter_map(read).collect()
}

impl Cluster {
    /// The major of the first page of WAL that has one.
    pub fn major_of_wal(&self) -> Option<u16> {
        layout_of_wal(self.source.as_ref()).map(|own| own.major)
    }

    /// How these files are opened in the same state, seen through another source.
    pub(crate) fn seen_through(&self, source: Arc<dyn Source>) -> OpenOptions {
        let options = OpenOptions::of(source).accepting_increments();
        if self.is_running() {
            options.running()
        } else {
            options
        }
    }
}
