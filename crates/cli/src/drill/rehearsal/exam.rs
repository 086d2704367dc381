//! An exam: the damage of a copy is kept aside, and what somebody made of it is marked later.
//!
//! ```text
//! DIR                     the damaged copy
//! DIR.key/key.json        what was hurt, and what was known of the copy before
//! DIR.key/journal         the bytes that were there
//! DIR.key/rows-0 …        the rows of each table that was hurt, eight bytes each
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufReader, Read};
use std::num::NonZeroUsize;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use pgclinic_cluster::Cluster;
use pgclinic_model::document::{
    Coverage, InjuryState, REHEARSAL_SCHEMA, RehearsalDocument, RehearsalKind, Target, Tool,
};
use pgclinic_model::plan::Change;
use pgclinic_report::Document;
use pgclinic_source::{Source, SourceErrorKind};
use pgclinic_surgery::{DamageBudget, PageBudget};
use serde::{Deserialize, Serialize};

use super::marks::{Bytes, Families, KnownInjury, mark as marked_of, state_of};
use super::rows::{RowHashes, TableName};
use super::{
    Asking, Places, UntilInterrupted, Wanted, check, ids_of, injured_copy, new_findings,
    rows_before_place, saved_tables, scored,
};
use crate::exit::Failure;

const KEY_SCHEMA: &str = "pgclinic.exam-key/1";

/// What the one who is examined does not see.
#[derive(Serialize, Deserialize)]
struct Key {
    schema: String,
    target: Target,
    coverage: Coverage,
    database: Option<String>,
    seed: u64,
    pages: u64,
    copied_bytes: u64,
    copy_s: f64,
    /// Findings that were there before.
    known: BTreeSet<String>,
    injuries: Vec<KnownInjury>,
    /// In the order of the files with their rows.
    tables: Vec<TableName>,
}

/// Where the key of an exam lies.
pub(crate) fn key_of(directory: &Path) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(".key");
    PathBuf::from(name)
}

/// Makes the damaged copy in `directory`, and its key; how many injuries it has.
///
/// # Errors
/// When one of them is there already, or as a rehearsal.
pub(crate) fn hide(
    original: &Cluster,
    wanted: &Wanted<'_>,
    directory: &Path,
    tell: &mut dyn FnMut(&str),
    stop: &UntilInterrupted,
) -> Result<usize, Failure> {
    let aside = key_of(directory);
    if directory.symlink_metadata().is_ok() {
        return Err(Failure::new(format!(
            "{} is there already; name a new directory for the exam",
            directory.display()
        )));
    }
    let made = fs::DirBuilder::new().mode(0o700).create(&aside);
    made.map_err(|error| Failure::new(format!("cannot create {}: {error}", aside.display())))?;
    let hidden = hidden(original, wanted, (directory, &aside), tell, stop);
    if hidden.is_err() {
        // Half an exam is of no use, and both directories are its own.
        let _copy_may_be_missing = fs::remove_dir_all(directory);
        let _key_is_empty_then = fs::remove_dir_all(&aside);
    }
    hidden
}

fn hidden(
    original: &Cluster,
    wanted: &Wanted<'_>,
    (directory, aside): (&Path, &Path),
    tell: &mut dyn FnMut(&str),
    stop: &UntilInterrupted,
) -> Result<usize, Failure> {
    let places = Places {
        pgdata: directory,
        scratch: aside,
        journal: &aside.join("journal"),
    };
    let patient = injured_copy(original, wanted, &places, tell, stop)?;
    let key = Key {
        schema: KEY_SCHEMA.into(),
        known: ids_of(&patient.healthy),
        target: patient.target,
        coverage: patient.healthy.coverage,
        database: wanted.database.map(str::to_owned),
        seed: wanted.seed,
        pages: patient.planned.pages,
        copied_bytes: patient.copied_bytes,
        copy_s: patient.copy_s,
        injuries: patient.injuries,
        tables: patient.before.keys().cloned().collect(),
    };
    fs::write(aside.join("key.json"), serde_json::to_vec(&key)?)?;
    Ok(key.injuries.len())
}

