//! Two copies of one cluster against each other.

use pgclinic_model::document::{Copy, DiffBlock, DiffDocument, DiffVerdict, Difference};

use crate::common;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use common::{files, pgclinic, text};
use pgclinic_format::build::{put_u32, seal_page};
use pgclinic_format::{Page, control_file};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{
    Seeded, TempCopy, all_majors, as_primary, base_backup, copy_of, seed, server,
};

#[track_caller]
fn diff(a: &Path, b: &Path, exit: u8) -> DiffDocument {
    let ran = pgclinic(&["diff", text(a), text(b), "--format", "json"]).exits(exit);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

/// Lives on until the server ends in this way; gives the path of `docs`.
fn end(copy: &TempCopy, sql: &str, mode: StopMode) -> String {
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    for statement in sql.split(';') {
        session.execute(statement).expect(statement);
    }
    let path = "SELECT pg_relation_filepath('public.docs')";
    let path = session.query_value(path).expect(path).expect("a path");
    server.stop(mode).expect("a stop");
    path
}

fn stop(copy: &TempCopy, sql: &str) -> String {
    end(copy, sql, StopMode::Fast)
}

/// A further copy of what this one has become.
fn again(copy: &TempCopy, seeded: &Seeded) -> TempCopy {
    copy_of(&Seeded {
        pgdata: copy.pgdata.clone(),
        ..seeded.clone()
    })
}

fn block(pgdata: &Path, path: &str, number: u64) -> Vec<u8> {
    let mut page = vec![0; 8192];
    let file = File::open(pgdata.join(path)).expect("a file");
    file.read_exact_at(&mut page, number * 8192)
        .expect("a block");
    page
}

fn put(pgdata: &Path, path: &str, number: u64, page: &[u8]) {
    let file = File::options().write(true).open(pgdata.join(path));
    file.expect("a file")
        .write_all_at(page, number * 8192)
        .expect("a block");
}

fn ways(document: &DiffDocument) -> Vec<Difference> {
    let counts = document.counts().into_iter().map(|(way, _)| way);
    counts.filter(|way| *way != Difference::Hints).collect()
}

#[test]
fn copies_are_told_apart_by_their_wal() {
    let seeded = seed(&server(15), Checksums::On);
    let (a, b) = (copy_of(&seeded), copy_of(&seeded));
    let same = diff(&a.pgdata, &b.pgdata, 0);
    assert_eq!((same.verdict, same.older), (DiffVerdict::Same, None));
    assert!(same.coverage.blocks > 1000 && same.coverage.blocks == same.coverage.blocks_equal);

    // B lives on: rows change, a table comes, one goes, one is written anew.
    let docs = stop(
        &b,
        "UPDATE public.docs SET id = id; CREATE TABLE public.late AS SELECT 1 AS one; DROP TABLE public.chains;
         VACUUM FULL public.pruned; CHECKPOINT; UPDATE public.docs SET id = id",
    );
    let before = (files(&a.pgdata), files(&b.pgdata));
    let later = diff(&a.pgdata, &b.pgdata, 0);
    assert_eq!(
        (files(&a.pgdata), files(&b.pgdata)),
        before,
        "nothing was written"
    );
    assert_eq!(
        (later.verdict, later.older),
        (DiffVerdict::Explained, Some(Copy::A))
    );
    assert_eq!(ways(&later), [Difference::Missing, Difference::Later]);
    let mirrored = diff(&b.pgdata, &a.pgdata, 0);
    assert_eq!(
        (mirrored.older, mirrored.counts()),
        (Some(Copy::B), later.counts())
    );

    // A file that its own catalogs name is lost, whichever copy is the older.
    let (named, aside) = (b.pgdata.join(&docs), b.pgdata.join("docs.aside"));
    fs::rename(&named, &aside).expect("a file moved");
    let lost = diff(&a.pgdata, &b.pgdata, 1);
    let [lost] = blocks(&lost, &docs) else {
        panic!("{:?}", lost.forks)
    };
    assert_eq!(
        (lost.difference, lost.copy),
        (Difference::Lost, Some(Copy::B))
    );
    fs::rename(&aside, &named).expect("a file moved");

    // An old page put back is stale, a hurt one unsound, and both are told with their copy.
    let old = block(&a.pgdata, &docs, 0);
    let new = block(&b.pgdata, &docs, 0);
    put(&b.pgdata, &docs, 0, &old);
    let stale = diff(&a.pgdata, &b.pgdata, 0);
    assert_eq!(
        stale.verdict,
        DiffVerdict::Explained,
        "with the older copy alone nobody can tell"
    );
    let c = again(&b, &seeded);
    put(&c.pgdata, &docs, 0, &new);
    let stale = diff(&c.pgdata, &b.pgdata, 1);
    let docs_fork = stale.forks.first().expect("a fork");
    let told = docs_fork.blocks.first().expect("a block");
    assert_eq!(
        (told.block, told.difference, told.copy),
        (0, Difference::Stale, Some(Copy::B))
    );
    assert_eq!(docs_fork.relation.as_deref(), Some("docs"));

    let mut hurt = new.clone();
    hurt[5000] ^= 0x40;
    put(&b.pgdata, &docs, 0, &hurt);
    let unsound = diff(&c.pgdata, &b.pgdata, 1);
    let told = &unsound.forks.first().expect("a fork").blocks[0];
    assert_eq!(
        (told.difference, told.copy),
        (Difference::Unsound, Some(Copy::B))
    );
    let words = pgclinic(&["diff", text(&c.pgdata), text(&b.pgdata)]).exits(1);
    assert!(words.out.starts_with("CONTRADICTORY  "), "{}", words.out);
    assert!(words.out.contains("block 0  unsound in B"), "{}", words.out);
    let html = pgclinic(&["diff", text(&c.pgdata), text(&b.pgdata), "--format", "html"]).exits(1);
    assert!(html.out.contains("<h1>CONTRADICTORY</h1>"));
}

/// What a server changes beside WAL (hints, sequences, pages of an index build) contradicts nobody.
#[test]
fn a_backup_that_was_taken_under_way_is_explained() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut primary = copy.start_with(&as_primary()).expect("a server");
    let mut session = primary.connect("clinic").expect("a session");
    let changes = "CREATE SEQUENCE numbers; SELECT nextval('numbers'); DELETE FROM public.docs WHERE id % 3 = 0;
        CREATE TABLE spots AS SELECT point(n, n * 7 % 100) AS p, n, ARRAY[n, n % 10] AS v FROM generate_series(1, 3000) n;
        CREATE INDEX ON spots USING gist (p); CREATE INDEX ON spots USING spgist (p); CREATE INDEX ON spots USING gin (v);
        CREATE INDEX ON spots USING hash (n); CREATE INDEX ON spots USING brin (n); CREATE INDEX ON spots (n)";
    session.execute(changes).expect("changes");
    let folder = copy.pgdata.with_file_name("backup");
    base_backup(&primary, &folder, &["--format=tar", "--wal-method=stream"]);
    let later = "SELECT nextval('numbers'); SET enable_seqscan = off; SELECT count(*) FROM spots WHERE n > 10;
        DELETE FROM spots WHERE n % 7 = 0; VACUUM spots; SELECT count(*) FROM spots; CREATE INDEX ON spots USING gist (p)";
    for statement in later.split(';') {
        session.execute(statement).expect(statement);
    }
    primary.stop(StopMode::Fast).expect("a stop");
    let document = diff(&copy.pgdata, &folder, 0);
    assert_eq!(
        (document.verdict, document.older),
        (DiffVerdict::Explained, Some(Copy::B))
    );
}

