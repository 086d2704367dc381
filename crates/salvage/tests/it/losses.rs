//! Rows that are gone without a trace on any page: an index, a map or the catalog tells of them,
//! and the account says how many.

use pgclinic_cluster::Cluster;
use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, SalvageReport, TableAccount};

use crate::common;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use common::{options, session};
use pgclinic_salvage::{Destination, SalvageOptions, Stream, salvage, salvage_live};
use pgclinic_servers::{Checksums, ConnectionTarget, Session, StopMode};
use pgclinic_source::{DataDirectory, Overlay, OverlayPatch, Source};
use pgclinic_testkit::{Quiet, copy_of, seed, server};

const PAGE_BYTES: u64 = 8192;

/// One with a key and VACUUMed, one with an index that is none and old versions, one with nothing,
/// and one with long values.
const WORK: [&str; 18] = [
    "CREATE SCHEMA loss",
    "CREATE TABLE loss.keyed (id int PRIMARY KEY, word text) WITH (autovacuum_enabled = off)",
    "INSERT INTO loss.keyed SELECT n, md5(n::text) FROM generate_series(1, 12000) n",
    "DELETE FROM loss.keyed WHERE id % 10 = 0",
    "CREATE TABLE loss.listed (id int, word text) WITH (autovacuum_enabled = off)",
    "CREATE INDEX listed_id ON loss.listed (id)",
    "INSERT INTO loss.listed SELECT n % 100, md5(n::text) FROM generate_series(1, 6000) n",
    "CREATE TABLE loss.plain (id int, word text) WITH (autovacuum_enabled = off)",
    "INSERT INTO loss.plain SELECT n, md5(n::text) FROM generate_series(1, 6000) n",
    "CREATE TABLE loss.long (id int PRIMARY KEY, body text)",
    "INSERT INTO loss.long SELECT n, (SELECT string_agg(md5((n * 1000 + i)::text), '') FROM generate_series(1, 200) i) FROM generate_series(1, 60) n",
    "CREATE TABLE loss.none (id int PRIMARY KEY)",
    "CREATE TABLE loss.other (word text, place box, tags int[], number int) WITH (autovacuum_enabled = off)",
    "INSERT INTO loss.other SELECT md5(n::text), box(point(n, n), point(n + 1, n + 1)), ARRAY[n, n % 7], n FROM generate_series(1, 4000) n",
    "CREATE TABLE loss.hashed AS SELECT * FROM loss.other; CREATE TABLE loss.placed AS SELECT * FROM loss.other; \
     CREATE TABLE loss.tagged AS SELECT * FROM loss.other; CREATE TABLE loss.mapped AS SELECT * FROM loss.other; \
     CREATE TABLE loss.halved AS SELECT * FROM loss.other",
    "CREATE INDEX hashed_word ON loss.hashed USING hash (word); CREATE INDEX placed_place ON loss.placed USING gist (place); \
     CREATE INDEX tagged_tags ON loss.tagged USING gin (tags); CREATE INDEX mapped_word ON loss.mapped USING spgist (word); \
     CREATE INDEX halved_number ON loss.halved (number) WHERE number % 2 = 0",
    "DROP TABLE loss.other",
    "ANALYZE",
];

/// Tables that only an index without all rows, or one that is no B-tree, bears witness to.
const OTHERS: [(&str, &str); 5] = [
    ("hashed", "hashed_word"),
    ("placed", "placed_place"),
    ("tagged", "tagged_tags"),
    ("mapped", "mapped_word"),
    ("halved", "halved_number"),
];

/// A stopped cluster, and what its server said of it.
struct Ward {
    _copy: pgclinic_testkit::TempCopy,
    source: Arc<dyn Source>,
    /// Path of each relation's file.
    files: BTreeMap<String, String>,
    /// Live rows of each block of the tables.
    blocks: BTreeMap<String, Vec<u64>>,
}

