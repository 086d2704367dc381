//! What a check found: the answer, what was not checked, then relation by relation, the worst
//! first.

use std::collections::{BTreeSet, HashMap};

use pgclinic_format::Fork;
use pgclinic_model::Severity;
use pgclinic_model::document::{
    CheckDocument, Coverage, Evidence, FileKind, Finding, Place, Verdict as Answer,
};

use super::picture::{Fate, ForkMap, HurtBytes, PartsBar, Picture};
use super::{
    Block, Dump, Fold, Frame, Look, Meaning, ParagraphStyle, Part, Row, Table, Tone, Verdict, View,
    Words, card, columns, fold, in_terminal, inherent, looked_at, number, on_page, reasons,
    section, target_facts, text, words,
};
use crate::groups::{self, Cures, Group};
use crate::view::alike::{self, Told};
use crate::view::{finding, meaning, plan, rules};
use crate::words as say;
use crate::words::{count, count_of, plural};
use crate::{Options, block_map, headline, hex, page_labels};

/// Damaged pages shown with their bytes.
const PAGES_MAX: usize = 100;
/// Characters of base64 in all shown pages, 32 KiB of bytes: each byte takes ten on the page, which
/// is to stay below a megabyte.
const BASE64_MAX: usize = 44 * 1024;

/// Where a page of evidence belongs.
type PagePlace<'a> = (&'a str, u32);

pub(super) fn view(document: &CheckDocument, options: &Options<'_>) -> View {
    let groups = groups::groups(document);
    let meaning = meaning::check(document, &groups);
    let next = meaning.next.clone();
    let plan = || plan::plan(&document.plan, &next);
    let mut blocks = first_lines(document, &groups, meaning);
    blocks.extend(not_checked(&document.coverage));
    // A page begins with what to do, a terminal ends with it: both are where the eye is.
    blocks.push(on_page(plan()));
    blocks.push(on_page(overview(document, &groups)));
    let evidence = evidence_by_group(document, &groups);
    for told in alike::told(&groups) {
        blocks.push(match told {
            Told::One(number, group) => {
                let pages = evidence.get(&number).map(Vec::as_slice).unwrap_or_default();
                relation(group, Cures::of(document), pages)
            }
            Told::Many(alike) => alike::relations(&alike),
        });
    }
    let shown = evidence.values().map(Vec::len).sum();
    blocks.push(on_page(more_evidence(document, shown)));
    let not_shown = omitted(document).map(|words| card(Tone::Warn, "Not shown").about(words));
    blocks.push(in_terminal(
        not_shown
            .map(|own| own.of(Vec::new()))
            .into_iter()
            .collect(),
    ));
    blocks.push(in_terminal(plan()));
    let names = document.findings.iter().map(|own| own.rule.as_str());
    blocks.push(rules(names, options));
    blocks.extend(inherent(&document.coverage.not_checked));
    let beyond = &document.coverage.beyond_level;
    let title = fold(Fold::Card, false, "Beyond this level, not examined");
    blocks.extend(title.unless_empty(reasons(beyond)));
    let (spec, word) = (
        &document.target.spec,
        headline::of_groups(document, &groups).word,
    );
    View::new(
        format!("{word}: {spec}"),
        "pgclinic check",
        spec,
        &document.tool,
        blocks,
    )
}

