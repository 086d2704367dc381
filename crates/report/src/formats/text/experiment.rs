//! An experiment as text: the decisions first, then what was measured.

use std::io;

use pgclinic_model::document::{
    DecisionCard, DecisionWord, ExperimentDocument, MetricFigure, RunWord,
};

use super::drill::table;
use super::sheet::{Ink, Sheet};
use crate::words::{clean, seconds};
use crate::{measured, words};

/// Columns of the labels of a card.
const LABELS: usize = 12;

pub(super) fn render(document: &ExperimentDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    if document.cards.is_empty() {
        let word = sheet.ink(Ink::Warn, "NO DECISION");
        sheet.text(0, &format!("{word} there is nothing to decide from yet"))?;
    }
    for (number, card) in document.cards.iter().enumerate() {
        if number > 0 {
            sheet.gap()?;
        }
        decision(document, card, sheet)?;
    }
    about(document, sheet)?;
    for figure in &document.figures {
        measurements(figure, sheet)?;
    }
    without_result(document, sheet)?;
    sheet.gap()?;
    sheet.text(0, "Again:")?;
    sheet.raw(&format!("  {}", clean(&document.command)))
}

fn decision(
    document: &ExperimentDocument,
    card: &DecisionCard,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    let ink = match card.word {
        DecisionWord::Better | DecisionWord::Equivalent => Ink::Good,
        DecisionWord::Worse => Ink::Bad,
        DecisionWord::Undecided => Ink::Warn,
    };
    let word = sheet.ink(ink, &card.word.name().to_uppercase());
    sheet.text(0, &format!("{word}  {}", clean(&card.headline)))?;
    let unit = measured::metric_of(document, card).map_or("", |metric| metric.unit.as_str());
    if let Some(effect) = &card.effect {
        let now = measured::at_side(effect.baseline, unit, &card.baseline);
        let instead = measured::at_side(effect.candidate, unit, &card.candidate);
        sheet.entry(2, "now", LABELS, &clean(&now))?;
        sheet.entry(2, "instead", LABELS, &clean(&instead))?;
        if let Some(words) = measured::effect(effect) {
            sheet.entry(2, "difference", LABELS, &words)?;
        }
    }
    sheet.entry(2, "how", LABELS, &clean(&card.basis))?;
    if let Some(published) = &card.published {
        sheet.entry(2, "published", LABELS, &clean(&published.sentence))?;
        sheet.entry(2, "source", LABELS, &clean(&published.source))?;
    }
    for line in &card.apply {
        sheet.raw(&format!("  {:LABELS$}{}", "apply", clean(line)))?;
    }
    Ok(())
}

fn about(document: &ExperimentDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, &clean(&document.experiment));
    sheet.text(0, &format!("{title}  {}", clean(&document.question)))?;
    let plan = &document.plan;
    let time = seconds(document.elapsed_s);
    sheet.text(
        2,
        &format!(
            "{} in {time}; {}, scale {}, plan {}, seed {}",
            measured::runs(&document.runs),
            words::plural(plan.blocks.into(), "block"),
            clean(&plan.scale),
            clean(&plan.hash),
            plan.seed
        ),
    )?;
    for remark in &document.remarks {
        sheet.text(2, &clean(remark))?;
    }
    Ok(())
}

fn measurements(figure: &MetricFigure, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, &clean(&measured::metric(&figure.metric)));
    let held = measured::point(&figure.held);
    sheet.text(0, &format!("{title}  {}", clean(&held)))?;
    let axis = figure.axis.as_ref().map_or("", |axis| axis.name.as_str());
    let rows = figure.lines.iter().flat_map(|line| {
        line.points.iter().map(|point| {
            let [low, high] = measured::ends(point);
            let runs = point.dots.len().to_string();
            let median = measured::figure(point.median);
            vec![clean(&line.arm), clean(&point.x), median, low, high, runs]
        })
    });
    let axis = clean(axis);
    let header = ["arm", axis.as_str(), "median", "from", "to", "runs"];
    table(&header, &[0], rows.collect(), sheet)?;
    for words in figure
        .lines
        .iter()
        .filter_map(|line| measured::slope(figure, line))
    {
        sheet.text(2, &clean(&words))?;
    }
    for effect in &figure.effects {
        let points = effect.points.iter().map(|point| {
            let place = if point.x.is_empty() {
                String::new()
            } else {
                format!("at {}: ", point.x)
            };
            format!(
                "{place}{}",
                measured::times_with(point.times, point.interval)
            )
        });
        let points = points.collect::<Vec<_>>().join("; ");
        let about = format!(
            "{} against {}, times as good: {points}",
            effect.name, effect.against
        );
        sheet.text(2, &clean(&about))?;
    }
    if let Some(noise) = figure.noise {
        sheet.text(2, &measured::noise(noise))?;
    }
    Ok(())
}

fn without_result(document: &ExperimentDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let mut missing = document
        .runs
        .iter()
        .filter(|run| run.outcome != RunWord::Done)
        .peekable();
    if missing.peek().is_none() {
        return Ok(());
    }
    sheet.gap()?;
    let title = sheet.ink(Ink::Warn, "WITHOUT A RESULT");
    sheet.raw(&title)?;
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for run in missing {
        let why = run.why.as_deref().unwrap_or("its turn did not come");
        let reason = format!("{}: {why}", run.outcome.name());
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, ids)) => ids.push(&run.id),
            None => reasons.push((reason, vec![&run.id])),
        }
    }
    for (reason, ids) in &reasons {
        sheet.text(2, &clean(reason))?;
        sheet.text(4, &clean(&ids.join(", ")))?;
    }
    Ok(())
}
