//! A document as plain values: what is said, in order, without a tag or a column of a terminal.
//!
//! Each document has one function that makes its [`View`], in a file of its name; the printers
//! `formats::text` and `formats::html` print any of them. Where a page and a terminal rightly say
//! different amounts, blocks, columns and spans are marked with their [`Medium`]. Values hold
//! names and messages as the document has them, also hostile ones: the printers escape
//! everything, so that no document can forget to.

mod alike;
mod blind_drill;
mod catalog_cost;
mod check;
mod checksums;
mod diff;
mod drill;
mod experiment;
mod figures;
mod finding;
mod heal;
mod inspect;
mod loss_drill;
mod meaning;
mod measure;
mod next;
pub(crate) mod permalinks;
pub(crate) mod picture;
mod plan;
mod rehearsal;
mod relation_names;
mod salvage;
mod space;
mod start_drill;
mod table;
mod watch;
mod words;

pub(crate) use meaning::Meaning;
pub(crate) use next::{Next, inspect as inspect_command};
pub(crate) use table::{Column, Row, Style, Table, columns, left, right};
pub(crate) use words::{Look, Medium, Span, Words, number, words};

use std::collections::{BTreeSet, HashMap};

use pgclinic_model::document::{HexRange, NotChecked, Target, Tool};

use crate::words as say;
use crate::{Document, Options, RuleText, neighbours};
use picture::{PartsBar, Picture};

/// Of what was not done for one reason, a terminal names so many.
const ALIKE_NAMED: usize = 3;

/// A whole document.
pub(crate) struct View {
    /// What the browser's window is called.
    pub(crate) title: String,
    /// What was run: `pgclinic check`.
    pub(crate) command: String,
    /// What it was run on.
    pub(crate) subject: String,
    /// Who wrote the document.
    pub(crate) tool: Tool,
    /// What it says.
    pub(crate) blocks: Vec<Block>,
    /// Seconds after which a page that is served has something new.
    pub(crate) refresh_s: Option<u32>,
}

/// One thing that is said.
pub(crate) enum Block {
    /// The answer to the whole.
    Verdict(Verdict),
    /// A paragraph.
    Text(ParagraphStyle, Words),
    /// Something with a title over it.
    Part(Part),
    /// Short facts that stand side by side; those without words are left out.
    Facts(Vec<(&'static str, Words)>),
    /// Labels and words beside them.
    Entries(Entries),
    /// What, and why.
    Reasons(Vec<(Words, Words)>),
    /// Things of one kind.
    List(List),
    /// What to do, in its order.
    Steps(Steps),
    /// Rows and columns.
    Table(Table),
    /// To be copied, so never wrapped in a terminal.
    Command(String),
    /// The manual of these rules, by name.
    Rules(Vec<(String, Option<RuleText>)>),
    /// The bytes of a page.
    Dump(Dump),
    /// A drawing; a terminal leaves it out.
    Picture(Picture),
    /// A field that picks from what the selector finds, and buttons for its marks; on the page.
    /// Long tables have a field without it.
    Filter(&'static str, &'static str),
    /// Blocks of one medium.
    Only(Medium, Vec<Block>),
}

/// How words or a thing are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tone {
    /// Health, success.
    Good,
    /// Doubt, what was not done.
    Warn,
    /// Damage, failure.
    Bad,
    /// None of them.
    Plain,
}

/// How a paragraph speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ParagraphStyle {
    /// As any text.
    Plain,
    /// An aside.
    Quiet,
    /// Not to be overlooked.
    Loud,
    /// What a finding says.
    Message,
}

/// The answer to the whole: one line of a terminal, the banner of a page.
pub(crate) struct Verdict {
    /// Its colour.
    pub(crate) tone: Tone,
    /// `DAMAGED`.
    pub(crate) word: String,
    /// `needs recovery, interrupted`: what stands beside the word.
    pub(crate) beside: String,
    /// `3 relations, 7 pages`.
    pub(crate) extent: Words,
    /// Further sentences.
    pub(crate) more: Vec<Words>,
    /// What was looked at, when, where and by what.
    pub(crate) about: Words,
    /// What it means, and what to type next.
    pub(crate) meaning: Meaning,
    /// What became of the parts of the whole.
    pub(crate) bar: Option<PartsBar>,
    /// How a terminal writes it.
    pub(crate) line: Line,
}

/// How a terminal writes a verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    /// In one line however long it is, for scripts that read the first one; wrapped on a screen.
    Whole,
    /// In as many lines as it takes.
    Wrapped,
}

