//! A name that fits nothing: what is near, what is there without its file, and nothing is begun
//! with it.

use std::path::Path;

use crate::common::{Ran, pgclinic, text};

#[test]
fn a_misspelt_name_meets_the_one_that_is_near() {
    let folder = tempfile::tempdir().expect("a directory");
    let demo = folder.path().join("demo");
    pgclinic(&["demo", "--to", text(&demo)]).exits(0);
    let pgdata = demo.join("shop");
    let says = |command: &str, options: &[&str], words: &str| {
        let ran = pgclinic(&[&[command, text(&pgdata)], options].concat()).exits(2);
        assert!(ran.err.contains(words), "{options:?}: {}", ran.err);
    };
    let orders = "(did you mean public.orders";
    says("inspect", &["--relation", "public.order"], orders);
    says("check", &["--relation", "public.ordres"], orders);
    says("check", &["--relation", "ordres"], "(did you mean orders");
    says("check", &["--database", "shp"], "(did you mean shop?).");
    says("check", &["--relation", "nothing.of_it"], "matches nothing");
    says("measure", &["--relation", "public.ordres"], orders);
    let rows = folder.path().join("rows");
    let to = ["--relation", "public.ordres", "--to", text(&rows)];
    says("salvage", &to, orders);
    says(
        "diff",
        &[text(&pgdata), "--relation", "public.ordres"],
        orders,
    );
    let sector = "there is no injury zeroed-secto (did you mean zeroed-sector";
    says("injure", &["--injury", "zeroed-secto"], sector);
    let drill = pgclinic(&["drill", "--injury", "zeroed-secto"]).exits(2);
    assert!(drill.err.contains(sector), "{}", drill.err);

    let path = file_of(&pgdata, "public.orders");
    std::fs::remove_file(pgdata.join(&path)).expect("a file");
    says(
        "inspect",
        &["--relation", "public.orders"],
        "(public.orders is in pg_class, and its file",
    );
}

/// As `inspect` names it.
fn file_of(pgdata: &Path, relation: &str) -> String {
    let ran: Ran = pgclinic(&["inspect", text(pgdata), "--relation", relation]).exits(0);
    let (_, path) = ran.first_line().split_once('(').expect("a path");
    path.split_once(')').expect("its end").0.to_owned()
}

#[test]
fn a_drill_of_an_unknown_injury_or_scenario_makes_nothing() {
    for option in ["--injury", "--scenario"] {
        let ran = pgclinic(&["drill", option, "nosuch"]).exits(2);
        assert!(ran.err.contains("nosuch"), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
}
