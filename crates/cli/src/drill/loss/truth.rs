//! What the server gives of every table, and what a salvage wrote of it: lines of CSV, compared as
//! sets that know how often a line is in them.

use std::collections::{BTreeMap, HashMap};
use std::iter::Sum;
use std::path::Path;

use pgclinic_salvage::encoded;
use pgclinic_servers::{ConnectOptions, Server};

use crate::exit::Failure;

/// The tables that users made, by the name that a statement takes.
const TABLES: &str = "SELECT quote_ident(nspname) || '.' || quote_ident(relname), nspname, relname FROM pg_class \
     JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind = 'r' AND nspname !~ '^pg_' \
     AND nspname <> 'information_schema' ORDER BY 1";

/// The file of the large objects, without its ending.
const OBJECTS_FILE: &str = "large_objects";

/// Each large object with its text: those of the content hold nothing else.
const LARGE_OBJECTS: &str = "SELECT oid || ',' || convert_from(lo_get(oid), 'UTF8') \
     FROM pg_largeobject_metadata ORDER BY oid";

/// Settings under which the server prints values as a salvage does.
const SETTINGS: &[(&str, &str)] = &[
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("extra_float_digits", "1"),
];

/// How often each line is there.
pub(super) type Lines = HashMap<Vec<u8>, u64>;

/// The lines of every table by its file below the destination, without the ending.
#[derive(Default)]
pub(super) struct Truth {
    tables: BTreeMap<String, Lines>,
}

/// What was written, beside the truth.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Comparison {
    pub(super) rows: u64,
    pub(super) written: u64,
    pub(super) wrong: u64,
}

impl Truth {
    /// Reads every table of every database of a running server.
    pub(super) fn read(server: &Server) -> Result<Self, Failure> {
        let mut truth = Truth::default();
        let mut first = server.connect("postgres")?;
        let databases = first.query(
            "SELECT datname FROM pg_database WHERE datallowconn AND datname !~ '^template' ORDER BY 1",
        )?;
        for database in databases.into_iter().flatten().flatten() {
            truth.read_database(server, &database)?;
        }
        Ok(truth)
    }

    fn read_database(&mut self, server: &Server, database: &str) -> Result<(), Failure> {
        let settings = SETTINGS.iter();
        let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let options = ConnectOptions {
            settings: settings.collect(),
            ..ConnectOptions::default()
        };
        let mut session = server.connect_with(database, &options)?;
        for table in session.query(TABLES)? {
            let [Some(quoted), Some(schema), Some(name)] = table.as_slice() else {
                continue;
            };
            let mut bytes = Vec::new();
            session.copy_out(
                &format!("COPY {quoted} TO STDOUT (FORMAT csv)"),
                &mut |data| {
                    bytes.extend_from_slice(data);
                },
            )?;
            let file = format!(
                "{}/{}.{}",
                encoded(database),
                encoded(schema),
                encoded(name)
            );
            self.tables.insert(file, lines_of(&bytes));
        }
        let mut objects = Lines::new();
        for object in session
            .query(LARGE_OBJECTS)?
            .into_iter()
            .flatten()
            .flatten()
        {
            objects.insert(object.into_bytes(), 1);
        }
        if !objects.is_empty() {
            let file = format!("{}/{OBJECTS_FILE}", encoded(database));
            self.tables.insert(file, objects);
        }
        Ok(())
    }

    /// Holds what a salvage wrote into this directory against it, table by table.
    pub(super) fn compared_with(&self, written: &Path) -> BTreeMap<String, Comparison> {
        let compared = |(file, lines): (&String, &Lines)| {
            let holds_objects = file.ends_with(OBJECTS_FILE);
            let good = if holds_objects {
                members_of(&written.join(format!("{file}.tar")))
            } else {
                lines_of(&rows_of(&written.join(format!("{file}.csv"))))
            };
            let suspect = rows_of(&written.join(format!("{file}.suspect.csv")));
            let mut left = lines.clone();
            let missing = take(&mut left, good);
            // An object with a gap stands under its number, and the account must name the file.
            let wrong = if holds_objects { 0 } else { missing };
            // Suspects are for whoever looks at them: they replace no row and make none wrong.
            take(&mut left, suspects_of(&suspect));
            let rows = lines.values().sum::<u64>();
            let written = rows - left.values().sum::<u64>();
            let one = Comparison {
                rows,
                written,
                wrong,
            };
            (file.clone(), one)
        };
        self.tables.iter().map(compared).collect()
    }
}

