//! One line for one injury of a drill, shown while the drill runs.

use pgclinic_model::document::{DrillRow, RowOutcome, ServerAnswer};

use crate::words::{clean, place_inside};

/// What was hurt and where, what check found and what the server said. One line without a line
/// feed, safe for a terminal.
pub fn drill_row_line(row: &DrillRow) -> String {
    let inside = place_inside(&row.place);
    let place = if inside.is_empty() {
        row.place.relation_name()
    } else {
        format!("{}, {inside}", row.place.relation_name())
    };
    let mut parts = vec![
        format!("{} {} in {place}: {}", row.injury, row.variant, row.wound),
        check_words(row),
    ];
    let with = row.with_checksums.as_ref().map(server_words);
    let without = row.without_checksums.as_ref().map(server_words);
    match (with, without) {
        (Some(with), Some(without)) if with == without => {
            parts.push(format!("{with}, with checksums and without"));
        }
        (with, without) => {
            parts.extend(with);
            parts.extend(without.map(|words| format!("without checksums {words}")));
        }
    }
    parts.extend(row.server_does_not_look.clone());
    match row.outcome {
        RowOutcome::Passed => {}
        RowOutcome::Blind => parts.push("BLIND, as declared".into()),
        RowOutcome::Failed => parts.push(format!("FAILED: {}", row.failures.join(", "))),
    }
    clean(&parts.join("; "))
}

fn check_words(row: &DrillRow) -> String {
    match (row.found_by.as_slice(), &row.blind) {
        ([rule], _) => format!("check found {rule}"),
        ([rule, more @ ..], _) => format!("check found {rule} and {} more", more.len()),
        ([], Some(_)) => "no check can see it".into(),
        ([], None) => "check found nothing".into(),
    }
}

/// The most severe message tells more than the warnings before it.
fn server_words(answer: &ServerAnswer) -> String {
    let is_error = |message: &&String| !message.starts_with("WARNING:");
    let mut messages = answer.messages.iter();
    let message = messages
        .clone()
        .find(is_error)
        .or_else(|| messages.next())
        .and_then(|message| message.lines().next());
    match (answer.started, answer.crashed, message) {
        (false, _, Some(message)) => format!("the server did not start: {message}"),
        (false, _, None) => "the server did not start".into(),
        (true, true, Some(message)) => format!("the server crashed: {message}"),
        (true, true, None) => "the server crashed".into(),
        (true, false, Some(message)) => format!("the server said {message}"),
        (true, false, None) => match answer.silent.first() {
            Some(relation) => format!("the server gave other rows of {relation} without a message"),
            None => "the server noticed nothing".into(),
        },
    }
}
