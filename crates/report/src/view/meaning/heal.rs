//! A heal: was anything written, and is the damage gone.

use pgclinic_model::document::{HealDocument, HealOutcome, Level};

use super::Meaning;
use crate::view::next::{self, Next};

pub(crate) fn heal(document: &HealDocument) -> Meaning {
    let sentence = match document.outcome {
        HealOutcome::Planned if document.cures.is_empty() && document.statements.is_empty() => {
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

fn is_full(document: &HealDocument) -> bool {
    document.scope.is_some_and(|own| own.level == Level::Full)
}
