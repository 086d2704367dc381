//! Files as people write them.

use super::*;
use crate::table_profile::{Rates, RowCounts, Writing};

#[test]
fn the_template_is_an_experiment() {
    let own = OwnExperiment::parse(TEMPLATE).expect("the template");
    let matrix = own.matrix(Scale::Quick);
    assert_eq!(
        (matrix.arms.len(), matrix.axes.len(), matrix.blocks),
        (2, 2, 5)
    );
    let metrics = own.metrics();
    assert!(metrics[0].timing && metrics[0].better == Better::Higher);
    assert_eq!(metrics[1].unit, "bytes");
    let plan = crate::Plan::make(
        &own,
        Some(TEMPLATE.to_owned()),
        &crate::PlanOptions::default(),
    );
    assert_eq!(plan.expect("a plan").cells.len(), 5 * (8 + 1));
}

fn refused(from: &str, to: &str) -> String {
    let text = TEMPLATE.replace(from, to);
    assert_ne!(text, TEMPLATE);
    OwnExperiment::parse(&text)
        .expect_err("it is wrong")
        .to_string()
}

#[test]
fn slips_are_told_with_their_place() {
    let script = refused("random(0, 999)", "random(0 999)");
    assert!(
        script.contains("the script of [load] is wrong at line 1, column"),
        "{script}"
    );
    let key = refused("blocks = 5", "block = 5");
    assert!(key.contains("block") && key.contains("line"), "{key}");
    let clients = refused("\"{clients}\"", "\"{client}\"");
    assert!(clients.contains("is not a number of clients"), "{clients}");
    let metric = refused("name = \"tps\"", "name = \"tpm\"");
    assert!(metric.contains("\"tpm\" has no sql"), "{metric}");
    let with_port = "name = \"plain\"\nsettings = { port = \"5433\" }";
    let port = refused("name = \"plain\"", with_port);
    assert!(port.contains("port is not for an experiment"), "{port}");
}

#[test]
fn numbers_of_a_load_that_give_no_result_are_told_with_their_line() {
    let line = TEMPLATE.lines().position(|line| line == "seconds = 5");
    let line = format!("line {}", line.expect("it is in the template") + 1);
    for seconds in ["0", "-1", "nan", "inf", "86400"] {
        let why = refused("\nseconds = 5", &format!("\nseconds = {seconds}"));
        assert!(
            why.contains(&line) && why.contains("seconds must be 0.001 or more"),
            "{why}"
        );
    }
    for rate in ["0", "-5", "nan", "inf", "1e12"] {
        let why = refused("# rate = 500.0", &format!("rate = {rate} "));
        assert!(
            why.contains("line") && why.contains("is not a rate of rounds a second"),
            "{why}"
        );
    }
    let pause = refused("# think_seconds = 0.0", "think_seconds = inf ");
    assert!(pause.contains("think_seconds must be 0 or more"), "{pause}");
    let slow = TEMPLATE.replace("# rate = 500.0", "rate = 0.5 ");
    OwnExperiment::parse(&slow).expect("a slow rate is a rate");
}

#[test]
fn names_stay_in_their_folder_and_belong_to_nobody_else() {
    let named = |name: &str| refused("\"covering-index\"", &format!("\"{name}\""));
    for name in ["../../x", "/tmp/x", "..", "", "a b", "Größe"] {
        let why = named(name);
        assert!(
            why.contains("cannot name an experiment") && why.contains("line 6"),
            "{why}"
        );
    }
    let taken = named("uuid-keys");
    assert!(
        taken.contains("is an experiment of the laboratory") && taken.contains("line 6"),
        "{taken}"
    );
    let metric = refused("\"index_bytes\"", "\"index/bytes\"");
    assert!(metric.contains("cannot name a metric"), "{metric}");
    let doubled = refused("\"tps\"", "\"index_bytes\"\nsql = \"SELECT 1\"");
    assert!(
        doubled.contains("\"index_bytes\" stands for two metrics"),
        "{doubled}"
    );
}

