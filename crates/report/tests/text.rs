//! What a person sees in a terminal.

mod common;

use common::{
    blind, damaged, drill, experiment, finding, healthy, incomplete, inspect, render, render_with,
};
use pgclinic_report::Options;
use serde_json::json;

#[test]
fn a_healthy_cluster_takes_two_lines() {
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

#[test]
fn a_page_is_taken_apart() {
    insta::assert_snapshot!(render("text", &inspect()));
}

#[test]
fn a_drill_ends_with_its_score() {
    insta::assert_snapshot!(render("text", &drill()));
}

#[test]
fn a_blind_drill_tells_what_it_missed() {
    insta::assert_snapshot!(render("text", &blind()));
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
