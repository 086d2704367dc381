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