#[test]
fn estimates_are_numbers_that_add_up() {
    for wrong in ["nan", "inf", "-1", "1e300"] {
        for key in ["run_seconds = 2", "setup_seconds = 4"] {
            let (name, _) = key.split_once('=').expect("a key");
            let why = refused(key, &format!("{name}= {wrong}"));
            assert!(
                why.contains("seconds in [cost] must be 0 or more") && why.contains("line"),
                "{why}"
            );
        }
    }
    let huge = TEMPLATE.replace("disk_mb = 100", "disk_mb = 9223372036854775807");
    let own = OwnExperiment::parse(&huge).expect("an experiment");
    let plan = crate::Plan::make(&own, None, &crate::PlanOptions::default()).expect("a plan");
    assert_eq!(plan.cost.disk_bytes, u64::MAX);
    let read = crate::Plan::from_json(&serde_json::to_vec(&plan).expect("JSON"));
    assert_eq!(read.expect("the same plan"), plan);
}

#[test]
fn work_of_arms_is_held_against_the_file() {
    let mix = "[load]\nmix = [{ script = \"SELECT 1;\", weight = 1 }]\nscript";
    let both = refused("[load]\nscript", mix);
    assert!(both.contains("a script and a [[load.mix]]"), "{both}");
    let run = refused("name = \"plain\"", "name = \"plain\"\nrun = \"SELECT 1\"");
    assert!(
        run.contains("the arm plain has a statement to run and the file no [run]"),
        "{run}"
    );
    let slip = refused(
        "name = \"plain\"",
        "name = \"plain\"\nscript = \"SELECT :nobody;\"",
    );
    assert!(
        slip.contains("the script of [load] is wrong at line 1, column 8"),
        "{slip}"
    );
    let sampler = refused("blocks = 5", "blocks = 5\nwatch = [\"weather\"]");
    assert!(
        sampler.contains("there is no sampler \"weather\""),
        "{sampler}"
    );
}

#[test]
fn a_base_is_made_for_the_axes_that_its_sql_names() {
    let own = OwnExperiment::parse(TEMPLATE).expect("the template");
    let plan = crate::Plan::make(&own, None, &crate::PlanOptions::default()).expect("a plan");
    let names: std::collections::BTreeSet<String> = plan
        .cells
        .iter()
        .filter_map(|cell| Some(own.base(cell, plan.arm(&cell.arm)?, Scale::Quick).name))
        .collect();
    assert_eq!(names.len(), 4, "two arms at two numbers of rows: {names:?}");
}

#[test]
fn a_base_is_filled_under_the_settings_of_its_arm_and_not_of_an_axis() {
    let text = TEMPLATE
        .replace("# settings = {", "settings = {")
        .replace("unit = \"clients\"", "setting = \"io_combine_limit\"");
    let own = OwnExperiment::parse(&text).expect("an experiment");
    let plan = crate::Plan::make(&own, None, &crate::PlanOptions::default()).expect("a plan");
    let bases: Vec<(&str, Base)> = plan
        .cells
        .iter()
        .filter_map(|cell| {
            let arm = plan.arm(&cell.arm)?;
            Some((arm.name.as_str(), own.base(cell, arm, Scale::Quick)))
        })
        .collect();
    for (arm, base) in &bases {
        let cost = base.settings.get("random_page_cost").map(String::as_str);
        assert_eq!(cost, (*arm == "covering").then_some("1.1"));
        assert!(!base.settings.contains_key("io_combine_limit"));
    }
    let names: std::collections::BTreeSet<&str> =
        bases.iter().map(|(_, base)| base.name.as_str()).collect();
    assert_eq!(names.len(), 4, "the axis makes no more of them: {names:?}");
}