impl Comparison {
    pub(super) fn lost(&self) -> u64 {
        self.rows.saturating_sub(self.written)
    }
}

impl Sum for Comparison {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Comparison::default(), |sum, one| Comparison {
            rows: sum.rows + one.rows,
            written: sum.written + one.written,
            wrong: sum.wrong + one.wrong,
        })
    }
}

/// The large objects of a tar file, each with what it holds.
fn members_of(file: &Path) -> Lines {
    const BLOCK: usize = 512;
    let bytes = std::fs::read(file).unwrap_or_default();
    let (mut members, mut rest) = (Lines::new(), bytes.as_slice());
    while let Some((head, content)) = rest.split_at_checked(BLOCK) {
        let text = |range| {
            let field = head.get(range).unwrap_or_default();
            let text = String::from_utf8_lossy(field);
            text.trim_end_matches('\0').to_owned()
        };
        let (name, size) = (text(0..100), usize::from_str_radix(&text(124..135), 8));
        let Some(size) = size.ok().filter(|_| !name.is_empty()) else {
            break;
        };
        if name != "restore.sql" {
            let mut member = format!("{name},").into_bytes();
            member.extend_from_slice(content.get(..size).unwrap_or_default());
            members.insert(member, 1);
        }
        rest = content
            .get(size.next_multiple_of(BLOCK)..)
            .unwrap_or_default();
    }
    members
}

/// What stands after the line with the names.
fn rows_of(file: &Path) -> Vec<u8> {
    let bytes = std::fs::read(file).unwrap_or_default();
    let rows = bytes.splitn(2, |byte| *byte == b'\n').nth(1);
    rows.unwrap_or_default().to_vec()
}

/// Takes lines away, and gives how many were not there.
fn take(left: &mut Lines, lines: Lines) -> u64 {
    let mut missing = 0;
    for (line, times) in lines {
        let there = left.get_mut(&line);
        let taken = there.as_deref().copied().unwrap_or(0).min(times);
        if let Some(there) = there {
            *there -= taken;
        }
        missing += times - taken;
    }
    missing
}

/// The lines without the reason in front, which may stand between quotes.
fn suspects_of(bytes: &[u8]) -> Lines {
    let mut lines = Lines::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let end = match line.strip_prefix(b"\"") {
            Some(rest) => rest
                .windows(2)
                .position(|two| two == b"\",")
                .map(|at| at + 3),
            None => line.iter().position(|byte| *byte == b',').map(|at| at + 1),
        };
        let row = end.and_then(|end| line.get(end..)).unwrap_or(line);
        *lines.entry(row.to_vec()).or_default() += 1;
    }
    lines
}

fn lines_of(bytes: &[u8]) -> Lines {
    let mut lines = Lines::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        *lines.entry(line.to_vec()).or_default() += 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_as_often_as_it_is_there() {
        let scratch = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(scratch.path().join("d")).expect("a directory");
        std::fs::write(scratch.path().join("d/s.t.csv"), "a\n1\n1\n3\n").expect("a file");
        let tables = BTreeMap::from([("d/s.t".to_owned(), lines_of(b"1\n2\n1\n1\n"))]);
        let seen = Truth { tables }.compared_with(scratch.path());
        let expected = Comparison {
            rows: 4,
            written: 2,
            wrong: 1,
        };
        assert_eq!(seen, BTreeMap::from([("d/s.t".to_owned(), expected)]));
    }
}
