//! The server that runs on the files.

use pgclinic_format::{BlockNo, Fork, Oid};

/// A page to ask the server for.
#[derive(Clone, Copy, Debug)]
pub struct AskedPage<'a> {
    /// Name of its database; shared relations have none.
    pub database: Option<&'a str>,
    /// OID of the tablespace.
    pub tablespace: Oid,
    /// Number in the name of the file.
    pub filenode: Oid,
    /// Fork.
    pub fork: Fork,
    /// Block through all segments.
    pub block: BlockNo,
    /// It is of the main fork of a table.
    pub holds_rows: bool,
}

/// What the server says of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerSays {
    /// No relation has the file any more.
    Gone,
    /// It cannot read the page, in its own words.
    Refuses(String),
    /// It reads the page, out of its memory or the file.
    Reads,
}

/// A running server, for who knows of time and how to ask it.
pub trait LiveServer: Sync {
    /// Lets the server get on: long enough that a page that was being written is whole.
    fn wait(&self);

    /// Has the server write all that it holds in memory, where somebody asked for that and can.
    fn checkpoint(&self) {}

    /// Asks the server for a page; nothing where nobody can.
    fn ask(&self, _page: &AskedPage<'_>) -> Option<ServerSays> {
        None
    }
}
