//! Witnesses beside indexes and maps: older WAL, foreign keys, the bytes of a moved page that are
//! known; and those that say nothing of the tables that were asked for.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pgclinic_format::oid;
use pgclinic_model::document::{Outcome, SalvageReport, TableAccount};
use pgclinic_model::{Glob, Selection};
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_testkit::{TempCopy, all_majors, copy_of, open, seed, server};

use crate::common;

use common::{options, salvaged};

const PAGE: usize = 8192;

fn started() -> (TempCopy, Server) {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    (copy, running)
}

fn execute(server: &Server, statements: &[&str]) {
    let mut session = server.connect("clinic").expect("a session");
    for statement in statements {
        session.execute(statement).expect(statement);
    }
}

fn value(server: &Server, sql: &str) -> String {
    let mut session = server.connect("clinic").expect("a session");
    session.query_value(sql).expect(sql).expect("a value")
}

fn path_of(server: &Server, relation: &str) -> String {
    value(
        server,
        &format!("SELECT pg_relation_filepath('{relation}')"),
    )
}

fn truncate(path: &Path, blocks: usize) {
    let file = OpenOptions::new().write(true).open(path).expect("a file");
    file.set_len((blocks * PAGE) as u64).expect("truncated");
}

fn only(pgdata: &Path, out: &Path, relation: &str) -> SalvageReport {
    let options = pgclinic_salvage::SalvageOptions {
        selection: Selection {
            relations: vec![Glob::new(relation)],
            ..Selection::default()
        },
        ..options(out, "csv")
    };
    salvaged(pgdata, &options)
}

fn table<'a>(account: &'a SalvageReport, name: &str) -> &'a TableAccount {
    let mut tables = account.tables.iter();
    tables.find(|table| table.table == name).expect("a table")
}

/// More of it than is read where nothing raises the question.
#[test]
fn older_wal_is_asked_whatever_its_size() {
    let (copy, mut running) = started();
    execute(
        &running,
        &[
            "ALTER SYSTEM SET wal_keep_size = '1GB'",
            "ALTER SYSTEM SET max_wal_size = '2GB'",
            "ALTER SYSTEM SET wal_init_zero = off",
            "SELECT pg_reload_conf()",
            "CREATE TABLE public.alone AS SELECT i AS id, md5(i::text) AS word FROM generate_series(1, 5000) i",
        ],
    );
    let path = copy.pgdata.join(path_of(&running, "public.alone"));
    for _ in 0..18 {
        let next = "SELECT pg_logical_emit_message(false, 'clinic', 'next')";
        execute(&running, &[next, "SELECT pg_switch_wal()"]);
    }
    running.stop(StopMode::Fast).expect("stopped");
    let folder = tempfile::tempdir().expect("a directory");
    let whole = only(&copy.pgdata, &folder.path().join("whole"), "public.alone");
    assert_eq!(whole.outcome, Outcome::Whole, "{:#?}", whole.not_salvaged);
    truncate(&path, 20);
    let account = only(&copy.pgdata, &folder.path().join("out"), "public.alone");
    assert_eq!(account.outcome, Outcome::Damaged);
    let places = &table(&account, "alone").places;
    assert!(places[0].block == 20 && places[0].why.contains("WAL has records of it"));
}

#[test]
fn keys_of_other_tables_count_rows_where_no_index_does() {
    let (copy, mut running) = started();
    execute(
        &running,
        &[
            "CREATE TABLE public.parent (id int PRIMARY KEY)",
            "INSERT INTO public.parent SELECT generate_series(1, 5000)",
            "CREATE TABLE public.child (parent int REFERENCES public.parent, id int)",
            "INSERT INTO public.child SELECT i, i FROM generate_series(1, 5000) i",
            "INSERT INTO public.child SELECT i, -i FROM generate_series(4000, 5000) i",
        ],
    );
    let [parent, index] = ["public.parent", "public.parent_pkey"]
        .map(|name| copy.pgdata.join(path_of(&running, name)));
    running.stop(StopMode::Fast).expect("stopped");
    truncate(&parent, 10);
    std::fs::remove_file(index).expect("removed");
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "csv"));
    let parent = table(&account, "parent");
    let by = &parent.lost_by[0];
    let lost = 5000 - parent.rows.written;
    assert_eq!((by.witness.as_str(), by.rows), ("foreign-keys", lost));
    assert_eq!((parent.rows.lost, parent.rows.lost_known), (lost, lost));
    assert_eq!(account.outcome, Outcome::Damaged);
}

