//! An experiment: the decisions, the curves, every run, and how to run it again.

mod arms;
mod figure;
mod runs;

use pgclinic_model::document::{DecisionCard, DecisionWord, ExperimentDocument, Tool};

use super::{
    Block, Fold, Frame, Look, Medium, Part, Tone, Verdict, View, Words, entries, fold, in_terminal,
    list, meaning, on_page, section, text, words,
};
use crate::measured;
use crate::words::{self as say, count_of};

/// Where the words of a card begin in a terminal.
const COLUMN: usize = 12;
/// The answer where no card was dealt.
const UNDECIDED: &str = "there is nothing to decide from yet";

pub(super) fn view(document: &ExperimentDocument) -> View {
    let remarks = || list(document.remarks.iter().map(words));
    let mut blocks = vec![
        Block::Verdict(banner(document)),
        on_page(vec![Block::Facts(facts(document))]),
    ];
    blocks.push(on_page(section("To be known").unless_empty(remarks())));
    blocks.push(on_page(runs::without_result(document)));
    let title = match document.cards.len() {
        1 => "Decision",
        _ => "Decisions",
    };
    let cards = document.cards.iter().map(|card| self::card(document, card));
    blocks.extend(Part::new(Frame::PageSection, title).unless_empty(cards.collect()));
    let mut about = vec![text(extent(document))];
    about.extend(document.remarks.iter().map(text));
    let title = section(&document.experiment).about(&document.question);
    blocks.push(in_terminal(vec![title.of(about)]));
    blocks.extend(figure::all(document));
    blocks.push(in_terminal(runs::without_result(document)));
    let command = Block::Command(document.command.clone());
    blocks.push(section("Run it again").of(vec![command]));
    blocks.push(on_page(arms::all(document)));
    blocks.push(on_page(runs::all(document)));
    View::new(
        format!("Experiment {}", document.experiment),
        format!("pgclinic lab, {}", document.experiment),
        &document.folder,
        &document.tool,
        blocks,
    )
}

/// Where something is left to be filled in, nobody copies it as it stands.
fn to_apply(words: &str) -> Vec<Block> {
    let command = Block::Command(words.to_owned());
    if words.contains('…') {
        vec![
            on_page(vec![text(Words::default().code(words))]),
            in_terminal(vec![command]),
        ]
    } else {
        vec![command]
    }
}

/// What colours a verdict.
fn tone(word: DecisionWord) -> Tone {
    match word {
        DecisionWord::Better | DecisionWord::Equivalent => Tone::Good,
        DecisionWord::Worse => Tone::Bad,
        DecisionWord::Undecided => Tone::Warn,
    }
}

fn banner(document: &ExperimentDocument) -> Verdict {
    let (tone, word, headline) = match document.cards.first() {
        Some(card) => (tone(card.word), card.word.name(), card.headline.as_str()),
        None => (Tone::Warn, "no decision", UNDECIDED),
    };
    let unfinished = if document.complete { "" } else { "unfinished" };
    Verdict::new(tone, word.to_uppercase(), headline)
        .beside(unfinished)
        .more(vec![Words::default().on_page(&document.question)])
        .about(begun(document))
        .meaning(meaning::experiment(document))
        .in_lines()
}

/// When and where the runs were, and what wrote the document.
fn begun(document: &ExperimentDocument) -> String {
    let machines = document.machines.iter().map(|own| own.name.as_str());
    let machines: Vec<&str> = machines.collect();
    say::run(&Tool {
        started: document.started.clone(),
        host: (!machines.is_empty()).then(|| machines.join(", ")),
        ..document.tool.clone()
    })
}

fn extent(document: &ExperimentDocument) -> String {
    let (plan, time) = (&document.plan, say::seconds(document.elapsed_s));
    let (runs, blocks) = (measured::runs(&document.runs), u64::from(plan.blocks));
    let (blocks, scale) = (say::plural(blocks, "block"), &plan.scale);
    let (hash, seed) = (&plan.hash, plan.seed);
    format!("{runs} in {time}; {blocks}, scale {scale}, plan {hash}, seed {seed}")
}

fn facts(document: &ExperimentDocument) -> Vec<(&'static str, Words)> {
    let plan = &document.plan;
    let noise = document.figures.iter().find_map(|figure| figure.noise);
    let percent = |share: f64| format!("{} %", measured::figure((share * 1e4).round() / 1e2));
    let noise = match noise {
        None => "not measured".into(),
        Some(noise) if measured::has_ratio(noise) => percent(noise.times - 1.0),
        Some(_) => "over ten times: values next to zero".into(),
    };
    let margin = format!("below {}", percent(plan.margin));
    vec![
        ("runs", measured::runs(&document.runs).into()),
        ("blocks", say::count(plan.blocks.into()).into()),
        ("time", say::seconds(document.elapsed_s).into()),
        ("scale", words(&plan.scale)),
        ("noise floor of two equal runs", noise.into()),
        ("differences that do not matter", margin.into()),
        (
            "accepted share of wrong decisions",
            percent(plan.alpha).into(),
        ),
        (
            "begun",
            words(document.started.as_deref().unwrap_or_default()),
        ),
        ("plan", words(&plan.hash)),
        ("seed", plan.seed.to_string().into()),
    ]
}

fn card(document: &ExperimentDocument, card: &DecisionCard) -> Block {
    let metric = measured::metric_of(document, card);
    let unit = metric.map_or("", |metric| metric.unit.as_str());
    let mut rows: Vec<(&str, Words)> = Vec::new();
    if let Some(effect) = &card.effect {
        let now = measured::at_side(effect.baseline, unit, &card.baseline);
        let instead = measured::at_side(effect.candidate, unit, &card.candidate);
        rows.extend([("now", now.into()), ("instead", instead.into())]);
        rows.extend(measured::effect(effect).map(|words| ("difference", words.into())));
    }
    rows.push(("how", words(&card.basis)));
    if let Some(published) = &card.published {
        rows.push(("published", words(&published.sentence)));
        rows.push(("source", words(&published.source)));
    }
    let mut blocks = entries(COLUMN, rows);
    if !card.apply.is_empty() {
        blocks.push(in_terminal(vec![text("apply:")]));
    }
    blocks.extend(card.apply.iter().flat_map(|own| to_apply(own)));
    if !card.runs.is_empty() {
        let all = card.runs.iter().fold(Words::default(), |all, id| {
            all.then(runs::named(document, id)).plain(" ")
        });
        let title = say::plural(count_of(card.runs.len()), "run");
        blocks.push(on_page(vec![
            fold(Fold::Plain, false, title).of(vec![text(all)]),
        ]));
    }
    let tone = tone(card.word);
    let class = match tone {
        Tone::Good => "decision good",
        Tone::Bad => "decision bad",
        _ => "decision warn",
    };
    let metric = metric.map_or_else(|| card.metric.clone(), measured::metric);
    let title = Words::default()
        .and(Look::Tag(tone), card.word.name())
        .and(Look::Place, metric)
        .only(Medium::Page);
    Part::new(Frame::Finding(class), title)
        .about(&card.headline)
        .of(blocks)
}
