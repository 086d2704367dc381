//! Figures from the files are those of `pgstattuple`, `pgstatindex` and `bt_page_stats`, to the last digit.

mod common;

use std::collections::BTreeMap;

use common::pgclinic;
use pgclinic_diagnose::document::{Figure, MeasureDocument, MeasuredRelation};
use pgclinic_servers::{Checksums, Server, Session, StopMode, TextRow};
use pgclinic_testkit::{copy_of, seed, server};

/// Rows that died in every way, indexes with gaps, dead items and deleted pages.
const CHURN: &str = "
CREATE TABLE public.churn (id uuid PRIMARY KEY, n int, filler text);
CREATE INDEX churn_n ON public.churn (n);
CREATE INDEX churn_hash ON public.churn USING hash (n);
CREATE INDEX churn_gist ON public.churn USING gist (point(n, n));
INSERT INTO public.churn SELECT md5(i::text)::uuid, i / 3, repeat('x', i % 90) FROM generate_series(1, 20000) AS i;
DELETE FROM public.churn WHERE n BETWEEN 1000 AND 3000;
UPDATE public.churn SET filler = 'y' WHERE n % 7 = 0;
BEGIN; INSERT INTO public.churn SELECT md5('a' || i)::uuid, i, 'z' FROM generate_series(1, 500) AS i; ROLLBACK;
VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) public.churn;
DELETE FROM public.churn WHERE n BETWEEN 5000 AND 5400;
BEGIN; DELETE FROM public.churn WHERE n < 100; ROLLBACK;
BEGIN; SELECT 1 FROM public.churn WHERE n = 200 FOR UPDATE; COMMIT;
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT count(filler) FROM public.churn WHERE n BETWEEN 5000 AND 5500;
CHECKPOINT";

/// Not catalogs: the questions themselves prune them.
const TABLES: &str = "
SELECT n.nspname || '.' || c.relname, s.* FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace,
  ext.pgstattuple(c.oid::regclass) AS s
WHERE relkind IN ('r', 't', 'm') AND relpersistence = 'p' AND nspname <> 'pg_catalog' ORDER BY 1";

const INDEXES: &str = "
SELECT n.nspname || '.' || c.relname, s.* FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
  JOIN pg_am AS a ON a.oid = relam JOIN pg_index AS i ON indexrelid = c.oid, ext.pgstattuple(c.oid::regclass) AS s
WHERE relkind = 'i' AND indisvalid AND relpersistence = 'p' AND nspname <> 'pg_catalog' AND amname IN ('btree', 'hash', 'gist') ORDER BY 1";

const BTREES: &str = "
SELECT n.nspname || '.' || c.relname, s.* FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
  JOIN pg_am AS a ON a.oid = relam JOIN pg_index AS i ON indexrelid = c.oid, ext.pgstatindex(c.oid::regclass) AS s
WHERE relkind = 'i' AND indisvalid AND relpersistence = 'p' AND nspname <> 'pg_catalog' AND amname = 'btree' ORDER BY 1";

const LEAVES: &str = "
SELECT count(*) FILTER (WHERE btpo_next = blkno + 1), count(*) FILTER (WHERE btpo_next NOT IN (0, blkno + 1)),
  sum(live_items), sum(dead_items), round(avg(live_items + dead_items), 6)
FROM generate_series(1, pg_relation_size('public.churn_n') / 8192 - 1) AS b, ext.bt_page_stats('public.churn_n', b::int)
WHERE type = 'l'";

const TUPLE_COLUMNS: [&str; 9] = [
    "table_len",
    "tuple_count",
    "tuple_len",
    "tuple_percent",
    "dead_tuple_count",
    "dead_tuple_len",
    "dead_tuple_percent",
    "free_space",
    "free_percent",
];

const INDEX_COLUMNS: [&str; 10] = [
    "version",
    "tree_level",
    "index_size",
    "root_block_no",
    "internal_pages",
    "leaf_pages",
    "empty_pages",
    "deleted_pages",
    "avg_leaf_density",
    "leaf_fragmentation",
];

