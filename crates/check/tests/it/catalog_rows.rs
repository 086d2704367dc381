//! Rows of catalogs that say what no server writes or what another catalog denies, and rows that
//! are gone with every entry that named them.

use pgclinic_model::{CheckDocument, Level, Severity};
use pgclinic_servers::{Checksums, StartOptions, StopMode};
use pgclinic_testkit::{
    as_primary, checked, copy_of, execute, open, plain_backup, seed, server, value,
};

/// What is told of tables of the schema public, by rule.
fn told(document: &CheckDocument) -> Vec<(&str, &str)> {
    let damage = document
        .findings
        .iter()
        .filter(|own| own.severity == Severity::Damage);
    let mut told: Vec<(&str, &str)> = damage
        .map(|own| (own.rule.as_str(), own.message.as_str()))
        .collect();
    told.sort_unstable();
    told
}

fn look(major: u16, sql: &str) -> CheckDocument {
    look_at(major, sql, Level::Structure)
}

fn look_at(major: u16, sql: &str, level: Level) -> CheckDocument {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let options = StartOptions::default().with("autovacuum", "off");
    let mut running = copy.start_with(&options).expect("a server");
    execute(&running, sql);
    running.stop(StopMode::Fast).expect("it stops");
    checked(&open(&copy.pgdata), level)
}

const TABLES: &str = "\
CREATE TABLE public.viewed AS SELECT 1 AS a; CREATE TABLE public.shared AS SELECT 1 AS a;
CREATE TABLE public.odd AS SELECT 1 AS a; CREATE TABLE public.bare AS SELECT 1 AS a;
CREATE TABLE public.nowhere AS SELECT 1 AS a; CREATE TABLE public.narrow AS SELECT 1 AS a, 2 AS b;
CREATE VIEW public.right_view AS SELECT 1 AS a; CREATE TEMP TABLE passing AS SELECT 1 AS a;
CREATE TABLE public.dropping (a int, b int); ALTER TABLE public.dropping DROP COLUMN a;
CREATE TABLE public.parted (a int) PARTITION BY LIST (a)";

#[test]
fn a_row_that_contradicts_itself_is_told() {
    for major in [13, 18] {
        let of = |table: &str, what: &str| {
            format!("; UPDATE pg_class SET {what} WHERE oid = 'public.{table}'::regclass")
        };
        let sound = look(major, TABLES);
        assert_eq!(told(&sound), [], "{major}");
        let changes = [
            of("viewed", "relkind = 'v'"),
            of("shared", "relisshared = true"),
            of("odd", "relpersistence = 'q'"),
            of("bare", "relam = 0"),
            of("nowhere", "relfilenode = 0"),
            "; UPDATE pg_attribute SET attisdropped = true WHERE attrelid = 'public.narrow'::regclass AND attname = 'b'".into(),
        ];
        let document = look(major, &format!("{TABLES}{}", changes.concat()));
        let told = told(&document);
        for (table, words) in [
            ("viewed", "relkind is wrong"),
            ("shared", "relisshared is set"),
            ("odd", "relpersistence is 'q'"),
            ("bare", "relam is 0"),
            ("nowhere", "relfilenode is 0"),
            ("b", "attisdropped is set"),
        ] {
            let head = format!("the row of {table} in pg_");
            let mut own = told
                .iter()
                .filter(|(_, message)| message.starts_with(&head));
            let (rule, message) = own.next().unwrap_or_else(|| panic!("{table}: {told:?}"));
            assert_eq!(*rule, "catalog-row-contradictory");
            assert!(message.contains(words), "{message}");
        }
    }
}

