//! Servers that were kept from starting: what the plan promised and what the server then showed.

use pgclinic_model::document::{StartDrillCell, StartDrillDocument, StartDrillTable};

use super::drill::{DrillPage, cells_left, not_run, outcome, passed_bar};
use super::{
    Block, Frame, Look, Part, Row, Table, View, Words, columns, in_terminal, list, looked_at,
    meaning, section, text, words,
};
use crate::words as say;
use crate::words::{count, count_of};

pub(super) fn view(document: &StartDrillDocument) -> View {
    let passed = document.cells.iter().filter(|cell| cell.passed).count();
    let (passed, all) = (count_of(passed), count_of(document.cells.len()));
    let bar = passed_bar(passed, 0, all.saturating_sub(passed));
    let time = say::seconds(document.elapsed_s);
    let left = cells_left(document.interrupted, document.cells_left);
    let (passed, all) = (count(passed), count(all));
    let extent = format!(
        "{passed} of {all} servers started again with the rows that were promised in {time}{left}"
    );
    let page = DrillPage {
        title: "Start drill",
        command: "pgclinic drill --ward start",
        target: &document.target,
        tool: &document.tool,
        server: &document.server,
        seed: document.seed,
        outcome: outcome(document.interrupted, document.passed),
        extent,
        about: looked_at(&document.target, &document.tool, &[]),
        meaning: meaning::start_drill(document),
        bar,
    };
    let mut blocks = Vec::new();
    blocks.push(wounds(&document.cells));
    blocks.extend(not_run(&document.not_run));
    let failed = document.cells.iter().filter(|cell| !cell.passed);
    blocks.push(in_terminal(failed.map(failure).collect()));
    page.view(blocks)
}

fn wounds(cells: &[StartDrillCell]) -> Block {
    let columns = columns(
        "Damage | After a | (The server says) | (Explained by) | Cures | Loss promised > | Loss measured > | Outcome = passed",
    );
    let rows = cells.iter().map(|cell| {
        let said = |short: &str, long: String| Words::default().in_terminal(short).on_page(long);
        let (mark, verdict) = if cell.passed {
            ("passed", said("yes", "passed".into()))
        } else {
            ("failed", said("NO", cell.failures.join("; ")))
        };
        Row::of(vec![
            words(&cell.wound),
            words(&cell.before),
            words(&cell.says),
            words(cell.explained_by.join(", ")),
            words(cures(cell)),
            words(loss(&cell.tables, StartDrillTable::predicted_loss)),
            words(loss(&cell.tables, StartDrillTable::measured_loss)),
            verdict,
        ])
        .marked(mark)
    });
    Part::new(Frame::PageSection, "Damage").of(vec![
        Block::Filter("tbody tr[data-mark]", "all failed passed"),
        Block::Table(Table::new(columns, rows)),
    ])
}

fn cures(cell: &StartDrillCell) -> String {
    let cures = cell.cures.iter();
    let cures = cures.map(|cure| format!("{} ({})", cure.name, say::safety(cure.safety)));
    cures.collect::<Vec<_>>().join(", ")
}

/// Rows of all tables; a table that is refused is told apart.
fn loss(tables: &[StartDrillTable], of: fn(&StartDrillTable) -> Option<i64>) -> String {
    let known: i64 = tables.iter().filter_map(of).sum();
    let refused = tables.iter().filter(|table| of(table).is_none()).count();
    match refused {
        0 => known.to_string(),
        tables => format!(
            "{known}, {} refused",
            say::plural(count_of(tables), "table")
        ),
    }
}

fn failure(cell: &StartDrillCell) -> Block {
    let name = format!("{}, after a {}", cell.wound, cell.before);
    let mut blocks = vec![text(&cell.says)];
    blocks.extend(list(cell.failures.iter().map(words)));
    let title = Words::default().and(Look::Wrong, "FAILED");
    section(title).about(name).of(blocks)
}