/// Something with a title over it.
pub(crate) struct Part {
    /// What it looks like.
    pub(crate) frame: Frame,
    /// Target of links; empty where nothing leads to it.
    pub(crate) id: String,
    /// Its name.
    pub(crate) title: Words,
    /// What stands beside or under the title.
    pub(crate) about: Words,
    /// What it holds.
    pub(crate) blocks: Vec<Block>,
}

/// What a part looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    /// A heading, which the head of a page leads to.
    Section,
    /// The same, and the terminal leaves it out.
    PageSection,
    /// A heading that the filter of a page picks by.
    Relation,
    /// A box; the terminal writes its title in capitals.
    Card(Tone),
    /// A box for one finding or decision; the class says its colour.
    Finding(&'static str),
    /// On a page it opens on a click.
    Fold(Fold, FoldState),
}

/// What a fold holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fold {
    /// One thing of many.
    Item,
    /// One thing of many, and something is wrong with it.
    Fault,
    /// An aside in a box.
    Card,
    /// More of what stands above it.
    More,
    /// What belongs to the line above it.
    Plain,
    /// The bytes of a page.
    Page,
}

/// How a fold stands at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FoldState {
    /// What it holds is seen.
    Yes,
    /// It waits for a click.
    No,
}

/// Labels and words beside them.
pub(crate) struct Entries {
    /// Where the words begin in a terminal, after the indent.
    pub(crate) column: usize,
    /// The entries.
    pub(crate) rows: Vec<(String, Words)>,
}

/// Things of one kind.
pub(crate) struct List {
    /// The things.
    pub(crate) items: Vec<Words>,
    /// So many stand in a terminal, and what it says of the others.
    pub(crate) terminal: Option<(usize, String)>,
}

/// What to do.
pub(crate) struct Steps {
    /// Over them, on the page.
    pub(crate) title: &'static str,
    /// Where the words begin in a terminal, after the indent.
    pub(crate) column: usize,
    /// The steps.
    pub(crate) steps: Vec<Step>,
}

/// One thing to do.
pub(crate) struct Step {
    /// In a terminal: `1.`, `to do`, `or`; a page numbers them.
    pub(crate) label: String,
    /// What it is.
    pub(crate) words: Words,
    /// More of it, and its commands.
    pub(crate) blocks: Vec<Block>,
}

/// The bytes of a page.
pub(crate) struct Dump {
    /// The bytes.
    pub(crate) page: Vec<u8>,
    /// What they are.
    pub(crate) ranges: Vec<HexRange>,
    /// What is wrong with them: half-open offsets on the page, and the words.
    pub(crate) marks: Vec<(std::ops::Range<usize>, String)>,
}

impl View {
    /// The view of what `command` did with `subject`.
    pub(crate) fn new(
        title: impl Into<String>,
        command: impl Into<String>,
        subject: &str,
        tool: &Tool,
        blocks: Vec<Block>,
    ) -> Self {
        View {
            title: title.into(),
            command: command.into(),
            subject: subject.to_owned(),
            tool: tool.clone(),
            blocks,
            refresh_s: None,
        }
    }
}

impl Verdict {
    /// A verdict in one line.
    pub(crate) fn new(tone: Tone, word: impl Into<String>, extent: impl Into<Words>) -> Self {
        Verdict {
            tone,
            word: word.into(),
            beside: String::new(),
            extent: extent.into(),
            more: Vec::new(),
            about: Words::default(),
            meaning: Meaning::default(),
            bar: None,
            line: Line::Whole,
        }
    }

    /// With something beside its word.
    pub(crate) fn beside(mut self, beside: impl Into<String>) -> Self {
        self.beside = beside.into();
        self
    }

    /// With further sentences.
    pub(crate) fn more(mut self, more: Vec<Words>) -> Self {
        self.more = more;
        self
    }

    /// With what was looked at, when, where and by what.
    pub(crate) fn about(mut self, about: impl Into<Words>) -> Self {
        self.about = about.into();
        self
    }

    /// With what it means.
    pub(crate) fn meaning(mut self, meaning: Meaning) -> Self {
        self.meaning = meaning;
        self
    }

    /// With what became of the parts of the whole.
    pub(crate) fn bar(mut self, bar: PartsBar) -> Self {
        self.bar = Some(bar);
        self
    }

    /// In as many lines as it takes.
    pub(crate) fn in_lines(mut self) -> Self {
        self.line = Line::Wrapped;
        self
    }
}

impl Part {
    /// A part of nothing yet.
    pub(crate) fn new(frame: Frame, title: impl Into<Words>) -> Self {
        Part {
            frame,
            id: String::new(),
            title: title.into(),
            about: Words::default(),
            blocks: Vec::new(),
        }
    }

    /// With words beside its title.
    pub(crate) fn about(mut self, about: impl Into<Words>) -> Self {
        self.about = about.into();
        self
    }