#[test]
fn a_directory_without_a_database_is_noted() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    std::fs::create_dir(copy.pgdata.join("base/77777")).expect("made");
    let version = copy.pgdata.join("base/1/PG_VERSION");
    std::fs::copy(version, copy.pgdata.join("base/77777/PG_VERSION")).expect("copied");
    let document = checked(&open(&copy.pgdata), Level::Structure);
    let own = document
        .findings
        .iter()
        .filter(|own| own.rule == "orphan-database-directory");
    let paths: Vec<&str> = own.map(|own| own.place.path.as_str()).collect();
    assert_eq!(paths, ["base/77777"]);
    assert_eq!(told(&document), []);
}

#[test]
fn two_relations_with_one_file_are_told() {
    let sql = "CREATE TABLE public.first AS SELECT 1 AS a; CREATE TABLE public.second AS SELECT 1 AS a; \
        UPDATE pg_class SET relfilenode = pg_relation_filenode('public.first') WHERE oid = 'public.second'::regclass";
    let document = look(18, sql);
    let told = told(&document);
    let shared = told
        .iter()
        .filter(|(_, message)| message.contains("and so is that of"));
    assert_eq!(shared.count(), 2, "{told:?}");
}

/// VACUUM takes the entries of a deleted row along: `pg_attribute` and the file are left.
#[test]
fn a_relation_that_pg_attribute_alone_knows_is_lost() {
    let sql = "CREATE TABLE public.forgotten AS SELECT i FROM generate_series(1, 100) i; \
        DELETE FROM pg_class WHERE oid = 'public.forgotten'::regclass";
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(&running, sql);
    execute(&running, "VACUUM pg_class");
    running.stop(StopMode::Fast).expect("it stops");
    let document = checked(&open(&copy.pgdata), Level::Structure);
    let told = told(&document);
    assert!(
        told.iter().any(|(rule, _)| *rule == "relation-lost"),
        "{told:?}"
    );
}

/// The page of `pg_class` that lost the rows is one story with the relations that stood there.
#[test]
fn relations_whose_rows_stood_on_a_lost_page_follow_from_it() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(&running, "VACUUM pg_class");
    for number in 0..60 {
        let sql = format!("CREATE TABLE public.many_{number} (id int PRIMARY KEY, word text)");
        execute(&running, &sql);
    }
    execute(&running, "VACUUM pg_class");
    let path = copy
        .pgdata
        .join(value(&running, "SELECT pg_relation_filepath('pg_class')"));
    let block = value(
        &running,
        "SELECT max((ctid::text::point)[0])::int FROM pg_class WHERE relname LIKE 'many_%'",
    );
    let block: usize = block.parse().expect("a block");
    running.stop(StopMode::Fast).expect("it stops");
    let mut bytes = std::fs::read(&path).expect("a file");
    let lost = bytes[block * 8192..][..8192].iter_mut();
    lost.for_each(|byte| *byte = 0);
    std::fs::write(&path, bytes).expect("written");
    let document = checked(&open(&copy.pgdata), Level::Structure);
    let of = |rule: &str| {
        let findings = document.findings.iter();
        findings.filter(|own| own.rule == rule).collect::<Vec<_>>()
    };
    let lost = of("relation-lost");
    assert!(!lost.is_empty());
    for own in lost {
        let root = own.caused_by.as_ref().expect("a cause");
        let mut roots = document.findings.iter().filter(|other| other.id == *root);
        let root = roots.next().expect("the root is kept");
        let place = (root.place.relation.as_deref(), root.place.block);
        let expected = (Some("pg_class"), u32::try_from(block).ok());
        assert_eq!(place, expected, "{root:?}");
    }
}

