//! What a script costs the catalogs, as a page.

use std::io;

use pgclinic_model::document::CatalogCostDocument;

use super::escape::Esc;
use super::shell;
use crate::words::{bytes, count};

pub(super) fn render(document: &CatalogCostDocument, out: &mut dyn io::Write) -> io::Result<()> {
    shell::open("What tables cost the catalogs", out)?;
    writeln!(
        out,
        "<header class=kicker><p>pgclinic measure catalog-cost</p><p class=spec>{}</p></header>",
        Esc(&document.script)
    )?;
    shell::facts(
        &[
            ("PostgreSQL", document.server_version.clone()),
            ("rows a page", document.rows_per_page_of.clone()),
        ],
        out,
    )?;
    catalogs(document, out)?;
    statements(document, out)?;
    projection(document, out)?;
    shell::close(&document.tool, out)
}

/// Opens a table with these columns.
fn open(title: &str, columns: &[&str], out: &mut dyn io::Write) -> io::Result<()> {
    write!(
        out,
        "<section>\n<h2>{title}</h2>\n<div class=wide><table>\n<thead><tr>"
    )?;
    for column in columns {
        write!(out, "<th>{column}</th>")?;
    }
    out.write_all(b"</tr></thead>\n<tbody>\n")
}

fn close(out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(b"</tbody></table></div>\n</section>\n")
}

fn catalogs(document: &CatalogCostDocument, out: &mut dyn io::Write) -> io::Result<()> {
    open(
        "Rows of the whole script",
        &["Catalog", "Rows", "", "Rows a page"],
        out,
    )?;
    let most = document
        .catalogs
        .iter()
        .map(|own| own.rows)
        .max()
        .unwrap_or(1)
        .max(1);
    for own in &document.catalogs {
        let width = own.rows.max(0) as f64 * 300.0 / most as f64;
        writeln!(
            out,
            "<tr><td>{}</td><td class=n>{}</td><td><svg class=strip viewBox=\"0 0 300 12\" width=150 height=12 role=img aria-label=\"{} rows\"><rect class=l x=0 y=0 width={width:.0} height=12 /></svg></td><td class=n>{:.1}</td></tr>",
            Esc(&own.catalog),
            own.rows,
            own.rows,
            own.rows_per_page
        )?;
    }
    close(out)
}

fn statements(document: &CatalogCostDocument, out: &mut dyn io::Write) -> io::Result<()> {
    open(
        "Statement by statement",
        &["Line", "Statement", "Rows", "By catalog"],
        out,
    )?;
    for own in &document.statements {
        let by: Vec<String> = own
            .rows
            .iter()
            .map(|(catalog, rows)| format!("{catalog} {rows}"))
            .collect();
        writeln!(
            out,
            "<tr><td class=n>{}</td><td><code>{}</code></td><td class=n>{}</td><td>{}</td></tr>",
            own.line,
            Esc(&own.statement),
            own.rows.values().sum::<i64>(),
            Esc(by.join(", "))
        )?;
    }
    close(out)
}

fn projection(document: &CatalogCostDocument, out: &mut dyn io::Write) -> io::Result<()> {
    if document.projection.is_empty() {
        return Ok(());
    }
    open(
        "What the traffic leaves behind, if nobody cleans up",
        &["Traffic", "Times", "Catalog", "Rows", "Pages", "Size"],
        out,
    )?;
    for line in &document.projection {
        for own in &line.catalogs {
            writeln!(
                out,
                "<tr><td>{}</td><td class=n>{}</td><td>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td></tr>",
                Esc(&line.label),
                count(line.times),
                Esc(&own.catalog),
                count(own.rows),
                count(own.pages),
                bytes(own.bytes)
            )?;
        }
    }
    close(out)
}
