//! What tests of a salvage share: what the server says, and what the files say.
#![allow(dead_code, reason = "each test file takes what it needs")]

pub(crate) mod again;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pgclinic_model::Selection;
use pgclinic_model::document::SalvageReport;
use pgclinic_salvage::formats::form_named;
use pgclinic_salvage::{
    Destination, Durability, Encoding, LOCK_WAIT, Partial, Rows, SalvageOptions, TextStyle,
    encoded, salvage,
};
use pgclinic_servers::{ConnectOptions, Server, Session};
use pgclinic_spill::MemoryPlan;
use pgclinic_testkit::{Quiet, open, run_as};

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
        without_catalogs: false,
        partial: Partial::Null,
        verify: false,
        encoding: Encoding::Utf8,
        text: TextStyle::default(),
        durability: Durability::Buffered,
        resume: false,
        threads: NonZeroUsize::new(2).expect("two"),
        memory: MemoryPlan::default(),
        selection: Selection::default(),
        spec: "a test".into(),
        spill_folder: std::env::temp_dir(),
        lock_wait: LOCK_WAIT,
    }
}

pub(crate) fn salvaged(pgdata: &Path, options: &SalvageOptions) -> SalvageReport {
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
    ];
    session_with(server, database, &settings)
}

/// A session with these settings.
pub(crate) fn session_with(server: &Server, database: &str, settings: &[(&str, &str)]) -> Session {
    let settings = settings.iter().chain(&[("row_security", "off")]);
    let options = ConnectOptions {
        settings: settings
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
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

/// What `COPY … TO` gives of every table, sorted, by file name without extension.
pub(crate) fn copied(server: &Server, database: &str, with: &str) -> BTreeMap<String, Lines> {
    copied_in(&mut session(server, database), database, with)
}

/// The same in a session of the caller's.
pub(crate) fn copied_in(
    session: &mut Session,
    database: &str,
    with: &str,
) -> BTreeMap<String, Lines> {
    let tables = session.query(TABLES).expect("the tables");
    let mut found = BTreeMap::new();
    for table in tables {
        let [Some(quoted), Some(schema), Some(name), Some(kind)] = table.as_slice() else {
            panic!("{table:?}");
        };
        let what = match kind.as_str() {
            "m" => format!("(SELECT * FROM {quoted})"),
            _ => quoted.clone(),
        };
        let mut bytes = Vec::new();
        let copied = session.copy_out(&format!("COPY {what} TO STDOUT {with}"), &mut |data| {
            bytes.extend_from_slice(data)
        });
        match copied {
            Ok(_) => {}
            // There are types that the server itself does not write so.
            Err(error) if error.to_string().contains("no binary output function") => continue,
            Err(error) => panic!("{quoted}: {error}"),
        }
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

/// Lines, sorted. A line break inside a value splits it on both sides alike. Rows, where they are
/// binary.
pub(crate) fn lines(bytes: &[u8]) -> Lines {
    if let Some(rows) = bytes.strip_prefix(b"PGCOPY\n\xFF\r\n\0\0\0\0\0\0\0\0\0") {
        let mut rows = binary_rows(rows);
        rows.sort();
        return rows;
    }
    let mut lines: Lines = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    lines.sort();
    lines
}

/// The rows of a binary file without its head, and its end as the last one.
fn binary_rows(mut rest: &[u8]) -> Lines {
    let mut rows = Lines::new();
    while !rest.is_empty() {
        let columns = i16::from_be_bytes(*rest.first_chunk().expect("a count"));
        let mut end = 2;
        for _ in 0..columns {
            let length = rest.get(end..).and_then(|rest| rest.first_chunk());
            let length = i32::from_be_bytes(*length.expect("a length"));
            end += 4 + usize::try_from(length).unwrap_or(0);
        }
        let (row, behind) = rest.split_at(end);
        rows.push(row.to_vec());
        rest = behind;
    }
    rows
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

/// The name of a table's file: a dot stands between schema and table as well.
pub(crate) fn with_ending(stem: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}.{ending}", stem.display()))
}

/// The suspect rows beside a table's file, each with its reason; none where there is no such file.
pub(crate) fn suspects(stem: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(with_ending(stem, "suspect.csv")).unwrap_or_default();
    let rows = text.lines().skip(1).map(|line| {
        let (reason, row) = match line.strip_prefix('"') {
            Some(rest) => rest.split_once("\",").expect("a reason"),
            None => line.split_once(',').expect("a reason"),
        };
        (reason.to_owned(), row.to_owned())
    });
    rows.collect()
}

/// The rows of a file of CSV, and the suspect ones beside it.
pub(crate) fn with_suspects(stem: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(with_ending(stem, "csv")).expect("a file");
    let good = text.lines().skip(1).map(str::to_owned);
    let suspect = suspects(stem).into_iter().map(|(_, row)| row);
    good.chain(suspect).collect()
}

/// A directory that the server's user may look into.
pub(crate) fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a directory");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("open to all");
    folder
}

/// Has psql read `load.sql` of this directory, and gives what it says against it.
pub(crate) fn psql(tool: &Path, server: &Server, database: &str, folder: &Path) -> String {
    let mut command: Command = run_as().command(tool);
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
