//! The scoreboard of a drill as text.

use std::io;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ColumnConstraint, ContentArrangement, LineStyle, Table, Width};
use pgclinic_model::document::{DrillDocument, DrillRow, ServerAnswer};

use super::sheet::{Ink, Sheet};
use crate::words::{self, clean, count, count_of};

pub(super) fn render(document: &DrillDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let server = clean(&document.server);
    let about = clean(&words::target(&document.target));
    let title = sheet.ink(Ink::Strong, "Drill");
    sheet.text(0, &format!("{title} on {server}, seed {}", document.seed))?;
    sheet.text(2, &format!("{about}; level {}", document.level.name()))?;
    scoreboard(&document.rows, sheet)?;
    ways_out(&document.rows, sheet)?;
    not_run(document, sheet)?;
    for row in document.rows.iter().filter(|row| !row.passed) {
        failure(row, sheet)?;
    }
    last_line(document, sheet)
}

/// A table as wide as the sheet; the columns in `names` stay wide enough for names.
pub(super) fn table(
    header: &[&str],
    names: &[usize],
    rows: Vec<Vec<String>>,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(sheet.width()).unwrap_or(u16::MAX));
    table.set_header(header);
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if names.contains(&index) {
            let columns = u16::try_from(NAME_COLUMNS).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(columns)));
        }
    }
    sheet.gap()?;
    for line in table.lines() {
        sheet.raw(&line)?;
    }
    Ok(())
}

fn scoreboard(rows: &[DrillRow], sheet: &mut Sheet<'_>) -> io::Result<()> {
    let header = [
        "injury", "where", "found by", "sums on", "sums off", "undone", "passed",
    ];
    let cells = rows.iter().map(|row| {
        let found = match (row.found_by.split_first(), &row.blind) {
            (Some((first, [])), _) => in_lines(&clean(first)),
            (Some((first, more)), _) => in_lines(&format!("{} +{}", clean(first), more.len())),
            (None, Some(_)) => "blind".into(),
            (None, None) => "nothing".into(),
        };
        vec![
            in_lines(&clean(&format!("{} {}", row.injury, row.variant))),
            clean(&short_place(row)),
            found,
            words::answer(row.with_checksums.as_ref()).into(),
            words::answer(row.without_checksums.as_ref()).into(),
            yes(row.undone).into(),
            yes(row.passed).into(),
        ]
    });
    table(&header, &[0, 2], cells.collect(), sheet)
}

/// Names longer than this are broken after a hyphen, so that the table fits 80 columns.
const NAME_COLUMNS: usize = 15;

/// A name of words and hyphens in lines.
fn in_lines(name: &str) -> String {
    let mut lines = String::new();
    let mut taken = 0;
    for word in name.split_inclusive(['-', ' ']) {
        let len = word.chars().count();
        if taken > 0 && taken + len > NAME_COLUMNS {
            lines.truncate(lines.trim_end().len());
            lines.push('\n');
            taken = 0;
        }
        lines.push_str(word);
        taken += len;
    }
    lines
}

fn short_place(row: &DrillRow) -> String {
    let name = row
        .place
        .relation
        .clone()
        .unwrap_or_else(|| row.place.path.clone());
    match row.place.block {
        Some(block) => format!("{name} {block}"),
        None => name,
    }
}

fn yes(held: bool) -> &'static str {
    if held { "yes" } else { "NO" }
}

fn ways_out(rows: &[DrillRow], sheet: &mut Sheet<'_>) -> io::Result<()> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let way = row.way_out.as_deref().unwrap_or("none that is known");
        if !seen.contains(&(row.injury.as_str(), way)) {
            seen.push((&row.injury, way));
        }
    }
    if seen.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, "The way out of a person without the journal");
    sheet.raw(&title)?;
    for (injury, way) in seen {
        sheet.entry(2, &clean(injury), 24, &clean(way))?;
    }
    Ok(())
}

fn not_run(document: &DrillDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    if document.not_run.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    let title = sheet.ink(Ink::Warn, "NOT RUN");
    sheet.raw(&title)?;
    for entry in &document.not_run {
        sheet.entry(2, &clean(&entry.injury), 24, &clean(&entry.why))?;
    }
    Ok(())
}

fn failure(row: &DrillRow, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()?;
    let word = sheet.ink(Ink::Bad, "FAILED");
    let name = sheet.ink(
        Ink::Strong,
        &clean(&format!("{} {}", row.injury, row.variant)),
    );
    sheet.text(
        0,
        &format!("{word} {name}  {}", clean(&row.place.to_string())),
    )?;
    sheet.entry(2, "wound", 14, &clean(&row.wound))?;
    for reason in &row.failures {
        sheet.entry(2, "because", 14, &clean(reason))?;
    }
    let lists = [
        ("found by", &row.found_by),
        ("missing", &row.missing),
        ("unexpected", &row.unexpected),
    ];
    for (label, rules) in lists.into_iter().filter(|(_, rules)| !rules.is_empty()) {
        sheet.entry(2, label, 14, &clean(&rules.join(", ")))?;
    }
    if let Some(words) = &row.server_says {
        sheet.entry(2, "foretold", 14, &clean(words))?;
    }
    server_words("sums on", row.with_checksums.as_ref(), sheet)?;
    server_words("sums off", row.without_checksums.as_ref(), sheet)
}

fn server_words(label: &str, said: Option<&ServerAnswer>, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let Some(said) = said else { return Ok(()) };
    sheet.entry(2, label, 14, words::answer(Some(said)))?;
    for message in &said.messages {
        sheet.entry(2, "", 14, &clean(message))?;
    }
    for relation in &said.silent {
        sheet.entry(
            2,
            "",
            14,
            &format!("other rows without a message: {}", clean(relation)),
        )?;
    }
    Ok(())
}

fn last_line(document: &DrillDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let passed = count_of(document.rows.iter().filter(|row| row.passed).count());
    let all = count_of(document.rows.len());
    let time = words::seconds(document.elapsed_s);
    let left_out = words::left_out(document);
    if document.interrupted {
        let left = count(count_of(document.not_run.len()));
        let word = sheet.ink(Ink::Warn, "INTERRUPTED");
        sheet.gap()?;
        return sheet.raw(&format!(
            "{word} {} of {} that were run passed in {time}; {left} were not run{left_out}",
            count(passed),
            count(all)
        ));
    }
    let (ink, word, number) = if document.passed {
        (Ink::Good, "PASSED", passed)
    } else {
        (Ink::Bad, "FAILED", all - passed)
    };
    let word = sheet.ink(ink, word);
    let aside = if number == 0 && !document.passed {
        "; every row passed, the drill as a whole did not"
    } else {
        ""
    };
    sheet.gap()?;
    sheet.raw(&format!(
        "{word} {} of {} in {time}{aside}{left_out}",
        count(number),
        count(all)
    ))
}
