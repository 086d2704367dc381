//! A database, as plain data.

use pgclinic_format::types::Tid;
use pgclinic_format::{MultiXactId, Oid, Xid};

use crate::files::DatabaseDirectory;

/// A database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Database {
    /// OID; 0 stands for the shared relations.
    pub oid: Oid,
    /// Name; `None` when only its folder is known.
    pub name: Option<String>,
    /// `encoding`, as the server numbers it (6 is UTF8).
    pub encoding: Option<i32>,
    /// Its default tablespace.
    pub tablespace: Oid,
    /// Dropping it was interrupted: its files may be gone.
    pub invalid: bool,
    /// `datfrozenxid`: no row of it needs the status of an older transaction.
    pub frozen_xid: Option<Xid>,
    /// `datminmxid`: no row of it needs the members of an older multixact.
    pub min_multi: Option<MultiXactId>,
}

impl Database {
    /// One of which only a folder is known.
    pub(crate) fn unnamed(home: &DatabaseDirectory) -> Self {
        Database {
            oid: home.database,
            name: None,
            encoding: None,
            tablespace: home.tablespace,
            invalid: false,
            frozen_xid: None,
            min_multi: None,
        }
    }
}

/// A database whose row in `pg_database` is lost, and whose directory is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostDatabase {
    /// OID.
    pub oid: Oid,
    /// Its name, where the index by name still has it.
    pub name: Option<String>,
    /// Where its row stood.
    pub row: Tid,
    /// The page of its row could not be read: nobody knows whether the row is lost.
    pub is_unread: bool,
}
