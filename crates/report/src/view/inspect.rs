//! A page taken apart: its header, its items with their values, its bytes.

use pgclinic_model::Severity;
use pgclinic_model::document::{Field, InspectDocument, ItemAnatomy, PageAnatomy, ValueAnatomy};

use super::picture::{Picture, Strip};
use super::{
    Block, Dump, Fold, Frame, Look, Medium, ParagraphStyle, Part, Row, Table, Tone, Verdict, View,
    Words, columns, entries, finding, fold, in_terminal, looked_at, meaning, not_done, on_page,
    rules, section, target_facts, text, words,
};
use crate::words::{byte_range, count, plural};
use crate::{Options, hex};

/// So many items that are wrong are open at first.
const OPEN_MAX: usize = 5;
/// Items in tables; those after them stand in lines, and those after these by their first values.
const TABLES_MAX: usize = 50;
const LINES_MAX: usize = 300;

pub(super) fn view(document: &InspectDocument, options: &Options<'_>) -> View {
    let anatomy = &document.anatomy;
    let page = hex::decode(&anatomy.page);
    let mut blocks = vec![Block::Verdict(title(document))];
    if let Some(page) = page.as_ref().filter(|_| !anatomy.ranges.is_empty()) {
        blocks.push(Block::Picture(Picture::Strip(Strip {
            len: page.len(),
            ranges: anatomy.ranges.clone(),
            marks: finding::strip_marks(&document.findings, page.len()),
        })));
    }
    blocks.push(on_page(vec![Block::Facts(facts(document))]));
    blocks.extend(not_done("Not checked", &document.coverage.not_checked));
    let findings = finding::of_page(&document.findings);
    let title = Part::new(Frame::PageSection, "What is wrong with it");
    blocks.extend(title.unless_empty(findings));
    blocks.extend(section("Header").unless_empty(fields(&anatomy.header)));
    blocks.extend(items(&anatomy.items));
    blocks.extend(section("Special space").unless_empty(fields(&anatomy.special)));
    blocks.push(section("Bytes").of(vec![bytes(document, anatomy, page)]));
    let names = document.findings.iter().map(|own| own.rule.as_str());
    blocks.push(on_page(vec![rules(names, options)]));
    View::new(
        format!("Page {}", document.place),
        "pgclinic inspect",
        &document.target.spec,
        &document.tool,
        blocks,
    )
}

fn title(document: &InspectDocument) -> Verdict {
    let kind = &document.anatomy.page_kind;
    let blocks = plural(document.blocks, "block");
    let mut findings = document.findings.iter();
    let tone = if findings.any(|own| own.severity == Severity::Damage) {
        Tone::Bad
    } else {
        Tone::Plain
    };
    Verdict::new(
        tone,
        document.place.to_string(),
        format!("{kind} page, one of {blocks}"),
    )
    .more(vec![checksum(&document.anatomy)])
    .about(looked_at(&document.target, &document.tool, &[]))
    .meaning(meaning::inspect(document))
    .in_lines()
}

fn checksum(anatomy: &PageAnatomy) -> Words {
    let computed = anatomy.checksum_computed;
    match anatomy.checksum.as_str() {
        "wrong" => words("checksum ")
            .and(Look::Wrong, "wrong")
            .plain(format!(" (these bytes should carry 0x{computed:04x})")),
        "right" => words(format!("checksum right (0x{computed:04x})")),
        other => words(format!("checksum {other}")),
    }
}

fn facts(document: &InspectDocument) -> Vec<(&'static str, Words)> {
    let anatomy = &document.anatomy;
    let fork = document.place.fork.map(|fork| fork.to_string());
    let computed = format!("0x{:04x}", anatomy.checksum_computed);
    let mut facts = vec![
        ("file", words(&document.place.path)),
        ("fork", fork.unwrap_or_default().into()),
        ("blocks in the fork", count(document.blocks).into()),
        ("checksum", words(&anatomy.checksum)),
        ("checksum computed", computed.into()),
    ];
    facts.extend(target_facts(&document.target));
    facts
}

