//! What is there: what was made by name, then every server that pgclinic sees.

use std::path::Path;

use super::SUPPLIES;
use crate::shell;
use crate::task::Outcome;

pub(super) fn show(home: &Path) -> Outcome {
    for supply in SUPPLIES {
        let folder = home.join(supply.name);
        let state = if folder.join("complete").exists() {
            folder.display().to_string()
        } else if supply.on_request {
            format!("not made; --only {} makes it", supply.name)
        } else {
            "not made".into()
        };
        println!("{:<16} {}: {state}", supply.name, supply.what);
    }
    println!();
    let words = ["run", "-q", "-p", "pgclinic-cli", "--", "lab", "servers"];
    shell::run(&mut shell::command("cargo", &words))
}
