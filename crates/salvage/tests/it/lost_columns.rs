//! Columns whose rows in `pg_attribute` are lost: their types come from other catalogs, else from
//! what a person declares.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, SalvageReport, TableAccount};
use pgclinic_salvage::schema::given::tables_in;
use pgclinic_testkit::server;

use crate::common::again::{Shop, again, shop};
use crate::common::{self, Lines, lines, options, salvaged, session};

const PAGE: u64 = 8192;
const TYPED: &[&str] = &[
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE TABLE parent (name text, weight float8)",
    "CREATE TABLE typed (by_index int PRIMARY KEY, by_check bigint CHECK (by_check > 0), \
     by_statistics timestamptz, by_type mood, by_default numeric DEFAULT 7, gone text, last int2) INHERITS (parent)",
    "CREATE INDEX ON typed (last)",
    "CREATE INDEX ON typed ((gone || 'x'))",
    "INSERT INTO typed (name, weight, by_index, by_check, by_statistics, by_type, gone, last) \
     SELECT 'n' || n, n / 3.0, n, n * 9, now() + n * interval '1 hour', 'ok', 'g' || n, n % 7 FROM generate_series(1, 300) n",
    "ANALYZE typed (by_statistics)",
];
const UNTOLD: &[&str] = &[
    "CREATE TABLE untold (id int PRIMARY KEY, gone int, address inet, note text)",
    "INSERT INTO untold SELECT n, n, '10.0.0.1'::inet + n, 'n' || n FROM generate_series(1, 300) n",
    "ALTER TABLE untold DROP gone",
];

/// A stopped cluster whose table lost its rows of `pg_attribute`.
fn without_columns(statements: &[&str], table: &str, wanted: &str) -> Shop {
    let shop = shop(
        statements,
        &format!(
            "SELECT pg_relation_filepath('pg_attribute'), (ctid::text::point)[0]::int, (ctid::text::point)[1]::int \
             FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 AND {wanted}"
        ),
    );
    for place in &shop.answer {
        let number = |at: usize| -> u64 { place[at].parse().expect("a number") };
        let file = OpenOptions::new()
            .write(true)
            .open(shop.copy.pgdata.join(&place[0]));
        let file = file.expect("pg_attribute");
        // The line pointer is emptied: nothing but the indexes knows that a row stood there.
        let at = number(1) * PAGE + 24 + (number(2) - 1) * 4;
        file.write_all_at(&[0; 4], at).expect("written");
    }
    shop
}

fn account_of<'a>(report: &'a SalvageReport, table: &str) -> &'a TableAccount {
    let mut tables = report.tables.iter();
    let found = tables.find(|account| account.table == table);
    found.unwrap_or_else(|| panic!("{table}: {:#?}", report.not_salvaged))
}

#[test]
fn types_of_lost_columns_come_from_other_catalogs() {
    let Shop { copy, truth, .. } = without_columns(TYPED, "typed", "true");
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let report = salvaged(&copy.pgdata, &options(&out, "copy"));
    assert_ne!(report.outcome, Outcome::Whole);
    let account = account_of(&report, "typed");
    let notes = account.notes.join("\n");
    for told in [
        "name (type by a relative by inheritance)",
        "by_index (type by an index)",
        "by_check (type by a check constraint)",
        "by_statistics (type by pg_statistic)",
        "by_type (type by pg_depend)",
        "by_default (type by its default)",
        "gone (type by an expression of an index)",
    ] {
        assert!(notes.contains(told), "{told}: {notes}");
    }
    let bytes = std::fs::read(out.join("shop/public.typed.copy")).expect("its rows");
    assert!(
        Some(&lines(&bytes)) == truth.get("public.typed"),
        "{account:#?}"
    );
}

