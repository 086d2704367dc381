//! The README's example is what the program prints, and its figures are those of the benchmarks.

use crate::common;

use std::path::Path;

use common::pgclinic;
use pgclinic_servers::{Checksums, Scratch};
use pgclinic_testkit::{all_majors, run_as, seed};

const README: &str = include_str!("../../../../README.md");
const BENCHMARKS: &str = include_str!("../../../../docs/benchmarks.md");
/// The data directory of the example.
const PGDATA: &str = "/var/lib/postgresql/18/main";

/// The lines of the example below its command.
fn example() -> Vec<&'static str> {
    let command = format!("$ pgclinic check {PGDATA}\n");
    let (_, rest) = README.split_once(&command).expect("the example's command");
    let (answer, _) = rest.split_once("```").expect("its end");
    answer.lines().filter(|line| !line.is_empty()).collect()
}

/// Blanks count once, and numbers are equal: another cluster is damaged in another place.
fn squeezed(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut squeezed = String::new();
    for c in words.join(" ").chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if c != '0' || !squeezed.ends_with('0') {
            squeezed.push(c);
        }
    }
    squeezed
}

#[test]
fn the_example_is_what_check_prints() {
    let scratch = Scratch::new(&run_as(), None).expect("a directory");
    let copy = scratch.path().join("main");
    let newest = all_majors().pop().expect("the newest");
    let cluster = seed(&newest, Checksums::On).pgdata;
    let cluster = cluster.to_str().expect("a name in UTF-8");
    let copy = copy.to_str().expect("a name in UTF-8");
    let place = ["--database", "clinic", "--relation", "public.docs"];
    let injure = ["injure", cluster, "--copy-to", copy];
    let what = ["--injury", "zeroed-sector"];
    pgclinic(&[&injure[..], &what, &place].concat()).exits(0);
    let ran = pgclinic(&["check", copy]).exits(1);
    let said = squeezed(&ran.out.replace(copy, PGDATA));
    let lines = example();
    assert!(lines.len() > 10, "{lines:?}");
    for line in lines {
        let shown = squeezed(line.split('…').next().unwrap_or(line));
        assert!(said.contains(&shown), "{line:?} is not in\n{}", ran.out);
    }
}

#[test]
fn its_figures_stand_in_the_benchmarks() {
    let (_, speed) = README.split_once("## Speed\n").expect("the section");
    let (speed, _) = speed.split_once("\n## ").expect("its end");
    let words = speed.split_whitespace();
    let figures: Vec<&str> = words
        .filter(|word| word.contains('.') && word.parse::<f64>().is_ok())
        .collect();
    assert!(figures.len() > 4, "{figures:?}");
    for figure in figures {
        assert!(BENCHMARKS.contains(figure), "{figure} is no result");
    }
}

#[test]
fn its_links_lead_to_files() {
    let root = Path::new("../..");
    for page in ["README.md", "docs/reference.md", "docs/guide/README.md"] {
        let text = std::fs::read_to_string(root.join(page)).expect("the page");
        let folder = root.join(page);
        let folder = folder.parent().expect("its directory");
        let mut links = text.split("](").skip(1);
        let links: Vec<&str> = links
            .by_ref()
            .filter_map(|rest| rest.split(')').next())
            .collect();
        assert!(!links.is_empty(), "{page}");
        for link in links {
            let file = link.split('#').next().unwrap_or(link);
            assert!(folder.join(file).exists(), "{page} leads to {link}");
        }
    }
}
