//! A cluster whose server works while it is read: at a known moment, the first time that a file is
//! read, something happens.

use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use pgclinic_check::{CheckOptions, LiveServer, ResumableRun, check_running};
use pgclinic_cluster::{Cluster, OpenOptions};
use pgclinic_format::build::{put_u32, seal_page};
use pgclinic_format::{Lsn, Page};
use pgclinic_model::{CheckDocument, Level, Selection, Severity, Verdict};
use pgclinic_servers::{Checksums, Server, Session, StartOptions, StopMode};
use pgclinic_source::{DataDirectory, Entry, Result, Source, SourceSpec};
use pgclinic_spill::MemoryPlan;
use pgclinic_testkit::{
    Quiet, TempCopy, all_majors, as_primary, catch_up, copy_of, seed, server, standby,
};

const PAGE: u64 = 8192;

/// What happens, once.
type Deed = Box<dyn FnOnce() + Send>;

/// A data directory; something happens when a file is read for the first time.
struct Meanwhile {
    below: DataDirectory,
    path: String,
    deed: Mutex<Option<Deed>>,
    /// Changes what is read of the file: the number of the read, its offset, and the bytes.
    reader: fn(usize, u64, &mut [u8]),
    reads: Mutex<usize>,
}

impl Source for Meanwhile {
    fn spec(&self) -> &SourceSpec {
        self.below.spec()
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        self.below.list(folder)
    }

    fn len(&self, path: &str) -> Result<u64> {
        self.below.len(path)
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if path != self.path {
            return self.below.read_at(path, offset, buf);
        }
        let deed = self.deed.lock().expect("no panic").take();
        if let Some(deed) = deed {
            deed();
        }
        let count = self.below.read_at(path, offset, buf)?;
        let mut reads = self.reads.lock().expect("no panic");
        (self.reader)(*reads, offset, buf.get_mut(..count).unwrap_or_default());
        *reads += 1;
        Ok(count)
    }
}

/// Time does not pass: what is torn here is whole at the next read.
struct NoWait;

impl LiveServer for NoWait {
    fn wait(&self) {}
}

fn as_it_is(_read: usize, _offset: u64, _bytes: &mut [u8]) {}

fn check(pgdata: &Path, path: &str, level: Level, deed: Deed) -> CheckDocument {
    check_reading(pgdata, path, level, deed, as_it_is)
}

fn check_reading(
    pgdata: &Path,
    path: &str,
    level: Level,
    deed: Deed,
    reader: fn(usize, u64, &mut [u8]),
) -> CheckDocument {
    let source = Meanwhile {
        below: DataDirectory::open_beside_a_server(pgdata).expect("a directory"),
        path: path.to_owned(),
        deed: Mutex::new(Some(deed)),
        reader,
        reads: Mutex::new(0),
    };
    let cluster = Cluster::open(OpenOptions::of(Arc::new(source)).running()).expect("a cluster");
    let options = CheckOptions {
        level,
        threads: NonZeroUsize::MIN,
        evidence: 3,
        selection: Selection::default(),
        spec: String::new(),
        memory: MemoryPlan::default(),
        spill_folder: std::env::temp_dir(),
        since: None,
    };
    let course = ResumableRun::new(&cluster, &options, None);
    let document = check_running(course, &cluster, &options, &Quiet, &NoWait);
    assert!(document.coverage.is_balanced(), "{:?}", document.coverage);
    document
}

/// The verdict and all that was told above a note.
fn told(document: &CheckDocument) -> String {
    let severe = document.findings.iter();
    let severe = severe.filter(|finding| finding.severity != Severity::Note);
    let mut lines = vec![format!("{:?}", document.verdict)];
    lines.extend(severe.map(|finding| format!("{} {}", finding.rule, finding.place)));
    let gaps = document.coverage.not_checked.iter();
    let gaps = gaps.filter(|gap| !gap.inherent);
    lines.extend(gaps.map(|gap| format!("{}: {}", gap.what, gap.why)));
    lines.join("\n")
}

#[track_caller]
fn healthy(document: &CheckDocument) {
    assert_eq!(told(document), "Healthy");
    assert_eq!(document.verdict, Verdict::Healthy);
    let state = document.target.state.as_deref().unwrap_or_default();
    assert!(state.starts_with("running"), "{state}");
}

fn started(major: u16) -> (TempCopy, Server) {
    let seeded = match all_majors().into_iter().find(|one| one.major == major) {
        Some(installation) => seed(&installation, Checksums::On),
        None => seed(&server(major), Checksums::On),
    };
    let copy = copy_of(&seeded);
    let running = copy.start().expect("a server");
    (copy, running)
}

