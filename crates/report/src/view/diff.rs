//! Two copies of one cluster against each other: the answer, where each of them stands, then what
//! contradicts, then the rest.

use pgclinic_format::Fork;
use pgclinic_model::document::{
    Copy, CopyPosition, DiffBlock, DiffDocument, DiffFile, DiffFork, Difference, Target,
};

use super::permalinks;
use super::picture::{Fate, PartsBar};
use super::{
    Block, Fold, Look, ParagraphStyle, Row, Style, Table, Tone, Verdict, View, Words, and_more,
    columns, fold, in_terminal, inherent, list, meaning, not_done, on_page, section, target_facts,
    text, words,
};
use crate::diffed;
use crate::words as say;
use crate::words::count_of;

/// Forks that a terminal tells of.
const FORKS_MAX: usize = 50;
/// Forks without a contradiction, each in a line of a terminal.
const EXPLAINED_MAX: usize = 20;
/// Files beside the relations that a terminal tells of.
const FILES_MAX: usize = 50;
/// Blocks of a fork that a terminal tells of.
const BLOCKS_MAX: usize = 10;

pub(super) fn view(document: &DiffDocument) -> View {
    let sides = [
        ("A", &document.a, document.position_a.as_ref()),
        ("B", &document.b, document.position_b.as_ref()),
    ];
    let lines = sides.map(|(name, target, position)| text(side(name, target, position)));
    let mut blocks = vec![Block::Verdict(verdict(document)), in_terminal(lines.into())];
    blocks.extend(diffed::parting(document).map(text));
    blocks.push(on_page(vec![both_sides(document)]));
    blocks.extend(not_done("Not compared", &document.coverage.not_checked));
    let forks = document.forks.iter().filter(|fork| !fork.is_hints_only());
    let forks: Vec<&DiffFork> = forks.collect();
    let (bad, rest): (Vec<_>, Vec<_>) = forks.iter().copied().partition(|fork| fork.contradicts());
    let mut told: Vec<Block> = bad.iter().take(FORKS_MAX).map(|own| fork(own)).collect();
    told.extend(more(bad.len().saturating_sub(FORKS_MAX)));
    blocks.push(in_terminal(told));
    blocks.extend(files(&document.files));
    blocks.push(in_terminal(without_contradiction(&rest)));
    let title = section("Files in which blocks differ");
    let all = forks.iter().map(|own| fork(own));
    blocks.push(on_page(faults_by_fork(&bad)));
    blocks.push(on_page(title.unless_empty(all.collect())));
    blocks.extend(inherent(&document.coverage.not_checked));
    View::new(
        "Two copies",
        "pgclinic diff",
        &format!("{} {}", document.a.spec, document.b.spec),
        &document.tool,
        blocks,
    )
}

fn verdict(document: &DiffDocument) -> Verdict {
    let tone = match document.verdict {
        verdict if diffed::is_bad(verdict) => Tone::Bad,
        verdict if diffed::is_good(verdict) => Tone::Good,
        _ => Tone::Warn,
    };
    Verdict::new(
        tone,
        diffed::word(document.verdict),
        diffed::extent(document),
    )
    .about(format!(
        "A {}; B {}; {}",
        document.a.spec,
        document.b.spec,
        say::run(&document.tool)
    ))
    .meaning(meaning::diff(document))
    .bar(blocks_bar(document))
    .in_lines()
}

/// What became of the blocks of both.
fn blocks_bar(document: &DiffDocument) -> PartsBar {
    let counts = document.counts();
    let contradict = counts.iter().filter(|(way, _)| way.is_contradiction());
    let contradict: u64 = contradict.map(|(_, blocks)| blocks).sum();
    let differ: u64 = counts.iter().map(|(_, blocks)| blocks).sum();
    let parts = [
        (Fate::Sound, document.coverage.blocks_equal, "equal"),
        (Fate::Doubtful, differ - contradict, "differ for a reason"),
        (Fate::Bad, contradict, "contradict the other copy"),
    ];
    PartsBar::of(parts, |number| say::plural(number, "block"))
}

