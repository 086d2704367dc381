//! Writes a page of every kind into a folder, to be looked at, and one of each saved document that
//! is named.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed"
)]
#[path = "../tests/it/common/mod.rs"]
mod common;

use std::path::Path;
use std::{env, fs, io};

use serde_json::Value;

fn main() -> io::Result<()> {
    let mut words = env::args().skip(1);
    let folder = words.next().unwrap_or_else(|| ".".into());
    let folder = Path::new(&folder);
    for (name, document) in common::samples() {
        write(folder, name, &document)?;
    }
    for path in words {
        let text = fs::read(&path)?;
        let document: Value = serde_json::from_slice(&text).map_err(io::Error::other)?;
        let name = Path::new(&path).file_stem().unwrap_or_default();
        write(folder, &name.to_string_lossy(), &document)?;
    }
    Ok(())
}

fn write(folder: &Path, name: &str, document: &Value) -> io::Result<()> {
    let is_measured = document["schema"] == "pgclinic.measure/1";
    let figures = is_measured.then(|| common::figure_kinds(document));
    let page = common::render_figures("html", document, &figures.unwrap_or_default());
    fs::write(folder.join(format!("{name}.html")), page)
}
