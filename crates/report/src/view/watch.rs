//! Live signs of running servers.

use std::collections::BTreeSet;

use pgclinic_model::document::{
    AlertDelivery, SettingAdvice, SignKind, SignState, WatchDocument, WatchedSign, WatchedTarget,
};

use super::{
    Block, Fold, Frame, Look, Part, Row, Table, Tone, Verdict, View, Words, and_more, card,
    columns, entries, fold, in_terminal, meaning, on_page, reasons_of, section, text, words,
};
use crate::Options;
use crate::watched::{extent, figure, headline, reasons, standing_out, state};
use crate::words as say;
use crate::words::count_of;

/// Values of a sign in a table of the page.
const VALUES_SHOWN: usize = 50;
/// The same of one of many servers: all of them together stay readable on a phone.
const VALUES_OF_MANY: usize = 10;
/// More servers than this are many.
const FEW_SERVERS: usize = 5;

/// How many there are on a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Servers {
    /// Each sign has its meaning beside it.
    Few,
    /// Each sign leads to its meaning, which stands on the page once.
    Many,
}

impl Servers {
    /// Values of a sign in a table, at most.
    fn values(self) -> usize {
        match self {
            Servers::Few => VALUES_SHOWN,
            Servers::Many => VALUES_OF_MANY,
        }
    }
}

pub(super) fn view(document: &WatchDocument, options: &Options<'_>) -> View {
    let own = document.state();
    let verdict = Verdict::new(tone(own), state(own), extent(document))
        .about(about(document))
        .meaning(meaning::watch(document))
        .in_lines();
    let mut blocks = vec![Block::Verdict(verdict)];
    blocks.extend(deliveries(&document.deliveries));
    let is_one = document.targets.len() == 1;
    let servers = if document.targets.len() > FEW_SERVERS {
        Servers::Many
    } else {
        Servers::Few
    };
    for target in &document.targets {
        let own = of_target(target, servers);
        if is_one {
            blocks.extend(own);
        } else {
            let title = Words::default().strong(&target.target.spec);
            blocks.push(section(title).about(state(target.state)).of(own));
        }
    }
    if servers == Servers::Many {
        blocks.push(meanings(&document.targets));
    }
    let subject = match document.targets.as_slice() {
        [only] => only.target.spec.clone(),
        all => say::plural(count_of(all.len()), "server"),
    };
    let mut view = View::new(
        "Live signs",
        "pgclinic watch",
        &subject,
        &document.tool,
        blocks,
    );
    view.refresh_s = options.refresh_s;
    view
}

/// Alerts that reached nobody.
fn deliveries(deliveries: &[AlertDelivery]) -> Vec<Block> {
    let failed = deliveries.iter().filter(|own| own.undelivered > 0);
    let rows = failed.map(|own| {
        let why = own.last_failure.as_deref().unwrap_or_default();
        let what = format!(
            "{} of {} did not reach it: {why}",
            say::plural(own.undelivered, "alert"),
            say::count(own.undelivered + own.delivered)
        );
        (words(&own.receiver), words(what))
    });
    card(Tone::Warn, "Alerts that were not delivered").unless_empty(reasons_of(rows))
}

fn tone(state: SignState) -> Tone {
    match state {
        SignState::Ok => Tone::Good,
        SignState::NotAvailable => Tone::Plain,
        SignState::Warning | SignState::Unknown => Tone::Warn,
        SignState::Critical => Tone::Bad,
    }
}

fn about(document: &WatchDocument) -> Words {
    let run = say::run(&document.tool);
    let time = say::seconds(document.elapsed_s);
    let own = format!("watched for {time}; {run}");
    match document.targets.as_slice() {
        [only] => {
            let server = server(only);
            let spec = format!("{}: ", only.target.spec);
            Words::default()
                .in_terminal(spec)
                .plain(format!("{server}; {own}"))
        }
        _ => own.into(),
    }
}

/// `PostgreSQL 18.6, data checksums on, running`.
fn server(target: &WatchedTarget) -> String {
    let Some(version) = &target.server_version else {
        return "a server that was never reached".to_owned();
    };
    let mut parts = vec![format!("PostgreSQL {version}")];
    let checksums = target.target.checksums;
    parts.extend(checksums.map(|on| format!("data checksums {}", if on { "on" } else { "off" })));
    let standby = target.is_standby == Some(true);
    parts.push(if standby { "standby" } else { "primary" }.to_owned());
    parts.join(", ")
}