fn side(name: &str, target: &Target, position: Option<&CopyPosition>) -> String {
    let stands = position.map(|own| {
        let more = if own.goes_on_elsewhere {
            ", more lies elsewhere"
        } else {
            ""
        };
        let timeline = own.timeline.map(|own| format!(" on timeline {own}"));
        let timeline = timeline.unwrap_or_default();
        if own.redo == own.end {
            format!("; stands at {}{timeline}", own.end)
        } else {
            format!("; WAL from {} to {}{timeline}{more}", own.redo, own.end)
        }
    });
    let stands = stands.unwrap_or_default();
    format!("{name}  {}: {}{stands}", target.spec, say::target(target))
}

/// What is known of the copies, and how sound they are, side by side.
fn both_sides(document: &DiffDocument) -> Block {
    let (a, b) = (
        side_facts(&document.a, document.position_a.as_ref()),
        side_facts(&document.b, document.position_b.as_ref()),
    );
    let known = a.into_iter().zip(b);
    let known = known.filter(|((_, a), (_, b))| !(a.is_empty() && b.is_empty()));
    let mut rows = vec![Row::of(vec![
        "path".into(),
        Words::default().code(&document.a.spec),
        Words::default().code(&document.b.spec),
    ])];
    let at_fault = |blocks: u64| match blocks {
        0 => Words::default().and(Look::Right, "none known"),
        blocks => Words::default().and(Look::Wrong, say::count(blocks)),
    };
    rows.extend(document.sound.map(|sound| {
        Row::of(vec![
            "blocks at fault".into(),
            at_fault(sound.at_fault_a),
            at_fault(sound.at_fault_b),
        ])
    }));
    rows.extend(known.map(|((name, a), (_, b))| Row::of(vec![name.into(), a, b])));
    let table = Table::new(columns("Of each copy | A | B"), rows);
    section("The two copies").of(vec![Block::Table(table)])
}

fn side_facts(target: &Target, position: Option<&CopyPosition>) -> Vec<(&'static str, Words)> {
    let mut facts = target_facts(target);
    let of = |fact: fn(&CopyPosition) -> String| position.map(fact).unwrap_or_default().into();
    let timeline = |own: &CopyPosition| {
        let timeline = own.timeline.map(|timeline| timeline.to_string());
        timeline.unwrap_or_default()
    };
    facts.extend([
        ("redo point", of(|own| own.redo.clone())),
        ("end of its WAL", of(|own| own.end.clone())),
        ("timeline", of(timeline)),
    ]);
    facts
}

/// Forks that contradict, with the blocks at fault in each copy.
fn faults_by_fork(forks: &[&DiffFork]) -> Vec<Block> {
    let rows = forks.iter().map(|fork| {
        let bad = fork.blocks.iter();
        let bad = bad.filter(|block| block.difference.is_contradiction());
        let (a, rest): (Vec<_>, Vec<_>) = bad.partition(|own| own.copy == Some(Copy::A));
        let (b, unknown): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|own| own.copy == Some(Copy::B));
        let more = if fork.blocks_omitted > 0 { "+" } else { "" };
        let number = |blocks: &[&DiffBlock]| match blocks.len() {
            0 => Words::default(),
            len => words(format!("{}{more}", say::count(count_of(len)))),
        };
        let link = Look::Link(format!("#{}", place_of(fork)));
        Row::of(vec![
            Words::default().and(link, fork.title()),
            number(&a),
            number(&b),
            number(&unknown),
        ])
    });
    let columns = columns("Relation | At fault in A > | At fault in B > | Not known >");
    let table = Table::new(columns, rows).style(Style::Board);
    section("Where they contradict").unless_empty(table.unless_empty())
}

/// Where a page tells of a fork.
fn place_of(fork: &DiffFork) -> String {
    let relation = permalinks::of_relation(
        fork.database.as_deref(),
        fork.schema.as_deref(),
        fork.relation.as_deref(),
        &fork.path,
    );
    match fork.fork {
        Fork::Main => relation,
        other => format!("{relation}/{}", other.name()),
    }
}

/// Relation maps and files with the status of transactions.
fn files(files: &[DiffFile]) -> Vec<Block> {
    let rows = files.iter().map(|own| {
        Row::of(vec![
            words(&own.path),
            diffed::file(own).into(),
            words(&own.why),
        ])
    });
    let columns = columns("File | Difference | Why");
    let table = Table::new(columns, rows).style(Style::Board);
    let table = table.short(FILES_MAX, in_json);
    section("Files beside the relations").unless_empty(table.unless_empty())
}

