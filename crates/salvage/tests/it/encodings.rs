//! Databases that are not in UTF-8: names, labels and the schema are what the server calls them, as
//! values are.

use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, SalvageReport};

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{Lines, compare, copied, copied_in, options, salvaged, session, session_with};
use pgclinic_salvage::{Destination, Encoding, SalvageOptions, end_of_load};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, StopMode};
use pgclinic_testkit::{copy_of, open, seed, server};

/// Encodings, each with a word that it can write.
const WORDS: [(&str, &str); 3] = [
    ("LATIN1", "näive"),
    ("WIN1251", "цвет"),
    ("EUC_JP", "日本語"),
];

/// `{w}` is the word. The text of the type's name is one that must be quoted with a doubled quote.
const SCHEMA: &str = "\
CREATE SCHEMA \"s{w}\"; \
CREATE TYPE \"s{w}\".\"t\"\"{w}\" AS ENUM ('{w}', 'plain', '{w} {w}'); \
CREATE TYPE public.\"both {w}\" AS (\"a{w}\" \"s{w}\".\"t\"\"{w}\", b text); \
CREATE FUNCTION public.\"f{w}\"(\"arg{w}\" text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT \"arg{w}\" || ''{w}'''; \
CREATE FUNCTION public.touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; /* {w} */ END'; \
CREATE SEQUENCE public.\"q{w}\" MINVALUE 5; SELECT setval('public.\"q{w}\"', 77); \
CREATE TABLE \"s{w}\".\"{w}\" (\"c{w}\" int PRIMARY KEY, \"e{w}\" \"s{w}\".\"t\"\"{w}\" DEFAULT '{w}', \
  list \"s{w}\".\"t\"\"{w}\"[], pair public.\"both {w}\", word text DEFAULT '{w}' CONSTRAINT \"k{w}\" CHECK (word <> '{w}{w}' AND public.\"f{w}\"(word) <> ''), \
  kind regtype, proc regprocedure); \
CREATE INDEX \"i{w}\" ON \"s{w}\".\"{w}\" (public.\"f{w}\"(word)) WHERE word <> '{w}'; \
CREATE TRIGGER \"g{w}\" BEFORE INSERT ON \"s{w}\".\"{w}\" FOR EACH ROW EXECUTE FUNCTION public.touch('{w}', 'plain'); \
CREATE VIEW public.\"v{w}\" AS SELECT \"e{w}\" AS \"x{w}\", word || '{w}' AS y FROM \"s{w}\".\"{w}\" AS \"alias{w}\"; \
COMMENT ON TABLE \"s{w}\".\"{w}\" IS 'about {w}'; \
INSERT INTO \"s{w}\".\"{w}\" VALUES (1, '{w}', '{{w},plain}', ROW('{w} {w}', 'b {w}'), 'x {w}', '\"s{w}\".\"t\"\"{w}\"', 'public.\"f{w}\"(text)'), \
  (2, 'plain', NULL, ROW('plain', '{w}'), DEFAULT, 'integer', 'public.touch()'); \
CREATE TABLE public.\"partner{w}\" (id int)";

fn database(encoding: &str) -> String {
    format!("in_{}", encoding.to_lowercase())
}

fn make(running: &Server, encoding: &str, statements: &str) {
    let name = database(encoding);
    let create = format!(
        "CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
    );
    session(running, "postgres").execute(&create).expect(&name);
    let mut own = session(running, &name);
    own.execute(statements)
        .unwrap_or_else(|error| panic!("{encoding}: {error}"));
}

fn with_word(word: &str) -> String {
    SCHEMA.replace("{w}", word)
}

/// What must be the same in a database and in one that was made from its schema.
const DESCRIPTIONS: [&str; 7] = [
    "SELECT c.relkind, n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid) \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 \
     LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum WHERE c.oid >= 16384 AND n.nspname <> 'pg_toast'",
    "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE oid >= 16384",
    "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE oid >= 16384",
    "SELECT typname, enumsortorder, enumlabel FROM pg_enum JOIN pg_type t ON t.oid = enumtypid WHERE t.oid >= 16384",
    "SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class c ON c.oid = indrelid WHERE c.oid >= 16384 AND relkind <> 't'",
    "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "SELECT pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND oid >= 16384 \
     UNION ALL SELECT description FROM pg_description WHERE objoid >= 16384",
];

