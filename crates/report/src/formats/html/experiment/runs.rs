//! Every run with its raw files, and first those that gave nothing.

use std::io;

use pgclinic_model::document::{ExperimentDocument, RunSummary, RunWord};

use super::super::escape::Esc;
use crate::{measured, words};

/// The id of a run, as a link to its raw file where that is safe.
pub(super) fn named(
    document: &ExperimentDocument,
    id: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let run = document.runs.iter().find(|run| run.id == id);
    match run.and_then(raw_file) {
        Some(link) => write!(out, "<a href=\"{}\">{}</a>", Esc(link), Esc(id)),
        None => write!(out, "{}", Esc(id)),
    }
}

/// The link to a run's first raw file.
pub(super) fn raw_file(run: &RunSummary) -> Option<String> {
    run.files.first().and_then(|file| measured::link(file))
}

pub(super) fn not_measured(
    document: &ExperimentDocument,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let missing = document
        .runs
        .iter()
        .filter(|run| run.outcome != RunWord::Done);
    let missing: Vec<&RunSummary> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    out.write_all(
        b"<section class=\"card warn\">\n<h2>Without a result</h2>\n<dl class=reasons>\n",
    )?;
    let mut told: Vec<(RunWord, &str)> = Vec::new();
    for run in &missing {
        let why = run.why.as_deref().unwrap_or("its turn did not come");
        if told.contains(&(run.outcome, why)) {
            continue;
        }
        told.push((run.outcome, why));
        let same = missing
            .iter()
            .filter(|other| other.outcome == run.outcome && other.why == run.why);
        let ids: Vec<&str> = same.map(|other| other.id.as_str()).collect();
        writeln!(
            out,
            "<dt>{} {}</dt><dd>{} <span class=q>{}</span></dd>",
            words::plural(words::count_of(ids.len()), "run"),
            run.outcome.name(),
            Esc(why),
            Esc(some(&ids))
        )?;
    }
    out.write_all(b"</dl>\n</section>\n")
}

/// The first few names, and how many more.
fn some(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    match names.get(SHOWN..) {
        Some(rest) if !rest.is_empty() => {
            format!("{} and {} more", names[..SHOWN].join(", "), rest.len())
        }
        _ => names.join(", "),
    }
}

pub(super) fn all(document: &ExperimentDocument, out: &mut dyn io::Write) -> io::Result<()> {
    let metrics: Vec<&str> = metrics(document);
    out.write_all(
        b"<section>\n<h2>Every run</h2>\n<div class=tools data-filter=\".every-run tbody tr\" \
          data-marks=\"all done control overlapped missing\"></div>\n\
          <div class=wide><table class=every-run>\n<thead><tr><th>Run</th><th>Arm</th><th>At</th>\
          <th class=n>Block</th><th>Outcome</th>",
    )?;
    for metric in &metrics {
        let class = class(document, metric);
        write!(out, "<th class=\"{class}\">{}</th>", Esc(metric))?;
    }
    out.write_all(b"<th class=n>s</th><th>Meanwhile</th></tr></thead>\n<tbody>\n")?;
    for run in &document.runs {
        row(document, run, &metrics, out)?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
}

/// Metrics of any run, those of the figures first.
fn metrics(document: &ExperimentDocument) -> Vec<&str> {
    let drawn = document
        .figures
        .iter()
        .map(|figure| figure.metric.name.as_str());
    let measured = document
        .runs
        .iter()
        .flat_map(|run| run.metrics.keys().map(String::as_str));
    let mut names: Vec<&str> = Vec::new();
    for name in drawn.chain(measured) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What no figure draws has no room on paper.
fn class(document: &ExperimentDocument, metric: &str) -> &'static str {
    let mut drawn = document.figures.iter().map(|figure| &figure.metric.name);
    match drawn.any(|name| name == metric) {
        true => "n",
        false => "n more",
    }
}

fn row(
    document: &ExperimentDocument,
    run: &RunSummary,
    metrics: &[&str],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write!(out, "<tr data-mark=\"{}\"><td>", marks(run))?;
    named(document, &run.id, out)?;
    for file in run.files.iter().skip(1) {
        let name = file.rsplit('/').next().unwrap_or(file);
        if let Some(link) = measured::link(file) {
            write!(out, " <a class=q href=\"{}\">{}</a>", Esc(link), Esc(name))?;
        }
    }
    let machine = if document.machines.len() > 1 {
        format!(" on {}", run.machine)
    } else {
        String::new()
    };
    write!(
        out,
        "<span class=q>{}</span></td><td>{}</td><td>{}</td><td class=n>{}</td><td class=q>{}</td>",
        Esc(machine),
        Esc(&run.arm),
        Esc(measured::point(&run.point)),
        run.block,
        Esc(run.outcome.name())
    )?;
    for metric in metrics {
        let value = run
            .metrics
            .get(*metric)
            .map(|value| measured::figure(*value));
        let (class, value) = (class(document, metric), value.unwrap_or_default());
        write!(out, "<td class=\"{class}\">{value}</td>")?;
    }
    writeln!(
        out,
        "<td class=n>{}</td><td>{}</td></tr>",
        measured::figure((run.elapsed_s * 100.0).round() / 100.0),
        Esc(run.overlaps.join("; "))
    )
}

fn marks(run: &RunSummary) -> String {
    let mut marks = vec![if run.outcome == RunWord::Done {
        "done"
    } else {
        "missing"
    }];
    marks.extend(run.is_control.then_some("control"));
    marks.extend((!run.overlaps.is_empty()).then_some("overlapped"));
    marks.join(" ")
}
