//! Which part of a cluster was asked for.

use std::ops::Range;

use pgclinic_format::{Fork, Oid};
use serde::{Deserialize, Serialize};

use crate::document::Place;

/// A pattern with `*` for any run and `?` for any one character.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// Any text is a pattern.
    pub fn new(pattern: impl Into<String>) -> Self {
        Glob(pattern.into())
    }

    /// The whole text fits the pattern.
    pub fn matches(&self, text: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let text: Vec<char> = text.chars().collect();
        let (mut at, mut from) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while from < text.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, from));
                    at += 1;
                }
                Some(wanted) if *wanted == '?' || text.get(from) == Some(wanted) => {
                    at += 1;
                    from += 1;
                }
                _ => {
                    let Some((star_at, star_from)) = star else {
                        return false;
                    };
                    at = star_at + 1;
                    from = star_from + 1;
                    star = Some((star_at, from));
                }
            }
        }
        pattern
            .get(at..)
            .unwrap_or_default()
            .iter()
            .all(|rest| *rest == '*')
    }
}

/// Empty lists take everything.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Databases by name or OID.
    pub databases: Vec<Glob>,
    /// Relations by `schema.name`, or by name alone in any schema.
    pub relations: Vec<Glob>,
    /// Numbers in file names.
    pub filenodes: Vec<Oid>,
    /// Forks.
    pub forks: Vec<Fork>,
    /// Blocks, half-open.
    pub blocks: Option<Range<u64>>,
}

impl Selection {
    /// Nothing was left out.
    pub fn is_everything(&self) -> bool {
        *self == Selection::default()
    }

    /// Databases are asked for, and nothing smaller.
    pub fn is_of_whole_databases(&self) -> bool {
        let databases = self.databases.clone();
        let whole = Selection {
            databases,
            ..Selection::default()
        };
        *self == whole
    }

    /// What a later run must have asked for as well to go on after this one: `everything`, or the
    /// selection as JSON.
    pub fn resume_key(&self) -> String {
        if self.is_everything() {
            "everything".into()
        } else {
            serde_json::json!(self).to_string()
        }
    }

    /// The database of this number, and of this name where it is known, is asked for.
    pub fn takes_database(&self, oid: Oid, name: Option<&str>) -> bool {
        let number = oid.to_string();
        let fits =
            |glob: &Glob| name.is_some_and(|name| glob.matches(name)) || glob.matches(&number);
        self.databases.is_empty() || self.databases.iter().any(fits)
    }

    /// The relation of this name is asked for.
    pub fn takes_name(&self, schema: &str, name: &str) -> bool {
        self.takes_names(Some((schema, name)))
    }

    /// A pattern asks for the relation by its schema: `pg_catalog.*` does, `*.*` and `pg_class` do
    /// not.
    pub fn names_schema_of(&self, schema: &str, name: &str) -> bool {
        let full = format!("{schema}.{name}");
        // No schema has this name.
        let elsewhere = format!("\0.{name}");
        let mut globs = self.relations.iter();
        globs.any(|glob| glob.0.contains('.') && glob.matches(&full) && !glob.matches(&elsewhere))
    }

    /// The fork of this file, and of a relation of this schema and name where they are known, is
    /// asked for.
    pub fn takes_fork(&self, filenode: Oid, fork: Fork, names: Option<(&str, &str)>) -> bool {
        let by_number = self.filenodes.is_empty() || self.filenodes.contains(&filenode);
        let by_fork = self.forks.is_empty() || self.forks.contains(&fork);
        by_number && by_fork && self.takes_names(names)
    }

    /// A place without a page is asked for.
    pub fn takes_place(&self, place: &Place) -> bool {
        let by_number = self.filenodes.is_empty()
            || place
                .filenode
                .is_some_and(|filenode| self.filenodes.contains(&filenode));
        let by_fork =
            self.forks.is_empty() || place.fork.is_none_or(|fork| self.forks.contains(&fork));
        by_number
            && by_fork
            && self.takes_names(place.schema.as_deref().zip(place.relation.as_deref()))
    }

    fn takes_names(&self, names: Option<(&str, &str)>) -> bool {
        if self.relations.is_empty() {
            return true;
        }
        let Some((schema, name)) = names else {
            return false;
        };
        let full = format!("{schema}.{name}");
        self.relations
            .iter()
            .any(|glob| glob.matches(&full) || (!glob.0.contains('.') && glob.matches(name)))
    }

    /// The block is asked for.
    pub fn takes_block(&self, block: u64) -> bool {
        self.blocks
            .as_ref()
            .is_none_or(|blocks| blocks.contains(&block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, text, fits) in [
            ("public.*", "public.docs", true),
            ("*.docs", "public.docs", true),
            ("p?blic.docs", "public.docs", true),
            ("public", "public.docs", false),
            ("*a*b", "xxaxxb", true),
            ("*a*b", "xxaxxbc", false),
            ("", "", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(text), fits, "{pattern} {text}");
        }
    }
}
