//! What is read from the files is what the server says over SQL: names, files, columns,
//! transactions, multixacts.

use pgclinic_cluster::{Catalog, Cluster, Member, MemberStatus, Relation, XactStatus};

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pgclinic_format::{MultiXactId, Oid, Xid};
use pgclinic_servers::{Checksums, Server, Session, StopMode, TextRow};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{TempCopy, all_majors, copy_of, seed};

/// Catalogs move, columns come and go, a table changes its tablespace.
const CHANGES: &str = r#"
VACUUM FULL pg_class;
VACUUM FULL pg_attribute;
VACUUM FULL pg_proc;
VACUUM FULL pg_type;
VACUUM FULL pg_database;
ALTER TABLE public.altered ADD "läte column" timestamptz, DROP kept, ADD last int8;
ALTER TABLE public.person SET TABLESPACE annex;
ALTER TABLE public.wide DROP c3, ALTER c4 TYPE text;
CREATE TABLE public."Now " (a int, "b""c" numeric(7, 2), d text[]);
DROP TABLE public.empty;
BEGIN; CREATE TABLE public.never (a int); ALTER TABLE public.frozen DROP what; ROLLBACK;
VACUUM FULL public.docs
"#;

/// More multixacts than a page of offsets or members holds, and aborted transactions between them.
const MULTIXACTS: &str = "
DO $$BEGIN
  FOR i IN 1..3000 LOOP
    PERFORM 1 FROM public.locked WHERE id = 300 FOR KEY SHARE;
    BEGIN
      UPDATE public.locked SET n = i WHERE id = 300;
      IF i % 3 = 0 THEN PERFORM 1 / 0; END IF;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    IF i % 5 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
  END LOOP;
END$$";

const RELATIONS: &str = "
SELECT c.oid, n.nspname, c.relname, coalesce(pg_relation_filepath(c.oid), ''), c.reltoastrelid, c.relnatts,
  c.relfrozenxid, c.relminmxid, c.relisshared
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace ORDER BY 1";

const COLUMNS: &str = "
SELECT attrelid, attnum, attname, atttypid, atttypmod, attnotnull, attisdropped, attstorage
FROM pg_attribute WHERE attnum > 0 ORDER BY 1, 2";

const TRANSACTIONS: &str = "
SELECT x, pg_xact_status(x::text::xid8)
FROM pg_control_checkpoint(), generate_series(oldest_xid::text::bigint, split_part(next_xid, ':', 2)::bigint - 1) AS x
ORDER BY 1";

const MEMBERS: &str = "
SELECT m, string_agg(xid || ' ' || mode, ', ') FROM pg_control_checkpoint(),
  generate_series(oldest_multi_xid::text::bigint, next_multixact_id::text::bigint - 1) AS m,
  pg_get_multixact_members(m::text::xid)
GROUP BY 1 ORDER BY 1";

/// What the server says, before it is stopped.
struct Said {
    relations: BTreeMap<String, Vec<TextRow>>,
    columns: BTreeMap<String, Vec<TextRow>>,
    transactions: Vec<TextRow>,
    members: Vec<TextRow>,
}

