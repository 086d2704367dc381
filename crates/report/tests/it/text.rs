//! What a person sees in a terminal.

use crate::common;

use common::{
    blind, damaged, drill, experiment, finding, healthy, incomplete, inspect, rehearsal, render,
    render_with,
};
use pgclinic_report::Options;
use serde_json::{Value, json};

#[test]
fn a_healthy_cluster_takes_one_screen() {
    insta::assert_snapshot!(render("text", &healthy()));
}

#[test]
fn damage_stands_under_its_relation_with_what_follows_folded() {
    insta::assert_snapshot!(render("text", &damaged()));
}

#[test]
fn what_was_not_checked_is_as_loud_as_damage() {
    insta::assert_snapshot!(render("text", &incomplete()));
}

fn in_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn a_run_over_what_changed_says_what_it_did_with_the_rest() {
    let mut document = damaged();
    document["coverage"]["pages_unchanged"] = json!(1200);
    document["since"] =
        json!({"lsn": "0/15A0", "pages_unchanged": 1200, "pages_again": 1, "findings_carried": 2});
    document["findings"][0]["known_from"] = json!("0/1000");
    let text = in_one_line(&render("text", &document));
    for words in [
        "that changed since 0/15A0, in 12.3 s",
        "since 0/15A0: 1,200 pages passed over as unchanged, 1 unchanged page with known findings examined again, 2 known findings reported again and not looked for",
        "known from the run that began at 0/1000; this one did not look for it",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let html = render("html", &document);
    assert!(html.contains("2 known findings reported again"), "{html}");
    assert!(html.contains("from the run that began at 0/1000"), "{html}");
}

#[test]
fn that_no_page_stayed_as_it_was_is_said_too() {
    let mut document = healthy();
    document["since"] =
        json!({"lsn": "0/15A0", "pages_unchanged": 0, "pages_again": 0, "findings_carried": 0});
    let text = in_one_line(&render("text", &document));
    assert!(
        text.contains("in 12.3 s, no page unchanged since 0/15A0"),
        "{text}"
    );
    assert!(
        text.contains("no page was passed over as unchanged"),
        "{text}"
    );
}

#[test]
fn a_page_is_taken_apart() {
    insta::assert_snapshot!(render("text", &inspect()));
}

#[test]
fn a_drill_ends_with_its_score() {
    insta::assert_snapshot!(render("text", &drill()));
}

#[test]
fn a_drill_of_the_default_set_says_what_it_left_out() {
    let mut document = drill();
    document["left_out"] = serde_json::json!(349);
    let text = render("text", &document);
    let end = "FAILED  1 of 3, 1 blind as declared in 2 min 53 s; 349 more were left out: pgclinic drill --all runs them";
    assert_eq!(text.lines().last(), Some(end));
    document["interrupted"] = serde_json::json!(true);
    let text = render("text", &document);
    let end = "1 were not run; 349 more were left out: pgclinic drill --all runs them";
    assert!(
        text.lines().last().is_some_and(|line| line.ends_with(end)),
        "{text}"
    );
}

#[test]
fn a_stopped_drill_of_losses_is_not_passed() {
    let mut document = healthy();
    document["schema"] = json!("pgclinic.drill-loss/1");
    document["server"] = json!("postgres (PostgreSQL) 18.6");
    document["seed"] = json!(1);
    document["cells"] = json!([]);
    document["passed"] = json!(true);
    document["interrupted"] = json!(true);
    document["cells_left"] = json!(23);
    let text = render("text", &document);
    let last = text.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("INTERRUPTED") && last.ends_with("; 23 were not run"),
        "{text}"
    );
}

