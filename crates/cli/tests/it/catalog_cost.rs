//! What the tables of a script cost the catalogs, on a real server.

use pgclinic_model::document::CatalogCostDocument;

use crate::common;

use std::path::Path;

use common::{pgclinic, text};

/// 31 columns, 27 defaults, a sequence, a primary key, four indexes.
fn reporting() -> String {
    let months = (1..=12).map(|month| {
        format!(", orders_2023{month:02}_count_of_orders integer DEFAULT 0, orders_2023{month:02}_total_price numeric DEFAULT 0")
    });
    let months: String = months.collect();
    format!(
        "-- a report; of one client\n\nCREATE TEMP TABLE pivot_temp_table (id serial PRIMARY KEY, inserted_at timestamp DEFAULT current_timestamp, \
         client_id integer, name text NOT NULL, address text NOT NULL, loyalty_program boolean DEFAULT false, \
         loyalty_program_start timestamp{months});\n\
         CREATE INDEX i1 ON pivot_temp_table (client_id);\nCREATE INDEX i2 ON pivot_temp_table (name);\n\
         CREATE INDEX i3 ON pivot_temp_table (loyalty_program);\nCREATE INDEX i4 ON pivot_temp_table (loyalty_program_start);\n\
         SELECT 'costs nothing; at all';\n"
    )
}

fn write(folder: &Path, name: &str, words: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, words).expect("a file");
    text(&file).to_owned()
}

#[test]
fn the_reporting_table_costs_what_was_published() {
    let folder = tempfile::tempdir().expect("a directory");
    let script = write(folder.path(), "reporting.sql", &reporting());
    let traffic = write(folder.path(), "traffic.csv", "reports,rows\na day,1000\n");
    let words = [
        "measure",
        "catalog-cost",
        &script,
        "--traffic",
        &traffic,
        "--rows-per-page",
        "23",
        "--format",
        "json",
    ];
    let ran = pgclinic(&words).exits(0);
    let document: CatalogCostDocument = serde_json::from_str(&ran.out).expect("a document");
    let rows = |name: &str| {
        let own = document.catalogs.iter().find(|own| own.catalog == name);
        own.map(|own| own.rows)
    };
    assert_eq!(
        ["pg_attribute", "pg_attrdef", "pg_class"].map(rows),
        [Some(62), Some(27), Some(9)]
    );
    let lines: Vec<_> = document
        .statements
        .iter()
        .map(|own| (own.line, own.rows.is_empty()))
        .collect();
    assert_eq!(
        lines,
        [
            (3, false),
            (4, false),
            (5, false),
            (6, false),
            (7, false),
            (8, true)
        ]
    );
    let day = document.projection.first().expect("a line");
    let attribute = day
        .catalogs
        .iter()
        .find(|own| own.catalog == "pg_attribute")
        .expect("a catalog");
    assert_eq!((attribute.rows, attribute.pages), (62_000, 2_696));
}

#[test]
fn a_script_that_does_not_parse_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let script = write(
        folder.path(),
        "wrong.sql",
        "SELECT 1;\n\nCREATE TABEL t (a int);\n",
    );
    let ran = pgclinic(&["measure", "catalog-cost", &script]).exits(2);
    assert!(
        ran.err.contains("wrong.sql, line 3: ") && ran.err.contains("syntax error"),
        "{}",
        ran.err
    );
    let script = write(folder.path(), "empty.sql", "-- nothing\n");
    let ran = pgclinic(&["measure", "catalog-cost", &script]).exits(2);
    assert!(ran.err.contains("holds no statement"), "{}", ran.err);
}