impl Ward {
    fn new() -> Self {
        let copy = copy_of(&seed(&server(15), Checksums::On));
        let mut running = copy.start().expect("a server");
        let mut session = session(&running, "postgres");
        for sql in WORK {
            session.execute(sql).expect(sql);
        }
        session
            .execute("VACUUM ANALYZE loss.keyed")
            .expect("vacuumed");
        session
            .execute("VACUUM ANALYZE loss.plain")
            .expect("vacuumed");
        session
            .execute("VACUUM ANALYZE loss.long")
            .expect("vacuumed");
        // WAL of all that is gone, so that it bears no witness.
        for sql in ["SELECT pg_switch_wal()", "CHECKPOINT"] {
            session.execute(sql).expect(sql);
        }
        session
            .execute("CREATE TABLE loss.late WITH (autovacuum_enabled = off) AS SELECT n AS id FROM generate_series(1, 900) n")
            .expect("a table");
        let tables = ["keyed", "listed", "plain", "late", "long"].into_iter();
        let tables = tables.chain(OTHERS.map(|(table, _)| table));
        let blocks = tables.map(|table| (table.to_owned(), rows_of_blocks(&mut session, table)));
        let blocks = blocks.collect();
        let names = [
            "loss.keyed",
            "loss.listed",
            "loss.plain",
            "loss.late",
            "loss.long",
            "loss.keyed_pkey",
            "loss.listed_id",
        ];
        let names = names.map(str::to_owned).into_iter();
        let names = names.chain(OTHERS.map(|(table, _)| format!("loss.{table}")));
        let names = names.chain(OTHERS.map(|(_, index)| format!("loss.{index}")));
        let path = |name: String| {
            let path = path_of(&mut session, &format!("'{name}'"));
            (name, path)
        };
        let mut files: BTreeMap<String, String> = names.map(path).collect();
        let toast = "(SELECT reltoastrelid FROM pg_class WHERE oid = 'loss.long'::regclass)";
        files.insert("toast".into(), path_of(&mut session, toast));
        drop(session);
        running.stop(StopMode::Fast).expect("stopped");
        // A bulk extension leaves pages of zeros, and nobody misses anything on them.
        for table in ["loss.keyed", "loss.plain"] {
            let path = copy.pgdata.join(files.get(table).expect("a file"));
            let file = std::fs::OpenOptions::new().append(true).open(path);
            let zeros = vec![0; 4 * 8192];
            file.and_then(|mut file| file.write_all(&zeros))
                .expect("longer");
        }
        let source = Arc::new(DataDirectory::open(&copy.pgdata).expect("a directory"));
        Ward {
            _copy: copy,
            source,
            files,
            blocks,
        }
    }

    fn file(&self, name: &str) -> String {
        self.files.get(name).expect("a file").clone()
    }

    fn rows(&self, table: &str) -> &[u64] {
        self.blocks.get(table).expect("a table")
    }

    /// The cluster with these patches.
    fn hurt(&self, patches: Vec<OverlayPatch>) -> Cluster {
        let hurt = Overlay::new(Arc::clone(&self.source), patches).expect("plain paths");
        Cluster::open(Arc::new(hurt)).expect("a cluster")
    }

    fn zeros(&self, name: &str, block: usize) -> OverlayPatch {
        OverlayPatch::Bytes {
            path: self.file(name),
            offset: block as u64 * PAGE_BYTES,
            bytes: vec![0; 8192],
        }
    }

    /// The file ends before this block.
    fn cut(&self, name: &str, block: usize) -> OverlayPatch {
        OverlayPatch::Cut {
            path: self.file(name),
            len: block as u64 * PAGE_BYTES,
        }
    }

    /// Takes away the maps of a table.
    fn without_maps(&self, name: &str) -> Vec<OverlayPatch> {
        let forks = ["vm", "fsm"].into_iter();
        forks
            .map(|fork| format!("{}_{fork}", self.file(name)))
            .filter(|path| self.source.len(path).is_ok())
            .map(|path| OverlayPatch::Remove { path })
            .collect()
    }
}

