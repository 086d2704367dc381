//! What a running server gives beside its tables, in every form, in one snapshot, and to roles that
//! may not do everything.

use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_model::{Glob, Progress};

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use common::{copied, options, session};
use pgclinic_salvage::{Partial, SalvageError, SalvageOptions, end_of_work, salvage, salvage_live};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, Session, StopMode};
use pgclinic_testkit::{Quiet, TempCopy, copy_of, open, seed, server};

fn from_server(
    server: &Server,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> SalvageReport {
    salvage_live(&ConnectionTarget::of(server, "clinic"), options, progress).expect("a salvage")
}

/// The same of the stopped cluster, one database.
fn from_files(copy: &TempCopy, options: &SalvageOptions) -> SalvageReport {
    let mut options = options.clone();
    options.selection.databases = vec![Glob::new("clinic")];
    salvage(&open(&copy.pgdata), &options, &Quiet).expect("a salvage")
}

/// Members of a tar file.
fn members(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let bytes = std::fs::read(path).expect("a tar file");
    let mut rest = bytes.as_slice();
    let mut found = BTreeMap::new();
    while rest.first().is_some_and(|byte| *byte != 0) {
        let (head, behind) = rest.split_at(512);
        let field = |at: std::ops::Range<usize>| {
            let text = String::from_utf8_lossy(&head[at]).into_owned();
            text.trim_end_matches('\0').to_owned()
        };
        let size = usize::from_str_radix(&field(124..136), 8).expect("a size");
        found.insert(field(0..100), behind[..size].to_vec());
        rest = &behind[size.next_multiple_of(512)..];
    }
    found
}

/// Sequences, large objects and the schema of a running server are those of its files when it is
/// stopped.
fn beside_tables_all_is_there(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    session(&running, "clinic")
        .execute("SELECT lo_create(90001); SELECT lo_put(70003, 200000, 'behind a hole')")
        .expect("objects");
    let folder = tempfile::tempdir().expect("a directory");
    let (live, files) = (folder.path().join("live"), folder.path().join("files"));
    let mut options = options(&live, "csv");
    options.ddl = Some(folder.path().join("live.sql"));
    let account = from_server(&running, &options, &Quiet);
    assert_eq!(
        account.outcome,
        Outcome::Whole,
        "{:?}",
        account.not_salvaged
    );
    assert_eq!(account.large_objects.len(), 1);
    assert_eq!(account.large_objects[0].objects, 13);
    assert_eq!(account.snapshots.len(), 1);
    assert!(
        account
            .tables
            .iter()
            .all(|table| table.snapshots == [1] || table.rows.live == 0)
    );

    running.stop(StopMode::Fast).expect("stopped");
    options.destination = pgclinic_salvage::Destination::Folder(files.clone());
    options.ddl = Some(folder.path().join("files.sql"));
    let offline = from_files(&copy, &options);
    assert_eq!(account.sequences, offline.sequences);
    let objects = |folder: &Path| members(&folder.join("clinic/large_objects.tar"));
    assert!(objects(&live) == objects(&files));
    let sequences =
        |folder: &Path| std::fs::read(folder.join("clinic/sequences.sql")).expect("a file");
    assert_eq!(sequences(&live), sequences(&files));
    let schema = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a schema");
    assert_eq!(schema("live.sql"), schema("files.sql"));
}

#[test]
fn beside_the_tables_of_13() {
    beside_tables_all_is_there(13);
}

#[test]
fn beside_the_tables_of_15() {
    beside_tables_all_is_there(15);
}

/// Every form holds the rows that it has when it is made from the files.
#[test]
fn every_form_is_that_of_the_files() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let folder = tempfile::tempdir().expect("a directory");
    let forms = ["csv", "copy", "binary", "jsonl", "sql"];
    for form in forms {
        let options = options(&folder.path().join(form), form);
        let account = from_server(&running, &options, &Quiet);
        assert_eq!(account.outcome, Outcome::Whole, "{form}");
    }
    running.stop(StopMode::Fast).expect("stopped");
    for form in forms {
        let destination = folder.path().join(format!("{form}.files"));
        let account = from_files(&copy, &options(&destination, form));
        for table in &account.tables {
            let name = table.file.as_ref().expect("a file");
            let rows =
                |folder: &Path| common::lines(&std::fs::read(folder.join(name)).expect("a file"));
            let (files, live) = (rows(&destination), rows(&folder.path().join(form)));
            assert_eq!(files.len(), live.len(), "{form} {name}");
            if let Some((file, server)) = files.iter().zip(&live).find(|(a, b)| a != b) {
                panic!(
                    "{form} {name}\nfiles  {}\nserver {}",
                    String::from_utf8_lossy(file),
                    String::from_utf8_lossy(server)
                );
            }
        }
    }
}

