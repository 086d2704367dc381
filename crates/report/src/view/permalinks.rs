//! Every part of a page has a place that links lead to: its own, or one made of its title.

use std::collections::HashSet;
use std::fmt::Write;

use super::{Block, Frame, Medium, Part, Words};

/// A place from what it is called, the same in every run: `shop.public.orders`. Different names
/// give different places.
pub(crate) fn anchor(name: &str) -> String {
    let mut anchor = String::new();
    for letter in name.chars() {
        if letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-' | '/') {
            anchor.push(letter);
        } else {
            let _ = write!(anchor, "~{:x}", u32::from(letter));
        }
    }
    anchor
}

/// The place of a relation: of its database, its schema and its name, or of its file where no
/// catalog tells a name. A dot within a name is not one between two.
pub(crate) fn of_relation(
    database: Option<&str>,
    schema: Option<&str>,
    relation: Option<&str>,
    path: &str,
) -> String {
    let Some(relation) = relation else {
        return anchor(path);
    };
    let names = [database, schema, Some(relation)];
    let names = names.into_iter().flatten();
    let names: Vec<String> = names.map(|name| anchor(name).replace('.', "~2e")).collect();
    names.join(".")
}

/// The link to a file, by its path from the page.
pub(crate) fn link_to(path: &str) -> String {
    let mut link = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-/".contains(&byte) {
            link.push(char::from(byte));
        } else {
            let _ = write!(link, "%{byte:02X}");
        }
    }
    link
}

/// Gives every part outside of folds a place of its own, and the parts of a page their names in
/// its head.
pub(super) fn give(blocks: &mut [Block]) {
    let mut taken = HashSet::new();
    keep(blocks, &mut taken);
    make(blocks, &mut taken);
}

/// Places that parts have of themselves; of two the second gets a number.
fn keep(blocks: &mut [Block], taken: &mut HashSet<String>) {
    each_part(blocks, &mut |part| {
        if !part.id.is_empty() {
            part.id = free(&part.id, taken);
        }
        keep(&mut part.blocks, taken);
    });
}

fn make(blocks: &mut [Block], taken: &mut HashSet<String>) {
    each_part(blocks, &mut |part| {
        if matches!(part.frame, Frame::Fold(..)) {
            return;
        }
        if part.id.is_empty() {
            part.id = free(&slug(&part.title), taken);
        }
        make(&mut part.blocks, taken);
    });
}

fn each_part(blocks: &mut [Block], own: &mut dyn FnMut(&mut Part)) {
    for block in blocks {
        match block {
            Block::Part(part) => own(part),
            Block::Only(medium, blocks) if medium.is_in(Medium::Page) => each_part(blocks, own),
            _ => {}
        }
    }
}

fn free(wanted: &str, taken: &mut HashSet<String>) -> String {
    let mut numbered = (2_u64..).map(|number| format!("{wanted}-{number}"));
    let mut place = wanted.to_owned();
    while !taken.insert(place.clone()) {
        place = numbered.next().unwrap_or_default();
    }
    place
}

/// `what-gives-bytes-back`.
fn slug(title: &Words) -> String {
    let words = title.on_a_page().to_lowercase();
    let parts = words.split(|letter: char| !letter.is_alphanumeric());
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    match parts.join("-") {
        slug if slug.is_empty() => "part".to_owned(),
        slug => slug,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Fold, fold, section};

    #[test]
    fn different_names_have_different_places_without_spaces_or_quotes() {
        let names = ["a b", "a-b", "a~20b", "a\"b", "a.b", "ä b", "<b>"];
        let places: HashSet<String> = names.iter().map(|name| anchor(name)).collect();
        assert_eq!(places.len(), names.len());
        let plain = |place: &String| !place.contains([' ', '"', '<', '>', '#', '%']);
        assert!(places.iter().all(plain), "{places:?}");
    }

    #[test]
    fn relations_of_one_name_have_places_of_their_own() {
        let place = |database, schema, relation| {
            of_relation(Some(database), Some(schema), Some(relation), "base/5/1")
        };
        assert_eq!(place("shop", "public", "docs"), "shop.public.docs");
        let places: HashSet<String> = [
            place("shop", "public", "docs"),
            place("shop", "old", "docs"),
            place("mill", "public", "docs"),
            place("shop.public", "docs", "docs"),
            place("shop", "public.docs", "docs"),
            place("shop", "public", "docs.docs"),
            of_relation(Some("shop"), None, None, "base/5/1"),
        ]
        .into();
        assert_eq!(places.len(), 7, "{places:?}");
    }

    #[test]
    fn every_part_has_one_place_and_what_was_given_stays() {
        let inside = section("The rules").of(Vec::new());
        let mut blocks = vec![
            section("The rules").of(vec![inside]),
            section("Other").id("the-rules").of(Vec::new()),
            fold(Fold::Item, true, "closed").of(Vec::new()),
        ];
        give(&mut blocks);
        let mut places = Vec::new();
        each_part(&mut blocks, &mut |part| {
            places.push(part.id.clone());
            each_part(&mut part.blocks, &mut |part| places.push(part.id.clone()));
        });
        assert_eq!(places, ["the-rules-2", "the-rules-3", "the-rules", ""]);
    }
}
