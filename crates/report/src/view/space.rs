//! Where the bytes of measured relations are, and what would give some of them back.

use std::cmp::Reverse;
use std::collections::HashMap;

use pgclinic_model::document::{FileKind, MeasureDocument, MeasuredRelation};

use super::permalinks;
use super::picture::{Picture, Space, Treemap};
use super::relation_names::RelationNames;
use super::{
    Block, Look, ParagraphStyle, Row, Style, Table, Words, columns, on_page, section, text, words,
};
use crate::words as say;
use crate::words::{bytes, count_of, plural};

/// Relations with a tile of their own; the rest share one.
const TILES_MAX: usize = 40;
/// What gives back less than this share of all bytes is summed up.
const LEAST_SHARE: u64 = 1000;
/// Rows of what would give bytes back, on a page and in a terminal.
const ROWS_MAX: usize = 30;
const TERMINAL_ROWS_MAX: usize = 8;

/// Where a page tells how large a relation is; one that was checked too has a place besides.
pub(super) fn place(own: &MeasuredRelation) -> String {
    let relation = permalinks::of_relation(
        own.database.as_deref(),
        own.schema.as_deref(),
        own.relation.as_deref(),
        &own.path,
    );
    format!("measured/{relation}")
}

/// A page's first picture, and the table that a terminal has as well. `is_told` says of which
/// relations a page tells more.
pub(super) fn space(
    document: &MeasureDocument,
    is_told: &dyn Fn(&MeasuredRelation) -> bool,
) -> Vec<Block> {
    let names = RelationNames::of(document);
    let ways = ways(document, &names);
    let mut blocks = vec![on_page(picture(document, &names, &ways, is_told))];
    blocks.extend(table(document, &ways, is_told));
    blocks
}

/// One way to bytes.
struct Way<'a> {
    relation: &'a MeasuredRelation,
    name: String,
    bytes: u64,
    command: String,
}

/// How much the statements of a document would give back, and the one that gives most.
pub(super) fn would_come_back(document: &MeasureDocument) -> Option<(u64, String)> {
    let names = RelationNames::of(document);
    let ways = ways(document, &names);
    let most = ways.first()?;
    let all = ways.iter().map(|way| way.bytes).sum();
    Some((all, format!("{} of {}", bytes(most.bytes), most.name)))
}

/// Every way, the largest first.
fn ways<'a>(document: &'a MeasureDocument, names: &RelationNames<'a>) -> Vec<Way<'a>> {
    let needless: HashMap<(&str, &str), u64> = document
        .hints
        .iter()
        .map(|hint| ((hint.database.as_str(), hint.relation.as_str()), hint.bytes))
        .collect();
    let own = document.relations.iter().filter(|own| !own.is_servers());
    let ways = own.filter_map(|own| {
        let name = own.name();
        let database = own.database.as_deref().unwrap_or_default();
        let dropped = needless.get(&(database, name.as_str())).copied();
        let (bytes, command) = way(own, names, dropped)?;
        Some(Way {
            relation: own,
            name: names.name(own),
            bytes,
            command,
        })
    });
    let mut ways: Vec<Way<'_>> = ways.filter(|way| way.bytes > 0).collect();
    ways.sort_by_key(|way| Reverse(way.bytes));
    ways
}

/// What comes back, and the statement for it.
fn way(
    own: &MeasuredRelation,
    names: &RelationNames<'_>,
    dropped: Option<u64>,
) -> Option<(u64, String)> {
    if let Some(bytes) = dropped {
        return Some((
            bytes,
            format!("DROP INDEX CONCURRENTLY {};", qualified(own)?),
        ));
    }
    if let Some(bytes) = own.count("table", "rewrite_gives_back_bytes") {
        let table = names.owner(own).unwrap_or(own);
        return Some((bytes, format!("VACUUM (FULL) {};", qualified(table)?)));
    }
    let bytes = own.count("index", "reindex_gives_back_bytes")?;
    Some((
        bytes,
        format!("REINDEX INDEX CONCURRENTLY {};", qualified(own)?),
    ))
}

