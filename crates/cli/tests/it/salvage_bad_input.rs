//! Input that is not what it says: names that mean something to a disk, encodings that lie, files
//! that are no table's, columns of another table.

use pgclinic_model::document::{Outcome, SalvageReport};

use crate::common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path};

use common::{account_page, pgclinic, text};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, Session, StopMode};
use pgclinic_testkit::{clinic, copy_of, open, seed, server};

fn account(folder: &Path) -> SalvageReport {
    let account = fs::read(folder.join("salvage.json")).expect("an account");
    serde_json::from_slice(&account).expect("a document")
}

fn session(server: &Server, database: &str) -> Session {
    server
        .connect(database)
        .unwrap_or_else(|error| panic!("{database:?}: {error}"))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

const DATABASE: &str = "sh/op'\"\n.";
const SCHEMA: &str = "..";
/// Some differ in case only, some hold what a disk, a shell, a page or SQL reads otherwise.
const TABLES: [&str; 10] = [
    "T",
    "t",
    "a/b",
    "line\nbreak",
    "per%cent",
    "quo\"te's",
    " ",
    "~",
    "<b>&",
    "-rf *",
];

/// Files lie inside the destination, no two have one name on a disk that does not know case, and
/// the rows are those of the tables; so are those of a database into which they are loaded.
#[test]
fn names_are_safe_on_every_disk_and_whole_in_a_server() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    session(&running, "postgres")
        .execute(&format!(
            "CREATE DATABASE {} TEMPLATE template0",
            quoted(DATABASE)
        ))
        .expect("a database");
    let mut odd = session(&running, DATABASE);
    let schema = quoted(SCHEMA);
    odd.execute(&format!("CREATE SCHEMA {schema}"))
        .expect("a schema");
    for (number, table) in TABLES.iter().enumerate() {
        let sql = format!(
            "CREATE TABLE {schema}.{} AS SELECT {number} AS \"c\n'\"\"\"",
            quoted(table)
        );
        odd.execute(&sql)
            .unwrap_or_else(|error| panic!("{table:?}: {error}"));
    }
    drop(odd);
    running.stop(StopMode::Fast).expect("stopped");

    let folder = tempfile::tempdir().expect("a directory");
    let (out, ddl) = (folder.path().join("out"), folder.path().join("schema.sql"));
    let from = ["salvage", text(&copy.pgdata), "--database", DATABASE];
    let to = ["--to", text(&out), "--ddl", text(&ddl)];
    pgclinic(&[&from[..], &to].concat()).exits(0);
    let account = account(&out);
    assert_eq!(
        (account.outcome, account.tables.len()),
        (Outcome::Whole, TABLES.len())
    );
    let mut names = BTreeSet::new();
    for table in &account.tables {
        let file = table.file.as_ref().expect("a file");
        let parts: Vec<Component<'_>> = Path::new(file).components().collect();
        let is_plain = |part: &Component<'_>| matches!(part, Component::Normal(_));
        assert!(parts.len() == 2 && parts.iter().all(is_plain), "{file:?}");
        assert!(names.insert(file.to_ascii_lowercase()), "{file:?}");
        let number = TABLES.iter().position(|known| *known == table.table);
        let rows = fs::read_to_string(out.join(file)).expect("a file");
        let expected = format!("\"c\n'\"\"\"\n{}\n", number.expect("a table of ours"));
        assert_eq!(rows, expected, "{file:?}");
    }
    let page = account_page(&out);
    assert!(!page.contains("<b>&"), "a name became a tag");

    let elsewhere = copy_of(&seed(&server(15), Checksums::On));
    let running = elsewhere.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE again TEMPLATE template0")
        .expect("a database");
    let url = ConnectionTarget::of(&running, "again").to_string();
    pgclinic(&[&from[..], &["--to", &url]].concat()).exits(0);
    let mut again = session(&running, "again");
    for (number, table) in TABLES.iter().enumerate() {
        let found = again.query_value(&format!("SELECT * FROM {schema}.{}", quoted(table)));
        let found = found.unwrap_or_else(|error| panic!("{table:?}: {error}"));
        assert_eq!(found, Some(number.to_string()), "{table:?}");
    }
}

