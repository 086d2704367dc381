//! From what a person named to a source and a cluster.

use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgclinic_check::check::ForkCx;
use pgclinic_cluster::{
    Build, Cluster, DatabaseDirectory, ForkContext, ForkFiles, OpenError, OpenOptions, ReadGap,
    RelationFileName, Segment,
};
use pgclinic_format::control_file::State;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{ControlFile, Fork, Page};
use pgclinic_model::Level;
use pgclinic_model::document::{FileKind, Target};
use pgclinic_servers::ConnectionTarget as Named;
use pgclinic_source::{
    Clock, DataDirectory, EntryKind, Limit, Pace, SingleFile, Source, TarBackup, tar,
};
use pgclinic_surgery::safety::LockFile;

use crate::args::{ChainArgs, LoadArgs};
use crate::env::{Env, sleep_unless};
use crate::exit::Failure;
use crate::server_files;
use crate::stream::is_url;
use crate::undetected_server::UndetectedServer;

/// What was named.
pub(crate) enum OpenTarget {
    /// A data directory.
    Cluster(Box<Cluster>),
    /// One relation file.
    File(BareFile),
    /// A backup in archives that were cut before anything told its version.
    TruncatedArchive(TruncatedArchive),
}

/// What is left of a backup in archives.
pub(crate) struct TruncatedArchive {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) troubles: Vec<ReadGap>,
    path: PathBuf,
}

impl TruncatedArchive {
    /// For who can do nothing with it.
    pub(crate) fn failure(&self) -> Failure {
        let why = self.troubles.first();
        Failure::new(format!(
            "{}: nothing that is there tells the version of PostgreSQL ({})",
            self.path.display(),
            why.map_or("it was truncated", |trouble| trouble.why.as_str())
        ))
    }
}

/// A relation file without its cluster.
pub(crate) struct BareFile {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) forks: Vec<ForkFiles>,
    pub(crate) build: Build,
    pub(crate) method: Option<AccessMethod>,
}

/// The wall clock.
pub(crate) struct RealClock {
    start: Instant,
}

impl RealClock {
    /// Counts from this moment.
    pub(crate) fn starting(start: Instant) -> Self {
        RealClock { start }
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Sleeps no longer once somebody wants the run to end: what is begun then goes on at full speed up
/// to the next place where it can stop.
struct InterruptibleClock {
    clock: RealClock,
    interrupted: Arc<AtomicBool>,
}

impl Clock for InterruptibleClock {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn sleep(&self, time: Duration) {
        sleep_unless(&self.interrupted, time);
    }
}

/// What becomes of a data directory on which a server is at work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtWork {
    Refused,
    ReadOnce,
    ReadAgain,
}

/// How a target is opened.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    /// How fast to go.
    load: Option<&'a LoadArgs>,
    /// Where what comes out of packed archives is kept, unless the person says otherwise.
    temp_folder: &'a Path,
    interrupted: &'a Arc<AtomicBool>,
    server: AtWork,
    /// Incremental backups that build on what is opened.
    incremental: &'a [PathBuf],
    /// What is known of a server that `postmaster.pid` does not show.
    unseen: Option<UndetectedServer>,
    /// The server that the target names, where it is a URL.
    named: Option<&'a Named>,
}

impl<'a> Opening<'a> {
    pub(crate) fn new(world: &'a Env<'_>, load: Option<&'a LoadArgs>) -> Self {
        Opening {
            load,
            temp_folder: &world.temp_folder,
            interrupted: &world.interrupted,
            server: AtWork::Refused,
            incremental: &[],
            unseen: None,
            named: None,
        }
    }

    /// A server may be at work on the data directory: its files are read as they are at each
    /// moment.
    pub(crate) fn beside_a_server(self) -> Self {
        Opening {
            server: AtWork::ReadOnce,
            ..self
        }
    }

    /// The same; pages that are not sound are read again before anybody sees them.
    pub(crate) fn reading_again(self) -> Self {
        Opening {
            server: AtWork::ReadAgain,
            ..self
        }
    }

    /// The same with the incremental backups that build on the target.
    pub(crate) fn with_chain(self, chain: &'a ChainArgs) -> Self {
        Opening {
            incremental: &chain.incremental,
            ..self
        }
    }

    /// The same with what is known of a server that cannot be seen from here.
    pub(crate) fn with_unseen(self, unseen: Option<UndetectedServer>) -> Self {
        Opening { unseen, ..self }
    }

