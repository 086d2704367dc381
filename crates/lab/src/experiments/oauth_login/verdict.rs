//! Whether the rules hold, as decision cards. Nothing is compared here: one wrong answer is one too
//! many.

use std::collections::BTreeSet;

use pgclinic_model::document::{DecisionCard, DecisionWord, Side};

use super::provider::SCOPE;
use super::rules;
use super::situations::SITUATIONS;
use super::{BROKEN_RULES, OWN_SET_UP, PSQL};
use crate::cell::RunResult;

/// The fact of a run that says who judged its tokens.
pub(super) const CHECKED: &str = "tokens_checked";

/// Its two values.
pub(super) const BY_THE_SERVER: &str = "by the server's validator";
pub(super) const BESIDE_THE_SERVER: &str = "beside the server, which has no validator";

/// The card of the logins and the one of the wrong lines, as far as there are runs.
pub(super) fn cards(results: &[RunResult]) -> Vec<DecisionCard> {
    let done = |result: &&RunResult| result.metrics.contains_key("wrong_answers");
    let own = results.iter().filter(done);
    let own: Vec<&RunResult> = own.filter(|result| result.cell.arm == OWN_SET_UP).collect();
    let (rules, logins): (Vec<&RunResult>, Vec<&RunResult>) = results
        .iter()
        .filter(done)
        .filter(|result| result.cell.arm != OWN_SET_UP)
        .partition(|result| result.cell.arm == BROKEN_RULES);
    let both = [
        logins_card(&logins, no_device_flow(results)),
        rules_card(&rules),
        own_card(&own),
    ];
    both.into_iter().flatten().collect()
}

/// Why no run shows that psql gets in by its own device flow; `None` where one does.
fn no_device_flow(results: &[RunResult]) -> Option<String> {
    let mut of_psql = results.iter().filter(|result| result.cell.arm == PSQL);
    if of_psql.clone().any(RunResult::is_done) {
        return None;
    }
    let first = of_psql.next().map(|result| result.outcome.words());
    Some(first.unwrap_or_else(|| "not tried".to_owned()))
}

fn logins_card(runs: &[&RunResult], no_device_flow: Option<String>) -> Option<DecisionCard> {
    runs.first()?;
    let wrong = wrong_arms(runs);
    let beside = runs
        .iter()
        .any(|run| fact(run, CHECKED) == BESIDE_THE_SERVER);
    let not_tried: Vec<&str> = SITUATIONS
        .iter()
        .map(|situation| situation.name)
        .filter(|name| runs.iter().all(|run| run.cell.arm != *name))
        .collect();
    let kinds = runs
        .iter()
        .map(|run| &run.cell.arm)
        .collect::<BTreeSet<_>>()
        .len();
    let (word, headline) = if !wrong.is_empty() {
        let headline = format!(
            "do not use these rules: {} of {kinds} kinds of login had a wrong answer: {}",
            wrong.len(),
            wrong.join("; ")
        );
        (DecisionWord::Worse, headline)
    } else if beside {
        let why = "whether the server keeps to these rules is open: tokens were checked beside it, as it has no validator; up to there every answer was right";
        (DecisionWord::Undecided, why.to_owned())
    } else if !not_tried.is_empty() {
        let headline = format!(
            "whether these rules hold is open: {kinds} kinds of login were answered rightly, and {} not tried",
            not_tried.join(", ")
        );
        (DecisionWord::Undecided, headline)
    } else if let Some(why) = no_device_flow {
        let headline = format!(
            "whether people get in with these rules is open: {kinds} kinds of token were answered rightly, but psql's own device flow, \
             by which they come to a token, was {why}"
        );
        (DecisionWord::Undecided, headline)
    } else {
        let headline = format!(
            "use these rules: they let the right user in and nobody else; {kinds} kinds of login were tried and none was answered wrongly"
        );
        (DecisionWord::Better, headline)
    };
    let apply = match word {
        DecisionWord::Better => lines_to_apply(),
        _ => Vec::new(),
    };
    Some(card(word, headline, apply, runs))
}

/// The lines themselves, without remarks and without what only the laboratory needs.
fn lines_to_apply() -> Vec<String> {
    let (hba, ident) = (rules::hba("https://YOUR-ISSUER", SCOPE), rules::ident());
    let lines = |text: &str, file: &str| -> Vec<String> {
        let lines = text.lines();
        let own = lines.filter(|line| !line.starts_with('#') && !line.contains("postgres  trust"));
        own.map(|line| format!("{file}: {line}")).collect()
    };
    let mut all = lines(&hba, "pg_hba.conf");
    all.extend(lines(&ident, "pg_ident.conf"));
    all.push("postgresql.conf: oauth_validator_libraries = 'YOUR-VALIDATOR'".to_owned());
    all
}

fn rules_card(runs: &[&RunResult]) -> Option<DecisionCard> {
    let answer = fact(runs.first()?, "answer");
    let (word, headline) = if wrong_arms(runs).is_empty() {
        (
            DecisionWord::Better,
            format!(
                "look into pg_hba_file_rules and pg_ident_file_mappings before each reload: {answer}"
            ),
        )
    } else {
        (
            DecisionWord::Worse,
            format!(
                "do not rely on pg_hba_file_rules alone: some wrong lines were not found or not understood; {answer}"
            ),
        )
    };
    let apply = match word {
        DecisionWord::Better => ["pg_hba_file_rules", "pg_ident_file_mappings"]
            .map(|view| format!("SELECT line_number, error FROM {view} WHERE error IS NOT NULL;"))
            .to_vec(),
        _ => Vec::new(),
    };
    Some(card(word, headline, apply, runs))
}

