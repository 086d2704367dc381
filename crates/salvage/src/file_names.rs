//! Names of the files in a destination: `<database>/<schema>.<table>.<extension>`.
//!
//! In each part every byte outside `A-Za-z0-9_-` is percent-encoded. Names that are equal but for
//! case, which some disks cannot tell apart, get `~<oid>`, and so do names that no disk takes
//! because of their length, after they were cut.

use std::collections::HashMap;

use pgclinic_format::Oid;

/// The longest name that file systems take, with room for an extension and the suffix of a file
/// that is not whole.
const NAME_BYTES_MAX: usize = 255 - 32;

/// What is left of the names of a table and of a thing of it, where the name of a file beside the
/// table's must be cut.
const TABLE_BYTES: usize = 110;
const THING_BYTES: usize = 40;

/// A part of a name with every byte outside `A-Za-z0-9_-` percent-encoded.
pub fn encoded(part: &str) -> String {
    let mut name = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name
}

/// The names of one folder's files, without extension.
#[derive(Clone, Debug, Default)]
pub struct FileNames {
    /// How many things have this name, in small letters.
    seen: HashMap<String, u32>,
}

impl FileNames {
    /// Knows all things that will lie in the folder, each as its parts: schema and table, say.
    pub fn of<'a>(things: impl IntoIterator<Item = &'a [&'a str]>) -> Self {
        let mut seen: HashMap<String, u32> = HashMap::new();
        for parts in things {
            *seen.entry(joined(parts).to_ascii_lowercase()).or_default() += 1;
        }
        FileNames { seen }
    }

    /// The name of one of them.
    pub fn name(&self, parts: &[&str], oid: Oid) -> String {
        let name = joined(parts);
        let shared = self.seen.get(&name.to_ascii_lowercase());
        if name.len() > NAME_BYTES_MAX {
            return numbered(&name, NAME_BYTES_MAX, oid);
        }
        if shared.is_some_and(|count| *count > 1) {
            return format!("{name}~{oid}");
        }
        name
    }
}

fn joined(parts: &[&str]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| encoded(part)).collect();
    parts.join(".")
}

/// A name of which so many bytes are kept, with its number. No encoded byte is cut in two.
fn numbered(name: &str, bytes_max: usize, number: u32) -> String {
    let number = format!("~{number}");
    let mut name = name.strip_suffix(&number).unwrap_or(name).to_owned();
    if name.len() > bytes_max {
        name.truncate(bytes_max);
        let last = name.rfind('%').filter(|at| at + 3 > name.len());
        name.truncate(last.unwrap_or(bytes_max));
    }
    name + &number
}

/// The name of a file beside that of a table: `<table>.<what>.<thing>`, of the table's own name
/// without extension and the encoded name of a thing of it. Where that is longer than a disk takes,
/// both are cut and carry their numbers.
pub(crate) fn beside(
    (table, table_number): (&str, u32),
    what: &str,
    (thing, number): (&str, u32),
) -> String {
    let (folder, own) = table.rsplit_once('/').unwrap_or(("", table));
    let name = format!("{own}.{what}.{thing}");
    let name = if name.len() <= NAME_BYTES_MAX {
        name
    } else {
        format!(
            "{}.{what}.{}",
            numbered(own, TABLE_BYTES, table_number),
            numbered(thing, THING_BYTES, number)
        )
    };
    match folder {
        "" => name,
        folder => format!("{folder}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beside_a_table_have_names_that_disks_take() {
        let short = beside(
            ("clinic/public.docs", 16390),
            "lost_keys",
            ("docs_pkey", 16395),
        );
        assert_eq!(short, "clinic/public.docs.lost_keys.docs_pkey");
        let long = encoded(&"ä".repeat(31));
        let names = FileNames::of([[long.as_str(), long.as_str()].as_slice()]);
        let cut = names.name(&[&long, &long], 16390);
        for table in [format!("{long}/{long}.{long}"), format!("{long}/{cut}")] {
            for what in ["lost_keys", "large_value.4294967295.65535"] {
                let name = beside((&table, 16390), what, (&long, 16395));
                let (_, own) = name.rsplit_once('/').expect("a directory");
                assert!(own.len() <= NAME_BYTES_MAX, "{own}");
                assert!(own.contains(&format!("~16390.{what}.")), "{own}");
                assert!(
                    own.ends_with("~16395") && !own.contains("%C~") && !own.contains("%~"),
                    "{own}"
                );
            }
        }
    }

    #[test]
    fn bytes_that_mean_something_to_a_disk_are_encoded() {
        assert_eq!(encoded("a/b.c\n"), "a%2Fb%2Ec%0A");
        assert_eq!(encoded("näme-1_X"), "n%C3%A4me-1_X");
        assert_eq!(encoded(".."), "%2E%2E");
    }

    #[test]
    fn names_equal_but_for_case_carry_their_number() {
        let things = [["public", "Docs"], ["public", "docs"], ["public", "other"]];
        let names = FileNames::of(things.iter().map(|parts| parts.as_slice()));
        assert_eq!(names.name(&["public", "Docs"], 16390), "public.Docs~16390");
        assert_eq!(names.name(&["public", "docs"], 16395), "public.docs~16395");
        assert_eq!(names.name(&["public", "other"], 7), "public.other");
    }

    #[test]
    fn names_that_no_disk_takes_are_cut_and_numbered() {
        let long = "ä".repeat(31);
        let names = FileNames::of([[long.as_str(), long.as_str()].as_slice()]);
        let name = names.name(&[&long, &long], 16390);
        assert!(name.len() < 240 && name.ends_with("~16390"), "{name}");
    }
}
