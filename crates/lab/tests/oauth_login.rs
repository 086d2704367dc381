//! Who is let in does not depend on speed.

mod common;

use common::{metric, results, smallest};
use pgclinic_lab::Outcome;

#[test]
fn the_right_person_is_let_in_and_nobody_else() {
    let results = results(smallest("oauth-login", &[]), None);
    for result in &results {
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
    let let_in = |arm: &str| metric(&results, arm, &[], "let_in");
    assert_eq!((let_in("good"), let_in("expired")), (2.0, 0.0));
    assert_eq!(let_in("broken-rules"), 1.0, "the reload kept the old rules");
}
