//! Figures from the files are those of `pgstattuple`, `pgstatindex` and `bt_page_stats`, to the
//! last digit.

use pgclinic_model::document::{Figure, MeasureDocument, MeasuredRelation};

use crate::common;

use std::collections::BTreeMap;

use common::pgclinic;
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
CREATE INDEX churn_gin ON public.churn USING gin (to_tsvector('simple', filler));
CREATE INDEX churn_brin ON public.churn USING brin (n) WITH (pages_per_range = 4);
CREATE TABLE public.long (id int, body text, packed text);
INSERT INTO public.long SELECT i, string_agg(md5(i::text || j::text), ''), repeat(md5(i::text), 3 * i) FROM generate_series(1, 150) AS i, LATERAL generate_series(1, 2 * i) AS j GROUP BY i;
CREATE TABLE public.tried (v text);
ALTER TABLE public.tried ALTER v SET STORAGE main;
INSERT INTO public.tried SELECT string_agg('{\"key' || j % 7 || '\": ' || i * j || '}', ',') FROM generate_series(1, 100) AS i, generate_series(1, 300) AS j GROUP BY i;
CREATE TABLE public.owner_of (picture oid);
INSERT INTO public.owner_of SELECT lo_from_bytea(0, convert_to(repeat('x', 100 * i), 'UTF8')) FROM generate_series(1, 30) AS i;
DELETE FROM public.owner_of WHERE ctid IN ('(0,3)', '(0,5)');
CREATE TABLE public.born (id uuid);
INSERT INTO public.born VALUES ('C232AB00-9414-11EC-B3C8-9F6BDECED846'), ('017F22E2-79B0-7CC3-98C4-DC0C0C07398F'), ('919108f7-52d1-4320-9bac-f847db4148a8'), (NULL);
VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) public.churn;
DELETE FROM public.churn WHERE n BETWEEN 5000 AND 5400;
BEGIN; DELETE FROM public.churn WHERE n < 100; ROLLBACK;
BEGIN; SELECT 1 FROM public.churn WHERE n = 200 FOR UPDATE; COMMIT;
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT count(filler) FROM public.churn WHERE n BETWEEN 5000 AND 5500;
CREATE INDEX churn_n_filler ON public.churn (n, filler);
ANALYZE public.churn;
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

const HASH: &str =
    "SELECT 'public.churn_hash', s.* FROM ext.pgstathashindex('public.churn_hash') AS s";

const GIN: &str = "SELECT 'public.churn_gin', s.* FROM ext.pgstatginindex('public.churn_gin') AS s";

/// `pageinspect` knows GiST from 14 on. Of SP-GiST it knows nothing.
const GIST: &str = "
WITH pages AS MATERIALIZED (
  SELECT flags @> '{leaf}' AS leaf, flags @> '{deleted}' AS deleted, (SELECT count(*) FROM ext.gist_page_items_bytea(page)) AS items
  FROM generate_series(0, pg_relation_size('public.churn_gist') / 8192 - 1) AS b,
    LATERAL (SELECT ext.get_raw_page('public.churn_gist', b::int) AS page) AS raw, LATERAL (SELECT flags FROM ext.gist_page_opaque_info(page)) AS own)
SELECT 'public.churn_gist', count(*) FILTER (WHERE NOT leaf AND NOT deleted), count(*) FILTER (WHERE leaf AND NOT deleted),
  count(*) FILTER (WHERE deleted), round(avg(items) FILTER (WHERE leaf AND NOT deleted), 6) FROM pages";

const BRIN: &str = "
WITH pages AS MATERIALIZED (
  SELECT page, ext.brin_page_type(page) AS type FROM generate_series(0, pg_relation_size('public.churn_brin') / 8192 - 1) AS b,
    LATERAL (SELECT ext.get_raw_page('public.churn_brin', b::int) AS page) AS raw),
