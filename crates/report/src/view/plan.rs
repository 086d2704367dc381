//! What to do about all findings together, in order.

use pgclinic_model::document::PlanStep;

use super::{
    Block, Look, ParagraphStyle, Step, Steps, Tone, Words, and_more, card, in_terminal, on_page,
    text, words,
};
use crate::words as say;
use crate::words::count_of;

/// Commands of a step that a terminal shows.
const COMMANDS_SHOWN: usize = 8;

pub(super) fn plan(steps: &[PlanStep]) -> Vec<Block> {
    if steps.is_empty() {
        return Vec::new();
    }
    let steps = (1..).zip(steps).map(|(number, step)| one(number, step));
    let steps = Steps {
        title: "",
        column: 4,
        steps: steps.collect(),
    };
    let title = words("What to do").on_page(", in this order");
    let card = card(Tone::Plain, title).about(Words::default().in_terminal("in this order"));
    vec![card.id("plan").of(vec![Block::Steps(steps)])]
}

fn one(number: usize, step: &PlanStep) -> Step {
    let mut blocks = Vec::new();
    if !step.relations.is_empty() {
        let words = words(format!("for {}", say::plan_relations(step)));
        blocks.push(Block::Text(ParagraphStyle::Quiet, words));
    }
    let mut commands = step.commands.iter().cloned().map(Block::Command);
    blocks.extend(commands.by_ref().take(COMMANDS_SHOWN));
    let rest: Vec<Block> = commands.collect();
    let kept = count_of(rest.len());
    blocks.push(on_page(rest));
    match (kept, step.commands_omitted) {
        (0, 0) => {}
        (kept, 0) => blocks.push(in_terminal(vec![text(format!(
            "{}, which stand in --format json",
            and_more(kept)
        ))])),
        (kept, omitted) => {
            let all = and_more(kept.saturating_add(omitted));
            let words = Words::default()
                .in_terminal(all)
                .on_page(and_more(omitted))
                .plain(" of the kind");
            blocks.push(Block::Text(ParagraphStyle::Quiet, words));
        }
    }
    Step {
        label: format!("{number}."),
        words: Words::default()
            .strong(&step.name)
            .plain(" ")
            .and(Look::Safety(step.safety), "")
            .in_terminal(":")
            .plain(format!(" {}", step.why)),
        blocks,
    }
}
