//! Who is let in does not depend on speed.

use crate::common;

use common::{experiment, metric, results, smallest};
use pgclinic_lab::{Outcome, Plan, PlanOptions, RunResult, Scale};

#[test]
fn the_right_person_is_let_in_and_nobody_else() {
    let results = results(smallest("oauth-login", &[]), None);
    all_is_right(&results);
    let let_in = |arm: &str| metric(&results, arm, &[], "let_in");
    assert_eq!((let_in("good"), let_in("expired")), (2.0, 0.0));
    assert_eq!(let_in("broken-rules"), 1.0, "the reload kept the old rules");
}

/// Where Java and a Keycloak are: the device flow with its pages for login and consent, by us and
/// by psql.
#[test]
fn keycloak_lets_the_right_person_in() {
    let own = |name: &str| name.to_owned();
    let options = PlanOptions {
        scale: Scale::Quick,
        blocks: Some(1),
        arms: vec![own("good"), own("psql")],
        only: vec![(own("provider"), vec![own("keycloak")])],
        ..PlanOptions::default()
    };
    let plan = Plan::make(experiment("oauth-login"), None, &options).expect("a plan");
    let results = results(plan, None);
    let skipped = |result: &RunResult| matches!(result.outcome, Outcome::Skipped { .. });
    if let Some(without) = results
        .iter()
        .find(|result| skipped(result) && result.cell.arm == "good")
    {
        println!("not tried: {}", without.outcome.words());
        return;
    }
    all_is_right(&results);
    assert!(metric(&results, "good", &[], "let_in") > 0.0);
}

fn all_is_right(results: &[RunResult]) {
    for result in results {
        let arm = &result.cell.arm;
        match &result.outcome {
            // No psql with OAuth is here, or no compiler for the validator.
            Outcome::Skipped { .. } if arm == "psql" => continue,
            Outcome::Done => {}
            outcome => panic!("{arm}: {}", outcome.words()),
        }
        let answer = &result.environment["answer"];
        assert_eq!(result.metrics["wrong_answers"], 0.0, "{arm}: {answer}");
        assert!(!answer.contains("eyJ"), "{arm}: a token stands in {answer}");
    }
}
