//! Names of the files in a destination: `<database>/<schema>.<table>.<extension>`.
//!
//! In each part every byte outside `A-Za-z0-9_-` is percent-encoded. Names that are equal but for case, which some disks
//! cannot tell apart, get `~<oid>`, and so do names that no disk takes because of their length, after they were cut.

use std::collections::HashMap;

use pgclinic_format::Oid;

/// The longest name that file systems take, with room for an extension and the suffix of a file that is not whole.
const NAME_BYTES_MAX: usize = 255 - 32;

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
        let mut name = joined(parts);
        let shared = self.seen.get(&name.to_ascii_lowercase());
        if name.len() > NAME_BYTES_MAX {
            name.truncate(NAME_BYTES_MAX);
            return format!("{name}~{oid}");
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

#[cfg(test)]
mod tests {
    use super::*;

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
