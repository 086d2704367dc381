//! Two copies against each other, in every form.

mod common;

use common::render;
use serde_json::{Value, json};

fn target(spec: &str) -> Value {
    json!({
        "spec": spec, "kind": "data-directory", "major": 18, "system_identifier": "7", "block_size": 8192,
        "segment_size": 1_073_741_824u64, "checksums": true, "state": "shut down"
    })
}

fn document() -> Value {
    json!({
        "schema": "pgclinic.diff/1", "tool": {"name": "pgclinic", "version": "0.1.0"},
        "a": target("/one"), "b": target("/two"),
        "position_a": {"redo": "0/2000028", "end": "0/2000028"},
        "position_b": {"redo": "0/3000028", "end": "0/4000000", "goes_on_elsewhere": true},
        "older": "a", "verdict": "contradictory",
        "coverage": {"bytes_read": 819_200, "forks": 3, "blocks": 50, "blocks_equal": 48, "not_checked": []},
        "forks": [{
            "database": "clinic", "schema": "public", "relation": "<docs>", "filenode": 16384, "path": "base/5/16384",
            "kind": "table", "fork": "main", "blocks_a": 50, "blocks_b": 52,
            "counts": [["stale", 1], ["hints", 1]],
            "blocks": [
                {"block": 7, "difference": "stale", "copy": "b", "lsn_a": "0/2000010", "lsn_b": "0/1000010", "why": "B is older"},
                {"block": 9, "difference": "hints", "lsn_a": "0/10", "lsn_b": "0/10", "why": "hint bits"}
            ],
            "blocks_omitted": 0
        }],
        "elapsed_s": 0.5
    })
}

#[test]
fn the_text_begins_with_the_answer() {
    let text = render("text", &document());
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

#[test]
fn the_page_escapes_names() {
    let page = render("html", &document());
    assert!(page.contains("public.&lt;docs&gt;") && !page.contains("<docs>"));
    assert!(page.contains("<td>stale</td><td>B</td>"));
}

#[test]
fn json_comes_back_as_it_was() {
    let back: Value = serde_json::from_str(&render("json", &document())).expect("JSON");
    assert_eq!(back["schema"], "pgclinic.diff/1");
    assert_eq!(back["forks"], document()["forks"]);
}