/// After a crash WAL has an image of the last page alone, and recovery would fill up the hole
/// before it with zeros.
#[test]
fn a_hole_before_what_recovery_brings_is_lost() {
    // The last row goes to a page that the checkpoint wrote: a new page proves nothing of those
    // before it, which a server may have made in advance.
    let copy = copy_of(&seed(&server(15), Checksums::Off));
    let mut running = copy.start().expect("a server");
    let mut session = session(&running, "postgres");
    for sql in [
        "CREATE SCHEMA loss",
        "CREATE TABLE loss.bare AS SELECT n AS id, md5(n::text) AS word FROM generate_series(1, 3050) n",
        "CHECKPOINT",
        "INSERT INTO loss.bare VALUES (9999, 'last')",
    ] {
        session.execute(sql).expect(sql);
    }
    let path = path_of(&mut session, "'loss.bare'");
    drop(session);
    running.stop(StopMode::Immediate).expect("a crash");
    let source: Arc<dyn Source> = Arc::new(DataDirectory::open(&copy.pgdata).expect("files"));
    let with = |patches| {
        let overlay = Overlay::new(Arc::clone(&source), patches).expect("plain paths");
        run(&Cluster::open(Arc::new(overlay)).expect("a cluster"))
    };
    let sound = with(Vec::new());
    assert_eq!(sound.outcome, Outcome::Whole, "{sound:#?}");
    assert_eq!(table(&sound, "bare").rows.written, 3051);
    let blocks = source.len(&path).expect("a file") / PAGE_BYTES;
    let len = 8 * PAGE_BYTES;
    let hurt = with(vec![OverlayPatch::Cut { path, len }]);
    assert_eq!(hurt.outcome, Outcome::Damaged);
    assert_eq!(table(&hurt, "bare").damaged_pages, blocks - 9);
}

fn rows_of_blocks(session: &mut Session, table: &str) -> Vec<u64> {
    let blocks = format!("SELECT pg_relation_size('loss.{table}') / 8192");
    let blocks = session
        .query_value(&blocks)
        .expect("a size")
        .expect("a size");
    let mut rows = vec![0; blocks.parse().expect("a number")];
    let counts =
        format!("SELECT (ctid::text::point)[0]::int, count(*) FROM loss.{table} GROUP BY 1");
    for row in session.query(&counts).expect("counts") {
        let [Some(block), Some(count)] = row.as_slice() else {
            panic!("{row:?}");
        };
        let block: usize = block.parse().expect("a number");
        rows[block] = count.parse().expect("a number");
    }
    rows
}

fn path_of(session: &mut Session, what: &str) -> String {
    let path = session.query_value(&format!("SELECT pg_relation_filepath({what})"));
    path.expect("a path").expect("a file")
}

fn of_loss(destination: &std::path::Path) -> SalvageOptions {
    let mut options = options(destination, "csv");
    options.selection.databases = vec![Glob::new("postgres")];
    options.selection.relations = vec![Glob::new("loss.*")];
    options
}

fn run(cluster: &Cluster) -> SalvageReport {
    let folder = tempfile::tempdir().expect("a directory");
    let options = of_loss(&folder.path().join("out"));
    let account = salvage(cluster, &options, &Quiet).expect("a destination");
    for list in account.tables.iter().flat_map(|table| &table.lost_keys) {
        let text = std::fs::read_to_string(folder.path().join("out").join(&list.file));
        assert_eq!(text.expect("a list").lines().count() as u64, list.keys + 1);
    }
    account
}

fn table<'a>(account: &'a SalvageReport, name: &str) -> &'a TableAccount {
    let found = account.tables.iter().find(|table| table.table == name);
    found.unwrap_or_else(|| panic!("{name} in {account:?}"))
}

