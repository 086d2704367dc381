//! `pgclinic salvage FOLDER`: a data directory, or folders of databases that are left of one.

use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::{Build, Cluster, DatabaseDirectory, OpenOptions, RelationFileName};
use pgclinic_format::Layout;
use pgclinic_format::oid::DEFAULT_TABLESPACE;
use pgclinic_salvage::guess_cluster;
use pgclinic_source::{DataDirectory, EntryKind, Source};

use super::Arguments;
use super::file::MAJOR;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::target::{self, Opening};

/// Files of a directory that are examined for the size of a page.
const FILES_TRIED: usize = 50;

/// Opens a data directory; what is left of one is taken for as much as it is.
pub(super) fn open(path: &Path, opening: Opening<'_>) -> Result<Cluster, Failure> {
    let has = |name: &str| path.join(name).exists();
    let is_cluster =
        has("global/pg_control") || (has("PG_VERSION") && (has("base") || has("global")));
    if !path.is_dir() || is_cluster || target::archive_of(path).is_some() {
        return target::open_cluster(path, opening);
    }
    let source: Arc<dyn Source> = Arc::new(DataDirectory::open(path)?);
    let homes = homes(source.as_ref(), path)?;
    if homes.is_empty() {
        // Says what a data directory would hold.
        return target::open_cluster(path, opening);
    }
    let (layout, build) = (
        layout_of(source.as_ref(), &homes),
        build_of(source.as_ref(), &homes),
    );
    let options = OpenOptions::of(source).without_cluster(layout, build, homes);
    Ok(Cluster::open(options)?)
}

/// `base/5` and its like, `5` and its like, or the directory itself where relation files stand in
/// it.
fn homes(source: &dyn Source, path: &Path) -> Result<Vec<DatabaseDirectory>, Failure> {
    let home = |database, folder| DatabaseDirectory {
        tablespace: DEFAULT_TABLESPACE,
        database,
        folder,
    };
    for above in ["base", ""] {
        let entries = match source.list(above) {
            Ok(entries) => entries,
            Err(error) if error.is_absent() && !above.is_empty() => continue,
            Err(error) => return Err(error.into()),
        };
        let slash = if above.is_empty() { "" } else { "/" };
        let folders = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Folder);
        let numbered = folders.filter_map(|entry| {
            let number = entry.name.parse::<u32>().ok()?;
            Some(home(number, format!("{above}{slash}{}", entry.name)))
        });
        let found: Vec<DatabaseDirectory> = numbered.collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let files = source.list("")?;
    let is_relation = |name: &str| RelationFileName::parse(name).is_some();
    let has_files = files.iter().any(|entry| is_relation(&entry.name));
    let name = path.canonicalize().ok();
    let name = name.as_deref().and_then(Path::file_name);
    let number = name.and_then(|name| name.to_string_lossy().parse().ok());
    let own = home(number.unwrap_or(1), String::new());
    Ok(has_files.then_some(own).into_iter().collect())
}

/// Of the major that stands in the directory of a database, else the newest.
fn layout_of(source: &dyn Source, homes: &[DatabaseDirectory]) -> &'static Layout {
    let written = homes.iter().find_map(|home| {
        let mut text = [0; 8];
        let path = within(home, "PG_VERSION");
        let read = source.read_at(&path, 0, &mut text).ok()?;
        let text = std::str::from_utf8(text.get(..read)?).ok()?;
        Layout::of_major(text.trim().parse().ok()?)
    });
    written.unwrap_or_else(|| Layout::of_major(MAJOR).expect("a row of the newest major"))
}

/// The size of pages in the first file that tells it.
fn build_of(source: &dyn Source, homes: &[DatabaseDirectory]) -> Build {
    let names = homes.iter().flat_map(|home| {
        let entries = source.list(&home.folder).unwrap_or_default();
        let relations = entries
            .into_iter()
            .filter(|entry| RelationFileName::parse(&entry.name).is_some());
        relations
            .map(|entry| within(home, &entry.name))
            .collect::<Vec<_>>()
    });
    let tried = names.take(FILES_TRIED);
    let mut told = tried.filter_map(|name| match target::guess(source, &name) {
        (build, Some(_)) => Some(build),
        (_, None) => None,
    });
    told.next().unwrap_or(Build::USUAL)
}

fn within(home: &DatabaseDirectory, name: &str) -> String {
    if home.folder.is_empty() {
        name.to_owned()
    } else {
        format!("{}/{name}", home.folder)
    }
}

/// Prints what the columns of all files may be.
pub(super) fn guess(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    let cluster = open(
        &arguments.target,
        Opening::new(world, Some(&arguments.load)),
    )?;
    let text = guess_cluster(&cluster, &arguments.selection.selection());
    let shown = write!(world.stdout, "{text}");
    shown.map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))?;
    Ok(Exit::Healthy)
}
