//! Decision cards.

use std::io;

use pgclinic_model::document::{DecisionCard, ExperimentDocument};

use super::super::escape::Esc;
use super::{class, runs};
use crate::measured;

pub(super) fn all(document: &ExperimentDocument, out: &mut dyn io::Write) -> io::Result<()> {
    if document.cards.is_empty() {
        return Ok(());
    }
    let title = if document.cards.len() == 1 {
        "Decision"
    } else {
        "Decisions"
    };
    writeln!(out, "<section>\n<h2>{title}</h2>")?;
    for card in &document.cards {
        one(document, card, out)?;
    }
    out.write_all(b"</section>\n")
}

fn one(
    document: &ExperimentDocument,
    card: &DecisionCard,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let class = class(card.word);
    let metric = measured::metric_of(document, card);
    writeln!(
        out,
        "<article class=\"finding decision {class}\">\n<p class=where><span class=\"safety {class}\">{}</span> \
         <span>{}</span></p>\n<p class=message>{}</p>\n<dl>",
        card.word.name(),
        Esc(metric.map_or_else(|| card.metric.clone(), measured::metric)),
        Esc(&card.headline)
    )?;
    let unit = metric.map_or("", |metric| metric.unit.as_str());
    if let Some(effect) = &card.effect {
        entry(
            "now",
            &measured::at_side(effect.baseline, unit, &card.baseline),
            out,
        )?;
        entry(
            "instead",
            &measured::at_side(effect.candidate, unit, &card.candidate),
            out,
        )?;
        if let Some(words) = measured::effect(effect) {
            entry("difference", &words, out)?;
        }
    }
    entry("how", &card.basis, out)?;
    if let Some(published) = &card.published {
        entry("published", &published.sentence, out)?;
        entry("source", &published.source, out)?;
    }
    behind(document, card, out)?;
    out.write_all(b"</dl>\n")?;
    for line in &card.apply {
        writeln!(out, "<pre class=command><code>{}</code></pre>", Esc(line))?;
    }
    out.write_all(b"</article>\n")
}

fn entry(name: &str, words: &str, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "<dt>{}</dt><dd>{}</dd>", Esc(name), Esc(words))
}

fn behind(
    document: &ExperimentDocument,
    card: &DecisionCard,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if card.runs.is_empty() {
        return Ok(());
    }
    write!(
        out,
        "<dt>runs</dt><dd><details><summary>{}</summary>",
        card.runs.len()
    )?;
    for id in &card.runs {
        runs::named(document, id, out)?;
        out.write_all(b" ")?;
    }
    out.write_all(b"</details></dd>\n")
}
