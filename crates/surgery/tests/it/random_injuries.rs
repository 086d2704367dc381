//! Random damage: rows, headers and chunks of random bytes, and many of them within a budget.

use std::collections::BTreeSet;

use pgclinic_cluster::Cluster;
use pgclinic_model::Level;
use pgclinic_model::plan::Change;
use pgclinic_servers::{Checksums, SqlError, StartOptions};
use pgclinic_surgery::{
    Consent, DamageBudget, Injury, InjuryOptions, InjuryTargets, Operation, PageBudget,
    PlannedInjuries, apply, injuries, injury_named, mark_copy, plan_named, plan_on, plan_random,
    undo,
};
use pgclinic_testkit::{checked, copy_of, directory, open, seed, server};

use crate::parity::hurt::{anywhere, write};

fn named(name: &str) -> &'static Injury {
    injury_named(name).expect("an injury")
}

/// What the articles show: `could not access status of transaction 3993941890`, and the file of
/// `pg_xact` that is not there.
fn a_row_stops_its_table(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let cluster = open(&copy.pgdata);
    let targets = InjuryTargets::new(&cluster);
    let planned = plan_on(&targets, named("system-columns-random"), &anywhere());
    let planned = planned.expect("a page that a scan asks about");
    write(&copy.pgdata, &planned);

    let document = checked(&open(&copy.pgdata), Level::Full);
    let mut findings = document.findings.iter();
    let found = findings.find(|finding| finding.rule == "xmin-before-freeze");
    let found = found.expect("the rule that it is about");
    let foretold = found.server_says.clone().expect("the server's words");

    let options = StartOptions::default()
        .with("autovacuum", "off")
        .with("max_prepared_transactions", "8");
    let server = copy.start_with(&options).expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let table = planned.place.relation_name();
    let answer = session.copy_out(&format!("COPY {table} TO STDOUT"), &mut |_| {});
    let Err(SqlError::Server(message)) = answer else {
        panic!("{table} is read as if nothing were wrong: {answer:?}");
    };
    let said = format!("{}:  {}", message.severity, message.message);
    assert_eq!(said, foretold);
    let detail = message.detail.unwrap_or_default();
    assert!(
        detail.starts_with("Could not open file \"pg_xact/") && detail.contains("No such file"),
        "{detail}"
    );
}

#[test]
fn an_article_shows_random_system_columns_of_a_row_that_stop_its_table_on_18() {
    a_row_stops_its_table(18);
}

#[test]
fn an_article_shows_random_system_columns_of_a_row_that_stop_its_table_on_13() {
    a_row_stops_its_table(13);
}

#[test]
fn random_system_columns_are_found_with_any_seed_and_the_two_kinds_of_pages_are_apart() {
    let pgdata = seed(&server(18), Checksums::On).pgdata;
    let cluster = open(&pgdata);
    let targets = InjuryTargets::new(&cluster);
    for (name, trusts_page) in [
        ("system-columns-random", false),
        ("system-columns-random-all-visible", true),
    ] {
        for seed in 0..30 {
            let options = InjuryOptions { seed, ..anywhere() };
            let planned = plan_on(&targets, named(name), &options).expect("a page");
            assert_eq!(planned.is_all_visible, trusts_page, "{name}, seed {seed}");
            assert_eq!(planned.damage.must, ["xmin-before-freeze"]);
        }
    }
}

#[test]
fn chunks_are_found_by_the_table_that_they_belong_to() {
    let pgdata = seed(&server(18), Checksums::On).pgdata;
    let cluster = open(&pgdata);
    let targets = InjuryTargets::new(&cluster);
    let chunks = injuries().iter();
    let chunks: Vec<_> = chunks
        .filter(|injury| injury.name.starts_with("chunk-"))
        .collect();
    assert!(chunks.len() >= 9);
    for injury in chunks {
        for relation in ["docs", "public.docs"] {
            let options = InjuryOptions {
                relation: Some(relation.into()),
                ..anywhere()
            };
            let planned = plan_on(&targets, injury, &options);
            let planned = planned.unwrap_or_else(|error| panic!("{}: {error}", injury.name));
            let schema = planned.place.schema.as_deref();
            assert_eq!(schema, Some("pg_toast"), "{}", injury.name);
        }
    }
}