regular AS MATERIALIZED (SELECT page FROM pages WHERE type = 'regular'), map AS MATERIALIZED (SELECT page FROM pages WHERE type = 'revmap')
SELECT 'public.churn_brin', (SELECT pagesperrange FROM pages, ext.brin_metapage_info(page) WHERE type = 'meta'),
  (SELECT count(*) FROM map), (SELECT count(*) FROM regular),
  (SELECT count(blknum) FROM regular, ext.brin_page_items(page, 'public.churn_brin')),
  (SELECT count(*) FROM map, ext.brin_revmap_data(page) AS entry WHERE entry <> '(0,0)')";

const STORED: &str = "
SELECT min(n), max(n), round(avg(n), 6), mode() WITHIN GROUP (ORDER BY n)
FROM (SELECT count(t_xmin) AS n FROM generate_series(0, pg_relation_size('public.churn') / 8192 - 1) AS b,
  ext.heap_page_items(ext.get_raw_page('public.churn', b::int)) GROUP BY b) AS pages WHERE n > 0";

const CORRELATION: &str = "
SELECT attname, correlation FROM pg_stats WHERE tablename = 'churn' AND attname IN ('id', 'n') ORDER BY 1";

/// Of each column: rows packed by pglz and lz4, and bytes as stored.
const LONG: &str = "
SELECT count(*) FILTER (WHERE pg_column_compression(body) = 'pglz'), count(*) FILTER (WHERE pg_column_compression(body) = 'lz4'),
  sum(pg_column_size(body)), sum(octet_length(body)) FROM public.long
UNION ALL
SELECT count(*) FILTER (WHERE pg_column_compression(packed) = 'pglz'), count(*) FILTER (WHERE pg_column_compression(packed) = 'lz4'),
  sum(pg_column_size(packed)), sum(octet_length(packed)) FROM public.long";

/// Values that pglz packed into their rows.
const TRIED: &str = "
SELECT count(*), sum(octet_length(v)), sum(pg_column_size(v)) FROM public.tried WHERE pg_column_compression(v) = 'pglz'";

const OBJECTS: &str = "
SELECT (SELECT count(*) FROM pg_largeobject_metadata), sum(length(data)) FROM pg_largeobject";

const HASH_COLUMNS: [&str; 8] = [
    "version",
    "bucket_pages",
    "overflow_pages",
    "bitmap_pages",
    "unused_pages",
    "live_items",
    "dead_items",
    "free_percent",
];

const GIST_COLUMNS: [&str; 3] = ["inner_pages", "leaf_pages", "deleted_pages"];

const BRIN_COLUMNS: [&str; 5] = [
    "pages_per_range",
    "map_pages",
    "summary_pages",
    "summary_count",
    "summarized_ranges",
];

const GIN_COLUMNS: [&str; 3] = ["version", "pending_pages", "pending_tuples"];

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

/// The published figures of a million ordered UUIDs, and a sample of their table.
#[test]
fn a_million_ordered_uuids_take_the_published_pages() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    session
        .execute(
            "CREATE TABLE public.ordered (id uuid PRIMARY KEY, ord int, filler text);
             INSERT INTO public.ordered SELECT lpad(to_hex(i), 32, '0')::uuid, i, repeat('x', hashint4(i) & 63) FROM generate_series(1, 1000000) AS i",
        )
        .expect("a million rows");
    drop(session);
    running.stop(StopMode::Fast).expect("it stops");
    let pgdata = copy.pgdata.display().to_string();
    let whole = measured(&["measure", &pgdata, "--relation", "public.ordered"]);
    let index = named(&whole, "public.ordered_pkey");
    let count = |name: &str| index.count("index", name).expect("a count");
    assert_eq!(
        [
            "index_size",
            "leaf_pages",
            "internal_pages",
            "contiguous_links",
            "other_links",
            "reindex_size"
        ]
        .map(count),
        [31_563_776, 3832, 20, 3812, 19, 31_563_776]
    );
    let Some(Figure::Spread(items)) = index.figure("index", "items_per_leaf") else {
        panic!("no items a leaf")
    };
    assert_eq!(format!("{:.2}", items.mean), "261.96");
    let key = |name: &str| index.real("key", name).expect("a number");
    // A short row may find room on a page before the last.
    assert!(key("correlation") > 0.999_999);
    assert_eq!(key("rows_compared"), 1_000_000.0);
    assert_eq!(key("size_if_uuid_v7"), 31_563_776.0);
    a_sample_holds_the_truth(&pgdata, named(&whole, "public.ordered"));
    growth_is_counted_from_an_older_document(&pgdata, &whole);
    keys_are_told_in_little_memory(&pgdata, index);
    a_damaged_page_is_counted_and_said(&pgdata, named(&whole, "public.ordered"));
}

