//! The rules and their pages are held to each other.

use std::collections::BTreeSet;

use pgclinic_model::{Rule, SECTIONS};

use super::rules;

#[test]
fn every_rule_has_its_page_and_every_page_its_rule() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/rules");
    let pages = std::fs::read_dir(folder).expect("the pages are there");
    let pages: BTreeSet<String> = pages
        .map(|page| {
            page.expect("a page")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let rules = rules().map(|rule| format!("{}.md", rule.name));
    assert_eq!(pages, rules.collect());
}

#[test]
fn every_page_has_all_sections_in_order_with_something_in_each() {
    for Rule {
        name,
        summary,
        explain,
        ..
    } in rules()
    {
        let sections = explain
            .strip_prefix("## ")
            .unwrap_or_default()
            .split("\n\n## ");
        let sections: Vec<(&str, &str)> = sections
            .map(|section| section.split_once("\n\n").unwrap_or((section, "")))
            .collect();
        let titles: Vec<&str> = sections.iter().map(|(title, _)| *title).collect();
        assert_eq!(titles, SECTIONS, "{name}");
        for (title, text) in sections {
            assert!(text.split_whitespace().count() >= 3, "{name}: {title}");
        }
        // Hosts of the code read the front matter as YAML.
        let plain = !summary.contains(": ") && !summary.contains(" #");
        assert!(plain && !summary.is_empty(), "{name}: {summary}");
    }
}