#[test]
fn a_row_of_a_drill_is_one_line() {
    let line = |row: serde_json::Value| {
        pgclinic_report::drill_row_line(&serde_json::from_value(row).expect("a row"))
    };
    let document = drill();
    let [sound, failed, blind] = document["rows"].as_array().expect("rows").as_slice() else {
        panic!("three rows")
    };
    let hurt = "in public.docs, block 7: pd_lower set from 412 to 8001";
    let said = "the server said ERROR:  invalid page in block 7 of relation \"base/5/16384\"";
    let silent = "without checksums the server gave other rows of public.docs without a message";
    assert_eq!(
        line(sound.clone()),
        format!("lower-beyond-upper raw {hurt}; check found lower-beyond-upper; {said}; {silent}")
    );
    assert_eq!(
        line(failed.clone()),
        format!(
            "torn-page sealed {hurt}; check found item-overlap and 1 more; {said}; {silent}; \
             FAILED: rule torn-page had to fire and did not"
        )
    );
    assert_eq!(
        line(blind.clone()),
        format!(
            "hint-bits raw {hurt}; no check can see it; {silent}; the page is all-visible; BLIND, as declared"
        )
    );
    let mut down = sound.clone();
    let messages = [
        "WARNING:  a\u{1b}[2J",
        "PANIC:  could not locate\nDETAIL:  it",
    ];
    let answer =
        serde_json::json!({"started": false, "crashed": false, "messages": messages, "silent": []});
    down["with_checksums"] = answer.clone();
    down["without_checksums"] = answer;
    let end = "the server did not start: PANIC:  could not locate, with checksums and without";
    assert!(line(down.clone()).ends_with(end), "{}", line(down));
}

#[test]
fn a_blind_drill_tells_what_it_missed() {
    insta::assert_snapshot!(render("text", &blind()));
}

#[test]
fn a_rehearsal_tells_its_score_and_the_one_before() {
    insta::assert_snapshot!(render("text", &rehearsal()));
}

#[test]
fn an_exam_tells_what_became_of_each_wound() {
    let mut document = rehearsal();
    document["kind"] = "exam".into();
    document["score"]["dealt_with"] = 2.into();
    let states = ["restored", "mended", "untouched", "changed"];
    for (at, state) in states.into_iter().enumerate() {
        document["injuries"][at]["state"] = state.into();
    }
    let text = render("text", &document);
    for state in states {
        assert!(text.contains(state), "{state}: {text}");
    }
    assert!(
        text.ends_with(
            "FAILED  dealt with 2 of 4, 1 false alarm, saved 91.6 % of 1,200 rows in 75.0 s\n"
        ),
        "{text}"
    );
}

#[test]
fn an_experiment_begins_with_its_decision() {
    insta::assert_snapshot!(render("text", &experiment()));
}

#[test]
fn a_long_run_of_one_rule_is_folded_with_its_count() {
    let mut document = damaged();
    let findings: Vec<_> = (0..40)
        .map(|n| finding(&format!("x{n}"), "bad-checksum", n * 2))
        .collect();
    document["findings"] = json!(findings);
    let text = render("text", &document);
    assert!(
        text.contains("and 37 more of bad-checksum, block 6, 8, 10"),
        "{text}"
    );
    assert_eq!(text.matches("DAMAGE bad-checksum").count(), 3);
}

#[test]
fn a_hostile_name_does_not_reach_the_terminal() {
    let mut document = damaged();
    document["findings"][0]["place"]["relation"] = json!("\u{1b}]0;owned\u{7}\n\u{202e}x");
    document["relations"][0]["relation"] = json!("\u{1b}[31mHEALTHY\r\n");
    document["target"]["spec"] = json!("/\u{1b}c");
    let text = render("text", &document);
    assert!(
        !text
            .chars()
            .any(|letter| letter.is_control() && letter != '\n'),
        "{text}"
    );
    assert!(text.contains("\\u{1b}[31mHEALTHY\\r\\n"), "{text}");
}

#[test]
fn colours_only_when_asked() {
    assert!(!render("text", &damaged()).contains('\u{1b}'));
    let options = Options {
        color: true,
        ..Options::default()
    };
    let text = render_with("text", &damaged(), &options);
    assert!(text.starts_with("\u{1b}[1;31mDAMAGED\u{1b}[0m  "), "{text}");
}

