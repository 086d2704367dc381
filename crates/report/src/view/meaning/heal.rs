//! A heal: was anything written, and is the damage gone.

use pgclinic_model::document::{HealDocument, HealOutcome, Level};

use super::Meaning;
use crate::view::next::{self, Next};

pub(crate) fn heal(document: &HealDocument) -> Meaning {
    let sentence = match document.outcome {
        outcome if !document.statements.is_empty() => of_a_server(document, outcome),
        HealOutcome::Planned if document.cures.is_empty() => {
            "Nothing was written, and nothing that was given proves what stood there: what else helps is listed here."
        }
        HealOutcome::Planned => {
            "Nothing was written: this is what would be, once you consent to it, and a journal takes it back."
        }
        HealOutcome::Healed => {
            "All of it was written, read back and checked again: the damage that this heal is about is gone, and its journal brings the former bytes back."
        }
        HealOutcome::DamageRemains if document.applied.is_none() => {
            "Nothing was written: the damage stays until a backup, a standby or the rows that can still be read make up for it."
        }
        HealOutcome::DamageRemains => {
            "What was planned was written, and damage is still found where it was written."
        }
        HealOutcome::PartlyUndecided if document.applied.is_none() => {
            "Nothing was written, and not everything could be examined: what else needs a cure is not known."
        }
        HealOutcome::PartlyUndecided => {
            "A part was written and a part was not, or could not be proven: each cure says which."
        }
        HealOutcome::NothingToHeal if is_full(document) => {
            "Nothing is damaged as far as a check at level full sees: there is nothing to write."
        }
        HealOutcome::NothingToHeal => {
            "No page is damaged as far as a check at level structure sees: there is nothing to write. --level full also reads TOASTed values, and compares rows with index entries."
        }
        HealOutcome::Undone => {
            "The journal gave the first bytes back: the files are as they were before the heal, with their damage."
        }
    };
    let next = Next::default().and_plan(&document.follow_up);
    let is_helpless = document.cures.is_empty() && document.statements.is_empty();
    let is_damaged = matches!(
        document.outcome,
        HealOutcome::Planned | HealOutcome::DamageRemains
    );
    let next = if is_helpless && is_damaged {
        let check = next::check_in_full(&document.target);
        next.and("learn all that is damaged, with its ways out", check)
    } else {
        next
    };
    Meaning::of(sentence, next)
}

/// Statements for a running server: what it does stands in its own WAL, and in no journal.
fn of_a_server(document: &HealDocument, outcome: HealOutcome) -> &'static str {
    let is_run = document.statements.iter().any(|own| own.answer.is_some());
    match outcome {
        _ if !is_run => {
            "Nothing was run: a statement runs once you consent to it, and pgclinic cannot undo what a server did."
        }
        HealOutcome::Healed => {
            "The statement was run, and the check finds no damage any more. pgclinic cannot undo what a server did: no journal is kept of it."
        }
        HealOutcome::PartlyUndecided => {
            "The statement was run, and not everything could be examined afterwards. pgclinic cannot undo what a server did: no journal is kept of it."
        }
        _ => {
            "A statement was run or tried, and damage is still found. pgclinic cannot undo what a server did: no journal is kept of it."
        }
    }
}

fn is_full(document: &HealDocument) -> bool {
    document.scope.is_some_and(|own| own.level == Level::Full)
}

#[cfg(test)]
mod tests {
    use pgclinic_model::document::{HealStatement, StatementAnswer};
    use pgclinic_model::plan::Safety;

    use super::*;

    /// A plan of statements as a server's URL makes it.
    #[test]
    fn nothing_that_a_server_did_is_taken_back_by_a_journal() {
        let plan = include_str!("../../../tests/it/documents/heal-1.json");
        let mut document: HealDocument = serde_json::from_str(plan).expect("a plan");
        document.cures.clear();
        document.statements = vec![HealStatement {
            number: 1,
            id: "0123abcd".into(),
            database: "app".into(),
            sql: "VACUUM public.t".into(),
            safety: Safety::Exact,
            locks: String::new(),
            why: String::new(),
            answer: None,
        }];
        let sentence = |document: &HealDocument| heal(document).sentence;
        document.outcome = HealOutcome::Planned;
        assert!(sentence(&document).starts_with("Nothing was run"));
        let answer = StatementAnswer {
            done: true,
            messages: Vec::new(),
        };
        document.statements[0].answer = Some(answer);
        document.outcome = HealOutcome::Healed;
        assert!(sentence(&document).contains("pgclinic cannot undo what a server did"));
    }
}