/// Of each kind of object some, and beside them what the server may leave behind.
const OBJECTS: &str = "\
CREATE SCHEMA s; CREATE SCHEMA other; CREATE TYPE s.colour AS ENUM ('red'); CREATE DOMAIN s.above AS int CHECK (VALUE > 0);
CREATE TYPE s.span AS RANGE (subtype = float8);
CREATE TABLE s.added AS SELECT 1 AS a; ALTER TABLE s.added ADD COLUMN b int DEFAULT 7; ALTER TABLE s.added ALTER b DROP DEFAULT;
CREATE TABLE s.older AS SELECT 1 AS a; ALTER TABLE s.older ADD COLUMN b int DEFAULT 7;
CREATE TABLE s.defaults (a int DEFAULT 1, b int DEFAULT 2, c int); CREATE TABLE s.unset (a int DEFAULT 1);
CREATE TABLE s.generated (a int, g int GENERATED ALWAYS AS (a + 1) STORED);
CREATE TABLE s.numbered (a int GENERATED ALWAYS AS IDENTITY, b int NOT NULL);
CREATE TABLE s.dropped (a int GENERATED ALWAYS AS IDENTITY, b int DEFAULT 3, c int); ALTER TABLE s.dropped DROP a, DROP b;
CREATE TABLE s.checked (a int CHECK (a > 0), b int CHECK (b > 0)); CREATE TABLE s.moved (a int PRIMARY KEY);
CREATE TABLE s.keyed (a int, b int, PRIMARY KEY (a)); CREATE TABLE s.referring (a int REFERENCES s.keyed, b int REFERENCES s.moved);
CREATE TABLE s.loose (a int REFERENCES s.keyed); CREATE TABLE s.indexed (a int, b int); CREATE INDEX away ON s.indexed (a);
CREATE VIEW s.seen AS SELECT 1 AS a; CREATE VIEW s.unseen AS SELECT 1 AS a; CREATE SEQUENCE s.counting;
CREATE TABLE s.parted (a int) PARTITION BY LIST (a); CREATE TABLE s.part PARTITION OF s.parted FOR VALUES IN (1);
CREATE TABLE s.freed PARTITION OF s.parted FOR VALUES IN (2); CREATE TABLE s.shapeless (a int) PARTITION BY LIST (a);
CREATE TABLE s.long (a text); CREATE TABLE s.parent (a int); CREATE TABLE s.child () INHERITS (s.parent); DROP TABLE s.child;
CREATE TABLE s.wide (a int, b text); CREATE FUNCTION s.called(int, int) RETURNS int LANGUAGE sql AS 'SELECT 1'";