fn witnesses(table: &TableAccount) -> Vec<(&str, u64, bool)> {
    let by = table.lost_by.iter();
    by.map(|by| (by.witness.as_str(), by.rows, by.exact))
        .collect()
}

#[test]
fn an_index_a_map_or_the_catalog_tells_of_lost_rows() {
    let ward = Ward::new();
    nothing_is_lost_of_a_healthy_cluster(&ward);
    zeroed_pages_of_a_table_with_a_key(&ward);
    the_end_of_a_table_with_a_key(&ward);
    a_file_that_is_missing(&ward);
    entries_of_an_index_without_a_key(&ward);
    a_table_without_an_index(&ward);
    a_table_that_wal_alone_knows(&ward);
    entries_of_other_indexes(&ward);
    hurt_indexes_without_all_rows(&ward);
    a_hurt_index_is_no_witness(&ward);
    long_values_that_are_gone(&ward);
}

fn nothing_is_lost_of_a_healthy_cluster(ward: &Ward) {
    let account = run(&ward.hurt(Vec::new()));
    assert_eq!(account.outcome, Outcome::Whole, "{account:#?}");
    let keyed = table(&account, "keyed");
    assert_eq!(keyed.witness.as_deref(), Some("loss.keyed_pkey"));
    assert_eq!((keyed.rows.written, keyed.empty_pages), (10800, 4));
    assert!(account.lost_by.is_empty());
    let [told] = account.not_salvaged.as_slice() else {
        panic!("{:?}", account.not_salvaged);
    };
    assert!(told.inherent && told.why.contains("loss.late"), "{told:?}");
}

fn zeroed_pages_of_a_table_with_a_key(ward: &Ward) {
    let rows = ward.rows("keyed");
    let blocks: Vec<usize> = (0..rows.len()).step_by(5).collect();
    let truth: u64 = blocks.iter().map(|block| rows[*block]).sum();
    let zeros = || blocks.iter().map(|block| ward.zeros("loss.keyed", *block));
    for (patches, is_exact) in [
        (zeros().collect::<Vec<_>>(), true),
        (
            zeros().chain(ward.without_maps("loss.keyed")).collect(),
            false,
        ),
    ] {
        let account = run(&ward.hurt(patches));
        let keyed = table(&account, "keyed");
        assert_eq!(account.outcome, Outcome::Damaged);
        assert_eq!(witnesses(keyed), [("index-keys", truth, is_exact)]);
        assert_eq!(keyed.rows.written + truth, 10800);
        assert_eq!(keyed.damaged_pages, blocks.len() as u64);
        assert_eq!(keyed.lost_keys.first().map(|keys| keys.keys), Some(truth));
        assert_eq!(
            (
                account.totals.lost,
                account.totals.lost_known,
                account.totals.lost_estimated
            ),
            (truth, truth, 0)
        );
    }
}

fn the_end_of_a_table_with_a_key(ward: &Ward) {
    let rows = ward.rows("keyed");
    let end = rows.len() * 4 / 5;
    let truth: u64 = rows[end..].iter().sum();
    let mut patches = ward.without_maps("loss.keyed");
    patches.push(ward.cut("loss.keyed", end));
    let account = run(&ward.hurt(patches));
    let keyed = table(&account, "keyed");
    assert_eq!(account.outcome, Outcome::Damaged);
    assert_eq!(witnesses(keyed), [("index-keys", truth, false)]);
    assert_eq!(keyed.damaged_pages, (rows.len() - end) as u64);
    let [place] = keyed.places.as_slice() else {
        panic!("{:?}", keyed.places);
    };
    let words = format!("blocks {end} to {} are missing: ", rows.len() - 1);
    assert!(place.why.starts_with(&words), "{place:?}");
}