/// What has to be done stands once, in its order, and not under every finding.
#[test]
fn a_plan_stands_in_the_place_of_single_cures() {
    let mut document = damaged();
    document["plan"] = json!([
        {"name": "secure-a-copy", "safety": "show-only", "why": "copy all of it", "commands": ["cp -a /a /b"]},
        {"name": "reindex", "safety": "exact", "why": "these indexes alone are damaged",
         "relations": [{"database": "shop", "name": "public.a"}, {"database": "shop", "name": "public.b"}, {"name": "pg_authid_oid_index"}],
         "relations_omitted": 3,
         "commands": (0..10).map(|n| format!("REINDEX INDEX i{n};")).collect::<Vec<_>>()}
    ]);
    let text = render("text", &document);
    let words = in_one_line(&text);
    for expected in [
        "NEXT 1. copy all of it while no server runs: nothing but the copy is changed cp -a /a /b",
        "WHAT TO DO in this order 1. secure-a-copy (by hand): copy all of it command 1 under NEXT",
        "2. reindex (exact): these indexes alone are damaged for public.a, public.b in database shop; pg_authid_oid_index and 3 more",
        "REINDEX INDEX i7; and 2 more, which stand in --format json",
    ] {
        assert!(words.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("zero_damaged_pages"), "{text}");
    let html = render("html", &document);
    assert!(html.contains("What to do, in this order"), "{html}");
    assert!(html.contains("REINDEX INDEX i9;"), "{html}");
    assert!(!html.contains("zero_damaged_pages"), "{html}");
}

#[test]
fn a_file_alone_is_not_asked_for_more_than_its_pages() {
    let mut document = healthy();
    document["target"]["kind"] = json!("relation-file");
    let text = render("text", &document);
    assert!(!text.contains("NEXT"), "{text}");
    let words = "what other files say of this one was not asked";
    assert!(in_one_line(&text).contains(words), "{text}");
}

/// Where the verdict has left the screen, it stands at the end again, with what to do next.
#[test]
fn a_long_report_ends_with_its_verdict_on_a_terminal() {
    let on_screen = |rows| {
        let options = Options {
            screen_rows: rows,
            ..Options::default()
        };
        render_with("text", &damaged(), &options)
    };
    let (piped, long, short) = (on_screen(None), on_screen(Some(24)), on_screen(Some(200)));
    assert_eq!(in_one_line(&piped), in_one_line(&short));
    let (first_screen, _) = piped.split_once("\n\npublic.docs  ").expect("a relation");
    assert!(first_screen.contains("NEXT\n  1.  "), "{first_screen}");
    let twice = format!("{piped} {first_screen}");
    assert_eq!(in_one_line(&long), in_one_line(&twice));
}

#[test]
fn relations_that_have_one_thing_alike_are_told_once() {
    let mut document = damaged();
    let lost = |n: u32| {
        let mut finding = finding(&format!("l{n}"), "relation-lost", 0);
        let place = &mut finding["place"];
        place["relation"] = json!(format!("lost{n}"));
        place["relation_oid"] = json!(20_000 + n);
        place["block"] = Value::Null;
        finding["message"] = json!(format!("the row of lost{n} is lost"));
        finding
    };
    let mut findings: Vec<Value> = document["findings"].as_array().expect("findings").clone();
    findings.extend((0..12).map(lost));
    document["findings"] = json!(findings);
    let text = render("text", &document);
    assert_eq!(text.matches("DAMAGE relation-lost").count(), 1, "{text}");
    let words = in_one_line(&text);
    let told = "12 relations with the same finding DAMAGE relation-lost in 12 relations - public.lost0, database postgres: the row of lost0 is lost";
    assert!(words.contains(told), "{text}");
    assert!(
        words.contains("and 7 more, which stand in --format json"),
        "{text}"
    );
    let html = render("html", &document);
    for n in 0..12 {
        assert!(
            html.contains(&format!("the row of lost{n} is lost")),
            "{html}"
        );
    }
}

#[test]
fn a_document_says_when_and_where_it_was_made() {
    let mut document = healthy();
    document["tool"]["started"] = json!("2026-11-26T20:39:09Z");
    document["tool"]["host"] = json!("db7");
    let expected = "; level structure; 2026-11-26 20:39:09 UTC on db7 by pgclinic 0.1.0";
    let text = in_one_line(&render("text", &document));
    assert!(text.contains(expected), "{text}");
    assert!(render("html", &document).contains(expected));
}

#[test]
fn a_table_that_is_refused_for_a_few_rows_is_named() {
    let mut document = damaged();
    document["findings"][0]["at_risk"] = json!({"rows": 3, "whole_table": true});
    let text = render("text", &document);
    let words = "at risk   3 rows; the server refuses the whole table because of them";
    assert!(text.contains(words), "{text}");
    let first = text.lines().next().unwrap_or_default();
    assert!(first.contains("1 table refused as a whole"), "{first}");
}

#[test]
fn without_checksums_the_first_line_warns() {
    let mut document = healthy();
    document["target"]["checksums"] = json!(false);
    let text = render("text", &document);
    let words = "HEALTHY (no data checksums: values cannot be verified)  no damage in";
    assert!(text.starts_with(words), "{text}");
}