/// Of `sound` rows, values and a column with values were removed in every legal way.
#[test]
fn live_values_without_rows_count_rows_where_no_index_does() {
    let (copy, mut running) = started();
    execute(
        &running,
        &[
            "CREATE TABLE public.letter (id int, what text)",
            "CREATE TABLE public.sound (id int, what text, other text)",
            "ALTER TABLE public.letter ALTER what SET STORAGE EXTERNAL",
            "ALTER TABLE public.sound ALTER what SET STORAGE EXTERNAL, ALTER other SET STORAGE EXTERNAL",
            "INSERT INTO public.letter SELECT i, repeat('x', 4000) FROM generate_series(1, 600) i",
            "INSERT INTO public.sound SELECT i, repeat('x', 4000), repeat('o', 4000) FROM generate_series(1, 60) i",
            "DELETE FROM public.sound WHERE id % 2 = 0",
            "UPDATE public.sound SET what = repeat('z', 4000) WHERE id % 3 = 0",
            "UPDATE public.sound SET id = -id WHERE id % 5 = 0",
            "BEGIN; INSERT INTO public.sound SELECT i, repeat('y', 4000) FROM generate_series(1, 40) i; ROLLBACK",
            "ALTER TABLE public.sound DROP COLUMN other",
            "CHECKPOINT",
            "SELECT pg_switch_wal()",
            "CHECKPOINT",
        ],
    );
    let letter = copy.pgdata.join(path_of(&running, "public.letter"));
    running.stop(StopMode::Fast).expect("stopped");
    let folder = tempfile::tempdir().expect("a directory");
    let whole = salvaged(&copy.pgdata, &options(&folder.path().join("whole"), "csv"));
    assert_eq!(whole.outcome, Outcome::Whole, "{:#?}", whole.not_salvaged);
    // Rows of the other blocks have values too.
    let part = pgclinic_salvage::SalvageOptions {
        selection: Selection {
            relations: vec![Glob::new("public.letter")],
            blocks: Some(0..1),
            ..Selection::default()
        },
        ..options(&folder.path().join("part"), "csv")
    };
    let account = salvaged(&copy.pgdata, &part);
    assert_eq!(account.outcome, Outcome::Whole, "{:#?}", account.tables);
    truncate(&letter, 1);
    let account = only(&copy.pgdata, &folder.path().join("out"), "public.letter");
    assert_eq!(account.outcome, Outcome::Damaged);
    let letter = table(&account, "letter");
    let lost = 600 - letter.rows.written;
    let by = &letter.lost_by[0];
    assert_eq!((by.witness.as_str(), by.rows), ("toast-values", lost));
    assert_eq!(letter.rows.lost, lost);
}

/// An old page among newer ones, one of another cluster, and one that was never begun.
#[test]
fn pages_that_the_map_and_the_log_deny_are_not_taken_for_granted() {
    let copy = copy_of(&seed(&server(15), Checksums::Off));
    let mut running = copy.start().expect("a server");
    execute(
        &running,
        &[
            "CREATE TABLE public.paged AS SELECT i AS id, repeat('x', 100) AS what FROM generate_series(1, 900) i",
            "VACUUM public.paged",
            "CHECKPOINT",
            "SELECT pg_switch_wal()",
            "CHECKPOINT",
        ],
    );
    let path = copy.pgdata.join(path_of(&running, "public.paged"));
    running.stop(StopMode::Fast).expect("stopped");
    let folder = tempfile::tempdir().expect("a directory");
    let sound = std::fs::read(&path).expect("a file");
    let look = |name: &str, bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("a write");
        only(&copy.pgdata, &folder.path().join(name), "public.paged")
    };
    let begun = [&sound[..], &[0; 4096]].concat();
    let account = look("begun", &begun);
    assert_eq!(
        account.outcome,
        Outcome::Whole,
        "{:#?}",
        account.not_salvaged
    );

    let mut older = sound.clone();
    older[PAGE + 10] &= !4;
    let account = look("older", &older);
    let own = table(&account, "paged");
    assert_eq!(account.outcome, Outcome::Damaged);
    assert!(own.rows.suspect > 10 && own.rows.suspect < 200, "{own:#?}");
    assert_eq!(own.rows.written, 900);

    let mut foreign = sound.clone();
    foreign[2..4].copy_from_slice(&[0x7F, 0x7F]);
    let account = look("foreign", &foreign);
    assert_eq!(account.outcome, Outcome::Incomplete);
    let gaps = account.not_salvaged.iter();
    let mut gaps = gaps.filter(|gap| !gap.inherent);
    assert!(gaps.any(|gap| gap.what.contains("public.paged")));
}