fn described(running: &Server, database: &str) -> Vec<String> {
    let mut session = session_with(running, database, &[("search_path", "")]);
    let mut lines = Vec::new();
    for question in DESCRIPTIONS {
        let rows = session.query(question).expect(question);
        assert!(!rows.is_empty(), "{question}");
        lines.extend(rows.iter().map(|row| format!("{row:?}")));
    }
    lines.sort();
    lines
}

/// Rows by table, whatever the database is called.
fn rows(running: &Server, database: &str) -> BTreeMap<String, Lines> {
    let named = copied(running, database, "").into_iter();
    named
        .map(|(name, lines)| match name.split_once('/') {
            Some((_, table)) => (table.to_owned(), lines),
            None => (name, lines),
        })
        .collect()
}

fn of_database(destination: &Path, form: &str, name: &str) -> SalvageOptions {
    let mut options = options(destination, form);
    options.selection.databases = vec![Glob::new(name)];
    options
}

#[track_caller]
fn assert_whole(account: &SalvageReport) {
    assert_eq!(
        account.outcome,
        Outcome::Whole,
        "{:#?} {:#?}",
        account.not_salvaged,
        account.tables
    );
}

#[test]
fn names_and_labels_are_those_of_the_server() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    for (encoding, word) in WORDS {
        make(&running, encoding, &with_word(word));
    }
    let forms = [
        ("csv", "csv", "(FORMAT csv, HEADER)"),
        ("copy", "copy", ""),
        ("binary", "bin", "(FORMAT binary)"),
    ];
    let expected = WORDS
        .map(|(encoding, _)| forms.map(|(_, _, with)| copied(&running, &database(encoding), with)));
    running.stop(StopMode::Fast).expect("stopped");

    let folder = tempfile::tempdir().expect("a directory");
    for ((encoding, word), expected) in WORDS.iter().zip(&expected) {
        let name = database(encoding);
        for ((form, extension, _), expected) in forms.iter().zip(expected) {
            let destination = folder.path().join(format!("{name}_{form}"));
            let account = salvaged(&copy.pgdata, &of_database(&destination, form, &name));
            assert_whole(&account);
            assert_eq!(expected.len(), 2, "{encoding}");
            compare(&destination, extension, expected);
        }
        let destination = folder.path().join(format!("{name}_jsonl"));
        let account = salvaged(&copy.pgdata, &of_database(&destination, "jsonl", &name));
        assert_whole(&account);
        let file = format!(
            "{name}/{0}.{1}.jsonl",
            pgclinic_salvage::encoded(&format!("s{word}")),
            pgclinic_salvage::encoded(word)
        );
        let text = std::fs::read_to_string(destination.join(file)).expect("a file");
        for found in [format!("\"c{word}\":1"), format!("\"e{word}\":\"{word}\"")] {
            assert!(text.contains(&found), "{found}: {text}");
        }
        // Whoever asks the catalogs finds the table by its name.
        let cluster = open(&copy.pgdata);
        let mut databases = cluster.databases.values();
        let known = databases.find(|known| known.name.as_deref() == Some(name.as_str()));
        let catalog = cluster.catalog(known.expect("the database").oid);
        let table = catalog.by_name(&format!("s{word}"), word);
        let columns = table.expect("the table").columns.as_ref();
        assert_eq!(columns.expect("columns")[0].name, format!("c{word}"));
    }
}

