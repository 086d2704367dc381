//! The demonstration: each of its steps is a run of the program, and nothing is left changed.

use std::process::Command;

use pgclinic_servers::{Server, StartOptions};
use pgclinic_testkit::{run_as, scratch, server};

use crate::common::{pgclinic, text};

const README: &str = include_str!("../../../../README.md");

#[test]
fn it_shows_damage_rescue_and_undo() {
    let ran = pgclinic(&["demo"]).exits(0);
    let words = ran.out.lines().filter_map(|line| line.split("  ").nth(1));
    let verdicts: Vec<&str> = words
        .map(|words| words.trim_start_matches(' '))
        .filter(|words| ["HEALTHY", "DAMAGED"].contains(words))
        .collect();
    assert_eq!(
        verdicts,
        ["HEALTHY", "DAMAGED", "DAMAGED", "HEALTHY"],
        "{}",
        ran.out
    );
    for words in [
        "bytes 5120 to 5631 set to zero; bytes 5120 to 5629 change",
        "157 rows at risk",
        "$ pgclinic inspect ",
        "11 keys of public.orders_pkey",
        "undone: zeroed-sector",
    ] {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
    assert!(ran.out.contains("no damage in"), "{}", ran.out);
    assert!(!ran.out.contains("warning"), "{}", ran.out);
    let (_, example) = README.split_once("$ pgclinic demo\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    for line in example.lines().filter(|line| line.trim() != "…") {
        let is_shown = ran.out.lines().any(|own| own == line);
        assert!(is_shown, "{line}");
        assert!(line.chars().count() <= 80, "{line}");
    }
}

/// The cluster is one that a server wrote and reads, and what is kept holds all rows again.
#[test]
fn what_is_kept_is_a_cluster_that_a_server_opens() {
    let scratch = scratch();
    let folder = scratch.path().join("demo");
    pgclinic(&["demo", "--to", text(&folder)]).exits(0);
    let saved =
        std::fs::read_to_string(folder.join("rows/shop/public.orders.lost_keys.orders_pkey.csv"));
    assert_eq!(saved.expect("the lost keys").lines().count(), 12);
    let pgdata = folder.join("shop");
    let owner = Command::new("chown")
        .args(["-R", &run_as().name])
        .arg(&folder)
        .status();
    assert!(owner.expect("chown").success());
    let running = Server::start(&server(15), &run_as(), &pgdata, &StartOptions::default());
    let running = running.expect("a server");
    let mut session = running.connect("shop").expect("a session");
    let count = session.query_value("SELECT count(*) FROM orders");
    assert_eq!(count.expect("a count").as_deref(), Some("4949"));
    let again = pgclinic(&["demo", "--to", text(&folder)]).exits(2);
    assert!(again.err.contains("cannot make"), "{}", again.err);
}
