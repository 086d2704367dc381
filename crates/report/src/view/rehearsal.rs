//! The score of a rehearsal on a copy of a user's cluster: what was hurt and found, and which rows
//! were saved.

use pgclinic_model::document::{
    FalseAlarm, InjuryState, RehearsalDocument, RehearsalInjury, RehearsalKind, RehearsalScore,
    RehearsalServer, RehearsalTable,
};

use super::picture::{Fate, PartsBar};
use super::{
    Block, Frame, Look, Part, Row, Table, Tone, Verdict, View, Words, and_more, card, columns,
    entries, in_terminal, looked_at, meaning, not_done, number, on_page, reasons_of, rules,
    section, short_list, target_facts, text, words,
};
use crate::Options;
use crate::words as say;
use crate::words::{count, count_of};

/// Messages of a server that a terminal lists.
const MESSAGES_MAX: usize = 12;

pub(super) fn view(document: &RehearsalDocument, options: &Options<'_>) -> View {
    let (title, command) = match document.kind {
        RehearsalKind::Drill => ("Rehearsal", "pgclinic drill --on-copy-of"),
        RehearsalKind::Exam => ("Exam", "pgclinic drill --exam"),
    };
    let hurt = format!(
        "level {}, seed {}, {} of {} hurt",
        document.level.name(),
        document.seed,
        say::plural(document.score.injuries, "place"),
        say::plural(document.pages, "page"),
    );
    let (target, meaning) = (&document.target, meaning::rehearsal(document));
    let about = looked_at(target, &document.tool, &[hurt]);
    let mut blocks = vec![
        Block::Verdict(verdict(document).about(about).meaning(meaning)),
        on_page(vec![Block::Facts(target_facts(&document.target))]),
        section("Score").of(score(document)),
    ];
    blocks.extend(not_done("Not checked", &document.coverage.not_checked));
    blocks.push(injuries(document));
    blocks.extend(alarms(&document.false_alarms));
    blocks.extend(tables(&document.tables));
    blocks.extend(document.server.as_ref().map(server));
    let found = document.injuries.iter().flat_map(|injury| &injury.found_by);
    blocks.push(on_page(vec![rules(found.map(String::as_str), options)]));
    blocks.push(in_terminal(vec![Block::Verdict(verdict(document))]));
    View::new(
        title,
        command,
        &document.target.spec,
        &document.tool,
        blocks,
    )
}

fn verdict(document: &RehearsalDocument) -> Verdict {
    let score = &document.score;
    let (tone, word) = if document.passed {
        (Tone::Good, "PASSED")
    } else {
        (Tone::Bad, "FAILED")
    };
    let done = match score.dealt_with {
        Some(done) => format!("dealt with {} of {}", count(done), count(score.injuries)),
        None => format!(
            "found {} of {}",
            count(score.detected),
            count(score.injuries)
        ),
    };
    let extent = format!(
        "{done}, {}, saved {} % of {} in {}",
        say::plural(score.false_alarms, "false alarm"),
        say::percent(score.rows_saved, score.rows),
        say::plural(score.rows, "row"),
        say::seconds(document.elapsed_s)
    );
    Verdict::new(tone, word, extent).bar(injuries_bar(score))
}

/// What became of the injuries.
fn injuries_bar(score: &RehearsalScore) -> PartsBar {
    let found = score.detected.saturating_sub(score.explained);
    let told = score.detected.saturating_add(score.blind);
    let parts = [
        (Fate::Sound, score.explained, "explained"),
        (Fate::Doubtful, found, "found and not explained"),
        (Fate::Unknown, score.blind, "blind, with a reason"),
        (Fate::Bad, score.injuries.saturating_sub(told), "missed"),
    ];
    PartsBar::of(parts, count)
}

/// What is compared from one rehearsal to the next, each with its former value.
fn score(document: &RehearsalDocument) -> Vec<Block> {
    let (now, before) = (&document.score, document.previous.as_ref());
    let with = |value: &dyn Fn(&RehearsalScore) -> String| {
        let words = words(value(now));
        match before.map(value).filter(|former| *former != value(now)) {
            Some(former) => words.quiet(format!(" (before: {former})")),
            None => words,
        }
    };
    let of = |part: u64, whole: u64| format!("{} of {}", count(part), count(whole));
    let mut rows = vec![
        ("detected", with(&|own| of(own.detected, own.injuries))),
        ("explained", with(&|own| of(own.explained, own.injuries))),
        ("blind, with reason", with(&|own| count(own.blind))),
        ("false alarms", with(&|own| count(own.false_alarms))),
    ];
    if now.dealt_with.is_some() {
        let done = |own: &RehearsalScore| of(own.dealt_with.unwrap_or_default(), own.injuries);
        rows.push(("dealt with", with(&done)));
    }
    rows.extend([
        ("rows saved", with(&|own| of(own.rows_saved, own.rows))),
        ("wrong rows", with(&|own| count(own.rows_wrong))),
        ("copied", words(say::bytes(document.copied_bytes))),
        ("copy", with(&|own| say::seconds(own.copy_s))),
        ("check", with(&|own| say::seconds(own.check_s))),
        ("salvage", with(&|own| say::seconds(own.salvage_s))),
    ]);
    entries(20, rows)
}