/// A table on a page, lines in a terminal.
fn fields(fields: &[Field]) -> Vec<Block> {
    if fields.is_empty() {
        return Vec::new();
    }
    let longest = fields.iter().map(|field| field.name.chars().count()).max();
    let column = longest.unwrap_or(0).min(24) + 2;
    let mut lines = Vec::new();
    for field in fields {
        let meaning = match field.meaning.join(", ") {
            meaning if meaning.is_empty() => meaning,
            meaning => format!("  {meaning}"),
        };
        let words = format!("{}{meaning}  [{}]", field.value, byte_range(field.bytes));
        lines.extend(entries(column, [(&field.name, words.into())]));
        lines.extend(fault(field.fault.as_deref()));
    }
    vec![on_page(vec![field_table(fields)]), in_terminal(lines)]
}

fn field_table(fields: &[Field]) -> Block {
    let columns = columns("Field | Bytes | Value | Meaning");
    let rows = fields.iter().map(|field| {
        let mut meaning = words(field.meaning.join(", "));
        if let Some(fault) = &field.fault {
            let said = field.meaning.iter().any(|own| own == "wrong");
            let fault = if said {
                fault.clone()
            } else {
                format!("wrong: {fault}")
            };
            meaning = meaning.plain(" ").and(Look::Wrong, fault);
        }
        Row::of(vec![
            Words::default().code(&field.name),
            Words::default().quiet(byte_range(field.bytes)),
            Words::default().code(&field.value),
            meaning,
        ])
        .fault(field.fault.is_some())
    });
    Block::Table(Table::new(columns, rows))
}

fn fault(fault: Option<&str>) -> Option<Block> {
    fault.map(|fault| text(Words::default().and(Look::Wrong, format!("WRONG: {fault}"))))
}

fn items(items: &[ItemAnatomy]) -> Vec<Block> {
    if items.is_empty() {
        return Vec::new();
    }
    let wrong = items.iter().filter(|own| is_wrong(own)).count();
    let mut blocks = vec![Block::Filter(".item", "")];
    for (before, own) in items.iter().enumerate() {
        let rank = if is_wrong(own) { 0 } else { before };
        blocks.push(item(own, wrong <= OPEN_MAX, Detail::of(rank)));
    }
    vec![section("Line pointers and items").of(blocks)]
}

/// How much of an item stands on a page of items; a terminal has all of each.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Tables,
    Lines,
    Title,
}

impl Detail {
    fn of(before: usize) -> Self {
        match before {
            0..TABLES_MAX => Detail::Tables,
            TABLES_MAX..LINES_MAX => Detail::Lines,
            _ => Detail::Title,
        }
    }
}

fn is_wrong(own: &ItemAnatomy) -> bool {
    own.fault.is_some() || own.header.iter().any(|field| field.fault.is_some())
}

/// What is wrong with it is seen where `few` items are wrong.
fn item(own: &ItemAnatomy, few: bool, detail: Detail) -> Block {
    let is_wrong = is_wrong(own);
    let kind = if is_wrong { Fold::Fault } else { Fold::Item };
    let place = format!(
        "at {}: lp_off {}, lp_len {}",
        own.at, own.lp_off, own.lp_len
    );
    let mut title = Words::default()
        .strong(format!("item {}", own.item))
        .plain("  ")
        .code(&own.lp_flags)
        .quiet(format!(" {place}"));
    if let Some(state) = &own.state {
        title = title.plain("; ").and(state_look(state), state);
    }
    let preview = Words::default().on_page(" ");
    let preview = preview.and(Look::Preview, first_values(&own.values));
    title = title.then(preview.only(Medium::Page));
    let mut blocks = Vec::from_iter(fault(own.fault.as_deref()));
    blocks.push(on_page(item_on_page(own, detail)));
    if !own.header.is_empty() {
        blocks.push(in_terminal(header_lines(&own.header)));
    }
    blocks.push(in_terminal(value_lines(&own.values)));
    let fold = fold(kind, is_wrong && few, title);
    fold.id(format!("item-{}", own.item)).of(blocks)
}

/// A row that is there and a value that is null need nobody's eye.
fn state_look(state: &str) -> Look {
    match state {
        "null" => Look::Quiet,
        live if live.starts_with("live") => Look::Quiet,
        _ => Look::State,
    }
}

