//! What PostgreSQL's own tests ask of `pg_amcheck` (files lost and overwritten in schemas that hold
//! every kind of relation, an operator class of one's own) and of `bt_index_check` with
//! `checkunique`, asked of `pgclinic check`.

use pgclinic_model::{CheckDocument, Severity};

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use common::{pgclinic, text, told};
use pgclinic_servers::{Checksums, Server, Session, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

/// Every kind of relation twice, one to be lost and one to be overwritten.
const SCHEMA: &str = "
CREATE SCHEMA {s};
CREATE SEQUENCE {s}.seq1; CREATE SEQUENCE {s}.seq2;
CREATE TABLE {s}.t1 (i int, b box, ia int[], ir int4range, t text);
CREATE TABLE {s}.t2 (LIKE {s}.t1);
ALTER TABLE {s}.t2 ALTER t SET STORAGE EXTERNAL;
INSERT INTO {s}.t1 SELECT n, box(point(n, n + 5), point(n * 2, n * 3)), ARRAY[n, n + 1], int4range(n, n + 100), repeat('foo', n)
  FROM generate_series(1, 10000, 3000) AS n;
INSERT INTO {s}.t2 SELECT * FROM {s}.t1;
CREATE MATERIALIZED VIEW {s}.t1_mv AS SELECT * FROM {s}.t1;
CREATE MATERIALIZED VIEW {s}.t2_mv AS SELECT * FROM {s}.t2;
CREATE TABLE {s}.p1 (a int, b int) PARTITION BY LIST (a);
CREATE TABLE {s}.p1_1 PARTITION OF {s}.p1 FOR VALUES IN (1, 2, 3);
CREATE TABLE {s}.p1_2 PARTITION OF {s}.p1 FOR VALUES IN (4, 5, 6);
CREATE INDEX t1_btree ON {s}.t1 (i); CREATE INDEX t2_btree ON {s}.t2 (i);
CREATE INDEX t1_hash ON {s}.t1 USING hash (i); CREATE INDEX t2_hash ON {s}.t2 USING hash (i);
CREATE INDEX t1_brin ON {s}.t1 USING brin (i); CREATE INDEX t2_brin ON {s}.t2 USING brin (i);
CREATE INDEX t1_gist ON {s}.t1 USING gist (b); CREATE INDEX t2_gist ON {s}.t2 USING gist (b);
CREATE INDEX t1_gin ON {s}.t1 USING gin (ia); CREATE INDEX t2_gin ON {s}.t2 USING gin (ia);
CREATE INDEX t1_spgist ON {s}.t1 USING spgist (ir); CREATE INDEX t2_spgist ON {s}.t2 USING spgist (ir)";

/// Sorts integers by a function in SQL, which no reader of files can run.
const OPERATOR_CLASS: &str = "
CREATE FUNCTION own_order(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT sign(a::bigint - b)::int';
CREATE OPERATOR CLASS own_ops FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
  FUNCTION 1 own_order(int, int);
CREATE TABLE own AS SELECT n AS i FROM generate_series(1, 1000) AS n;
CREATE INDEX own_i ON own (i own_ops)";

/// Indexes over doubled keys that are declared unique afterwards; `healthy` ones hold only what is
/// allowed.
const UNIQUE: &str = "
CREATE SCHEMA u;
CREATE TABLE u.few AS SELECT n % 500 AS i FROM generate_series(1, 502) AS n;
CREATE TABLE u.over_pages AS SELECT 7 AS i FROM generate_series(1, 9000) AS n;
CREATE TABLE u.nulls AS SELECT NULL::int AS i FROM generate_series(1, 100) AS n;
CREATE TABLE u.healthy_nulls AS SELECT NULL::int AS i, n AS j FROM generate_series(1, 100) AS n;
CREATE TABLE u.healthy_versions (i int, j int);
INSERT INTO u.healthy_versions SELECT n, 0 FROM generate_series(1, 300) AS n;
CREATE INDEX few_i ON u.few (i);
CREATE INDEX over_pages_i ON u.over_pages (i);
CREATE INDEX nulls_i ON u.nulls (i);
CREATE INDEX healthy_nulls_i ON u.healthy_nulls (i);
CREATE INDEX healthy_versions_i ON u.healthy_versions (i);
CREATE INDEX healthy_versions_j ON u.healthy_versions (j);
UPDATE u.healthy_versions SET j = 1;
UPDATE u.healthy_versions SET j = 2 WHERE i % 2 = 0;
UPDATE pg_index SET indisunique = true, indnullsnotdistinct = indexrelid = 'u.nulls_i'::regclass
  WHERE indexrelid = ANY ('{u.few_i, u.over_pages_i, u.nulls_i, u.healthy_nulls_i, u.healthy_versions_i}'::regclass[])";

const GONE: &[&str] = &[
    "s1.t1_btree",
    "s2.t1",
    "s3.t1",
    "s3.t1_mv",
    "s3.p1_1",
    "s3.t1_btree",
    "s5.seq1",
    "s5.t1_hash",
    "s5.t1_gist",
    "s5.t1_gin",
    "s5.t1_brin",
    "s5.t1_spgist",
];
const OVERWRITTEN: &[&str] = &[
    "s1.t2_btree",
    "s2.t2",
    "s3.t2",
    "s3.t2_mv",
    "s3.t2_btree",
    "s5.t2_hash",
    "s5.t2_gist",
    "s5.t2_gin",
    "s5.t2_brin",
    "s5.t2_spgist",
];
/// The free space of a page with one row: nobody reads these bytes.
const UNSEEN: &str = "s5.seq2";

/// Line pointers of every wrong kind, from byte 32 on.
const JUNK: [u32; 7] = [
    0xAAA1_5550,
    0xAAA0_D550,
    0x0001_0000,
    0x0000_8000,
    0x0000_800F,
    0x001E_8000,
    0xFFFF_FFFF,
];

fn value(session: &mut Session, sql: &str) -> String {
    let value = session.query_value(sql).expect(sql);
    value.expect("a value")
}

/// Where the file of each relation lies, by its name.
fn paths(session: &mut Session) -> BTreeMap<String, String> {
    let toast = value(
        session,
        "SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 's4.t2'::regclass",
    );
    let names = GONE.iter().chain(OVERWRITTEN).chain([&UNSEEN]);
    let names = names.map(|name| (*name).to_owned()).chain([toast]);
    names
        .map(|name| {
            let path = value(session, &format!("SELECT pg_relation_filepath('{name}')"));
            (name, path)
        })
        .collect()
}

fn fill(server: &Server) -> BTreeMap<String, String> {
    for database in ["hurt", "sound"] {
        let mut session = server.connect("postgres").expect("a session");
        session
            .execute(&format!("CREATE DATABASE {database}"))
            .expect("a database");
        let mut session = server.connect(database).expect("a session");
        for schema in ["s1", "s2", "s3", "s4", "s5", "whole"] {
            let sql = SCHEMA.replace("{s}", schema);
            session.execute(&sql).expect("a schema");
        }
        session.execute(OPERATOR_CLASS).expect("an operator class");
    }
    paths(&mut server.connect("hurt").expect("a session"))
}

fn overwrite(path: &Path) {
    let bytes: Vec<u8> = JUNK.iter().flat_map(|word| word.to_le_bytes()).collect();
    let file = File::options().write(true).open(path).expect("a file");
    file.write_all_at(&bytes, 32).expect("a write");
}

fn check(pgdata: &Path, more: &[&str], exit: u8) -> CheckDocument {
    let words = ["check", text(pgdata), "--level", "full", "--format", "json"];
    let ran = pgclinic(&[&words[..], more].concat());
    let document = ran.document();
    assert_eq!(ran.exit, exit, "{more:?} {}", told(&document));
    document
}

/// Relations with damage or a warning, and those where damage begins.
fn relations(document: &CheckDocument) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut all, mut roots) = (BTreeSet::new(), BTreeSet::new());
    let told = |finding: &&pgclinic_model::Finding| finding.severity != Severity::Note;
    for finding in document.findings.iter().filter(told) {
        let place = &finding.place;
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        let name = format!("{}.{}", part(&place.schema), part(&place.relation));
        if finding.caused_by.is_none() && finding.severity == Severity::Damage {
            roots.insert(name.clone());
        }
        all.insert(name);
    }
    (all, roots)
}

