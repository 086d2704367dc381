//! The entries of a dump's catalogue and its files do not depend on speed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::common;

use common::{metric, results, smallest};
use pgclinic_lab::{Outcome, SiteOptions, experiment_named, skipped_here};
use pgclinic_servers::everywhere;

#[test]
fn every_object_has_an_entry_until_16_and_a_file_in_the_directory_format() {
    let results = results(smallest("large-object-dump", &[]), None);
    let done = |arm: &str| {
        results
            .iter()
            .any(|result| result.cell.arm == arm && result.is_done())
    };
    let of =
        |arm: &str, format: &str, name: &str| metric(&results, arm, &[("format", format)], name);
    // Which pg_dump is here depends on the machine.
    for arm in ["pg-dump-16", "pg-dump-17"] {
        if !done(arm) {
            let run = results.iter().find(|result| result.cell.arm == arm);
            let Some(Outcome::Skipped { why }) = run.map(|run| &run.outcome) else {
                panic!("{arm}: {run:?}")
            };
            println!("{arm} is not examined: {why}");
            continue;
        }
        assert!(of(arm, "directory", "files") >= 500.0, "{arm}");
        assert_eq!(of(arm, "custom", "files"), 1.0, "{arm}");
        let (entries, expected) = (of(arm, "custom", "entries"), arm == "pg-dump-16");
        assert_eq!(entries >= 500.0, expected, "{arm} writes {entries} entries");
    }
    if done("pg-dump-16") && done("pg-dump-17") {
        let catalogue = |arm: &str| of(arm, "directory", "catalogue_bytes");
        assert!(catalogue("pg-dump-17") * 4.0 < catalogue("pg-dump-16"));
    } else {
        println!("the catalogues of two dumps are not compared: one pg_dump is missing");
    }
}

#[test]
fn a_plan_promises_no_dump_that_is_not_here() {
    let experiment = experiment_named("large-object-dump").expect("the experiment");
    let plan = smallest("large-object-dump", &[]);
    let interrupted = Arc::new(AtomicBool::new(false));
    let skipped = skipped_here(experiment, &plan, &SiteOptions::default(), interrupted);
    let impossible = skipped.expect("a look").arms;
    let has_dump = |majors: std::ops::RangeInclusive<u16>| {
        let mut all = everywhere().into_iter();
        all.any(|own| {
            let tools = ["pg_dump", "pg_restore"];
            majors.contains(&own.major) && tools.iter().all(|name| own.tool(name).is_some())
        })
    };
    for (arm, majors) in [("pg-dump-16", 15..=16), ("pg-dump-17", 17..=18)] {
        let is_impossible = impossible.iter().any(|own| own == arm);
        assert_eq!(is_impossible, !has_dump(majors), "{arm} of {impossible:?}");
    }
}
