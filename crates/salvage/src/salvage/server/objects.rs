//! Large objects on their way into a server, under the numbers that they had: many small ones in a
//! transaction, one large one in a transaction of its own. The ledger knows the last one that is
//! there.

use std::collections::BTreeSet;

use pgclinic_cluster::Cluster;
use pgclinic_format::Oid;
use pgclinic_model::Progress;
use pgclinic_model::document::SalvageReport;
use pgclinic_model::plural;
use pgclinic_servers::{Session, SqlError};

use super::super::error::SalvageError;
use super::super::large_objects::{InOrder, Objects};
use super::super::plan::not_salvaged;
use super::{IS_THERE, is_of_the_server, ledger};
use crate::schema::{CatalogRoom, each_object_detail};

/// Bytes of objects that go in one statement, and about as many in one transaction.
const BATCH_BYTES: usize = 1 << 20;
/// Objects of one transaction: each takes a lock.
const BATCH_OBJECTS: usize = 1000;
/// Statements about owners, rights and comments that are sent at once.
const DETAILS: usize = 500;

/// What an object of the destination has: it is created, then its pages are put where they belong.
struct Batch<'s> {
    session: &'s mut Session,
    sql: String,
    is_open: bool,
    bytes: usize,
    objects: usize,
    /// Objects whose numbers are used already, since the last commit.
    left: Vec<Oid>,
}

fn failed(source: SqlError) -> SalvageError {
    SalvageError::server("load large objects", source)
}

/// What an earlier run did.
pub(super) struct Before {
    /// The last object that it loaded.
    pub(super) loaded: Option<Oid>,
    /// Those before it whose numbers the destination used already.
    pub(super) left: Vec<Oid>,
}

/// Loads the objects that an earlier run did not load. Says which were left because the destination
/// uses their numbers; nothing when somebody interrupts.
pub(super) fn load(
    objects: Objects,
    database: String,
    session: &mut Session,
    before: Before,
    progress: &dyn Progress,
    account: &mut SalvageReport,
) -> Result<Option<BTreeSet<Oid>>, SalvageError> {
    let Before { loaded, left } = before;
    let there = numbers_there(session, loaded).map_err(failed)?;
    let mut own = objects.account(database);
    own.file = "pg_catalog.pg_largeobject".into();
    let InOrder { sizes, mut pages } = objects.in_order()?;
    let mut batch = Batch::new(session);
    let mut refused: BTreeSet<Oid> = left.into_iter().collect();
    for (oid, size) in &sizes {
        let is_there = there.contains(oid) || refused.contains(oid);
        let is_wanted = !is_there && loaded.is_none_or(|last| *oid > last);
        if is_wanted {
            batch.create(*oid)?;
        }
        while let Some(page) = pages.next_of(*oid)? {
            if is_wanted {
                batch.put(*oid, page.start, &page.data)?;
            }
        }
        if is_wanted {
            batch.end_object(*oid)?;
        }
        if is_there {
            if there.contains(oid) {
                refused.insert(*oid);
                batch.left.push(*oid);
            }
        } else {
            own.objects += 1;
            own.bytes += size;
        }
        if progress.is_interrupted() {
            batch.commit(*oid)?;
            return Ok(None);
        }
    }
    if let Some(last) = sizes.keys().last() {
        batch.commit(*last)?;
    }
    own.file_bytes = own.bytes;
    own.doubtful = pages.into_doubtful();
    if let Some(first) = refused.first() {
        let what = format!(
            "{}, the first of them {first}",
            plural(refused.len(), "large object")
        );
        let why = "the destination has objects with these numbers, and they are left as they are";
        account.not_salvaged.push(not_salvaged(&what, why));
    }
    account.large_objects.push(own);
    Ok(Some(refused))
}

/// Objects of the destination that no earlier run loaded.
fn numbers_there(session: &mut Session, loaded: Option<Oid>) -> Result<BTreeSet<Oid>, SqlError> {
    let last = loaded.unwrap_or(0);
    let question = format!("SELECT oid FROM pg_catalog.pg_largeobject_metadata WHERE oid > {last}");
    let rows = session.query(&question)?.into_iter().flatten().flatten();
    Ok(rows.filter_map(|oid| oid.parse().ok()).collect())
}