/// Rows that do not fit are taken as they lie, and fewer of them are ranked.
fn keys_are_told_in_little_memory(pgdata: &str, whole: &MeasuredRelation) {
    let document = measured(&[
        "measure",
        pgdata,
        "--relation",
        "public.ordered",
        "--memory",
        "1MiB",
        "--jobs",
        "1",
    ]);
    let own = named(&document, "public.ordered_pkey");
    assert_eq!(own.sections["index"], whole.sections["index"]);
    let rows = own.real("key", "rows_compared").expect("a number");
    assert!((10_000.0..60_000.0).contains(&rows), "{rows}");
}

fn a_damaged_page_is_counted_and_said(pgdata: &str, whole: &MeasuredRelation) {
    let file = std::path::Path::new(pgdata).join(&whole.path);
    let mut bytes = std::fs::read(&file).expect("the table");
    bytes[7 * 8192 + 12..7 * 8192 + 14].fill(0xFF);
    std::fs::write(&file, bytes).expect("the table");
    let ran = pgclinic(&[
        "measure",
        pgdata,
        "--relation",
        "public.ordered",
        "--format",
        "json",
    ])
    .exits(3);
    let document: MeasureDocument = serde_json::from_str(&ran.out).expect("a document");
    let own = named(&document, "public.ordered");
    assert_eq!(own.pages_not_measured, 1);
    assert!(own.count("table", "tuple_count") < whole.count("table", "tuple_count"));
    ledger_adds_up(own);
}

fn a_sample_holds_the_truth(pgdata: &str, whole: &MeasuredRelation) {
    let sampled = measured(&[
        "measure",
        pgdata,
        "--relation",
        "public.ordered",
        "--sample",
        "1%",
    ]);
    assert_eq!(sampled.sample_percent, Some(1.0));
    let own = named(&sampled, "public.ordered");
    assert_eq!(own.sampled_pages, Some(640));
    for name in ["tuple_count", "tuple_len", "padding_bytes"] {
        let truth = whole.real("table", name).expect("a number");
        let [low, high] = own.intervals["table"][name];
        assert!(
            (low..=high).contains(&truth),
            "{name}: {truth} is not in {low} to {high}"
        );
        assert!(
            high - low < truth / 2.0 + 1e6,
            "{name}: {low} to {high} says nothing"
        );
    }
    let exact = named(&sampled, "public.ordered").count("table", "table_len");
    assert_eq!(exact, whole.count("table", "table_len"));
}

fn growth_is_counted_from_an_older_document(pgdata: &str, whole: &MeasureDocument) {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("old.json");
    let write = |document: &MeasureDocument| {
        let text = serde_json::to_string(document).expect("JSON");
        std::fs::write(&file, text).expect("a file");
    };
    let since = file.display().to_string();
    let asked = [
        "measure",
        pgdata,
        "--relation",
        "public.ordered",
        "--since",
        &since,
    ];
    let mut old = whole.clone();
    old.counters.time -= 1;
    old.counters.next_xid -= 100;
    old.relations.iter_mut().for_each(|own| own.bytes /= 2);
    write(&old);
    let grown = measured(&asked).growth.expect("growth");
    assert_eq!((grown.seconds, grown.xids_per_day), (1, 8_640_000.0));
    assert_eq!(grown.relations[0].relation, "public.ordered");
    let mut limits = grown.limits.iter().map(|limit| limit.of.as_str());
    assert!(limits.any(|of| of.starts_with("transactions")));
    old.target.system_identifier = Some("7".into());
    write(&old);
    let refused = pgclinic(&asked).exits(2);
    assert!(
        refused.err.contains("of another cluster"),
        "{}",
        refused.err
    );
    let metrics = pgclinic(&[
        "measure",
        pgdata,
        "--relation",
        "public.ordered",
        "--format",
        "prometheus",
    ])
    .exits(0);
    let line =
        "pgclinic_index_leaf_pages{database=\"clinic\",relation=\"public.ordered_pkey\"} 3832";
    assert!(metrics.out.contains(line), "{}", metrics.out);
}