fn of_target(target: &WatchedTarget, servers: Servers) -> Vec<Block> {
    if let Some(why) = &target.unreachable {
        let title = card(Tone::Bad, "It gives no answer");
        return vec![title.of(vec![text(why)])];
    }
    let mut blocks = Vec::new();
    blocks.extend(card(Tone::Plain, "What stands out").unless_empty(stand_out(target)));
    blocks.extend(damaged_pages(target));
    blocks.extend(logged(target));
    let all = all_signs(target, servers);
    match servers {
        Servers::Few => blocks.extend(all),
        // A screen for each of fifty servers is no glance.
        Servers::Many => blocks.push(fold(Fold::Plain, false, "All signs").of(all)),
    }
    blocks
}

/// Family by family, with the settings and what cannot be read.
fn all_signs(target: &WatchedTarget, servers: Servers) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut signs = target.signs.as_slice();
    while let Some(first) = signs.first() {
        let end = signs.iter().position(|own| own.family != first.family);
        let (own, rest) = signs.split_at(end.unwrap_or(signs.len()));
        blocks.extend(family(own, servers));
        signs = rest;
    }
    blocks.extend(advice(&target.advice));
    blocks.extend(missing(target));
    blocks
}

fn stand_out(target: &WatchedTarget) -> Vec<Block> {
    let own = standing_out(&target.signs).into_iter().map(|own| {
        let look = match own.state {
            SignState::Critical => Look::Wrong,
            SignState::Warning | SignState::Unknown => Look::State,
            SignState::Ok | SignState::NotAvailable => Look::Quiet,
        };
        let why = own.finding.as_deref().unwrap_or_default();
        let what = Words::default()
            .and(look, state(own.state))
            .plain(format!(" {why}"));
        (words(&own.name), what)
    });
    reasons_of(own)
}

fn family(signs: &[WatchedSign], servers: Servers) -> Vec<Block> {
    let title = signs.first().map_or("", |own| own.family.as_str());
    let available = signs.iter().filter(|own| own.not_available.is_none());
    let rows = available.clone().map(|own| {
        Row::of(vec![
            words(&own.name),
            words(headline(own)),
            words(&own.summary),
        ])
        .fault(own.state == SignState::Critical)
    });
    let table = Table::new(columns("Sign | Now > | What it is"), rows).unless_empty();
    let folds = available.map(|own| sign(own, servers)).collect();
    let blocks = vec![in_terminal(table), on_page(folds)];
    if signs.iter().all(|own| own.not_available.is_some()) {
        return Vec::new();
    }
    vec![section(title_of(title)).id(title.to_owned()).of(blocks)]
}