/// Does something when the first table is done.
struct Meanwhile<'a> {
    work: Mutex<Option<Box<dyn FnOnce() + Send + 'a>>>,
}

impl<'a> Meanwhile<'a> {
    fn new(work: impl FnOnce() + Send + 'a) -> Self {
        Meanwhile {
            work: Mutex::new(Some(Box::new(work))),
        }
    }
}

impl Progress for Meanwhile<'_> {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {
        let work = self.work.lock().expect("one at a time").take();
        work.into_iter().for_each(|work| work());
    }
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// What is committed while tables are read is in none of them.
#[test]
fn all_tables_are_of_one_moment() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    let mut writer: Session = session(&running, "clinic");
    writer
        .execute("CREATE SCHEMA zoo; CREATE TABLE zoo.zebra AS SELECT 1 AS id")
        .expect("a table");
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let mut options = options(&destination, "copy");
    options.threads = std::num::NonZeroUsize::MIN;
    let meanwhile = Meanwhile::new(move || {
        writer
            .execute("INSERT INTO zoo.zebra VALUES (2); DELETE FROM zoo.zebra WHERE id = 1")
            .expect("changed");
    });
    let account = from_server(&running, &options, &meanwhile);
    let zebra = std::fs::read_to_string(destination.join("clinic/zoo.zebra.copy"));
    assert_eq!(zebra.expect("a file"), "1\n");
    assert_eq!(account.snapshots.len(), 1, "{:?}", account.snapshots);
}

/// Every table says from which snapshot its rows are when the server went down in between.
#[test]
fn a_crash_begins_a_new_snapshot() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    let mut victim = session(&running, "postgres");
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("out"), "copy");
    options.threads = std::num::NonZeroUsize::MIN;
    let accident = Meanwhile::new(move || {
        let others = "SELECT pid FROM pg_stat_activity WHERE datname = 'clinic'";
        let others = victim.query(others).expect("processes");
        let pid = victim.query_value("SELECT pg_backend_pid()");
        let pid = pid.expect("a process").expect("a number");
        let killed = std::process::Command::new("kill")
            .args(["-9", &pid])
            .status();
        assert!(killed.is_ok_and(|status| status.success()));
        // The others are ended before the salvage asks for more.
        let folders = others.iter().flatten().flatten();
        for process in folders.map(|pid| Path::new("/proc").join(pid)) {
            while process.exists() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    });
    let account = from_server(&running, &options, &accident);
    let numbers: Vec<u32> = account.snapshots.iter().map(|known| known.number).collect();
    assert_eq!(numbers, [1, 2]);
    let of = |number: u32| {
        let tables = account.tables.iter();
        tables
            .filter(|table| table.snapshots.contains(&number))
            .count()
    };
    assert!(of(1) >= 1 && of(2) >= 1, "{} and {}", of(1), of(2));
}

