//! What tests of a salvage share: what the server says, and what the files say.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use pgclinic_diagnose::Selection;
use pgclinic_rows::forms::form_named;
use pgclinic_rows::{
    Account, Destination, Durability, Encoding, Partial, Rows, SalvageOptions, encoded, salvage,
};
use pgclinic_servers::{ConnectOptions, Server, Session};
use pgclinic_testkit::{Quiet, open};

/// Rows, each as the server or a file has it, in any order.
pub(crate) type Lines = Vec<Vec<u8>>;

/// The salvage of a cluster in this form.
pub(crate) fn options(destination: &Path, form: &str) -> SalvageOptions {
    SalvageOptions {
        destination: Destination::Folder(destination.to_owned()),
        form: form_named(form).expect("a form"),
        rows: Rows::Live,
        generated: false,
        dropped: false,
        ddl: None,
        given: Vec::new(),
        partial: Partial::Null,
        encoding: Encoding::Utf8,
        durability: Durability::Buffered,
        resume: false,
        threads: NonZeroUsize::new(2).expect("two"),
        memory_bytes: 256 << 20,
        selection: Selection::default(),
        spec: "a test".into(),
        spill_folder: std::env::temp_dir(),
    }
}

pub(crate) fn salvaged(pgdata: &Path, options: &SalvageOptions) -> Account {
    salvage(&open(pgdata), options, &Quiet).expect("a destination")
}

/// A session that prints as the salvage does.
pub(crate) fn session(server: &Server, database: &str) -> Session {
    let settings = [
        ("DateStyle", "ISO"),
        ("IntervalStyle", "postgres"),
        ("TimeZone", "UTC"),
        ("bytea_output", "hex"),
        ("extra_float_digits", "1"),
        ("lc_monetary", "C"),
        ("row_security", "off"),
    ];
    let options = ConnectOptions {
        settings: settings
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        ..ConnectOptions::default()
    };
    server
        .connect_with(database, &options)
        .unwrap_or_else(|error| panic!("{database}: {error}"))
}

/// The tables and materialised views that people made, with what they would be written as.
const TABLES: &str = "SELECT quote_ident(nspname) || '.' || quote_ident(relname), nspname, relname, relkind FROM pg_class \
     JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'm') AND nspname !~ '^pg_' \
     AND nspname <> 'information_schema' AND relpersistence <> 't' ORDER BY 1";

/// The columns of a table with objects' names, which the salvage gives as numbers.
const NUMBERED: &str = "SELECT string_agg(quote_ident(attname) || CASE WHEN typname LIKE 'reg%' THEN '::oid' ELSE '' END, ', ' ORDER BY attnum) \
     FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid WHERE attrelid = 'TABLE'::regclass AND attnum > 0 AND NOT attisdropped \
     HAVING bool_or(typname LIKE 'reg%')";

/// What `COPY … TO` gives of every table, sorted, by file name without extension.
pub(crate) fn copied(server: &Server, database: &str, with: &str) -> BTreeMap<String, Lines> {
    let mut session = session(server, database);
    let tables = session.query(TABLES).expect("the tables");
    let mut found = BTreeMap::new();
    for table in tables {
        let [Some(quoted), Some(schema), Some(name), Some(kind)] = table.as_slice() else {
            panic!("{table:?}");
        };
        let columns = NUMBERED.replace("TABLE", &quoted.replace('\'', "''"));
        let columns = session.query_value(&columns).expect("the columns");
        let what = match (kind.as_str(), columns) {
            ("m", _) => format!("(SELECT * FROM {quoted})"),
            (_, Some(columns)) => format!("(SELECT {columns} FROM {quoted})"),
            (_, None) => quoted.clone(),
        };
        let mut bytes = Vec::new();
        session
            .copy_out(&format!("COPY {what} TO STDOUT {with}"), &mut |data| {
                bytes.extend_from_slice(data)
            })
            .unwrap_or_else(|error| panic!("{quoted}: {error}"));
        let file = format!(
            "{}/{}.{}",
            encoded(database),
            encoded(schema),
            encoded(name)
        );
        found.insert(file, lines(&bytes));
    }
    found
}

/// Lines, sorted. A line break inside a value splits it on both sides alike.
pub(crate) fn lines(bytes: &[u8]) -> Lines {
    let mut lines: Lines = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    lines.sort();
    lines
}

/// Holds the files of a salvage to what the server gave.
#[track_caller]
pub(crate) fn compare(destination: &Path, extension: &str, expected: &BTreeMap<String, Lines>) {
    for (file, expected) in expected {
        let path = destination.join(format!("{file}.{extension}"));
        let found =
            std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let found = lines(&found);
        let text = |line: Option<&Vec<u8>>| {
            line.map(|line| {
                String::from_utf8_lossy(line)
                    .chars()
                    .take(3000)
                    .collect::<String>()
            })
        };
        if let Some(at) =
            (0..found.len().max(expected.len())).find(|at| found.get(*at) != expected.get(*at))
        {
            panic!(
                "{file}: {} lines of {}\nfound    {:?}\nexpected {:?}",
                found.len(),
                expected.len(),
                text(found.get(at)),
                text(expected.get(at))
            );
        }
    }
}
