//! A heal's plan as an earlier run saved it: it stays readable, and says what it said.

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
