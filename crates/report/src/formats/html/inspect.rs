//! A page taken apart, as a page.

use std::io;

use pgclinic_model::document::{
    Field, Finding, InspectDocument, ItemAnatomy, PageAnatomy, ValueAnatomy,
};

use super::escape::Esc;
use super::{details, dump, finding, shell};
use crate::Options;
use crate::hex;
use crate::words::{byte_range, count};

pub(super) fn render(
    document: &InspectDocument,
    options: &Options<'_>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let anatomy = &document.anatomy;
    shell::open(&format!("Page {}", document.place), out)?;
    shell::kicker("pgclinic inspect", &document.target, out)?;
    title(document, out)?;
    let page = hex::decode(&anatomy.page).unwrap_or_default();
    strip(anatomy, page.len(), out)?;
    facts(document, out)?;
    details::not_checked(&document.coverage.not_checked, out)?;
    for one in &document.findings {
        finding::alone(one, out)?;
    }
    fields("Header", &anatomy.header, out)?;
    items(&anatomy.items, out)?;
    fields("Special space", &anatomy.special, out)?;
    bytes(anatomy, &page, &document.findings, out)?;
    let rules = document
        .findings
        .iter()
        .map(|finding| finding.rule.as_str());
    details::manuals(rules, options, out)?;
    shell::close(&document.tool, out)
}

fn title(document: &InspectDocument, out: &mut dyn io::Write) -> io::Result<()> {
    let block = document
        .place
        .block
        .map(|block| format!(", block {block}"))
        .unwrap_or_default();
    write!(
        out,
        "<section class=title>\n<h1>{}{block}</h1>\n<p class=extent>{} page</p>\n</section>\n",
        Esc(document.place.relation_name()),
        Esc(&document.anatomy.page_kind)
    )
}

/// The page drawn to scale.
fn strip(anatomy: &PageAnatomy, len: usize, out: &mut dyn io::Write) -> io::Result<()> {
    if len == 0 || anatomy.ranges.is_empty() {
        return Ok(());
    }
    write!(
        out,
        "<figure class=strip><svg viewBox=\"0 0 {len} 100\" preserveAspectRatio=none role=img \
         aria-label=\"the page drawn to scale\"><rect class=o width={len} height=100 />"
    )?;
    for range in &anatomy.ranges {
        let bytes = hex::clamp(range.bytes, len);
        write!(
            out,
            "<rect class={} x={} width={} height=100><title>{}, {}</title></rect>",
            dump::part_class(&range.part),
            bytes.start,
            bytes.len(),
            Esc(&range.label),
            byte_range(range.bytes)
        )?;
    }
    writeln!(
        out,
        "</svg><figcaption><span>byte 0</span><span>{len}</span></figcaption></figure>"
    )
}

fn facts(document: &InspectDocument, out: &mut dyn io::Write) -> io::Result<()> {
    let anatomy = &document.anatomy;
    let mut facts = vec![
        ("file", document.place.path.clone()),
        (
            "fork",
            document
                .place
                .fork
                .map(|fork| fork.to_string())
                .unwrap_or_default(),
        ),
        ("blocks in the fork", count(document.blocks)),
        ("checksum", anatomy.checksum.clone()),
        (
            "checksum computed",
            format!("0x{:04x}", anatomy.checksum_computed),
        ),
    ];
    facts.extend(shell::target_facts(&document.target));
    shell::facts(&facts, out)
}

fn fields(title: &str, fields: &[Field], out: &mut dyn io::Write) -> io::Result<()> {
    if fields.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section>\n<h2>{title}</h2>")?;
    field_table(fields, out)?;
    out.write_all(b"</section>\n")
}

fn field_table(fields: &[Field], out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(
        b"<div class=wide><table>\n<thead><tr><th>Field</th><th>Bytes</th><th>Value</th><th>Meaning</th></tr></thead>\n<tbody>\n",
    )?;
    for field in fields {
        let class = if field.fault.is_some() {
            " class=fault"
        } else {
            ""
        };
        write!(
            out,
            "<tr{class}><td><code>{}</code></td><td class=q>{}</td><td><code>{}</code></td><td>",
            Esc(&field.name),
            byte_range(field.bytes),
            Esc(&field.value)
        )?;
        write!(out, "{}", Esc(field.meaning.join(", ")))?;
        fault(field.fault.as_deref(), out)?;
        out.write_all(b"</td></tr>\n")?;
    }
    out.write_all(b"</tbody></table></div>\n")
}

