//! Relations that have one thing alike are told once: a lost page of `pg_class` is one story, and
//! not one for each relation whose row stood there.

use std::collections::BTreeMap;

use super::{
    Block, Fold, Frame, Look, Medium, Part, Words, and_more, fold, in_terminal, list, on_page, text,
};
use crate::groups::Group;
use crate::words as say;
use crate::words::{count_of, plural};

/// So many relations are still told one by one.
const SINGLE_MAX: usize = 3;
/// Relations of many that are named at once.
const NAMED_MAX: usize = 5;

/// A relation with its number among all.
type Numbered<'g, 'a> = (usize, &'g Group<'a>);

/// How relations are told.
pub(super) enum Told<'g, 'a> {
    /// By itself.
    One(usize, &'g Group<'a>),
    /// With others that have the same to tell.
    Many(Vec<Numbered<'g, 'a>>),
}

/// What relations may have alike.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Alike<'a> {
    /// One finding of this rule, about the relation as a whole, and nothing else.
    Rule(&'a str),
    /// Findings that all stand under their cause in another relation.
    Elsewhere,
}

fn alike<'a>(group: &Group<'a>) -> Option<Alike<'a>> {
    match (group.roots.as_slice(), group.own.as_slice()) {
        ([], [_, ..]) => Some(Alike::Elsewhere),
        ([root], [_]) if root.followers.is_empty() && root.finding.place.block.is_none() => {
            Some(Alike::Rule(&root.finding.rule))
        }
        _ => None,
    }
}

/// All relations in their order; those that are alike at the place of their first.
pub(super) fn told<'g, 'a>(groups: &'g [Group<'a>]) -> Vec<Told<'g, 'a>> {
    let mut many: BTreeMap<Alike<'a>, Vec<Numbered<'g, 'a>>> = BTreeMap::new();
    for (number, group) in groups.iter().enumerate() {
        if let Some(alike) = alike(group) {
            many.entry(alike).or_default().push((number, group));
        }
    }
    many.retain(|_, alike| alike.len() > SINGLE_MAX);
    let told = groups.iter().enumerate().filter_map(|(number, group)| {
        let all = alike(group).and_then(|alike| many.get(&alike));
        match all {
            None => Some(Told::One(number, group)),
            Some(all) => {
                let is_first = all.first().is_some_and(|(first, _)| *first == number);
                is_first.then(|| Told::Many(all.clone()))
            }
        }
    });
    told.collect()
}

/// One section for relations that are alike.
pub(super) fn relations(alike: &[Numbered<'_, '_>]) -> Block {
    let total = count_of(alike.len());
    let leading = alike.first().map_or(0, |(number, _)| *number);
    let id = alike.first().map(|(_, group)| group.place.clone());
    let roots = alike.iter().filter_map(|(_, group)| group.roots.first());
    let (about, blocks) = match roots.clone().next() {
        Some(first) => {
            let severity = first.finding.severity;
            let title = Words::default()
                .and(Look::Badge(severity), "")
                .plain(" ")
                .and(Look::Rule, &first.finding.rule)
                .plain(format!("  in {}", plural(total, "relation")));
            let messages = roots.map(|root| root.finding.message.as_str());
            let named = alike.iter().zip(messages);
            let items =
                named.map(|((number, group), message)| item(*number, group, leading, message));
            let frame = Frame::Finding(severity.name());
            let all = Part::new(frame, title).of(first_items(items.collect()));
            ("with the same finding", vec![all])
        }
        None => {
            let items = alike.iter().map(|(number, group)| {
                let words = say::elsewhere(group.following_elsewhere);
                item(*number, group, leading, &words)
            });
            let about = "where all that was found follows from a cause elsewhere";
            (about, first_items(items.collect()))
        }
    };
    let title = plural(total, "relation");
    let part = Part::new(Frame::Relation, title).id(id.unwrap_or_default());
    part.about(about).of(blocks)
}

/// `public.docs, database shop: …`, where the table of all relations leads.
fn item(number: usize, group: &Group<'_>, first: usize, message: &str) -> Words {
    let database = group.database.map(|name| format!(", database {name}"));
    let mut words = Words::default();
    if number != first {
        words = words
            .and(Look::Target, group.place.clone())
            .only(Medium::Page);
    }
    words
        .code(&group.name)
        .plain(format!("{}: {message}", database.unwrap_or_default()))
}

/// The first, and the others closed on a page and counted in a terminal.
fn first_items(mut items: Vec<Words>) -> Vec<Block> {
    let rest = items.split_off(items.len().min(NAMED_MAX));
    let mut blocks = list(items);
    let more = and_more(count_of(rest.len()));
    if !rest.is_empty() {
        let words = format!("{more}, which stand in --format json");
        blocks.push(in_terminal(vec![text(words)]));
        blocks.push(on_page(vec![fold(Fold::More, false, more).of(list(rest))]));
    }
    blocks
}
