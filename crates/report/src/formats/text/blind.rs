//! The score of a blind drill as text.

use std::io;

use pgclinic_model::document::{BlindDocument, BlindTrial};

use super::drill::table;
use super::sheet::{Ink, Sheet};
use crate::words::{self, clean, count, count_of, percent};

pub(super) fn render(document: &BlindDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let server = clean(&document.server);
    let title = sheet.ink(Ink::Strong, "Blind drill");
    sheet.text(0, &format!("{title} on {server}, seed {}", document.seed))?;
    let about = clean(&words::target(&document.target));
    sheet.text(2, &format!("{about}; level {}", document.level.name()))?;
    scores(document, sheet)?;
    misses(&document.misses, sheet)?;
    let (ink, word) = match (document.interrupted, document.passed) {
        (true, _) => (Ink::Warn, "INTERRUPTED"),
        (false, true) => (Ink::Good, "PASSED"),
        (false, false) => (Ink::Bad, "FAILED"),
    };
    let word = sheet.ink(ink, word);
    let kinds = &document.kinds;
    let hurtful = kinds
        .iter()
        .map(|kind| kind.hurtful)
        .fold(0, u64::saturating_add);
    let found = kinds
        .iter()
        .map(|kind| kind.hurtful_found)
        .fold(0, u64::saturating_add);
    let time = words::seconds(document.elapsed_s);
    sheet.gap()?;
    let left = match document.shots_left {
        0 => String::new(),
        left => format!("; {} not fired", words::plural(left, "shot")),
    };
    sheet.raw(&format!(
        "{word}  found {} of {} shots that hurt in {time}{left}",
        count(found),
        count(hurtful)
    ))
}

fn scores(document: &BlindDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let header = [
        "kind",
        "checksums",
        "shots",
        "found",
        "that hurt",
        "found",
        "rate",
    ];
    let rows = document.kinds.iter().map(|kind| {
        let rate = match kind.hurtful {
            0 => "-".into(),
            hurtful => format!("{} %", percent(kind.hurtful_found, hurtful)),
        };
        vec![
            clean(&kind.kind),
            if kind.checksums { "on" } else { "off" }.into(),
            count(kind.trials),
            count(kind.found),
            count(kind.hurtful),
            count(kind.hurtful_found),
            rate,
        ]
    });
    table(&header, &[], rows.collect(), sheet)
}

fn misses(misses: &[BlindTrial], sheet: &mut Sheet<'_>) -> io::Result<()> {
    if misses.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    let title = sheet.ink(Ink::Warn, "MISSED");
    sheet.raw(&format!(
        "{title}  {}",
        words::plural(count_of(misses.len()), "shot")
    ))?;
    for miss in misses {
        let sums = if miss.checksums {
            "checksums on"
        } else {
            "checksums off"
        };
        let hurt = if miss.hurts {
            "hurts"
        } else {
            "changes nothing the server reads"
        };
        let range = words::byte_range(miss.file_bytes);
        let place = clean(&miss.place.to_string());
        let kind = clean(&miss.kind);
        sheet.entry(
            2,
            "-",
            2,
            &format!("{kind}, {sums}, {hurt}: {place}; {range} of the file"),
        )?;
        if let Some(words) = &miss.server {
            sheet.text(4, &clean(words))?;
        }
    }
    Ok(())
}
