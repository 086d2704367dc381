//! Two copies of one cluster against each other: the answer, where each of them stands, then what
//! contradicts, then the rest.

use std::io;

use pgclinic_model::document::{
    Copy, CopyPosition, DiffBlock, DiffDocument, DiffFile, DiffFork, Difference, Target,
};

use super::sheet::{Ink, Sheet};
use crate::diffed;
use crate::words::{self, clean, count};

/// Forks that are told.
const FORKS_MAX: usize = 50;
/// Forks without a contradiction that are told, each in a line.
const EXPLAINED_MAX: usize = 20;
/// Files beside the relations that are told.
const FILES_MAX: usize = 50;
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
    if let Some(words) = diffed::parting(document) {
        sheet.text(2, &clean(&words))?;
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
    files(&document.files, sheet)?;
    let (parted, rest): (Vec<_>, Vec<_>) = explained
        .into_iter()
        .partition(|fork| fork.has(Difference::Parted));
    let (undecided, explained): (Vec<_>, Vec<_>) = rest
        .into_iter()
        .partition(|fork| fork.has(Difference::Undecided));
    in_lines("Changed after they parted", &parted, sheet)?;
    in_lines("Nothing tells whether WAL explains it", &undecided, sheet)?;
    in_lines("Explained by the WAL", &explained, sheet)
}

/// A line each, under a heading.
fn in_lines(heading: &str, forks: &[&DiffFork], sheet: &mut Sheet<'_>) -> io::Result<()> {
    if !forks.is_empty() {
        sheet.gap()?;
        sheet.text(0, &sheet.ink(Ink::Strong, heading))?;
    }
    for fork in forks.iter().take(EXPLAINED_MAX) {
        let words = format!("{}: {}", fork.name(), diffed::ways(fork));
        sheet.text(2, &clean(&words))?;
    }
    more(forks.len().saturating_sub(EXPLAINED_MAX), sheet)
}

/// Relation maps and files with the status of transactions.
fn files(files: &[DiffFile], sheet: &mut Sheet<'_>) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    sheet.text(0, &sheet.ink(Ink::Strong, "Files beside the relations"))?;
    for own in files.iter().take(FILES_MAX) {
        let words = format!("{}  {}", own.path, diffed::file(own));
        sheet.text(2, &clean(&words))?;
        sheet.text(4, &clean(&own.why))?;
    }
    more(files.len().saturating_sub(FILES_MAX), sheet)
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
        let timeline = own.timeline.map(|own| format!(" on timeline {own}"));
        let timeline = timeline.unwrap_or_default();
        match own.redo == own.end {
            true => format!("; stands at {}{timeline}", own.end),
            false => format!("; WAL from {} to {}{timeline}{more}", own.redo, own.end),
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
