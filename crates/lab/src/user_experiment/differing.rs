//! Which keys of two files ask something else, so that a refusal can name them.
//!
//! Files are held against each other as they are understood, with what they leave out filled in.
//! Comments, blanks and words for the reader are no difference, in TOML and in SQL alike.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::file::{self, File};
use crate::error::Result;
use crate::load::script::without_comments;

/// Keys that are words for the reader, an estimate, or said by the plan itself.
const ASK_NOTHING: [&str; 4] = ["question", "explain", "blocks", "cost"];

/// The same of arms and axes.
const WORDS: [(&str, &str); 3] = [("arm", "words"), ("arm", "advice"), ("axis", "unit")];

/// Keys that hold SQL.
const SQL: [&str; 3] = ["sql", "before", "run"];

/// The keys that are not the same in two files: `arm "covering": sql, settings.jit`.
///
/// # Errors
/// When a text is no experiment.
pub(crate) fn differing(one: &str, other: &str) -> Result<Vec<String>> {
    let (one, other) = (file::read(one)?, file::read(other)?);
    let (ours, theirs) = (asked(&one), asked(&other));
    let places: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let words = places.into_iter().filter_map(|place| {
        let (Some(ours), Some(theirs)) = (ours.get(place), theirs.get(place)) else {
            return Some(format!("only one of the two has {place}"));
        };
        let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        let keys = keys
            .into_iter()
            .filter(|key| ours.get(*key) != theirs.get(*key));
        let keys: Vec<&str> = keys.map(String::as_str).collect();
        (!keys.is_empty()).then(|| match place.as_str() {
            "" => keys.join(", "),
            place => format!("{place}: {}", keys.join(", ")),
        })
    });
    let words = words.chain(other_order(&one, &other));
    Ok(words.collect())
}

/// The first metric decides, so that their order asks something too.
fn other_order(one: &File, other: &File) -> Option<String> {
    let names = |file: &File| {
        let names = file.metric.iter().map(|metric| metric.name.clone());
        names.collect::<Vec<String>>()
    };
    let (ours, theirs) = (names(one), names(other));
    let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<String>>();
    let is_other = ours != theirs && sorted(&ours) == sorted(&theirs);
    is_other.then(|| "the order of [[metric]]".to_owned())
}

/// Values by key, in each place of a file: `arm "covering"`, `load`; the place of what stands above
/// all tables is empty.
type Places = BTreeMap<String, BTreeMap<String, String>>;

fn asked(file: &File) -> Places {
    let mut places = Places::new();
    let all = serde_json::to_value(file).expect("plain data can be written as JSON");
    let keys = all.as_object().into_iter().flatten();
    for (key, value) in keys.filter(|(key, _)| !ASK_NOTHING.contains(&key.as_str())) {
        match value {
            Value::Object(_) => put(&mut places, key, "", value),
            Value::Array(elements) if elements.iter().any(Value::is_object) => {
                for element in elements {
                    let name = element["name"].as_str().unwrap_or_default();
                    put(
                        &mut places,
                        &format!("{key} \"{name}\""),
                        "",
                        &told(key, element),
                    );
                }
            }
            _ => put(&mut places, "", key, value),
        }
    }
    places
}

/// An element of a list without its words for the reader.
fn told(list: &str, element: &Value) -> Value {
    let mut told = element.clone();
    for (_, key) in WORDS.iter().filter(|(of, _)| *of == list) {
        if let Some(word) = told.get_mut(*key) {
            *word = Value::Null;
        }
    }
    told
}

/// Notes a value below its key; a table has the keys of its own, and a list its numbers. What is
/// not set is not noted.
fn put(places: &mut Places, place: &str, key: &str, value: &Value) {
    let below = |inner: &str| match key {
        "" => inner.to_owned(),
        key => format!("{key}.{inner}"),
    };
    match value {
        Value::Null => {}
        Value::Object(table) => {
            places.entry(place.to_owned()).or_default();
            for (inner, value) in table {
                put(places, place, &below(inner), value);
            }
        }
        Value::Array(list) => {
            for (number, value) in (1..).zip(list) {
                put(places, place, &below(&number.to_string()), value);
            }
        }
        leaf => {
            let keys = places.entry(place.to_owned()).or_default();
            keys.insert(key.to_owned(), plain(key, leaf));
        }
    }
}

