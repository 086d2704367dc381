//! What the program knows of the machine it runs on; used of servers that are on it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The memory of one process, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackendMemory {
    /// Its own, which would be free if it ended.
    pub private: u64,
    /// Its own, and its part of each page that it shares.
    pub proportional: u64,
}

/// The ways to ask this machine.
#[derive(Clone, Copy)]
pub struct Machine {
    /// The memory of a process.
    pub memory_of: fn(u32) -> io::Result<BackendMemory>,
    /// Facts by name of the machine and of the file system below a directory.
    pub facts: fn(&Path) -> BTreeMap<String, String>,
    /// What to change about the machine by these facts, each as a sentence.
    pub advice: fn(&BTreeMap<String, String>) -> Vec<String>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Machine")
    }
}
