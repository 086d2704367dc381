//! One finding, what follows from it, and what is folded.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pgclinic_model::document::{Finding, Remedy};
use pgclinic_model::verb_of;

use super::{
    Block, Fold, Frame, Look, ParagraphStyle, Part, Step, Steps, Words, and_more, entries, fold,
    list, on_page, text, words,
};
use crate::groups::{self, Cures, Group, Root, Run, blocks_of, count_by_rule};
use crate::hex;
use crate::view::next::command_or_words;
use crate::view::picture::StripMark;
use crate::words as say;
use crate::words::{count, count_of};

/// Findings marked on one page.
const MARKS_MAX: usize = 200;
/// Where the words of a finding begin in a terminal, after its indent.
const COLUMN: usize = 10;

/// Where each block's first finding stands in the page.
pub(super) fn anchors(group: &Group<'_>) -> BTreeMap<u64, String> {
    let mut anchors = BTreeMap::new();
    for root in &group.roots {
        if let Some(block) = root.finding.place.block {
            anchors
                .entry(u64::from(block))
                .or_insert_with(|| identity(root.finding));
        }
    }
    anchors
}

/// Ids are hashes; of anything else only letters and digits are taken over.
fn identity(finding: &Finding) -> String {
    let safe = finding.id.chars().filter(char::is_ascii_alphanumeric);
    format!("f-{}", safe.collect::<String>())
}

/// The marks of findings on a page of so many bytes.
pub(super) fn marks<'a>(
    findings: impl IntoIterator<Item = &'a Finding>,
    len: usize,
) -> Vec<(Range<usize>, String)> {
    let marked = findings.into_iter().filter_map(|finding| {
        let bytes = hex::clamp(finding.place.bytes?, len);
        (!bytes.is_empty()).then(|| (bytes, finding.message.clone()))
    });
    marked.take(MARKS_MAX).collect()
}

/// Findings of one rule.
pub(super) fn run(run: &Run<'_, '_>, group: &Group<'_>, cures: Cures) -> Vec<Block> {
    let shown = run.shown.iter();
    let mut blocks: Vec<Block> = shown.map(|root| one(root, group.path, cures)).collect();
    if !run.folded.is_empty() {
        blocks.push(folded(run));
    }
    blocks
}

/// Findings of one page, whose relation the reader already knows.
pub(super) fn of_page(findings: &[Finding]) -> Vec<Block> {
    let groups = groups::of_findings(&[], findings);
    let all = groups.iter().flat_map(|group| {
        let runs = group.runs().into_iter();
        runs.flat_map(|own| run(&own, group, Cures::Each))
            .collect::<Vec<_>>()
    });
    all.collect()
}

/// The same as marks on the page drawn to scale; those told of by themselves have links.
pub(super) fn strip_marks(findings: &[Finding], len: usize) -> Vec<StripMark> {
    let groups = groups::of_findings(&[], findings);
    let roots = groups.iter().flat_map(|group| &group.roots);
    let roots: BTreeSet<&str> = roots.map(|root| root.finding.id.as_str()).collect();
    let marks = findings.iter().filter_map(|finding| {
        let bytes = hex::clamp(finding.place.bytes?, len);
        (!bytes.is_empty()).then(|| StripMark {
            bytes,
            words: format!("{}: {}", finding.rule, finding.message),
            link: roots
                .contains(finding.id.as_str())
                .then(|| identity(finding)),
        })
    });
    marks.take(MARKS_MAX).collect()
}

fn one(root: &Root<'_>, path: &str, cures: Cures) -> Block {
    let finding = root.finding;
    let title = Words::default()
        .and(Look::Badge(finding.severity), "")
        .plain(" ")
        .and(Look::Rule, &finding.rule)
        .plain("  ")
        .and(Look::Place, say::place_inside(&finding.place));
    let mut blocks = vec![Block::Text(
        ParagraphStyle::Message,
        words(&finding.message),
    )];
    blocks.extend(entries(COLUMN, facts(finding, path)));
    if cures == Cures::Each && !finding.remedies.is_empty() {
        blocks.push(remedies(&finding.remedies));
    }
    if root.follower_count() > 0 {
        blocks.push(followers(root));
    }
    let frame = Frame::Finding(finding.severity.name());
    Part::new(frame, title).id(identity(finding)).of(blocks)
}

fn facts(finding: &Finding, path: &str) -> Vec<(&'static str, Words)> {
    let mut rows: Vec<(&str, Words)> = Vec::new();
    if finding.place.path != path {
        rows.push(("file", Words::default().code(&finding.place.path)));
    }
    if let Some(cause) = &finding.cause {
        let sure = say::sureness(cause.confidence);
        let facts = match say::facts(&cause.facts) {
            facts if facts.is_empty() => facts,
            facts => format!(": {facts}"),
        };
        let name = Words::default().strong(&cause.name);
        rows.push(("cause", name.plain(format!(" ({sure}){facts}"))));
    }
    if let Some(says) = &finding.server_says {
        rows.push(("server", Words::default().and(Look::Server, says)));
    }
    if let Some(at_risk) = say::at_risk(&finding.at_risk) {
        rows.push(match finding.at_risk.rows {
            Some(0) => ("at risk", Words::default().on_page(at_risk)),
            _ => ("at risk", words(at_risk)),
        });
    }
    if let Some(lsn) = &finding.known_from {
        rows.push(("known", words(say::known_from(lsn))));
    }
    if let Some(ignored) = &finding.ignored {
        let until = ignored.until.as_ref();
        let until = until.map_or_else(String::new, |day| format!(" (until {day})"));
        rows.push(("ignored", words(format!("{}{until}", ignored.reason))));
    }
    rows
}