/// A backup waits for its last segment to end, and an idle server has nothing behind it.
#[test]
fn a_file_that_the_server_removed_after_a_backup_is_not_lost_though_both_end_at_one_place() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut primary = copy.start_with(&as_primary()).expect("a server");
    let mut session = primary.connect("clinic").expect("a session");
    let gone = "CREATE TABLE gone AS SELECT generate_series(1, 300)";
    session.execute(gone).expect(gone);
    let folder = copy.pgdata.with_file_name("backup");
    session
        .execute("SELECT pg_backup_start('by hand', true)")
        .expect("a backup that begins");
    let mut cp = Command::new("cp");
    let copied = cp.args(["-a", text(&copy.pgdata), text(&folder)]);
    assert!(copied.status().expect("cp").success());
    for statement in ["DROP TABLE gone", "CHECKPOINT"] {
        session.execute(statement).expect(statement);
    }
    let label = "SELECT labelfile FROM pg_backup_stop(false)";
    let label = session.query_value(label).expect(label).expect("a label");
    fs::write(folder.join("backup_label"), label).expect("a label");
    let _ = fs::remove_file(folder.join("postmaster.pid"));
    for entry in fs::read_dir(copy.pgdata.join("pg_wal")).expect("pg_wal") {
        let entry = entry.expect("an entry");
        if entry.path().is_file() {
            let to = folder.join("pg_wal").join(entry.file_name());
            fs::copy(entry.path(), to).expect("a segment");
        }
    }
    let document = diff(&copy.pgdata, &folder, 0);
    let ends = [&document.position_a, &document.position_b];
    let ends = ends.map(|own| own.as_ref().expect("a position").end.as_str());
    assert_eq!(ends[0], ends[1], "no record lies behind the backup");
    assert_eq!(
        (document.verdict, document.older),
        (DiffVerdict::Explained, Some(Copy::B))
    );
    primary.stop(StopMode::Fast).expect("a stop");
}