fn measured(arguments: &[&str]) -> MeasureDocument {
    let arguments = [arguments, &["--format", "json"]].concat();
    let ran = pgclinic(&arguments).exits(0);
    serde_json::from_str(&ran.out).expect("a document")
}

fn named<'a>(document: &'a MeasureDocument, name: &str) -> &'a MeasuredRelation {
    let own = document.relations.iter().find(|own| own.name() == name);
    own.unwrap_or_else(|| panic!("{name} was not measured"))
}

#[test]
fn figures_of_18_are_those_of_its_extensions() {
    figures_are_those_of_the_extensions(18);
}

#[test]
fn figures_of_the_others_are_those_of_their_extensions() {
    for major in [13, 14, 16, 17] {
        figures_are_those_of_the_extensions(major);
    }
}

fn figures_are_those_of_the_extensions(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    let said = Said::of(&running, major);
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
    compare(&measured, &said.hash, "hash", &HASH_COLUMNS);
    compare(&measured, &said.gin, "gin", &GIN_COLUMNS);
    compare(&measured, &said.brin, "brin", &BRIN_COLUMNS);
    compare_gist(&measured, &said.gist);
    compare_keys(&measured, &said);
    compare_values(&measured, &said);
    compare_objects(&document, &said);
    a_trial_packs_as_the_server_does(&pgdata, &said);
    hints_name_what_another_index_does_too(&document);
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
        "nothing died in it"
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
    hash: Vec<TextRow>,
    gin: Vec<TextRow>,
    gist: Vec<TextRow>,
    brin: Vec<TextRow>,
    stored: Vec<TextRow>,
    correlation: Vec<TextRow>,
    long: Vec<TextRow>,
    objects: Vec<TextRow>,
    tried: Vec<TextRow>,
}

