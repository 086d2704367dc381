//! Two copies against each other, in every form.

use crate::common;

use common::render;
use serde_json::{Value, json};

#[test]
fn the_text_begins_with_the_answer() {
    let text = render("text", &common::differing());
    let first = text.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("CONTRADICTORY  1 of 50 blocks differs in 1 file; 1 block in hints"),
        "{text}"
    );
    for words in [
        "A  /one: data directory",
        "stands at 0/2000028",
        "public.<docs>",
        "50 blocks in A, 52 in B",
        "block 7  stale in B, A 0/2000010, B 0/1000010",
        "1 block in hints",
    ] {
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(&words), "{words:?} in {text}");
    }
    assert!(!text.contains("block 9"), "hints are only counted");
}

/// Copies of two timelines, a file of whose status differs.
fn parted() -> Value {
    let mut own = common::differing();
    own["older"] = Value::Null;
    own["verdict"] = json!("parted");
    own["parted_at"] = json!("0/1000000");
    own["position_a"]["timeline"] = json!(1);
    own["position_b"]["timeline"] = json!(2);
    let why = "changed in A on timeline 1 after they parted at 0/1000000";
    own["forks"][0]["counts"] = json!([["parted", 2]]);
    own["forks"][0]["blocks"] = json!([{"block": 7, "difference": "parted", "lsn_a": "0/2000010", "lsn_b": "0/10", "why": why}]);
    own["files"] = json!([{
        "path": "global/pg_filenode.map", "kind": "relation-map", "difference": "parted", "why": "each may have <changed> it"
    }]);
    own
}

#[test]
fn copies_that_parted_are_told_with_the_place_and_the_cure() {
    let text = render("text", &parted());
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "PARTED 2 of 50 blocks differ in 1 file; 1 file beside the relations differs; they parted at 0/1000000, and neither is older",
        "stands at 0/2000028 on timeline 1",
        "A on timeline 1 and B on timeline 2 parted at 0/1000000: no replay leads from one to the other. pg_rewind",
        "Changed after they parted public.<docs>: 2 blocks changed after they parted",
        "global/pg_filenode.map parted each may have <changed> it",
    ] {
        assert!(joined.contains(words), "{words:?} in {text}");
    }
    assert!(!text.contains("Explained by the WAL"), "{text}");
    let page = render("html", &parted());
    for words in [
        "<h1>PARTED</h1>",
        "pg_rewind",
        "each may have &lt;changed&gt; it",
        "<td data-name=\"difference\">parted</td>",
    ] {
        assert!(page.contains(words), "{words:?} in {page}");
    }
    let back: Value = serde_json::from_str(&render("json", &parted())).expect("JSON");
    assert_eq!(
        (&back["parted_at"], &back["files"]),
        (&parted()["parted_at"], &parted()["files"])
    );
}

#[test]
fn what_nobody_can_tell_is_not_told_as_explained() {
    let mut own = parted();
    own["verdict"] = json!("incomplete");
    own.as_object_mut().expect("an object").remove("parted_at");
    own["forks"][0]["counts"] = json!([["undecided", 2]]);
    let text = render("text", &own);
    assert!(text.starts_with("INCOMPLETE"), "{text}");
    assert!(
        text.contains("which is older cannot be determined"),
        "{text}"
    );
    assert!(
        text.contains("Nothing tells whether WAL explains it"),
        "{text}"
    );
    assert!(!text.contains("Explained by the WAL"), "{text}");
}

#[test]
fn the_page_escapes_names() {
    let page = render("html", &common::differing());
    assert!(page.contains("public.&lt;docs&gt;") && !page.contains("<docs>"));
    let page = common::without_cell_names(&page);
    assert!(page.contains("<td>stale</td><td>B</td>"));
}

#[test]
fn json_comes_back_as_it_was() {
    let back: Value = serde_json::from_str(&render("json", &common::differing())).expect("JSON");
    assert_eq!(back["schema"], "pgclinic.diff/1");
    assert_eq!(back["forks"], common::differing()["forks"]);
}