fn random(targets: &InjuryTargets<'_>, seed: u64, pages: PageBudget) -> PlannedInjuries {
    let options = InjuryOptions {
        seed,
        database: Some("clinic".into()),
        ..InjuryOptions::default()
    };
    let budget = DamageBudget {
        pages,
        lost_segments: 3,
    };
    plan_random(targets, &[], &options, budget).expect("pages")
}

fn places(planned: &PlannedInjuries) -> Vec<(String, String)> {
    let injuries = planned.injuries.iter();
    injuries
        .map(|(injury, own)| (injury.name.to_owned(), own.place.to_string()))
        .collect()
}

#[test]
fn a_budget_is_kept_and_the_same_seed_gives_the_same_damage() {
    let pgdata = seed(&server(18), Checksums::On).pgdata;
    let cluster = open(&pgdata);
    let targets = InjuryTargets::new(&cluster);
    let planned = random(&targets, 7, PageBudget::Share(20_000));
    let again = random(&targets, 7, PageBudget::Share(20_000));
    assert_eq!(planned.patch, again.patch);
    assert_eq!(places(&planned), places(&again));
    let other = random(&targets, 8, PageBudget::Share(20_000));
    assert_ne!(planned.patch, other.patch);

    let is_lost = |change: &&Change| matches!(change, Change::Remove { .. });
    let lost = planned.patch.changes.iter().filter(is_lost).count();
    assert_eq!(lost, 3);
    let wanted = PageBudget::Share(20_000).pages(planned.pages);
    let hurt = planned.injuries.len() as u64 - 3;
    assert!(wanted >= 3 && hurt + planned.left_over == wanted, "{hurt}");
    let apart: BTreeSet<_> = planned
        .injuries
        .iter()
        .map(|(_, own)| (own.place.filenode, own.place.block))
        .collect();
    assert_eq!(apart.len(), planned.injuries.len());
}

#[test]
fn random_injuries_are_taken_back_to_the_first_bytes() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    mark_copy(&copy.pgdata).expect("a marker");
    let cluster = open(&copy.pgdata);
    let planned = random(&InjuryTargets::new(&cluster), 3, PageBudget::Count(25));
    let files = || {
        let changes = planned.patch.changes.iter();
        changes.map(|change| std::fs::read(copy.pgdata.join(change.path())).ok())
    };
    let before: Vec<_> = files().collect();
    let journals = tempfile::tempdir().expect("a directory");
    let journal = journals.path().join("random");
    let operation = Operation {
        pgdata: &copy.pgdata,
        patch: &planned.patch,
        journal: &journal,
        consent: Consent::Marked,
        what: "random injuries",
        time: None,
        beside: &[],
        control_file: None,
    };
    apply(&operation).expect("written");
    assert!(files().zip(&before).all(|(after, before)| after != *before));
    undo(&journal, None).expect("undone");
    assert!(files().eq(before));
}

#[test]
fn several_injuries_are_made_apart() {
    let pgdata = seed(&server(18), Checksums::On).pgdata;
    let cluster = Cluster::open(directory(&pgdata)).expect("a cluster");
    let targets = InjuryTargets::new(&cluster);
    let several = ["flipped-bit", "flipped-bit", "zeroed-sector", "lost-file"].map(named);
    let planned = plan_named(&targets, &several, &anywhere()).expect("four places");
    let places: BTreeSet<_> = planned
        .injuries
        .iter()
        .map(|(_, own)| (own.place.path.clone(), own.place.block))
        .collect();
    assert_eq!(places.len(), 4);
    let options = InjuryOptions {
        relation: Some("docs".into()),
        ..anywhere()
    };
    let crowded = ["lost-file", "flipped-bit"].map(named);
    assert!(plan_named(&targets, &crowded, &options).is_err());
}
