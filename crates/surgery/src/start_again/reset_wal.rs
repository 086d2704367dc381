//! A computed reset of the WAL: what `pg_resetwal -f` guesses follows from evidence, and what it
//! costs is counted first.
//!
//! Truth: `src/bin/pg_resetwal/pg_resetwal.c`.

use pgclinic_cluster::Cluster;
use pgclinic_format::ControlFile;
use pgclinic_format::build::put_bytes;
use pgclinic_format::control_file::{FILE_BYTES, State, places};
use pgclinic_format::wal::build::first_page;
use pgclinic_model::document::FieldChange;
use pgclinic_model::plan::Safety;
use pgclinic_model::{plural, verb_of};
use pgclinic_source::{EntryKind, Presence};

use super::directories::with_parents;
use super::far_lsns::Judged;
use super::ground::Ground;
use super::limits::Limits;
use super::page_counters::{PageCounters, count_pages};
use super::row_fates::{Fates, predict};
use super::status_fill::{Filled, TOO_LONG, fill};
use super::tablespace_links::missing_links;
use super::{
    CONTROL_FILE, Draft, Found, StartOptions, Stops, control_bytes, remove, with_drafts, write,
};
use crate::error::Result;
use crate::operate::FileBeside;

pub(super) const NAME: &str = "reset-wal";
/// The list beside the journal.
const LIST: &str = "rows-of-unknown-fate.csv";

/// The plan, with what it costs; nothing where the numbers would be guesses.
pub(super) fn found(cluster: &Cluster, why: &str, options: &StartOptions<'_>) -> Result<Found> {
    let mut found = Found::default();
    let ground = Ground::read(cluster)?;
    if !ground.knows_oldest() {
        let open = format!(
            "{why}, and neither pg_database nor a checkpoint says which transaction is the oldest that rows may have: without it the WAL is not given up. Bring back what leads to pg_database first"
        );
        found.leave_open(CONTROL_FILE, Stops::Start, open);
        return Ok(found);
    }
    let bounds = ground.bounds();
    let pages = count_pages(cluster, &bounds, options.threads, options.progress);
    let limits = ground.limits(&pages)?;
    let filled = fill(cluster, &limits.control.checkpoint, &pages.votes);
    if let Some(log) = filled.too_long {
        found.leave_open(log.folder(), Stops::Start, TOO_LONG);
    }
    let draft = written(cluster, (why, &ground), &limits, &filled);
    let after = with_drafts(cluster, std::slice::from_ref(&draft))?;
    let fates = predict(after.as_ref().unwrap_or(cluster));
    let draft = explained(cluster, draft, &limits, &pages, &filled, fates);
    found.drafts.push(draft);
    Ok(found)
}