fn first_lines(document: &CheckDocument, groups: &[Group<'_>], meaning: Meaning) -> Vec<Block> {
    let headline = headline::of_groups(document, groups);
    let tone = match document.verdict {
        Answer::Healthy => Tone::Good,
        Answer::Damaged => Tone::Bad,
        Answer::Incomplete => Tone::Warn,
    };
    let verdict = Verdict::new(tone, headline.word, headline.extent)
        .beside(headline.beside.join(", "))
        .more(vec![headline.coverage.into()])
        .about(looked_at(
            &document.target,
            &document.tool,
            &[format!("level {}", document.level.name())],
        ))
        .meaning(meaning)
        .bar(bar(document));
    let since = document.since.as_ref().map(|since| text(say::since(since)));
    vec![
        Block::Verdict(verdict),
        in_terminal(since.into_iter().collect()),
        on_page(vec![Block::Facts(facts(document))]),
    ]
}

fn bar(document: &CheckDocument) -> PartsBar {
    let damaged = damaged_bytes(document);
    let hurt = HurtBytes {
        damaged,
        doubted: doubted_bytes(document).saturating_sub(damaged),
        missing: missing_bytes(document),
    };
    let mut bar = PartsBar::of_coverage(&document.coverage, &hurt);
    // Nobody knows how long a file was of which nothing is left.
    let files = document.coverage.relations_missing;
    bar.add(Fate::Missing, plural(files, "file") + " missing", files > 0);
    bar
}

/// Bytes of pages whose rows a status log denies; they are sound by themselves.
fn doubted_bytes(document: &CheckDocument) -> u64 {
    let damage = document.findings.iter();
    let damage = damage.filter(|own| own.severity == Severity::Damage);
    let denied = damage.filter(|own| own.place.kind == FileKind::Slru);
    let pages = denied.filter_map(|own| own.facts.get("pages")?.as_u64());
    let pages = pages.fold(0, u64::saturating_add);
    pages.saturating_mul(document.target.block_size.unwrap_or(0).into())
}

/// Bytes of pages that hold damage, be it of the page or of a row on it. A page that is named only
/// for what follows from damage elsewhere holds none.
fn damaged_bytes(document: &CheckDocument) -> u64 {
    let damage = document.findings.iter();
    let damage = damage.filter(|own| own.severity == Severity::Damage);
    let (follows, roots): (Vec<&Finding>, Vec<&Finding>) =
        damage.partition(|own| own.caused_by.is_some());
    let hurt: BTreeSet<&str> = roots.iter().map(|own| first_file(own)).collect();
    let is_complete = document.findings_omitted == 0;
    let excused: BTreeSet<&str> = follows
        .iter()
        .map(|own| first_file(own))
        .filter(|path| is_complete && !hurt.contains(path))
        .collect();
    let forks = document.relations.iter();
    let forks = forks.filter(|fork| !excused.contains(fork.path.as_str()));
    let ranges = forks.flat_map(|fork| &fork.damaged);
    let blocks: u64 = ranges.map(|[start, end]| end.saturating_sub(*start)).sum();
    let pages = roots.iter();
    let pages = pages.filter_map(|own| Some((own.place.path.as_str(), own.place.block?)));
    let pages: BTreeSet<(&str, u32)> = pages.collect();
    let blocks = blocks.max(count_of(pages.len()));
    blocks.saturating_mul(document.target.block_size.unwrap_or(0).into())
}

/// The first file of the fork that a finding is about: later ones end in a number.
fn first_file(finding: &Finding) -> &str {
    let path = finding.place.path.as_str();
    path.split_once('.').map_or(path, |(first, _)| first)
}

/// Bytes of blocks that other files name, and that are beyond the end of theirs.
fn missing_bytes(document: &CheckDocument) -> u64 {
    let size = u64::from(document.target.block_size.unwrap_or(0));
    let missing = document.findings.iter().filter_map(missing_blocks);
    let blocks = missing.map(|[first, end]| end.saturating_sub(first));
    blocks.fold(0, u64::saturating_add).saturating_mul(size)
}

/// Blocks that a finding says are beyond the end of its file, half-open.
fn missing_blocks(own: &Finding) -> Option<[u64; 2]> {
    let fact = |name: &str| own.facts.get(name)?.as_u64();
    let (first, last) = (fact("first_missing")?, fact("last_missing")?);
    (first <= last).then(|| [first, last.saturating_add(1)])
}

fn facts(document: &CheckDocument) -> Vec<(&'static str, Words)> {
    let coverage = &document.coverage;
    let zeroed = match coverage.zeroed_pages {
        0 => String::new(),
        pages => format!(", {} of them only zeros", count(pages)),
    };
    let since = document.since.as_ref().map(say::since);
    let mut facts = target_facts(&document.target);
    facts.extend([
        ("level", document.level.name().into()),
        ("relations", say::relations(coverage).into()),
        ("pages", format!("{}{zeroed}", count(coverage.pages)).into()),
        ("witnesses", say::witnesses(&coverage.witnesses).into()),
        ("findings", number(document.findings_total)),
        ("since", since.unwrap_or_default().into()),
    ]);
    facts
}

/// What could have been looked at and was not: as loud as what is wrong.
fn not_checked(coverage: &Coverage) -> Vec<Block> {
    let all = coverage.not_checked.iter();
    let ours: Vec<_> = all.filter(|entry| !entry.inherent).collect();
    let missing = [
        (coverage.bytes_skipped, "skipped"),
        (coverage.bytes_unreadable, "unreadable"),
    ];
    let missing = missing.iter().filter(|(number, _)| *number > 0);
    let missing = missing.map(|(number, what)| format!("{} {what}", say::bytes(*number)));
    let missing = missing.collect::<Vec<_>>().join(", ");
    if ours.is_empty() && missing.is_empty() {
        return Vec::new();
    }
    let card = card(Tone::Warn, "Not checked").about(missing);
    vec![card.of(reasons(ours))]
}

fn omitted(document: &CheckDocument) -> Option<String> {
    let (omitted, total) = (document.findings_omitted, document.findings_total);
    (omitted > 0).then(|| {
        format!(
            "{} of {} were counted and not kept, as they repeat a rule and relation that is shown",
            count(omitted),
            plural(total, "finding")
        )
    })
}

fn overview(document: &CheckDocument, groups: &[Group<'_>]) -> Vec<Block> {
    if groups.is_empty() {
        return vec![Block::Text(ParagraphStyle::Quiet, "No findings.".into())];
    }
    let columns =
        columns("Relation | Kind | Worst | Findings > | Damaged pages > | Rows at risk >");
    let rows = groups.iter().map(|group| {
        let link = Look::Link(format!("#{}", group.place));
        let worst = group.worst().unwrap_or(Severity::Note);
        Row::of(vec![
            Words::default().and(link, &group.name),
            group.kind.words().into(),
            Words::default().and(Look::Badge(worst), ""),
            number(count_of(group.own.len()).saturating_add(group.omitted)),
            number(group.damaged_blocks()),
            rows_of(group).into(),
        ])
    });
    let mut blocks = vec![
        Block::Filter("#by-relation > .wide tbody tr, .relation", ""),
        Block::Table(Table::new(columns, rows)),
    ];
    blocks.extend(omitted(document).map(|own| Block::Text(ParagraphStyle::Loud, own.into())));
    vec![section("Findings by relation").id("by-relation").of(blocks)]
}

/// Where all that was found follows from damage elsewhere, the rows are counted there.
fn rows_of(group: &Group<'_>) -> String {
    if group.roots.is_empty() && group.following_elsewhere > 0 && group.rows.known == 0 {
        return "by its cause".into();
    }
    group.rows.number()
}

fn relation(group: &Group<'_>, cures: Cures, pages: &[&Evidence]) -> Block {
    let mut blocks = vec![on_page(maps(group))];
    for run in group.runs() {
        blocks.extend(finding::run(&run, group, cures));
    }
    if group.following_elsewhere > 0 {
        let words = say::elsewhere(group.following_elsewhere);
        blocks.push(Block::Text(ParagraphStyle::Quiet, words.into()));
    }
    blocks.push(on_page(evidence(pages, group)));
    let part = Part::new(Frame::Relation, words(&group.name)).id(group.place.clone());
    part.about(about(group)).of(blocks)
}

/// `table, database shop, base/5/16384, 12 blocks, 1 damaged`.
fn about(group: &Group<'_>) -> String {
    let mut about = vec![group.kind.words().to_owned()];
    about.extend(group.database.map(|name| format!("database {name}")));
    if group.path != group.name {
        about.push(group.path.to_owned());
    }
    let main = group.forks.iter().any(|fork| fork.fork == Fork::Main);
    if let Some([first, end]) = missing_of(group).filter(|_| !main) {
        about.push(format!("{} of {}", count(first), plural(end, "block")));
    }
    about.extend(group.forks.iter().map(|fork| {
        let extent = plural(fork.blocks, "block");
        match fork.fork.name() {
            "main" => extent,
            name => format!("fork {name} {extent}"),
        }
    }));
    match group.damaged_blocks() {
        0 => {}
        blocks => about.push(format!("{} damaged", count(blocks))),
    }
    about.join(", ")
}

fn maps(group: &Group<'_>) -> Vec<Block> {
    let anchors = finding::anchors(group);
    let missing = missing_of(group);
    let map = |path: &str, fork: Fork, blocks: u64, damaged: &[[u64; 2]]| {
        let missing = missing.filter(|_| fork == Fork::Main);
        let blocks = missing.map_or(blocks, |[_, end]| end.max(blocks));
        let hurt: Vec<[u64; 2]> = damaged.iter().copied().chain(missing).collect();
        Block::Picture(Picture::Map(ForkMap {
            path: path.to_owned(),
            fork: fork.name().to_owned(),
            blocks,
            first_missing: missing.map(|[first, _]| first),
            map: block_map::block_map(blocks, &hurt),
            anchors: anchors.clone(),
        }))
    };
    let forks = group.forks.iter();
    let mut maps: Vec<Block> = forks
        .map(|own| map(&own.path, own.fork, own.blocks, &own.damaged))
        .collect();
    // A file that only ends too early has no damaged page, and is in no summary.
    let is_told = group.forks.iter().any(|own| own.fork == Fork::Main);
    if let Some([first, _]) = missing.filter(|_| !is_told) {
        maps.insert(0, map(group.path, Fork::Main, first, &[]));
    }
    maps
}

/// The blocks that are missing at the end of a relation's main fork, by its findings.
fn missing_of(group: &Group<'_>) -> Option<[u64; 2]> {
    let own = group.own.iter();
    let own = own.filter(|own| matches!(own.place.fork, None | Some(Fork::Main)));
    own.filter_map(|own| missing_blocks(own)).next()
}

fn evidence(pages: &[&Evidence], group: &Group<'_>) -> Vec<Block> {
    let total = plural(count_of(pages.len()), "page");
    let title = section(format!("Bytes as they were found: {total}"));
    title.unless_empty(pages.iter().map(|page| page_of(page, group)).collect())
}

fn page_of(own: &Evidence, group: &Group<'_>) -> Block {
    let here = |place: &Place| place.path == own.path && place.block == Some(own.block);
    let all = group.own.iter().copied();
    let findings: Vec<_> = all.filter(|finding| here(&finding.place)).collect();
    let title = words(format!("Block {} of ", own.block))
        .code(&own.path)
        .plain(format!(", {}", plural(count_of(findings.len()), "finding")));
    let bytes = match hex::decode(&own.page) {
        Some(page) => Block::Dump(Dump {
            ranges: page_labels::labels(&page, group.kind),
            marks: finding::marks(findings, page.len()),
            page,
        }),
        None => text("The document's bytes of this page are no base64 of a page."),
    };
    fold(Fold::Page, false, title).of(vec![bytes])
}

/// The pages of each group, so many in all as are shown.
fn evidence_by_group<'a>(
    document: &'a CheckDocument,
    groups: &[Group<'a>],
) -> HashMap<usize, Vec<&'a Evidence>> {
    let mut group_of: HashMap<PagePlace<'_>, usize> = HashMap::new();
    for (number, group) in groups.iter().enumerate() {
        for finding in &group.own {
            if let Some(block) = finding.place.block {
                group_of
                    .entry((&finding.place.path, block))
                    .or_insert(number);
            }
        }
    }
    let mut pages: HashMap<usize, Vec<&Evidence>> = HashMap::new();
    for page in shown_evidence(document) {
        if let Some(number) = group_of.get(&(page.path.as_str(), page.block)) {
            pages.entry(*number).or_default().push(page);
        }
    }
    pages
}

fn shown_evidence(document: &CheckDocument) -> &[Evidence] {
    let mut base64 = 0_usize;
    let fitting = document.evidence.iter().take(PAGES_MAX).take_while(|page| {
        base64 = base64.saturating_add(page.page.len());
        base64 <= BASE64_MAX
    });
    document.evidence.get(..fitting.count()).unwrap_or_default()
}

fn more_evidence(document: &CheckDocument, shown: usize) -> Vec<Block> {
    match count_of(document.evidence.len().saturating_sub(shown)) {
        0 => Vec::new(),
        more => {
            let pages = plural(more, "page");
            let words = format!("The bytes of {pages} more stand in the JSON document.");
            vec![Block::Text(ParagraphStyle::Loud, words.into())]
        }
    }
}