fn a_file_that_is_missing(ward: &Ward) {
    let path = |name| OverlayPatch::Remove {
        path: ward.file(name),
    };
    let cluster = ward.hurt(vec![path("loss.keyed"), path("loss.plain")]);
    let account = run(&cluster);
    assert_eq!(account.outcome, Outcome::Damaged);
    let keyed = table(&account, "keyed");
    assert_eq!(witnesses(keyed), [("index-keys", 10800, true)]);
    assert_eq!(
        witnesses(table(&account, "plain")),
        [("pg-class", 6000, false)]
    );
    assert_eq!(keyed.places.len(), 1, "{:?}", keyed.places);

    let (stream, parts) = Stream::new();
    let mut options = of_loss(std::path::Path::new(""));
    options.destination = Destination::Stream(stream);
    options.selection.relations = vec![Glob::new("loss.keyed")];
    let taken = std::thread::spawn(move || parts.into_iter().flatten().count());
    let account = salvage(&cluster, &options, &Quiet).expect("a stream");
    drop(options);
    assert!(taken.join().expect("taken") < 20);
    assert_eq!(account.outcome, Outcome::Damaged);
    assert_eq!(account.totals.lost_known, 10800);
}

fn entries_of_an_index_without_a_key(ward: &Ward) {
    let rows = ward.rows("listed");
    let truth = rows[1] + rows[2];
    let patches = vec![ward.zeros("loss.listed", 1), ward.zeros("loss.listed", 2)];
    let account = run(&ward.hurt(patches));
    let listed = table(&account, "listed");
    assert_eq!(account.outcome, Outcome::Damaged);
    assert_eq!(witnesses(listed), [("index-entries", truth, false)]);
    let [place] = listed.places.as_slice() else {
        panic!("{:?}", listed.places);
    };
    assert_eq!(
        (place.block, place.why.as_str()),
        (
            1,
            "the pages up to block 2 hold nothing, and entries of loss.listed_id lead to rows on them"
        )
    );
}

fn entries_of_other_indexes(ward: &Ward) {
    for (name, index) in OTHERS {
        let rows = ward.rows(name);
        let file = format!("loss.{name}");
        let last = rows.len() - 1;
        for (patch, truth, words) in [
            (
                ward.zeros(&file, 1),
                rows[1],
                "the page holds nothing, and entries of loss.".to_owned(),
            ),
            (
                ward.cut(&file, last - 1),
                rows[last] + rows[last - 1],
                format!("blocks {} to {last} are missing: ", last - 1),
            ),
        ] {
            let account = run(&ward.hurt(vec![patch]));
            let hurt = table(&account, name);
            assert_eq!(account.outcome, Outcome::Damaged, "{name}: {hurt:#?}");
            let told = hurt.places.first().map_or("", |place| place.why.as_str());
            assert!(
                told.starts_with(&words) && told.contains(index),
                "{name}: {told}"
            );
            let lost = hurt.rows.lost_estimated;
            assert!(
                lost.abs_diff(truth) * 4 <= truth,
                "{name}: {lost} of {truth}"
            );
        }
    }
}

/// Whoever could tell is hurt too, and no map is there: nobody knows whether all rows are.
fn hurt_indexes_without_all_rows(ward: &Ward) {
    for (name, index) in OTHERS {
        let table_file = format!("loss.{name}");
        let file = format!("loss.{index}");
        let path = ward.file(&file);
        let bytes = ward.source.len(&path).expect("an index");
        let bytes = usize::try_from(bytes).expect("few bytes");
        let zeroed_from = |offset: u64| OverlayPatch::Bytes {
            path: ward.file(&file),
            offset,
            bytes: vec![0; bytes - usize::try_from(offset).expect("few bytes")],
        };
        let hurts = [
            ward.cut(&file, 1),
            OverlayPatch::Remove { path },
            zeroed_from(0),
            zeroed_from(PAGE_BYTES),
        ];
        for hurt in hurts {
            let account = run(&ward.hurt(vec![ward.zeros(&table_file, 1), hurt]));
            assert_ne!(account.outcome, Outcome::Whole, "{name}: {account:#?}");
            let what = format!("table {table_file} ");
            let mut told = account.not_salvaged.iter();
            assert!(
                told.any(|told| told.what.contains(&what) && !told.inherent),
                "{name}: {:#?}",
                account.not_salvaged
            );
        }
    }
}