fn remedies(remedies: &[Remedy]) -> Block {
    let steps = remedies.iter().enumerate().map(|(index, remedy)| Step {
        label: if index == 0 { "to do" } else { "or" }.to_owned(),
        words: words(&remedy.name)
            .plain(" ")
            .and(Look::Safety(remedy.safety), ""),
        blocks: vec![command_or_words(&remedy.command)],
    });
    Block::Steps(Steps {
        title: "What to do",
        column: COLUMN,
        steps: steps.collect(),
    })
}

/// Followers of a rule that a page lists.
const FOLLOWERS_MAX: usize = 100;

/// Counted by rule with their places; a page also lists them, as many as anybody reads.
fn followers(root: &Root<'_>) -> Block {
    let rules = count_by_rule(root);
    let named = rules.iter();
    let named = named.map(|(rule, number, _)| format!("{rule} × {}", count(*number)));
    let named = named.collect::<Vec<_>>().join(", ");
    let number = root.follower_count();
    let (total, verb) = (count(number), verb_of(number, "follow"));
    let title =
        words(format!("and {total} more that {verb} from it:")).on_page(format!(" {named}"));
    let longest = rules.iter().map(|(_, number, _)| count(*number).len());
    let column = longest.max().unwrap_or(0) + 3;
    let rows = rules.iter().map(|(rule, number, omitted)| {
        let same = root.followers.iter().copied();
        let same = same.filter(|own| own.rule == *rule);
        let rest = if *omitted > 0 { " and further" } else { "" };
        let places = format!("{rule} in {}{rest}", places(same));
        (format!("{} ×", count(*number)), places.into())
    });
    let mut blocks = entries(column, rows);
    let listed = root.followers.iter().take(FOLLOWERS_MAX);
    let mut page = briefly(listed.map(|own| (*own, 0)));
    let rest = root.followers.len().saturating_sub(FOLLOWERS_MAX);
    if rest > 0 {
        let more = and_more(count_of(rest));
        page.push(text(format!("{more}, which stand in the JSON document")));
    }
    blocks.push(on_page(page));
    fold(Fold::Plain, false, title).of(blocks)
}

/// `public.docs, public.tags, block 7, 9-12`.
fn places<'a>(findings: impl Iterator<Item = &'a Finding> + Clone) -> String {
    let relations = findings.clone().map(|own| own.place.relation_name());
    let relations: BTreeSet<String> = relations.collect();
    let names: Vec<_> = relations.iter().take(3).map(String::as_str).collect();
    let rest = match relations.len().saturating_sub(names.len()) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    format!("{}{rest}{}", names.join(", "), blocks(findings, 6))
}

/// `, block 7, 9-12`.
fn blocks<'a>(findings: impl Iterator<Item = &'a Finding>, limit: usize) -> String {
    match say::block_ranges(&blocks_of(findings), limit) {
        blocks if blocks.is_empty() => blocks,
        blocks => format!(", block {blocks}"),
    }
}

fn folded(run: &Run<'_, '_>) -> Block {
    let blocks = blocks(run.folded.iter().map(|root| root.finding), 12);
    let followers = match run.folded.iter().map(Root::follower_count).sum() {
        0 => String::new(),
        followers => format!(" (with {} that follow)", count(followers)),
    };
    let kept = count_of(run.folded.len());
    let (total, rest, where_else) = match run.omitted {
        0 => (kept, "", "; they stand in --format json".to_owned()),
        omitted => {
            let where_else = format!("; {} of them stand in --format json", count(kept));
            (kept.saturating_add(omitted), " and further", where_else)
        }
    };
    let title = words(format!("and {} more of ", count(total)))
        .code(run.rule)
        .plain(format!("{followers}{blocks}{rest}"))
        .in_terminal(where_else);
    let roots = run.folded.iter();
    fold(Fold::More, false, title).of(vec![on_page(briefly(
        roots.map(|root| (root.finding, root.follower_count())),
    ))])
}

/// A line for each finding and the number of those that follow from it.
fn briefly<'a>(findings: impl Iterator<Item = (&'a Finding, u64)>) -> Vec<Block> {
    list(findings.map(|(finding, followers)| {
        let more = match followers {
            0 => String::new(),
            more => format!(" ({} follow from it)", count(more)),
        };
        let (place, message) = (&finding.place, &finding.message);
        Words::default()
            .and(Look::Target, identity(finding))
            .code(&finding.rule)
            .plain(format!(" {place}: {message}{more}"))
    }))
}
