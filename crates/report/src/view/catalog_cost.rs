//! What a script costs the catalogs.

use pgclinic_model::document::CatalogCostDocument;
use pgclinic_model::{noun_of, plural};

use super::{
    Block, Frame, Look, Medium, Part, Row, Table, Tone, Verdict, View, Words, columns, in_terminal,
    left, meaning, number, on_page, right, text, words,
};
use crate::measured::figure as short;
use crate::words::bytes;

/// Catalogs that have a column of their own in a terminal.
const COUNTED: [&str; 3] = ["pg_attribute", "pg_class", "pg_attrdef"];

pub(super) fn view(document: &CatalogCostDocument) -> View {
    let rows: i64 = document.catalogs.iter().map(|own| own.rows).sum();
    let (script, version) = (&document.script, &document.server_version);
    let (number, catalogs) = (short(rows as f64), document.catalogs.len());
    let noun = noun_of(rows.unsigned_abs(), "row");
    let extent = format!(
        "{script} writes {number} {noun} into {} of PostgreSQL {version}",
        plural(catalogs, "catalog")
    );
    let verdict = Verdict::new(Tone::Good, "COUNTED", extent)
        .about(crate::words::run(&document.tool))
        .meaning(meaning::catalog_cost())
        .in_lines();
    let mut blocks = vec![Block::Verdict(verdict)];
    blocks.extend(part("Rows of the whole script", self::catalogs(document)));
    let of = &document.rows_per_page_of;
    blocks.push(text(format!("rows a page: {of}")));
    blocks.extend(part("Statement by statement", statements(document)));
    blocks.extend(projection(document));
    View::new(
        "What tables cost the catalogs",
        "pgclinic measure catalog-cost",
        &document.script,
        &document.tool,
        blocks,
    )
}

fn part(title: &str, table: Table) -> Vec<Block> {
    Part::new(Frame::PageSection, title).unless_empty(table.unless_empty())
}

fn catalogs(document: &CatalogCostDocument) -> Table {
    let columns = columns("Catalog | Rows > | ( ) | Rows a page >");
    let most = document.catalogs.iter().map(|own| own.rows).max();
    let most = most.unwrap_or(1).max(1);
    let rows = document.catalogs.iter().map(|own| {
        let share = own.rows.max(0) as f64 / most as f64;
        Row::of(vec![
            words(&own.catalog),
            own.rows.to_string().into(),
            Words::default().and(Look::Share(share), plural(own.rows, "row")),
            format!("{:.1}", own.rows_per_page).into(),
        ])
    });
    Table::new(columns, rows)
}

fn statements(document: &CatalogCostDocument) -> Table {
    let mut columns = columns("Line > | Statement");
    columns.extend(COUNTED.map(|name| right(name).only(Medium::Terminal)));
    columns.push(right("Rows").short("all"));
    columns.push(left("By catalog").only(Medium::Page));
    let rows = document.statements.iter().map(|own| {
        let of = |catalog: &str| own.rows.get(catalog).copied().unwrap_or(0);
        let by = own.rows.iter();
        let by: Vec<String> = by.map(|(name, rows)| format!("{name} {rows}")).collect();
        let mut cells = vec![
            words(own.line.to_string()),
            Words::default().code(&own.statement),
        ];
        cells.extend(COUNTED.map(|name| words(of(name).to_string())));
        cells.push(own.rows.values().sum::<i64>().to_string().into());
        cells.push(by.join(", ").into());
        Row::of(cells)
    });
    Table::new(columns, rows)
}

/// On a page catalog by catalog; a terminal has pg_attribute, the largest, and the sum.
fn projection(document: &CatalogCostDocument) -> Vec<Block> {
    let rows = document.projection.iter().flat_map(|line| {
        line.catalogs.iter().map(|own| {
            Row::of(vec![
                words(&line.label),
                number(line.times),
                words(&own.catalog),
                number(own.rows),
                number(own.pages),
                bytes(own.bytes).into(),
            ])
        })
    });
    let columns = columns("Traffic | Times > | Catalog | Rows > | Pages > | Size >");
    let page = Table::new(columns, rows).unless_empty();
    let title = "What the traffic leaves behind, if nobody cleans up";
    let mut blocks = vec![on_page(page), in_terminal(sums(document).unless_empty())];
    blocks.push(text(
        "what the catalogs grow by, without their indexes, if nobody cleans up",
    ));
    if document.projection.is_empty() {
        Vec::new()
    } else {
        vec![Part::new(Frame::PageSection, title).of(blocks)]
    }
}

fn sums(document: &CatalogCostDocument) -> Table {
    let rows = document.projection.iter().map(|line| {
        let mut catalogs = line.catalogs.iter();
        let own = catalogs.find(|own| own.catalog == COUNTED[0]);
        let all: u64 = line.catalogs.iter().map(|own| own.bytes).sum();
        Row::of(vec![
            words(&line.label),
            number(line.times),
            own.map(|own| number(own.rows)).unwrap_or_default(),
            own.map(|own| number(own.pages)).unwrap_or_default(),
            own.map(|own| bytes(own.bytes).into()).unwrap_or_default(),
            bytes(all).into(),
        ])
    });
    let columns =
        columns("Traffic | Times > | pg_attribute rows > | Pages > | Size > | All catalogs >");
    Table::new(columns, rows)
}