/// Marks what was made of the copy in `directory`, which `cluster` is.
///
/// # Errors
/// When the key cannot be read, or as a rehearsal.
pub(crate) fn mark(
    cluster: &Cluster,
    directory: &Path,
    threads: NonZeroUsize,
    tell: &mut dyn FnMut(&str),
    stop: &UntilInterrupted,
) -> Result<Document, Failure> {
    let aside = key_of(directory);
    let key = read_key(&aside)?;
    let wanted = Wanted {
        spec: key.target.spec.clone(),
        database: key.database.as_deref(),
        relation: None,
        injuries: Vec::new(),
        budget: DamageBudget {
            pages: PageBudget::Count(0),
            lost_segments: 0,
        },
        seed: key.seed,
        threads,
        server: Asking::Never,
    };
    tell("checking the copy");
    let start = Instant::now();
    let document = check(directory, &wanted, stop)?;
    let check_s = start.elapsed().as_secs_f64();
    let level = document.level;
    let findings = new_findings(document, &key.known);
    stop.goes_on()?;
    let families = Families::of(cluster);
    let mut marked = marked_of(&key.injuries, &findings, &families);
    let (source, journal) = (cluster.source().as_ref(), aside.join("journal"));
    for (injury, mark) in key.injuries.iter().zip(&mut marked.injuries) {
        let is_needed = families.need_file_of(&injury.place);
        let read = |change: &Change| bytes_of(source, &journal, change, is_needed);
        mark.state = Some(state_of(injury, !mark.found_by.is_empty(), &read));
    }
    tell("reading the rows of the tables that were hurt");
    let start = Instant::now();
    let before = rows_before(&aside, &key.tables);
    let tables = saved_tables(&before, directory, &aside, &wanted, stop)?;
    let mut score = scored(&marked, &tables);
    score.copy_s = key.copy_s;
    score.check_s = check_s;
    score.salvage_s = start.elapsed().as_secs_f64();
    let is_dealt_with = |state: Option<InjuryState>| state.is_some_and(InjuryState::is_dealt_with);
    let dealt_with = marked
        .injuries
        .iter()
        .filter(|own| is_dealt_with(own.state));
    score.dealt_with = Some(dealt_with.count() as u64);
    // Nobody is asked to mend what nobody can see.
    let mut injuries = marked.injuries.iter();
    let all = injuries.all(|own| is_dealt_with(own.state) || own.blind.is_some());
    let passed = all && score.false_alarms == 0 && score.rows_wrong == 0;
    Ok(Document::Rehearsal(RehearsalDocument {
        schema: REHEARSAL_SCHEMA.into(),
        tool: Tool::this(),
        kind: RehearsalKind::Exam,
        target: key.target,
        level,
        coverage: key.coverage,
        seed: key.seed,
        pages: key.pages,
        copied_bytes: key.copied_bytes,
        server: None,
        injuries: marked.injuries,
        false_alarms: marked.false_alarms,
        tables,
        score,
        previous: None,
        passed,
        elapsed_s: 0.0,
    }))
}

fn read_key(aside: &Path) -> Result<Key, Failure> {
    let path = aside.join("key.json");
    let unreadable = |why: String| Failure::new(format!("cannot read {}: {why}", path.display()));
    let bytes = fs::read(&path).map_err(|error| unreadable(error.to_string()))?;
    let key: Key = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    match key.schema.as_str() {
        KEY_SCHEMA => Ok(key),
        other => Err(unreadable(format!(
            "it is {other}, and {KEY_SCHEMA} is known"
        ))),
    }
}

fn rows_before(aside: &Path, tables: &[TableName]) -> BTreeMap<TableName, RowHashes> {
    let place = rows_before_place(aside, NonZeroUsize::MIN);
    let numbered = tables.iter().cloned().enumerate();
    let own = |(number, table)| (table, RowHashes::in_file(place.file(number)));
    numbered.map(own).collect()
}

/// The bytes where a change was made. A file that nobody needs any more is not missing: its table
/// or index was made again in another one.
fn bytes_of(
    source: &dyn Source,
    journal: &Path,
    change: &Change,
    is_needed: bool,
) -> Option<Bytes> {
    match change {
        Change::Bytes {
            path,
            offset,
            before,
            after,
        } => {
            let mut now = vec![0; before.len()];
            let read = source.read_at(path, *offset, &mut now).unwrap_or(0);
            Some(match now.get(..read)? {
                now if now == before.as_slice() => Bytes::AsBefore,
                now if now == after.as_slice() => Bytes::AsHurt,
                _ => Bytes::Others,
            })
        }
        Change::Remove { path, kept } => match source.len(path) {
            Err(error) if error.kind == SourceErrorKind::NotFound && is_needed => {
                Some(Bytes::AsHurt)
            }
            Ok(len) if is_same(source, (path, len), &journal.join(kept)) => Some(Bytes::AsBefore),
            _ => Some(Bytes::Others),
        },
        _ => None,
    }
}

fn is_same(source: &dyn Source, (path, len): (&str, u64), kept: &Path) -> bool {
    let Ok(file) = fs::File::open(kept) else {
        return false;
    };
    if file.metadata().map_or(true, |found| found.len() != len) {
        return false;
    }
    let mut kept = BufReader::new(file);
    let (mut own, mut other) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut offset = 0;
    while offset < len {
        let Ok(read) = source.read_at(path, offset, &mut own) else {
            return false;
        };
        let (Some(own), Some(other)) = (own.get(..read), other.get_mut(..read)) else {
            return false;
        };
        if read == 0 || kept.read_exact(other).is_err() || own != other {
            return false;
        }
        offset += read as u64;
    }
    true
}