/// The name as SQL. After a dot any word is a name, so that only schemas need quotes for being
/// words of SQL.
fn qualified(own: &MeasuredRelation) -> Option<String> {
    let (schema, name) = (own.schema.as_ref()?, own.relation.as_ref()?);
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let is_plain = |name: &str| {
        let mut letters = name.bytes();
        let starts = letters
            .next()
            .is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
        starts && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let schema = match schema.as_str() {
        "public" | "pg_toast" => schema.clone(),
        other => quoted(other),
    };
    let name = if is_plain(name) {
        name.clone()
    } else {
        quoted(name)
    };
    Some(format!("{schema}.{name}"))
}

fn table(
    document: &MeasureDocument,
    ways: &[Way<'_>],
    is_told: &dyn Fn(&MeasuredRelation) -> bool,
) -> Vec<Block> {
    let total: u64 = document.relations.iter().map(|own| own.bytes).sum();
    let least = total / LEAST_SHARE;
    let worth = ways.partition_point(|way| way.bytes >= least).min(ROWS_MAX);
    let (shown, rest) = ways.split_at(worth);
    if shown.is_empty() {
        return Vec::new();
    }
    let all: u64 = ways.iter().map(|way| way.bytes).sum();
    let share = say::percent(all, total);
    let mut blocks = vec![text(format!(
        "about {} of {}, {share} %: VACUUM (FULL) locks its table while it rewrites it and its indexes",
        bytes(all),
        bytes(total)
    ))];
    let rows = shown.iter().map(|way| {
        let name = if is_told(way.relation) {
            let link = Look::Link(format!("#{}", place(way.relation)));
            Words::default().and(link, &way.name)
        } else {
            words(&way.name)
        };
        Row::of(vec![
            super::measure::titled(name, way.relation),
            bytes(way.bytes).into(),
            Words::default().code(&way.command),
        ])
    });
    let columns = columns("What = what | Frees > | By");
    let table = Table::new(columns, rows).style(Style::Board);
    let others = |more: u64| format!("and {}", plural(more, "smaller one"));
    blocks.extend(table.short(TERMINAL_ROWS_MAX, others).unless_empty());
    if !rest.is_empty() {
        let more = rest.iter().map(|way| way.bytes).sum();
        let ways = plural(count_of(rest.len()), "smaller one");
        let line = format!("and {ways}, {} together", bytes(more));
        let quiet = Block::Text(ParagraphStyle::Quiet, line.into());
        blocks.push(on_page(vec![quiet]));
    }
    vec![section("What would give bytes back").of(blocks)]
}

/// Tiles of users' relations, and one for what is the server's.
fn picture(
    document: &MeasureDocument,
    names: &RelationNames<'_>,
    ways: &[Way<'_>],
    is_told: &dyn Fn(&MeasuredRelation) -> bool,
) -> Vec<Block> {
    let freed: HashMap<&str, u64> = ways
        .iter()
        .map(|way| (way.relation.path.as_str(), way.bytes))
        .collect();
    // Empty ones of the server count here too, as in the tables of the same page.
    let relations = document.relations.iter();
    let (servers, mut own): (Vec<_>, Vec<_>) = relations.partition(|own| own.is_servers());
    own.retain(|own| own.bytes > 0);
    own.sort_by_key(|own| Reverse(own.bytes));
    let rest = own.split_off(own.len().min(TILES_MAX));
    let mut tiles: Vec<Space> = own
        .into_iter()
        .map(|own| Space {
            name: names.name(own),
            class: class(own),
            bytes: own.bytes,
            freed: freed.get(own.path.as_str()).copied().unwrap_or(0),
            link: is_told(own).then(|| place(own)),
        })
        .collect();
    let more = |relations: &[&MeasuredRelation], name: &str| Space {
        name: format!("{} {name}", say::count(count_of(relations.len()))),
        class: "f",
        bytes: relations.iter().map(|own| own.bytes).sum(),
        freed: 0,
        link: None,
    };
    tiles.extend((!rest.is_empty()).then(|| more(&rest, "smaller relations")));
    tiles.extend((!servers.is_empty()).then(|| more(&servers, "relations of the server itself")));
    tiles.retain(|tile| tile.bytes > 0);
    tiles.sort_by_key(|tile| Reverse(tile.bytes));
    if tiles.is_empty() {
        return Vec::new();
    }
    vec![
        section("Where the bytes are")
            .of(vec![Block::Picture(Picture::Treemap(Treemap { tiles }))]),
    ]
}

/// The colour of a kind.
fn class(own: &MeasuredRelation) -> &'static str {
    match own.kind {
        _ if own.schema.as_deref() == Some("pg_toast") => "t",
        FileKind::Index => "l",
        FileKind::Table => "h",
        _ => "d",
    }
}
