//! What the files of a cluster seem to hold, as a file of statements: to be corrected and given
//! with `--schema`.

use std::fmt::Write;

use pgclinic_cluster::Cluster;
use pgclinic_model::Selection;
use pgclinic_model::plural;

use super::super::databases;
use super::{Described, Found, name_of};
use crate::schema::guess::statement;

const HEAD: &str = "\
-- What the rows of these files seem to hold, with the confidence of each guess. Correct types and give names, to tables and
-- columns, and hand the file to `pgclinic salvage TARGET --without-catalogs --schema FILE`. The line `-- file …` before a
-- statement says which file it describes; types that the statements need (enums, domains) can be made in front.
";

/// Statements for all files of rows in the databases of the selection.
pub fn guess_cluster(cluster: &Cluster, selection: &Selection) -> String {
    let mut text = HEAD.to_owned();
    for (database, _) in databases(cluster, selection) {
        let found = Found::among(cluster, database, selection, &|_| true);
        let described = found.describe(cluster, &[]);
        if described.is_empty() {
            continue;
        }
        // Writing to a String cannot fail.
        let name = name_of(cluster, database).escape_default().to_string();
        let _written = writeln!(text, "\n-- database {name}");
        for described in &described {
            add(described, cluster.build.block_size, &mut text);
        }
    }
    text
}

fn add(described: &Described, block_size: u32, text: &mut String) {
    let path = described.files.path(0);
    let pages = described.files.bytes() / u64::from(block_size);
    let confidence = described.given.as_ref().and_then(|given| given.confidence);
    let told = match confidence {
        Some(confidence) => format!("confidence {} %", (confidence * 100.0).floor()),
        None => "no layout fits its rows".to_owned(),
    };
    let toast = described.toast.as_ref();
    let toast = toast.map(|files| format!(", TOASTed values in {}", files.path(0)));
    let toast = toast.unwrap_or_default();
    let _written = writeln!(
        text,
        "\n-- file {path}: {pages}, {told}{toast}",
        pages = plural(pages, "page")
    );
    if confidence.is_some() {
        let name = format!("\"{}\"", described.files.filenode);
        text.push_str(&statement(&name, &described.guessed));
    }
}
