//! The scoreboard of a drill: what was hurt, what found it, what the server said.

use pgclinic_model::document::{
    DrillDocument, DrillRow, Level, NotRun, OutcomeCounts, RowOutcome, ServerAnswer, Target, Tool,
};

use super::picture::{Fate, PartsBar};
use super::{
    Block, Fold, Frame, Look, Meaning, Medium, Part, Row, Span, Style, Table, Tone, Verdict, View,
    Words, card, entries, fold, in_terminal, left, looked_at, meaning, not_done, number, on_page,
    reasons_of, rules, section, target_facts, words,
};
use crate::Options;
use crate::words as say;
use crate::words::{count, count_of};

pub(super) fn view(document: &DrillDocument, options: &Options<'_>) -> View {
    let (_, word) = outcome(document.interrupted, document.passed);
    let mut blocks = vec![
        Block::Verdict(banner(document)),
        on_page(vec![Block::Facts(counts(document))]),
    ];
    blocks.extend(not_done("Not checked", &document.coverage.not_checked));
    blocks.push(scoreboard(&document.rows));
    blocks.push(in_terminal(ways_out(&document.rows)));
    blocks.extend(not_run(&document.not_run));
    let failed = document.rows.iter().enumerate();
    let failed = failed.filter(|(_, row)| row.outcome == RowOutcome::Failed);
    blocks.push(in_terminal(
        failed.map(|(at, row)| injury(at, row)).collect(),
    ));
    let all = document.rows.iter().enumerate();
    let all = all.map(|(at, row)| injury(at, row)).collect();
    blocks.push(on_page(vec![section("Injury by injury").of(all)]));
    let rules = document
        .rows
        .iter()
        .flat_map(|row| row.found_by.iter().chain(&row.missing));
    blocks.push(on_page(vec![self::rules(
        rules.map(String::as_str),
        options,
    )]));
    blocks.push(in_terminal(vec![Block::Verdict(last_line(document))]));
    View::new(
        format!("Drill {word}"),
        "pgclinic drill",
        &document.target.spec,
        &document.tool,
        blocks,
    )
}

/// The page of a drill whose verdict stands at both ends, with what is its own between them.
pub(super) struct DrillPage<'a> {
    pub(super) title: &'a str,
    pub(super) command: &'a str,
    pub(super) target: &'a Target,
    pub(super) tool: &'a Tool,
    pub(super) server: &'a str,
    pub(super) seed: u64,
    pub(super) outcome: (Tone, &'static str),
    pub(super) extent: String,
    pub(super) about: Words,
    pub(super) meaning: Meaning,
    pub(super) bar: PartsBar,
}

impl DrillPage<'_> {
    pub(super) fn view(self, own: Vec<Block>) -> View {
        let verdict = |more| verdict(self.outcome, self.extent.clone(), more);
        let server = format!("{}, seed {}", self.server, self.seed);
        let first = verdict(Some(server))
            .about(self.about)
            .meaning(self.meaning)
            .bar(self.bar);
        let mut blocks = vec![
            Block::Verdict(first),
            on_page(vec![Block::Facts(target_facts(self.target))]),
        ];
        blocks.extend(own);
        blocks.push(in_terminal(vec![Block::Verdict(verdict(None))]));
        let title = format!("{} {}", self.title, self.outcome.1);
        View::new(title, self.command, &self.target.spec, self.tool, blocks)
    }
}

/// The colour and the word of a drill's outcome.
#[expect(
    clippy::fn_params_excessive_bools,
    reason = "two facts that three documents state"
)]
pub(super) fn outcome(interrupted: bool, passed: bool) -> (Tone, &'static str) {
    match (interrupted, passed) {
        (true, _) => (Tone::Warn, "INTERRUPTED"),
        (false, true) => (Tone::Good, "PASSED"),
        (false, false) => (Tone::Bad, "FAILED"),
    }
}

/// What a drill that was stopped left out.
pub(super) fn cells_left(interrupted: bool, left: u64) -> String {
    let left = Some(left).filter(|_| interrupted);
    left.map_or_else(String::new, |left| {
        format!("; {} were not run", count(left))
    })
}

/// `level full`.
pub(super) fn level(level: Level) -> String {
    format!("level {}", level.name())
}

/// The verdict of a drill, with the words of a page.
fn verdict(outcome: (Tone, &str), extent: String, more: Option<String>) -> Verdict {
    let (tone, word) = outcome;
    Verdict::new(tone, word, extent).more(more.into_iter().map(Words::from).collect())
}