#[test]
fn the_schema_and_the_rows_go_into_a_server() {
    let installation = server(15);
    let source = copy_of(&seed(&installation, Checksums::On));
    let mut running = source.start().expect("a server");
    for (encoding, word) in WORDS {
        make(&running, encoding, &with_word(word));
    }
    let names = WORDS.map(|(encoding, _)| database(encoding));
    let expected = WORDS.map(|(encoding, _)| {
        let name = database(encoding);
        (described(&running, &name), rows(&running, &name))
    });
    running.stop(StopMode::Fast).expect("stopped");

    let destination = copy_of(&seed(&installation, Checksums::On));
    let running = destination.start().expect("a server");
    let folder = tempfile::tempdir().expect("a directory");
    for (name, (descriptions, rows_before)) in names.iter().zip(&expected) {
        for database in ["from_file", "again"] {
            session(&running, "postgres")
                .execute(&format!("CREATE DATABASE {database} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"))
                .expect("a database");
        }
        let ddl = folder.path().join(format!("{name}.sql"));
        let mut options = of_database(Path::new("/nowhere"), "copy", name);
        options.destination =
            Destination::Server(Box::new(ConnectionTarget::of(&running, "again")));
        options.ddl = Some(ddl.clone());
        assert_whole(&salvaged(&source.pgdata, &options));
        end_of_load(&ConnectionTarget::of(&running, "again")).expect("ended");
        assert_eq!(&described(&running, "again"), descriptions, "{name}");
        assert_eq!(&rows(&running, "again"), rows_before, "{name}");

        let text = std::fs::read_to_string(ddl).expect("a schema");
        let made = session(&running, "from_file").execute(&text);
        made.unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        assert_eq!(&described(&running, "from_file"), descriptions, "{name}");
        session(&running, "postgres")
            .execute("DROP DATABASE again")
            .and_then(|()| session(&running, "postgres").execute("DROP DATABASE from_file"))
            .expect("dropped");
    }
}

/// A database that says nothing of its encoding: what is UTF-8 is that, and other bytes are marked
/// and told, or kept.
#[test]
fn bytes_of_no_encoding_are_told_or_kept() {
    const TABLES: &str = "CREATE TYPE public.\"söng\" AS ENUM ('tön'); CREATE TABLE public.\"täble\" (\"cölumn\" public.\"söng\")";
    /// A label of a byte that is no UTF-8.
    const LABEL: &str = "DO $$BEGIN EXECUTE 'ALTER TYPE public.\"söng\" ADD VALUE ' || quote_literal('n' || chr(228)); END$$";
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    make(&running, "SQL_ASCII", TABLES);
    let name = database("SQL_ASCII");
    let as_it_is = [("client_encoding", "SQL_ASCII")];
    let mut own = session_with(&running, &name, &as_it_is);
    own.execute(LABEL)
        .and_then(|()| {
            own.execute(
                "INSERT INTO public.\"täble\" SELECT unnest(enum_range(NULL::public.\"söng\"))",
            )
        })
        .expect("rows");
    let expected = copied_in(&mut own, &name, "(FORMAT csv, HEADER)");
    drop(own);
    running.stop(StopMode::Fast).expect("stopped");
    let rows = &expected[&format!("{name}/public.t%C3%A4ble")];
    assert!(
        rows.contains(&b"n\xE4\n".to_vec()) && rows.contains(&"cölumn\n".into()),
        "{rows:?}"
    );

    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("raw");
    let mut options = of_database(&destination, "csv", &name);
    options.encoding = Encoding::Raw;
    assert_whole(&salvaged(&copy.pgdata, &options));
    compare(&destination, "csv", &expected);

    let destination = folder.path().join("utf8");
    let account = salvaged(&copy.pgdata, &of_database(&destination, "csv", &name));
    assert_eq!(
        (account.outcome, account.totals.partial),
        (Outcome::Damaged, 1)
    );
    let stem = destination.join(format!("{name}/public.t%C3%A4ble"));
    let text = std::fs::read_to_string(common::with_ending(&stem, "csv")).expect("a file");
    assert_eq!(text, "cölumn\ntön\n");
    let [(reason, row)] = &common::suspects(&stem)[..] else {
        panic!("one suspect row");
    };
    assert_eq!(row, "n\u{FFFD}");
    assert!(reason.contains("column cölumn"), "{reason}");
}
