//! The score of a blind drill: how many shots were found, and which were missed.

use pgclinic_model::document::{BlindDocument, BlindKind, BlindTrial};

use super::drill::{DrillPage, level, outcome};
use super::picture::{Fate, PartsBar};
use super::{
    Block, Frame, Look, ParagraphStyle, Part, Row, Table, Tone, View, Words, card, columns,
    in_terminal, list, looked_at, meaning, not_done, number, on_page, section, words,
};
use crate::words as say;
use crate::words::{byte_range, count, count_of};

pub(super) fn view(document: &BlindDocument) -> View {
    let sum = |of: fn(&BlindKind) -> u64| {
        let kinds = document.kinds.iter().map(of);
        kinds.fold(0, u64::saturating_add)
    };
    let (hurtful, found) = (sum(|own| own.hurtful), sum(|own| own.hurtful_found));
    let parts = [
        (Fate::Sound, found, "found"),
        (Fate::Bad, hurtful.saturating_sub(found), "missed"),
    ];
    let bar = PartsBar::of(parts, count);
    let (hurtful, found) = (count(hurtful), count(found));
    let time = say::seconds(document.elapsed_s);
    let left = match document.shots_left {
        0 => String::new(),
        left => format!("; {} not fired", say::plural(left, "shot")),
    };
    let extent = format!("found {found} of {hurtful} shots that hurt in {time}{left}");
    let page = DrillPage {
        title: "Blind drill",
        command: "pgclinic drill --blind",
        target: &document.target,
        tool: &document.tool,
        server: &document.server,
        seed: document.seed,
        outcome: outcome(document.interrupted, document.passed),
        extent,
        about: looked_at(&document.target, &document.tool, &[level(document.level)]),
        meaning: meaning::blind(document),
        bar,
    };
    let mut blocks = Vec::new();
    blocks.extend(not_done("Not checked", &document.coverage.not_checked));
    blocks.push(scores(document));
    blocks.extend(misses(&document.misses));
    page.view(blocks)
}

fn scores(document: &BlindDocument) -> Block {
    let columns = columns(
        "Kind | Checksums | Shots > | Found > | That hurt > | Of them found = found > | Rate >",
    );
    let rows = document.kinds.iter().map(|kind| {
        let rate = match kind.hurtful {
            0 => Words::none(),
            hurtful => words(format!("{} %", say::percent(kind.hurtful_found, hurtful))),
        };
        Row::of(vec![
            words(&kind.kind),
            on_off(kind.checksums).into(),
            number(kind.trials),
            number(kind.found),
            number(kind.hurtful),
            number(kind.hurtful_found),
            rate,
        ])
    });
    let table = Block::Table(Table::new(columns, rows));
    Part::new(Frame::PageSection, "Score").of(vec![table])
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn misses(misses: &[BlindTrial]) -> Vec<Block> {
    if misses.is_empty() {
        let words = "Nothing was missed.";
        return vec![on_page(vec![Block::Text(
            ParagraphStyle::Quiet,
            words.into(),
        )])];
    }
    let columns = columns("Kind | Checksums | Hurts | Where | Bytes of the file | Server");
    let rows = misses.iter().map(|miss| {
        let (mark, hurts) = if miss.hurts {
            ("hurts", "yes")
        } else {
            ("harmless", "no")
        };
        let server = miss.server.as_deref().unwrap_or_default();
        Row::of(vec![
            words(&miss.kind),
            on_off(miss.checksums).into(),
            hurts.into(),
            miss.place.to_string().into(),
            Words::default().quiet(byte_range(miss.file_bytes)),
            Words::default().and(Look::Server, server),
        ])
        .marked(mark)
    });
    let page = vec![
        Block::Filter("tbody tr[data-mark]", "all hurts harmless"),
        Block::Table(Table::new(columns, rows)),
    ];
    let about = say::plural(count_of(misses.len()), "shot");
    let terminal = card(Tone::Warn, "Missed").about(about);
    vec![
        on_page(vec![section("Missed").of(page)]),
        in_terminal(vec![terminal.of(list(misses.iter().map(miss_line)))]),
    ]
}

fn miss_line(miss: &BlindTrial) -> Words {
    let hurt = if miss.hurts {
        "hurts"
    } else {
        "changes nothing the server reads"
    };
    let (kind, sums) = (&miss.kind, on_off(miss.checksums));
    let (place, range) = (&miss.place, byte_range(miss.file_bytes));
    let server = miss.server.as_ref().map(|said| format!(": {said}"));
    let server = server.unwrap_or_default();
    words(format!(
        "{kind}, checksums {sums}, {hurt}: {place}; {range} of the file{server}"
    ))
}
