//! A page taken apart, as text.

use std::io;

use pgclinic_model::document::{Field, InspectDocument, ItemAnatomy, PageAnatomy, ValueAnatomy};

use super::check;
use super::sheet::{Ink, Sheet};
use crate::hex::{self, Hex, LINE_BYTES, Line};
use crate::words::{self, byte_range, clean, plural};

/// Columns of offset, bytes and letters in a line of the dump.
const DUMP_COLUMNS: usize = 61;

pub(super) fn render(document: &InspectDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    first_lines(document, sheet)?;
    for finding in &document.findings {
        check::finding_alone(finding, sheet)?;
    }
    let anatomy = &document.anatomy;
    fields("Header", &anatomy.header, sheet)?;
    items(anatomy, sheet)?;
    fields("Special space", &anatomy.special, sheet)?;
    dump(anatomy, sheet)
}

fn first_lines(document: &InspectDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let anatomy = &document.anatomy;
    let name = sheet.ink(Ink::Strong, &clean(&document.place.to_string()));
    let kind = clean(&anatomy.page_kind);
    sheet.text(
        0,
        &format!(
            "{name}: {kind} page, one of {}",
            plural(document.blocks, "block")
        ),
    )?;
    let ink = match anatomy.checksum.as_str() {
        "wrong" => Ink::Bad,
        "right" => Ink::Good,
        _ => Ink::Warn,
    };
    let checksum = sheet.ink(ink, &clean(&anatomy.checksum));
    let computed = anatomy.checksum_computed;
    sheet.text(
        2,
        &format!("checksum {checksum} (these bytes should carry 0x{computed:04x})"),
    )?;
    let spec = clean(&document.target.spec);
    sheet.text(
        2,
        &format!("{spec}: {}", clean(&words::target(&document.target))),
    )?;
    for entry in &document.coverage.not_checked {
        let word = sheet.ink(Ink::Warn, "NOT CHECKED");
        sheet.text(
            2,
            &format!("{word}  {}: {}", clean(&entry.what), clean(&entry.why)),
        )?;
    }
    Ok(())
}

fn fields(title: &str, fields: &[Field], sheet: &mut Sheet<'_>) -> io::Result<()> {
    if fields.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, title);
    sheet.raw(&title)?;
    let longest = fields
        .iter()
        .map(|field| field.name.chars().count())
        .max()
        .unwrap_or(0);
    for field in fields {
        let name = clean(&field.name);
        let meaning = clean(&field.meaning.join(", "));
        let meaning = if meaning.is_empty() {
            meaning
        } else {
            format!("  {meaning}")
        };
        let words = format!(
            "{}{meaning}  [{}]",
            clean(&field.value),
            byte_range(field.bytes)
        );
        sheet.entry(2, &name, longest.min(24) + 2, &words)?;
        fault(4, field.fault.as_deref(), sheet)?;
    }
    Ok(())
}

fn fault(indent: usize, fault: Option<&str>, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let Some(fault) = fault else { return Ok(()) };
    let words = sheet.ink(Ink::Bad, &format!("WRONG: {}", clean(fault)));
    sheet.text(indent, &words)
}

fn items(anatomy: &PageAnatomy, sheet: &mut Sheet<'_>) -> io::Result<()> {
    if anatomy.items.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, "Line pointers and items");
    sheet.raw(&title)?;
    for item in &anatomy.items {
        item_anatomy(item, sheet)?;
    }
    Ok(())
}

fn item_anatomy(item: &ItemAnatomy, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let number = sheet.ink(Ink::Strong, &format!("item {}", item.item));
    let flags = clean(&item.lp_flags);
    let state = item
        .state
        .as_deref()
        .map(|state| format!("; {}", clean(state)));
    sheet.text(
        2,
        &format!(
            "{number}  at {}: {flags}, lp_off {}, lp_len {}{}",
            item.at,
            item.lp_off,
            item.lp_len,
            state.unwrap_or_default()
        ),
    )?;
    fault(4, item.fault.as_deref(), sheet)?;
    if !item.header.is_empty() {
        let fields = item.header.iter().map(|field| {
            let meaning = field.meaning.join(" ");
            let meaning = if meaning.is_empty() {
                meaning
            } else {
                format!(" ({meaning})")
            };
            clean(&format!("{} {}{meaning}", field.name, field.value))
        });
        sheet.text(4, &fields.collect::<Vec<_>>().join(", "))?;
    }
    for field in &item.header {
        let words = field
            .fault
            .as_ref()
            .map(|words| named_fault(&field.name, words));
        fault(4, words.as_deref(), sheet)?;
    }
    for value in &item.values {
        value_anatomy(value, sheet)?;
    }
    Ok(())
}

/// The fault with the field's name, once.
fn named_fault(name: &str, fault: &str) -> String {
    if fault.starts_with(name) {
        fault.to_owned()
    } else {
        format!("{name}: {fault}")
    }
}

fn value_anatomy(value: &ValueAnatomy, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let name = value
        .name
        .clone()
        .unwrap_or_else(|| format!("column {}", value.number));
    let mut words = clean(value.type_name.as_deref().unwrap_or("unknown type"));
    if value.dropped {
        words.push_str(", dropped");
    }
    match (&value.value, value.state.as_str()) {
        (Some(text), "value") => words.push_str(&format!(" = {}", clean(text))),
        (Some(text), state) => words.push_str(&format!(" = {} ({})", clean(text), clean(state))),
        (None, state) => words.push_str(&format!(": {}", clean(state))),
    }
    if let Some(note) = &value.note {
        words.push_str(&format!("; {}", clean(note)));
    }
    if let Some(range) = value.bytes {
        words.push_str(&format!("  [{}]", byte_range(range)));
    }
    sheet.entry(4, &clean(&name), 12, &words)
}

fn dump(anatomy: &PageAnatomy, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, "Bytes");
    sheet.raw(&title)?;
    let Some(page) = hex::decode(&anatomy.page) else {
        return sheet.text(
            2,
            "the document's bytes of the page are no base64 of a page",
        );
    };
    let hex = Hex::new(&page, &anatomy.ranges);
    for line in hex.lines(&|_| false) {
        match line {
            Line::Bytes(line) => {
                let labels = hex.beginnings(line.clone()).join(", ");
                let bytes = page.get(line.clone()).unwrap_or_default();
                dump_line(line.start, bytes, &clean(&labels), sheet)?;
            }
            Line::Zeros(line) => {
                let total = plural(words::count_of(line.len()), "byte");
                sheet.raw(&format!("{:04x}  {total} of zeros", line.start))?;
            }
        }
    }
    Ok(())
}

fn dump_line(at: usize, bytes: &[u8], labels: &str, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let mut columns = format!("{at:04x}  ");
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 && index % 4 == 0 {
            columns.push(' ');
        }
        columns.push_str(&format!("{byte:02x}"));
    }
    let letters: String = bytes.iter().copied().map(hex::letter).collect();
    let line = format!("{columns:<41}  {letters:<LINE_BYTES$}");
    if sheet.width() < DUMP_COLUMNS + 16 {
        return sheet.raw(&format!("{line}  {labels}"));
    }
    sheet.aside(&line, DUMP_COLUMNS, labels)
}