/// Of a user's own set-up nothing is called good: nobody logged in.
fn own_card(runs: &[&RunResult]) -> Option<DecisionCard> {
    let answer = fact(runs.first()?, "answer");
    let (word, headline) = if wrong_arms(runs).is_empty() {
        let headline = format!(
            "whether the right people get in is open: nothing speaks against this set-up ({answer}), and a login takes a user: \
             psql \"oauth_issuer=… oauth_client_id=…\" and a browser"
        );
        (DecisionWord::Undecided, headline)
    } else {
        (
            DecisionWord::Worse,
            format!("do not use this set-up yet: {answer}"),
        )
    };
    Some(card(word, headline, Vec::new(), runs))
}

/// Arms with a wrong answer, and the answer.
fn wrong_arms(runs: &[&RunResult]) -> Vec<String> {
    let wrong = runs.iter().filter(|run| {
        run.metrics
            .get("wrong_answers")
            .is_some_and(|wrong| *wrong > 0.0)
    });
    let named = wrong.map(|run| format!("{} ({})", run.cell.arm, fact(run, "answer")));
    named.collect::<BTreeSet<_>>().into_iter().collect()
}

fn fact<'a>(run: &'a RunResult, name: &str) -> &'a str {
    run.environment.get(name).map_or("", String::as_str)
}

fn card(
    word: DecisionWord,
    headline: String,
    apply: Vec<String>,
    runs: &[&RunResult],
) -> DecisionCard {
    let side = |run: &RunResult| Side {
        arm: run.cell.arm.clone(),
        ..Side::default()
    };
    let side = runs.first().map(|run| side(run)).unwrap_or_default();
    DecisionCard {
        word,
        headline,
        metric: "wrong_answers".to_owned(),
        baseline: side.clone(),
        candidate: side,
        effect: None,
        basis: match runs.len() {
            1 => "counted in one run".to_owned(),
            many => format!("counted in {many} runs; one wrong answer is one too many"),
        },
        apply,
        more_minutes: None,
        published: None,
        runs: runs.iter().map(|run| run.cell.id.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Cell, Outcome};

    fn run(arm: &str, wrong: f64) -> RunResult {
        RunResult {
            cell: Cell {
                id: format!("b01-{arm}"),
                arm: arm.to_owned(),
                point: Default::default(),
                block: 1,
                repeat: 0,
                is_control: false,
            },
            outcome: Outcome::Done,
            metrics: [("wrong_answers".to_owned(), wrong)].into(),
            series: Default::default(),
            environment: [("answer".to_owned(), "let in".to_owned())].into(),
            overlaps: Vec::new(),
            files: Vec::new(),
            started: 0,
            elapsed_s: 1.0,
        }
    }

    fn all(wrong: &str) -> Vec<RunResult> {
        let of = |name: &str| run(name, f64::from(u8::from(name == wrong)));
        let tokens = SITUATIONS.iter().map(|situation| of(situation.name));
        tokens.chain([run(PSQL, 0.0)]).collect()
    }

    #[test]
    fn rules_are_advised_only_when_every_situation_was_answered_rightly() {
        let [card] = cards(&all("")).try_into().expect("one card");
        assert_eq!(card.word, DecisionWord::Better);
        assert!(
            card.apply
                .iter()
                .any(|line| line.starts_with("pg_hba.conf: local  all  all  oauth"))
        );
        let [card] = cards(&all("expired")).try_into().expect("one card");
        assert_eq!(card.word, DecisionWord::Worse);
        assert!(
            card.headline.ends_with("wrong answer: expired (let in)"),
            "{}",
            card.headline
        );
        let [card] = cards(&all("")[..2]).try_into().expect("one card");
        assert_eq!(card.word, DecisionWord::Undecided);
        assert!(card.headline.contains("forged"), "{}", card.headline);
        let mut beside = all("");
        for run in &mut beside {
            run.environment
                .insert(CHECKED.to_owned(), BESIDE_THE_SERVER.to_owned());
        }
        assert_eq!(cards(&beside)[0].word, DecisionWord::Undecided);
        assert!(cards(&[]).is_empty());
    }

    #[test]
    fn better_is_not_said_where_the_device_flow_of_psql_was_skipped() {
        let mut skipped = all("");
        let psql = skipped.last_mut().expect("the run of psql");
        psql.outcome = Outcome::Skipped {
            why: "no psql 18 is here".to_owned(),
        };
        psql.metrics.clear();
        let [card] = cards(&skipped).try_into().expect("one card");
        assert_eq!(card.word, DecisionWord::Undecided);
        assert!(card.apply.is_empty());
        assert!(
            card.headline.ends_with("was skipped: no psql 18 is here"),
            "{}",
            card.headline
        );
        skipped.pop();
        assert_eq!(cards(&skipped)[0].word, DecisionWord::Undecided);
    }
}
