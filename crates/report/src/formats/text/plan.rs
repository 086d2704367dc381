//! What to do about all findings together, in order.

use std::io;

use pgclinic_model::document::PlanStep;

use super::sheet::{Ink, Sheet};
use crate::words::{self, clean, count, count_of};

/// Commands of a step that are shown.
const COMMANDS_SHOWN: usize = 8;

pub(super) fn plan(steps: &[PlanStep], sheet: &mut Sheet<'_>) -> io::Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, "WHAT TO DO");
    sheet.raw(&format!("{title}  in this order"))?;
    for (number, step) in (1..).zip(steps) {
        one(number, step, sheet)?;
    }
    Ok(())
}

fn one(number: usize, step: &PlanStep, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let name = sheet.ink(Ink::Strong, &clean(&step.name));
    let safety = words::safety(step.safety);
    let why = clean(&step.why);
    sheet.entry(
        2,
        &format!("{number}."),
        4,
        &format!("{name} ({safety}): {why}"),
    )?;
    if !step.relations.is_empty() {
        sheet.text(6, &format!("for {}", clean(&words::plan_relations(step))))?;
    }
    for command in step.commands.iter().take(COMMANDS_SHOWN) {
        // Not wrapped: it is there to be copied.
        sheet.raw(&format!("{:8}{}", "", clean(command)))?;
    }
    let kept = count_of(step.commands.len().saturating_sub(COMMANDS_SHOWN));
    match (kept, step.commands_omitted) {
        (0, 0) => Ok(()),
        (kept, 0) => sheet.text(
            8,
            &format!("and {} more, which stand in --format json", count(kept)),
        ),
        (kept, omitted) => {
            let all = count(kept.saturating_add(omitted));
            sheet.text(8, &format!("and {all} more of the kind"))
        }
    }
}