fn a_table_without_an_index(ward: &Ward) {
    let rows = ward.rows("plain");
    // The map knows that there were rows; pg_class counts so many more than there are.
    let account = run(&ward.hurt(vec![ward.zeros("loss.plain", 1)]));
    let plain = table(&account, "plain");
    assert_eq!(account.outcome, Outcome::Damaged);
    let lost = rows[1];
    assert_eq!(witnesses(plain), [("pg-class", lost, false)]);
    assert_eq!(
        (plain.rows.lost_known, plain.rows.lost_estimated),
        (0, lost)
    );

    let end = rows.len() - 10;
    let truth: u64 = rows[end..].iter().sum();
    let account = run(&ward.hurt(vec![ward.cut("loss.plain", end)]));
    let plain = table(&account, "plain");
    assert_eq!(account.outcome, Outcome::Damaged);
    let lost = plain.rows.lost_estimated;
    assert!(lost.abs_diff(truth) * 20 <= truth, "{lost} of {truth}");

    // Without a map the catalog hints, and proves nothing.
    let mut patches = ward.without_maps("loss.plain");
    patches.push(ward.cut("loss.plain", end));
    let account = run(&ward.hurt(patches));
    assert_eq!(account.outcome, Outcome::Incomplete);
    let hint = |one: &pgclinic_model::document::NotChecked| {
        !one.inherent && one.what.starts_with("the end of table loss.plain")
    };
    assert!(
        account.not_salvaged.iter().any(hint),
        "{:?}",
        account.not_salvaged
    );

    // A page in the middle is missed by nobody, and the map that would tell is gone.
    let mut patches = ward.without_maps("loss.plain");
    patches.push(ward.zeros("loss.plain", 3));
    let account = run(&ward.hurt(patches));
    assert_eq!(account.outcome, Outcome::Incomplete);
    let mut told = account.not_salvaged.iter();
    let told = told.find(|one| !one.inherent).expect("a question");
    assert_eq!(
        told.what,
        "whether rows of table loss.plain of database postgres are missing"
    );
    assert!(told.why.contains("pages are all zeros"), "{told:?}");
}

/// Neither index nor map nor `pg_class` knows it: what was written last is still in WAL.
fn a_table_that_wal_alone_knows(ward: &Ward) {
    let end = ward.rows("late").len();
    for patch in [ward.zeros("loss.late", 1), ward.cut("loss.late", end - 1)] {
        let account = run(&ward.hurt(vec![patch]));
        let late = table(&account, "late");
        assert_eq!((account.outcome, late.damaged_pages), (Outcome::Damaged, 1));
        let [place] = late.places.as_slice() else {
            panic!("{:?}", late.places);
        };
        assert!(place.why.contains("WAL has records of it"), "{place:?}");
    }
}

fn a_hurt_index_is_no_witness(ward: &Ward) {
    // A leaf of zeros, and an index that is cut: the table is whole, and nobody can say so.
    for patch in [
        ward.zeros("loss.keyed_pkey", 1),
        ward.cut("loss.keyed_pkey", 3),
    ] {
        let account = run(&ward.hurt(vec![patch]));
        assert_eq!(account.outcome, Outcome::Incomplete);
        assert_eq!(table(&account, "keyed").rows.written, 10800);
        assert_eq!(account.totals.lost, 0);
        let told = account.not_salvaged.first().expect("a gap");
        let words = "rows of table loss.keyed of database postgres beside its indexes";
        assert_eq!(told.what, words);
    }
    // What is left of a hurt index accuses all the same.
    let patches = vec![
        ward.zeros("loss.keyed_pkey", 5),
        ward.zeros("loss.keyed", 2),
    ];
    let account = run(&ward.hurt(patches));
    assert_eq!(account.outcome, Outcome::Damaged);
    assert!(table(&account, "keyed").rows.lost > 0);
}

