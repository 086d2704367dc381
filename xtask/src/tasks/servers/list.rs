//! What is there: every folder of programs with the version that its server names.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::SUPPLIES;
use crate::shell;
use crate::task::Outcome;

pub(super) fn show(home: &Path) -> Outcome {
    for supply in SUPPLIES {
        let folder = home.join(supply.name);
        if !folder.join("complete").exists() {
            let how = if supply.on_request {
                ", made only by --only"
            } else {
                ""
            };
            println!("{:<16} not made{how}: {}", supply.name, supply.what);
            continue;
        }
        for programs in programs_below(&folder) {
            let mut ask = Command::new(programs.join("postgres"));
            let version = shell::capture(ask.arg("--version"))?;
            println!(
                "{:<16} {}: {}",
                supply.name,
                programs.display(),
                version.trim()
            );
        }
        if programs_below(&folder).is_empty() {
            println!("{:<16} {}: {}", supply.name, folder.display(), supply.what);
        }
    }
    Ok(())
}

/// The folders that hold `postgres`, at most six levels down.
fn programs_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = left.pop() {
        if folder.ends_with("bin") {
            if folder.join("postgres").is_file() {
                found.push(folder);
            }
        } else if depth < 6 {
            let entries = std::fs::read_dir(&folder).into_iter().flatten();
            let folders = entries.filter_map(|entry| {
                let entry = entry.ok()?;
                entry.file_type().ok()?.is_dir().then(|| entry.path())
            });
            left.extend(folders.map(|folder| (folder, depth + 1)));
        }
    }
    found.sort();
    found
}
