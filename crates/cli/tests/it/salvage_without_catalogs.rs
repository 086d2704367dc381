//! A cluster without catalogs: columns are guessed, corrected by a person, and the rows are those
//! of the tables.

use pgclinic_cluster::{Catalog, Cluster, RelKind, Relation};
use pgclinic_model::document::SalvageReport;

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use common::{pgclinic, text};
use pgclinic_salvage::encoded;
use pgclinic_servers::Checksums;
use pgclinic_testkit::{copy_of, open, seed, server};

/// The database of the tests, and its user's tables by file.
fn tables(cluster: &Cluster) -> (Catalog, BTreeMap<u32, Relation>) {
    let mut databases = cluster.databases.values();
    let clinic = databases.find(|known| known.name.as_deref() == Some("clinic"));
    let catalog = cluster.catalog(clinic.expect("clinic").oid);
    let own = |relation: &&Relation| {
        let of_the_system = ["pg_", "information_schema"]
            .iter()
            .any(|own| relation.schema.starts_with(own));
        relation.kind == RelKind::Table && !of_the_system
    };
    let tables = catalog.relations.values().filter(own);
    let tables = tables
        .map(|table| (table.filenode, table.clone()))
        .collect();
    (catalog, tables)
}

fn account(folder: &Path) -> SalvageReport {
    let account = fs::read(folder.join("salvage.json")).expect("an account");
    serde_json::from_slice(&account).expect("a document")
}

/// Lines of a file, sorted.
fn lines(path: &PathBuf) -> Vec<String> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines: Vec<String> = String::from_utf8_lossy(&bytes)
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

/// Empties `pg_class` of the database, and `pg_attribute` of all of them, whose catalogs have the
/// same columns: nothing tells names and columns any more.
fn lose_catalogs(pgdata: &Path, cluster: &Cluster, catalog: &Catalog) {
    for database in cluster.databases.keys() {
        let own = cluster.catalog(*database);
        let names: &[&str] = if *database == catalog.database {
            &["pg_class", "pg_attribute"]
        } else {
            &["pg_attribute"]
        };
        for name in names {
            let relation = own.by_name("pg_catalog", name).expect("a catalog");
            let path = pgdata.join(format!("base/{database}/{}", relation.filenode));
            fs::write(path, vec![0; 8192]).expect("emptied");
        }
    }
}

/// Without a word from anybody: every table is there with all of its rows, most of them to the
/// byte.
#[test]
fn guessed_tables_hold_the_rows() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let cluster = open(&copy.pgdata);
    let (catalog, known) = tables(&cluster);
    let folder = tempfile::tempdir().expect("a directory");
    let (whole, blind) = (folder.path().join("whole"), folder.path().join("blind"));
    let words = ["--format", "copy", "--database", "clinic"];
    let pgdata = text(&copy.pgdata);
    pgclinic(&[&["salvage", pgdata, "--to", text(&whole)][..], &words].concat()).exits(0);
    lose_catalogs(&copy.pgdata, &cluster, &catalog);
    let ran = pgclinic(&[&["salvage", pgdata, "--to", text(&blind)][..], &words].concat());
    assert!(ran.exit == 3 || ran.exit == 1, "{} {}", ran.exit, ran.err);

    let (known_well, account) = (account(&whole), account(&blind));
    let (mut all, mut same) = (0, 0);
    for (filenode, relation) in &known {
        let name = format!(
            "{}.{}.copy",
            encoded(&relation.schema),
            encoded(&relation.name)
        );
        let rows = lines(&whole.join("clinic").join(name));
        if rows.is_empty() {
            continue;
        }
        all += 1;
        let table = account.tables.iter().find(|table| table.oid == *filenode);
        // One that cannot be read has an account, and no file.
        let Some(table) = table.filter(|table| table.file.is_some()) else {
            let path = format!("/{filenode}");
            let mut told = account.not_salvaged.iter();
            assert!(
                // The indexes of pg_class still name the table, with its file.
                told.any(|told| told.what.ends_with(&path) || told.why.contains(&path)),
                "{} {filenode}",
                relation.name
            );
            continue;
        };
        // What pg_statistic and pg_depend still have of a column is no guess.
        let is_told = |note: &String| note.contains("guessed") || note.contains("type by");
        assert!(table.notes.iter().any(is_told), "{table:?}");
        assert_eq!(table.rows.written, rows.len() as u64, "{}", relation.name);
        let found = lines(&blind.join(table.file.as_ref().expect("a file")));
        same += u32::from(found == rows);
    }
    println!("{same} of {all} tables to the byte");
    assert!(all >= 30 && same * 100 >= all * 60, "{same} of {all}");
    let objects = &account.large_objects[0];
    assert_eq!(objects.objects, 12);
    let values = |account: &SalvageReport| {
        let sequences = account.sequences.iter();
        let values = sequences.map(|sequence| (sequence.last_value, sequence.is_called));
        values.collect::<BTreeSet<_>>()
    };
    assert_eq!(values(&account), values(&known_well));
}