/// The first row of a page stands at its end.
#[test]
fn bytes_that_a_moved_page_lost_are_no_values() {
    let (copy, mut running) = started();
    execute(
        &running,
        &[
            "CREATE TABLE public.moved AS SELECT i AS id, 'word ' || i AS word, date '1970-01-01' + i AS born FROM generate_series(1, 500) i",
        ],
    );
    let path = copy.pgdata.join(path_of(&running, "public.moved"));
    running.stop(StopMode::Fast).expect("stopped");
    let mut bytes = std::fs::read(&path).expect("a file");
    let page = bytes[PAGE..2 * PAGE].to_vec();
    let first: i32 = i32::from_le_bytes(page[PAGE - 24..PAGE - 20].try_into().expect("four"));
    bytes[PAGE..PAGE + 8].fill(0xC3);
    bytes[PAGE + 8..2 * PAGE].copy_from_slice(&page[..PAGE - 8]);
    std::fs::write(&path, bytes).expect("written");
    let folder = tempfile::tempdir().expect("a directory");
    let account = only(&copy.pgdata, &folder.path().join("out"), "public.moved");
    let rows = &table(&account, "moved").rows;
    assert_eq!((rows.written, rows.partial), (500, 1));
    let stem = folder.path().join("out/clinic/public.moved");
    let mut without = Vec::new();
    for line in common::with_suspects(&stem) {
        let fields: Vec<&str> = line.split(',').collect();
        let id: i32 = fields[0].parse().expect("a number");
        assert!(fields[1] == format!("word {id}"), "{line}");
        if fields[2].is_empty() {
            without.push(id);
        }
    }
    assert_eq!(without, [first]);
    let reasons = common::suspects(&stem);
    let of_row =
        |reason: &String| reason.contains("partial: column born: the end of the page is lost");
    assert!(
        reasons.iter().any(|(reason, _)| of_row(reason)),
        "{reasons:#?}"
    );
}

#[test]
fn types_of_other_tables_are_no_gap_of_those_that_are_asked_for() {
    let (copy, mut running) = started();
    execute(
        &running,
        &[
            "CREATE TYPE public.humour AS ENUM ('good', 'bad')",
            "CREATE TABLE public.plain_one AS SELECT i AS id, md5(i::text) AS word FROM generate_series(1, 50) i",
            "CREATE TABLE public.of_humour AS SELECT 'good'::public.humour AS how",
            "CHECKPOINT",
        ],
    );
    let block = value(
        &running,
        "SELECT (ctid::text::point)[0]::int FROM pg_type WHERE typname = 'humour'",
    );
    let block: u64 = block.parse().expect("a number");
    let path = copy.pgdata.join(path_of(&running, "pg_type"));
    running.stop(StopMode::Fast).expect("stopped");
    let file = OpenOptions::new().write(true).open(path).expect("a file");
    let at = block * PAGE as u64;
    file.write_all_at(&[0; PAGE], at).expect("zeroed");
    let folder = tempfile::tempdir().expect("a directory");
    let account = only(&copy.pgdata, &folder.path().join("one"), "public.plain_one");
    assert_eq!(
        account.outcome,
        Outcome::Whole,
        "{:#?}",
        account.not_salvaged
    );
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("all"), "csv"));
    assert_eq!(account.outcome, Outcome::Incomplete);
}

#[test]
fn built_in_columns_of_catalogs_are_those_of_each_major() {
    let catalogs = [
        oid::PG_STATISTIC,
        oid::PG_DEPEND,
        oid::PG_CONSTRAINT,
        oid::PG_PROC,
        oid::PG_RANGE,
        oid::PG_INHERITS,
        oid::PG_COLLATION,
    ];
    for installation in all_majors() {
        let copy = copy_of(&seed(&installation, Checksums::On));
        let cluster = open(&copy.pgdata);
        let database = *cluster.databases.keys().next().expect("a database");
        let catalog = cluster.catalog(database);
        for number in catalogs {
            let relation = &catalog.relations[&number];
            let known = relation.columns.as_ref().expect("columns");
            let known: Vec<_> = known
                .iter()
                .map(|column| (column.name.as_str(), column.layout))
                .collect();
            let built_in = cluster.layout.catalog(number).expect("built in");
            let built_in: Vec<_> = built_in.iter().map(|own| (own.name, own.layout)).collect();
            assert_eq!(
                built_in, known,
                "{} of {}",
                relation.name, installation.major
            );
        }
    }
}
