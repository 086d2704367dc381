//! Writes a page of every kind into a folder, to be looked at.

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

fn main() -> io::Result<()> {
    let folder = env::args().nth(1).unwrap_or_else(|| ".".into());
    let samples = [
        ("healthy", common::healthy()),
        ("damaged", common::damaged()),
        ("incomplete", common::incomplete()),
        ("inspect", common::inspect()),
        ("drill", common::drill()),
        ("blind", common::blind()),
        ("experiment", common::experiment()),
        ("salvaged", common::salvaged()),
    ];
    for (name, document) in samples {
        let page = common::render("html", &document);
        fs::write(Path::new(&folder).join(format!("{name}.html")), page)?;
    }
    Ok(())
}
