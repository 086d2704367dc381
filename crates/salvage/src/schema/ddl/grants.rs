//! GRANT and REVOKE, from the difference between the rights that stand in a row and those that
//! everything has.
//!
//! ```text
//! aclitem:  0         4          8
//!           | grantee | grantor  | rights: u64 (16 and later), else u32 |   the upper half may be passed on
//! ```
//!
//! Truth: `src/include/utils/acl.h`, `acldefault` in `src/backend/utils/adt/acl.c`.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::Oid;

use super::super::catalog::{Catalogs, Row};
use super::super::refusal::Written;

/// What rights are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GrantObject {
    Table,
    Sequence,
    Column,
    Function,
    Procedure,
    Type,
    Schema,
    Language,
    Wrapper,
    Server,
    LargeObject,
    Database,
}

/// Letters of `ACL_ALL_RIGHTS_STR` with their words, by bit.
const WORDS: [&str; 15] = [
    "INSERT",
    "SELECT",
    "UPDATE",
    "DELETE",
    "TRUNCATE",
    "REFERENCES",
    "TRIGGER",
    "EXECUTE",
    "USAGE",
    "CREATE",
    "TEMPORARY",
    "CONNECT",
    "SET",
    "ALTER SYSTEM",
    "MAINTAIN",
];

impl GrantObject {
    /// Word for GRANT, all rights, and those that everybody has.
    fn rules(self, major: u16) -> (&'static str, u64, u64) {
        let maintain = if major >= 17 { 1 << 14 } else { 0 };
        match self {
            GrantObject::Table => ("TABLE", 0x7F | maintain, 0),
            GrantObject::Sequence => ("SEQUENCE", 0x106, 0),
            GrantObject::Column => ("TABLE", 0x27, 0),
            GrantObject::Function => ("FUNCTION", 0x80, 0x80),
            GrantObject::Procedure => ("PROCEDURE", 0x80, 0x80),
            GrantObject::Type => ("TYPE", 0x100, 0x100),
            GrantObject::Schema => ("SCHEMA", 0x300, 0),
            GrantObject::Language => ("LANGUAGE", 0x100, 0x100),
            GrantObject::Wrapper => ("FOREIGN DATA WRAPPER", 0x100, 0),
            GrantObject::Server => ("FOREIGN SERVER", 0x100, 0),
            GrantObject::LargeObject => ("LARGE OBJECT", 0x6, 0),
            GrantObject::Database => ("DATABASE", 0xE00, 0xC00),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Right {
    grantee: Oid,
    grantor: Oid,
    rights: u64,
    passed_on: u64,
}

/// Rights on one thing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rights {
    kind: GrantObject,
    list: Vec<Right>,
}

impl Rights {
    /// From a column of type `aclitem[]`; nothing where it is null and all is as usual.
    pub(super) fn of(kind: GrantObject, row: Row<'_>, column: &str) -> Option<Rights> {
        row.has(column).then_some(())?;
        let list = row.elements(column, |item| item.and_then(parse));
        let list = list.into_iter().flatten().collect();
        Some(Rights { kind, list })
    }

    /// Those of the owner as usual, and this one alone for everybody.
    pub(super) fn with_everybody(
        kind: GrantObject,
        owner: Oid,
        everybody: &str,
        major: u16,
    ) -> Rights {
        let (_, all, _) = kind.rules(major);
        let bits = (0..).zip(WORDS).filter(|(_, word)| *word == everybody);
        let granted = bits.map(|(bit, _)| 1 << bit).sum::<u64>();
        let right = |grantee, rights| Right {
            grantee,
            grantor: owner,
            rights,
            passed_on: 0,
        };
        let list = vec![right(owner, all), right(0, granted)];
        Rights { kind, list }
    }
}

fn parse(item: &[u8]) -> Option<Right> {
    let word = |at: usize| Some(u32::from_le_bytes(*item.get(at..)?.first_chunk()?));
    let (rights, passed_on) = match item.len() {
        12 => (u64::from(word(8)? & 0xFFFF), u64::from(word(8)? >> 16)),
        _ => (u64::from(word(8)?), u64::from(word(12)?)),
    };
    Some(Right {
        grantee: word(0)?,
        grantor: word(4)?,
        rights,
        passed_on,
    })
}

/// The statements that bring about these rights on a thing that was just made.
pub(super) fn write(
    catalogs: &Catalogs<'_>,
    rights: &Rights,
    spoken: &str,
    owner: Oid,
    out: &mut Vec<Written<String>>,
) {
    let (word, ..) = rights.kind.rules(catalogs.major);
    // `VIEW v` and `MATERIALIZED VIEW v` are tables to GRANT; the name begins with the schema.
    let name = bare_name(spoken, word);
    write_on(
        catalogs,
        rights,
        &format!("{word} {name}"),
        (owner, Base::Usual),
        out,
    );
}

/// What rights are there before any are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    /// Those of the owner, and of everybody.
    Usual,
    Nothing,
}

/// The same on what `on` says.
pub(super) fn write_on(
    catalogs: &Catalogs<'_>,
    rights: &Rights,
    on: &str,
    (owner, base): (Oid, Base),
    out: &mut Vec<Written<String>>,
) {
    let (_, all, everybody) = rights.kind.rules(catalogs.major);
    if base == Base::Nothing {
        for right in &rights.list {
            grant(catalogs, *right, 0, (on, all, owner, ""), out);
        }
        return;
    }
    let held = |grantee: Oid| {
        rights
            .list
            .iter()
            .filter(move |right| right.grantee == grantee)
    };
    let sum = |grantee: Oid| held(grantee).fold(0, |sum, right| sum | right.rights);
    if everybody & !sum(0) != 0 {
        out.push(Ok(format!("REVOKE ALL ON {on} FROM PUBLIC;")));
    }
    if sum(owner) & all != all {
        let role = catalogs.role_name(owner);
        out.push(role.map(|role| format!("REVOKE ALL ON {on} FROM {role};")));
    }
    for right in &rights.list {
        let usual = match right.grantee {
            0 if everybody & !sum(0) == 0 => everybody,
            own if own == owner && sum(owner) & all == all => all,
            _ => 0,
        };
        grant(catalogs, *right, usual, (on, all, owner, ""), out);
    }
}

/// Rights on something that is there already, with others than it had at first.
pub(super) struct Change<'r> {
    pub(super) kind: GrantObject,
    /// Of rights on a column, its name as SQL has it.
    pub(super) column: Option<String>,
    pub(super) owner: Oid,
    /// Nothing where they are the usual ones.
    pub(super) before: Option<&'r Rights>,
    pub(super) after: Option<&'r Rights>,
}