/// What one byte or one lost row of a catalog does, whose row tells it, and in which words.
const CONTRADICTIONS: [(&str, &str, &str); 24] = [
    (
        "UPDATE pg_attribute SET atthasmissing = false WHERE attrelid = 's.older'::regclass AND attname = 'b'",
        "s.older.b in pg_attribute",
        "attmissingval is there",
    ),
    (
        "UPDATE pg_attribute SET atthasmissing = true WHERE attrelid = 's.wide'::regclass AND attname = 'a'",
        "s.wide.a in pg_attribute",
        "attmissingval is null",
    ),
    (
        "UPDATE pg_attribute SET atthasdef = false WHERE attrelid = 's.defaults'::regclass AND attname = 'b'",
        "s.defaults.2 in pg_attrdef",
        "atthasdef is not set",
    ),
    (
        "UPDATE pg_attribute SET atthasdef = true WHERE attrelid = 's.defaults'::regclass AND attname = 'c'",
        "s.defaults.c in pg_attribute",
        "pg_attrdef has no row",
    ),
    (
        "UPDATE pg_attribute SET attgenerated = '' WHERE attrelid = 's.generated'::regclass AND attname = 'g'",
        "s.generated.2 in pg_depend",
        "attgenerated is not set",
    ),
    (
        "UPDATE pg_attribute SET attgenerated = 's' WHERE attrelid = 's.unset'::regclass AND attname = 'a'",
        "s.unset.a in pg_attribute",
        "that of a plain default",
    ),
    (
        "UPDATE pg_attribute SET attidentity = '' WHERE attrelid = 's.numbered'::regclass AND attname = 'a'",
        "s.numbered.1 in pg_depend",
        "attidentity is not set",
    ),
    (
        "UPDATE pg_attribute SET attidentity = 'a' WHERE attrelid = 's.numbered'::regclass AND attname = 'b'",
        "s.numbered.b in pg_attribute",
        "no sequence depends",
    ),
    (
        "UPDATE pg_attribute SET attlen = 6 WHERE attrelid = 's.wide'::regclass AND attname = 'a'",
        "s.wide.a in pg_attribute",
        "attlen",
    ),
    (
        "UPDATE pg_type SET typtype = 'b' WHERE typname = 'colour'",
        "red in pg_enum",
        "typtype is not 'e'",
    ),
    (
        "UPDATE pg_type SET typtype = 'b' WHERE typname = 'above'",
        "above in pg_type",
        "typbasetype is set",
    ),
    (
        "DELETE FROM pg_range WHERE rngtypid = 's.span'::regtype",
        "span in pg_type",
        "pg_range has no row",
    ),
    (
        "UPDATE pg_class SET relchecks = 3 WHERE oid = 's.checked'::regclass",
        "checked in pg_class",
        "relchecks",
    ),
    (
        "UPDATE pg_class SET relhastriggers = false WHERE oid = 's.referring'::regclass",
        "in pg_trigger",
        "relhastriggers",
    ),
    (
        "UPDATE pg_class SET relnamespace = 'other'::regnamespace WHERE oid = 's.moved'::regclass",
        "moved in pg_class",
        "relnamespace",
    ),
    (
        "UPDATE pg_class SET relnamespace = 'other'::regnamespace WHERE oid = 's.away'::regclass",
        "other.away in pg_index",
        "relnamespace of the index",
    ),
    (
        "UPDATE pg_constraint SET conkey = '{2}' WHERE conname = 'keyed_pkey'",
        "s.keyed.keyed_pkey in pg_constraint",
        "conkey",
    ),
    (
        "DELETE FROM pg_trigger WHERE tgconstraint = (SELECT oid FROM pg_constraint WHERE conname = 'loose_a_fkey')",
        "s.loose.loose_a_fkey in pg_constraint",
        "no trigger",
    ),
    (
        "DELETE FROM pg_sequence WHERE seqrelid = 's.counting'::regclass",
        "counting in pg_class",
        "pg_sequence has no row",
    ),
    (
        "DELETE FROM pg_rewrite WHERE ev_class = 's.unseen'::regclass",
        "unseen in pg_class",
        "pg_rewrite has no rule",
    ),
    (
        "DELETE FROM pg_inherits WHERE inhrelid = 's.part'::regclass",
        "part in pg_class",
        "pg_inherits has no parent",
    ),
    (
        "UPDATE pg_class SET relispartition = false WHERE oid = 's.freed'::regclass",
        "s.freed in pg_inherits",
        "relispartition is not set",
    ),
    (
        "DELETE FROM pg_partitioned_table WHERE partrelid = 's.shapeless'::regclass",
        "shapeless in pg_class",
        "pg_partitioned_table has no row",
    ),
    (
        "DELETE FROM pg_depend WHERE refobjid = 's.long'::regclass",
        "long in pg_class",
        "TOAST table does not depend",
    ),
];

#[test]
fn a_row_that_another_catalog_denies_is_told() {
    const RULE: &str = "catalog-rows-disagree";
    let sound = look_at(15, OBJECTS, Level::Full);
    assert_eq!(told(&sound), []);
    let changes = CONTRADICTIONS.map(|(sql, ..)| format!("; {sql}"));
    let hurt = look_at(15, &format!("{OBJECTS}{}", changes.concat()), Level::Full);
    let told = told(&hurt);
    for (_, whose, words) in CONTRADICTIONS {
        let is_it = |message: &str| message.contains(whose) && message.contains(words);
        let mut own = told.iter().filter(|(_, message)| is_it(message));
        let (rule, _) = own.next().unwrap_or_else(|| panic!("{whose}: {told:#?}"));
        assert_eq!(*rule, RULE, "{whose}");
    }
}

