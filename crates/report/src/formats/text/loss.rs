//! The matrix of losses as text.

use std::io;

use pgclinic_model::document::{LossCell, LossDocument};

use super::drill::table;
use super::sheet::{Ink, Sheet};
use crate::words::{self, clean, count, count_of};

pub(super) fn render(document: &LossDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let server = clean(&document.server);
    let title = sheet.ink(Ink::Strong, "Loss drill");
    sheet.text(0, &format!("{title} on {server}, seed {}", document.seed))?;
    let about = clean(&words::target(&document.target));
    sheet.text(2, &format!("{about}; level {}", document.level.name()))?;
    matrix(&document.cells, sheet)?;
    for entry in &document.not_run {
        sheet.entry(
            2,
            "-",
            2,
            &clean(&format!("{}: not run: {}", entry.injury, entry.why)),
        )?;
    }
    for cell in document.cells.iter().filter(|cell| !cell.passed) {
        failure(cell, sheet)?;
    }
    let (ink, word) = match document.passed {
        true => (Ink::Good, "PASSED"),
        false => (Ink::Bad, "FAILED"),
    };
    let word = sheet.ink(ink, word);
    let passed = document.cells.iter().filter(|cell| cell.passed).count();
    sheet.gap()?;
    sheet.raw(&format!(
        "{word}  {} of {} losses were seen, counted and told in {}",
        count(count_of(passed)),
        count(count_of(document.cells.len())),
        words::seconds(document.elapsed_s)
    ))
}

fn matrix(cells: &[LossCell], sheet: &mut Sheet<'_>) -> io::Result<()> {
    let header = [
        "witness",
        "hurt",
        "state",
        "rows lost",
        "predicted",
        "check",
        "salvage",
        "passed",
    ];
    let rows = cells.iter().map(|cell| {
        let passed = match (&cell.blind, cell.passed) {
            (Some(_), true) => "blind",
            (None, true) => "yes",
            (_, false) => "NO",
        };
        vec![
            clean(&cell.witness),
            clean(&cell.hurt),
            clean(&cell.state),
            count(cell.lost),
            count(cell.predicted),
            cell.verdict.name().into(),
            clean(&cell.outcome),
            passed.into(),
        ]
    });
    table(&header, &[], rows.collect(), sheet)
}

fn failure(cell: &LossCell, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()?;
    let title = sheet.ink(Ink::Bad, "FAILED");
    let name = format!("{} {}, {}", cell.witness, cell.hurt, cell.state);
    sheet.raw(&format!("{title}  {}", clean(&name)))?;
    sheet.text(2, &clean(&cell.place))?;
    for why in &cell.failures {
        sheet.entry(2, "-", 2, &clean(why))?;
    }
    Ok(())
}
