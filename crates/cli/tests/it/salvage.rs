//! The command as a person meets it: files, account, exit codes, refusals.

use pgclinic_model::document::{Outcome, SalvageReport};

use crate::common;

use std::fs;

use common::{account_page, files, pgclinic, text};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

#[test]
fn a_whole_cluster_gives_files_and_an_account_and_is_not_touched() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let before = files(&copy.pgdata);
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let to = ["salvage", text(&copy.pgdata), "--to", text(&out)];

    let ran = pgclinic(&[&to[..], &["--relation", "sales.*"]].concat()).exits(0);
    assert!(ran.out.starts_with("WHOLE  "), "{}", ran.out);
    let account = fs::read(out.join("salvage.json")).expect("an account");
    let account: SalvageReport = serde_json::from_slice(&account).expect("a document");
    assert_eq!(account.outcome, Outcome::Whole);
    let orders = account
        .tables
        .iter()
        .find(|table| table.table == "orders")
        .expect("the table");
    assert_eq!((orders.rows.live, orders.rows.written), (2880, 2880));
    let csv = fs::read_to_string(out.join("clinic/sales.orders.csv")).expect("a file");
    assert!(csv.starts_with("id,customer,placed,status,total\n1,1,2024-01-02,new,1.25\n"));
    assert_eq!(csv.len() as u64, orders.file_bytes);

    let page = account_page(&out);
    assert!(page.contains("sales.orders"));
    let written = fs::read_to_string(out.join("salvage.html")).expect("a page");
    assert_eq!(written, page);

    let again = pgclinic(&to).exits(2);
    assert!(again.err.contains("is not empty"), "{}", again.err);
    let inside = copy.pgdata.join("rescued");
    let inside = pgclinic(&["salvage", text(&copy.pgdata), "--to", text(&inside)]).exits(2);
    assert!(
        inside.err.contains("lies inside the data directory"),
        "{}",
        inside.err
    );
    assert!(files(&copy.pgdata) == before, "the target was written to");
}

#[test]
fn dead_versions_come_with_their_fate() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let words = [
        "--relation",
        "public.aborted",
        "--rows",
        "all",
        "--format",
        "copy",
    ];
    let to = ["salvage", text(&copy.pgdata), "--to", text(&out)];
    pgclinic(&[&to[..], &words].concat()).exits(0);
    let rows = fs::read_to_string(out.join("clinic/public.aborted.copy")).expect("a file");
    let of = |verdict: &str| {
        let fate = |row: &&str| row.split('\t').nth(3) == Some(verdict);
        rows.lines().filter(fate).count()
    };
    assert_eq!(of("live"), 202);
    assert_eq!(of("aborted"), 15);
}

/// Segments past the end stay as empty files where VACUUM gave the end of a table back.
#[test]
fn an_empty_segment_past_the_end_is_no_loss() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    for file in docs_files(&copy.pgdata) {
        fs::write(file.with_extension("1"), []).expect("an empty file");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let ran = pgclinic(&["salvage", text(&copy.pgdata), "--to", text(&out)]).exits(0);
    assert!(ran.out.starts_with("WHOLE  "), "{}", ran.out);
}

/// The files of `public.docs` and of its long values.
fn docs_files(pgdata: &std::path::Path) -> [std::path::PathBuf; 2] {
    let source = pgclinic_source::DataDirectory::open(pgdata).expect("a directory");
    let cluster = pgclinic_cluster::Cluster::open(std::sync::Arc::new(source)).expect("a cluster");
    let mut databases = cluster.databases.values();
    let clinic = databases.find(|known| known.name.as_deref() == Some("clinic"));
    let catalog = cluster.catalog(clinic.expect("the database").oid);
    let mut relations = catalog.relations.values();
    let docs = relations.find(|known| known.name == "docs").expect("docs");
    let toast = catalog.relations.get(&docs.toast).expect("its TOAST");
    [docs, toast]
        .map(|relation| pgdata.join(format!("base/{}/{}", catalog.database, relation.filenode)))
}

const DOCS: &str = "id bigint, title text, body text, extra jsonb, note text, words tsvector";