    /// The same of a target that is the URL of this server.
    pub(crate) fn of_server(self, named: Option<&'a Named>) -> Self {
        Opening { named, ..self }
    }

    /// Somebody says that a server is at work, of what can have none.
    fn refuse_server_of(&self, what: &str) -> Result<(), Failure> {
        match self.unseen {
            Some(UndetectedServer::Told) => Err(Failure::new(format!(
                "--running is for a data directory on which a server is running, and not for {what}"
            ))),
            _ => Ok(()),
        }
    }

    fn spill_folder(&self) -> PathBuf {
        match self.load {
            Some(load) => load.spill_folder(self.temp_folder),
            None => self.temp_folder.to_owned(),
        }
    }
}

/// Opens a target for reading. A running cluster is refused, unless the opening allows it.
pub(crate) fn open(path: &Path, opening: Opening<'_>) -> Result<OpenTarget, Failure> {
    if !opening.incremental.is_empty() || opening.named.is_some() {
        return open_cluster(path, opening).map(|cluster| OpenTarget::Cluster(Box::new(cluster)));
    }
    refuse_nothing(path)?;
    let metadata = path
        .metadata()
        .map_err(|error| Failure::new(format!("cannot open {}: {error}", path.display())))?;
    let path = path
        .canonicalize()
        .map_err(|error| Failure::new(format!("cannot open {}: {error}", path.display())))?;
    if metadata.is_file() && !tar::is_archive(&path) {
        opening.refuse_server_of("one relation file")?;
        return open_file(&path, opening).map(OpenTarget::File);
    }
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(Failure::new(format!(
            "{} is neither a data directory nor a relation file",
            path.display()
        )));
    }
    if let Some(archive) = archive_of(&path) {
        opening.refuse_server_of("archives")?;
        return Ok(match open_archives(&archive, opening)? {
            Ok(cluster) => OpenTarget::Cluster(Box::new(cluster)),
            Err(remains) => OpenTarget::TruncatedArchive(remains),
        });
    }
    open_cluster(&path, opening).map(|cluster| OpenTarget::Cluster(Box::new(cluster)))
}

/// A shell makes nothing of a variable that is not set.
fn refuse_nothing(path: &Path) -> Result<(), Failure> {
    if path.as_os_str().is_empty() {
        return Err(Failure::new(
            "the target is an empty word: where it was \"$PGDATA\", that is not set here; name the data directory",
        ));
    }
    Ok(())
}

/// The archives that a path stands for: itself, or `base.tar` in a folder that is no data
/// directory.
pub(crate) fn archive_of(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return tar::is_archive(path).then(|| path.to_owned());
    }
    let is_cluster = path.join("PG_VERSION").exists() || path.join("global").exists();
    tar::base_archive_in(path).filter(|_| !is_cluster)
}

/// Archives, read or unpacked.
struct Archives {
    source: Arc<dyn Source>,
    /// What is wrong with them.
    troubles: Vec<ReadGap>,
    /// Files may be missing.
    is_cut: bool,
}