/// Before 15 the default of a generated column is that of any other; the column itself depends on
/// those that it is generated from, until its expression is dropped.
#[test]
fn a_generated_column_that_says_it_is_none_is_told_before_15_too() {
    for major in [13, 14] {
        let more = "CREATE TABLE s.plain (a int, g int GENERATED ALWAYS AS (a + 1) STORED); ALTER TABLE s.plain ALTER g DROP EXPRESSION; \
            CREATE TABLE s.numbers (a serial, b int DEFAULT 3, c int GENERATED ALWAYS AS (1) STORED); CREATE TABLE s.by_word (a int, b int) PARTITION BY RANGE ((a + b))";
        let sound = look_at(major, &format!("{OBJECTS}; {more}"), Level::Full);
        assert_eq!(told(&sound), [], "{major}");
        let change = "UPDATE pg_attribute SET attgenerated = '' WHERE attrelid = 's.generated'::regclass AND attname = 'g'";
        let hurt = look_at(major, &format!("{OBJECTS}; {change}"), Level::Full);
        let told = told(&hurt);
        let [(rule, message)] = told.as_slice() else {
            panic!("{major}: {told:#?}");
        };
        assert_eq!(*rule, "catalog-rows-disagree", "{major}");
        assert!(
            message.contains("of which attgenerated is not set"),
            "{message}"
        );
    }
}

/// What each major leaves of many kinds of objects is no contradiction.
#[test]
fn objects_of_every_kind_agree() {
    for major in [13, 14, 16, 17, 18] {
        let sound = look_at(major, OBJECTS, Level::Full);
        assert_eq!(told(&sound), [], "{major}");
    }
}

/// A catalog that was lost as a whole is not told row by row.
#[test]
fn dependencies_that_are_all_gone_are_told() {
    let sql = format!("{OBJECTS}; DELETE FROM pg_depend");
    let document = look_at(18, &sql, Level::Full);
    let told = told(&document);
    assert!(
        told.iter()
            .all(|(rule, _)| *rule == "catalog-rows-disagree")
    );
    for words in [
        "TOAST table does not depend",
        "the default depends on nothing",
    ] {
        let own = told.iter().filter(|(_, message)| message.contains(words));
        assert!((1..=101).contains(&own.count()), "{words}");
    }
}

/// A base backup has the init forks of unlogged relations, and no other of their forks.
#[test]
fn a_backup_without_an_init_fork_is_told() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start_with(&as_primary()).expect("a server");
    execute(&running, "CREATE UNLOGGED TABLE public.passing (a int)");
    let main = value(&running, "SELECT pg_relation_filepath('public.passing')");
    let folder = copy.pgdata.with_file_name("backup");
    plain_backup(&copy, &running, &folder, &["--no-manifest"]);
    let sound = checked(&open(&folder), Level::Structure);
    assert_eq!(told(&sound), []);
    std::fs::remove_file(folder.join(format!("{main}_init"))).expect("removed");
    let hurt = checked(&open(&folder), Level::Structure);
    let words = "unlogged public.passing has no init fork";
    assert_eq!(told(&hurt), [("missing-init-fork", words)]);
}

/// A backup is compared as recovery leaves it.
#[test]
fn rows_of_a_backup_are_held_against_each_other() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start_with(&as_primary()).expect("a server");
    execute(&running, OBJECTS);
    execute(
        &running,
        "UPDATE pg_class SET relchecks = 3 WHERE oid = 's.checked'::regclass",
    );
    let folder = copy.pgdata.with_file_name("backup");
    plain_backup(&copy, &running, &folder, &["--no-manifest"]);
    let document = checked(&open(&folder), Level::Full);
    let own = told(&document);
    assert!(matches!(own[..], [("catalog-rows-disagree", _)]), "{own:?}");
}
