//! Every run with its raw files, and those that gave nothing.

use pgclinic_model::document::{ExperimentDocument, RunSummary, RunWord};

use super::super::{
    Block, Look, Row, Style, Table, Tone, Words, card, columns, left, reasons_of, right, section,
    words,
};
use crate::measured;
use crate::words as say;

/// Runs without a result that a page names for one reason; it has all of them below.
const NAMED: usize = 6;

/// The id of a run, as a link to its raw file where that is safe.
pub(super) fn named(document: &ExperimentDocument, id: &str) -> Words {
    let run = document.runs.iter().find(|run| run.id == id);
    linked(run.and_then(raw_file), id)
}

/// Words as a link, where there is one.
pub(super) fn linked(link: Option<String>, text: &str) -> Words {
    match link {
        Some(link) => Words::default().and(Look::Link(link), text),
        None => words(text),
    }
}

/// The link to a run's first raw file.
pub(super) fn raw_file(run: &RunSummary) -> Option<String> {
    run.files.first().and_then(|file| measured::link(file))
}

/// Runs that gave nothing, by the reason.
pub(super) fn without_result(document: &ExperimentDocument) -> Vec<Block> {
    let missing = document.runs.iter();
    let missing = missing.filter(|run| run.outcome != RunWord::Done);
    let mut reasons: Vec<(RunWord, &str, Vec<&str>)> = Vec::new();
    for run in missing {
        let why = run.why.as_deref().unwrap_or("its turn did not come");
        let mut known = reasons.iter_mut();
        match known.find(|(word, known, _)| (*word, *known) == (run.outcome, why)) {
            Some((_, _, ids)) => ids.push(&run.id),
            None => reasons.push((run.outcome, why, vec![&run.id])),
        }
    }
    let reasons = reasons.into_iter().map(|(word, why, ids)| {
        let runs = say::plural(say::count_of(ids.len()), "run");
        let (shown, rest) = ids.split_at(ids.len().min(NAMED));
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let why = words(why)
            .on_page(format!("; {}{more}", shown.join(", ")))
            .in_terminal(format!("; {}", ids.join(", ")));
        (format!("{runs} {}", word.name()).into(), why)
    });
    card(Tone::Warn, "Without a result").unless_empty(reasons_of(reasons))
}

pub(super) fn all(document: &ExperimentDocument) -> Vec<Block> {
    let metrics = metrics(document);
    let mut columns = columns("Run | Arm | At | Block > | Outcome");
    let is_drawn = |metric: &str| {
        let mut figures = document.figures.iter();
        figures.any(|figure| figure.metric.name == metric)
    };
    columns.extend(metrics.iter().map(|metric| {
        if is_drawn(metric) {
            right(*metric)
        } else {
            // What no figure draws has no room on paper.
            right(*metric).extra()
        }
    }));
    columns.extend([right("s"), left("Meanwhile")]);
    let rows = document.runs.iter();
    let rows = rows.map(|run| row(document, run, &metrics));
    let table = Table::new(columns, rows).style(Style::EveryRun);
    let marks = "all done control overlapped missing";
    vec![section("Every run").of(vec![
        Block::Filter(".every-run tbody tr", marks),
        Block::Table(table),
    ])]
}

/// Metrics of any run, those of the figures first.
fn metrics(document: &ExperimentDocument) -> Vec<&str> {
    let drawn = document.figures.iter().map(|own| own.metric.name.as_str());
    let runs = document.runs.iter();
    let measured = runs.flat_map(|run| run.metrics.keys().map(String::as_str));
    let mut names: Vec<&str> = Vec::new();
    for name in drawn.chain(measured) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn row(document: &ExperimentDocument, run: &RunSummary, metrics: &[&str]) -> Row {
    let mut name = named(document, &run.id);
    for file in run.files.iter().skip(1) {
        let last = file.rsplit('/').next().unwrap_or(file);
        if let Some(link) = measured::link(file) {
            name = name.plain(" ").and(Look::Link(link), last);
        }
    }
    if document.machines.len() > 1 {
        name = name.quiet(format!(" on {}", run.machine));
    }
    let mut cells = vec![
        name,
        words(&run.arm),
        measured::point(&run.point).into(),
        run.block.to_string().into(),
        Words::default().quiet(run.outcome.name()),
    ];
    cells.extend(metrics.iter().map(|metric| {
        let value = run.metrics.get(*metric);
        let value = value.map(|value| measured::figure(*value));
        words(value.unwrap_or_default())
    }));
    let elapsed = (run.elapsed_s * 100.0).round() / 100.0;
    cells.push(measured::figure(elapsed).into());
    cells.push(run.overlaps.join("; ").into());
    Row::of(cells).marked(marks(run))
}

fn marks(run: &RunSummary) -> String {
    let mut marks = vec![match run.outcome {
        RunWord::Done => "done",
        _ => "missing",
    }];
    marks.extend(run.is_control.then_some("control"));
    marks.extend((!run.overlaps.is_empty()).then_some("overlapped"));
    marks.join(" ")
}
