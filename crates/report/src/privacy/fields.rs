//! What the texts of a document are, by the name of their field and of what it stands in.
//!
//! A field that is not listed is prose, of which every word that the program does not say becomes a
//! pseudonym: a field that somebody adds tells no name until it is listed here.

use super::pseudonyms::Kind;

/// What a text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// A word of the program, or a number: it stays.
    Kept,
    /// The name of one thing.
    Named(Kind),
    /// `schema.name`, or a file where no name is known.
    Qualified(Kind),
    /// Where a file lies.
    Path,
    /// A target as somebody named it: a path, a chain of them, the URL of a server.
    Target,
    /// A value of a row.
    Value,
    /// A sentence, a command, a statement.
    Prose,
}

/// Words of the program: those that a schema demands, and those that nobody else gives.
const KEPT: &[&str] = &[
    "access_method",
    "action",
    "better",
    "cause",
    "checksum",
    "choice",
    "copy",
    "counts",
    "cure",
    "difference",
    "fork",
    "form",
    "found_by",
    "hash",
    "injury",
    "kind",
    "level",
    "load_script",
    "lp_flags",
    "older",
    "outcome",
    "page_kind",
    "part",
    "rule",
    "rules",
    "safety",
    "server_version",
    "severity",
    "started",
    "state",
    "system_identifier",
    "taken_at",
    "unit",
    "verdict",
    "verdict_at_structure",
    "version",
    "word",
];

/// In what `name` is a word of the program.
const KEPT_NAMES: &[&str] = &[
    "cause",
    "cures",
    "fields",
    "follow_up",
    "header",
    "plan",
    "remedies",
    "special",
    "tool",
];

/// Facts about a machine that name nobody.
const OF_MACHINES: &[&str] = &[
    "build.options",
    "clock_source",
    "cpu.governor",
    "cpu.model",
    "file_system.type",
    "kernel",
    "server_version",
    "virtual_machine",
];

const PATHS: &[&str] = &[
    "backups",
    "directory",
    "file",
    "files",
    "incrementals",
    "journal",
    "kept",
    "path",
    "pgdata",
    "script",
    "standbys",
    "suspect_file",
    "target",
    "wal",
];

/// Maps whose keys somebody may have named.
pub(super) const NAMED_KEYS: &[&str] = &["held", "metrics", "point", "settings"];

/// What the text of the field `name` is, in an object that is the field `parent`.
pub(super) fn class_of(parent: &str, name: &str) -> Class {
    match (parent, name) {
        ("tool" | "pages", _) if name != "host" && name != "path" => Class::Kept,
        ("environment", _) if OF_MACHINES.contains(&name) => Class::Kept,
        ("environment", "host") | ("machines", "name") => Class::Named(Kind::Host),
        ("signs", "finding" | "not_available" | "no_rates") => Class::Prose,
        ("signs", _) | ("values", "reset_at") => Class::Kept,
        ("deliveries", "receiver") => Class::Kept,
        ("labels", name) if name != "database" && name != "relation" => Class::Kept,
        ("advice", "setting") => Class::Kept,
        (parent, "name") if KEPT_NAMES.contains(&parent) => Class::Kept,
        ("attribute" | "values" | "columns", "name") => Class::Named(Kind::Column),
        ("relations", "name") => Class::Qualified(Kind::Relation),
        ("values", "value") => Class::Value,
        (_, name) => class_of_field(name),
    }
}

fn class_of_field(name: &str) -> Class {
    match name {
        "host" | "machine" => Class::Named(Kind::Host),
        "database" => Class::Named(Kind::Database),
        "schema" => Class::Named(Kind::Schema),
        "column" | "columns" => Class::Named(Kind::Column),
        "key" => Class::Named(Kind::Constraint),
        "tablespace" => Class::Named(Kind::Tablespace),
        "type" => Class::Qualified(Kind::Type),
        "relation" | "relations" | "table" | "tables" | "index" | "indexes" | "sequence"
        | "other" | "references" | "toast_of" => Class::Qualified(Kind::Relation),
        "spec" => Class::Target,
        "listed" => Class::Value,
        name if KEPT.contains(&name) => Class::Kept,
        name if PATHS.contains(&name) => Class::Path,
        _ => Class::Prose,
    }
}