impl Change<'_> {
    /// What brings it about; nothing where there is no change.
    pub(super) fn statements(
        &self,
        catalogs: &Catalogs<'_>,
        name: &dyn Fn() -> Written<String>,
    ) -> Option<Written<String>> {
        let (before, after) = (
            self.held(catalogs, self.before),
            self.held(catalogs, self.after),
        );
        if before == after {
            return None;
        }
        Some(name().and_then(|name| self.differences(catalogs, &name, &before, &after)))
    }

    /// By role, all rights and those that may be passed on.
    fn held(&self, catalogs: &Catalogs<'_>, rights: Option<&Rights>) -> BTreeMap<Oid, (u64, u64)> {
        let mut held = BTreeMap::new();
        let mut add = |role: Oid, rights: u64, passed_on: u64| {
            let known: &mut (u64, u64) = held.entry(role).or_default();
            known.0 |= rights;
            known.1 |= passed_on;
        };
        match rights {
            Some(rights) => {
                for right in &rights.list {
                    add(right.grantee, right.rights, right.passed_on);
                }
            }
            // A column has none of its own.
            None if self.kind == GrantObject::Column => {}
            None => {
                let (_, all, everybody) = self.kind.rules(catalogs.major);
                add(self.owner, all, 0);
                add(0, everybody, 0);
            }
        }
        held.retain(|_, (rights, passed_on)| *rights | *passed_on != 0);
        held
    }

    fn differences(
        &self,
        catalogs: &Catalogs<'_>,
        name: &str,
        before: &BTreeMap<Oid, (u64, u64)>,
        after: &BTreeMap<Oid, (u64, u64)>,
    ) -> Written<String> {
        let (word, all, _) = self.kind.rules(catalogs.major);
        let column = self.column.as_deref().unwrap_or_default();
        let of = |held: &BTreeMap<Oid, (u64, u64)>, role: Oid| {
            held.get(&role).copied().unwrap_or_default()
        };
        let mut lines = Vec::new();
        let roles: BTreeSet<Oid> = before.keys().chain(after.keys()).copied().collect();
        for role in roles {
            let ((had, passed), (has, passes)) = (of(before, role), of(after, role));
            let to = match role {
                0 => "PUBLIC".to_owned(),
                role => catalogs.role_name(role)?,
            };
            // A right that may be passed on no longer is taken away and given again.
            let taken = (had & !has) | (passed & !passes);
            let given = (has & !had) | (passes & !passed) | (taken & has);
            if taken != 0 {
                let words = words(taken, all, column);
                lines.push(format!("REVOKE {words} ON {word} {name} FROM {to};"));
            }
            for (bits, tail) in [
                (given & !passes, ""),
                (given & passes, " WITH GRANT OPTION"),
            ] {
                if bits != 0 {
                    let words = words(bits, all, column);
                    lines.push(format!("GRANT {words} ON {word} {name} TO {to}{tail};"));
                }
            }
        }
        Ok(lines.join("\n"))
    }
}

