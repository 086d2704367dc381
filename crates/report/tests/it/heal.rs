//! Plans of heals as earlier runs saved them: they stay readable, and say what they said.

use crate::common;

use common::render;
use serde_json::{Value, json};

fn plan() -> Value {
    serde_json::from_str(include_str!("documents/heal-1.json")).expect("a plan")
}

#[test]
fn a_plan_shows_what_changes_and_what_goes() {
    insta::assert_snapshot!(render("text", &plan()));
}

#[test]
fn a_page_shows_the_same_and_lets_no_word_out_of_its_place() {
    let mut document = plan();
    document["cures"][0]["summary"] = json!("</script><img src=x onerror='alert(1)'>");
    document["cures"][0]["rows"][0]["values"][1]["value"] = json!("<b>bold</b>");
    let html = render("html", &document);
    assert!(
        !html.contains("<img src=x") && !html.contains("<b>bold"),
        "{html}"
    );
    for words in [
        "LP_NORMAL",
        "LP_DEAD",
        "public.healed_pkey",
        "REINDEX INDEX",
    ] {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn what_was_carried_out_names_journal_and_rows() {
    let mut document = plan();
    document["outcome"] = json!("healed");
    document["cures"][0]["outcome"] = json!("healed");
    document["applied"] = json!({
        "pgdata": "/data", "journal": "/data.heal.journal", "is_copy": false, "changes": 2,
        "rows_saved": [{"file": "db.public.healed.csv", "rows": 1, "as_hex": 0}]
    });
    let text = render("text", &document);
    for words in [
        "HEALED  1 cure (1 lossy); 1 row lost; 2 changes written to /data",
        "db.public.healed.csv: 1 row",
        "pgclinic heal --undo /data.heal.journal",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// Pages of a table, a file of `pg_xact` that is replaced and made longer, and a server that starts
/// again: nothing of a plan is lost on the way through this version.
#[test]
fn every_plan_is_written_again_as_it_was() {
    let plans = [
        include_str!("documents/heal-1.json"),
        include_str!("documents/heal-2.json"),
        include_str!("documents/heal-3.json"),
    ];
    for plan in plans {
        let before: Value = serde_json::from_str(plan).expect("a plan");
        let after: Value = serde_json::from_str(&render("json", &before)).expect("JSON");
        assert_eq!(after, before);
    }
}

/// Rows of lost transactions stand counted in the tables of the plan, and so in its first line.
#[test]
fn hidden_rows_are_counted_where_the_plan_counts_them() {
    let plan = include_str!("documents/heal-3.json");
    let mut plan: Value = serde_json::from_str(plan).expect("a plan");
    let table = &mut plan["cures"][0]["start"]["tables"][0];
    table["hidden"] = json!(1200);
    let counted = render("text", &plan);
    assert!(counted.contains("rows hidden"), "{counted}");
    plan["cures"][0]["start"]["tables"][0]["pages_unreadable"] = json!(1);
    let uncounted = render("text", &plan);
    assert!(uncounted.contains("that nobody can count"), "{uncounted}");
}