fn banner(document: &DrillDocument) -> Verdict {
    let time = say::seconds(document.elapsed_s);
    let (passed, all) = (document.outcomes.passed, document.outcomes.all());
    let (passed, all, blind) = (count(passed), count(all), blind(document));
    let left_out = say::left_out(document);
    verdict(
        outcome(document.interrupted, document.passed),
        format!("{passed} of {all} injuries met every expectation{blind} in {time}{left_out}"),
        Some(format!("{}, seed {}", document.server, document.seed)),
    )
    .about(looked_at(
        &document.target,
        &document.tool,
        &[level(document.level)],
    ))
    .meaning(meaning::drill(document))
    .bar(outcomes_bar(document.outcomes))
}

/// What became of things that were tried, some of which nobody can notice.
pub(super) fn passed_bar(passed: u64, blind: u64, failed: u64) -> PartsBar {
    outcomes_bar(OutcomeCounts {
        passed,
        blind,
        failed,
    })
}

/// What became of the injuries.
fn outcomes_bar(outcomes: OutcomeCounts) -> PartsBar {
    let parts = [
        (Fate::Sound, outcomes.passed, "passed"),
        (Fate::Unknown, outcomes.blind, "blind as declared"),
        (Fate::Bad, outcomes.failed, "failed"),
    ];
    PartsBar::of(parts, count)
}

/// Those that nothing found are counted apart: nobody passed anything.
fn blind(document: &DrillDocument) -> String {
    match document.outcomes.blind {
        0 => String::new(),
        number => format!(", {} blind as declared", count(number)),
    }
}

fn last_line(document: &DrillDocument) -> Verdict {
    let outcomes = document.outcomes;
    let (passed, all) = (count(outcomes.passed), count(outcomes.all()));
    let (time, left_out) = (say::seconds(document.elapsed_s), say::left_out(document));
    let blind = blind(document);
    let extent = if document.interrupted {
        let left = count(count_of(document.not_run.len()));
        format!(
            "{passed} of {all} that were run passed{blind} in {time}; {left} were not run{left_out}"
        )
    } else {
        let number = if document.passed {
            passed
        } else {
            count(outcomes.failed)
        };
        let aside = match (outcomes.failed, document.passed) {
            (0, false) => "; every row passed, the drill as a whole did not",
            _ => "",
        };
        format!("{number} of {all}{blind} in {time}{aside}{left_out}")
    };
    verdict(outcome(document.interrupted, document.passed), extent, None)
}

fn counts(document: &DrillDocument) -> Vec<(&'static str, Words)> {
    let rows = |test: &dyn Fn(&DrillRow) -> bool| {
        let rows = document.rows.iter().filter(|row| test(row));
        number(count_of(rows.count()))
    };
    let is_silent =
        |said: &Option<ServerAnswer>| matches!(say::answer(said.as_ref()), "silent" | "wrong rows");
    vec![
        ("injuries", number(count_of(document.rows.len()))),
        ("passed", number(document.outcomes.passed)),
        ("blind, as declared", number(document.outcomes.blind)),
        ("failed", number(document.outcomes.failed)),
        ("found", rows(&|row| !row.found_by.is_empty())),
        ("undone", rows(&|row| row.undone)),
        (
            "no error from the server, checksums on",
            rows(&|row| is_silent(&row.with_checksums)),
        ),
        (
            "no error, checksums off",
            rows(&|row| is_silent(&row.without_checksums)),
        ),
        (
            "the server does not look there",
            rows(&|row| row.server_does_not_look.is_some()),
        ),
        ("not run", number(count_of(document.not_run.len()))),
    ]
}

fn scoreboard(rows: &[DrillRow]) -> Block {
    let columns = vec![
        left("Injury"),
        left("Where"),
        left("Found by"),
        left("Server, checksums on").short("sums on"),
        left("Server, off").short("sums off"),
        left("Undone"),
        left("Outcome"),
    ];
    let rows = rows.iter().enumerate().map(|(at, row)| {
        let link = Look::Link(format!("#i{at}"));
        let name = Words::default().and(link, &row.injury);
        Row::of(vec![
            name.plain(format!(" {}", row.variant)),
            place(row),
            found_by(row),
            server_cell(row.with_checksums.as_ref()),
            server_cell(row.without_checksums.as_ref()),
            yes(row.undone),
            ended(row.outcome),
        ])
        .marked(mark(row.outcome))
    });
    let table = Table::new(columns, rows).style(Style::Board);
    Part::new(Frame::PageSection, "Scoreboard").of(vec![
        Block::Filter("tbody tr", "all passed failed blind"),
        Block::Table(table),
    ])
}

/// A terminal has no room for the schema.
fn place(row: &DrillRow) -> Words {
    let relation = row.place.relation.as_ref();
    let short = relation.unwrap_or(&row.place.path);
    let (long, short) = match row.place.block {
        Some(block) => (
            format!("{}, block {block}", row.place.relation_name()),
            format!("{short} {block}"),
        ),
        None => (row.place.relation_name(), short.clone()),
    };
    Words::default().on_page(long).in_terminal(short)
}