/// A role that may read some tables and no files gets those, and is told of the others at once.
#[test]
fn a_role_without_rights_is_told() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    session(&running, "clinic")
        .execute("CREATE ROLE visitor LOGIN; GRANT USAGE ON SCHEMA public TO visitor; GRANT SELECT ON public.settled TO visitor")
        .expect("a role");
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("out"), "copy");
    options.ddl = Some(folder.path().join("schema.sql"));
    let mut target = ConnectionTarget::of(&running, "clinic");
    target.user = "visitor".into();
    let account = salvage_live(&target, &options, &Quiet).expect("a salvage");
    let table = |name: &str| {
        let mut tables = account.tables.iter();
        tables.find(|table| table.table == name).expect("a table")
    };
    assert_eq!(table("settled").rows.written, 1500);
    let docs = table("docs");
    assert_eq!(docs.rows.written, 0);
    assert!(docs.out_of_reach && docs.pages_not_read > 0, "{docs:?}");
    let mut gaps = account.not_salvaged.iter();
    assert!(
        gaps.any(|gap| gap
            .why
            .contains("GRANT SELECT ON ALL TABLES IN SCHEMA public TO visitor")),
        "{:?}",
        account.not_salvaged
    );
    let told: Vec<&str> = account
        .not_salvaged
        .iter()
        .map(|told| told.what.as_str())
        .collect();
    assert!(
        told.contains(&"large objects") && told.contains(&"the schema"),
        "{told:?}"
    );
    assert!(!folder.path().join("schema.sql").exists());
    assert_eq!(account.outcome, Outcome::Incomplete);
}

/// What is left of a value with missing chunks comes from a running server as from its files.
#[test]
fn partial_values_are_those_of_the_files() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut clinic = session(&running, "clinic");
    // Some sixteen chunks each: the third page holds some from the middle of the first value.
    clinic
        .execute(
            "CREATE TABLE public.novels (id int, body text); \
             ALTER TABLE public.novels ALTER body SET STORAGE EXTERNAL; \
             INSERT INTO public.novels SELECT i, repeat(md5(i::text), 1000) FROM generate_series(1, 20) i",
        )
        .expect("a table");
    let toast = "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE oid = 'public.novels'::regclass";
    let toast = clinic.query_value(toast);
    drop(clinic);
    let toast = copy.pgdata.join(toast.expect("a path").expect("a file"));
    running.stop(StopMode::Fast).expect("stopped");
    let mut bytes = std::fs::read(&toast).expect("a file");
    bytes[2 * 8192..3 * 8192].fill(0);
    std::fs::write(&toast, bytes).expect("hurt");

    let folder = tempfile::tempdir().expect("a directory");
    let of = |name: &str, partial| {
        let mut options = options(&folder.path().join(name), "copy");
        options.partial = partial;
        options.selection.relations = vec![Glob::new("public.novels")];
        options
    };
    let rows = |name: &str| {
        let stem = folder.path().join(name).join("clinic/public.novels");
        let whole = std::fs::read(common::with_ending(&stem, "copy")).expect("a file");
        (common::lines(&whole), common::suspects(&stem))
    };
    from_files(&copy, &of("kept", Partial::Kept));
    from_files(&copy, &of("null", Partial::Null));
    assert_ne!(rows("kept"), rows("null"));
    let running = copy.start().expect("a server");
    session(&running, "clinic")
        .execute("CREATE ROLE visitor LOGIN; GRANT USAGE ON SCHEMA public TO visitor; GRANT SELECT ON public.novels TO visitor")
        .expect("a role");
    let account = from_server(&running, &of("live", Partial::Kept), &Quiet);
    assert!(account.totals.partial > 0, "{account:?}");
    assert_eq!(
        account.totals.suspect, account.totals.partial,
        "{account:?}"
    );
    assert_eq!(rows("live"), rows("kept"));

    // Who may not read files gets what the server gives, and the row stands apart all the same.
    let mut target = ConnectionTarget::of(&running, "clinic");
    target.user = "visitor".into();
    let options = of("visitor", Partial::Kept);
    let account = salvage_live(&target, &options, &Quiet).expect("a salvage");
    let (whole, apart) = rows("visitor");
    let refused = "the server does not give this value: see the log beside the file";
    assert_eq!((whole.len(), apart.len()), (19, 1), "{account:?}");
    assert!(
        apart.iter().all(|(reason, row)| {
            *reason == format!("partial: column body: {refused}") && row.ends_with(',')
        }),
        "{apart:?}"
    );
    assert_eq!(account.totals.suspect, 1);
}

