//! Rows of `pg_class` and `pg_attribute` that say what no server writes, and rows that are gone
//! with every entry that named them.

use pgclinic_model::{CheckDocument, Level, Severity};
use pgclinic_servers::{Checksums, StartOptions, StopMode};
use pgclinic_testkit::{checked, copy_of, execute, open, seed, server};

/// What is told of tables of the schema public, by rule.
fn told(document: &CheckDocument) -> Vec<(&str, &str)> {
    let damage = document
        .findings
        .iter()
        .filter(|own| own.severity == Severity::Damage);
    let mut told: Vec<(&str, &str)> = damage
        .map(|own| (own.rule.as_str(), own.message.as_str()))
        .collect();
    told.sort_unstable();
    told
}

fn look(major: u16, sql: &str) -> CheckDocument {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let options = StartOptions::default().with("autovacuum", "off");
    let mut running = copy.start_with(&options).expect("a server");
    execute(&running, sql);
    running.stop(StopMode::Fast).expect("it stops");
    checked(&open(&copy.pgdata), Level::Structure)
}

const TABLES: &str = "\
CREATE TABLE public.viewed AS SELECT 1 AS a; CREATE TABLE public.shared AS SELECT 1 AS a;
CREATE TABLE public.odd AS SELECT 1 AS a; CREATE TABLE public.bare AS SELECT 1 AS a;
CREATE TABLE public.nowhere AS SELECT 1 AS a; CREATE TABLE public.narrow AS SELECT 1 AS a, 2 AS b;
CREATE VIEW public.right_view AS SELECT 1 AS a; CREATE TEMP TABLE passing AS SELECT 1 AS a;
CREATE TABLE public.dropping (a int, b int); ALTER TABLE public.dropping DROP COLUMN a;
CREATE TABLE public.parted (a int) PARTITION BY LIST (a)";

#[test]
fn a_row_that_contradicts_itself_is_told() {
    for major in [13, 18] {
        let of = |table: &str, what: &str| {
            format!("; UPDATE pg_class SET {what} WHERE oid = 'public.{table}'::regclass")
        };
        let sound = look(major, TABLES);
        assert_eq!(told(&sound), [], "{major}");
        let changes = [
            of("viewed", "relkind = 'v'"),
            of("shared", "relisshared = true"),
            of("odd", "relpersistence = 'q'"),
            of("bare", "relam = 0"),
            of("nowhere", "relfilenode = 0"),
            "; UPDATE pg_attribute SET attisdropped = true WHERE attrelid = 'public.narrow'::regclass AND attname = 'b'".into(),
        ];
        let document = look(major, &format!("{TABLES}{}", changes.concat()));
        let told = told(&document);
        for (table, words) in [
            ("viewed", "relkind is wrong"),
            ("shared", "relisshared is set"),
            ("odd", "relpersistence is 'q'"),
            ("bare", "relam is 0"),
            ("nowhere", "relfilenode is 0"),
            ("b", "attisdropped is set"),
        ] {
            let head = format!("the row of {table} in pg_");
            let mut own = told
                .iter()
                .filter(|(_, message)| message.starts_with(&head));
            let (rule, message) = own.next().unwrap_or_else(|| panic!("{table}: {told:?}"));
            assert_eq!(*rule, "catalog-row-contradictory");
            assert!(message.contains(words), "{message}");
        }
    }
}

#[test]
fn a_directory_without_a_database_is_noted() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    std::fs::create_dir(copy.pgdata.join("base/77777")).expect("made");
    let version = copy.pgdata.join("base/1/PG_VERSION");
    std::fs::copy(version, copy.pgdata.join("base/77777/PG_VERSION")).expect("copied");
    let document = checked(&open(&copy.pgdata), Level::Structure);
    let own = document
        .findings
        .iter()
        .filter(|own| own.rule == "orphan-database-directory");
    let paths: Vec<&str> = own.map(|own| own.place.path.as_str()).collect();
    assert_eq!(paths, ["base/77777"]);
    assert_eq!(told(&document), []);
}

#[test]
fn two_relations_with_one_file_are_told() {
    let sql = "CREATE TABLE public.first AS SELECT 1 AS a; CREATE TABLE public.second AS SELECT 1 AS a; \
        UPDATE pg_class SET relfilenode = pg_relation_filenode('public.first') WHERE oid = 'public.second'::regclass";
    let document = look(18, sql);
    let told = told(&document);
    let shared = told
        .iter()
        .filter(|(_, message)| message.contains("and so is that of"));
    assert_eq!(shared.count(), 2, "{told:?}");
}

/// VACUUM takes the entries of a deleted row along: `pg_attribute` and the file are left.
#[test]
fn a_relation_that_pg_attribute_alone_knows_is_lost() {
    let sql = "CREATE TABLE public.forgotten AS SELECT i FROM generate_series(1, 100) i; \
        DELETE FROM pg_class WHERE oid = 'public.forgotten'::regclass";
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(&running, sql);
    execute(&running, "VACUUM pg_class");
    running.stop(StopMode::Fast).expect("it stops");
    let document = checked(&open(&copy.pgdata), Level::Structure);
    let told = told(&document);
    assert!(
        told.iter().any(|(rule, _)| *rule == "relation-lost"),
        "{told:?}"
    );
}