/// One file, with its columns and without its cluster, gives what the cluster gives.
#[test]
fn one_relation_file_gives_its_rows() {
    let pgdata = seed(&server(15), Checksums::On).pgdata;
    let folder = tempfile::tempdir().expect("a directory");
    let whole = folder.path().join("whole");
    let words = ["--relation", "public.docs", "--format", "copy", "--to"];
    let to = [&["salvage", text(&pgdata)], &words[..], &[text(&whole)]].concat();
    pgclinic(&to).exits(0);
    let lines = |path: &std::path::Path| {
        let rows = fs::read_to_string(path).expect("a file");
        let mut rows: Vec<String> = rows.lines().map(str::to_owned).collect();
        rows.sort();
        rows
    };
    let expected = lines(&whole.join("clinic/public.docs.copy"));

    // Far from the cluster, the values in another folder.
    let [docs, toast] = docs_files(&pgdata);
    let (far, long) = (folder.path().join("docs"), folder.path().join("sub/77"));
    fs::create_dir(folder.path().join("sub")).expect("a directory");
    fs::copy(docs, &far).expect("copied");
    fs::copy(toast, &long).expect("copied");
    let out = folder.path().join("out");
    let target = ["salvage", text(&far), "--format", "copy", "--columns", DOCS];
    let with = ["--toast", text(&long), "--to", text(&out)];
    let ran = pgclinic(&[&target[..], &with].concat());
    assert!(ran.exit < 2, "{}{}", ran.out, ran.err);
    assert_eq!(lines(&out.join("public.docs.copy")), expected);

    let statements = folder.path().join("schema.sql");
    fs::write(
        &statements,
        format!("CREATE TABLE sales.papers ({DOCS});\nSELECT 1;"),
    )
    .expect("written");
    let out = folder.path().join("with schema");
    let with = [
        "--schema",
        text(&statements),
        "--toast",
        text(&long),
        "--to",
        text(&out),
    ];
    pgclinic(&[&["salvage", text(&far), "--format", "copy"], &with[..]].concat());
    assert_eq!(lines(&out.join("sales.papers.copy")), expected);

    // Without the values they are null, and told.
    let out = folder.path().join("without");
    let ran = pgclinic(&[&target[..], &["--to", text(&out)]].concat()).exits(1);
    let words: Vec<&str> = ran.out.split_whitespace().collect();
    assert!(words.join(" ").contains("is missing"), "{}", ran.out);
    let (good, suspects) = (
        lines(&out.join("public.docs.copy")),
        lines(&out.join("public.docs.suspect.csv")),
    );
    assert_eq!(good.len() + suspects.len() - 1, expected.len());
}

/// A guess is a file that can be corrected and given back.
#[test]
fn columns_are_guessed_and_given_back() {
    let pgdata = seed(&server(15), Checksums::On).pgdata;
    let [docs, toast] = docs_files(&pgdata);
    let folder = tempfile::tempdir().expect("a directory");
    let guess = pgclinic(&["salvage", text(&docs), "--guess"]).exits(0).out;
    assert!(guess.contains("c1 bigint, -- confidence"), "{guess}");
    let file = folder.path().join("guess.sql");
    fs::write(&file, &guess).expect("written");
    let out = folder.path().join("out");
    let to = [
        "salvage",
        text(&docs),
        "--toast",
        text(&toast),
        "--to",
        text(&out),
    ];
    let ran = pgclinic(&[&to[..], &["--format", "copy", "--schema", text(&file)]].concat());
    assert!(ran.exit < 2, "{guess}{}", ran.err);
    let name = docs.file_name().expect("a name").to_string_lossy();
    let rows = fs::read_to_string(out.join(format!("public.{name}.copy"))).expect("a file");
    assert!(rows.lines().count() > 300);
    assert!(
        pgclinic(&["salvage", text(&pgdata), "--guess"])
            .exits(0)
            .out
            .contains("\n-- file base/")
    );
}