    /// As the target of links.
    pub(crate) fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Closed up with what it holds.
    pub(crate) fn of(mut self, blocks: Vec<Block>) -> Block {
        self.blocks = blocks;
        Block::Part(self)
    }

    /// Closed up, unless it would hold nothing.
    pub(crate) fn unless_empty(self, blocks: Vec<Block>) -> Vec<Block> {
        if blocks.is_empty() {
            Vec::new()
        } else {
            vec![self.of(blocks)]
        }
    }
}

/// A section.
pub(crate) fn section(title: impl Into<Words>) -> Part {
    Part::new(Frame::Section, title)
}

/// A box of a tone.
pub(crate) fn card(tone: Tone, title: impl Into<Words>) -> Part {
    Part::new(Frame::Card(tone), title)
}

/// A fold that is open where something speaks for it.
pub(crate) fn fold(kind: Fold, open: bool, title: impl Into<Words>) -> Part {
    let opened = if open { FoldState::Yes } else { FoldState::No };
    Part::new(Frame::Fold(kind, opened), title)
}

/// A paragraph.
pub(crate) fn text(text: impl Into<Words>) -> Block {
    Block::Text(ParagraphStyle::Plain, text.into())
}

/// Blocks that a terminal leaves out.
pub(crate) fn on_page(blocks: Vec<Block>) -> Block {
    Block::Only(Medium::Page, blocks)
}

/// Blocks that a page leaves out.
pub(crate) fn in_terminal(blocks: Vec<Block>) -> Block {
    Block::Only(Medium::Terminal, blocks)
}

/// Labels and words beside them, which begin at a column of a terminal.
pub(crate) fn entries<L: Into<String>>(
    column: usize,
    rows: impl IntoIterator<Item = (L, Words)>,
) -> Vec<Block> {
    let rows = rows.into_iter();
    let rows: Vec<_> = rows.map(|(label, words)| (label.into(), words)).collect();
    if rows.is_empty() {
        Vec::new()
    } else {
        vec![Block::Entries(Entries { column, rows })]
    }
}

/// All things, in every medium.
pub(crate) fn list(items: impl IntoIterator<Item = Words>) -> Vec<Block> {
    list_of(items.into_iter().collect(), None)
}

/// All things on a page, the first of them in a terminal; `rest` is what it says of the others.
pub(crate) fn short_list(
    items: impl IntoIterator<Item = Words>,
    limit: usize,
    rest: impl Fn(u64) -> String,
) -> Vec<Block> {
    let items: Vec<Words> = items.into_iter().collect();
    let more = items.len().saturating_sub(limit);
    let terminal = (more > 0).then(|| (limit, rest(say::count_of(more))));
    list_of(items, terminal)
}

fn list_of(items: Vec<Words>, terminal: Option<(usize, String)>) -> Vec<Block> {
    if items.is_empty() {
        Vec::new()
    } else {
        vec![Block::List(List { items, terminal })]
    }
}

/// `and 12 more`.
pub(crate) fn and_more(more: u64) -> String {
    format!("and {} more", say::count(more))
}

/// What, and why, of things that were not done.
pub(crate) fn reasons<'a>(entries: impl IntoIterator<Item = &'a NotChecked>) -> Vec<Block> {
    let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for entry in entries {
        let (what, why) = of_one_reason(entry);
        let place = *places.entry(why).or_insert(by_reason.len());
        match by_reason.get_mut(place) {
            Some((_, all)) => all.push(what),
            None => by_reason.push((why, vec![what])),
        }
    }
    let by_reason = by_reason.iter().map(|(why, all)| {
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        (alike_words(&all), words(*why))
    });
    reasons_of(by_reason)
}

/// What and why; a column belongs to what, so that one reason of many columns is said once.
fn of_one_reason(entry: &NotChecked) -> (String, &str) {
    let column = entry.why.strip_prefix("column ");
    match column.and_then(|own| own.split_once(": ")) {
        Some((name, why)) if !name.contains(' ') => {
            (format!("{} (column {name})", entry.what), why)
        }
        _ => (entry.what.clone(), &entry.why),
    }
}

