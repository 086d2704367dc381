//! Forms for programs: metrics, suites of tests, results of an analysis, a JSON value a line.

use serde_json::{Value, json};

use crate::common;

/// Relations that have metrics of their own.
const RELATIONS_MAX: usize = 100;

#[test]
fn each_form_says_what_it_holds() {
    let mut document = common::damaged();
    document["tool"]["contains"] =
        json!({"names": true, "values": false, "pages": true, "redacted": false});
    let words = "names, no values of rows, pages";
    let junit = common::render("junit", &document);
    let property = format!("<property name=\"contains\" value=\"{words}\"/>");
    assert!(junit.contains(&property), "{junit}");
    let metrics = common::render("prometheus", &document);
    assert!(
        metrics.starts_with(&format!("# holds {words}\n")),
        "{metrics}"
    );
    let sarif: Value = serde_json::from_str(&common::render("sarif", &document)).expect("JSON");
    let contains = &sarif["runs"][0]["properties"]["contains"];
    assert_eq!(
        (&contains["names"], &contains["values"]),
        (&json!(true), &json!(false))
    );
    let lines = common::render("jsonl", &document);
    let whole: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!(&whole["tool"]["contains"], contains);
}

/// The largest have their figures, the others are counted.
#[test]
fn metrics_of_many_relations_are_as_few_as_those_of_some() {
    let mut document = common::measured();
    let figures = common::figure_kinds(&document);
    let one = document["relations"][0].clone();
    let many = (0..1000_u64).map(|number| {
        let mut own = one.clone();
        own["relation"] = json!(format!("t{number}"));
        own["bytes"] = json!(8192 * number);
        own
    });
    document["relations"] = many.collect();
    let metrics = common::render_figures("prometheus", &document, &figures);
    let lengths = metrics
        .lines()
        .filter(|line| line.starts_with("pgclinic_relation_bytes{"));
    assert_eq!(lengths.clone().count(), RELATIONS_MAX);
    assert!(
        lengths.clone().any(|line| line.contains("\"public.t999\"")),
        "{metrics}"
    );
    assert!(metrics.contains("\npgclinic_relations 1000\n"), "{metrics}");
    assert!(
        metrics.contains("\npgclinic_relations_left_out 900\n"),
        "{metrics}"
    );
}
