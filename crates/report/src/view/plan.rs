//! What to do about all findings together, in order.

use pgclinic_model::document::PlanStep;

use super::{
    Block, Look, Next, ParagraphStyle, Step, Steps, Tone, Words, and_more, card, in_terminal,
    on_page, text, words,
};
use crate::view::next::command_or_words;
use crate::words as say;
use crate::words::count_of;

/// Commands of a step that a terminal shows.
const COMMANDS_SHOWN: usize = 8;

/// The steps; of a command that stands under the verdict already, its number there.
pub(super) fn plan(steps: &[PlanStep], next: &Next) -> Vec<Block> {
    if steps.is_empty() {
        return Vec::new();
    }
    let steps = (1..)
        .zip(steps)
        .map(|(number, step)| one(number, step, next));
    let steps = Steps {
        title: "",
        column: 4,
        steps: steps.collect(),
    };
    let title = words("What to do").on_page(", in this order");
    let card = card(Tone::Plain, title).about(Words::default().in_terminal("in this order"));
    vec![card.id("plan").of(vec![Block::Steps(steps)])]
}

fn one(number: usize, step: &PlanStep, next: &Next) -> Step {
    let mut blocks = Vec::new();
    if !step.relations.is_empty() {
        let words = words(format!("for {}", say::plan_relations(step)));
        blocks.push(Block::Text(ParagraphStyle::Quiet, words));
    }
    let said = step.commands.iter().filter_map(|own| next.number_of(own));
    blocks.extend(above(said.collect()));
    let own = step.commands.iter();
    let own = own.filter(|command| next.number_of(command).is_none());
    let mut commands = own.map(|own| command_or_words(own));
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

/// Which of the commands under the verdict are those of a step.
fn above(numbers: Vec<usize>) -> Option<Block> {
    let noun = match numbers.len() {
        0 => return None,
        1 => "command",
        _ => "commands",
    };
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    let words = words(format!("{noun} {} under ", numbers.join(" and ")));
    let words = words.in_terminal("NEXT").on_page("Next");
    Some(Block::Text(ParagraphStyle::Quiet, words))
}
