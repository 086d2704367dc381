//! `--collate-with`: a scratch server of the machine's own programs tells how its libraries order
//! text. Nothing of the target is shown to it but the texts that are compared.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;

use pgclinic_cluster::{Collation, CollationProvider, Collator};
use pgclinic_servers::{
    Checksums, InitOptions, RunAs, Scratch, Server, Session, StartOptions, Wanted, find, initdb,
};

use crate::exit::Failure;

/// A server that orders text. Its folder goes away with it.
pub(crate) struct ServerCollator {
    inner: Mutex<Inner>,
}

struct Inner {
    /// By encoding; nothing for one that this server cannot have.
    sessions: HashMap<i32, Option<Session>>,
    /// Name and version here, by encoding and collation; nothing for one that is not to be had.
    known: HashMap<(i32, Key), Option<KnownCollation>>,
    server: Server,
    _scratch: Scratch,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    is_icu: bool,
    locale: String,
    deterministic: bool,
}

#[derive(Clone)]
struct KnownCollation {
    name: String,
    version: Option<String>,
}

impl ServerCollator {
    /// Starts a server of this major from the programs in a folder.
    pub(crate) fn start(bindir: &Path, major: u16) -> Result<Self, Failure> {
        let failed = |error: pgclinic_servers::Error| {
            Failure::new(format!("no server to collate with: {error}"))
        };
        let wanted = Wanted {
            bindir: Some(bindir.to_path_buf()),
            major: Some(major),
            ..Wanted::default()
        };
        let installation = find(&wanted, &mut |_| {}).map_err(failed)?;
        let run_as = RunAs::new(None).map_err(failed)?;
        let scratch = Scratch::new(&run_as, None).map_err(failed)?;
        let pgdata = scratch.folder("collate").map_err(failed)?;
        let options = InitOptions {
            checksums: Checksums::Off,
            encoding: "SQL_ASCII".to_owned(),
            ..InitOptions::default()
        };
        initdb(&installation, &run_as, &pgdata, &options).map_err(failed)?;
        let server = Server::start(&installation, &run_as, &pgdata, &StartOptions::default());
        Ok(ServerCollator {
            inner: Mutex::new(Inner {
                sessions: HashMap::new(),
                known: HashMap::new(),
                server: server.map_err(failed)?,
                _scratch: scratch,
            }),
        })
    }
}

impl Collator for ServerCollator {
    fn version(&self, encoding: i32, collation: &Collation) -> Option<String> {
        self.inner.lock().ok()?.known(encoding, collation)?.version
    }

    fn compare(
        &self,
        encoding: i32,
        collation: &Collation,
        pairs: &[(Vec<u8>, Vec<u8>)],
    ) -> Option<Vec<Ordering>> {
        self.inner.lock().ok()?.compare(encoding, collation, pairs)
    }
}

impl Inner {
    /// A session in a database of this encoding.
    fn session(&mut self, encoding: i32) -> Option<&mut Session> {
        if !self.sessions.contains_key(&encoding) {
            let session = self.open(encoding);
            self.sessions.insert(encoding, session);
        }
        self.sessions.get_mut(&encoding)?.as_mut()
    }

    fn open(&self, encoding: i32) -> Option<Session> {
        let database = format!("encoding_{encoding}");
        let mut session = self.server.connect("postgres").ok()?;
        let name = session
            .query_value(&format!("SELECT pg_encoding_to_char({encoding})"))
            .ok()??;
        let create = format!(
            "CREATE DATABASE {database} TEMPLATE template0 ENCODING '{}' LC_COLLATE 'C' LC_CTYPE 'C'",
            name.replace('\'', "''")
        );
        session.execute(&create).ok()?;
        self.server.connect(&database).ok()
    }

    /// The collation, made here if it can be had.
    fn known(&mut self, encoding: i32, collation: &Collation) -> Option<KnownCollation> {
        let key = Key {
            is_icu: collation.provider == CollationProvider::Icu,
            locale: collation.locale.clone()?,
            deterministic: collation.deterministic,
        };
        let is_foreign = key.is_icu || collation.provider == CollationProvider::Libc;
        if !is_foreign || collation.has_rules {
            return None;
        }
        let slot = (encoding, key);
        if !self.known.contains_key(&slot) {
            let name = format!("collation_{}", self.known.len());
            let made = self
                .session(encoding)
                .and_then(|session| make(session, name, &slot.1));
            self.known.insert(slot.clone(), made);
        }
        self.known.get(&slot)?.clone()
    }

    fn compare(
        &mut self,
        encoding: i32,
        collation: &Collation,
        pairs: &[(Vec<u8>, Vec<u8>)],
    ) -> Option<Vec<Ordering>> {
        let known = self.known(encoding, collation)?;
        if pairs.is_empty() {
            return Some(Vec::new());
        }
        let session = self.session(encoding)?;
        let rows = session.query(&question(&known.name, pairs)).ok()?;
        let answers = rows.iter().map(|row| {
            let answer: i32 = row.first()?.as_deref()?.parse().ok()?;
            Some(answer.cmp(&0))
        });
        let answers: Option<Vec<Ordering>> = answers.collect();
        answers.filter(|answers| answers.len() == pairs.len())
    }
}

fn make(session: &mut Session, name: String, key: &Key) -> Option<KnownCollation> {
    let provider = if key.is_icu { "icu" } else { "libc" };
    let locale = key.locale.replace('\'', "''");
    let deterministic = key.deterministic;
    let create = format!(
        "SET standard_conforming_strings = on; CREATE COLLATION {name} \
         (provider = {provider}, locale = '{locale}', deterministic = {deterministic})"
    );
    session.execute(&create).ok()?;
    let version = format!("SELECT pg_collation_actual_version('{name}'::regcollation)");
    let version = session.query_value(&version).ok()?;
    Some(KnownCollation { name, version })
}

/// One row a pair, in their order. The texts are checked as the database's encoding asks.
fn question(collation: &str, pairs: &[(Vec<u8>, Vec<u8>)]) -> String {
    let mut sql = format!(
        "SELECT bttextcmp(convert_from(a, getdatabaseencoding()) COLLATE {collation}, \
         convert_from(b, getdatabaseencoding()) COLLATE {collation}) FROM (VALUES "
    );
    for (number, (a, b)) in pairs.iter().enumerate() {
        if number > 0 {
            sql.push(',');
        }
        let _ = write!(sql, "({number},'\\x");
        push_hex(&mut sql, a);
        sql.push_str("'::bytea,'\\x");
        push_hex(&mut sql, b);
        sql.push_str("'::bytea)");
    }
    sql.push_str(") pairs (number, a, b) ORDER BY number");
    sql
}

fn push_hex(sql: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(sql, "{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_asked_in_one_question() {
        let sql = question("c", &[(b"a'".to_vec(), b"".to_vec())]);
        assert!(
            sql.contains("VALUES (0,'\\x6127'::bytea,'\\x'::bytea)) pairs"),
            "{sql}"
        );
    }
}
