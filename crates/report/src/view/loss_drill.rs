//! The matrix of losses: what was lost, and whether check and salvage tell of it.

use pgclinic_model::document::{LossCell, LossDocument};

use super::drill::{DrillPage, cells_left, level, not_run, outcome, passed_bar};
use super::{
    Block, Frame, Look, Part, Row, Table, View, Words, columns, in_terminal, list, looked_at,
    meaning, not_done, number, section, text, words,
};
use crate::words as say;
use crate::words::{count, count_of};

pub(super) fn view(document: &LossDocument) -> View {
    let passed = document.cells.iter().filter(|cell| cell.passed);
    let blind = passed.clone().filter(|cell| cell.blind.is_some());
    let (passed, blind) = (count_of(passed.count()), count_of(blind.count()));
    let all = count_of(document.cells.len());
    let bar = passed_bar(
        passed.saturating_sub(blind),
        blind,
        all.saturating_sub(passed),
    );
    let time = say::seconds(document.elapsed_s);
    let left = cells_left(document.interrupted, document.cells_left);
    let (passed, all) = (count(passed), count(all));
    let extent =
        format!("{passed} of {all} losses were seen, counted and reported in {time}{left}");
    let page = DrillPage {
        title: "Loss drill",
        command: "pgclinic drill --ward loss",
        target: &document.target,
        tool: &document.tool,
        server: &document.server,
        seed: document.seed,
        outcome: outcome(document.interrupted, document.passed),
        extent,
        about: looked_at(&document.target, &document.tool, &[level(document.level)]),
        meaning: meaning::loss(document),
        bar,
    };
    let mut blocks = Vec::new();
    blocks.extend(not_done("Not checked", &document.coverage.not_checked));
    blocks.push(matrix(&document.cells));
    blocks.extend(not_run(&document.not_run));
    let failed = document.cells.iter().filter(|cell| !cell.passed);
    blocks.push(in_terminal(failed.map(failure).collect()));
    page.view(blocks)
}

fn matrix(cells: &[LossCell]) -> Block {
    let columns = columns(
        "Witness | Hurt | State | (Where) | Rows lost > | Predicted > | Check | Salvage | Outcome = passed",
    );
    let rows = cells.iter().map(|cell| {
        let (mark, verdict) = verdict_of(cell);
        Row::of(vec![
            words(&cell.witness),
            words(&cell.hurt),
            words(&cell.state),
            words(&cell.place),
            number(cell.lost),
            number(cell.predicted),
            cell.verdict.name().into(),
            words(&cell.outcome),
            verdict,
        ])
        .marked(mark)
    });
    Part::new(Frame::PageSection, "Losses").of(vec![
        Block::Filter("tbody tr[data-mark]", "all failed blind passed"),
        Block::Table(Table::new(columns, rows)),
    ])
}

fn verdict_of(cell: &LossCell) -> (&'static str, Words) {
    let said = |short: &str, long: String| Words::default().in_terminal(short).on_page(long);
    match (&cell.blind, cell.passed) {
        (_, false) => ("failed", said("NO", cell.failures.join("; "))),
        (Some(why), true) => ("blind", said("blind", format!("blind: {why}"))),
        (None, true) => ("passed", said("yes", "passed".into())),
    }
}

fn failure(cell: &LossCell) -> Block {
    let name = format!("{} {}, {}", cell.witness, cell.hurt, cell.state);
    let mut blocks = vec![text(&cell.place)];
    blocks.extend(list(cell.failures.iter().map(words)));
    let title = Words::default().and(Look::Wrong, "FAILED");
    section(title).about(name).of(blocks)
}