/// `the order of keys of a, b, c and 12 more`: what they begin with is said once.
fn alike_words(all: &[&str]) -> Words {
    let Some((first, rest)) = all.split_first() else {
        return Words::default();
    };
    let shared = rest.iter().fold(first.len(), |shared, other| {
        let same = first.bytes().zip(other.bytes());
        same.take(shared).take_while(|(a, b)| a == b).count()
    });
    // Only whole words are shared, which no letter of several bytes ends.
    let shared = match first.get(..shared).and_then(|own| own.rfind(' ')) {
        Some(blank) if !rest.is_empty() => blank + 1,
        _ => 0,
    };
    let ends = |of: &[&str]| {
        let ends = of.iter().enumerate().map(|(at, own)| match at {
            0 => *own,
            _ => own.get(shared..).unwrap_or(own),
        });
        ends.collect::<Vec<_>>().join(", ")
    };
    match all.split_at_checked(ALIKE_NAMED) {
        Some((named, more)) if !more.is_empty() => Words::default()
            .in_terminal(format!(
                "{} {}",
                ends(named),
                and_more(say::count_of(more.len()))
            ))
            .on_page(ends(all)),
        _ => words(ends(all)),
    }
}

/// The same of anything else.
pub(crate) fn reasons_of(reasons: impl Iterator<Item = (Words, Words)>) -> Vec<Block> {
    let reasons: Vec<_> = reasons.collect();
    if reasons.is_empty() {
        Vec::new()
    } else {
        vec![Block::Reasons(reasons)]
    }
}

/// What could have been looked at and was not, as loud as what is wrong, under this title.
pub(crate) fn not_done(title: &'static str, entries: &[NotChecked]) -> Vec<Block> {
    let ours = entries.iter().filter(|entry| !entry.inherent);
    card(Tone::Warn, title).unless_empty(reasons(ours))
}

/// What nobody could have looked at.
pub(crate) fn inherent(entries: &[NotChecked]) -> Vec<Block> {
    let inherent = entries.iter().filter(|entry| entry.inherent);
    let title = fold(
        Fold::Card,
        false,
        "What no reader of files can decide (it does not change the verdict)",
    );
    title.unless_empty(reasons(inherent))
}

/// What was looked at, when, where and by what: the line under a verdict. The name of the target
/// stands over a page.
pub(crate) fn looked_at(target: &Target, tool: &Tool, more: &[String]) -> Words {
    let mut parts = vec![say::target(target)];
    parts.extend_from_slice(more);
    parts.push(say::run(tool));
    let spec = format!("{}: ", target.spec);
    Words::default().in_terminal(spec).plain(parts.join("; "))
}

/// What is known of the target, for the page; a terminal has it in a line.
pub(crate) fn target_facts(target: &Target) -> Vec<(&'static str, Words)> {
    let unknown = || "unknown".to_owned();
    let checksums = target.checksums.map(|on| if on { "on" } else { "off" });
    let major = target.major.map(|major| major.to_string());
    let size = target.block_size.map(|size| say::bytes(size.into()));
    vec![
        ("target", target.kind.replace('-', " ").into()),
        ("PostgreSQL", major.unwrap_or_else(unknown).into()),
        ("state", target.state.clone().unwrap_or_default().into()),
        ("data checksums", checksums.unwrap_or("unknown").into()),
        ("block size", size.unwrap_or_else(unknown).into()),
        (
            "system identifier",
            target.system_identifier.clone().unwrap_or_default().into(),
        ),
    ]
}

/// The manual of every rule that is named.
pub(crate) fn rules<'a>(names: impl Iterator<Item = &'a str>, options: &Options<'_>) -> Block {
    let names: BTreeSet<&str> = names.collect();
    let names = names.into_iter();
    Block::Rules(
        names
            .map(|name| (name.to_owned(), (options.explain)(name)))
            .collect(),
    )
}

/// The view of a document.
pub(crate) fn of(document: &Document, options: &Options<'_>) -> View {
    let mut view = without_places(document, options);
    let beside = neighbours::links(&view, options.neighbours);
    view.blocks.extend(beside);
    permalinks::give(&mut view.blocks);
    view
}

fn without_places(document: &Document, options: &Options<'_>) -> View {
    match document {
        Document::Check(document) => {
            let mut view = check::view(document, options);
            if let Some(measured) = &document.measured {
                let title = section("Measured from the same files");
                view.blocks
                    .push(title.of(measure::view(measured, options).blocks));
            }
            view
        }
        Document::Inspect(document) => inspect::view(document, options),
        Document::Drill(document) => drill::view(document, options),
        Document::Blind(document) => blind_drill::view(document),
        Document::Loss(document) => loss_drill::view(document),
        Document::StartDrill(document) => start_drill::view(document),
        Document::Rehearsal(document) => rehearsal::view(document, options),
        Document::Measure(document) => measure::view(document, options),
        Document::CatalogCost(document) => catalog_cost::view(document),
        Document::Diff(document) => diff::view(document),
        Document::Checksums(document) => checksums::view(document),
        Document::Salvage(account) => salvage::view(account),
        Document::Heal(document) => heal::view(document),
        Document::Experiment(document) => experiment::view(document),
        Document::Watch(document) => watch::view(document, options),
    }
}

#[cfg(test)]
mod tests;