/// Rights on one column of a table.
pub(super) fn write_column(
    catalogs: &Catalogs<'_>,
    rights: &Rights,
    (table, column): (&str, &str),
    owner: Oid,
    out: &mut Vec<Written<String>>,
) {
    let (word, all, _) = rights.kind.rules(catalogs.major);
    let on = format!("{word} {table}");
    for right in &rights.list {
        grant(catalogs, *right, 0, (&on, all, owner, column), out);
    }
}

fn grant(
    catalogs: &Catalogs<'_>,
    right: Right,
    usual: u64,
    (on, all, owner, column): (&str, u64, Oid, &str),
    out: &mut Vec<Written<String>>,
) {
    let parts = [
        (right.rights & !right.passed_on & !usual, ""),
        (
            right.rights & right.passed_on & !usual,
            " WITH GRANT OPTION",
        ),
    ];
    for (bits, tail) in parts {
        if bits == 0 {
            continue;
        }
        let grantee = match right.grantee {
            0 => Ok("PUBLIC".to_owned()),
            oid => catalogs.role_name(oid),
        };
        let words = words(bits, all, column);
        let statement = grantee.map(|to| format!("GRANT {words} ON {on} TO {to}{tail};"));
        if right.grantor == owner {
            out.push(statement);
            continue;
        }
        let by = catalogs.role_name(right.grantor);
        out.push(statement.and_then(|statement| {
            Ok(format!(
                "SET SESSION AUTHORIZATION {};\n{statement}\nRESET SESSION AUTHORIZATION;",
                by?
            ))
        }));
    }
}

fn words(bits: u64, all: u64, column: &str) -> String {
    let column = if column.is_empty() {
        String::new()
    } else {
        format!("({column})")
    };
    if bits & all == all {
        return format!("ALL{column}");
    }
    let named = WORDS.iter().enumerate();
    let named = named.filter(|(bit, _)| bits >> bit & 1 == 1);
    let named: Vec<String> = named.map(|(_, word)| format!("{word}{column}")).collect();
    named.join(", ")
}

/// The name behind `TABLE`, `VIEW`, …
fn bare_name<'t>(spoken: &'t str, word: &str) -> &'t str {
    const PREFIXES: [&str; 12] = [
        "MATERIALIZED VIEW ",
        "FOREIGN TABLE ",
        "TABLE ",
        "VIEW ",
        "SEQUENCE ",
        "FUNCTION ",
        "PROCEDURE ",
        "AGGREGATE ",
        "TYPE ",
        "DOMAIN ",
        "SCHEMA ",
        "LANGUAGE ",
    ];
    let own = spoken.strip_prefix(word).map(str::trim_start);
    let other = || {
        PREFIXES
            .iter()
            .find_map(|prefix| spoken.strip_prefix(prefix))
    };
    own.or_else(other)
        .unwrap_or_else(|| spoken.strip_prefix("SERVER ").unwrap_or(spoken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_named_and_all_of_them_are_all() {
        assert_eq!(words(0x2, 0x7F, ""), "SELECT");
        assert_eq!(words(0x7, 0x7F, ""), "INSERT, SELECT, UPDATE");
        assert_eq!(words(0x7F, 0x7F, ""), "ALL");
        assert_eq!(words(0x6, 0x27, "a"), "SELECT(a), UPDATE(a)");
        assert_eq!(bare_name("MATERIALIZED VIEW a.b", "TABLE"), "a.b");
    }

    #[test]
    fn items_of_both_sizes_are_read() {
        let mut item = vec![1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 1, 0];
        let right = parse(&item).expect("an item");
        assert_eq!((right.grantee, right.rights, right.passed_on), (1, 3, 1));
        item.extend([0, 0, 0, 0]);
        assert_eq!(parse(&item).map(|right| right.rights), Some(0x1_0003));
    }
}