/// A second run goes on in the folder of a first one that was cut off.
#[test]
fn a_salvage_that_was_cut_off_goes_on() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    let expected = copied(&running, "clinic", "");
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let mut options = options(&destination, "copy");
    options.threads = std::num::NonZeroUsize::MIN;
    let stop = std::sync::atomic::AtomicU32::new(3);
    struct Impatient<'a>(&'a std::sync::atomic::AtomicU32);
    impl Progress for Impatient<'_> {
        fn expect(&self, _bytes: u64) {}
        fn advance(&self, _bytes: u64) {
            self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        }
        fn is_interrupted(&self) -> bool {
            self.0.load(std::sync::atomic::Ordering::Relaxed) == 0
        }
    }
    let account = from_server(&running, &options, &Impatient(&stop));
    assert!(account.interrupted);
    assert_eq!(account.tables.len(), 3);
    let target = ConnectionTarget::of(&running, "clinic");
    let refused = salvage_live(&target, &options, &Quiet);
    assert!(matches!(refused, Err(SalvageError::NotEmpty(_))));
    options.resume = true;
    let account = from_server(&running, &options, &Quiet);
    let before = account
        .tables
        .iter()
        .filter(|table| table.snapshots.is_empty() && table.rows.live > 0);
    assert!(before.count() <= 3);
    assert_eq!(account.tables.len(), expected.len());
    common::compare(&destination, "copy", &expected);
    end_of_work(&destination).expect("ended");
}

/// Objects and the blocks of `pg_largeobject` in which they have pages.
const OBJECT_BLOCKS: &str = "SELECT loid, string_agg(DISTINCT split_part(trim(ctid::text, '()'), ',', 1), ' ') \
     FROM pg_largeobject GROUP BY loid ORDER BY loid";

/// 40 objects of noise, which fill many pages of `pg_largeobject`.
fn make_objects(clinic: &mut Session) {
    let noise = "(SELECT string_agg(md5((i * 1000 + n)::text), '') FROM generate_series(1, 500) n)";
    clinic
        .execute(&format!(
            "SELECT lo_from_bytea(80000 + i, decode({noise}, 'hex')) FROM generate_series(1, 40) i"
        ))
        .expect("objects");
}

/// Of hurt pages of `pg_largeobject` those with a wrong checksum give what they hold; of a page of
/// which nothing is left the account names the objects that have a hole by it, and all others are
/// whole, from the server as from its files.
#[test]
fn objects_beside_a_hurt_page_are_whole() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut clinic = session(&running, "clinic");
    make_objects(&mut clinic);
    let blocks = clinic.query(OBJECT_BLOCKS).expect("blocks");
    let path = clinic.query_value("SELECT pg_relation_filepath('pg_largeobject')");
    let path = copy.pgdata.join(path.expect("a path").expect("a file"));
    drop(clinic);
    let folder = tempfile::tempdir().expect("a directory");
    let whole = folder.path().join("whole");
    from_server(&running, &options(&whole, "copy"), &Quiet);
    running.stop(StopMode::Fast).expect("stopped");
    let of_block = |block: &str| -> Vec<u32> {
        let is_in = |row: &&pgclinic_servers::TextRow| {
            let blocks = row[1].as_deref().unwrap_or_default();
            blocks.split(' ').any(|one| one == block)
        };
        let objects = blocks.iter().filter(is_in);
        objects
            .filter_map(|row| row[0].as_ref()?.parse().ok())
            .collect()
    };
    // The checksum of one page, all of another.
    let mut bytes = std::fs::read(&path).expect("a file");
    let (wrong, gone) = (5, 12);
    bytes[wrong * 8192 + 8] ^= 0xFF;
    bytes[gone * 8192..(gone + 1) * 8192].fill(0xFF);
    std::fs::write(&path, bytes).expect("hurt");
    let lost = of_block(&gone.to_string());
    assert!(!lost.is_empty() && !of_block(&wrong.to_string()).is_empty());

    let files = folder.path().join("files");
    let offline = from_files(&copy, &options(&files, "copy"));
    let running = copy.start().expect("a server");
    let live = folder.path().join("live");
    let online = from_server(&running, &options(&live, "copy"), &Quiet);
    let of = |folder: &Path| members(&folder.join("clinic/large_objects.tar"));
    let expected = of(&whole);
    for (folder, account) in [(&files, &offline), (&live, &online)] {
        assert_eq!(account.outcome, Outcome::Damaged);
        let told = &account.large_objects[0];
        let found = of(folder);
        assert_eq!(told.objects, offline.large_objects[0].objects);
        for (name, bytes) in &expected {
            let is_lost = lost.iter().any(|object| name.contains(&object.to_string()));
            assert_eq!(found.get(name) != Some(bytes), is_lost, "{name}");
        }
        let blocks: Vec<u32> = told.places.iter().map(|place| place.block).collect();
        assert!(blocks.contains(&12), "{:?}", told.places);
        assert!(
            told.places
                .iter()
                .all(|place| place.why.starts_with("pg_largeobject: "))
        );
        // The last page of an object may be among the lost ones: that is no hole.
        let doubtful: Vec<u32> = told.doubtful.iter().map(|object| object.object).collect();
        assert!(!doubtful.is_empty());
        let empty = |object: &&u32| **object < 80_000;
        assert!(
            doubtful
                .iter()
                .filter(|object| !empty(object))
                .all(|object| lost.contains(object)),
            "{doubtful:?} {lost:?}"
        );
    }
}

