//! What people expect of any program: manual pages, completions, `PGDATA`, silence about what is
//! well, a line for the monitoring system.

use std::process::Command;

use pgclinic_cli::command_line;
use pgclinic_servers::{Checksums, ConnectionDefaults};
use pgclinic_testkit::{copy_of, seed, server};

use crate::common;

use common::{pgclinic, pgclinic_from, pgclinic_in, text};

#[test]
fn every_command_has_a_manual_page() {
    let mut commands = vec![(Vec::new(), command_line())];
    let mut seen = 0;
    while let Some((words, command)) = commands.pop() {
        let line: Vec<&str> = ["man"].into_iter().chain(words.iter().copied()).collect();
        let page = pgclinic(&line).exits(0).out;
        let name = ["pgclinic"].into_iter().chain(words.iter().copied());
        let name = name.collect::<Vec<_>>().join("-");
        assert!(
            page.contains(&format!(".TH {name} ")),
            "{name}: {page:.300}"
        );
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
        seen += 1;
        let shown = command.get_subcommands().filter(|own| !own.is_hide_set());
        for own in shown {
            let word: &'static str = own.get_name().to_owned().leak();
            commands.push(([&words[..], &[word]].concat(), own.clone()));
        }
    }
    assert!(seen > 20, "{seen}");
    let folder = tempfile::tempdir().expect("a directory");
    pgclinic(&["man", "--to", text(folder.path())]).exits(0);
    let pages = std::fs::read_dir(folder.path()).expect("pages").count();
    let helps = command_line().get_subcommands().count();
    assert!(pages + helps > seen && pages <= seen, "{pages} of {seen}");
    let page = std::fs::read_to_string(folder.path().join("pgclinic-lab-run.1"));
    assert_eq!(page.expect("a page"), pgclinic(&["man", "lab", "run"]).out);
    let wrong = pgclinic(&["man", "lab", "nosuch"]).exits(2);
    assert!(
        wrong.err.contains("there is no command nosuch"),
        "{}",
        wrong.err
    );
}

#[test]
fn the_script_of_each_shell_knows_commands_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let script = pgclinic(&["completions", shell]).exits(0).out;
        for word in ["salvage", "collate-with", "heal"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let script = pgclinic(&["completions", "bash"]).exits(0).out;
    let checked = Command::new("bash").args(["-n", "-c", &script]).status();
    assert!(checked.expect("bash").success());
}

#[test]
fn a_healthy_cluster_needs_no_words() {
    let seeded = seed(&server(15), Checksums::On);
    let silent = pgclinic(&["check", text(&seeded.pgdata), "--quiet"]).exits(0);
    assert_eq!((silent.out.as_str(), silent.err.as_str()), ("", ""));
    let asked = pgclinic(&["check", text(&seeded.pgdata), "--quiet", "--format", "json"]);
    assert!(asked.exits(0).out.starts_with('{'));

    let line = pgclinic(&["check", text(&seeded.pgdata), "--status-line"]).exits(0);
    assert!(
        line.out.starts_with("PGCLINIC OK - HEALTHY  no damage in"),
        "{}",
        line.out
    );
    assert_eq!(line.out.lines().count(), 1);
    let (_, figures) = line.out.split_once(" | ").expect("figures");
    assert!(
        figures.starts_with("damage=0 warnings=0 not_checked=0 pages="),
        "{figures}"
    );
}

#[test]
fn a_monitoring_system_gets_its_own_codes() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let line = ["check", text(&copy.pgdata), "--status-line"];
    let version = copy.pgdata.join("global/pg_control");
    let control = std::fs::read(&version).expect("a control file");
    let mut hurt = control.clone();
    hurt[20] ^= 4;
    std::fs::write(&version, hurt).expect("hurt");
    let damaged = pgclinic(&line).exits(2);
    assert!(
        damaged.out.starts_with("PGCLINIC CRITICAL - DAMAGED"),
        "{}",
        damaged.out
    );
    let report = copy.pgdata.with_file_name("report.json");
    let both = [&line[..], &["--format", "json", "--output", text(&report)]].concat();
    assert!(
        pgclinic(&both)
            .exits(2)
            .out
            .starts_with("PGCLINIC CRITICAL")
    );
    assert!(
        std::fs::read_to_string(&report)
            .expect("a report")
            .starts_with('{')
    );
    std::fs::write(&version, control).expect("healed");

    let mut running = copy.start().expect("a server");
    running.kill();
    let crashed = pgclinic(&line).exits(1);
    assert!(
        crashed
            .out
            .starts_with("PGCLINIC WARNING - INCOMPLETE (needs recovery)"),
        "{}",
        crashed.out
    );
    let fine = [&line[..], &["--fail-on", "damage"]].concat();
    assert!(
        pgclinic(&fine)
            .exits(0)
            .out
            .starts_with("PGCLINIC OK - INCOMPLETE")
    );

    let nowhere = pgclinic(&["check", "/nowhere/at/all", "--status-line"]).exits(3);
    assert!(
        nowhere.out.starts_with("PGCLINIC UNKNOWN - "),
        "{}",
        nowhere.out
    );
    assert_eq!(nowhere.out.lines().count(), 1);
}