fn fault(fault: Option<&str>, out: &mut dyn io::Write) -> io::Result<()> {
    match fault {
        Some(words) => write!(out, " <strong class=wrong>wrong: {}</strong>", Esc(words)),
        None => Ok(()),
    }
}

fn items(items: &[ItemAnatomy], out: &mut dyn io::Write) -> io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section>\n<h2>Line pointers and items</h2>\n<div class=tools data-filter=\".item\"></div>\n")?;
    for item in items {
        one_item(item, out)?;
    }
    out.write_all(b"</section>\n")
}

fn one_item(item: &ItemAnatomy, out: &mut dyn io::Write) -> io::Result<()> {
    let wrong = item.fault.is_some() || item.header.iter().any(|field| field.fault.is_some());
    let class = if wrong { "item fault" } else { "item" };
    write!(
        out,
        "<details class=\"{class}\"{}><summary><strong>{}</strong> <code>{}</code> <span>at {}, {} bytes</span>",
        if wrong { " open" } else { "" },
        item.item,
        Esc(&item.lp_flags),
        item.lp_off,
        item.lp_len
    )?;
    if let Some(state) = &item.state {
        write!(out, " <span class=state>{}</span>", Esc(state))?;
    }
    fault(item.fault.as_deref(), out)?;
    preview(&item.values, out)?;
    out.write_all(b"</summary>\n")?;
    if !item.header.is_empty() {
        field_table(&item.header, out)?;
    }
    values(&item.values, out)?;
    out.write_all(b"</details>\n")
}

/// The first values, so that a row is recognised while it is closed.
fn preview(values: &[ValueAnatomy], out: &mut dyn io::Write) -> io::Result<()> {
    let first = values.iter().filter(|value| !value.dropped).take(4);
    let first = first.map(|value| match &value.value {
        Some(text) => text.chars().take(24).collect::<String>(),
        None => value.state.clone(),
    });
    let first: Vec<_> = first.collect();
    if first.is_empty() {
        return Ok(());
    }
    write!(
        out,
        " <span class=preview>{}</span>",
        Esc(first.join(" | "))
    )
}

fn values(values: &[ValueAnatomy], out: &mut dyn io::Write) -> io::Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    out.write_all(
        b"<div class=wide><table>\n<thead><tr><th>Column</th><th>Type</th><th>Bytes</th><th>Value</th></tr></thead>\n<tbody>\n",
    )?;
    for value in values {
        let name = value
            .name
            .clone()
            .unwrap_or_else(|| format!("column {}", value.number));
        let dropped = if value.dropped { " (dropped)" } else { "" };
        write!(
            out,
            "<tr><td>{}{dropped}</td><td class=q>{}</td><td class=q>{}</td><td>",
            Esc(name),
            Esc(value.type_name.as_deref().unwrap_or("unknown")),
            value.bytes.map(byte_range).unwrap_or_default()
        )?;
        if let Some(text) = &value.value {
            write!(out, "<code>{}</code> ", Esc(text))?;
        }
        if value.state != "value" {
            write!(out, "<span class=state>{}</span> ", Esc(&value.state))?;
        }
        if let Some(note) = &value.note {
            write!(out, "<span class=q>{}</span>", Esc(note))?;
        }
        out.write_all(b"</td></tr>\n")?;
    }
    out.write_all(b"</tbody></table></div>\n")
}

fn bytes(
    anatomy: &PageAnatomy,
    page: &[u8],
    findings: &[Finding],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    out.write_all(b"<section>\n<h2>Bytes</h2>\n")?;
    if page.is_empty() {
        out.write_all(
            b"<p class=loud>The document's bytes of the page are no base64 of a page.</p>\n",
        )?;
    }
    let findings: Vec<_> = findings.iter().collect();
    dump::write(
        page,
        &anatomy.ranges,
        &dump::marks(&findings, page.len()),
        out,
    )?;
    out.write_all(b"</section>\n")
}
