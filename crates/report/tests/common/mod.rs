//! Small documents, built from JSON as a program of another day would read them.

use pgclinic_report::{Document, Options, RuleText, by_name};
use serde_json::{Value, json};

/// The document in a format, 80 columns wide.
pub(crate) fn render(format: &str, document: &Value) -> String {
    let explain = |rule: &str| {
        (rule == "lower-beyond-upper").then_some(RuleText {
            summary: "the free space of the page ends before it begins",
            explain: "# lower beyond upper\n\n`pd_lower` is beyond `pd_upper`.\n\n* torn page\n* stray write\n\n```\npgclinic heal PGDATA\n```\n",
        })
    };
    let options = Options {
        explain: &explain,
        ..Options::default()
    };
    render_with(format, document, &options)
}

/// The document in a format.
pub(crate) fn render_with(format: &str, document: &Value, options: &Options<'_>) -> String {
    let document = Document::from_json(document.to_string().as_bytes()).expect("a document");
    let mut out = Vec::new();
    let format = by_name(format).expect("a format of the register");
    format
        .render(&document, options, &mut out)
        .expect("memory takes all bytes");
    String::from_utf8(out).expect("all formats are text")
}

/// What every document begins with.
fn target() -> Value {
    json!({
        "spec": "/var/lib/postgresql/18/main", "kind": "data-directory", "major": 18,
        "system_identifier": "7512345678901234567", "block_size": 8192,
        "segment_size": 1_073_741_824, "checksums": true, "state": "shut down"
    })
}

fn coverage() -> Value {
    json!({
        "bytes_seen": 44_774_569_984_u64, "bytes_checked": 44_774_569_984_u64, "bytes_skipped": 0,
        "bytes_unreadable": 0, "pages": 5_465_646, "relations": 312, "not_checked": []
    })
}

/// A cluster without a fault.
pub(crate) fn healthy() -> Value {
    json!({
        "schema": "pgclinic.check/1", "tool": {"name": "pgclinic", "version": "0.1.0"},
        "target": target(), "level": "structure", "verdict": "healthy", "needs_recovery": false,
        "coverage": coverage(), "relations": [], "evidence": [], "findings_total": 0,
        "findings_omitted": 0, "findings": [], "elapsed_s": 12.34
    })
}

/// A finding in `public.docs`.
pub(crate) fn finding(id: &str, rule: &str, block: u32) -> Value {
    json!({
        "id": id, "cause": null, "caused_by": null, "rule": rule, "severity": "damage",
        "place": {"path": "base/5/16384", "database": "postgres", "schema": "public",
                  "relation": "docs", "database_oid": 5, "relation_oid": 16390, "filenode": 16384,
                  "kind": "table", "fork": "main", "block": block},
        "message": format!("something is wrong with block {block}"), "facts": {},
        "server_says": null, "at_risk": {"rows": null}, "remedies": []
    })
}

/// A torn page with followers in its index, and a warning elsewhere.
pub(crate) fn damaged() -> Value {
    let mut document = healthy();
    document["verdict"] = json!("damaged");
    let mut root = finding("a", "lower-beyond-upper", 131_073);
    root["place"]["path"] = json!("base/5/16384.1");
    root["place"]["bytes"] = json!([12, 14]);
    root["message"] = json!("pd_lower 8001 is beyond pd_upper 8000");
    root["server_says"] =
        json!("ERROR:  invalid page in block 131073 of relation \"base/5/16384\"");
    root["cause"] = json!({"name": "torn-page", "confidence": 0.8, "facts": {"border": 4096}});
    root["at_risk"] = json!({"rows": 412});
    root["remedies"] = json!([
        {"name": "restore-from-wal", "safety": "exact", "command": "pgclinic heal /var/lib/postgresql/18/main --only a"},
        {"name": "zero-the-page", "safety": "lossy", "command": "SET zero_damaged_pages = on; VACUUM public.docs;"}
    ]);
    let mut findings = vec![root];
    for number in 0..12_u32 {
        let mut follower = finding(&format!("f{number}"), "item-outside-page", 131_073);
        follower["caused_by"] = json!("a");
        if number > 8 {
            follower["rule"] = json!("points-to-nothing");
            follower["place"]["relation"] = json!("docs_pkey");
            follower["place"]["relation_oid"] = json!(16_391);
            follower["place"]["block"] = json!(number);
        }
        findings.push(follower);
    }
    let mut warning = finding("w", "unknown-file", 0);
    warning["severity"] = json!("warning");
    warning["place"] = json!({"path": "base/5/99999", "kind": "file"});
    warning["message"] = json!("no catalog names this file of 16384 bytes");
    findings.push(warning);
    document["findings_total"] = json!(findings.len());
    document["findings"] = json!(findings);
    let relation = json!({
        "database": "postgres", "schema": "public", "relation": "docs", "database_oid": 5,
        "relation_oid": 16390, "filenode": 16384, "path": "base/5/16384", "kind": "table",
        "fork": "main", "blocks": 200_000, "damaged": [[131_073, 131_074]]
    });
    document["relations"] = json!([relation]);
    document
}

/// A cluster that crashed and could not be read to the end.
pub(crate) fn incomplete() -> Value {
    let mut document = healthy();
    document["verdict"] = json!("incomplete");
    document["needs_recovery"] = json!(true);
    document["target"]["state"] = json!("in production");
    document["coverage"]["bytes_checked"] = json!(44_774_561_791_u64);
    document["coverage"]["bytes_unreadable"] = json!(8193);
    document["coverage"]["not_checked"] = json!([
        {"what": "base/5/16399", "why": "reading at 73728 failed: Input/output error (os error 5)"},
        {"what": "limits from the control file and comparisons between files", "why": "the cluster was not shut down in good order; replay of its WAL would change them"},
        {"what": "order of public.names_idx", "why": "the libc that sorted it is not this one", "inherent": true}
    ]);
    document
}
