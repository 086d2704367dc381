//! `load.sql` of a folder, read by psql, makes the database again whose files lie there.

use pgclinic_model::Glob;

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use common::{copied, options, salvaged, session};
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_testkit::{copy_of, run_as, seed, server};

const TYPES: &str = include_str!("stored_types/types.sql");

/// Foreign keys against the names, a column that is computed, names with everything in them, an
/// empty table.
const TABLES: &str = "CREATE SCHEMA \"od\"\"d s'chema\"; \
    CREATE TABLE public.a_child (id int PRIMARY KEY, parent int); \
    CREATE TABLE public.z_parent (id int PRIMARY KEY, name text NOT NULL, twice int GENERATED ALWAYS AS (id * 2) STORED); \
    ALTER TABLE public.a_child ADD FOREIGN KEY (parent) REFERENCES public.z_parent (id); \
    CREATE TABLE \"od\"\"d s'chema\".\"T, \\ \u{e4}\" (\"a \"\"b\" text, \"select\" date); \
    CREATE TABLE public.empty (x int); CREATE TABLE public.none (); INSERT INTO public.none DEFAULT VALUES; \
    CREATE SEQUENCE public.counter; SELECT nextval('public.counter') FROM generate_series(1, 7); \
    INSERT INTO public.z_parent SELECT i, CASE i % 4 WHEN 0 THEN '' WHEN 1 THEN E'a\\tb\\n\"c\", \\\\N' ELSE '\u{1f418}' END FROM generate_series(1, 100) i; \
    INSERT INTO public.a_child SELECT i, i FROM generate_series(1, 100) i; \
    INSERT INTO \"od\"\"d s'chema\".\"T, \\ \u{e4}\" VALUES (NULL, '2020-01-01'), ('', NULL), ('\\.', 'infinity'); \
    CREATE MATERIALIZED VIEW public.counted AS SELECT count(*) FROM public.a_child; CHECKPOINT";