#[test]
fn figures_of_15_are_those_of_its_extensions() {
    figures_are_those_of_the_extensions(15);
}

#[test]
fn figures_of_18_are_those_of_its_extensions() {
    figures_are_those_of_the_extensions(18);
}

fn figures_are_those_of_the_extensions(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    let said = Said::of(&running);
    running.stop(StopMode::Fast).expect("it stops");
    let pgdata = copy.pgdata.display().to_string();
    let ran = pgclinic(&["measure", &pgdata, "--format", "json"]).exits(0);
    let document: MeasureDocument = serde_json::from_str(&ran.out).expect("a document");
    let measured: BTreeMap<String, &MeasuredRelation> = document
        .relations
        .iter()
        .filter(|own| own.database.as_deref().is_none_or(|name| name == "clinic"))
        .map(|own| (own.name(), own))
        .collect();
    compare(&measured, &said.tables, "table", &TUPLE_COLUMNS);
    compare(&measured, &said.indexes, "index", &TUPLE_COLUMNS);
    compare(&measured, &said.btrees, "index", &INDEX_COLUMNS);
    let churn = measured.get("public.churn_n").expect("the index");
    let Some(Figure::Spread(items)) = churn.figure("index", "items_per_leaf") else {
        panic!("no items a leaf")
    };
    let ours = [
        "contiguous_links",
        "other_links",
        "live_items",
        "dead_items",
    ]
    .map(|name| churn.count("index", name).map(|number| number.to_string()));
    assert_eq!(ours.as_slice(), said.leaves.get(..4).expect("columns"));
    assert_eq!(
        Some(format!("{:.6}", items.mean)),
        said.leaves.get(4).cloned().flatten()
    );
    assert!(
        churn.count("index", "dead_items") > Some(0),
        "nothing died in {churn:?}"
    );
    for table in document
        .relations
        .iter()
        .filter(|own| own.sections.contains_key("table"))
    {
        ledger_adds_up(table);
    }
}

struct Said {
    tables: Vec<TextRow>,
    indexes: Vec<TextRow>,
    btrees: Vec<TextRow>,
    leaves: TextRow,
}

impl Said {
    fn of(server: &Server) -> Self {
        let mut session = server.connect("clinic").expect("a session");
        for statement in CHURN.split(";\n").flat_map(split_transaction) {
            session
                .execute(&statement)
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        let mut rows = |sql: &str| ask(&mut session, sql);
        Said {
            tables: rows(TABLES),
            indexes: rows(INDEXES),
            btrees: rows(BTREES),
            leaves: rows(LEAVES).into_iter().next().expect("a row"),
        }
    }
}

fn split_transaction(line: &str) -> Vec<String> {
    line.split("; ").map(str::to_owned).collect()
}

fn ask(session: &mut Session, sql: &str) -> Vec<TextRow> {
    let rows = session
        .query(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert!(!rows.is_empty(), "no row of {sql}");
    rows
}

fn compare(
    measured: &BTreeMap<String, &MeasuredRelation>,
    said: &[TextRow],
    section: &str,
    columns: &[&str],
) {
    for row in said {
        let (name, values) = row.split_first().expect("a name");
        let name = name.clone().expect("a name");
        let own = measured
            .get(&name)
            .unwrap_or_else(|| panic!("{name} was not measured"));
        for (column, value) in columns.iter().zip(values) {
            let ours = own.real(section, column);
            let theirs = value
                .as_deref()
                .and_then(|text| text.parse().ok())
                .filter(|number: &f64| !number.is_nan());
            assert_eq!(ours, theirs, "{column} of {name}");
        }
    }
}

fn ledger_adds_up(table: &MeasuredRelation) {
    let parts = [
        "header_bytes",
        "line_pointer_bytes",
        "live_bytes",
        "dead_bytes",
        "padding_bytes",
        "hole_bytes",
        "empty_bytes",
        "not_measured_bytes",
    ];
    let sum: u64 = parts
        .iter()
        .map(|part| table.count("table", part).expect("a count"))
        .sum();
    assert_eq!(sum, table.bytes, "the ledger of {}", table.name());
}