fn clinic(server: &Server) -> Session {
    server.connect("clinic").expect("a session")
}

fn path_of(session: &mut Session, relation: &str) -> String {
    let sql = format!("SELECT pg_relation_filepath('{relation}')");
    session.query_value(&sql).expect(&sql).expect("a path")
}

fn run(mut session: Session, sql: &'static str) -> Deed {
    Box::new(move || {
        for statement in sql.split(';') {
            session.execute(statement).expect(statement);
        }
    })
}

/// Relations are dropped, rewritten, cut, extended and made under the reader.
fn files_on_their_way(major: u16) {
    let deeds = [
        "DROP TABLE public.docs; CHECKPOINT",
        "VACUUM FULL public.docs; CHECKPOINT",
        "TRUNCATE public.docs; CHECKPOINT",
        "CREATE TABLE public.more AS SELECT * FROM public.docs; INSERT INTO public.docs (id, title, body) SELECT id + 100000, title || ' again', body FROM public.more; CHECKPOINT",
        "DELETE FROM public.docs; VACUUM public.docs",
        "REINDEX DATABASE clinic; CLUSTER public.settled USING settled_pkey",
        "CREATE DATABASE late TEMPLATE template0; DROP DATABASE IF EXISTS template9",
        "ALTER TABLE public.docs SET TABLESPACE annex; VACUUM FULL pg_catalog.pg_class; CHECKPOINT",
    ];
    for level in [Level::Pages, Level::Full] {
        for deed in deeds {
            let (copy, running) = started(major);
            let mut session = clinic(&running);
            let path = path_of(&mut session, "public.docs");
            let document = check(&copy.pgdata, &path, level, run(session, deed));
            assert_eq!(told(&document), "Healthy", "{major} {level:?} {deed}");
        }
    }
}

#[test]
fn files_on_their_way_in_13() {
    files_on_their_way(13);
}

#[test]
fn files_on_their_way_in_18() {
    files_on_their_way(18);
}

#[test]
fn a_server_that_ends_or_crashes_meanwhile_leaves_no_damage() {
    for mode in [StopMode::Fast, StopMode::Immediate] {
        let (copy, mut running) = started(18);
        let mut session = clinic(&running);
        let path = path_of(&mut session, "public.docs");
        session
            .execute("UPDATE public.docs SET id = id")
            .expect("changes in memory");
        let stop: Deed = Box::new(move || {
            running.stop(mode).expect("a stop");
        });
        healthy(&check(&copy.pgdata, &path, Level::Structure, stop));
    }
}

/// A standby becomes a server of its own, on a timeline of its own, with files that come and go
/// behind it.
fn a_promotion_is_no_damage(major: u16) {
    let mut all = all_majors().into_iter();
    let installation = all.find(|one| one.major == major).expect("a major");
    let seeded = seed(&installation, Checksums::On);
    for level in [Level::Pages, Level::Structure, Level::Full] {
        let (first, copy) = (copy_of(&seeded), copy_of(&seeded));
        let primary = first.start_with(&as_primary()).expect("a primary");
        let follower = standby(&copy, &primary, StartOptions::default());
        let mut session = clinic(&primary);
        session
            .execute("UPDATE public.chains SET id = id; CHECKPOINT")
            .expect("changes");
        catch_up(&mut session, &follower);
        let path = path_of(&mut session, "public.docs");
        let deeds = "SELECT pg_promote(); UPDATE public.docs SET id = id; VACUUM FULL public.chains; CHECKPOINT";
        let document = check(&copy.pgdata, &path, level, run(clinic(&follower), deeds));
        assert_eq!(told(&document), "Healthy", "{major} {level:?}");
    }
}

#[test]
fn a_promotion_of_13_is_no_damage() {
    a_promotion_is_no_damage(13);
}

#[test]
fn a_promotion_of_18_is_no_damage() {
    a_promotion_is_no_damage(18);
}

#[test]
fn a_page_that_was_torn_once_is_sound() {
    let (copy, running) = started(18);
    let path = path_of(&mut clinic(&running), "public.docs");
    let torn_once = |read: usize, _offset: u64, bytes: &mut [u8]| {
        if let Some(rest) = bytes.get_mut(4096..8192).filter(|_| read == 0) {
            rest.fill(0);
        }
    };
    let pgdata = &copy.pgdata;
    let nothing: Deed = Box::new(|| {});
    healthy(&check_reading(
        pgdata,
        &path,
        Level::Structure,
        nothing,
        torn_once,
    ));
    let torn_always = |_read: usize, offset: u64, bytes: &mut [u8]| {
        if let Some(rest) = bytes.get_mut(4096..8192).filter(|_| offset == 0) {
            rest.fill(0);
        }
    };
    let nothing: Deed = Box::new(|| {});
    let document = check_reading(pgdata, &path, Level::Structure, nothing, torn_always);
    assert_eq!(document.verdict, Verdict::Damaged);
    let damage = document.findings.first().expect("damage comes first");
    assert_eq!(
        (&*damage.rule, damage.place.block),
        ("checksum-mismatch", Some(0))
    );
    assert_eq!(document.evidence.len(), 1);
}