/// A later copy whose table was emptied by VACUUM and filled again as far as block 3: blocks behind
/// it were added and never used.
fn grown_again(a: &TempCopy, seeded: &Seeded) -> (TempCopy, String) {
    stop(
        a,
        "CREATE TABLE public.queue AS SELECT repeat('x', 1000) FROM generate_series(1, 70)",
    );
    let later = again(a, seeded);
    let again = "DELETE FROM public.queue; VACUUM public.queue; \
        INSERT INTO public.queue SELECT repeat('y', 1000) FROM generate_series(1, 28)";
    stop(&later, again);
    let queue = path_of(&later, "queue");
    for unused in [4, 5, 7] {
        put(&later.pgdata, &queue, unused, &[0; 8192]);
    }
    let mut used = block(&later.pgdata, &queue, 3);
    seal_page(&mut used, 6);
    put(&later.pgdata, &queue, 6, &used);
    (later, queue)
}

#[test]
fn empty_blocks_of_a_table_that_was_cut_and_grew_again_contradict_nobody() {
    let seeded = seed(&server(15), Checksums::On);
    let a = copy_of(&seeded);
    let (later, queue) = grown_again(&a, &seeded);
    let empty = |document: &DiffDocument| {
        let told = blocks(document, &queue).iter();
        let told = told.filter(|own| [4, 5, 7].contains(&own.block));
        let told = told.map(|own| (own.difference, own.copy));
        told.collect::<Vec<_>>()
    };
    let document = diff(&a.pgdata, &later.pgdata, 3);
    assert_eq!(document.older, Some(Copy::A));
    let undecided = (Difference::Undecided, Some(Copy::B));
    assert_eq!(empty(&document), [undecided; 3]);
    let mut running = later.start().expect("a server");
    let beside = diff(&a.pgdata, &later.pgdata, 0);
    assert_eq!(empty(&beside), [(Difference::Missing, Some(Copy::B)); 3]);
    running.stop(StopMode::Fast).expect("a stop");

    // A block behind them that is as old as ever: nothing was cut, and two blocks are lost.
    let old = block(&a.pgdata, &queue, 6);
    put(&later.pgdata, &queue, 6, &old);
    let document = diff(&a.pgdata, &later.pgdata, 1);
    let lost = (Difference::Stale, Some(Copy::B));
    assert_eq!(empty(&document), [lost, lost, undecided]);
}

#[test]
fn an_empty_block_of_the_copy_that_is_no_later_is_lost() {
    let seeded = seed(&server(15), Checksums::On);
    let a = copy_of(&seeded);
    let docs = stop(&a, "CHECKPOINT");
    let b = again(&a, &seeded);
    let last = fs::metadata(a.pgdata.join(&docs)).expect("a file").len() / 8192 - 1;
    put(&a.pgdata, &docs, last, &[0; 8192]);
    let told = only_block(&diff(&a.pgdata, &b.pgdata, 1), &docs);
    assert_eq!(
        (told.difference, told.copy),
        (Difference::Stale, Some(Copy::A))
    );
}