/// Forms for programs hold the same findings, and none of them grows a line a page.
#[test]
fn a_check_comes_in_the_forms_of_build_servers_and_collectors() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let path = copy.pgdata.join("global/pg_control");
    let mut hurt = std::fs::read(&path).expect("a control file");
    hurt[20] ^= 4;
    std::fs::write(&path, hurt).expect("hurt");
    let form = |name: &str| {
        pgclinic(&["check", text(&copy.pgdata), "--format", name])
            .exits(1)
            .out
    };
    let document: serde_json::Value = serde_json::from_str(&form("json")).expect("JSON");
    let findings = document["findings"].as_array().expect("findings").len();

    let lines = form("jsonl");
    let lines = lines.lines().map(serde_json::from_str::<serde_json::Value>);
    let lines: Vec<_> = lines.map(|line| line.expect("a line of JSON")).collect();
    assert_eq!(
        (&lines[0]["type"], &lines[0]["verdict"]),
        (&"check".into(), &"damaged".into())
    );
    let told = lines
        .iter()
        .filter(|line| line["type"] == "finding")
        .count();
    assert_eq!(told, findings);

    let sarif: serde_json::Value = serde_json::from_str(&form("sarif")).expect("JSON");
    let run = &sarif["runs"][0];
    assert_eq!(run["results"].as_array().expect("results").len(), findings);
    assert_eq!(run["results"][0]["level"], "error");
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    assert!(
        rules
            .iter()
            .any(|rule| rule["id"] == run["results"][0]["ruleId"])
    );

    let junit = form("junit");
    assert!(junit.contains("failures=\"1\""), "{junit}");
    assert!(junit.ends_with("</testsuite>\n"), "{junit}");

    let metrics = form("prometheus");
    assert!(
        metrics.contains("\npgclinic_check_healthy{target="),
        "{metrics}"
    );
    assert!(metrics.lines().count() < 60, "{metrics}");
}

#[test]
fn the_data_directory_of_the_environment_is_the_target() {
    let seeded = seed(&server(15), Checksums::On);
    let ran = pgclinic_in(&["check"], &seeded.pgdata).exits(0);
    assert!(ran.first_line().starts_with("HEALTHY"), "{}", ran.out);
    assert!(ran.out.contains(text(&seeded.pgdata)), "{}", ran.out);
    let missing = pgclinic(&["check"]).exits(2);
    for words in ["no TARGET is given", "check [OPTIONS] [TARGET]", "PGHOST"] {
        assert!(missing.err.contains(words), "{}", missing.err);
    }
    // What writes is told its target each time.
    let heal = pgclinic_in(&["heal"], &seeded.pgdata).exits(2);
    assert!(heal.err.contains("required arguments"), "{}", heal.err);
}

/// The report names the server that was asked, and not what the URL alone would mean.
#[test]
fn what_a_url_leaves_out_is_taken_from_the_environment_and_reported() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    let defaults = ConnectionDefaults {
        host: Some(running.socket_folder().display().to_string()),
        user: Some("postgres".into()),
        database: Some("clinic".into()),
        ..ConnectionDefaults::default()
    };
    let place = running.socket_folder().display().to_string();
    for line in [
        &[
            "check",
            "postgres://",
            "--level",
            "structure",
            "--format",
            "json",
        ][..],
        &["measure", "postgres://", "--format", "json"],
    ] {
        let ran = pgclinic_from(line, defaults.clone());
        let document: serde_json::Value =
            serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.err));
        let spec = document["target"]["spec"].as_str().expect("a target");
        assert!(spec.contains(&place) && spec.contains("/clinic"), "{spec}");
    }
}
