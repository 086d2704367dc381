//! An experiment as a page: the decision, the curves, every run, and how to run it again.

mod card;
mod environment;
mod figure;
mod runs;

use std::io;

use pgclinic_model::document::{DecisionWord, ExperimentDocument};

use super::escape::Esc;
use super::shell;
use crate::{measured, words};

pub(super) fn render(document: &ExperimentDocument, out: &mut dyn io::Write) -> io::Result<()> {
    shell::open(&format!("Experiment {}", document.experiment), out)?;
    writeln!(
        out,
        "<header class=kicker><p>pgclinic lab, {}</p><p class=spec>{}</p></header>",
        Esc(&document.experiment),
        Esc(&document.folder)
    )?;
    banner(document, out)?;
    facts(document, out)?;
    remarks(document, out)?;
    runs::not_measured(document, out)?;
    card::all(document, out)?;
    figure::all(document, out)?;
    again(document, out)?;
    environment::all(document, out)?;
    runs::all(document, out)?;
    shell::close(&document.tool, out)
}

/// The class that colours a verdict.
fn class(word: DecisionWord) -> &'static str {
    match word {
        DecisionWord::Better | DecisionWord::Equivalent => "good",
        DecisionWord::Worse => "bad",
        DecisionWord::Undecided => "warn",
    }
}

fn banner(document: &ExperimentDocument, out: &mut dyn io::Write) -> io::Result<()> {
    let (class, word, headline) = match document.cards.first() {
        Some(card) => (class(card.word), card.word.name(), card.headline.as_str()),
        None => ("warn", "no decision", "there is nothing to decide from yet"),
    };
    let unfinished = if document.complete {
        ""
    } else {
        " <small>unfinished</small>"
    };
    writeln!(
        out,
        "<section class=\"banner {class}\">\n<h1>{}{unfinished}</h1>\n<p class=extent>{}</p>\n<p>{}</p>\n</section>",
        word.to_uppercase(),
        Esc(headline),
        Esc(&document.question)
    )
}

fn facts(document: &ExperimentDocument, out: &mut dyn io::Write) -> io::Result<()> {
    let plan = &document.plan;
    let noise = document.figures.iter().find_map(|figure| figure.noise);
    let percent = |share: f64| format!("{} %", measured::figure((share * 1e4).round() / 1e2));
    let facts = [
        ("runs", measured::runs(&document.runs)),
        ("blocks", words::count(plan.blocks.into())),
        ("time", words::seconds(document.elapsed_s)),
        ("scale", plan.scale.clone()),
        (
            "noise floor of two equal runs",
            match noise {
                None => "not measured".into(),
                Some(noise) if measured::has_ratio(noise) => percent(noise.times - 1.0),
                Some(_) => "over ten times: values next to zero".into(),
            },
        ),
        (
            "differences that do not matter",
            format!("below {}", percent(plan.margin)),
        ),
        ("accepted share of wrong decisions", percent(plan.alpha)),
        ("begun", document.started.clone().unwrap_or_default()),
        ("plan", plan.hash.clone()),
        ("seed", plan.seed.to_string()),
    ];
    shell::facts(&facts, out)
}

fn remarks(document: &ExperimentDocument, out: &mut dyn io::Write) -> io::Result<()> {
    if document.remarks.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section>\n<h2>To be known</h2>\n<ul class=brief>\n")?;
    for remark in &document.remarks {
        writeln!(out, "<li>{}</li>", Esc(remark))?;
    }
    out.write_all(b"</ul>\n</section>\n")
}

fn again(document: &ExperimentDocument, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(
        out,
        "<section>\n<h2>Run it again</h2>\n<pre class=command><code>{}</code></pre>\n</section>",
        Esc(&document.command)
    )
}