#[test]
fn a_shorter_file_is_explained_where_vacuum_left_it_so() {
    let seeded = seed(&server(15), Checksums::On);
    let a = copy_of(&seeded);
    stop(
        &a,
        "CREATE TABLE public.queue AS SELECT repeat('x', 1000) FROM generate_series(1, 70); VACUUM public.queue",
    );
    let (vacuumed, grown, cut) = (again(&a, &seeded), again(&a, &seeded), again(&a, &seeded));
    let give_back = "DELETE FROM public.queue WHERE ctid >= '(4,1)'; VACUUM public.queue";
    stop(&vacuumed, give_back);
    let more = "INSERT INTO public.queue SELECT repeat('y', 1000) FROM generate_series(1, 14)";
    stop(&grown, &format!("{give_back}; {more}"));
    for later in [&vacuumed, &grown] {
        let document = diff(&a.pgdata, &later.pgdata, 0);
        assert_eq!(document.verdict, DiffVerdict::Explained);
        let last = blocks(&document, &path_of(later, "queue")).last();
        let last = last.map(|own| (own.block, own.difference, own.copy));
        assert_eq!(last, Some((9, Difference::Missing, Some(Copy::B))));
    }
    stop(&cut, "UPDATE public.docs SET id = id");
    undecided_from(&a, &cut, 4);
    end(&cut, "UPDATE public.docs SET id = id", StopMode::Immediate);
    undecided_from(&a, &cut, 4);
}

/// `relpages` is 0 of a table that VACUUM never saw, as of one that it emptied.
#[test]
fn an_emptied_file_of_a_table_that_vacuum_never_saw_is_undecided() {
    for major in all_majors() {
        let seeded = seed(&major, Checksums::On);
        let a = copy_of(&seeded);
        let make = "CREATE TABLE public.queue WITH (autovacuum_enabled = off) AS SELECT repeat('x', 1000) FROM generate_series(1, 70)";
        stop(&a, make);
        let later = again(&a, &seeded);
        stop(&later, "UPDATE public.docs SET id = id");
        undecided_from(&a, &later, 0);
    }
}

/// Cuts the ten blocks of `public.queue` there. Newer servers add empty ones to them.
#[track_caller]
fn undecided_from(a: &TempCopy, later: &TempCopy, first: u32) {
    let queue = path_of(later, "queue");
    let mut options = File::options();
    let file = options.write(true).open(later.pgdata.join(&queue));
    let cut = file.and_then(|file| file.set_len(u64::from(first) * 8192));
    cut.expect("cut");
    let document = diff(&a.pgdata, &later.pgdata, 3);
    let used = blocks(&document, &queue).iter();
    let used = used.filter(|own| own.block < 10);
    let differing: Vec<_> = used.map(|own| (own.block, own.difference)).collect();
    let expected = (first..10).map(|block| (block, Difference::Undecided));
    assert_eq!(differing, expected.collect::<Vec<_>>());
}

/// The blocks of one file that differ.
fn blocks<'d>(document: &'d DiffDocument, path: &str) -> &'d [DiffBlock] {
    let fork = document.forks.iter().find(|fork| fork.path == path);
    &fork.unwrap_or_else(|| panic!("{path} is equal")).blocks
}

#[track_caller]
fn only_block(document: &DiffDocument, path: &str) -> DiffBlock {
    assert_eq!(document.forks.len(), 1, "{:?}", document.forks);
    let [block] = blocks(document, path) else {
        panic!("{:?}", document.forks)
    };
    block.clone()
}

#[test]
fn what_a_crashed_copy_lacks_is_explained_by_its_own_wal() {
    let seeded = seed(&server(15), Checksums::On);
    let crashed = copy_of(&seeded);
    let changes = "CHECKPOINT; UPDATE public.docs SET id = id";
    let docs = end(&crashed, changes, StopMode::Immediate);
    let recovered = again(&crashed, &seeded);
    stop(&recovered, "SELECT 1");
    let document = diff(&crashed.pgdata, &recovered.pgdata, 0);
    assert_eq!(
        (document.verdict, document.older),
        (DiffVerdict::Explained, Some(Copy::A))
    );
    let told = blocks(&document, &docs);
    assert!(told.len() > 5, "{told:?}");
    for block in told {
        assert_eq!(
            (block.difference, block.copy),
            (Difference::Replayed, Some(Copy::A)),
            "{block:?}"
        );
        assert!(block.why.contains("its WAL changes the block"), "{block:?}");
    }
    let mirrored = diff(&recovered.pgdata, &crashed.pgdata, 0);
    assert_eq!(blocks(&mirrored, &docs)[0].copy, Some(Copy::B));

    // A version from within that WAL, of a block that the WAL leaves alone, is explained by
    // nothing.
    let written = told.iter().find_map(|block| block.lsn_b.clone());
    let (high, low) = lsn(&written.expect("an LSN"));
    let frozen = path_of(&crashed, "frozen");
    let mut newer = block(&recovered.pgdata, &frozen, 1);
    put_u32(&mut newer, 0, high);
    put_u32(&mut newer, 4, low);
    newer[8100] ^= 1;
    seal_page(&mut newer, 1);
    put(&recovered.pgdata, &frozen, 1, &newer);
    let document = diff(&crashed.pgdata, &recovered.pgdata, 1);
    let [told] = blocks(&document, &frozen) else {
        panic!("{:?}", document.forks)
    };
    assert_eq!(
        (told.block, told.difference, told.copy),
        (1, Difference::Stale, Some(Copy::A))
    );
    assert!(told.why.contains("without the block"), "{told:?}");
}