/// Wrong columns and files that are no table's are refused before anything is written.
#[test]
fn columns_that_are_not_those_of_the_file_are_refused() {
    let pgdata = seed(&server(15), Checksums::On).pgdata;
    let [docs, _] = docs_files(&pgdata);
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let refused = |columns: &[&str]| {
        let to = ["salvage", text(&docs), "--to", text(&out)];
        let ran = pgclinic(&[&to[..], columns].concat()).exits(2);
        assert!(!out.exists());
        ran.err
    };
    let fewer = refused(&["--columns", "id bigint, title text"]);
    assert!(fewer.contains("has 6 columns where 2 are given"), "{fewer}");
    let other = refused(&[
        "--columns",
        "id uuid, a text, b text, c jsonb, d text, e text",
    ]);
    assert!(other.contains("contradict them"), "{other}");
    assert!(refused(&[]).contains("--columns"));
    assert!(refused(&["--columns", "id nonsense("]).contains("--columns"));

    let index = folder.path().join("index");
    let mut page = vec![0; 8192];
    page[12..20].copy_from_slice(&[24, 0, 0xF0, 0x1F, 0xF0, 0x1F, 4, 0x20]);
    page[8184..8192].fill(0);
    fs::write(&index, page).expect("written");
    let to = [
        "salvage",
        text(&index),
        "--to",
        text(&out),
        "--columns",
        "id int4",
    ];
    let ran = pgclinic(&to).exits(2);
    assert!(
        ran.err.contains("no rows of a table") || ran.err.contains("no relation file"),
        "{}",
        ran.err
    );
}

/// What a real server makes of a copy is what the write-ahead log gives in memory.
#[test]
fn a_recovery_by_a_server_gives_the_same_rows() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    running
        .connect("clinic")
        .and_then(|mut session| {
            session.execute(
                "CREATE TABLE public.late AS SELECT generate_series(1, 1000) AS id, 'late' AS word",
            )
        })
        .expect("a table");
    running.kill();
    let before = files(&copy.pgdata);
    let folder = tempfile::tempdir().expect("a directory");
    let rows = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let words = [
            "--format",
            "copy",
            "--relation",
            "public.*",
            "--to",
            text(&out),
        ];
        pgclinic(&[&["salvage", text(&copy.pgdata)], &words[..], more].concat()).exits(0);
        let found = files(&out).into_iter().filter_map(|(path, bytes)| {
            let name = path.file_name()?.to_str()?.to_owned();
            let is_of_both = name.ends_with(".copy") && !name.contains("scratchpad");
            is_of_both.then_some((name, bytes))
        });
        found.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (in_memory, by_server) = (rows("memory", &[]), rows("server", &["--recover"]));
    assert!(!in_memory.is_empty());
    assert!(in_memory == by_server, "the rows differ");
    assert!(files(&copy.pgdata) == before, "the target was written to");
}

/// `--to -` gives the bytes of the file on stdout and the summary on stderr, in every form; only of
/// one table.
#[test]
fn one_table_is_a_stream() {
    let pgdata = seed(&server(15), Checksums::On).pgdata;
    let folder = tempfile::tempdir().expect("a directory");
    let account = folder.path().join("account.json");
    for form in ["csv", "copy", "jsonl", "sql"] {
        let words = ["--relation", "sales.orders", "--format", form];
        let out = folder.path().join(form);
        let of = |to: &[&str]| {
            pgclinic(&[&["salvage", text(&pgdata)], &words[..], to].concat()).exits(0)
        };
        of(&["--to", text(&out)]);
        let ran = of(&["--to", "-", "--account", text(&account)]);
        let file = fs::read_to_string(out.join(format!("clinic/sales.orders.{form}")));
        assert!(ran.out == file.expect("a file"), "{form}");
        assert!(
            ran.err.starts_with("WHOLE  2,880 rows of 1 table written"),
            "{}",
            ran.err
        );
        let told = fs::read(&account).expect("an account");
        let told: SalvageReport = serde_json::from_slice(&told).expect("a document");
        assert_eq!((told.tables.len(), told.tables[0].rows.written), (1, 2880));
        assert!(told.sequences.is_empty() && told.large_objects.is_empty());
    }
    let more = pgclinic(&[
        "salvage",
        text(&pgdata),
        "--relation",
        "sales.*",
        "--to",
        "-",
    ])
    .exits(2);
    assert!(
        more.err.contains("a stream holds one table") && more.out.is_empty(),
        "{}",
        more.err
    );

    // One file without its cluster too.
    let [docs, _] = docs_files(&pgdata);
    let words = ["--columns", DOCS, "--format", "copy"];
    let out = folder.path().join("docs");
    let of = |to: &str| pgclinic(&[&["salvage", text(&docs)], &words[..], &["--to", to]].concat());
    let (file, stream) = (of(text(&out)), of("-"));
    assert_eq!(file.exit, stream.exit);
    let name = docs
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    // Rows without their values stand apart in files, and with the others in a stream.
    let read = |ending: &str| fs::read_to_string(out.join(format!("public.{name}.{ending}")));
    let (rows, suspects) = (
        read("copy").expect("a file"),
        read("suspect.csv").expect("a file"),
    );
    let apart = rows.lines().count() + suspects.lines().count() - 1;
    assert_eq!(stream.out.lines().count(), apart);
    assert!(!rows.is_empty() && rows.lines().all(|row| stream.out.contains(row)));
}