fn found_by(row: &DrillRow) -> Words {
    match (row.found_by.split_first(), &row.blind) {
        (Some((first, [])), _) => Words::default().and(Look::Rule, first),
        (Some((first, more)), _) => {
            let first = Words::default().and(Look::Rule, first);
            first.quiet(format!(" +{}", more.len()))
        }
        (None, Some(_)) => Words::default().and(Look::State, "blind"),
        (None, None) => Words::default().and(Look::Wrong, "nothing"),
    }
}

fn server_cell(said: Option<&ServerAnswer>) -> Words {
    let word = say::answer(said);
    let look = match word {
        "error" | "not asked" => Look::Quiet,
        _ => Look::State,
    };
    let first = said.and_then(|said| said.messages.first().or(said.silent.first()));
    let word = Words::default().and(look, word);
    first.map_or_else(|| word.clone(), |first| word.clone().tip(first))
}

/// What the buttons of the filter pick a row by.
fn mark(outcome: RowOutcome) -> &'static str {
    match outcome {
        RowOutcome::Passed => "passed",
        RowOutcome::Blind => "blind",
        RowOutcome::Failed => "failed",
    }
}

fn ended(outcome: RowOutcome) -> Words {
    let (look, word) = match outcome {
        RowOutcome::Passed => (Look::Right, "passed"),
        RowOutcome::Blind => (Look::State, "blind"),
        RowOutcome::Failed => (Look::Wrong, "FAILED"),
    };
    Words::default().and(look, word)
}

fn yes(held: bool) -> Words {
    if held {
        Words::default().and(Look::Right, "yes")
    } else {
        Words::default().and(Look::Wrong, "NO")
    }
}

/// Of each injury once.
fn ways_out(rows: &[DrillRow]) -> Vec<Block> {
    let mut told: Vec<(String, Words)> = Vec::new();
    for row in rows {
        let way = words(row.way_out.as_deref().unwrap_or("none that is known"));
        if !told
            .iter()
            .any(|(injury, known)| *injury == row.injury && *known == way)
        {
            told.push((row.injury.clone(), way));
        }
    }
    let title = section("The way out of a user without the journal");
    title.unless_empty(entries(24, told))
}

/// Injuries that found no place, and why.
pub(super) fn not_run(entries: &[NotRun]) -> Vec<Block> {
    let entries = entries.iter();
    let reasons = reasons_of(entries.map(|entry| (words(&entry.injury), words(&entry.why))));
    card(Tone::Warn, "Not run").unless_empty(reasons)
}

fn injury(at: usize, row: &DrillRow) -> Block {
    let joined = |names: &[String]| (!names.is_empty()).then(|| names.join(", "));
    let told = [
        ("injury", Some(row.wound.clone())),
        ("because", joined(&row.failures)),
        ("found by", joined(&row.found_by)),
        ("message", row.message.clone()),
        ("cause", row.cause.clone()),
        ("blind", row.blind.clone()),
        ("not asked", row.server_does_not_look.clone()),
        ("missing", joined(&row.missing)),
        ("unexpected", joined(&row.unexpected)),
        ("way out", row.way_out.clone()),
    ];
    let told = told.into_iter();
    let mut rows: Vec<(String, Words)> = told
        .filter_map(|(label, told)| Some((label.to_owned(), told?.into())))
        .collect();
    if let Some(words) = &row.server_says {
        let held = match row.server_says_true {
            Some(true) => " (the server said so)",
            Some(false) => " (the server did not say so)",
            None => " (not compared)",
        };
        let words = Words::default().and(Look::Server, words);
        rows.push(("predicted".into(), words.quiet(held)));
    }
    rows.extend(server("sums on", row.with_checksums.as_ref()));
    rows.extend(server("sums off", row.without_checksums.as_ref()));
    let is_failed = row.outcome == RowOutcome::Failed;
    let kind = if is_failed { Fold::Fault } else { Fold::Item };
    let failed = Words::default().and(Look::Wrong, "FAILED").plain(" ");
    let failed = failed.0.into_iter().map(|span| Span {
        medium: Medium::Terminal,
        ..span
    });
    let title = Words(failed.collect())
        .strong(&row.injury)
        .plain(format!(" {}", row.variant));
    let title = fold(kind, is_failed, title).about(row.place.to_string());
    title.id(format!("i{at}")).of(entries(14, rows))
}

fn server(label: &str, said: Option<&ServerAnswer>) -> Vec<(String, Words)> {
    let Some(said) = said else { return Vec::new() };
    let messages = said.messages.iter();
    let messages = messages.map(|own| Words::default().and(Look::Server, own));
    let silent = said.silent.iter();
    let silent = silent.map(|own| words(format!("other rows without a message: {own}")));
    let mut rows = vec![(label.to_owned(), words(say::answer(Some(said))))];
    rows.extend(messages.chain(silent).map(|words| (String::new(), words)));
    rows
}
