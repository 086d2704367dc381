//! The pages of `docs/guide/messages`: a part of the scenarios is run again on a real server, and
//! must give what the pages say, to the byte.

use crate::common;

use common::pgclinic;

const FOLDER: &str = "../../docs/guide/messages";

fn kept(page: &str) -> String {
    let path = format!("{FOLDER}/{page}.md");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every scenario as PAGE/OBJECT/INJURY.
fn scenarios() -> Vec<String> {
    let listed = pgclinic(&["drill", "--scenarios"]).exits(0).out;
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn a_tenth_of_the_scenarios_gives_what_the_pages_show() {
    let all = scenarios();
    // The same each time, beginning with the headline: system columns of a row, all random.
    let headline = all
        .iter()
        .position(|name| name.contains("system-columns-random"));
    let tenth = all
        .iter()
        .skip(headline.expect("the headline") % 10)
        .step_by(10);
    let mut words = vec!["drill", "--pg", "15", "--quiet"];
    words.extend(tenth.clone().flat_map(|name| ["--scenario", name.as_str()]));
    let out = pgclinic(&words).exits(0).out;
    let pages: String = tenth.map(|name| kept(page_of(name))).collect();
    let sections: Vec<&str> = out.split("\n## ").skip(1).collect();
    assert!(sections.len() >= 4, "{out}");
    for section in sections {
        assert!(
            pages.contains(section.trim_end()),
            "`cargo xtask docs --messages` writes the pages again; this is none of them:\n{section}"
        );
    }
}

fn page_of(scenario: &str) -> &str {
    scenario.split('/').next().unwrap_or_default()
}

#[test]
fn every_scenario_has_its_section_and_every_page_its_scenarios() {
    let index = kept("README");
    let mut sections = 0;
    for name in scenarios() {
        let mut parts = name.split('/');
        let (page, injury) = (
            parts.next().expect("a page"),
            parts.next_back().expect("an injury"),
        );
        let text = kept(page);
        let heading =
            |line: &&str| line.starts_with("## ") && line.ends_with(&format!(": {injury}"));
        let here = text.lines().filter(heading).count();
        assert!(
            here > 0,
            "{name} has no section: `cargo xtask docs --messages` writes it"
        );
        assert!(
            index.contains(&format!("({page}.md)")),
            "{page} is not in the index"
        );
        sections += here;
    }
    assert!(sections > 50, "{sections} sections");
}

#[test]
fn a_scenario_that_is_none_is_refused_and_an_injury_is_one() {
    let said = pgclinic(&["drill", "--pg", "15", "--quiet", "--scenario", "measles"]).exits(2);
    assert!(
        said.err.contains("there is no scenario \"measles\""),
        "{}",
        said.err
    );
    let said = pgclinic(&[
        "drill",
        "--pg",
        "15",
        "--quiet",
        "--scenario",
        "btree-level",
    ])
    .exits(0);
    assert!(
        said.out
            .contains("## An index, with data checksums: btree-level"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("`REINDEX INDEX public.patients_pkey;`"),
        "{}",
        said.out
    );
}