fn psql(installation_psql: &Path, server: &Server, database: &str, folder: &Path) -> String {
    let mut command: Command = run_as().command(installation_psql);
    command
        .args([
            "-X", "-q", "-U", "postgres", "-d", database, "-f", "load.sql",
        ])
        .arg("-h")
        .arg(server.socket_folder())
        .current_dir(folder);
    let output = command.output().expect("psql runs");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn loads(form: &str, with_schema: bool) {
    let installation = server(15);
    let Some(tool) = installation.tool("psql") else {
        // A fetched server comes without client programs; an installed one has them.
        return;
    };
    let copy = copy_of(&seed(&installation, Checksums::On));
    let mut running = copy.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE shop TEMPLATE template0")
        .expect("a database");
    for statements in [TYPES, TABLES] {
        session(&running, "shop")
            .execute(statements)
            .expect("tables");
    }
    let expected: Vec<_> = copied(&running, "shop", "").into_values().collect();
    running.stop(StopMode::Fast).expect("stopped");

    let folder = tempfile::tempdir().expect("a directory");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("open to all");
    let destination = folder.path().join("out");
    let mut options = options(&destination, form);
    options.selection.databases = vec![Glob::new("shop")];
    options.generated = true;
    options.ddl = with_schema.then(|| folder.path().join("schema.sql"));
    let account = salvaged(&copy.pgdata, &options);
    assert_eq!(account.totals.lost + account.totals.partial, 0);
    let script = std::fs::read_to_string(destination.join("load.sql")).expect("a script");

    let running = copy.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE again TEMPLATE template0")
        .expect("a database");
    let found = |running: &Server| {
        copied(running, "again", "")
            .into_values()
            .collect::<Vec<_>>()
    };
    if !with_schema {
        // The tables are there with their keys, and have been since long.
        session(&running, "again").execute(TYPES).expect("types");
        session(&running, "again").execute(TABLES).expect("tables");
        let all = "SELECT format('TRUNCATE %s', string_agg(oid::regclass::text, ', ')) FROM pg_class WHERE relkind = 'r' AND oid >= 16384";
        let mut again = session(&running, "again");
        let truncate = again.query_value(all).expect("tables").expect("tables");
        again.execute(&truncate).expect("empty");
    }
    let said = psql(&tool, &running, "again", &destination);
    assert_eq!(said, "", "{script}");
    if !with_schema {
        let refresh = "REFRESH MATERIALIZED VIEW public.counted";
        session(&running, "again").execute(refresh).expect("filled");
    }
    let found = found(&running);
    assert_eq!(found.len(), expected.len());
    assert!(found == expected, "{script}");
    let next = session(&running, "again").query_value("SELECT nextval('public.counter')");
    assert_eq!(next.expect("a number").as_deref(), Some("8"));
    let left = "SELECT count(*) FROM pg_namespace WHERE nspname = 'pgclinic_salvage'";
    let left = session(&running, "again").query_value(left);
    assert_eq!(left.expect("a count").as_deref(), Some("0"));
}

#[test]
fn csv_with_its_schema() {
    loads("csv", true);
}

#[test]
fn copy_with_its_schema() {
    loads("copy", true);
}

#[test]
fn csv_into_tables_that_are_there() {
    loads("csv", false);
}

/// What an extension brings is there already: a user's rows come beside it, and no row of the
/// extension is taken for another.
#[test]
fn rows_of_an_extension_are_its_own() {
    const TABLES: &str = "CREATE EXTENSION citext; CREATE TABLE public.systems (id int PRIMARY KEY, what text); CREATE TABLE public.own (id int); \
        ALTER EXTENSION citext ADD TABLE public.systems; ALTER EXTENSION citext ADD TABLE public.own; \
        UPDATE pg_extension SET extconfig = ARRAY['public.systems'::regclass::oid], extcondition = ARRAY['WHERE NOT (id BETWEEN 1 AND 10)'] \
          WHERE extname = 'citext'; \
        INSERT INTO public.systems SELECT i, 'brought' FROM generate_series(1, 10) i; INSERT INTO public.own VALUES (1), (2)";
    let installation = server(15);
    let Some(tool) = installation.tool("psql") else {
        eprintln!("skipped: the installation has no psql");
        return;
    };
    let copy = copy_of(&seed(&installation, Checksums::On));
    let mut running = copy.start().expect("a server");
    for database in ["shop", "again"] {
        session(&running, "postgres")
            .execute(&format!("CREATE DATABASE {database} TEMPLATE template0"))
            .expect("a database");
        session(&running, database).execute(TABLES).expect("tables");
    }
    session(&running, "shop")
        .execute(
            "INSERT INTO public.systems SELECT i, 'mine' FROM generate_series(101, 103) i; \
             UPDATE public.systems SET what = 'changed' WHERE id = 1; CHECKPOINT",
        )
        .expect("rows");
    session(&running, "again")
        .execute("INSERT INTO public.systems VALUES (103, 'another')")
        .expect("a row");
    running.stop(StopMode::Fast).expect("stopped");

    let folder = tempfile::tempdir().expect("a directory");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("open to all");
    let destination = folder.path().join("out");
    let mut options = options(&destination, "copy");
    options.selection.databases = vec![Glob::new("shop")];
    salvaged(&copy.pgdata, &options);

    let running = copy.start().expect("a server");
    let said = psql(&tool, &running, "again", &destination);
    let warning = "WARNING:  1 rows were left out: the extension brings others with the same keys";
    assert!(said.contains(warning), "{said}");
    assert!(!said.contains("ERROR"), "{said}");
    let mut again = session(&running, "again");
    let rows = "SELECT string_agg(id || ' ' || what, ', ' ORDER BY id) FROM public.systems WHERE id = 1 OR id > 10";
    let rows = again.query_value(rows).expect("rows");
    let expected = "1 brought, 101 mine, 102 mine, 103 another";
    assert_eq!(rows.as_deref(), Some(expected));
    let own = again.query_value("SELECT count(*) FROM public.own");
    assert_eq!(own.expect("a count").as_deref(), Some("2"));
}