/// A database that says UTF8 and holds other bytes: each such value is told, nothing of its row is
/// missing, and the bytes can be had.
#[test]
fn an_encoding_that_lies_is_told_value_by_value() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE lies ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        .expect("a database");
    let rows = "CREATE TABLE t (id int, word text, rest text); \
                INSERT INTO t VALUES (1, 'fine', 'x'), (2, E'n\\xE4h', 'y'), (3, E'\\xC3', 'z'), (4, E'k\\xC3\\xA4se', 'z')";
    let settings = pgclinic_servers::ConnectOptions {
        settings: vec![("client_encoding".into(), "SQL_ASCII".into())],
        ..Default::default()
    };
    let mut lies = running.connect_with("lies", &settings).expect("a session");
    lies.execute(rows).expect("rows");
    drop(lies);
    session(&running, "postgres")
        .execute("UPDATE pg_database SET encoding = 6 WHERE datname = 'lies'")
        .expect("a lie");
    running.stop(StopMode::Fast).expect("stopped");

    let folder = tempfile::tempdir().expect("a directory");
    let (utf8, raw) = (folder.path().join("utf8"), folder.path().join("raw"));
    let from = [
        "salvage",
        text(&copy.pgdata),
        "--database",
        "lies",
        "--format",
        "copy",
    ];
    pgclinic(&[&from[..], &["--to", text(&utf8)]].concat()).exits(1);
    let found = fs::read_to_string(utf8.join("lies/public.t.copy")).expect("UTF-8");
    assert_eq!(found, "1\tfine\tx\n4\tkäse\tz\n");
    let told = account(&utf8);
    let places = &told.tables[0].places;
    let items: Vec<_> = places
        .iter()
        .map(|place| (place.item, place.column.as_deref()))
        .collect();
    assert_eq!(items, [(Some(2), Some("word")), (Some(3), Some("word"))]);
    assert!(
        places[0]
            .why
            .contains("no text in the encoding of its database"),
        "{places:?}"
    );

    pgclinic(&[&from[..], &["--to", text(&raw), "--encoding", "raw"]].concat()).exits(0);
    let found = fs::read(raw.join("lies/public.t.copy")).expect("a file");
    assert_eq!(
        found,
        b"1\tfine\tx\n2\tn\xE4h\ty\n3\t\xC3\tz\n4\tk\xC3\xA4se\tz\n"
    );
}

/// Indexes of every kind, a sequence and files that are no relation's are refused before anything
/// is written.
#[test]
fn files_that_are_no_table_are_refused() {
    let pgdata = seed(&server(15), Checksums::On).pgdata;
    let cluster = open(&pgdata);
    let catalog = clinic(&cluster);
    let mut files = vec![pgdata.join("global/pg_control"), pgdata.join("PG_VERSION")];
    let names = [
        "all_types_pkey",
        "all_types_gin_array",
        "all_types_gist_point",
        "all_types_spgist_point",
        "docs_id_seq",
    ];
    for name in names {
        let mut relations = catalog.relations.values();
        if let Some(relation) = relations.find(|known| known.name == name) {
            files.push(pgdata.join(format!("base/{}/{}", catalog.database, relation.filenode)));
        }
    }
    assert!(files.len() >= 6, "{files:?}");
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    for file in files {
        let words = ["--columns", "id int4", "--to", text(&out)];
        let ran = pgclinic(&[&["salvage", text(&file)], &words[..]].concat()).exits(2);
        assert!(!ran.err.trim().is_empty(), "{}", file.display());
        assert!(!out.exists(), "{}", file.display());
    }
}

/// Columns of another table, for a table whose own are lost, are told with the first row that
/// contradicts them, and no row is invented.
#[test]
fn columns_of_another_table_are_not_believed() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let cluster = open(&copy.pgdata);
    // Other databases have the same columns of catalogs that tell types.
    for database in cluster.databases.keys() {
        let catalog = cluster.catalog(*database);
        let attributes = catalog
            .by_name("pg_catalog", "pg_attribute")
            .expect("a catalog");
        let path = format!("base/{database}/{}", attributes.filenode);
        fs::write(copy.pgdata.join(path), b"").expect("emptied");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let (out, schema) = (folder.path().join("out"), folder.path().join("wrong.sql"));
    fs::write(
        &schema,
        "CREATE TABLE public.docs (id uuid, a text);\nCREATE TABLE sales.orders (a int);",
    )
    .expect("a file");
    let words = [
        "--database",
        "clinic",
        "--schema",
        text(&schema),
        "--to",
        text(&out),
    ];
    let ran = pgclinic(&[&["salvage", text(&copy.pgdata)], &words[..]].concat());
    assert!(ran.exit == 1 || ran.exit == 3, "{} {}", ran.exit, ran.err);
    let account = account(&out);
    for name in ["public.docs", "sales.orders"] {
        let what = format!("table {name}");
        let mut told = account
            .not_salvaged
            .iter()
            .filter(|told| told.what.contains(&what));
        let why = told.next().map(|told| told.why.as_str());
        // Other catalogs have the columns of one that has an index.
        let mut own = account.tables.iter();
        let own = own.find(|table| format!("{}.{}", table.schema, table.table) == name);
        if why.is_none() && own.is_some_and(|own| own.columns.len() > 1) {
            continue;
        }
        assert!(
            why.is_some_and(|why| why.contains("contradict them")),
            "{name}: {why:?}"
        );
        assert!(!out.join(format!("clinic/{name}.csv")).exists());
    }
}
