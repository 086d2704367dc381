//! `pgclinic heal postgres://…`: a plan of SQL for a running server, run one statement at a time.

use pgclinic_model::document::{HealDocument, HealOutcome};
use pgclinic_model::plan::Safety;
use pgclinic_servers::{ConnectionTarget, Server, StopMode};
use pgclinic_testkit::{execute, value};

use crate::common::{Ran, pgclinic};
use crate::heal_evidence::{ROWS, Ward, document};

fn heal(server: &Server, words: &[&str]) -> Ran {
    let target = ConnectionTarget {
        user: "postgres".into(),
        ..ConnectionTarget::of(server, "clinic")
    };
    let url = target.to_string();
    pgclinic(&[&["heal", &url, "--format", "json"], words].concat())
}

fn statements(document: &HealDocument) -> Vec<(&str, Safety)> {
    let all = document.statements.iter();
    all.map(|own| (own.sql.as_str(), own.safety)).collect()
}

#[test]
fn an_index_is_built_again_on_request() {
    let ward = Ward::new();
    ward.hurt(&ward.key, 1);
    let mut running = ward.start();
    let planned = document(&heal(&running, &[]).exits(3));
    assert_eq!(planned.outcome, HealOutcome::Planned);
    let reindex = "REINDEX INDEX CONCURRENTLY public.papers_pkey";
    assert_eq!(statements(&planned), [(reindex, Safety::Exact)]);
    let first = &planned.statements[0];
    assert!(first.locks.contains("SHARE UPDATE EXCLUSIVE") && first.answer.is_none());

    let refused = heal(&running, &["--run", "1"]).exits(2);
    assert!(refused.err.contains("needs --yes"), "{}", refused.err);
    let refused = heal(&running, &["--run", "2", "--yes"]).exits(2);
    assert!(refused.err.contains("no statement 2"), "{}", refused.err);
    let healed = document(&heal(&running, &["--run", "1", "--yes"]).exits(0));
    assert_eq!(healed.outcome, HealOutcome::Healed);
    assert!(
        healed.statements[0]
            .answer
            .as_ref()
            .is_some_and(|own| own.done)
    );
    let nothing = document(&heal(&running, &[]).exits(0));
    assert_eq!(nothing.outcome, HealOutcome::NothingToHeal);
    assert_eq!(value(&running, ROWS), ward.rows);
    running.stop(StopMode::Fast).expect("a stop");
}

#[test]
fn a_page_of_a_table_is_not_for_sql() {
    let ward = Ward::new();
    ward.hurt(&ward.table, 3);
    let mut running = ward.start();
    let planned = document(&heal(&running, &[]).exits(3));
    assert!(planned.statements.is_empty(), "{:?}", planned.statements);
    let [left] = &planned.not_healed[..] else {
        panic!("one page is left: {:?}", planned.not_healed);
    };
    assert_eq!(
        (left.path.as_str(), &left.blocks[..]),
        (ward.table.as_str(), &[[3, 4]][..])
    );
    running.stop(StopMode::Fast).expect("a stop");
}

#[test]
fn cures_of_files_are_refused_beside_a_server() {
    let ward = Ward::new();
    let mut running = ward.start();
    for words in [
        &["--prove"][..],
        &["--at", "base/5/1:0:1", "--kill"],
        &["--copy-to", "/nowhere"],
    ] {
        let refused = heal(&running, words).exits(2);
        assert!(
            refused.err.contains("for the URL of a running server"),
            "{}",
            refused.err
        );
    }
    running.stop(StopMode::Fast).expect("a stop");
    let refused = ward.heal(&["--run", "1", "--yes"]).exits(2);
    assert!(
        refused.err.contains("--run is for the postgres:// URL"),
        "{}",
        refused.err
    );
}

/// The row cannot be read before; afterwards it is gone, and the others are there.
#[test]
fn a_broken_row_is_killed_by_its_id_alone() {
    let ward = crate::heal::Ward::of(15, &[]);
    ward.injure("hoff-misaligned", "7");
    let mut running = ward.start();
    execute(&running, "DROP EXTENSION IF EXISTS pg_surgery");
    let planned = document(&heal(&running, &[]).exits(3));
    let expected = [
        (
            "CREATE EXTENSION IF NOT EXISTS pg_surgery SCHEMA public",
            Safety::Exact,
        ),
        (
            "SELECT public.heap_force_kill('public.healed'::regclass, ARRAY['(0,7)']::tid[])",
            Safety::Lossy,
        ),
    ];
    assert_eq!(statements(&planned), expected);
    heal(&running, &["--run", "1", "--yes"]).exits(1);
    // With the extension there, its statement is no longer needed.
    let planned = document(&heal(&running, &[]).exits(3));
    let kill = &planned.statements[0];
    assert_eq!((kill.number, kill.sql.as_str()), (1, expected[1].0));
    let refused = heal(&running, &["--run", "1", "--yes"]).exits(2);
    let accept = format!("--accept {}", kill.id);
    assert!(refused.err.contains(&accept), "{}", refused.err);
    let words = ["--run", "1", "--accept", &kill.id];
    let killed = document(&heal(&running, &words).exits(0));
    assert_eq!(killed.outcome, HealOutcome::Healed);
    assert_eq!(value(&running, "SELECT count(*) FROM healed"), "49");
    running.stop(StopMode::Fast).expect("a stop");
}

/// The check of the running server knows from its WAL which transactions have begun.
#[test]
fn a_row_of_a_transaction_that_has_not_begun_is_in_the_plan() {
    let ward = crate::heal::Ward::of(15, &[]);
    ward.injure("xmin-in-the-future", "7");
    let mut running = ward.start();
    let found = crate::common::check_json(&ward.copy.pgdata, 1);
    assert_eq!(found.findings[0].rule, "xmin-in-the-future");
    let planned = document(&heal(&running, &[]).exits(3));
    assert_eq!(planned.outcome, HealOutcome::Planned);
    let sql: Vec<&str> = statements(&planned).iter().map(|(sql, _)| *sql).collect();
    for function in ["heap_force_freeze", "heap_force_kill"] {
        let call = format!("{function}('public.healed'::regclass, ARRAY['(0,7)']::tid[])");
        assert!(sql.iter().any(|own| own.contains(&call)), "{sql:?}");
    }
    running.stop(StopMode::Fast).expect("a stop");
}
