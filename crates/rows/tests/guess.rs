//! Columns guessed from rows alone, held to what the catalogs say: the share that is right stands in the guide.

use pgclinic_rows::guess_columns;
use pgclinic_servers::Checksums;
use pgclinic_testkit::{open, seed, server};

use pgclinic_cluster::{Catalog, Cluster, Column, RelKind, Relation};

/// Types that look alike in a row are one.
fn family(name: &str) -> &str {
    match name {
        "int4" | "integer" | "oid" | "xid" | "cid" | "regclass" | "regtype" | "regproc" => {
            "integer"
        }
        "int8" | "bigint" | "money" | "xid8" | "pg_lsn" | "time" => "bigint",
        "int2" | "smallint" => "smallint",
        "bool" | "boolean" => "boolean",
        "float4" | "real" => "real",
        "float8" | "double precision" => "double precision",
        "timestamp" | "timestamptz" | "timestamp with time zone" => "timestamp",
        "text" | "varchar" | "bpchar" | "json" | "xml" | "citext" => "text",
        "_int4" | "integer[]" => "integer[]",
        "_text" | "text[]" | "_varchar" => "text[]",
        other => other,
    }
}

/// Length and alignment as far as walking a row goes.
fn layout(name: &str) -> &'static str {
    match name {
        "boolean" | "\"char\"" => "1",
        "smallint" => "2",
        "integer" | "date" | "real" => "4",
        "bigint" | "timestamp" | "double precision" => "8",
        "uuid" => "16",
        "interval" => "16 by 8",
        "name" => "64",
        _ => "varlena",
    }
}

fn layout_of(column: &Column) -> &'static str {
    match (column.layout.attlen, column.layout.attalign) {
        (1, _) => "1",
        (2, _) => "2",
        (4, _) => "4",
        (8, _) => "8",
        (16, 1) => "16",
        (16, _) => "16 by 8",
        (64, _) => "64",
        (-1, _) => "varlena",
        _ => "other",
    }
}

#[derive(Default, Debug)]
struct Score {
    tables: u32,
    counted: u32,
    columns: u32,
    seen: u32,
    layouts: u32,
    types: u32,
}

fn hold(cluster: &Cluster, catalog: &Catalog, relation: &Relation, score: &mut Score) {
    let mut files = cluster
        .homes
        .iter()
        .filter_map(|home| cluster.files(home).ok())
        .flatten();
    let own = files.find(|files| {
        files.filenode == relation.filenode
            && files.fork == pgclinic_format::Fork::Main
            && files.home.database == catalog.database
    });
    let (Some(own), Some(columns)) = (own, &relation.columns) else {
        return;
    };
    let Some(guessed) = guess_columns(cluster, &own) else {
        return;
    };
    score.tables += 1;
    score.columns += u32::try_from(columns.len()).expect("few");
    score.counted += u32::from(guessed.len() == columns.len());
    let told = columns.iter().zip(&guessed);
    let told = told.filter(|(column, guess)| !column.dropped && guess.confidence > 0.0);
    for (column, guess) in told {
        score.seen += 1;
        let truth = catalog.type_info(column.type_oid);
        let (truth, found) = (family(&truth.name), family(guess.type_name));
        score.layouts += u32::from(layout_of(column) == layout(found));
        score.types += u32::from(truth == found);
    }
}

fn scored(takes: &dyn Fn(&Relation) -> bool) -> Score {
    let cluster = open(&seed(&server(15), Checksums::On).pgdata);
    let mut databases = cluster.databases.values();
    let clinic = databases.find(|known| known.name.as_deref() == Some("clinic"));
    let catalog = cluster.catalog(clinic.expect("clinic").oid);
    let mut score = Score::default();
    for relation in catalog.relations.values() {
        let of_the_system = ["pg_", "information_schema"]
            .iter()
            .any(|own| relation.schema.starts_with(own));
        if relation.kind == RelKind::Table && !of_the_system && takes(relation) {
            hold(&cluster, &catalog, relation, &mut score);
        }
    }
    score
}

#[test]
fn most_columns_are_guessed_right() {
    let score = scored(&|relation| relation.name != "all_types");
    println!("{score:?}");
    assert!(
        score.tables >= 30 && score.counted == score.tables,
        "{score:?}"
    );
    assert!(score.layouts * 100 >= score.seen * 97, "{score:?}");
    assert!(score.types * 100 >= score.seen * 90, "{score:?}");
}

/// Of a table with a column of every built-in type, some of which are not tried, nothing is guessed rather than something wrong.
#[test]
fn what_no_layout_fits_is_not_guessed() {
    let score = scored(&|relation| relation.name == "all_types");
    assert_eq!(score.tables, 0, "{score:?}");
}
