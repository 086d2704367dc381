//! A schema read from the files of a stopped cluster is what its server says of it, and makes it
//! again.

use pgclinic_cluster::Cluster;
use pgclinic_model::Glob;

use crate::common;

use std::collections::BTreeMap;

use pgclinic_salvage::schema::given::tables_in;
use pgclinic_salvage::schema::{Ddl, Definition, DefinitionKind, definitions};
use pgclinic_servers::{Checksums, ConnectOptions, Server, Session, StopMode};
use pgclinic_testkit::{copy_of, open, run_as, seed, server};

const DATABASES: [&str; 4] = ["rich", "clinic", "od\"d näme", "postgres"];

/// Another schema for the tests: one of everything.
const RICH: &str = include_str!("schema/rich.sql");

/// What must be equal in a database and in the one made from its schema, as text without numbers of
/// any cluster.
const DESCRIPTIONS: &str = include_str!("schema/descriptions.sql");

fn session(server: &Server, database: &str) -> Session {
    let settings = [("search_path", ""), ("IntervalStyle", "postgres")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = ConnectOptions {
        settings: settings.to_vec(),
        ..ConnectOptions::default()
    };
    let session = server.connect_with(database, &options);
    session.unwrap_or_else(|error| panic!("{database}: {error}"))
}

fn make_rich(server: &Server, major: u16) {
    session(server, "postgres")
        .execute("CREATE DATABASE rich")
        .expect("a database");
    let mut session = session(server, "rich");
    for batch in RICH.split("\n\n") {
        let head = batch.lines().next().unwrap_or_default();
        let since = head.strip_prefix("-- since ").map(str::parse);
        if since.is_some_and(|since: Result<u16, _>| since.is_ok_and(|since| major < since)) {
            continue;
        }
        session
            .execute(batch)
            .unwrap_or_else(|error| panic!("{head}: {error}"));
    }
}

type Printed = BTreeMap<(DefinitionKind, u32), String>;

/// What the server's own functions print.
fn printed(server: &Server, database: &str) -> Printed {
    let questions = [
        (
            DefinitionKind::Default,
            "SELECT oid, pg_get_expr(adbin, adrelid) FROM pg_attrdef",
        ),
        (
            DefinitionKind::Constraint,
            "SELECT oid, pg_get_constraintdef(oid) FROM pg_constraint",
        ),
        (
            DefinitionKind::Index,
            "SELECT indexrelid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid >= 16384",
        ),
        (
            DefinitionKind::View,
            "SELECT oid, rtrim(pg_get_viewdef(oid), ';') FROM pg_class WHERE relkind IN ('v', 'm')",
        ),
        (
            DefinitionKind::Rule,
            "SELECT oid, pg_get_ruledef(oid) FROM pg_rewrite WHERE rulename <> '_RETURN'",
        ),
        (
            DefinitionKind::Trigger,
            "SELECT oid, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
        ),
    ];
    let mut session = session(server, database);
    let mut found = BTreeMap::new();
    for (kind, question) in questions {
        for row in session.query(question).expect("definitions") {
            let [Some(oid), Some(text)] = row.as_slice() else {
                panic!("{row:?}");
            };
            found.insert((kind, oid.parse().expect("an OID")), text.clone());
        }
    }
    found
}

/// The server leaves tablespaces out.
fn without_tablespace(definition: &Definition) -> String {
    let text = definition.text.clone();
    let text = text.unwrap_or_else(|why| format!("refused: {why}"));
    match text.split_once(" USING INDEX TABLESPACE ") {
        Some((before, _)) if definition.kind == DefinitionKind::Constraint => before.to_owned(),
        _ => text,
    }
}

fn compare(cluster: &Cluster, database: &str, expected: &Printed) {
    let oid = oid_of(cluster, database);
    let found: Printed = definitions(cluster, oid)
        .iter()
        .map(|definition| {
            (
                (definition.kind, definition.oid),
                without_tablespace(definition),
            )
        })
        .collect();
    for (key, expected) in expected {
        let found = found.get(key).map(String::as_str);
        assert_eq!(found, Some(expected.as_str()), "{database}: {key:?}");
    }
    assert_eq!(found.len(), expected.len());
}

fn oid_of(cluster: &Cluster, database: &str) -> u32 {
    let mut databases = cluster.databases.values();
    let found = databases.find(|known| known.name.as_deref() == Some(database));
    found.expect("the database").oid
}

fn described(server: &Server, database: &str) -> Vec<String> {
    let mut session = session(server, database);
    let mut lines = Vec::new();
    for question in DESCRIPTIONS.split("\n\n") {
        let rows = session.query(question);
        let rows = rows.unwrap_or_else(|error| panic!("{question}: {error}"));
        let text = |cell: Option<String>| cell.unwrap_or_else(|| "null".into());
        for row in rows {
            lines.push(row.into_iter().map(text).collect::<Vec<_>>().join(" | "));
        }
    }
    // Rows come in the order of numbers, which are those of each cluster.
    lines.sort();
    lines
}

/// A database with a subscription is not dropped.
fn unsubscribe(server: &Server, database: &str) {
    let mut session = session(server, database);
    let own = "SELECT subname FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())";
    for name in session
        .query(own)
        .expect("subscriptions")
        .into_iter()
        .flatten()
        .flatten()
    {
        session
            .execute(&format!("ALTER SUBSCRIPTION {name} SET (slot_name = NONE)"))
            .and_then(|()| session.execute(&format!("DROP SUBSCRIPTION {name}")))
            .expect("dropped");
    }
}

fn schemas_of(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    make_rich(&running, major);
    let expected = DATABASES.map(|database| printed(&running, database));
    running.stop(StopMode::Fast).expect("stopped");
    drop(running);
    let cluster = open(&copy.pgdata);
    for (database, expected) in DATABASES.into_iter().zip(&expected) {
        compare(&cluster, database, expected);
    }
    let schemas = DATABASES.map(|database| Ddl::of_database(&cluster, oid_of(&cluster, database)));
    let running = copy.start().expect("a server");
    for (database, ddl) in DATABASES.into_iter().zip(&schemas) {
        assert_eq!(
            (&ddl.refused, &ddl.troubles),
            (&Vec::new(), &Vec::new()),
            "{database}"
        );
        // What a server marks columns with is its own, and another may not know it.
        assert!(
            !ddl.whole().expect("text").contains("pg_attver"),
            "{database}"
        );
        let mut session = session(&running, "postgres");
        session
            .execute("CREATE DATABASE again TEMPLATE template0")
            .expect("a database");
        let loaded = self::session(&running, "again").execute(&ddl.whole().expect("text"));
        loaded
            .unwrap_or_else(|error| panic!("{database}: {error}\n{}", ddl.whole().expect("text")));
        let (first, second) = (described(&running, database), described(&running, "again"));
        for (first, second) in first.iter().zip(&second) {
            assert_eq!(first, second, "{database}");
        }
        assert_eq!(first.len(), second.len(), "{database}");
        unsubscribe(&running, "again");
        session.execute("DROP DATABASE again").expect("dropped");
    }
}

#[test]
fn of_13() {
    schemas_of(13);
}

#[test]
fn of_14() {
    schemas_of(14);
}

#[test]
fn of_15() {
    schemas_of(15);
}

#[test]
fn of_16_and_17() {
    schemas_of(16);
    schemas_of(17);
}

#[test]
fn of_18() {
    schemas_of(18);
}

/// The file of several databases makes each of them and goes there, as psql reads it.
#[test]
fn psql_takes_the_file_of_several_databases() {
    let installation = server(15);
    let Some(psql) = installation.tool("psql") else {
        eprintln!("skipped: the installation has no psql");
        return;
    };
    let databases = ["rich", "clinic", "od\"d näme"];
    let copy = copy_of(&seed(&installation, Checksums::On));
    let mut running = copy.start().expect("a server");
    make_rich(&running, 15);
    let expected = databases.map(|database| described(&running, database));
    running.stop(StopMode::Fast).expect("stopped");

    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("schema.sql");
    let mut options = common::options(&folder.path().join("out"), "copy");
    options.selection.databases = databases.map(Glob::new).to_vec();
    options.ddl = Some(path.clone());
    let account = common::salvaged(&copy.pgdata, &options);
    let mut told = account.not_salvaged.iter().map(|told| told.what.as_str());
    assert_eq!(told.find(|what| what.contains("schema")), None);

    let running = copy.start().expect("a server");
    for database in databases {
        unsubscribe(&running, database);
        let drop = format!("DROP DATABASE \"{}\"", database.replace('"', "\"\""));
        session(&running, "postgres")
            .execute(&drop)
            .expect("dropped");
    }
    let file = std::fs::File::open(&path).expect("a file");
    let mut command = run_as().command(&psql);
    command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", "postgres"]);
    command
        .arg("-h")
        .arg(running.socket_folder())
        .args(["-d", "postgres"]);
    let output = command.stdin(file).output().expect("psql runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for (database, expected) in databases.iter().zip(&expected) {
        assert_eq!(&described(&running, database), expected, "{database}");
    }
}

/// Tables of `clinic` whose columns are of types that every server has, none of them dropped.
const PLAIN: [&str; 4] = [
    "public.docs",
    "public.measurements",
    "sales.orders",
    "public.person",
];

#[test]
fn columns_that_are_given_stand_in_for_lost_ones() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let copied = common::copied(&running, "clinic", "");
    let expected: BTreeMap<String, common::Lines> = copied
        .into_iter()
        .filter(|(file, _)| PLAIN.iter().any(|table| *file == format!("clinic/{table}")))
        .collect();
    assert_eq!(expected.len(), PLAIN.len());
    let path = session(&running, "clinic")
        .query_value("SELECT pg_relation_filepath('pg_catalog.pg_attribute')")
        .expect("a path")
        .expect("a file");
    running.stop(StopMode::Fast).expect("stopped");
    let cluster = open(&copy.pgdata);
    let ddl = Ddl::of_database(&cluster, oid_of(&cluster, "clinic"));
    std::fs::write(copy.pgdata.join(path), b"").expect("emptied");

    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let mut options = common::options(&destination, "copy");
    options.given = tables_in(&ddl.whole().expect("text")).expect("tables");
    options.ddl = Some(folder.path().join("schema.sql"));
    let account = common::salvaged(&copy.pgdata, &options);
    common::compare(&destination, "copy", &expected);
    let schema = std::fs::read_to_string(folder.path().join("schema.sql")).expect("a schema");
    assert!(schema.contains("CREATE DATABASE clinic"));
    let told = |what: &str| {
        account
            .not_salvaged
            .iter()
            .any(|told| told.what.contains(what))
    };
    assert!(told("schema"), "{:?}", account.not_salvaged);
}