/// `asynchronous-io` as a title.
fn title_of(family: &str) -> String {
    let words = family.replace('-', " ");
    let words = words.replace("wal", "WAL").replace(" io", " I/O");
    let words = if words == "io" {
        "I/O".to_owned()
    } else {
        words
    };
    let mut letters = words.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// A sign on the page: figure and line in sight, its meaning one click away.
fn sign(own: &WatchedSign, servers: Servers) -> Block {
    let mut title = Words::default()
        .strong(&own.name)
        .plain(format!(" {} ", headline(own)));
    let changed = own
        .history
        .windows(2)
        .any(|pair| pair.first() != pair.last());
    if changed {
        title = title.and(
            Look::Spark(own.history.clone()),
            format!("the last {} samples", own.history.len()),
        );
    }
    if own.state > SignState::Ok {
        title = title.and(Look::Tag(tone(own.state)), state(own.state));
    }
    if servers == Servers::Many {
        let place = format!("#{}", place_of_meaning(own));
        title = title.plain(" ").and(Look::Link(place), "meaning");
    }
    let mut blocks = vec![text(own.finding.as_deref().unwrap_or(&own.summary))];
    blocks.extend(values(own, servers.values()));
    blocks.extend(
        own.no_rates
            .as_ref()
            .map(|why| text(format!("no rates: {why}"))),
    );
    if servers == Servers::Few {
        blocks.extend(meaning_of(own));
    }
    let kind = if own.state == SignState::Critical {
        Fold::Fault
    } else {
        Fold::Item
    };
    fold(kind, false, title).of(blocks)
}

fn meaning_of(own: &WatchedSign) -> Vec<Block> {
    entries(
        12,
        [
            ("what", words(&own.summary)),
            ("normal", words(&own.normal)),
            ("meaning", words(&own.meaning)),
            ("settled by", words(&own.settled_by)),
            ("metric", Words::default().code(&own.metric)),
        ],
    )
}

fn place_of_meaning(own: &WatchedSign) -> String {
    format!("meaning-{}", own.name)
}

/// What each sign means, once for all servers.
fn meanings(targets: &[WatchedTarget]) -> Block {
    let mut seen = BTreeSet::new();
    let signs = targets.iter().flat_map(|own| &own.signs);
    let once = signs.filter(|own| own.not_available.is_none() && seen.insert(&own.name));
    let folds = once.map(|own| {
        let title = Words::default().strong(&own.name);
        let place = place_of_meaning(own);
        fold(Fold::Item, false, title).id(place).of(meaning_of(own))
    });
    let all = section("What the signs mean").id("meanings");
    on_page(vec![all.of(folds.collect())])
}

fn values(own: &WatchedSign, most: usize) -> Vec<Block> {
    let has_labels = own.values.iter().any(|value| !value.labels.is_empty());
    if !has_labels {
        return Vec::new();
    }
    let mut sorted: Vec<_> = own.values.iter().collect();
    let size =
        |value: &&pgclinic_model::document::SignValue| value.per_second.unwrap_or(value.value);
    sorted.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let rows = sorted.into_iter().take(most).map(|value| {
        let labels: Vec<&str> = value.labels.values().map(String::as_str).collect();
        let total = figure(value.value, own.unit, SignKind::Gauge);
        let rate = value
            .per_second
            .map(|rate| figure(rate, own.unit, own.kind));
        let growth = value
            .growth
            .map(|own_growth| figure(own_growth, own.unit, SignKind::Gauge));
        Row::of(vec![
            words(labels.join(" · ")),
            words(total),
            growth.map(words).unwrap_or_default(),
            rate.map(words).unwrap_or_default(),
        ])
    });
    let names = own
        .values
        .first()
        .map(|value| value.labels.keys().cloned().collect::<Vec<_>>());
    let mut columns = columns("Of | Value > | Growth > | A second >");
    if let (Some(first), Some(names)) = (columns.first_mut(), names) {
        first.title = names.join(" · ");
    }
    let mut blocks = Table::new(columns, rows).unless_empty();
    let omitted = own.values.len().saturating_sub(most);
    let omitted = count_of(omitted).saturating_add(own.values_omitted);
    blocks.extend((omitted > 0).then(|| text(and_more(omitted))));
    blocks
}

/// Each page with the command that shows its rows.
fn damaged_pages(target: &WatchedTarget) -> Vec<Block> {
    let pages = target.damaged_pages.iter().flat_map(|own| {
        let what = Words::default()
            .strong(own.place.to_string())
            .plain(format!(": {} (", own.message))
            .code(&own.rule)
            .plain(")");
        let command = own.command.as_ref();
        std::iter::once(text(what)).chain(command.map(|own| Block::Command(own.clone())))
    });
    let omitted = target.damaged_pages_omitted;
    let more = (omitted > 0).then(|| text(and_more(omitted)));
    let blocks = pages.chain(more).collect();
    section("Damaged pages, by the last complete scrub").unless_empty(blocks)
}

/// Each kind of message once, with where it was seen last, and what explains it.
fn logged(target: &WatchedTarget) -> Vec<Block> {
    let kinds = target.logged.iter().flat_map(|own| {
        let place = match (&own.path, own.block) {
            (Some(path), Some(block)) => format!(", last {path}, block {block}"),
            (Some(path), None) => format!(", last {path}"),
            _ => String::new(),
        };
        let time = own.last_time.as_ref();
        let time = time.map_or(String::new(), |time| format!(", {time}"));
        let before = match own.before {
            0 => String::new(),
            before => format!(", {} before", say::count(before)),
        };
        let look = if own.is_damage {
            Look::Wrong
        } else {
            Look::Quiet
        };
        let unverified = if own.is_damage && !own.by_sqlstate {
            "; reported in the log, not verified"
        } else {
            ""
        };
        let count = say::count(own.count);
        let head = Words::default()
            .and(look, &own.message)
            .plain(format!(": {count}{before}{place}{time}{unverified}"));
        let meaning = text(own.meaning.as_str());
        [
            text(head),
            text(own.example.as_str()),
            meaning,
            Block::Command(own.command.clone()),
        ]
    });
    section("Messages about storage in the server's log").unless_empty(kinds.collect())
}

fn advice(advice: &[SettingAdvice]) -> Vec<Block> {
    let rows = advice.iter().map(|own| {
        let what = format!("{} {}", own.setting, own.value);
        let advised = if own.advice.is_empty() {
            String::new()
        } else {
            format!("advised: {}; ", own.advice)
        };
        let settled = format!(" ({})", own.settled_by);
        (
            words(what),
            words(format!("{advised}{}", own.reason)).quiet(settled),
        )
    });
    section("Settings that differ from what is advised").unless_empty(reasons_of(rows))
}

fn missing(target: &WatchedTarget) -> Vec<Block> {
    let own = reasons(&target.signs).into_iter();
    let own = own.map(|(names, why)| (words(names.join(", ")), words(why)));
    Part::new(Frame::Section, "Not available").unless_empty(reasons_of(own))
}
