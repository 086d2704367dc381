//! The README's example is what the program prints, and its figures are those of the benchmarks.

use crate::common;
use crate::watch_background::damage;

use std::path::Path;

use common::{pgclinic, text, url};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{all_majors, as_primary, copy_of, scratch, seed, server, started};

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
    let scratch = scratch();
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

/// What stands under this heading.
#[track_caller]
fn section(title: &str) -> &'static str {
    let (_, section) = README
        .split_once(&format!("\n## {title}\n"))
        .unwrap_or_else(|| panic!("no section {title}"));
    section.split_once("\n## ").map_or(section, |(own, _)| own)
}

fn file(path: &str) -> String {
    let path = Path::new("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The line of blocks without a language: what a reader types.
fn commands(section: &str) -> Vec<&str> {
    let blocks = section.split("```\n").skip(1).step_by(2);
    blocks.flat_map(str::lines).collect()
}

#[test]
fn what_is_said_of_installing_holds() {
    let install = section("Install");
    let manifest = file("Cargo.toml");
    let (_, version) = manifest
        .split_once("rust-version = \"")
        .expect("a version of Rust");
    let (version, _) = version.split_once('"').expect("its end");
    assert!(install.contains(&format!("Rust {version} or newer")));
    let [deb, script, command] = commands(install)[..] else {
        panic!("{install}")
    };
    assert_eq!(deb, "sudo dpkg -i target/dist/pgclinic_*.deb");
    assert_eq!(script, "sudo sh target/dist/install.sh");
    let task = command.strip_prefix("cargo xtask ").expect("a task");
    let source = file(&format!("xtask/src/tasks/{task}.rs"));
    assert!(source.contains(&format!("name: \"{task}\"")));
    // That it is static, and works where nothing else is, the task tries itself.
    assert!(install.contains("the one static binary, `target/dist/pgclinic`"));
    for words in ["target/dist/pgclinic", "target-feature=+crt-static"] {
        assert!(source.contains(words), "{words}");
    }
    assert!(install.contains("verifies the archive beside it and installs below `/usr/local`"));
    let script = file("packaging/install.sh");
    for words in ["\nprefix=/usr/local\n", "sha256sum -c"] {
        assert!(script.contains(words), "{words}");
    }
    let packages = file("xtask/src/tasks/dist/packages.rs");
    for words in ["install.sh", ".deb", ".tar.gz"] {
        assert!(packages.contains(words), "{words}");
    }
    for kind in ["man", "completions"] {
        assert!(packages.contains(&format!("\"{kind}\"")), "{kind}");
    }
}

/// `cargo run --release --` is `pgclinic`, since that is what the workspace runs by default.
#[test]
fn the_two_commands_are_those_of_the_program() {
    let lines = commands(section("Two commands"));
    let run = "cargo run --release -- ";
    let typed: Vec<&str> = lines
        .iter()
        .map(|line| line.split('#').next().unwrap_or(line).trim())
        .collect();
    let main_job = format!("{run}check /path/to/PGDATA");
    let drill = format!("{run}drill");
    assert_eq!(typed, [drill.as_str(), "cargo test", &main_job]);
    assert!(file("crates/cli/Cargo.toml").contains("default-run = \"pgclinic\""));
    let said = lines[0].split_once("# ").map_or("", |(_, said)| said);
    assert_eq!(
        said,
        "fetches a real PostgreSQL, damages copies, checks, explains, undoes, proves; --all: every injury"
    );
    let help = pgclinic(&["drill", "--help"]).exits(0).out;
    assert!(
        help.contains("--all") && help.contains("Every injury"),
        "{help}"
    );
    let missing = pgclinic(&["check", "/path/to/PGDATA"]).exits(2);
    assert!(missing.err.contains("/path/to/PGDATA"), "{}", missing.err);
}

#[test]
fn the_exit_codes_and_the_page_are_as_it_says() {
    let words = README.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("The exit code is 0 for healthy, 1 for damaged, 3 for incomplete."));
    assert!(words.contains("`pgclinic explain checksum-mismatch` is the manual page of a finding"));
    assert!(words.contains("`--format html` gives the report as one page"));
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let check = ["check", text(&copy.pgdata)];
    let verdict = |exit| pgclinic(&check).exits(exit).first_line().to_owned();
    assert!(verdict(0).starts_with("HEALTHY"));
    let page = pgclinic(&[&check[..], &["--format", "html"]].concat()).exits(0);
    assert!(page.out.starts_with("<!doctype html>"));
    let mut running = copy.start_with(&as_primary()).expect("a server");
    running.stop(StopMode::Immediate).expect("a stop");
    assert!(verdict(3).starts_with("INCOMPLETE"));
    // What is damaged, and its code, is the example above.
    let manual = pgclinic(&["explain", "checksum-mismatch"]).exits(0);
    assert!(manual.out.contains("checksum-mismatch"), "{}", manual.out);
}

/// The example is what a server with a page that failed its checksum is reported as.
#[test]
fn the_example_of_watching_is_what_watch_prints() {
    let (copy, server) = started(15, Checksums::On, &as_primary());
    damage(&server, &copy.pgdata);
    let mut reader = server.connect("clinic").expect("a session");
    let _damaged = reader.query("SELECT * FROM public.docs");
    drop(reader);
    let section = section("Watch a running server");
    let (_, example) = section
        .split_once("```\n$ pgclinic watch ")
        .expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let mut lines = example.lines();
    let command = lines.next().expect("a command");
    assert_eq!(command.split(' ').next_back(), Some("--once"), "{command}");
    let url = url(&server, "postgres");
    // A session sends its statistics on when it ends, at the latest.
    let ran = pgclinic(&["watch", &url, "--once"]).exits(1);
    let said = squeezed(&ran.out.replace("clinic", "shop"));
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    assert!(lines.len() > 3, "{lines:?}");
    for line in lines {
        let shown = squeezed(line.split('…').next().unwrap_or(line));
        assert!(said.contains(&shown), "{line:?} is not in\n{}", ran.out);
    }
}

/// What a critical server prints is tried where one is made; here, that each name is there.
#[test]
fn what_is_said_of_watching_holds() {
    let section = section("Watch a running server");
    let help = pgclinic(&["watch", "--help"]).exits(0).out;
    for option in ["--once", "--format", "--listen"] {
        assert!(
            section.contains(option) && help.contains(option),
            "{option}"
        );
    }
    let formats = pgclinic(&["watch", "postgres:///x", "--once", "--format", "no"]).exits(2);
    assert!(formats.err.contains("nagios"), "{}", formats.err);
    let signs = file("docs/signs.md");
    let named = section.lines().filter_map(|line| line.strip_prefix("  - "));
    let named: Vec<&str> = named.filter_map(|line| line.split(':').next()).collect();
    assert!(named.len() > 1, "{named:?}");
    for sign in named {
        assert!(signs.contains(sign), "{sign}");
    }
}

#[test]
fn its_figures_stand_in_the_benchmarks() {
    let speed = section("Speed");
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