#[test]
fn declared_columns_stand_between_those_that_are_known() {
    let lost = "attname IN ('address', 'note')";
    let Shop { copy, truth, .. } = without_columns(UNTOLD, "untold", lost);
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let mut options = common::options(&out, "copy");
    // As pg_dump writes it: without the column that was dropped.
    let declared = "CREATE TABLE public.untold (id integer NOT NULL, address inet, note text);";
    options.given = tables_in(declared).expect("a table");
    let report = salvaged(&copy.pgdata, &options);
    let account = account_of(&report, "untold");
    assert_eq!(account.columns, ["id", "address", "note"]);
    let bytes = std::fs::read(out.join("shop/public.untold.copy")).expect("its rows");
    assert!(
        Some(&lines(&bytes)) == truth.get("public.untold"),
        "{account:#?}"
    );
}

/// Columns that do not fit its rows are refused, and then all of them are lost.
#[test]
fn a_table_that_cannot_be_read_is_lost_with_all_rows() {
    let lost = "attname IN ('address', 'note')";
    let mut statements = UNTOLD.to_vec();
    statements.push("VACUUM untold");
    let Shop { copy, .. } = without_columns(&statements, "untold", lost);
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = common::options(&folder.path().join("out"), "copy");
    let declared = "CREATE TABLE public.untold (id integer NOT NULL, address point, note box);";
    options.given = tables_in(declared).expect("a table");
    let report = salvaged(&copy.pgdata, &options);
    let account = account_of(&report, "untold");
    assert_eq!((account.rows.lost, account.rows.lost_estimated), (300, 300));
    assert_eq!(account.file, None);
    assert!(report.totals.lost >= 300, "{:#?}", report.totals);
}

/// What is found of the columns is in the schema too, so that what was written is loaded.
#[test]
fn a_table_is_made_again_with_the_columns_that_are_found() {
    let Some(tool) = server(15).tool("psql") else {
        // A fetched server comes without client programs; an installed one has them.
        return;
    };
    let statements = [TYPED, UNTOLD].concat();
    let both = "true OR (attrelid = 'untold'::regclass AND attnum > 0)";
    let shop = without_columns(&statements, "typed", both);
    let again = again(&shop, &tool);
    let told = format!("{:#?}", again.report.not_salvaged);
    assert!(
        told.contains("13 columns are put together from other places"),
        "{told}"
    );
    assert!(again.said.is_empty(), "{}", again.said);
    let rows = |table: &str| again.found.get(&format!("public.{table}"));
    assert!(
        rows("typed") == shop.truth.get("public.typed"),
        "{:?}",
        again.found
    );
    assert_eq!(rows("untold").map(Lines::len), Some(300));
    let key = "SELECT count(*) FROM pg_index WHERE indrelid = 'typed'::regclass";
    let indexes = session(&again.server, "again")
        .query_value(key)
        .expect("indexes");
    assert_eq!(indexes.as_deref(), Some("3"));
}

/// Nothing is known of its columns: no empty table stands for it.
#[test]
fn a_table_whose_columns_are_lost_is_not_made_without_them() {
    let statements = [
        "CREATE TABLE untold (id int, note text)",
        "CREATE TYPE pair AS (a int, b text)",
    ];
    let both =
        "true OR (attrelid = (SELECT typrelid FROM pg_type WHERE typname = 'pair') AND attnum > 0)";
    let Shop { copy, .. } = without_columns(&statements, "untold", both);
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("out"), "copy");
    options.selection.databases = vec![Glob::new("shop")];
    let schema = folder.path().join("schema.sql");
    options.ddl = Some(schema.clone());
    let report = salvaged(&copy.pgdata, &options);
    assert_ne!(report.outcome, Outcome::Whole);
    let schema = std::fs::read_to_string(schema).expect("a schema");
    for lost in ["TABLE public.untold", "TYPE public.pair"] {
        let told = format!("NOT WRITTEN: {lost}: its 2 columns are lost from pg_attribute");
        assert!(schema.contains(&told), "{schema}");
    }
}
