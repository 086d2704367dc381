//! What somebody consents to: exact cures with one word, lossy ones with one each. The word for a
//! lossy cure is its id, which only the plan of this cluster with these bytes tells: nobody can
//! consent to what was not shown.

use std::path::Path;

use clap::Args;
use pgclinic_model::document::{Cure, CureRequest, HealDocument, HealStatement, PlanStep};
use pgclinic_model::plan::Safety;
use pgclinic_model::{Level, shell_word};

use super::{evidence, shown_commands, start};
use crate::exit::Failure;

/// The words.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Consent")]
pub(super) struct Consents {
    /// Carry out the exact cures of the plan
    #[arg(long, conflicts_with_all = ["undo", "resume"])]
    yes: bool,
    /// Carry out the lossy cure with this id
    ///
    /// The plan shows it. It follows from the system identifier, the place and the bytes of the
    /// page, and means nothing once one of them is another. Give the option once for each cure.
    #[arg(long, value_name = "ID", conflicts_with_all = ["undo", "resume"])]
    accept: Vec<String>,
}

impl Consents {
    /// Somebody consented to the statement.
    pub(super) fn covers(&self, statement: &HealStatement) -> bool {
        match statement.safety {
            Safety::Exact => self.yes || self.accept.contains(&statement.id),
            Safety::Lossy => self.accept.contains(&statement.id),
            Safety::ShowOnly => false,
        }
    }

    /// The cures that somebody consented to, by their place in the plan.
    pub(super) fn chosen(&self, cures: &[Cure]) -> Result<Vec<usize>, Failure> {
        for id in &self.accept {
            if !cures.iter().any(|cure| cure.id == *id) {
                return Err(Failure::new(format!(
                    "no cure of this plan has the id {id}: the page may have changed since it was shown. Nothing was written, show the plan again"
                )));
            }
        }
        let is_chosen = |cure: &Cure| match cure.safety {
            Safety::Exact => self.yes || self.accept.contains(&cure.id),
            Safety::Lossy => self.accept.contains(&cure.id),
            Safety::ShowOnly => false,
        };
        let chosen = (0..).zip(cures).filter(|(_, cure)| is_chosen(cure));
        Ok(chosen.map(|(index, _)| index).collect())
    }
}

/// The plan with the commands that carry it out, the copy first.
pub(super) fn with_commands(mut document: HealDocument, pgdata: &Path) -> HealDocument {
    if !document.obstacles.is_empty() || document.cures.is_empty() {
        return document;
    }
    let command = command(pgdata, &document);
    let step = |name: &str, why: &str, command: String| PlanStep {
        name: name.into(),
        safety: safety_of(&document.cures),
        why: why.into(),
        relations: Vec::new(),
        relations_omitted: 0,
        commands: vec![command],
        commands_omitted: 0,
    };
    let copy = step(
        "heal-a-copy",
        "first on a copy, whose server shows whether the rows are as they should be",
        format!(
            "{command} --copy-to {}",
            shown_commands::beside(pgdata, "healed")
        ),
    );
    let identifier = &document.basis.system_identifier;
    let why = format!(
        "then in place, in the cluster with the system identifier {identifier}; the journal takes it back"
    );
    let in_place = step("heal-in-place", &why, command);
    document.follow_up.splice(0..0, [copy, in_place]);
    document
}

fn safety_of(cures: &[Cure]) -> Safety {
    let safeties = cures.iter().map(|cure| cure.safety);
    safeties.min().unwrap_or(Safety::Exact)
}

fn command(pgdata: &Path, document: &HealDocument) -> String {
    let (requests, cures) = (&document.request, &document.cures);
    let mut words = vec![
        "pgclinic heal".to_owned(),
        shown_commands::pgdata_word(pgdata),
    ];
    match &document.evidence {
        Some(evidence) => words.extend(evidence::words(evidence)),
        None if start::is_start(document) => {}
        None => words.extend(by_hand(requests)),
    }
    if let Some(scope) = document.scope {
        let level = (scope.level == Level::Full).then_some("--level full");
        let indexes = scope.index_pages.then_some("--index-pages");
        let scratch = scope.scratch.then_some("--scratch");
        let options = [level, indexes, scratch].into_iter().flatten();
        words.extend(options.map(str::to_owned));
    }
    if cures.iter().any(|cure| cure.safety == Safety::Exact) {
        words.push("--yes".into());
    }
    let lossy = cures.iter().filter(|cure| cure.safety == Safety::Lossy);
    words.extend(lossy.map(|cure| format!("--accept {}", cure.id)));
    words.join(" ")
}

/// The places, and the cure that all of them share.
fn by_hand(requests: &[CureRequest]) -> Vec<String> {
    let place = |request: &CureRequest| {
        let item = request.item.map(|item| format!(":{item}"));
        let item = item.unwrap_or_default();
        format!("--at {}:{}{item}", shell_word(&request.path), request.block)
    };
    let mut words: Vec<String> = requests.iter().map(place).collect();
    if let Some(request) = requests.first() {
        let column = request.column.as_deref();
        let column = column.map(|column| format!(" {}", shell_word(column)));
        words.push(format!("--{}{}", request.cure, column.unwrap_or_default()));
    }
    words
}
