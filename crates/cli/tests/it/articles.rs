//! Every command of `docs/guide/articles.md` is run on a real cluster and must give what its row
//! says. Experiments are planned: their runs depend on the machine, and tests of their own hold
//! them at the smallest scale.

use crate::common;

use std::collections::BTreeSet;
use std::path::Path;

use common::pgclinic;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

/// A command of the page and words that stand in its answer, or in the file that it writes.
type Said = (&'static str, &'static [&'static str]);

/// What rows promise, by command.
const COMMANDS: &[Said] = &[
    (
        "pgclinic measure PGDATA --relation TABLE",
        &[
            "v7",
            "first_time",
            "last_time",
            "days",
            "correlation",
            "pages_per_100_rows",
            "avg_leaf_density",
            "leaf_fragmentation",
            "leaf_pages",
            "internal_pages",
            "contiguous_links",
            "other_links",
            "items_per_leaf",
            "pglz_values",
            "pglz_bytes",
        ],
    ),
    (
        "pgclinic measure PGDATA --relation TABLE --format html --output uuid.html",
        &["<svg", "items_per_leaf", "rank of the key"],
    ),
    (
        "pgclinic measure PGDATA --relation TABLE --try-compression",
        &["pglz", "lz4", "zstd"],
    ),
    (
        "pgclinic measure PGDATA",
        &[
            "large objects",
            "owner_count",
            "orphan_count",
            "dump_entries_to_16",
            "dump_entries_from_17",
            "directory_files_to_16",
            "directory_files_from_17",
        ],
    ),
    (
        "pgclinic measure PGDATA --relation pg_catalog.pg_attribute",
        &["pg_catalog.pg_attribute"],
    ),
    (
        "pgclinic measure PGDATA --relation test_unique_constraints",
        &["dead_tuple_count", "dead_tuple_percent"],
    ),
    (
        "pgclinic inspect PGDATA --relation TABLE --block 7",
        &[
            "pd_lower",
            "pd_upper",
            "pd_special",
            "t_xmin",
            "t_infomask",
            "uuid =",
        ],
    ),
    (
        "pgclinic check PGDATA --level pages",
        &["HEALTHY", "data checksums on", "level pages"],
    ),
    (
        "pgclinic explain invalid-page-flags",
        &["pd_flags", "WHAT THE SERVER"],
    ),
    (
        "pgclinic explain lower-beyond-upper",
        &["pd_lower is beyond pd_upper", "WHAT THE SERVER"],
    ),
    (
        "pgclinic explain zero-damaged-pages",
        &["zeros", "Autovacuum never uses it"],
    ),
    ("pgclinic salvage PGDATA --to DIR", &["WHOLE", "rows"]),
];

/// Held by a test that takes its own time: the name of the test or the task.
const HELD_ELSEWHERE: &[(&str, &str)] = &[
    ("pgclinic drill --all", "cargo xtask drill"),
    (
        "pgclinic drill --injury",
        "cargo xtask drill, and random_injuries.rs of surgery on 13 and 18",
    ),
    (
        "pgclinic heal PGDATA --at",
        "guide.rs, on the page surgery.md",
    ),
    (
        "pgclinic measure catalog-cost",
        "catalog_cost.rs and the page catalog-cost.md",
    ),
];

/// The page, by article.
fn articles() -> Vec<(String, String)> {
    let page = std::fs::read_to_string("../../docs/guide/articles.md").expect("the page");
    let parts = page.split("\n## ").skip(1);
    let parts = parts.filter_map(|part| part.split_once('\n'));
    parts
        .map(|(title, rows)| (title.to_owned(), rows.to_owned()))
        .collect()
}

/// The commands between backticks in the rows of an article.
fn commands(rows: &str) -> BTreeSet<String> {
    let rows = rows.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(2));
    let commands = cells.filter_map(|cell| cell.trim().strip_prefix('`')?.strip_suffix('`'));
    commands.map(str::to_owned).collect()
}

const TABLES: &str = "CREATE TABLE keys (id uuid PRIMARY KEY, ord bigint, body jsonb); \
    INSERT INTO keys SELECT (lpad(to_hex(1767225600000 + i), 12, '0') || '7' || substr(md5(i::text), 14, 3) || '8' || substr(md5(i::text), 18))::uuid, i, \
        jsonb_build_object('a', repeat(i::text, 1000)) FROM generate_series(1, 3000) i; \
    CREATE TABLE test_unique_constraints (id serial PRIMARY KEY, key text UNIQUE); \
    SELECT count(lo_create(0)) FROM generate_series(1, 20)";

/// Begins of titles: each article has a test of its name.
const TITLES: &[&str] = &[
    "UUIDv4 and UUIDv7",
    "Failed inserts",
    "System tables bloated",
    "TOASTed JSONB",
    "Large objects",
    "Dissecting data corruption",
    "Why checksums matter",
    "A talk on damage",
    "The minor releases of 2024Q1",
    "ANALYZE and maintenance_io_concurrency",
    "Asynchronous I/O in 18",
    "Vindicating ZFS",
    "OAuth 2 with Keycloak",
];

#[test]
fn every_article_has_a_test() {
    let titles: Vec<String> = articles().into_iter().map(|(title, _)| title).collect();
    let is_held = |title: &&String| TITLES.iter().any(|own| title.starts_with(own));
    let rest: Vec<&String> = titles.iter().filter(|title| !is_held(title)).collect();
    assert!(rest.is_empty() && titles.len() == TITLES.len(), "{rest:?}");
}

#[test]
fn uuid_v4_and_v7_as_primary_keys() {
    hold("UUIDv4 and UUIDv7");
}

#[test]
fn failed_inserts_on_unique_constraints() {
    hold("Failed inserts");
}

#[test]
fn system_tables_bloated_by_temporary_tables() {
    hold("System tables bloated");
}

#[test]
fn toasted_jsonb_compression_algorithms() {
    hold("TOASTed JSONB");
}

#[test]
fn large_objects_and_pg_dump_17() {
    hold("Large objects");
}

#[test]
fn dissecting_data_corruption() {
    hold("Dissecting data corruption");
}

#[test]
fn why_checksums_matter_and_checksums_in_18() {
    hold("Why checksums matter");
}

#[test]
fn a_talk_on_damage_and_reports_from_conferences() {
    hold("A talk on damage");
}

#[test]
fn the_minor_releases_of_2024q1() {
    hold("The minor releases of 2024Q1");
}

#[test]
fn analyze_and_maintenance_io_concurrency() {
    hold("ANALYZE and maintenance_io_concurrency");
}

#[test]
fn asynchronous_io_in_18() {
    hold("Asynchronous I/O in 18");
}

#[test]
fn vindicating_zfs_with_postgresql() {
    hold("Vindicating ZFS");
}

#[test]
fn oauth_2_with_keycloak() {
    hold("OAuth 2 with Keycloak");
}

/// Holds each command of an article to what its row says.
#[track_caller]
fn hold(title: &str) {
    let articles = articles();
    let rows = articles.iter().find(|(own, _)| own.starts_with(title));
    let (_, rows) = rows.unwrap_or_else(|| panic!("no article {title}"));
    let folder = tempfile::tempdir().expect("a directory");
    let (plans, looks): (Vec<String>, Vec<String>) = commands(rows)
        .into_iter()
        .filter(|command| {
            let mut elsewhere = HELD_ELSEWHERE.iter();
            !elsewhere.any(|(begin, _)| command.starts_with(begin))
        })
        .partition(|command| command.starts_with("pgclinic lab run "));
    for command in plans {
        let name = command.split(' ').nth(3).expect("an experiment");
        plan_names_its_question(name, folder.path());
    }
    if looks.is_empty() {
        return;
    }
    let copy = cluster_of_the_articles();
    for command in looks {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let said = COMMANDS.iter().find(|(known, _)| *known == command);
        let (_, expected) = said.unwrap_or_else(|| panic!("{command}: what does it say?"));
        let answer = answer(&words, &copy.pgdata, folder.path());
        for word in *expected {
            assert!(
                answer.contains(word),
                "{command}: {word:?} is not in\n{answer}"
            );
        }
    }
}

fn cluster_of_the_articles() -> TempCopy {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("postgres").expect("a session");
    session.execute(TABLES).expect("the tables of the articles");
    session.execute("VACUUM (ANALYZE)").expect("a vacuum");
    drop(session);
    running.stop(StopMode::Fast).expect("it stops");
    copy
}

/// What a command says, and what is in the page that it writes.
fn answer(words: &[&str], pgdata: &Path, folder: &Path) -> String {
    let in_folder = |name: &str| folder.join(name).display().to_string();
    let arguments: Vec<String> = words
        .iter()
        .map(|word| match *word {
            "PGDATA" => pgdata.display().to_string(),
            "TABLE" => "public.keys".to_owned(),
            "DIR" => in_folder("into"),
            "uuid.html" => in_folder("uuid.html"),
            word => word.to_owned(),
        })
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = pgclinic(&arguments).exits(0).out;
    let page = std::fs::read_to_string(in_folder("uuid.html")).unwrap_or_default();
    let writes_it = words.contains(&"uuid.html");
    if writes_it { page } else { said }
}

/// An experiment of the page exists, and its plan has runs or says why it has none.
fn plan_names_its_question(name: &str, folder: &Path) {
    let folder = folder.display().to_string();
    let mut arguments = vec!["lab", "plan", name, "--scale", "smallest", "--pg", "15"];
    if name == "filesystem" {
        arguments.extend(["--folder", &folder]);
    }
    let said = pgclinic(&arguments).exits(0).out;
    let question = format!("{name}: ");
    assert!(said.starts_with(&question) && said.contains('?'), "{said}");
    assert!(said.contains("runs in"), "{said}");
}
