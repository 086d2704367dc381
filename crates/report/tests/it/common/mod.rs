//! Small documents, built from JSON as a program of another day would read them.

#![allow(dead_code, reason = "each test uses a part")]

mod experiment;
mod measure;
mod pages;

#[allow(unused_imports, reason = "each test uses a part")]
pub(crate) use experiment::experiment;
#[allow(unused_imports, reason = "each test uses a part")]
pub(crate) use measure::{figure_kinds, measured};
use pgclinic_model::FigureKinds;
use pgclinic_report::{Document, Options, RuleText, by_name};
use serde_json::{Value, json};

/// The document in a format, 80 columns wide.
pub(crate) fn render(format: &str, document: &Value) -> String {
    render_figures(format, document, &FigureKinds::default())
}

/// The same with figures.
pub(crate) fn render_figures(format: &str, document: &Value, figures: &FigureKinds) -> String {
    let explain = |rule: &str| {
        (rule == "lower-beyond-upper").then_some(RuleText {
            summary: "the free space of the page ends before it begins",
            explain: "# lower beyond upper\n\n`pd_lower` is beyond `pd_upper`.\n\n* torn page\n* stray write\n\n```\npgclinic heal PGDATA\n```\n",
        })
    };
    let options = Options {
        explain: &explain,
        figures,
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

/// A document of every kind, and what it is called.
pub(crate) fn samples() -> [(&'static str, Value); 12] {
    [
        ("healthy", healthy()),
        ("damaged", damaged()),
        ("incomplete", incomplete()),
        ("inspect", inspect()),
        ("drill", drill()),
        ("blind", blind()),
        ("rehearsal", rehearsal()),
        ("experiment", experiment()),
        ("salvaged", salvaged()),
        ("measured", measured()),
        ("differing", differing()),
        ("heal", heal()),
    ]
}

/// What every document begins with.
pub(crate) fn target() -> Value {
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
    document["evidence"] = json!([
        {"path": "base/5/16384.1", "block": 131_073, "page": pages::base64(&pages::hurt())}
    ]);
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

/// A page of 1 kB with two rows, the first of which lies about its header.
pub(crate) fn inspect() -> Value {
    let page = pages::heap(1024, 2);
    let field = |name: &str, start: u64, end: u64, value: &str| json!({"name": name, "bytes": [start, end], "value": value});
    let mut header = vec![
        field("pd_lsn", 0, 8, "1/6B374D48"),
        field("pd_checksum", 8, 10, "0x1a2b"),
        field("pd_flags", 10, 12, "0x0001"),
        field("pd_lower", 12, 14, "32"),
        field("pd_upper", 14, 16, "880"),
        field("pd_special", 16, 18, "1024"),
    ];
    header[2]["meaning"] = json!(["PD_HAS_FREE_LINES"]);
    let mut ranges: Vec<Value> = Vec::new();
    let mut label = |start: u64, end: u64, label: &str, part: &str| {
        ranges.push(json!({"bytes": [start, end], "label": label, "part": part}));
    };
    for (name, start, end) in [
        ("pd_lsn", 0, 8),
        ("pd_checksum", 8, 10),
        ("pd_flags", 10, 12),
        ("pd_lower", 12, 14),
        ("pd_upper", 14, 16),
        ("pd_special", 16, 18),
        ("pd_pagesize_version", 18, 20),
        ("pd_prune_xid", 20, 24),
    ] {
        label(start, end, name, "header");
    }
    label(24, 28, "line pointer 1", "line-pointer");
    label(28, 32, "line pointer 2", "line-pointer");
    label(32, 896, "free space", "free");
    for (item, start) in [(2, 896), (1, 960)] {
        label(
            start,
            start + 4,
            &format!("tuple {item}: t_xmin"),
            "tuple-header",
        );
        label(
            start + 4,
            start + 24,
            &format!("tuple {item}: rest of its header"),
            "tuple-header",
        );
        label(
            start + 24,
            start + 64,
            &format!("tuple {item}: values"),
            "tuple-data",
        );
    }
    let mut hoff = field("t_hoff", 982, 983, "24");
    hoff["fault"] = json!("t_hoff 24 is not what 2 attributes ask for");
    let mut mask = field("t_infomask", 980, 982, "0x0902");
    mask["meaning"] = json!([
        "HEAP_HASVARWIDTH",
        "HEAP_XMIN_COMMITTED",
        "HEAP_XMAX_INVALID"
    ]);
    let items = json!([
        {"item": 1, "at": 24, "lp_off": 960, "lp_flags": "LP_NORMAL", "lp_len": 60,
         "header": [field("t_xmin", 960, 964, "745"), mask, hoff], "state": "live",
         "values": [
            {"number": 1, "name": "id", "type": "int4", "bytes": [984, 988], "state": "value", "value": "1"},
            {"number": 2, "name": "body", "type": "text", "bytes": [988, 1020], "state": "value", "value": "row number 1 of public.docs"},
            {"number": 3, "name": "gone", "type": null, "dropped": true, "state": "null", "value": null}
         ]},
        {"item": 2, "at": 28, "lp_off": 896, "lp_flags": "LP_NORMAL", "lp_len": 60,
         "header": [field("t_xmin", 896, 900, "745")], "values": [
            {"number": 2, "name": "body", "type": "text", "bytes": [924, 956], "state": "undecodable", "value": null, "note": "the bytes are not UTF-8"}
         ]}
    ]);
    let mut finding = finding("i", "wrong-hoff", 1);
    finding["place"]["bytes"] = json!([982, 983]);
    finding["place"]["item"] = json!(1);
    let mut place = finding["place"].clone();
    place
        .as_object_mut()
        .expect("an object")
        .retain(|key, _| key != "item" && key != "bytes");
    json!({
        "schema": "pgclinic.inspect/1", "tool": {"name": "pgclinic", "version": "0.1.0"},
        "target": target(), "level": "structure", "coverage": coverage(), "place": place,
        "blocks": 12_345, "anatomy": {
            "page_kind": "heap", "header": header, "checksum": "wrong", "checksum_computed": 4660,
            "items": items, "special": [], "ranges": ranges, "page": pages::base64(&page)
        },
        "findings": [finding], "elapsed_s": 0.01
    })
}

fn drill_row(injury: &str, variant: &str, found_by: &[&str], outcome: &str) -> Value {
    let message = "ERROR:  invalid page in block 7 of relation \"base/5/16384\"";
    json!({
        "injury": injury, "variant": variant, "place": finding("d", "r", 7)["place"],
        "wound": "pd_lower set from 412 to 8001", "found_by": found_by,
        "message": "pd_lower 8001 is beyond pd_upper 8000", "cause": null, "missing": [],
        "unexpected": [], "blind": null, "server_says": message, "server_says_true": true,
        "with_checksums": {"started": true, "crashed": false, "messages": [message], "silent": []},
        "without_checksums": {"started": true, "crashed": false, "messages": [], "silent": ["public.docs"]},
        "undone": true, "way_out": "restore the block from a base backup and replay WAL",
        "outcome": outcome, "failures": []
    })
}

/// Three injuries, one of which did not go as declared.
pub(crate) fn drill() -> Value {
    let mut failed = drill_row(
        "torn-page",
        "sealed",
        &["item-overlap", "bad-hoff"],
        "failed",
    );
    failed["missing"] = json!(["torn-page"]);
    failed["failures"] = json!(["rule torn-page had to fire and did not"]);
    let mut blind = drill_row("hint-bits", "raw", &[], "blind");
    blind["blind"] = json!("hint bits may be set or not at any time");
    blind["way_out"] = json!(null);
    blind["server_does_not_look"] = json!("the page is all-visible");
    blind["with_checksums"] = json!(null);
    json!({
        "schema": "pgclinic.drill/1", "tool": {"name": "pgclinic", "version": "0.1.0"},
        "target": target(), "level": "structure", "coverage": coverage(),
        "server": "postgres (PostgreSQL) 18.6", "seed": 42,
        "rows": [drill_row("lower-beyond-upper", "raw", &["lower-beyond-upper"], "passed"), failed, blind],
        "outcomes": {"passed": 1, "blind": 1, "failed": 1},
        "not_run": [{"injury": "lost-segment", "why": "needs a relation of two segments: --large"}],
        "passed": false, "elapsed_s": 173.2
    })
}

/// Shots in the dark.
pub(crate) fn blind() -> Value {
    let kind = |kind: &str, checksums: bool, hurtful_found: u64| json!({"kind": kind, "checksums": checksums, "trials": 1200, "found": hurtful_found + 3, "hurtful": 1000, "hurtful_found": hurtful_found});
    json!({
        "schema": "pgclinic.drill-blind/1", "tool": {"name": "pgclinic", "version": "0.1.0"},
        "target": target(), "level": "structure", "coverage": coverage(),
        "server": "postgres (PostgreSQL) 18.6", "seed": 42,
        "kinds": [kind("bytes", true, 1000), kind("bytes", false, 612), kind("sector", false, 999)],
        "misses": [
            {"kind": "bytes", "place": finding("d", "r", 7)["place"], "file_bytes": [57_350, 57_354],
             "hurts": true, "server": "public.docs: 1 row differs", "found_by": [], "checksums": false}
        ],
        "passed": true, "elapsed_s": 92.0
    })
}

/// Four injuries of a copy: two were found, one is blind, one was missed.
pub(crate) fn rehearsal() -> Value {
    let injury = |name: &str, found_by: &[&str], blind: Value| {
        json!({
            "injury": name, "place": finding("d", "r", 7)["place"], "damage": "pd_lower set from 412 to 8001",
            "found_by": found_by, "message": null, "explained": found_by.len() > 1, "server_says": null,
            "way_out": "restore the block from a base backup and replay WAL", "blind": blind
        })
    };
    let score = |detected: u64| {
        json!({
            "injuries": 4, "detected": detected, "explained": 1, "blind": 1, "false_alarms": 1,
            "rows": 1200, "rows_saved": 1100, "rows_wrong": 2, "copy_s": 1.5, "check_s": 61.0, "salvage_s": 9.0
        })
    };
    json!({
        "schema": "pgclinic.rehearsal/1", "tool": {"name": "pgclinic", "version": "0.1.0"}, "kind": "drill",
        "target": target(), "level": "full", "coverage": coverage(), "seed": 42, "pages": 4711, "copied_bytes": 41_943_040,
        "injuries": [
            injury("header-random", &["checksum-mismatch", "invalid-page-flags"], json!(null)),
            injury("flipped-bit", &["checksum-mismatch"], json!("one bit may stand in free space or in a value")),
            injury("field3", &[], json!("nothing reads the command number of a finished transaction")),
            injury("lost-segment", &[], json!(null))
        ],
        "false_alarms": [{"rule": "orphan-file", "place": finding("d", "r", 9)["place"], "message": "no relation has this file"}],
        "tables": [{"database": "shop", "schema": "public", "table": "docs", "rows": 1200, "saved": 1100, "wrong": 2}],
        "score": score(2), "previous": score(3), "passed": false, "elapsed_s": 75.0
    })
}

/// The account of a hurt server that went down meanwhile.
pub(crate) fn salvaged() -> Value {
    let table = |name: &str, written: u64, more: Value| {
        let mut table = json!({
            "database": "shop", "schema": "public", "table": name, "oid": 16400, "kind": "table",
            "file": format!("shop/public.{name}.csv"), "file_bytes": 123_456, "columns": ["id", "body"],
            "written": written, "live": written, "dead": 0, "carved": 0, "mended": 0, "partial": 0, "uncertain": 0,
            "lost": 0, "damaged_pages": 0
        });
        let (Some(table), Value::Object(more)) = (table.as_object_mut(), more) else {
            panic!("objects");
        };
        table.extend(more);
        json!(table)
    };
    json!({
        "schema": "pgclinic.salvage/1",
        "tool": {"name": "pgclinic", "version": "0.1.0"},
        "target": target(),
        "form": "csv", "rows": "live", "outcome": "damaged",
        "replay": {"start": "0/15D3B20", "end": "0/16A0000", "why": "zeros", "records": 4711, "applied": 4000, "not_applied": 3,
                   "faults": ["file base/5/16400 is not there"], "is_complete": true},
        "snapshots": [
            {"number": 1, "transactions": "745:745:", "taken_at": "2026-11-22 08:00:00+00"},
            {"number": 2, "transactions": "751:753:751", "taken_at": "2026-11-22 08:01:00+00"}
        ],
        "totals": {"written": 1500, "live": 1497, "dead": 0, "carved": 2, "mended": 1, "partial": 1, "uncertain": 0, "lost": 2},
        "tables": [
            table("docs", 500, json!({
                "carved": 2, "mended": 1, "partial": 1, "lost": 2, "damaged_pages": 1, "snapshots": [1, 2], "not_replayed": 3,
                "places": [{"block": 7, "item": 3, "column": "body", "why": "chunk 2 of its 5 is missing in TOAST"},
                           {"block": 9, "why": "the page header makes no sense"}],
                "places_omitted": 4,
                "lost_keys": [{"index": "public.docs_pkey", "columns": ["id"], "keys": 2, "file": "shop/public.docs.lost_keys.csv"}],
                "columns_as": [{"column": "seen", "written_as": "text", "why": "it holds infinity"}],
                "notes": ["the connection was lost 1 times while the table was read"]
            })),
            table("whole", 1000, json!({"snapshots": [2]})),
            table("gone", 0, json!({"file": null, "file_bytes": 0}))
        ],
        "sequences": [{"database": "shop", "schema": "public", "sequence": "docs_id_seq", "last_value": 500, "is_called": true}],
        "large_objects": [{"database": "shop", "file": "shop/large_objects.tar", "file_bytes": 20480, "objects": 12, "bytes": 9000,
                           "places": [{"block": 1, "why": "the page is all zeros"}],
                           "doubtful": [{"object": 70003, "why": "bytes 2048 to 4096 were not found"}]}],
        "checks": [{"database": "shop", "schema": "public", "table": "docs", "key": "docs_pkey", "kind": "primary-key",
                    "columns": ["id"], "keys": 500, "broken": 1, "listed": ["7"]}],
        "counts": [
            {"database": "shop", "schema": "public", "table": "docs", "written": 500, "index": "public.docs_pkey", "led_to": 498,
             "nowhere": 9, "estimate": 510},
            {"database": "shop", "schema": "public", "table": "whole", "written": 1000, "index": "public.whole_pkey", "led_to": 1000},
            {"database": "shop", "schema": "public", "table": "twice", "written": 12, "index": "public.twice_pkey", "led_to": 10},
            {"database": "shop", "schema": "public", "table": "plain", "written": 7, "estimate": 8, "not_counted": "no index has all its rows"}
        ],
        "not_salvaged": [{"what": "the schema", "why": "the role may not read files"},
                         {"what": "tablespace annex", "why": "it is not there", "inherent": true}],
        "elapsed_s": 12.5
    })
}

fn copy(spec: &str) -> Value {
    json!({
        "spec": spec, "kind": "data-directory", "major": 18, "system_identifier": "7", "block_size": 8192,
        "segment_size": 1_073_741_824u64, "checksums": true, "state": "shut down"
    })
}

/// Two copies of a cluster that contradict each other.
pub(crate) fn differing() -> Value {
    json!({
        "schema": "pgclinic.diff/1", "tool": {"name": "pgclinic", "version": "0.1.0"},
        "a": copy("/one"), "b": copy("/two"),
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

/// A plan of a heal.
pub(crate) fn heal() -> Value {
    serde_json::from_str(include_str!("../documents/heal-1.json")).expect("a plan")
}

/// A page whose cells do not carry the names of their columns.
pub(crate) fn without_cell_names(page: &str) -> String {
    let mut parts = page.split(" data-name=\"");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('"').map_or(part, |(_, rest)| rest));
    }
    plain
}