fn in_json(more: u64) -> String {
    format!("{}; --format json has all of them", and_more(more))
}

fn more(number: usize) -> Vec<Block> {
    match count_of(number) {
        0 => Vec::new(),
        number => vec![text(in_json(number))],
    }
}

/// Forks that differ for a reason, a line each.
fn without_contradiction(forks: &[&DiffFork]) -> Vec<Block> {
    let is = |way| move |fork: &&DiffFork| fork.has(way);
    let (parted, rest): (Vec<_>, Vec<_>) = forks.iter().copied().partition(is(Difference::Parted));
    let (undecided, explained): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(is(Difference::Undecided));
    let kinds = [
        ("Changed after they parted", parted),
        ("Nothing tells whether WAL explains it", undecided),
        ("Explained by the WAL", explained),
    ];
    let sections = kinds.into_iter().flat_map(|(title, forks)| {
        let shown = forks.iter().take(EXPLAINED_MAX);
        let lines = shown.map(|fork| text(format!("{}: {}", fork.title(), diffed::ways(fork))));
        let mut lines: Vec<Block> = lines.collect();
        lines.extend(more(forks.len().saturating_sub(EXPLAINED_MAX)));
        section(title).unless_empty(lines)
    });
    sections.collect()
}

fn fork(fork: &DiffFork) -> Block {
    let is_open = fork.contradicts() || fork.has(Difference::Parted);
    let told = list(runs_of(fork).take(BLOCKS_MAX).map(|run| block_line(&run)));
    let columns = columns("Block > | Difference | Copy | LSN in A | LSN in B | Why");
    let table = Table::new(columns, fork.blocks.iter().map(block_row));
    let mut page = table.unless_empty();
    if fork.blocks_omitted > 0 {
        page.push(text(and_more(fork.blocks_omitted)));
    }
    let name = Words::default().strong(fork.title());
    self::fold(Fold::Item, is_open, name)
        .id(place_of(fork))
        .about(diffed::ways(fork))
        .of(vec![
            Block::Text(ParagraphStyle::Quiet, diffed::about(fork).into()),
            in_terminal(told),
            on_page(page),
        ])
}

/// Contradicting blocks; neighbours that contradict alike are one.
fn runs_of(fork: &DiffFork) -> impl Iterator<Item = Vec<&DiffBlock>> {
    let bad = fork.blocks.iter();
    let bad = bad.filter(|block| block.difference.is_contradiction());
    let mut runs: Vec<Vec<&DiffBlock>> = Vec::new();
    for block in bad {
        let run = runs.last_mut().filter(|run| {
            run.last().is_some_and(|last| {
                let is_next = last.block.checked_add(1) == Some(block.block);
                let how = |own: &DiffBlock| (own.difference, own.copy);
                is_next && how(last) == how(block) && last.why == block.why
            })
        });
        match run {
            Some(run) => run.push(block),
            None => runs.push(vec![block]),
        }
    }
    runs.into_iter()
}

fn block_line(run: &[&DiffBlock]) -> Words {
    let (Some(own), Some(last)) = (run.first(), run.last()) else {
        return Words::default();
    };
    let at_fault = match own.copy {
        Some(copy) => format!(" in {}", copy_name(copy)),
        None => String::new(),
    };
    let (blocks, lsns) = if run.len() == 1 {
        (format!("block {}", own.block), diffed::lsns(own))
    } else {
        (
            format!("blocks {}-{}", own.block, last.block),
            String::new(),
        )
    };
    words(format!("{blocks}  "))
        .and(Look::Wrong, own.difference.name())
        .plain(format!("{at_fault}{lsns}: {}", own.why))
}

fn block_row(own: &DiffBlock) -> Row {
    Row::of(vec![
        own.block.to_string().into(),
        own.difference.name().into(),
        own.copy.map_or("", copy_name).into(),
        own.lsn_a.as_deref().unwrap_or_default().into(),
        own.lsn_b.as_deref().unwrap_or_default().into(),
        words(&own.why),
    ])
}

fn copy_name(copy: Copy) -> &'static str {
    match copy {
        Copy::A => "A",
        Copy::B => "B",
    }
}
