//! Identifiers and literals as SQL wants them: quoted only where they must be.
//!
//! Truth: `quote_identifier` in `src/backend/utils/adt/ruleutils.c`, `src/include/parser/kwlist.h`.

/// Key words that are more than unreserved in every major 13-18.
#[rustfmt::skip]
const KEY_WORDS: &[&str] = &[
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric",
    "authorization", "between", "bigint", "binary", "bit", "boolean", "both", "case", "cast",
    "char", "character", "check", "coalesce", "collate", "collation", "column", "concurrently",
    "constraint", "create", "cross", "current_catalog", "current_date", "current_role",
    "current_schema", "current_time", "current_timestamp", "current_user", "dec", "decimal",
    "default", "deferrable", "desc", "distinct", "do", "else", "end", "except", "exists",
    "extract", "false", "fetch", "float", "for", "foreign", "freeze", "from", "full", "grant",
    "greatest", "group", "grouping", "having", "ilike", "in", "initially", "inner", "inout",
    "int", "integer", "intersect", "interval", "into", "is", "isnull", "join", "lateral",
    "leading", "least", "left", "like", "limit", "localtime", "localtimestamp", "national",
    "natural", "nchar", "none", "normalize", "not", "notnull", "null", "nullif", "numeric",
    "offset", "on", "only", "or", "order", "out", "outer", "overlaps", "overlay", "placing",
    "position", "precision", "primary", "real", "references", "returning", "right", "row",
    "select", "session_user", "setof", "similar", "smallint", "some", "substring", "symmetric",
    "table", "tablesample", "then", "time", "timestamp", "to", "trailing", "treat", "trim",
    "true", "union", "unique", "user", "using", "values", "varchar", "variadic", "verbose",
    "when", "where", "window", "with", "xmlattributes", "xmlconcat", "xmlelement", "xmlexists",
    "xmlforest", "xmlnamespaces", "xmlparse", "xmlpi", "xmlroot", "xmlserialize", "xmltable",
];

/// Key words that came later, with their major.
#[rustfmt::skip]
const LATER_KEY_WORDS: &[(&str, u16)] = &[
    ("json", 17),
    ("json_array", 16),
    ("json_arrayagg", 16),
    ("json_exists", 17),
    ("json_object", 16),
    ("json_objectagg", 16),
    ("json_query", 17),
    ("json_scalar", 17),
    ("json_serialize", 17),
    ("json_table", 17),
    ("json_value", 17),
    ("merge_action", 17),
    ("system_user", 16),
];

/// How names are written for a server of one major. A file for any server quotes what any major
/// must have quoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quoting {
    /// The major.
    pub(crate) major: u16,
}

impl Quoting {
    /// The name, between double quotes where it needs them.
    pub(crate) fn name(self, name: &str) -> String {
        if self.is_plain(name) {
            return name.to_owned();
        }
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    /// `schema.name`.
    pub(crate) fn qualified(self, schema: &str, name: &str) -> String {
        format!("{}.{}", self.name(schema), self.name(name))
    }

    fn is_plain(self, name: &str) -> bool {
        let begins = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        begins && name.chars().all(plain) && !self.is_key_word(name)
    }

    fn is_key_word(self, name: &str) -> bool {
        let later = LATER_KEY_WORDS.iter();
        KEY_WORDS.binary_search(&name).is_ok()
            || later
                .filter(|(_, since)| *since <= self.major)
                .any(|(word, _)| *word == name)
    }
}

/// A string constant. Backslashes stand for themselves (`standard_conforming_strings`).
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Text between dollar signs, whose tag does not occur in it.
pub(crate) fn dollar_quoted(text: &str) -> String {
    let mut tag = "$_$".to_owned();
    while text.contains(tag.get(..tag.len() - 1).unwrap_or_default()) {
        tag = format!("{}x$", tag.trim_end_matches('$'));
    }
    if !text.contains('$') {
        tag = "$$".to_owned();
    }
    format!("{tag}{text}{tag}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_need_quotes_get_them() {
        let quoting = Quoting { major: 15 };
        assert_eq!(quoting.name("a_1"), "a_1");
        assert_eq!(quoting.name("1a"), "\"1a\"");
        assert_eq!(quoting.name("select"), "\"select\"");
        assert_eq!(quoting.name("left"), "\"left\"");
        assert_eq!(quoting.name("Ta\"ble"), "\"Ta\"\"ble\"");
        assert_eq!(quoting.name("json_value"), "json_value");
        assert_eq!(Quoting { major: 17 }.name("json_value"), "\"json_value\"");
        assert_eq!(quoting.qualified("ö", "b"), "\"ö\".b");
    }

    #[test]
    fn key_words_are_sorted() {
        assert!(KEY_WORDS.is_sorted());
    }

    #[test]
    fn text_between_dollars_does_not_hold_its_end() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(dollar_quoted("a"), "$$a$$");
        assert_eq!(dollar_quoted("$$ $_$"), "$_x$$$ $_$$_x$");
    }
}