/// The halves of `pd_lsn`.
fn lsn(text: &str) -> (u32, u32) {
    let (high, low) = text.split_once('/').expect("an LSN");
    let number = |half| u32::from_str_radix(half, 16).expect("a number");
    (number(high), number(low))
}

/// Where a table of `public` lies, asked of the files.
fn path_of(copy: &TempCopy, table: &str) -> String {
    let cluster = pgclinic_testkit::open(&copy.pgdata);
    let mut databases = cluster.databases.values();
    let database = databases.find(|own| own.name.as_deref() == Some("clinic"));
    let oid = database.expect("a database").oid;
    let catalog = cluster.catalog(oid);
    let found = catalog.relations.values().find(|own| own.name == table);
    format!("base/{oid}/{}", found.expect("a table").filenode)
}

#[test]
fn what_no_wal_explains_contradicts() {
    let seeded = seed(&server(15), Checksums::On);
    let a = copy_of(&seeded);
    let docs = stop(&a, "CHECKPOINT");
    let b = again(&a, &seeded);
    let (sound_a, sound_b) = (a.pgdata.join(&docs), b.pgdata.join(&docs));
    let whole = fs::read(&sound_a).expect("a file");

    // The end of a file is gone, though a checkpoint had written it.
    let last = whole.len() as u64 / 8192 - 1;
    let file = File::options().write(true).open(&sound_b).expect("a file");
    file.set_len(last * 8192).expect("a truncation");
    let told = only_block(&diff(&a.pgdata, &b.pgdata, 1), &docs);
    assert_eq!(
        (u64::from(told.block), told.difference, told.copy),
        (last, Difference::Lost, Some(Copy::B))
    );
    assert!(told.why.contains("redo point"), "{told:?}");
    assert_eq!((told.lsn_a.is_some(), told.lsn_b), (true, None));
    fs::write(&sound_b, &whole).expect("a file");

    // A value has changed and nothing tells when.
    let mut other = block(&a.pgdata, &docs, 1);
    let row = Page::parse(&other).expect("a page").pd_upper();
    other[usize::from(row) + 40] ^= 1;
    seal_page(&mut other, 1);
    put(&b.pgdata, &docs, 1, &other);
    let told = only_block(&diff(&a.pgdata, &b.pgdata, 1), &docs);
    assert_eq!(
        (told.block, told.difference, told.copy),
        (1, Difference::Conflict, None)
    );
    assert_eq!(told.lsn_a, told.lsn_b);

    // Neither copy helps the other.
    other[5000] ^= 1;
    put(&b.pgdata, &docs, 1, &other);
    let mut hurt = block(&a.pgdata, &docs, 1);
    hurt[12..14].fill(0xff);
    put(&a.pgdata, &docs, 1, &hurt);
    let told = only_block(&diff(&a.pgdata, &b.pgdata, 1), &docs);
    assert_eq!(
        (told.block, told.difference, told.copy),
        (1, Difference::BothUnsound, None)
    );
    assert!(
        told.why.starts_with("A: ") && told.why.contains("; B: stored checksum"),
        "{told:?}"
    );
    let words = pgclinic(&["diff", text(&a.pgdata), text(&b.pgdata)]).exits(1);
    assert!(words.out.contains("both-unsound"), "{}", words.out);
}

