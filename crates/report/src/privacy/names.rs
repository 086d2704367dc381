//! The names that a document has in fields of their own, for its sentences.

use std::collections::{HashMap, HashSet};

use super::paths;
use super::pseudonyms::{Kind, RedactionKey};
use super::vocabulary::Vocabulary;

/// Databases, schemas, tablespaces, roles and collations that every cluster has.
const OF_EVERY_CLUSTER: &[&str] = &[
    "postgres",
    "template0",
    "template1",
    "public",
    "pg_catalog",
    "pg_toast",
    "pg_temp",
    "information_schema",
    "pg_default",
    "pg_global",
    "pg_control",
    "default",
    "C",
    "POSIX",
];

/// What is known before a text is rewritten.
pub(super) struct Names<'a> {
    key: &'a RedactionKey,
    pub(super) vocabulary: Vocabulary,
    kinds: HashMap<String, Kind>,
    /// Of catalogs, and of their columns.
    of_the_system: HashSet<String>,
    /// Names that are more than one word, by their first letter, the longest first.
    odd: HashMap<char, Vec<(String, Kind)>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(key: &'a RedactionKey) -> Self {
        Names {
            key,
            vocabulary: Vocabulary::new(),
            kinds: HashMap::new(),
            of_the_system: HashSet::new(),
            odd: HashMap::new(),
        }
    }

    /// Takes a name in.
    pub(super) fn learn(&mut self, kind: Kind, name: &str) {
        if name.is_empty() || is_of_every_cluster(name) || self.kinds.contains_key(name) {
            return;
        }
        self.kinds.insert(name.to_owned(), kind);
        if name.chars().all(is_word) {
            return;
        }
        for written in [name.to_owned(), name.replace('"', "\"\"")] {
            if let Some(first) = written.chars().next() {
                self.odd.entry(first).or_default().push((written, kind));
            }
        }
    }

    /// Takes in the name of a catalog or of its column.
    pub(super) fn learn_of_the_system(&mut self, name: &str) {
        self.of_the_system.insert(name.to_owned());
    }

    /// All names are in.
    pub(super) fn settle(&mut self) {
        for names in self.odd.values_mut() {
            names.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            names.dedup();
        }
    }

    /// The pseudonym of a name, of the kind that is known of it.
    pub(super) fn pseudonym(&self, kind: Kind, name: &str) -> String {
        let known = self.kind_of(name).filter(|_| kind == Kind::Name);
        self.key.pseudonym(known.unwrap_or(kind), name)
    }

    pub(super) fn kind_of(&self, name: &str) -> Option<Kind> {
        self.kinds.get(name).copied()
    }

    /// The name of a thing that every cluster has.
    pub(super) fn is_of_the_system(&self, name: &str) -> bool {
        is_of_every_cluster(name)
            || self.of_the_system.contains(name)
            || name.starts_with("pg_") && self.vocabulary.has(name)
    }

    /// The name of several words that the text begins with, and its kind.
    pub(super) fn odd_at(&self, text: &str) -> Option<(&str, Kind)> {
        let names = self.odd.get(&text.chars().next()?)?;
        let (name, kind) = names.iter().find(|(name, _)| {
            let rest = text.strip_prefix(name.as_str());
            rest.is_some_and(|rest| !rest.starts_with(is_word))
        })?;
        Some((name, *kind))
    }

    /// The name of one thing.
    pub(super) fn named(&self, kind: Kind, name: &str) -> String {
        if name.is_empty() || self.is_of_the_system(name) || paths::is_number(name) {
            return name.to_owned();
        }
        self.key.pseudonym(kind, name)
    }

    /// `schema.name`, or a path where there is no name.
    pub(super) fn qualified(&self, kind: Kind, name: &str) -> String {
        if name.contains('/') {
            return paths::redacted(self, name);
        }
        match name.split_once('.') {
            Some((schema, _)) if is_system_schema(schema) => name.to_owned(),
            Some((schema, name)) => {
                let schema = self.named(Kind::Schema, schema);
                format!("{schema}.{}", self.named(kind, name))
            }
            None => self.named(kind, name),
        }
    }
}

/// A schema whose names the server gives.
pub(super) fn is_system_schema(name: &str) -> bool {
    matches!(name, "pg_catalog" | "pg_toast" | "information_schema")
        || name.starts_with("pg_toast_temp_")
}

fn is_of_every_cluster(name: &str) -> bool {
    OF_EVERY_CLUSTER.contains(&name)
        || ["pg_toast_", "pg_temp_", "pg_toast_temp_"]
            .iter()
            .filter_map(|prefix| name.strip_prefix(prefix))
            .any(|rest| paths::is_digits(rest.strip_suffix("_index").unwrap_or(rest)))
}

/// A letter of a name that is not quoted.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}