#[test]
fn lost_and_overwritten_files_of_every_kind() {
    let copy = copy_of(&seed(&server(18), Checksums::Off));
    let mut server = copy.start().expect("a server");
    let paths = fill(&server);
    server.stop(StopMode::Fast).expect("a stop");
    check(&copy.pgdata, &[], 0);
    for (name, path) in &paths {
        let path = copy.pgdata.join(path);
        if OVERWRITTEN.contains(&name.as_str()) || name == UNSEEN {
            overwrite(&path)
        } else {
            std::fs::remove_file(&path).expect("a file")
        }
    }
    let document = check(&copy.pgdata, &[], 1);
    let (all, roots) = relations(&document);
    let mut hurt: BTreeSet<String> = paths.into_keys().collect();
    hurt.remove(UNSEEN);
    let unseen: Vec<_> = hurt.difference(&all).collect();
    assert!(unseen.is_empty(), "{unseen:?} {}", told(&document));
    let besides: Vec<_> = roots.difference(&hurt).collect();
    assert!(besides.is_empty(), "{besides:?} {}", told(&document));

    check(
        &copy.pgdata,
        &["--database", "hurt", "--relation", "whole.*"],
        0,
    );
    let sound = check(&copy.pgdata, &["--database", "sound"], 0);
    let mut left_out = sound.coverage.not_checked.iter();
    let own = left_out.any(|entry| entry.inherent && entry.what.contains("own_i"));
    assert!(own, "{}", told(&sound));
}

#[test]
fn doubled_keys_of_unique_indexes() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    session
        .execute("CREATE EXTENSION IF NOT EXISTS amcheck")
        .and_then(|()| session.execute(UNIQUE))
        .expect("tables");
    let indexes = "SELECT 'u.' || relname FROM pg_class WHERE relnamespace = 'u'::regnamespace AND relkind = 'i'";
    let amcheck = |session: &mut Session, index: &str| {
        let schema =
            "SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'amcheck'";
        let schema = value(session, schema);
        session.execute(&format!(
            "SELECT {schema}.bt_index_check('{index}', false, true)"
        ))
    };
    let mut theirs = BTreeSet::new();
    for row in session.query(indexes).expect("indexes") {
        let index = row.first().cloned().flatten().expect("a name");
        if let Err(error) = amcheck(&mut session, &index) {
            assert!(error.to_string().contains("uniqueness"), "{error}");
            theirs.insert(index.trim_end_matches("_i").to_owned());
        }
    }
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
    let document = check(&copy.pgdata, &[], 1);
    let (ours, _) = relations(&document);
    let wanted = ["u.few", "u.nulls", "u.over_pages"].map(str::to_owned);
    assert_eq!(ours, BTreeSet::from(wanted), "{}", told(&document));
    assert!(theirs.is_subset(&ours), "{theirs:?}");
    assert!(
        document
            .findings
            .iter()
            .all(|finding| finding.rule == "unique-key-duplicate")
    );
}