/// The guess is a file that a person corrects: names and types are taken from it, for the table of
/// each file.
#[test]
fn corrections_are_taken_from_one_file() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let cluster = open(&copy.pgdata);
    let (catalog, known) = tables(&cluster);
    let folder = tempfile::tempdir().expect("a directory");
    let base = copy.pgdata.join(format!("base/{}", catalog.database));
    // Nothing is left but the folder of the database, and of that no catalog.
    let left = folder.path().join("left");
    fs::create_dir(&left).expect("a directory");
    for entry in fs::read_dir(&base).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let number: u32 = name
            .split(['_', '.'])
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        if number >= 16384 {
            fs::copy(entry.path(), left.join(name)).expect("copied");
        }
    }
    let docs = known
        .values()
        .find(|table| table.name == "docs")
        .expect("docs");
    let guess = pgclinic(&["salvage", text(&left), "--guess"]).exits(0).out;
    let head = format!("-- file {}: ", docs.filenode);
    let own = guess
        .split("\n-- file ")
        .find(|part| head.ends_with(&format!("{}: ", part.split(':').next().unwrap_or_default())));
    let own = own.unwrap_or_else(|| panic!("{guess}"));
    assert!(
        own.contains("confidence") && own.contains("TOASTed values in "),
        "{own}"
    );

    let columns = docs.columns.as_ref().expect("columns");
    let columns: Vec<String> = columns
        .iter()
        .map(|column| {
            format!(
                "\"{}\" {}",
                column.name,
                catalog.type_info(column.type_oid).name
            )
        })
        .collect();
    let corrected = format!(
        "{}\n-- file {}: corrected\nCREATE TABLE library.documents ({});\n",
        "-- made by hand",
        docs.filenode,
        columns.join(", ")
    );
    let schema = folder.path().join("corrected.sql");
    fs::write(&schema, corrected).expect("written");
    let (whole, out) = (folder.path().join("whole"), folder.path().join("out"));
    let one = ["--format", "copy", "--relation", "public.docs"];
    pgclinic(
        &[
            &["salvage", text(&copy.pgdata), "--to", text(&whole)][..],
            &one,
        ]
        .concat(),
    )
    .exits(0);
    let words = [
        "--format",
        "copy",
        "--without-catalogs",
        "--schema",
        text(&schema),
    ];
    let ran = pgclinic(&[&["salvage", text(&left), "--to", text(&out)][..], &words].concat());
    assert!(ran.exit == 3 || ran.exit == 1, "{} {}", ran.exit, ran.err);
    let account = account(&out);
    let table = account
        .tables
        .iter()
        .find(|table| table.table == "documents");
    let table = table.unwrap_or_else(|| panic!("{:?}", account.not_salvaged));
    assert_eq!(table.schema, "library");
    let found = lines(&out.join(table.file.as_ref().expect("a file")));
    assert!(found == lines(&whole.join("clinic/public.docs.copy")));
}