/// The changes.
fn written(
    cluster: &Cluster,
    (why, ground): (&str, &Ground<'_>),
    limits: &Limits,
    filled: &Filled,
) -> Draft {
    let shape = pgclinic_format::wal::Shape {
        system_identifier: Some(limits.control.system_identifier),
        ..ground.wal.shape
    };
    let mut draft = Draft::new(NAME, Safety::Lossy, CONTROL_FILE, SUMMARY).because(why);
    for change in with_parents(cluster, &["pg_wal"]) {
        draft = draft.change("made", change);
    }
    for change in filled.changes.clone() {
        draft = draft.change("pages that are not there, as zeros", change);
    }
    for path in signals(cluster) {
        draft = draft.change("set aside beside the journal", remove(&path));
    }
    for path in old_wal(cluster) {
        draft = draft.change("set aside beside the journal", remove(&path));
    }
    let timeline = limits.control.checkpoint.timeline;
    let name = shape.segment_name(timeline, shape.segment_number(limits.segment));
    let page = first_page(shape, limits.segment, timeline, &limits.checkpoint);
    let path = format!("pg_wal/{name}");
    let segment = write(cluster, &path, page, shape.segment_bytes.into());
    draft = draft.change("a segment with one record, a shutdown checkpoint", segment);
    let control = new_control_file(cluster, limits);
    let control = write(cluster, CONTROL_FILE, control, FILE_BYTES as u64);
    draft.change("written from the numbers below", control)
}

const SUMMARY: &str = "the WAL is given up: a new segment begins after everything that is known, and the server starts as after a shutdown";

fn new_control_file(cluster: &Cluster, limits: &Limits) -> Vec<u8> {
    let mut base = match cluster.control.trusted() {
        Some(_) => control_bytes(cluster),
        None => Vec::new(),
    };
    base.resize(FILE_BYTES, 0);
    let mut put = |at: usize, value: &[u8]| put_bytes(&mut base, at, value);
    if cluster.control.trusted().is_none() {
        put(places::UNLOGGED_LSN, &limits.unlogged_lsn.0.to_le_bytes());
        put(nonce_at(cluster), &nonce(limits));
    }
    put(places::BACKUP_END, &[0; 8]);
    put(places::BACKUP_END_REQUIRED, &[0]);
    put(places::WAL_LEVEL, &[0; 4]);
    put(places::WAL_LOG_HINTS, &[0]);
    put(places::MAX_WAL_SENDERS, &10u32.to_le_bytes());
    put(places::MAX_LOCKS_PER_XACT, &64u32.to_le_bytes());
    limits.control.to_bytes(&limits.checkpoint, &base)
}

/// `mock_authentication_nonce`: any bytes will do that others cannot guess.
pub(super) fn nonce_at(cluster: &Cluster) -> usize {
    if cluster.layout.major >= 18 { 257 } else { 256 }
}

fn nonce(limits: &Limits) -> [u8; 32] {
    *blake3::hash(format!("{:?}", limits.control).as_bytes()).as_bytes()
}

/// With them the server would look for WAL that is given up.
fn signals(cluster: &Cluster) -> Vec<String> {
    let source = cluster.source().as_ref();
    let names = [
        "backup_label",
        "tablespace_map",
        "standby.signal",
        "recovery.signal",
    ];
    let there = names.into_iter();
    there
        .filter(|path| !Presence::of_file(source, path).is_missing())
        .map(str::to_owned)
        .collect()
}

/// `KillExistingXLOG`, `KillExistingArchiveStatus`: segments, whole or partial, and what is noted
/// of their archiving. Histories stay.
fn old_wal(cluster: &Cluster) -> Vec<String> {
    let list = |directory: &str| {
        let entries = cluster.source().list(directory).unwrap_or_default();
        let own = entries.into_iter().filter(|entry| {
            let is_file = entry.kind == EntryKind::File;
            let (name, ending) = entry.name.split_at_checked(24).unwrap_or(("", ""));
            let digits = name.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_file && name.len() == 24 && digits && is_of_segment(ending)
        });
        own.map(|entry| format!("{directory}/{}", entry.name))
            .collect::<Vec<_>>()
    };
    let mut all = list("pg_wal");
    all.extend(list("pg_wal/archive_status"));
    all
}

fn is_of_segment(ending: &str) -> bool {
    matches!(
        ending,
        "" | ".partial" | ".ready" | ".done" | ".partial.ready" | ".partial.done"
    )
}

fn explained(
    cluster: &Cluster,
    mut draft: Draft,
    limits: &Limits,
    pages: &PageCounters,
    filled: &Filled,
    fates: Fates,
) -> Draft {
    draft.fields = fields(cluster.control.trusted(), limits);
    let reasons = limits.reasons.iter();
    draft
        .evidence
        .extend(reasons.map(|(name, value, why)| format!("{name} {value}: {why}")));
    draft.evidence.extend(filled.sentences());
    let is_settled = is_settled(cluster, pages) && missing_links(cluster).is_none();
    if is_settled && filled.changes.is_empty() && limits.is_control_last {
        draft.safety = Safety::Exact;
        draft.evidence.push(
            "the control file says that the server was shut down, and no page is younger than its checkpoint: nothing of the WAL is needed by these files".into(),
        );
        draft.tables = Vec::new();
        return draft
            .warn("archiving and standbys cannot go on across it: a new full backup comes next");
    }
    draft.rows_lost = None;
    draft.warnings.extend(limits.warnings.iter().cloned());
    draft.warnings.extend(warnings(filled, &fates, pages));
    draft.warnings.extend(missing_links(cluster));
    draft.tables = fates.tables;
    let list = FileBeside::of_bytes(LIST, fates.list.into_bytes());
    draft.beside.push(list);
    draft
}

/// Everything was on disk when the server ended.
fn is_settled(cluster: &Cluster, pages: &PageCounters) -> bool {
    let control = cluster.control.trusted();
    let is_shut_down = control.is_some_and(|own| own.state == State::ShutDown);
    let is_labelled = !Presence::of_file(cluster.source().as_ref(), "backup_label").is_missing();
    let numbers = pages.numbers();
    is_shut_down
        && !is_labelled
        && numbers.younger_pages == 0
        && pages.far() == Judged::default()
        && pages.not_read.is_empty()
        && pages.checksums_wrong == 0
}

fn warnings(filled: &Filled, fates: &Fates, pages: &PageCounters) -> Vec<String> {
    let mut warnings = vec![
        "save the rows first with pgclinic salvage, which needs no WAL and writes nothing here"
            .to_owned(),
        "for dumping only: changes that had not reached the files are lost, half of a transaction may be there, and indexes may not fit their tables".to_owned(),
        "unlogged tables stay as they lie there, where a recovery would empty them: leave them out of the dump".to_owned(),
    ];
    let unknown = fates.unknown();
    if unknown > 0 {
        warnings.push(format!(
            "of {} nobody knows any more whether their transactions committed; {LIST} beside the journal lists them",
            plural(unknown, "row")
        ));
    }
    if filled.asked > 0 {
        warnings.push(format!(
            "{} {} for the status of {} that is lost, and none of their rows has it: they count as rolled back",
            plural(filled.rows_asked, "row"),
            verb_of(filled.rows_asked, "ask"),
            plural(filled.asked, "transaction")
        ));
    }
    if filled.disagreed > 0 {
        warnings.push(format!(
            "hint bits of {} contradict each other: nothing is written of those, and they count as rolled back where no hint bit says otherwise",
            plural(filled.disagreed, "transaction")
        ));
    }
    if !pages.not_read.is_empty() {
        warnings.push(format!(
            "{} of files could not be read: higher numbers may stand there",
            plural(pages.not_read.len(), "place")
        ));
    }
    warnings
}

/// With what the control file says up to now, where it can be read.
fn fields(control: Option<&ControlFile>, limits: &Limits) -> Vec<FieldChange> {
    let before = |name: &str| {
        let own = control?;
        let checkpoint = &own.checkpoint;
        Some(match name {
            "Database system identifier" => own.system_identifier.to_string(),
            "Latest checkpoint's REDO location" => checkpoint.redo.to_string(),
            "Latest checkpoint's TimeLineID" => checkpoint.timeline.to_string(),
            "Latest checkpoint's NextXID" => format!(
                "{}:{}",
                checkpoint.next_full_xid >> 32,
                checkpoint.next_xid().0
            ),
            "Latest checkpoint's NextOID" => checkpoint.next_oid.to_string(),
            "Latest checkpoint's NextMultiXactId" => checkpoint.next_multi.to_string(),
            "Latest checkpoint's NextMultiOffset" => checkpoint.next_multi_offset.to_string(),
            "Latest checkpoint's oldestXID" => checkpoint.oldest_xid.0.to_string(),
            "Latest checkpoint's oldestMultiXid" => checkpoint.oldest_multi.to_string(),
            "Latest checkpoint's oldestCommitTsXid" => {
                checkpoint.oldest_commit_ts_xid.0.to_string()
            }
            "Latest checkpoint's newestCommitTsXid" => {
                checkpoint.newest_commit_ts_xid.0.to_string()
            }
            "Data page checksum version" => own.data_checksum_version.to_string(),
            _ => return None,
        })
    };
    let all = limits.reasons.iter().map(|(name, value, _)| FieldChange {
        of: "control file".into(),
        name: (*name).to_owned(),
        before: before(name).unwrap_or_else(|| "unknown".into()),
        after: value.clone(),
    });
    all.filter(|own| own.before != own.after).collect()
}