fn item_on_page(own: &ItemAnatomy, detail: Detail) -> Vec<Block> {
    match detail {
        Detail::Tables => {
            let header = (!own.header.is_empty()).then(|| field_table(&own.header));
            let values = (!own.values.is_empty()).then(|| value_table(&own.values));
            header.into_iter().chain(values).collect()
        }
        Detail::Lines => {
            let mut lines = Vec::new();
            if !own.header.is_empty() {
                lines.extend(header_lines(&own.header));
            }
            lines.extend(value_lines(&own.values));
            lines
        }
        Detail::Title => vec![text("Its fields and values stand in --format json.")],
    }
}

fn header_lines(header: &[Field]) -> Vec<Block> {
    let fields = header.iter().map(|field| match field.meaning.join(" ") {
        meaning if meaning.is_empty() => format!("{} {}", field.name, field.value),
        meaning => format!("{} {} ({meaning})", field.name, field.value),
    });
    let mut lines = vec![text(fields.collect::<Vec<_>>().join(", "))];
    lines.extend(header.iter().filter_map(|field| {
        let words = field.fault.as_ref()?;
        fault(Some(&named_fault(&field.name, words)))
    }));
    lines
}

/// The fault with the field's name, once.
fn named_fault(name: &str, fault: &str) -> String {
    if fault.starts_with(name) {
        fault.to_owned()
    } else {
        format!("{name}: {fault}")
    }
}

/// The first values, so that a row is recognised while it is closed.
fn first_values(values: &[ValueAnatomy]) -> String {
    let first = values.iter().filter(|value| !value.dropped).take(4);
    let first = first.map(|value| match &value.value {
        Some(text) => text.chars().take(24).collect::<String>(),
        None => value.state.clone(),
    });
    first.collect::<Vec<_>>().join(" | ")
}

/// A table on a page, lines in a terminal.
pub(super) fn values(values: &[ValueAnatomy]) -> Vec<Block> {
    if values.is_empty() {
        return Vec::new();
    }
    vec![
        on_page(vec![value_table(values)]),
        in_terminal(value_lines(values)),
    ]
}

fn value_table(values: &[ValueAnatomy]) -> Block {
    let columns = columns("Column | Type | Bytes | Value");
    let rows = values.iter().map(|value| {
        let dropped = if value.dropped { " (dropped)" } else { "" };
        let type_name = value.type_name.as_deref().unwrap_or("unknown");
        let bytes = value.bytes.map(byte_range).unwrap_or_default();
        let mut cell = Words::default();
        if let Some(text) = &value.value {
            cell = cell.code(text).plain(" ");
        }
        if value.state != "value" {
            cell = cell.and(state_look(&value.state), &value.state).plain(" ");
        }
        Row::of(vec![
            format!("{}{dropped}", name(value)).into(),
            Words::default().quiet(type_name),
            Words::default().quiet(bytes),
            cell.quiet(value.note.as_deref().unwrap_or_default()),
        ])
    });
    Block::Table(Table::new(columns, rows))
}

fn value_lines(values: &[ValueAnatomy]) -> Vec<Block> {
    entries(
        12,
        values.iter().map(|value| (name(value), value_line(value))),
    )
}

fn name(value: &ValueAnatomy) -> String {
    let name = value.name.clone();
    name.unwrap_or_else(|| format!("column {}", value.number))
}

fn value_line(value: &ValueAnatomy) -> Words {
    let type_name = value.type_name.as_deref().unwrap_or("unknown type");
    let dropped = if value.dropped { ", dropped" } else { "" };
    let said = match (&value.value, value.state.as_str()) {
        (Some(text), "value") => format!(" = {text}"),
        (Some(text), state) => format!(" = {text} ({state})"),
        (None, state) => format!(": {state}"),
    };
    let note = value.note.as_ref().map(|note| format!("; {note}"));
    let bytes = value
        .bytes
        .map(|range| format!("  [{}]", byte_range(range)));
    words(format!("{type_name}{dropped}{said}"))
        .plain(note.unwrap_or_default())
        .plain(bytes.unwrap_or_default())
}

fn bytes(document: &InspectDocument, anatomy: &PageAnatomy, page: Option<Vec<u8>>) -> Block {
    match page {
        Some(page) => Block::Dump(Dump {
            ranges: anatomy.ranges.clone(),
            marks: finding::marks(&document.findings, page.len()),
            page,
        }),
        None => {
            let words = "The document's bytes of the page are no base64 of a page.";
            Block::Text(ParagraphStyle::Loud, words.into())
        }
    }
}