/// The indexes of a catalog name the rows that it has lost: statements without them are not whole.
#[test]
fn statements_of_an_emptied_catalog_are_not_whole() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    let catalogs = ["pg_constraint", "pg_attrdef", "pg_depend"];
    let paths = catalogs.map(|name| {
        let sql = format!("SELECT pg_relation_filepath('{name}')");
        let path = session.query_value(&sql).expect(name).expect("a path");
        copy.pgdata.join(path)
    });
    drop(session);
    running.stop(StopMode::Fast).expect("a stop");
    let folder = tempfile::tempdir().expect("a directory");
    let salvaged = |name: &str, exit| {
        let (out, ddl) = (
            folder.path().join(name),
            folder.path().join(format!("{name}.sql")),
        );
        let to = ["--to", text(&out), "--ddl", text(&ddl)];
        pgclinic(&[&["salvage", text(&copy.pgdata)][..], &to].concat()).exits(exit)
    };
    salvaged("whole", 0);
    for (name, path) in catalogs.iter().zip(paths) {
        let whole = fs::read(&path).expect("a file");
        fs::File::options()
            .write(true)
            .open(&path)
            .expect("a file")
            .set_len(0)
            .expect("emptied");
        let ran = salvaged(name, 3);
        let words: String = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let told = format!("{name}: ");
        assert!(
            words.contains(&told) && words.contains("lead to rows that are not there"),
            "{}",
            ran.out
        );
        fs::write(&path, whole).expect("healed");
    }
    salvaged("again", 0);
}

/// Odd places for a table, and a database that nobody can connect to: none of it goes unsaid.
#[test]
fn what_stands_in_schemas_of_the_system_and_in_half_dropped_databases_is_told() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("postgres").expect("a session");
    for sql in [
        "CREATE TABLE information_schema.mine AS SELECT generate_series(1, 50) AS id",
        "CREATE TABLE public.moved AS SELECT generate_series(1, 60) AS id",
        "ALTER TABLE public.moved SET SCHEMA pg_catalog",
        // A table whose only index never became ready; ANALYZE takes its flag away.
        "CREATE TABLE public.twice AS SELECT 1 AS id FROM generate_series(1, 2)",
    ] {
        session.execute(sql).expect(sql);
    }
    let unique = "CREATE UNIQUE INDEX CONCURRENTLY ON public.twice (id)";
    session.execute(unique).expect_err("two rows of one key");
    session.execute("ANALYZE public.twice").expect("statistics");
    let dropped = "UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'clinic'";
    session.execute(dropped).expect(dropped);
    drop(session);
    running.stop(StopMode::Fast).expect("a stop");

    let checked = pgclinic(&["check", text(&copy.pgdata), "--level", "full"]).exits(0);
    assert!(
        checked.out.contains("whether files of database clinic"),
        "{}",
        checked.out
    );
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("all");
    let ran = pgclinic(&["salvage", text(&copy.pgdata), "--to", text(&out)]).exits(3);
    assert!(
        ran.out.contains("--database clinic salvages"),
        "{}",
        ran.out
    );
    let lines = |path: &str| {
        let rows = fs::read_to_string(out.join(path));
        rows.expect("a file").lines().count()
    };
    assert_eq!(lines("postgres/information_schema.mine.csv"), 51);
    assert_eq!(lines("postgres/pg_catalog.moved.csv"), 61);
    let out = folder.path().join("named");
    let line = ["salvage", text(&copy.pgdata), "--database", "clinic"];
    pgclinic(&[&line[..], &["--to", text(&out)]].concat()).exits(0);
    assert!(out.join("clinic/sales.orders.csv").is_file());
}