fn rows(session: &mut Session, sql: &str) -> Vec<TextRow> {
    session
        .query(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn change(server: &Server) {
    let mut session = server.connect("clinic").expect("a session");
    for statement in CHANGES.split(";\n").chain([MULTIXACTS, "CHECKPOINT"]) {
        session
            .execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

fn ask(server: &Server) -> Said {
    let mut session = server.connect("postgres").expect("a session");
    let mut said = Said {
        relations: BTreeMap::new(),
        columns: BTreeMap::new(),
        transactions: rows(&mut session, TRANSACTIONS),
        members: rows(&mut session, MEMBERS),
    };
    let names = rows(
        &mut session,
        "SELECT datname FROM pg_database WHERE datallowconn",
    );
    for name in names.into_iter().flatten().flatten() {
        let mut session = server.connect(&name).expect("a session");
        said.relations
            .insert(name.clone(), rows(&mut session, RELATIONS));
        said.columns.insert(name, rows(&mut session, COLUMNS));
    }
    said
}

fn stopped(copy: &TempCopy) -> Said {
    let mut server = copy.start().expect("a server");
    change(&server);
    let said = ask(&server);
    server.stop(StopMode::Fast).expect("a stop");
    said
}

fn open(pgdata: &Path) -> Cluster {
    Cluster::open(Arc::new(DataDirectory::open(pgdata).expect("a directory"))).expect("a cluster")
}

fn number<T: std::str::FromStr>(row: &TextRow, index: usize) -> T {
    let text = row.get(index).and_then(Option::as_deref).expect("a value");
    text.parse()
        .unwrap_or_else(|_| panic!("{text:?} is a number"))
}

fn word(row: &TextRow, index: usize) -> &str {
    row.get(index)
        .and_then(Option::as_deref)
        .unwrap_or_default()
}

/// The first file of a relation, or nothing when it has none.
fn path_of(cluster: &Cluster, database: Oid, relation: &Relation) -> String {
    if relation.filenode == 0 || !relation.kind.has_storage() {
        return String::new();
    }
    let home = cluster
        .homes
        .iter()
        .find(|home| home.tablespace == relation.tablespace && home.database == database);
    let folder = home.map_or("nowhere", |home| home.folder.as_str());
    format!("{folder}/{}", relation.filenode)
}

fn same_relations(
    cluster: &Cluster,
    database: Oid,
    catalog: &Catalog,
    shared: bool,
    rows: &[TextRow],
) {
    let own: Vec<&TextRow> = rows
        .iter()
        .filter(|row| (word(row, 8) == "t") == shared)
        .collect();
    for row in &own {
        let Some(relation) = catalog.relations.get(&number(row, 0)) else {
            panic!("{row:?} is missing");
        };
        let path = path_of(cluster, database, relation);
        let read = (&*relation.schema, &*relation.name, &*path);
        assert_eq!(read, (word(row, 1), word(row, 2), word(row, 3)));
        // A shared relation has limits of its own in every database.
        let limits = (relation.relfrozenxid, relation.relminmxid);
        let told = (Xid(number(row, 6)), MultiXactId(number(row, 7)));
        assert!(shared || limits == told, "{row:?}: {limits:?}");
        assert_eq!(
            (relation.toast, relation.relnatts),
            (number(row, 4), number(row, 5)),
            "{row:?}"
        );
        if !path.is_empty() {
            let found = catalog.by_file(relation.tablespace, relation.filenode);
            assert_eq!(found.map(|found| found.oid), Some(relation.oid), "{row:?}");
        }
    }
    assert_eq!(
        catalog.relations.len(),
        own.len(),
        "nothing but what the server knows"
    );
}

fn same_columns(catalog: &Catalog, rows: &[TextRow]) {
    let mut expected: BTreeMap<Oid, Vec<String>> = BTreeMap::new();
    for row in rows {
        let words = (1..8)
            .map(|index| word(row, index))
            .collect::<Vec<_>>()
            .join("|");
        expected.entry(number(row, 0)).or_default().push(words);
    }
    let letter = |yes: bool| if yes { "t" } else { "f" };
    for relation in catalog.relations.values() {
        let columns = relation.columns.as_deref().expect("gapless columns");
        let read = columns.iter().map(|column| {
            let flags = format!("{}|{}", letter(column.not_null), letter(column.dropped));
            let storage = char::from(column.storage);
            let (number, name) = (column.attnum, &column.name);
            format!(
                "{number}|{name}|{}|{}|{flags}|{storage}",
                column.type_oid, column.typmod
            )
        });
        let read: Vec<String> = read.collect();
        let expected = expected.get(&relation.oid).cloned().unwrap_or_default();
        assert_eq!(read, expected, "{}", relation.qualified_name());
    }
}

fn same_catalogs(cluster: &Cluster, said: &Said) {
    for (name, rows) in &said.relations {
        let known = cluster
            .databases
            .values()
            .find(|database| database.name.as_ref() == Some(name));
        let oid = known
            .unwrap_or_else(|| panic!("database {name} is missing"))
            .oid;
        let (own, shared) = (cluster.catalog(oid), cluster.catalog(0));
        assert!(
            own.troubles.is_empty() && shared.troubles.is_empty(),
            "{:?}",
            own.troubles
        );
        same_relations(cluster, oid, &own, false, rows);
        same_relations(cluster, 0, &shared, true, rows);
        for catalog in [&own, &shared] {
            same_columns(catalog, said.columns.get(name).expect("asked"));
        }
    }
}

fn same_transactions(cluster: &Cluster, rows: &[TextRow]) {
    assert!(rows.len() > 3000, "{} transactions", rows.len());
    let mut aborted = 0;
    for row in rows {
        let expected = match word(row, 1) {
            "committed" => XactStatus::Committed,
            "aborted" => XactStatus::Aborted,
            other => panic!("{row:?}: {other}"),
        };
        aborted += usize::from(expected == XactStatus::Aborted);
        assert_eq!(
            cluster.transactions.status(Xid(number(row, 0))),
            Some(expected),
            "{row:?}"
        );
    }
    assert!(aborted > 500, "{aborted} aborted transactions");
}

fn same_members(cluster: &Cluster, rows: &[TextRow]) {
    assert!(rows.len() > 2500, "{} multixacts", rows.len());
    for row in rows {
        let read = cluster.multixacts.members(MultiXactId(number(row, 0)));
        let expected: Vec<Member> = word(row, 1).split(", ").map(member).collect();
        assert_eq!(read.as_deref(), Some(&*expected), "{row:?}");
    }
}

fn member(words: &str) -> Member {
    let (xid, mode) = words.split_once(' ').expect("transaction and mode");
    let status = match mode {
        "keysh" | "sh" | "fornokeyupd" | "forupd" => MemberStatus::Lock,
        "nokeyupd" => MemberStatus::NoKeyUpdate,
        "upd" => MemberStatus::Update,
        other => panic!("mode {other}"),
    };
    Member {
        xid: Xid(xid.parse().expect("a number")),
        status,
    }
}

fn files_say_what_sql_says(major: u16) {
    let installation = all_majors().into_iter().find(|one| one.major == major);
    let copy = copy_of(&seed(&installation.expect("a major"), Checksums::On));
    let said = stopped(&copy);
    let cluster = open(&copy.pgdata);
    assert!(cluster.troubles.is_empty(), "{:?}", cluster.troubles);
    same_catalogs(&cluster, &said);
    same_transactions(&cluster, &said.transactions);
    same_members(&cluster, &said.members);
    common::check_json(&copy.pgdata, 0);
}

#[test]
fn files_of_13_say_what_sql_says() {
    files_say_what_sql_says(13);
}

#[test]
fn files_of_15_say_what_sql_says() {
    files_say_what_sql_says(15);
}

#[test]
fn files_of_18_say_what_sql_says() {
    files_say_what_sql_says(18);
}
