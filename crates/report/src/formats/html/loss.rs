//! The matrix of losses as a page.

use std::io;

use pgclinic_model::document::{LossCell, LossDocument};

use super::escape::Esc;
use super::{details, shell};
use crate::words::{self, count, count_of};

pub(super) fn render(document: &LossDocument, out: &mut dyn io::Write) -> io::Result<()> {
    let (word, class) = match document.passed {
        true => ("PASSED", "good"),
        false => ("FAILED", "bad"),
    };
    let passed = document.cells.iter().filter(|cell| cell.passed).count();
    shell::open(&format!("Loss drill {word}"), out)?;
    shell::kicker("pgclinic drill --ward loss", &document.target, out)?;
    writeln!(
        out,
        "<section class=\"banner {class}\">\n<h1>{word}</h1>\n<p class=extent>{} of {} losses were seen, counted and told \
         in {}</p>\n<p>{}, seed {}</p>\n</section>",
        count(count_of(passed)),
        count(count_of(document.cells.len())),
        words::seconds(document.elapsed_s),
        Esc(&document.server),
        document.seed
    )?;
    shell::facts(&shell::target_facts(&document.target), out)?;
    details::not_checked(&document.coverage.not_checked, out)?;
    matrix(&document.cells, out)?;
    shell::close(&document.tool, out)
}

fn matrix(cells: &[LossCell], out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(
        b"<section>\n<h2>Losses</h2>\n<div class=tools data-filter=\"tbody tr[data-mark]\" data-marks=\"all failed blind passed\"></div>\n\
          <div class=wide><table>\n<thead><tr><th>Witness</th><th>Hurt</th><th>State</th><th>Where</th><th class=n>Rows lost</th>\
          <th class=n>Predicted</th><th>Check</th><th>Salvage</th><th>Verdict of the drill</th></tr></thead>\n<tbody>\n",
    )?;
    for cell in cells {
        let (mark, words) = verdict(cell);
        writeln!(
            out,
            "<tr data-mark={mark}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=n>{}</td><td class=n>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td></tr>",
            Esc(&cell.witness),
            Esc(&cell.hurt),
            Esc(&cell.state),
            Esc(&cell.place),
            count(cell.lost),
            count(cell.predicted),
            cell.verdict.name(),
            Esc(&cell.outcome),
            Esc(&words)
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
}

fn verdict(cell: &LossCell) -> (&'static str, String) {
    match (&cell.blind, cell.passed) {
        (_, false) => ("failed", cell.failures.join("; ")),
        (Some(why), true) => ("blind", format!("blind: {why}")),
        (None, true) => ("passed", "passed".into()),
    }
}