#[test]
fn another_major_and_another_build_are_no_copies() {
    let all = all_majors();
    let [older, .., newer] = &*all else {
        panic!("two majors")
    };
    let older = copy_of(&seed(older, Checksums::On));
    let seeded = seed(newer, Checksums::On);
    let (newer, other) = (copy_of(&seeded), copy_of(&seeded));
    let refused = pgclinic(&["diff", text(&older.pgdata), text(&newer.pgdata)]).exits(2);
    let why = "one is of PostgreSQL 13, the other of 18";
    assert!(refused.err.contains(why), "{}", refused.err);

    // The same cluster, with segments of half the size.
    let control = other.pgdata.join("global/pg_control");
    let mut bytes = fs::read(&control).expect("a control file");
    put_u32(&mut bytes, 220, 65_536);
    assert!(control_file::seal(&mut bytes));
    fs::write(&control, bytes).expect("a control file");
    let refused = pgclinic(&["diff", text(&newer.pgdata), text(&other.pgdata)]).exits(2);
    let why = "pages or segments differ in size";
    assert!(refused.err.contains(why), "{}", refused.err);
}

#[test]
fn two_clusters_are_no_copies() {
    let summed = copy_of(&seed(&server(15), Checksums::On));
    let other = copy_of(&seed(&server(15), Checksums::Off));
    let refused = pgclinic(&["diff", text(&summed.pgdata), text(&other.pgdata)]).exits(2);
    assert!(
        refused.err.contains("no copies of one cluster"),
        "{}",
        refused.err
    );
    let nothing = [
        "diff",
        text(&summed.pgdata),
        text(&summed.pgdata),
        "--relation",
        "no.such",
    ];
    let refused = pgclinic(&nothing).exits(2);
    assert!(refused.err.contains("matches nothing"), "{}", refused.err);
}

const NO_PAGES: &[u64] = &[];
const FIRST_PAGE: &[u64] = &[0];

/// The files beside the relations that differ: path, how, at fault, pages.
fn beside(document: &DiffDocument) -> Vec<(&str, Difference, Option<Copy>, &[u64])> {
    let files = document.files.iter();
    files
        .map(|own| {
            (
                own.path.as_str(),
                own.difference,
                own.copy,
                own.pages.as_slice(),
            )
        })
        .collect()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("a file");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("a file");
}

#[test]
fn status_files_and_maps_of_one_moment_are_compared() {
    let seeded = seed(&server(15), Checksums::On);
    let a = copy_of(&seeded);
    let docs = stop(&a, "CHECKPOINT");
    let map = format!(
        "{}/pg_filenode.map",
        docs.rsplit_once('/').expect("a directory").0
    );
    let b = again(&a, &seeded);
    let same = diff(&a.pgdata, &b.pgdata, 0);
    assert_eq!((same.verdict, beside(&same)), (DiffVerdict::Same, vec![]));
    assert!(same.coverage.files > 5, "{:?}", same.coverage);

    flip(&b.pgdata.join("pg_xact/0000"), 100);
    flip(&b.pgdata.join(&map), 12);
    fs::remove_file(b.pgdata.join("pg_multixact/offsets/0000")).expect("a file");
    let document = diff(&a.pgdata, &b.pgdata, 1);
    assert_eq!(document.verdict, DiffVerdict::Contradictory);
    assert!(document.forks.is_empty(), "{:?}", document.forks);
    assert_eq!(
        beside(&document),
        [
            (map.as_str(), Difference::Unsound, Some(Copy::B), NO_PAGES),
            ("pg_xact/0000", Difference::Conflict, None, FIRST_PAGE),
            (
                "pg_multixact/offsets/0000",
                Difference::Lost,
                Some(Copy::B),
                NO_PAGES
            ),
        ]
    );
    let words = pgclinic(&["diff", text(&a.pgdata), text(&b.pgdata)]).exits(1);
    let joined = words.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [
        "3 files beside the relations differ",
        "pg_xact/0000 conflict, page 0",
        "pg_multixact/offsets/0000 lost in B",
    ] {
        assert!(joined.contains(told), "{told}: {joined}");
    }
    let html = pgclinic(&["diff", text(&a.pgdata), text(&b.pgdata), "--format", "html"]).exits(1);
    assert!(html.out.contains("pg_multixact/offsets/0000"));

    // What was asked for is compared, and nothing else.
    let docs_only = ["--relation", "public.docs", "--format", "json"];
    let asked = [&["diff", text(&a.pgdata), text(&b.pgdata)], &docs_only[..]].concat();
    pgclinic(&asked).exits(0);
}