impl<'s> Batch<'s> {
    fn new(session: &'s mut Session) -> Self {
        Batch {
            session,
            sql: String::new(),
            is_open: false,
            bytes: 0,
            objects: 0,
            left: Vec::new(),
        }
    }

    fn create(&mut self, oid: Oid) -> Result<(), SalvageError> {
        if !self.is_open {
            self.sql.push_str("BEGIN;\n");
            self.is_open = true;
        }
        self.sql
            .push_str(&format!("SELECT pg_catalog.lo_create({oid});\n"));
        self.objects += 1;
        self.send_if_long()
    }

    fn put(&mut self, oid: Oid, start: u64, data: &[u8]) -> Result<(), SalvageError> {
        self.sql.push_str("SELECT pg_catalog.lo_put(");
        self.sql.push_str(&format!("{oid}, {start}, "));
        self.sql.push_str("pg_catalog.decode('");
        for byte in data {
            self.sql.push(digit(byte >> 4));
            self.sql.push(digit(byte & 15));
        }
        self.sql.push_str("', 'hex'));\n");
        self.bytes += data.len();
        self.send_if_long()
    }

    fn send_if_long(&mut self) -> Result<(), SalvageError> {
        if self.sql.len() > BATCH_BYTES {
            self.send()
        } else {
            Ok(())
        }
    }

    fn send(&mut self) -> Result<(), SalvageError> {
        let sent = self.session.execute(&self.sql);
        self.sql.clear();
        sent.map_err(failed)
    }

    /// An object is whole: time for the next transaction, perhaps.
    fn end_object(&mut self, oid: Oid) -> Result<(), SalvageError> {
        if self.bytes > BATCH_BYTES || self.objects >= BATCH_OBJECTS {
            self.commit(oid)
        } else {
            Ok(())
        }
    }

    /// Ends the transaction, if one is open, with a note of the last object.
    fn commit(&mut self, last: Oid) -> Result<(), SalvageError> {
        if !self.is_open {
            return Ok(());
        }
        let left = std::mem::take(&mut self.left);
        self.sql.push_str(&ledger::objects_up_to(last, &left));
        self.sql.push_str(";\nCOMMIT;\n");
        self.send()?;
        (self.is_open, self.bytes, self.objects) = (false, 0, 0);
        Ok(())
    }
}

/// A hexadecimal digit of a number below 16.
fn digit(half: u8) -> char {
    char::from_digit(u32::from(half), 16).unwrap_or('0')
}

/// Gives the objects their owners, rights and comments, but for those that were `left`; what the
/// server refuses is told.
pub(super) fn describe(
    (cluster, database): (&Cluster, Oid),
    room: &CatalogRoom,
    left: &BTreeSet<Oid>,
    session: &mut Session,
    account: &mut SalvageReport,
) -> Result<(), SalvageError> {
    let mut waiting: Vec<(String, String)> = Vec::new();
    let left: BTreeSet<String> = left
        .iter()
        .map(|oid| format!("LARGE OBJECT {oid}"))
        .collect();
    let mut each = |what: &str, detail: Result<String, String>| {
        if left.contains(what) {
            return Ok(());
        }
        match detail {
            Ok(sql) => waiting.push((what.to_owned(), sql)),
            Err(why) => account.not_salvaged.push(not_salvaged(what, &why)),
        }
        if waiting.len() < DETAILS {
            Ok(())
        } else {
            run(session, &mut waiting, account)
        }
    };
    each_object_detail(cluster, database, room, &mut each)?;
    run(session, &mut waiting, account)
}

/// All at once, else one by one.
fn run(
    session: &mut Session,
    statements: &mut Vec<(String, String)>,
    account: &mut SalvageReport,
) -> Result<(), SalvageError> {
    let all: String = statements
        .iter()
        .map(|(_, sql)| format!("{sql}\n"))
        .collect();
    if session.execute(&all).is_ok() {
        statements.clear();
        return Ok(());
    }
    for (what, sql) in statements.drain(..) {
        let Err(error) = session.execute(&sql) else {
            continue;
        };
        let Some(message) = error.message().filter(|_| !session.is_over()) else {
            return Err(failed(error));
        };
        if is_of_the_server(message) {
            return Err(failed(error));
        }
        if !IS_THERE.contains(&message.sqlstate.as_str()) {
            account
                .not_salvaged
                .push(not_salvaged(&what, &message.message));
        }
    }
    Ok(())
}
