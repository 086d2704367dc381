//! Reports that lie beside the one that is written, for its page to lead to.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use pgclinic_report::{Document, Neighbour};

use crate::destination::folder_of;

/// Of a page so much is read: it begins with what it is.
const HEAD_BYTES: u64 = 4096;
/// Of a directory with more entries the rest is passed over.
const ENTRIES_MAX: usize = 1000;
/// Pages that are left in directories of their own.
const INNER_PAGES: [&str; 2] = ["salvage.html", "report.html"];

/// In the directory of `page`, in those that it holds, and above where the page is the one of its
/// directory; by their names.
pub(crate) fn beside(page: &Path) -> Vec<Neighbour> {
    let folder = folder_of(page);
    let own = page.file_name().map(|name| name.to_string_lossy());
    let own = own.unwrap_or_default();
    let mut paths = pages_in(folder, "");
    if INNER_PAGES.contains(&own.as_ref()) {
        paths.extend(pages_in(&folder.join(".."), "../"));
    }
    paths.retain(|path| *path != own);
    paths.sort();
    let found = paths
        .iter()
        .filter_map(|path| Neighbour::of_page(path, &head_of(&folder.join(path))?));
    found.collect()
}

/// The document of an experiment whose raw files do not all lie beside the page, with those that
/// do; nothing where every link leads somewhere.
pub(crate) fn without_dead_links(document: &Document, page: Option<&Path>) -> Option<Document> {
    let Document::Experiment(document) = document else {
        return None;
    };
    let folder = page.map_or(Path::new("."), folder_of);
    let is_there = |file: &String| folder.join(file).is_file();
    if document
        .runs
        .iter()
        .flat_map(|run| &run.files)
        .all(is_there)
    {
        return None;
    }
    let mut own = document.clone();
    for run in &mut own.runs {
        run.files.retain(is_there);
    }
    Some(Document::Experiment(own))
}

/// Paths from the page, with what leads from it to this directory.
fn pages_in(folder: &Path, way: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths = Vec::new();
    for entry in entries.take(ENTRIES_MAX).flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type() {
            Ok(kind) if kind.is_file() && name.ends_with(".html") => {
                paths.push(format!("{way}{name}"));
            }
            Ok(kind) if kind.is_dir() && way.is_empty() => {
                paths.extend(INNER_PAGES.map(|page| format!("{name}/{page}")));
            }
            _ => {}
        }
    }
    paths
}

fn head_of(page: &Path) -> Option<String> {
    if !page.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut head = Vec::new();
    let file = File::open(page).ok()?;
    file.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(String::from_utf8_lossy(&head).into_owned())
}