fn long_values_that_are_gone(ward: &Ward) {
    let account = run(&ward.hurt(vec![ward.zeros("toast", 1)]));
    assert_eq!(account.outcome, Outcome::Damaged);
    let long = table(&account, "long");
    assert!(long.rows.partial > 0, "{long:?}");
    assert_eq!(long.rows.written, 60);
}

/// A server that runs without the file of a table says so itself; one that rows are loaded into
/// counts what did not come.
#[test]
fn a_missing_file_is_lost_from_a_server_and_into_one() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = session(&running, "postgres");
    for sql in WORK.iter().take(4) {
        session.execute(sql).expect(sql);
    }
    session
        .execute("VACUUM ANALYZE loss.keyed")
        .expect("vacuumed");
    let path = path_of(&mut session, "'loss.keyed'");
    drop(session);
    running.stop(StopMode::Fast).expect("stopped");
    std::fs::remove_file(copy.pgdata.join(&path)).expect("removed");
    let source = DataDirectory::open(&copy.pgdata).expect("a directory");
    let cluster = Cluster::open(Arc::new(source)).expect("a cluster");

    let running = copy.start().expect("a server without the file");
    let folder = tempfile::tempdir().expect("a directory");
    let options = of_loss(&folder.path().join("out"));
    let target = ConnectionTarget::of(&running, "postgres");
    let account = salvage_live(&target, &options, &Quiet).expect("a salvage");
    assert_eq!(account.outcome, Outcome::Damaged);
    let keyed = table(&account, "keyed");
    assert_eq!(witnesses(keyed), [("index-keys", 10800, false)]);
    assert!(
        keyed.places[0].why.contains("could not open file"),
        "{keyed:?}"
    );

    let again = "CREATE DATABASE again TEMPLATE template0";
    common::session(&running, "postgres")
        .execute(again)
        .expect("made");
    let mut options = of_loss(std::path::Path::new(""));
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, "again")));
    let account = salvage(&cluster, &options, &Quiet).expect("a load");
    assert_eq!(account.outcome, Outcome::Damaged);
    assert_eq!(
        witnesses(table(&account, "keyed")),
        [("index-keys", 10800, true)]
    );
}

/// An index that recovery changes is a witness with the leaves that recovery leaves alone, with
/// data checksums or without.
#[test]
fn a_cut_table_of_a_crashed_cluster_is_not_whole() {
    for checksums in [Checksums::On, Checksums::Off] {
        let copy = copy_of(&seed(&server(15), checksums));
        let mut running = copy.start().expect("a server");
        let mut session = session(&running, "postgres");
        for sql in [
            "CREATE SCHEMA loss",
            "CREATE TABLE loss.keyed (id int PRIMARY KEY, word text)",
            "INSERT INTO loss.keyed SELECT n, md5(n::text) FROM generate_series(1, 40000) n",
            "VACUUM loss.keyed",
            "CHECKPOINT",
            "INSERT INTO loss.keyed VALUES (50000, 'after the checkpoint')",
        ] {
            session.execute(sql).expect(sql);
        }
        let path = copy.pgdata.join(path_of(&mut session, "'loss.keyed'"));
        running.kill();
        let file = std::fs::File::options().write(true).open(path);
        let file = file.expect("the table's file");
        file.set_len(200 * PAGE_BYTES).expect("truncated");
        let folder = tempfile::tempdir().expect("a directory");
        let account = common::salvaged(&copy.pgdata, &of_loss(&folder.path().join("out")));
        assert_eq!(account.outcome, Outcome::Damaged, "{checksums:?}");
        let keyed = table(&account, "keyed");
        let known = keyed.rows.written + keyed.rows.lost;
        assert!((39_500..=40_101).contains(&known), "{known}, {checksums:?}");
    }
}