/// The template with a load at the learned rate, and the line in which it stands.
fn with_learned_rate() -> (OwnExperiment, String) {
    let text = TEMPLATE.replace("# rate = \"learned\"", "rate = \"learned\" ");
    let at = text.lines().position(|line| line.starts_with("rate = "));
    let line = format!("line {}: ", at.expect("it is in the template") + 1);
    (OwnExperiment::parse(&text).expect("an experiment"), line)
}

/// A table of one row that was written as the WAL says.
fn written(writing: Option<Writing>) -> TableShape {
    TableShape {
        schema: "pgclinic.lab-shape/1".to_owned(),
        table: "public.docs".to_owned(),
        blocks: 1,
        blocks_seen: 1,
        blocks_unreadable: 0,
        rows_seen: 1,
        rows: 1,
        columns: Vec::new(),
        writing,
    }
}

/// Rows that were inserted, updated and deleted within two seconds.
fn within_two_seconds(inserted: u64, updated: u64, deleted: u64) -> Writing {
    let micros = 2_000_000;
    Writing::Counted(Rates {
        micros,
        commits: 1,
        table: RowCounts {
            micros,
            inserted,
            updated,
            hot_updated: updated,
            deleted,
        },
        ..Rates::default()
    })
}

#[test]
fn a_learned_rate_is_a_round_for_each_row_that_was_written() {
    let (own, _) = with_learned_rate();
    let shape = written(Some(within_two_seconds(100, 16, 4)));
    let rate = own.learn_rate(&shape).expect("a rate");
    let own = OwnExperiment {
        learned_rate: Some(rate),
        ..own
    };
    let load = own.file.load.as_ref().expect("a load");
    assert_eq!(own.pace(load).expect("a pace"), Pace::Open { rate: 60.0 });
    let tailored = own.with_shape(&shape).expect("it has a place");
    crate::Plan::make(tailored.as_ref(), None, &crate::PlanOptions::default()).expect("a plan");
    assert_eq!(
        tailored.remarks(&[]),
        [
            "the learned rate is 60.0 rounds a second, one for each row that was inserted, updated or deleted"
        ]
    );
    // A number stays a number, whatever was learned.
    let fixed = OwnExperiment::parse(&TEMPLATE.replace("# rate = 500.0", "rate = 500 "));
    let fixed = fixed.expect("an experiment");
    let load = fixed.file.load.as_ref().expect("a load");
    assert_eq!(
        fixed.pace(load).expect("a pace"),
        Pace::Open { rate: 500.0 }
    );
    let tailored = fixed.with_shape(&shape).expect("it has a place");
    assert!(tailored.remarks(&[]).is_empty());
}

#[test]
fn a_rate_that_was_not_learned_is_refused_with_its_line() {
    let (own, line) = with_learned_rate();
    let nothing = crate::Plan::make(&own, None, &crate::PlanOptions::default());
    let nothing = nothing.expect_err("nothing was learned").to_string();
    assert!(
        nothing.starts_with(&line) && nothing.contains("nothing was learned: --learn-from"),
        "{nothing}"
    );
    let no_wal = Writing::Unknown {
        why: "pg_wal holds no WAL".to_owned(),
    };
    for (writing, why) in [
        (Some(no_wal), "as pg_wal holds no WAL"),
        (None, "learned by a version that did not look for it"),
        (
            Some(within_two_seconds(0, 0, 0)),
            "as no row of public.docs was written",
        ),
        (
            Some(within_two_seconds(u64::MAX, 0, 0)),
            "is not a rate of rounds a second",
        ),
    ] {
        let refused = own.with_shape(&written(writing)).map(|_| ());
        let refused = refused.expect_err("no rate").to_string();
        assert!(
            refused.starts_with(&line) && refused.contains(why),
            "{refused}"
        );
    }
    let word = refused("# rate = 500.0", "rate = \"lerned\" ");
    assert!(
        word.contains("line") && word.contains("it is a number, or \"learned\""),
        "{word}"
    );
}
