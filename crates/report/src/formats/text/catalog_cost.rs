//! What a script costs the catalogs, as text.

use std::io;

use pgclinic_model::document::CatalogCostDocument;

use super::drill::table;
use super::sheet::{Ink, Sheet};
use crate::measured::figure as short;
use crate::words::{bytes, clean, count};

/// Catalogs that have a column of their own in the projection.
const PROJECTED: [&str; 3] = ["pg_attribute", "pg_class", "pg_attrdef"];

pub(super) fn render(document: &CatalogCostDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let rows: i64 = document.catalogs.iter().map(|own| own.rows).sum();
    let word = sheet.ink(Ink::Good, "COUNTED");
    let line = format!(
        "{word}  {} writes {} rows into {} catalogs of PostgreSQL {}",
        clean(&document.script),
        short(rows as f64),
        document.catalogs.len(),
        clean(&document.server_version)
    );
    sheet.text(0, &line)?;
    let rows = document.catalogs.iter().map(|own| {
        vec![
            clean(&own.catalog),
            own.rows.to_string(),
            format!("{:.1}", own.rows_per_page),
        ]
    });
    table(
        &["catalog", "rows", "rows a page"],
        &[],
        rows.collect(),
        sheet,
    )?;
    let words = format!("rows a page: {}", clean(&document.rows_per_page_of));
    sheet.text(2, &words)?;
    statements(document, sheet)?;
    projection(document, sheet)
}

fn statements(document: &CatalogCostDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let rows = document.statements.iter().map(|own| {
        let of = |catalog: &str| own.rows.get(catalog).copied().unwrap_or(0).to_string();
        let [attribute, class, attrdef] = PROJECTED.map(of);
        let all: i64 = own.rows.values().sum();
        vec![
            own.line.to_string(),
            clean(&own.statement),
            attribute,
            class,
            attrdef,
            all.to_string(),
        ]
    });
    let header = [
        "line",
        "statement",
        "pg_attribute",
        "pg_class",
        "pg_attrdef",
        "all",
    ];
    table(&header, &[], rows.collect(), sheet)
}

fn projection(document: &CatalogCostDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    if document.projection.is_empty() {
        return Ok(());
    }
    let rows = document.projection.iter().map(|line| {
        let own = line
            .catalogs
            .iter()
            .find(|own| own.catalog == "pg_attribute");
        let all: u64 = line.catalogs.iter().map(|own| own.bytes).sum();
        vec![
            clean(&line.label),
            count(line.times),
            own.map_or_else(String::new, |own| count(own.rows)),
            own.map_or_else(String::new, |own| count(own.pages)),
            own.map_or_else(String::new, |own| bytes(own.bytes)),
            bytes(all),
        ]
    });
    let header = [
        "traffic",
        "times",
        "pg_attribute rows",
        "pages",
        "size",
        "all catalogs",
    ];
    table(&header, &[], rows.collect(), sheet)?;
    sheet.text(
        2,
        "what the catalogs grow by, without their indexes, if nobody cleans up",
    )
}