/// A backup in archives, and what is wrong with them.
fn archives(path: &Path, opening: Opening<'_>) -> Result<Archives, Failure> {
    let pace = pace(opening.load, opening.interrupted);
    let mut step = |bytes| {
        if let Some(pace) = &pace {
            pace.pay(bytes);
        }
        if opening.interrupted.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let backup = TarBackup::open(path, &opening.spill_folder(), &mut step)?;
    let troubles = backup.troubles().iter().cloned();
    Ok(Archives {
        troubles: troubles.map(of_archives).collect(),
        is_cut: backup.is_cut(),
        source: limited(Arc::new(backup), opening.load, opening.interrupted),
    })
}

/// Opens a backup in archives; of one that was cut what is left, where that does not tell its
/// version.
fn open_archives(
    path: &Path,
    opening: Opening<'_>,
) -> Result<Result<Cluster, TruncatedArchive>, Failure> {
    let Archives {
        source,
        troubles,
        is_cut,
    } = archives(path, opening)?;
    let options = OpenOptions::of(Arc::clone(&source)).missing(troubles.clone());
    let opened = Cluster::open(if is_cut { options.truncated() } else { options });
    match opened {
        Ok(cluster) => Ok(Ok(cluster)),
        Err(OpenError::UnknownMajor) => Ok(Err(TruncatedArchive {
            source,
            troubles,
            path: path.to_owned(),
        })),
        Err(error) => {
            let why = troubles.first().map(|own| format!(" ({})", own.why));
            let why = why.unwrap_or_default();
            Err(Failure::new(format!("{}: {error}{why}", path.display())))
        }
    }
}

fn of_archives(why: String) -> ReadGap {
    ReadGap {
        what: "the archives whole".into(),
        why,
    }
}

/// Opens a full backup and the incremental ones on it, each a folder or archives, as one.
fn open_chain(path: &Path, opening: Opening<'_>) -> Result<Cluster, Failure> {
    let (mut links, mut troubles) = (Vec::new(), Vec::new());
    for path in std::iter::once(path).chain(opening.incremental.iter().map(PathBuf::as_path)) {
        let path = &path
            .canonicalize()
            .map_err(|error| Failure::new(format!("cannot open {}: {error}", path.display())))?;
        let source = match archive_of(path) {
            Some(archive) => {
                let own = archives(&archive, opening)?;
                troubles.extend(own.troubles);
                own.source
            }
            None => limited(
                Arc::new(DataDirectory::open(path)?),
                opening.load,
                opening.interrupted,
            ),
        };
        links.push((path.display().to_string(), source));
    }
    let cluster = Cluster::open(OpenOptions::chain(links).missing(troubles));
    cluster.map_err(|error| Failure::new(error.to_string()))
}

/// The server that is named, where the target is a URL.
pub(crate) fn named_server(target: &Path, world: &mut Env<'_>) -> Result<Option<Named>, Failure> {
    let url = target.to_str().filter(|text| is_url(text));
    url.map(|url| world.server(url)).transpose()
}

/// Opens the files of a running server through itself.
fn open_named(server: &Named, opening: Opening<'_>) -> Result<Cluster, Failure> {
    opening.refuse_server_of("the URL of a server")?;
    if !opening.incremental.is_empty() {
        let why = "--incremental is for backups, not for a running server";
        return Err(Failure::new(why));
    }
    let source = server_files::source(server)?;
    let opened = open_running(limited(source, opening.load, opening.interrupted), opening);
    opened.map_err(|error| Failure::new(format!("{server}: {error}")))
}

/// Opens a data directory, a backup in archives, or the files of a running server by its URL.
pub(crate) fn open_cluster(path: &Path, opening: Opening<'_>) -> Result<Cluster, Failure> {
    if let Some(server) = opening.named {
        return open_named(server, opening);
    }
    refuse_nothing(path)?;
    let path = &path
        .canonicalize()
        .map_err(|error| Failure::new(format!("cannot open {}: {error}", path.display())))?;
    if !opening.incremental.is_empty() {
        opening.refuse_server_of("a chain of backups")?;
        return open_chain(path, opening);
    }
    if let Some(archive) = archive_of(path) {
        opening.refuse_server_of("archives")?;
        return open_archives(&archive, opening)?.map_err(|remains| remains.failure());
    }
    if !path.is_dir() {
        let why = "name the directory that holds PG_VERSION and global/pg_control, or base.tar of a base backup";
        return Err(Failure::new(format!(
            "{} is no data directory: {why}",
            path.display()
        )));
    }
    let server = running_server(path);
    let refused = opening.server == AtWork::Refused;
    if let Some(pid) = server.filter(|_| refused) {
        let why = "this would tell nothing beside a running server. Stop it, or take a copy (a base backup, a file system snapshot)";
        return Err(Failure::new(format!(
            "the server with process {pid} is running on {}: {why}",
            path.display()
        )));
    }
    let opened = if !opening.is_at_work(server, path)? {
        Cluster::open(limited(
            Arc::new(DataDirectory::open(path)?),
            opening.load,
            opening.interrupted,
        ))
    } else {
        let source = DataDirectory::open_beside_a_server(path)?;
        open_running(
            limited(Arc::new(source), opening.load, opening.interrupted),
            opening,
        )
    };
    opened.map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

impl Opening<'_> {
    /// A server is at work on the data directory: one that is seen, or one that is known of
    /// otherwise.
    fn is_at_work(&self, seen: Option<u32>, path: &Path) -> Result<bool, Failure> {
        match (seen, self.unseen) {
            (Some(_), _) | (None, Some(UndetectedServer::Told)) => Ok(true),
            (None, None) => Ok(false),
            // It wrote to the files, and may have been shut down since.
            (None, Some(UndetectedServer::ControlFile | UndetectedServer::Wal)) => {
                let now = Cluster::open(Arc::new(DataDirectory::open(path)?))?;
                let control = now.control.trusted();
                let is_stopped = |control: &ControlFile| {
                    matches!(control.state, State::ShutDown | State::ShutDownInRecovery)
                };
                Ok(!control.is_some_and(is_stopped))
            }
        }
    }

    /// What a report says of a server that works on the opened files and cannot be seen from here.
    pub(crate) fn unseen_beside(&self, cluster: &Cluster, path: &Path) -> Option<UndetectedServer> {
        let is_seen = || running_server(path).is_some();
        self.unseen.filter(|_| cluster.is_running() && !is_seen())
    }
}

fn open_running(source: Arc<dyn Source>, opening: Opening<'_>) -> Result<Cluster, OpenError> {
    let options = OpenOptions::of(source);
    Cluster::open(match opening.server {
        AtWork::ReadAgain => {
            let clock = RealClock::starting(Instant::now());
            options.with_torn_page_retry(Arc::new(clock))
        }
        AtWork::Refused | AtWork::ReadOnce => options.running(),
    })
}

fn limited(
    source: Arc<dyn Source>,
    load: Option<&LoadArgs>,
    interrupted: &Arc<AtomicBool>,
) -> Arc<dyn Source> {
    let Some(rate) = load.and_then(|load| load.rate) else {
        return source;
    };
    Arc::new(Limit::new(source, rate, hurrying(interrupted)))
}

/// What unpacking keeps to.
fn pace(load: Option<&LoadArgs>, interrupted: &Arc<AtomicBool>) -> Option<Pace> {
    let rate = load.and_then(|load| load.rate)?;
    Some(Pace::new(rate, hurrying(interrupted)))
}

fn hurrying(interrupted: &Arc<AtomicBool>) -> Arc<dyn Clock> {
    Arc::new(InterruptibleClock {
        clock: RealClock::starting(Instant::now()),
        interrupted: Arc::clone(interrupted),
    })
}

/// The process that `postmaster.pid` names, if it lives.
pub(crate) fn running_server(pgdata: &Path) -> Option<u32> {
    let Ok(LockFile::Begins(bytes)) = LockFile::of(pgdata) else {
        return None;
    };
    let text = String::from_utf8_lossy(&bytes);
    let pid: i32 = text.lines().next()?.trim().parse().ok()?;
    let process = rustix::process::Pid::from_raw(pid.abs())?;
    let alive = match rustix::process::test_kill_process(process) {
        Ok(()) | Err(rustix::io::Errno::PERM) => !is_zombie(process),
        Err(_) => false,
    };
    let pid = pid.unsigned_abs();
    (alive && !works_elsewhere(pid, pgdata)).then_some(pid)
}

/// A postmaster works in its data directory; after a crash the number may be somebody else's.
/// Folders are told apart by device and inode, since a bind mount or another mount of the disk
/// gives one folder several paths; without `/proc` nobody is said to be elsewhere.
fn works_elsewhere(pid: u32, pgdata: &Path) -> bool {
    let folder = |path: &Path| {
        let metadata = path.metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    let works_in = folder(Path::new(&format!("/proc/{pid}/cwd")));
    let own = folder(pgdata);
    works_in.zip(own).is_some_and(|(one, other)| one != other)
}

/// A killed server that nobody has waited for yet holds no file any more; without `/proc` nobody is
/// called a zombie.
fn is_zombie(process: rustix::process::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.is_ok_and(|line| {
        let after_name = line.rsplit_once(')').map_or("", |(_, rest)| rest);
        after_name.trim_start().starts_with(['Z', 'X'])
    })
}

fn open_file(path: &Path, opening: Opening<'_>) -> Result<BareFile, Failure> {
    let single = SingleFile::open(path)?;
    let name = single.name().to_owned();
    let source = limited(Arc::new(single), opening.load, opening.interrupted);
    let named = RelationFileName::parse(&name);
    let home = DatabaseDirectory {
        tablespace: 0,
        database: 0,
        folder: String::new(),
    };
    let mut forks: Vec<ForkFiles> = Vec::new();
    for entry in source
        .list("")?
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::File)
    {
        let parsed = RelationFileName::parse(&entry.name);
        let (fork, segment) = parsed.map_or((Fork::Main, 0), |name| (name.fork, name.segment));
        let segment = Segment {
            number: segment,
            len: entry.len,
        };
        match forks
            .iter_mut()
            .find(|files| files.fork == fork && parsed.is_some())
        {
            Some(files) => files.segments.push(segment),
            None => forks.push(ForkFiles {
                home: home.clone(),
                filenode: parsed.map_or(0, |name| name.filenode),
                fork,
                temporary: Some(stem_of(&entry.name, parsed)),
                segments: vec![segment],
            }),
        }
    }
    if named.is_none_or(|name| name.segment > 0) {
        forks.retain(|files| files.fork == Fork::Main);
    }
    for files in &mut forks {
        files.segments.sort_by_key(|segment| segment.number);
    }
    let (build, method) = guess(source.as_ref(), &name);
    if named.is_none() && method.is_none() {
        let why = "neither its name nor its first pages are those of a relation; name the data directory or a relation file";
        return Err(Failure::new(format!(
            "{} is no relation file: {why}",
            path.display()
        )));
    }
    Ok(BareFile {
        source,
        forks,
        build,
        method,
    })
}

/// The name of the first segment. A name that is no relation's has no segments: `page.1` is all of
/// it.
fn stem_of(name: &str, parsed: Option<RelationFileName>) -> String {
    let segment = parsed.map_or(0, |parsed| parsed.segment);
    let stem = name.rsplit_once('.').filter(|_| segment > 0);
    stem.map_or(name, |(stem, _)| stem).to_owned()
}

/// Page size and access method from the first page that says anything.
pub(crate) fn guess(source: &dyn Source, name: &str) -> (Build, Option<AccessMethod>) {
    let mut head = vec![0; 64 * 1024];
    let read = source.read_at(name, 0, &mut head).unwrap_or(0);
    head.truncate(read);
    let sizes = [8192usize, 16384, 32768, 4096, 2048, 1024];
    let fits = |size: &&usize| {
        let pages = head.chunks_exact(**size).filter_map(Page::parse);
        pages
            .filter(|page| !page.is_new())
            .take(4)
            .any(|page| usize::from(page.page_size()) == **size)
    };
    let size = sizes.iter().find(fits).copied().unwrap_or(8192);
    let block_size = u32::try_from(size).unwrap_or(8192);
    let build = Build::of_blocks(block_size);
    let mut pages = head
        .chunks_exact(size)
        .filter_map(Page::parse)
        .filter(|page| !page.is_new());
    (build, pages.find_map(AccessMethod::guess))
}

impl BareFile {
    /// What the checks may know of a fork.
    pub(crate) fn fork_cx<'a>(&'a self, files: &'a ForkFiles, level: Level) -> ForkCx<'a> {
        let base = ForkContext {
            source: Some(self.source.as_ref()),
            kind: self.kind(),
            method: self.method,
            blocks: files.blocks(self.build.block_size, self.build.segment_bytes),
            ..ForkContext::nameless(self.build, files)
        };
        ForkCx::alone(base, level)
    }

    fn kind(&self) -> FileKind {
        match self.method {
            Some(AccessMethod::Heap) => FileKind::Table,
            Some(AccessMethod::Sequence) => FileKind::Sequence,
            Some(_) => FileKind::Index,
            None => FileKind::Unknown,
        }
    }

    /// For documents.
    pub(crate) fn target(&self, spec: &str) -> Target {
        Target {
            spec: spec.to_owned(),
            kind: "relation-file".into(),
            block_size: Some(self.build.block_size),
            segment_size: Some(self.build.segment_bytes),
            ..Target::default()
        }
    }
}

/// For messages and reports: the whole path.
pub(crate) fn spec_of(path: &Path) -> String {
    path.canonicalize()
        .unwrap_or_else(|_| PathBuf::from(path))
        .display()
        .to_string()
}

/// The same of a chain, or the whole URL of a server without its password.
pub(crate) fn spec_of_target(path: &Path, chain: &ChainArgs, world: &Env<'_>) -> String {
    let url = path.to_str().filter(|text| is_url(text));
    if let Some(Ok(server)) = url.map(|url| world.server_without_password(url)) {
        return server.to_string();
    }
    let links = chain.incremental.iter().map(PathBuf::as_path);
    let specs: Vec<String> = std::iter::once(path).chain(links).map(spec_of).collect();
    specs.join(" + ")
}
