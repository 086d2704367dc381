//! A segment of WAL that recovery needs is put in its place.

use pgclinic_cluster::{Cluster, file_place};
use pgclinic_model::document::{Cure, CureOutcome, CureRequest, FileKind, HealFile, StartCure};
use pgclinic_model::plan::{Change, Safety};
use pgclinic_source::Presence;

use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::plan::id_of;
use super::proven_pages::ProvenPages;
use super::{CureUnit, CuredFiles};
use crate::error::{Error, Result};

/// Name of the cure.
pub const RESTORE_SEGMENT: &str = "restore-wal-segment";

pub(super) const CURE: super::Cure = super::Cure {
    name: RESTORE_SEGMENT,
    summary: "put a missing segment of WAL in its place",
    unit: CureUnit::Page,
    files: CuredFiles::Wal,
    draft: not_of_a_table,
};

fn not_of_a_table(place: &HeapPlace<'_>) -> Result<Draft> {
    place.refuse("it is no segment of WAL")
}

/// The cure of a segment, and the file that is made.
pub(super) fn restore_segment(
    (cluster, identifier): (&Cluster, &str),
    request: &CureRequest,
    proven: &ProvenPages,
) -> Result<(Cure, Vec<Change>)> {
    let refuse = |why: String| Error::Cure {
        place: request.path.clone(),
        why,
    };
    let name = request.path.strip_prefix("pg_wal/");
    let name = name.filter(|name| !name.contains('/'));
    let own = name.zip(proven.page(&request.path, request.block));
    let (name, segment) = own.ok_or_else(|| {
        refuse("no directory has the segment, with WAL that leads through it; name more of them with --wal".into())
    })?;
    let kept = match Presence::of_file(cluster.source().as_ref(), &request.path) {
        Presence::Missing => None,
        // It is there and has another length.
        Presence::There(_) => Some(format!("{name}.before")),
        Presence::Unreadable(error) => return Err(refuse(error.to_string())),
    };
    let len = segment.bytes.len() as u64;
    let change = Change::Write {
        path: request.path.clone(),
        bytes: segment.bytes.clone(),
        len,
        kept,
    };
    let sum = blake3::hash(&segment.bytes).to_hex();
    let file = HealFile {
        path: request.path.clone(),
        what: format!("made with {len} bytes, BLAKE3 {sum}"),
    };
    let cure = Cure {
        id: id_of((identifier, &request.path), request, sum.as_bytes()),
        name: RESTORE_SEGMENT.into(),
        safety: if segment.is_unverified {
            Safety::Lossy
        } else {
            Safety::Exact
        },
        place: file_place(&request.path, FileKind::Wal),
        summary: "the segment is put in its place: the server reads it when it starts".into(),
        evidence: segment.evidence.clone(),
        fields: Vec::new(),
        pages: Vec::new(),
        rows: Vec::new(),
        rows_lost: (!segment.is_unverified).then_some(0),
        dangling: Vec::new(),
        warnings: open_end_words(segment.is_unverified),
        outcome: CureOutcome::Planned,
        findings: Vec::new(),
        start: Some(Box::new(StartCure {
            files: vec![file],
            tables: Vec::new(),
        })),
    };
    Ok((cure, vec![change]))
}

fn open_end_words(is_open: bool) -> Vec<String> {
    let words = "the last segment of pg_wal is missing, too, and an archive has it only once it is full: what the server wrote after the end of this WAL is in no file, and pages may be newer than recovery leaves their neighbours. Check the cluster after recovery, or restore a backup";
    is_open.then(|| words.to_owned()).into_iter().collect()
}
