//! Two copies of one cluster against each other: the answer, where each of them stands, then what contradicts, then the rest.

use std::io;

use pgclinic_diagnose::document::{Copy, CopyPosition, DiffBlock, DiffDocument, DiffFork, Target};

use super::sheet::{Ink, Sheet};
use crate::diffed;
use crate::words::{self, clean, count};

/// Forks that are told.
const FORKS_MAX: usize = 50;
/// Forks without a contradiction that are told, each in a line.
const EXPLAINED_MAX: usize = 20;
/// Blocks of a fork that are told.
const BLOCKS_MAX: usize = 10;

pub(super) fn render(document: &DiffDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let word = diffed::word(document.verdict);
    let ink = match diffed::is_bad(document.verdict) {
        true => Ink::Bad,
        false if diffed::is_good(document.verdict) => Ink::Good,
        false => Ink::Warn,
    };
    let word = sheet.ink(ink, word);
    sheet.text(0, &format!("{word}  {}", diffed::extent(document)))?;
    let sides = [
        ("A", &document.a, &document.position_a),
        ("B", &document.b, &document.position_b),
    ];
    for (name, target, position) in sides {
        sheet.text(2, &clean(&side(name, target, position.as_ref())))?;
    }
    for entry in &document.coverage.not_checked {
        let words = format!("not compared: {}: {}", entry.what, entry.why);
        sheet.text(2, &clean(&words))?;
    }
    let told = document.forks.iter().filter(|fork| !fork.is_hints_only());
    let (bad, explained): (Vec<_>, Vec<_>) = told.partition(|fork| fork.contradicts());
    for fork in bad.iter().take(FORKS_MAX) {
        self::fork(fork, sheet)?;
    }
    more(bad.len().saturating_sub(FORKS_MAX), sheet)?;
    if !explained.is_empty() {
        sheet.gap()?;
        sheet.text(0, &sheet.ink(Ink::Strong, "Explained by the WAL"))?;
    }
    for fork in explained.iter().take(EXPLAINED_MAX) {
        let words = format!("{}: {}", fork.name(), diffed::ways(fork));
        sheet.text(2, &clean(&words))?;
    }
    more(explained.len().saturating_sub(EXPLAINED_MAX), sheet)
}

fn more(number: usize, sheet: &mut Sheet<'_>) -> io::Result<()> {
    if number == 0 {
        return Ok(());
    }
    let number = count(number as u64);
    sheet.text(
        2,
        &format!("and {number} more; --format json has all of them"),
    )
}

fn side(name: &str, target: &Target, position: Option<&CopyPosition>) -> String {
    let stands = position.map(|own| {
        let more = if own.goes_on_elsewhere {
            ", more lies elsewhere"
        } else {
            ""
        };
        match own.redo == own.end {
            true => format!("; stands at {}", own.end),
            false => format!("; WAL from {} to {}{more}", own.redo, own.end),
        }
    });
    let stands = stands.unwrap_or_default();
    format!("{name}  {}: {}{stands}", target.spec, words::target(target))
}

fn fork(fork: &DiffFork, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()?;
    let name = sheet.ink(Ink::Strong, &clean(&fork.name()));
    sheet.text(0, &format!("{name}  {}", clean(&diffed::about(fork))))?;
    sheet.text(2, &diffed::ways(fork))?;
    let told = fork
        .blocks
        .iter()
        .filter(|block| block.difference.is_contradiction());
    for own in told.take(BLOCKS_MAX) {
        block(own, sheet)?;
    }
    Ok(())
}

fn block(own: &DiffBlock, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let at_fault = match own.copy {
        Some(Copy::A) => " in A",
        Some(Copy::B) => " in B",
        None => "",
    };
    let name = own.difference.name();
    let name = match own.difference.is_contradiction() {
        true => sheet.ink(Ink::Bad, name),
        false => name.to_owned(),
    };
    let lsns = diffed::lsns(own);
    sheet.text(2, &format!("block {}  {name}{at_fault}{lsns}", own.block))?;
    sheet.text(4, &clean(&own.why))
}