/// The page's own word about its age, with a checksum that is right.
fn with_lsn(pgdata: &Path, path: &str, block: u64, lsn: Lsn) {
    let mut options = std::fs::File::options();
    options.read(true).write(true);
    let file = options.open(pgdata.join(path)).expect("a file");
    let mut page = vec![0; PAGE as usize];
    file.read_exact_at(&mut page, block * PAGE).expect("a page");
    put_u32(&mut page, 0, u32::try_from(lsn.0 >> 32).expect("half"));
    put_u32(
        &mut page,
        4,
        u32::try_from(lsn.0 & 0xFFFF_FFFF).expect("half"),
    );
    seal_page(&mut page, u32::try_from(block).expect("a block"));
    assert_eq!(Page::parse(&page).map(Page::pd_lsn), Some(lsn));
    file.write_all_at(&page, block * PAGE).expect("written");
}

#[test]
fn a_damaged_lsn_is_no_excuse() {
    let (copy, running) = started(18);
    let mut session = clinic(&running);
    let path = path_of(&mut session, "public.docs");
    let sql = "SELECT pg_current_wal_insert_lsn() - '0/0'";
    let end = session.query_value(sql).expect(sql).expect("a position");
    let end: u64 = end.parse().expect("a number");
    // Within the segment that is there, and far beyond all.
    for lsn in [end + 8000, end + (1 << 40)] {
        with_lsn(&copy.pgdata, &path, 1, Lsn(lsn));
        // A server at work raises the end, but not to there.
        let deed: Deed = Box::new(|| {});
        let document = check(&copy.pgdata, &path, Level::Pages, deed);
        let found = document.findings.iter();
        let found = found.filter(|finding| finding.severity == Severity::Damage);
        let rules: Vec<_> = found
            .map(|finding| (&*finding.rule, finding.place.block))
            .collect();
        assert_eq!(rules, [("lsn-beyond-wal", Some(1))], "{}", told(&document));
    }
}

/// What a rewrite leaves is looked at, too.
#[test]
fn damage_in_a_file_that_was_made_meanwhile_is_found() {
    let (copy, running) = started(18);
    let mut session = clinic(&running);
    let path = path_of(&mut session, "public.docs");
    let pgdata = copy.pgdata.clone();
    let deed: Deed = Box::new(move || {
        session
            .execute("VACUUM FULL public.docs")
            .expect("rewritten");
        session.execute("CHECKPOINT").expect("written");
        let new = path_of(&mut session, "public.docs");
        let file = std::fs::File::options().write(true).open(pgdata.join(new));
        let file = file.expect("a file");
        file.write_all_at(&[7; 100], PAGE + 5000).expect("hurt");
    });
    let document = check(&copy.pgdata, &path, Level::Pages, deed);
    let damage = document.findings.first().expect("damage");
    assert_eq!(damage.rule, "checksum-mismatch");
    assert_eq!(damage.place.relation_name(), "public.docs");
    assert_eq!(damage.place.block, Some(1));
    assert_ne!(damage.place.path, path);
}

/// A relation that lost its file has lost it both times; one that is dropped between is no more.
#[test]
fn a_missing_file_is_found_while_the_server_works() {
    let (copy, running) = started(18);
    let mut session = clinic(&running);
    let path = path_of(&mut session, "public.docs");
    let other = path_of(&mut session, "public.settled");
    std::fs::remove_file(copy.pgdata.join(&path)).expect("removed");
    let deed = run(
        session,
        "DROP TABLE public.frozen; CREATE TABLE public.fresh (a int)",
    );
    let document = check(&copy.pgdata, &other, Level::Structure, deed);
    let severe = document.findings.iter();
    let severe = severe.filter(|finding| finding.severity != Severity::Note);
    let severe: Vec<_> = severe
        .map(|finding| (&*finding.rule, &finding.place.path))
        .collect();
    assert_eq!(severe, [("missing-file", &path)], "{}", told(&document));
}

/// A server that writes all it holds in memory when it is asked.
struct Checkpoints(Mutex<Session>);

impl LiveServer for Checkpoints {
    fn wait(&self) {}