fn injuries(document: &RehearsalDocument) -> Block {
    let columns = match document.kind {
        RehearsalKind::Drill => columns("Injury | Where | Found by | Outcome | (Way out)"),
        RehearsalKind::Exam => columns("Injury | Where | A check now says | Outcome | (Way out)"),
    };
    let rows = document.injuries.iter().map(|injury| {
        let (mark, ended) = ended(document.kind, injury);
        Row::of(vec![
            words(&injury.injury).tip(&injury.damage),
            words(place_of(injury)),
            found_by(injury),
            ended,
            words(injury.way_out.as_deref().unwrap_or("none that is known")),
        ])
        .marked(mark)
    });
    Part::new(Frame::PageSection, "Injuries").of(vec![
        Block::Filter("tbody tr[data-mark]", "all good blind bad"),
        Block::Table(Table::new(columns, rows)),
    ])
}

/// A TOAST table carries the name of its table.
fn place_of(injury: &RehearsalInjury) -> String {
    match &injury.toast_of {
        Some(owner) => format!("TOAST of {owner}: {}", injury.place),
        None => injury.place.to_string(),
    }
}

fn found_by(injury: &RehearsalInjury) -> Words {
    match injury.found_by.split_first() {
        Some((first, [])) => Words::default().and(Look::Rule, first),
        Some((first, more)) => {
            let first = Words::default().and(Look::Rule, first);
            first.quiet(format!(" +{}", more.len()))
        }
        None => words("nothing"),
    }
}

fn ended(kind: RehearsalKind, injury: &RehearsalInjury) -> (&'static str, Words) {
    let said = |look, word| Words::default().and(look, word);
    let blind = injury.blind.as_deref().unwrap_or_default();
    match (kind, injury.state) {
        (RehearsalKind::Exam, Some(state)) if state.is_dealt_with() => {
            ("good", said(Look::Right, state.name()))
        }
        (RehearsalKind::Exam, state) => {
            let word = state.map_or("not marked", InjuryState::name);
            ("bad", said(Look::Wrong, word))
        }
        (RehearsalKind::Drill, _) if injury.explained => ("good", said(Look::Right, "explained")),
        (RehearsalKind::Drill, _) if !injury.found_by.is_empty() => {
            ("good", said(Look::State, "detected"))
        }
        (RehearsalKind::Drill, _) if injury.blind.is_some() => {
            ("blind", said(Look::State, "blind").tip(blind))
        }
        (RehearsalKind::Drill, _) => ("bad", said(Look::Wrong, "MISSED")),
    }
}

fn alarms(alarms: &[FalseAlarm]) -> Vec<Block> {
    let alarms = alarms.iter().map(|alarm| {
        let what = format!("{} at {}", alarm.rule, alarm.place);
        (words(what), words(&alarm.message))
    });
    card(Tone::Warn, "False alarms").unless_empty(reasons_of(alarms))
}

/// The messages of a server that read a second copy of what was hurt.
fn server(own: &RehearsalServer) -> Block {
    let Some(version) = &own.version else {
        let why = own.not_asked.as_deref().unwrap_or("no reason is known");
        return section("What the server says")
            .of(vec![text(format!("no server was asked: {why}"))]);
    };
    let answer = &own.answer;
    let how = match (answer.started, answer.crashed) {
        (false, _) => "does not start on a second copy",
        (true, false) => "starts on a second copy, and is asked for everything",
        (true, true) => "starts on a second copy, and crashes when it is asked for everything",
    };
    let mut blocks = vec![text(format!(
        "PostgreSQL {version} {how}: {}",
        say::plural(count_of(answer.messages.len()), "message")
    ))];
    let messages = answer.messages.iter().map(words);
    blocks.extend(short_list(messages, MESSAGES_MAX, and_more));
    section("What the server says").of(blocks)
}

fn tables(tables: &[RehearsalTable]) -> Vec<Block> {
    let columns = columns("Table | Rows > | Saved > | Lost > | Wrong >");
    let rows = tables.iter().map(|own| {
        Row::of(vec![
            words(format!("{}: {}.{}", own.database, own.schema, own.table)),
            number(own.rows),
            number(own.saved),
            number(own.rows.saturating_sub(own.saved)),
            number(own.wrong),
        ])
    });
    match count_of(tables.len()) {
        0 => Vec::new(),
        _ => {
            vec![section("Tables that were hurt").of(vec![Block::Table(Table::new(columns, rows))])]
        }
    }
}