impl Said {
    fn of(server: &Server, major: u16) -> Self {
        let mut session = server.connect("clinic").expect("a session");
        for statement in CHURN.split(";\n").flat_map(split_transaction) {
            session
                .execute(&statement)
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        let mut rows = |sql: &str| ask(&mut session, sql);
        // The first question: reading long statistics prunes them.
        let correlation = rows(CORRELATION);
        // 13 has no pg_column_compression.
        let (long, tried) = match major {
            ..14 => (Vec::new(), Vec::new()),
            _ => (rows(LONG), rows(TRIED)),
        };
        Said {
            tables: rows(TABLES),
            indexes: rows(INDEXES),
            btrees: rows(BTREES),
            leaves: rows(LEAVES).into_iter().next().expect("a row"),
            hash: rows(HASH),
            gin: rows(GIN),
            gist: match major {
                ..14 => Vec::new(),
                _ => rows(GIST),
            },
            brin: rows(BRIN),
            stored: rows(STORED),
            correlation,
            long,
            objects: rows(OBJECTS),
            tried,
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

fn compare_gist(measured: &BTreeMap<String, &MeasuredRelation>, said: &[TextRow]) {
    compare(measured, said, "gist", &GIST_COLUMNS);
    let items = measured["public.churn_gist"].figure("gist", "items_per_leaf");
    let Some(Figure::Spread(items)) = items else {
        panic!("no items a leaf")
    };
    if let Some(mean) = said.first().and_then(|row| row.last()) {
        assert_eq!(mean.as_ref(), Some(&format!("{:.6}", items.mean)));
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

fn texts(row: &TextRow) -> Vec<&str> {
    row.iter()
        .map(|value| value.as_deref().unwrap_or_default())
        .collect()
}

/// `pg_stats.correlation` has the digits of a `float4`, and is exact where ANALYZE took every row.
fn compare_keys(measured: &BTreeMap<String, &MeasuredRelation>, said: &Said) {
    let indexes = [("id", "public.churn_pkey"), ("n", "public.churn_n")];
    for ((column, index), row) in indexes.into_iter().zip(&said.correlation) {
        let ours = measured[index]
            .real("key", "correlation")
            .expect("a number") as f32;
        assert_eq!(
            texts(row),
            [column, ours.to_string().as_str()],
            "of {index}"
        );
    }
    let Some(Figure::Spread(stored)) =
        measured["public.churn"].figure("table", "stored_tuples_per_page")
    else {
        panic!("no row versions a page")
    };
    let ours = [
        stored.minimum.to_string(),
        stored.maximum.to_string(),
        format!("{:.6}", stored.mean),
        stored.mode.to_string(),
    ];
    assert_eq!(texts(&said.stored[0]), ours);
}

fn compare_values(measured: &BTreeMap<String, &MeasuredRelation>, said: &Said) {
    let long = measured["public.long"];
    for (column, row) in long.columns.iter().zip(&said.long) {
        let toast = &column.sections["toast"];
        let count = |name: &str| match &toast[name] {
            Some(Figure::Count(number)) => *number,
            other => panic!("{name} is {other:?}"),
        };
        let ours = [
            count("pglz_values") + count("external_pglz_values"),
            count("lz4_values") + count("external_lz4_values"),
            count("stored_bytes"),
            count("raw_bytes"),
        ];
        assert_eq!(
            texts(row),
            ours.map(|number| number.to_string()),
            "{}",
            column.name
        );
        assert!(
            count("external_values") + count("pglz_values") > 0,
            "{column:?}"
        );
    }
    let born = &measured["public.born"].columns[0].sections["uuid"];
    let count = |name: &str| born[name].clone();
    assert_eq!(
        [count("v1"), count("v4"), count("v7"), count("other")],
        [1, 1, 1, 0].map(|number| Some(Figure::Count(number)))
    );
    let time = Some(Figure::Count(1_645_557_742_000));
    assert_eq!(
        [count("first_time"), count("last_time")],
        [time.clone(), time]
    );
}

/// Byte for byte: the values of `tried` stand in their rows as pglz packed them.
fn a_trial_packs_as_the_server_does(pgdata: &str, said: &Said) {
    let arguments = [
        "measure",
        pgdata,
        "--relation",
        "public.tried",
        "--relation",
        "public.long",
        "--try-compression",
    ];
    let document = measured(&arguments);
    let trial = |table: &str| named(&document, table).columns[0].sections["trial"].clone();
    let count = |table: &str, name: &str| match trial(table)[name] {
        Some(Figure::Count(number)) => number,
        ref other => panic!("{name} is {other:?}"),
    };
    let tried = ["tried_values", "tried_bytes", "pglz_bytes"]
        .map(|name| count("public.tried", name).to_string());
    if let Some(row) = said.tried.first() {
        assert_eq!(texts(row), tried);
    }
    assert!(count("public.tried", "zstd_bytes") < count("public.tried", "pglz_bytes"));
    // Of 150 values of 64 bytes and more, moved out or not, those of 1,000 bytes and more were all
    // found.
    assert_eq!(count("public.long", "tried_values"), 135);
}

fn compare_objects(document: &MeasureDocument, said: &Said) {
    let clinic = document
        .databases
        .iter()
        .find(|own| own.database == "clinic")
        .expect("clinic");
    let objects = &clinic.sections["large_objects"];
    let count = |name: &str| match &objects[name] {
        Some(Figure::Count(number)) => *number,
        other => panic!("{name} is {other:?}"),
    };
    assert_eq!(
        texts(&said.objects[0]),
        [count("count"), count("bytes")].map(|number| number.to_string())
    );
    assert_eq!(
        (count("owner_count"), count("orphan_count") >= 2),
        (1, true)
    );
    assert_eq!(count("directory_files_to_16"), count("count") + 1);
}

fn hints_name_what_another_index_does_too(document: &MeasureDocument) {
    let of_churn = document
        .hints
        .iter()
        .filter(|hint| hint.relation.starts_with("public.churn"));
    let said: Vec<_> = of_churn
        .map(|hint| [&*hint.hint, &*hint.relation, &*hint.other])
        .collect();
    assert_eq!(
        said,
        [["prefix-index", "public.churn_n", "public.churn_n_filler"]]
    );
}