/// A value without what nothing depends on.
fn plain(key: &str, leaf: &Value) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    match leaf.as_str() {
        Some(text) if SQL.contains(&last) => without_comments(text),
        Some(text) if last == "script" => plain_script(text),
        Some(text) => text.to_owned(),
        None => leaf.to_string(),
    }
}

/// SQL between the lines that begin with a backslash, in which `--` is no comment.
fn plain_script(text: &str) -> String {
    let (mut plain, mut sql) = (Vec::new(), String::new());
    for line in text.lines() {
        if line.trim_start().starts_with('\\') {
            plain.push(without_comments(&std::mem::take(&mut sql)));
            plain.push(line.trim().to_owned());
        } else {
            sql.push_str(line);
            sql.push('\n');
        }
    }
    plain.push(without_comments(&sql));
    plain.retain(|part| !part.is_empty());
    plain.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TEMPLATE;

    /// What differs from the template where all of these are replaced.
    fn after(replaced: &[(&str, &str)]) -> Vec<String> {
        let text = replaced
            .iter()
            .fold(TEMPLATE.to_owned(), |text, (from, to)| {
                assert!(text.contains(from), "{from}");
                text.replacen(from, to, 1)
            });
        differing(TEMPLATE, &text).expect("two experiments")
    }

    #[test]
    fn the_keys_that_differ_are_named() {
        let changed = after(&[
            ("INCLUDE (total); VACUUM", "INCLUDE (total, note); VACUUM"),
            ("shared = true", "\nshared = true"),
            ("random(0, 999)", "random(0, 99)"),
            ("values = [1, 4]", "values = [1, 8]"),
            ("# settings = { random", "settings = { random"),
            ("seconds = 5", "seconds = 6"),
        ]);
        let expected = [
            "arm \"covering\": settings.random_page_cost, sql",
            "axis \"clients\": values.2",
            "load: script, seconds",
            "setup: shared",
        ];
        assert_eq!(changed, expected);
    }

    #[test]
    fn what_only_one_has_is_named_whole() {
        let arm = "[[arm]]\nname = \"third\"\n\n# Under which";
        let changed = after(&[("# Under which", arm)]);
        assert_eq!(changed, ["only one of the two has arm \"third\""]);
        let watch = after(&[("# watch = [", "watch = [")]);
        assert_eq!(watch, ["watch.1, watch.2"]);
    }

    #[test]
    fn comments_blanks_words_and_defaults_are_no_difference() {
        let changed = after(&[
            ("# An experiment of your own.", "# Mine."),
            ("blocks = 5 ", "blocks  =   6"),
            (
                "VACUUM (ANALYZE) orders;",
                "VACUUM  (ANALYZE)\n orders; -- statistics too",
            ),
            (
                "SELECT sum(total) FROM",
                "-- what is timed\nSELECT sum(total)\n  FROM",
            ),
            ("an index on the customer", "only the customer"),
            ("# protocol = \"prepared\"", "protocol = \"prepared\""),
            ("disk_mb = 100", "disk_mb = 200"),
        ]);
        assert_eq!(changed, Vec::<String>::new());
        let literal = after(&[("repeat('x', 60)", "repeat('x ', 60)")]);
        assert_eq!(literal, ["setup: sql"]);
    }

    #[test]
    fn the_order_of_metrics_decides() {
        let tps = "[[metric]]\nname = \"tps\"\n";
        let wal = "[[metric]]\nname = \"wal_bytes\"\n";
        let with = |metrics: [&str; 2]| TEMPLATE.replace(tps, &metrics.concat());
        let changed = differing(&with([tps, wal]), &with([wal, tps]));
        assert_eq!(
            changed.expect("two experiments"),
            ["the order of [[metric]]"]
        );
    }
}