#[test]
fn status_files_and_maps_of_two_moments_contradict_nobody() {
    let seeded = seed(&server(15), Checksums::On);
    let (a, b) = (copy_of(&seeded), copy_of(&seeded));
    stop(&b, "VACUUM FULL pg_class; UPDATE public.docs SET id = id");
    let document = diff(&a.pgdata, &b.pgdata, 0);
    assert_eq!(document.verdict, DiffVerdict::Explained);
    let [told] = document.files.as_slice() else {
        panic!("{:?}", document.files)
    };
    assert!(told.path.ends_with("/pg_filenode.map"), "{told:?}");
    assert_eq!(
        (told.difference, told.copy),
        (Difference::Later, Some(Copy::A))
    );
    let gaps = &document.coverage.not_checked;
    for what in ["pg_xact", "pg_subtrans", "pg_wal"] {
        let told = gaps.iter().filter(|gap| gap.what.contains(what));
        assert_eq!(told.count(), 1, "{what}: {gaps:?}");
    }
}

#[test]
fn a_tablespace_whose_link_leads_nowhere_is_told_once() {
    let seeded = seed(&server(15), Checksums::On);
    let a = copy_of(&seeded);
    stop(&a, "CHECKPOINT");
    let b = again(&a, &seeded);
    let links = fs::read_dir(b.pgdata.join("pg_tblspc")).expect("a directory");
    let link = links.map(|entry| entry.expect("an entry").path());
    let link = link.last().expect("a tablespace");
    fs::remove_file(&link).expect("a link");
    std::os::unix::fs::symlink("/nowhere/at/all", &link).expect("a link");
    let name = link.file_name().expect("a name").to_string_lossy();
    for (one, other) in [(&a, &b), (&b, &a)] {
        let document = diff(&one.pgdata, &other.pgdata, 3);
        assert_eq!(document.verdict, DiffVerdict::Incomplete);
        assert!(ways(&document).is_empty(), "{:?}", document.forks);
        let gaps = document.coverage.not_checked.iter();
        let told = gaps.filter(|gap| gap.what.contains(&format!("pg_tblspc/{name}")));
        assert_eq!(told.count(), 1, "{:?}", document.coverage.not_checked);
    }
}

/// Its file is the only thing that a server has of it after a shutdown; WAL still has its begin.
#[test]
fn a_prepared_transaction_whose_file_is_lost_is_told_by_every_verb() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    fs::write(
        copy.pgdata.join("postgresql.auto.conf"),
        "max_prepared_transactions = 3\n",
    )
    .expect("a setting");
    stop(
        &copy,
        "CREATE TABLE public.promised (id int);BEGIN;INSERT INTO public.promised SELECT generate_series(1, 77);PREPARE TRANSACTION 'waits'",
    );
    let whole = again(&copy, &seed(&server(15), Checksums::On));
    assert_eq!(
        diff(&whole.pgdata, &copy.pgdata, 0).verdict,
        DiffVerdict::Same
    );
    pgclinic(&["check", text(&copy.pgdata), "-q"]).exits(0);
    let folder = copy.pgdata.join("pg_twophase");
    let entry = fs::read_dir(&folder).expect("a directory").next();
    let path = entry.expect("a file").expect("a file").path();
    fs::remove_file(&path).expect("a file");

    let document = diff(&whole.pgdata, &copy.pgdata, 1);
    let [file] = document.files.as_slice() else {
        panic!("{:?}", document.files)
    };
    assert_eq!(
        (file.difference, file.copy),
        (Difference::Lost, Some(Copy::B))
    );
    let checked = pgclinic(&["check", text(&copy.pgdata)]).exits(1);
    fs::remove_file(whole.pgdata.join("base/1/PG_VERSION")).expect("a version");
    let document = diff(&whole.pgdata, &copy.pgdata, 1);
    let lost = document.files.iter().map(|file| file.copy);
    assert_eq!(Vec::from_iter(lost), [Some(Copy::B), Some(Copy::A)]);
    assert!(
        checked.out.contains("its PREPARE TRANSACTION"),
        "{}",
        checked.out
    );
    let out = tempfile::tempdir().expect("a directory");
    let out = out.path().join("rows");
    let line = ["salvage", text(&copy.pgdata), "--to", text(&out)];
    let salvaged = pgclinic(&line).exits(3);
    assert!(
        salvaged.out.contains("changes of 1 prepared transaction"),
        "{}",
        salvaged.out
    );
}
