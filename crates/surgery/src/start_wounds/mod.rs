//! Ways in which a server comes not to start: what is done to the files, what the server says then,
//! which page of the textbook explains it, and which cures the plan has.
//!
//! They are for clusters as the rehearsals make them: with a replication slot `one`, a prepared
//! transaction, multixacts, and, where the server crashed, records after the last checkpoint.

mod control_file;
mod directories;
mod hurt;
mod small_files;
mod status;
mod wal;

use std::io;
use std::path::Path;

use pgclinic_model::plan::Safety;

/// How the server ended before the wound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before {
    /// Without a shutdown: recovery is due.
    Crash,
    /// With one.
    Shutdown,
}

impl Before {
    /// As a report has it.
    pub fn name(self) -> &'static str {
        match self {
            Before::Crash => "crash",
            Before::Shutdown => "shutdown",
        }
    }
}

/// Settings of the servers that are hurt.
pub const SETTINGS: [(&str, &str); 3] = [
    ("max_prepared_transactions", "5"),
    ("autovacuum", "off"),
    ("max_replication_slots", "5"),
];

/// What they are filled with: deleted and frozen rows, long values, multixacts, a slot, and a
/// transaction that is prepared and stays so.
pub const LOAD: &[&str] = &[
    "CREATE TABLE plain (id int PRIMARY KEY, body text)",
    "INSERT INTO plain SELECT g, repeat('x', g % 900) FROM generate_series(1, 3000) g",
    "CREATE TABLE long (id int, body text)",
    "ALTER TABLE long ALTER body SET STORAGE EXTERNAL",
    "INSERT INTO long SELECT g, repeat('y', 9000) FROM generate_series(1, 20) g",
    "CREATE TABLE shared (id int)",
    "INSERT INTO shared SELECT generate_series(1, 50)",
    "BEGIN",
    "SELECT id FROM shared WHERE id = 1 FOR SHARE",
    "SAVEPOINT one",
    "UPDATE shared SET id = id WHERE id = 1",
    "COMMIT",
    "BEGIN",
    "SELECT id FROM shared WHERE id = 2 FOR SHARE",
    "SAVEPOINT one",
    "UPDATE shared SET id = id WHERE id = 2",
    "COMMIT",
    "BEGIN",
    "SELECT id FROM shared WHERE id = 3 FOR SHARE",
    "SAVEPOINT one",
    "UPDATE shared SET id = id WHERE id = 3",
    "COMMIT",
    "SELECT pg_create_physical_replication_slot('one', false)",
    "VACUUM (FREEZE) long",
    "DELETE FROM plain WHERE id % 10 = 0",
    "BEGIN",
    "INSERT INTO shared VALUES (777)",
    "PREPARE TRANSACTION 'promised'",
];

/// In progress when the server ends, in a session of its own: the checkpoint that follows brings
/// half of it to disk.
pub const LOAD_UNFINISHED: &[&str] = &[
    "BEGIN",
    "INSERT INTO plain SELECT g, 'open' FROM generate_series(10001, 10400) g",
    "DELETE FROM long WHERE id = 3",
];

/// Rows that only WAL has.
pub const LOAD_AFTER_CHECKPOINT: &str =
    "INSERT INTO plain SELECT g, 'late' FROM generate_series(20001, 20200) g";

/// The tables, in the schema public of the database postgres.
pub const TABLES: [&str; 3] = ["plain", "long", "shared"];

/// A way in which a server comes not to start, or lets nobody in.
#[derive(Clone, Copy, Debug)]
pub struct Wound {
    /// In words.
    pub name: &'static str,
    /// How the server has to have ended.
    pub before: Before,
    /// Does it to a data directory.
    pub hurt: fn(&Path) -> io::Result<()>,
    /// What the server says, in its log or to who connects.
    pub says: &'static str,
    /// The page of the textbook.
    pub page: &'static str,
    /// The cures of the plan, in its order.
    pub cures: &'static [(&'static str, Safety)],
}

/// All of them.
pub fn wounds() -> impl Iterator<Item = &'static Wound> {
    let all = [
        control_file::CONTROL_FILES,
        wal::WAL,
        status::STATUS,
        small_files::SMALL_FILES,
        directories::DIRECTORIES,
    ];
    all.into_iter().flatten()
}
