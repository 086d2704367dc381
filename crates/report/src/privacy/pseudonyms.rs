//! Pseudonyms: the same name has the same one wherever it stands, under one key.
//!
//! ```text
//! relation-3f9a12cd
//! └ kind   └ SHA-256 of the key and the name, four bytes of it
//! ```
//!
//! Names of databases and tables are words that somebody can guess and try: without the key they
//! cannot be tried.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// What is named.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Kind {
    Database,
    Schema,
    Relation,
    Column,
    Constraint,
    Type,
    Role,
    Tablespace,
    Host,
    /// A directory or a file.
    Path,
    /// A value of a row.
    Value,
    /// Something that stands in a sentence.
    Name,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Database => "database",
            Kind::Schema => "schema",
            Kind::Relation => "relation",
            Kind::Column => "column",
            Kind::Constraint => "constraint",
            Kind::Type => "type",
            Kind::Role => "role",
            Kind::Tablespace => "tablespace",
            Kind::Host => "host",
            Kind::Path => "path",
            Kind::Value => "value",
            Kind::Name => "name",
        }
    }

    /// What the word before a name says that it is.
    pub(super) fn said_by(word: &str) -> Option<Kind> {
        Some(match word.to_ascii_lowercase().as_str() {
            "database" | "databases" => Kind::Database,
            "schema" => Kind::Schema,
            "relation" | "table" | "index" | "sequence" | "view" => Kind::Relation,
            "column" => Kind::Column,
            "constraint" => Kind::Constraint,
            "type" => Kind::Type,
            "role" | "user" => Kind::Role,
            "tablespace" => Kind::Tablespace,
            "host" => Kind::Host,
            _ => return None,
        })
    }
}

/// What pseudonyms follow from, beside the names.
#[derive(Clone)]
pub struct RedactionKey([u8; 32]);

impl RedactionKey {
    /// From bytes that nobody else can guess.
    pub fn from_secret(secret: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"pgclinic --redact");
        hash.update(secret);
        RedactionKey(hash.finalize().into())
    }

    /// The pseudonym of a name.
    pub(super) fn pseudonym(&self, kind: Kind, name: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(name.as_bytes());
        let hash = hash.finalize();
        let mut text = format!("{}-", kind.word());
        for byte in hash.iter().take(4) {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}