    fn checkpoint(&self) {
        let mut session = self.0.lock().expect("no panic");
        session.execute("CHECKPOINT").expect("a checkpoint");
    }
}

/// The table was changed since the last checkpoint, so that a page of zeros may be one on its way.
#[test]
fn a_zeroed_index_page_of_a_changed_table_is_found_after_a_checkpoint() {
    let (copy, server) = started(15);
    let mut session = clinic(&server);
    let made = "CREATE TABLE public.busy AS SELECT i AS id FROM generate_series(1, 5000) AS i;
        CREATE UNIQUE INDEX busy_id ON public.busy (id); CHECKPOINT";
    for statement in made.split(';') {
        session.execute(statement).expect(statement);
    }
    let path = path_of(&mut session, "public.busy_id");
    let changed = "INSERT INTO public.busy VALUES (9000)";
    session.execute(changed).expect(changed);
    let looked = |server: &dyn LiveServer| {
        let source = DataDirectory::open_beside_a_server(&copy.pgdata).expect("a directory");
        let cluster = OpenOptions::of(Arc::new(source)).running();
        let cluster = Cluster::open(cluster).expect("a cluster");
        let options = CheckOptions {
            level: Level::Structure,
            threads: NonZeroUsize::MIN,
            evidence: 0,
            selection: Selection::default(),
            spec: String::new(),
            memory: MemoryPlan::default(),
            spill_folder: std::env::temp_dir(),
            since: None,
        };
        let course = ResumableRun::new(&cluster, &options, None);
        check_running(course, &cluster, &options, &Quiet, server)
    };
    let checkpoints = Checkpoints(Mutex::new(clinic(&server)));
    healthy(&looked(&checkpoints));
    session
        .execute(changed.replace("9000", "9001").as_str())
        .expect("a row");
    let file = std::fs::File::options()
        .write(true)
        .open(copy.pgdata.join(&path));
    let file = file.expect("an index");
    file.write_all_at(&[0; PAGE as usize], 2 * PAGE)
        .expect("a write");
    let without = looked(&NoWait);
    assert_eq!(told(&without), "Healthy");
    let mut left_out = without.coverage.not_checked.iter();
    assert!(left_out.any(|own| {
        own.what
            .starts_with("order and links of index pages of 1 table")
    }));
    let found = looked(&checkpoints);
    assert_eq!(found.verdict, Verdict::Damaged, "{}", told(&found));
    let names = |own: &pgclinic_model::Finding| own.place.path == path;
    assert!(found.findings.iter().all(names), "{}", told(&found));
}

/// A directory that is being filled or emptied is no database yet, or none any more; one that is
/// still there at the end, and that no row names, is named.
#[test]
fn a_database_on_its_way_is_forgotten_and_one_that_stays_is_told() {
    let (copy, _running) = started(18);
    let made = copy.pgdata.join("base/77777");
    let made_from = copy.pgdata.join("base/1");
    std::fs::create_dir(&made).expect("made");
    for name in ["PG_VERSION", "pg_filenode.map"] {
        std::fs::copy(made_from.join(name), made.join(name)).expect("copied");
    }
    let (path, level) = ("base/77777/pg_filenode.map", Level::Structure);
    let told = |document: &CheckDocument| {
        let mut gaps = document.coverage.not_checked.iter();
        gaps.any(|gap| gap.what.contains("77777"))
    };
    let stays = check(&copy.pgdata, path, level, Box::new(|| {}));
    healthy(&stays);
    assert!(told(&stays), "{:#?}", stays.coverage.not_checked);
    let goes: Deed = Box::new(move || std::fs::remove_dir_all(made).expect("removed"));
    let gone = check(&copy.pgdata, path, level, goes);
    assert!(!told(&gone), "{:#?}", gone.coverage.not_checked);
    healthy(&gone);
}

/// Beside a running server, too, nobody misses what is not there of a database whose `DROP
/// DATABASE` was interrupted, and it is named.
#[test]
fn a_half_dropped_database_is_named() {
    let (copy, running) = started(18);
    let mut session = running.connect("postgres").expect("a session");
    let dropped = "UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'clinic'";
    session.execute(dropped).expect(dropped);
    let document = check(
        &copy.pgdata,
        "PG_VERSION",
        Level::Structure,
        Box::new(|| {}),
    );
    let mut gaps = document.coverage.not_checked.iter();
    let what = "whether files of database clinic are missing";
    let own = gaps.find(|gap| gap.what == what).expect("it is named");
    assert!(own.inherent && own.why.contains("DROP DATABASE"), "{own:?}");
    healthy(&document);
}