/// A server gives nothing of a page of zeros: the index of `pg_largeobject` knows what stood there.
#[test]
fn objects_on_pages_of_zeros_are_missed() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut clinic = session(&running, "clinic");
    make_objects(&mut clinic);
    let path = clinic.query_value("SELECT pg_relation_filepath('pg_largeobject')");
    let path = copy.pgdata.join(path.expect("a path").expect("a file"));
    drop(clinic);
    let folder = tempfile::tempdir().expect("a directory");
    let whole = from_server(
        &running,
        &options(&folder.path().join("whole"), "copy"),
        &Quiet,
    );
    assert_eq!(whole.outcome, Outcome::Whole, "{:?}", whole.not_salvaged);
    running.stop(StopMode::Fast).expect("stopped");
    let mut bytes = std::fs::read(&path).expect("a file");
    bytes[12 * 8192..14 * 8192].fill(0);
    std::fs::write(&path, bytes).expect("hurt");

    let offline = from_files(&copy, &options(&folder.path().join("files"), "copy"));
    let running = copy.start().expect("a server");
    let online = from_server(
        &running,
        &options(&folder.path().join("live"), "copy"),
        &Quiet,
    );
    for account in [&offline, &online] {
        assert_eq!(account.outcome, Outcome::Damaged, "{account:?}");
    }
    let pages = |account: &SalvageReport| account.large_objects[0].lost_pages;
    assert!(pages(&offline) > 0);
    assert_eq!(pages(&online), pages(&offline), "{online:?}");
}

/// Drops a table when the tables are listed, before the first is read.
struct Drops(Mutex<Option<Session>>);

impl Progress for Drops {
    fn expect(&self, _bytes: u64) {
        let session = self.0.lock().expect("one at a time").take();
        if let Some(mut session) = session {
            session.execute("DROP TABLE public.going").expect("dropped");
        }
    }
    fn advance(&self, _bytes: u64) {}
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// What somebody drops meanwhile is no loss, and nobody looks for its blocks.
#[test]
fn a_table_that_is_dropped_meanwhile_is_said_to_be() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    session(&running, "clinic")
        .execute("CREATE TABLE public.going (n int PRIMARY KEY); INSERT INTO public.going SELECT g FROM generate_series(1, 1000) g")
        .expect("a table");
    let folder = tempfile::tempdir().expect("a directory");
    let options = options(&folder.path().join("out"), "copy");
    let session = session(&running, "clinic");
    let drops = Drops(Mutex::new(Some(session)));
    let account = salvage_live(&ConnectionTarget::of(&running, "clinic"), &options, &drops);
    let account = account.expect("a salvage");
    let mut tables = account.tables.iter();
    let going = tables.find(|table| table.table == "going").expect("listed");
    assert_eq!(going.notes, ["dropped meanwhile"]);
    assert!(going.is_whole(), "{going:#?}");
    assert_eq!(
        account.outcome,
        Outcome::Whole,
        "{:#?}",
        account.not_salvaged
    );
}
