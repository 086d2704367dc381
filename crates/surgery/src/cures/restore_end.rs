//! The blocks past the end of a table that was truncated, or all of one whose file is missing, come
//! back as the WAL leaves them.

use pgclinic_cluster::{ForkFiles, fork_place};
use pgclinic_format::{BlockNo, Fork};
use pgclinic_model::document::{Cure, CureOutcome, CureRequest, PageChange, Place};
use pgclinic_model::plan::{Change, Safety};
use pgclinic_source::read_exact_at;

use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::plan::Job;
use super::restore_page::ProvenPage;
use super::{CureUnit, CuredFiles};
use crate::error::{Error, Result};

/// Name of the cure.
pub const RESTORE_END: &str = "restore-end";

pub(super) const CURE: super::Cure = super::Cure {
    name: RESTORE_END,
    summary: "give the blocks past the end of a file back from WAL, a backup or another copy",
    unit: CureUnit::Page,
    files: CuredFiles::Ends,
    draft: not_of_a_page,
};

fn not_of_a_page(place: &HeapPlace<'_>) -> Result<Draft> {
    place.refuse("the page is there: only what is past the end of a file comes back so")
}

/// Blocks of one segment that come back.
struct Extension {
    first: BlockNo,
    before: Option<u64>,
    path: String,
    /// Bytes of its first block that are there.
    rest: Vec<u8>,
    /// Where that block begins.
    offset: u64,
    bytes: Vec<u8>,
}

/// The cure, and what is written after the ends of the segments.
pub(super) fn restore_end(job: &Job<'_>, request: &CureRequest) -> Result<(Cure, Vec<Change>)> {
    let proven = proven_run(job, request);
    let Some((_, first)) = proven.first() else {
        return Err(Error::Cure {
            place: format!("{}, block {}", request.path, request.block),
            why: "neither WAL nor a copy proves what stood past the end of the file; name more of them with --wal, --backup or --standby".into(),
        });
    };
    let mut evidence = first.evidence.clone();
    if proven.len() > 1 {
        evidence.push(format!(
            "{} more blocks, each proven in the same way",
            proven.len() - 1
        ));
    }
    let is_unverified = proven.iter().any(|(_, page)| page.is_unverified);
    let extensions = extensions(job, &proven)?;
    let blocks = proven.len();
    let changes: Vec<(BlockNo, Change)> = extensions.iter().flat_map(Extension::changes).collect();
    let pages = changes
        .iter()
        .map(|(block, change)| page_change(*block, change))
        .collect();
    let changes = changes.into_iter().map(|(_, change)| change).collect();
    let cure = Cure {
        id: job.id(request, &[]),
        name: RESTORE_END.into(),
        safety: if is_unverified {
            Safety::Lossy
        } else {
            Safety::Exact
        },
        place: place(job, request),
        summary: format!(
            "{blocks} blocks from block {} on are written past the end of the file, as WAL says that they were but for hint bits",
            request.block
        ),
        evidence,
        fields: Vec::new(),
        pages,
        rows: Vec::new(),
        rows_lost: Some(0),
        dangling: Vec::new(),
        warnings: unverified_words(is_unverified),
        outcome: CureOutcome::Planned,
        findings: Vec::new(),
        start: None,
    };
    Ok((cure, changes))
}

fn unverified_words(is_unverified: bool) -> Vec<String> {
    let words = "the copy has no data checksums: whether its pages are as they were written cannot be verified, and their values may be wrong";
    is_unverified
        .then(|| words.to_owned())
        .into_iter()
        .collect()
}

/// Proven blocks without a hole, from the first missing one on.
fn proven_run<'a>(job: &Job<'a>, request: &CureRequest) -> Vec<(BlockNo, &'a ProvenPage)> {
    let path = job.files.path(0);
    let blocks = request.block..;
    let run = blocks.map_while(|block| Some((block, job.proven.get(&(path.clone(), block))?)));
    run.collect()
}

fn place(job: &Job<'_>, request: &CureRequest) -> Place {
    let catalog = &job.database.catalog;
    let relation = catalog.by_file(job.files.home.tablespace, job.files.filenode);
    let database = catalog.database_name.as_deref();
    let database = database.filter(|_| job.files.home.database != 0);
    Place {
        block: Some(request.block),
        ..fork_place(
            database,
            relation,
            job.files,
            segment_of(job, request.block),
        )
    }
}

fn segment_of(job: &Job<'_>, block: BlockNo) -> u32 {
    let per_segment = job.cluster.build.segment_blocks().max(1);
    u32::try_from(u64::from(block) / per_segment).unwrap_or(u32::MAX)
}

fn extensions(job: &Job<'_>, proven: &[(BlockNo, &ProvenPage)]) -> Result<Vec<Extension>> {
    let mut found: Vec<Extension> = Vec::new();
    for (block, page) in proven {
        let path = job.files.path(segment_of(job, *block));
        match found.last_mut().filter(|last| last.path == path) {
            Some(last) => last.bytes.extend_from_slice(&page.bytes),
            None => {
                let before = length_of(job.files, segment_of(job, *block));
                let (offset, rest) = rest_of(job, &path, before)?;
                found.push(Extension {
                    first: *block,
                    before,
                    path,
                    rest,
                    offset,
                    bytes: page.bytes.clone(),
                });
            }
        }
    }
    Ok(found)
}

/// Where the whole blocks of a file end, and what stands behind them.
fn rest_of(job: &Job<'_>, path: &str, len: Option<u64>) -> Result<(u64, Vec<u8>)> {
    let len = len.unwrap_or(0);
    let rest = len % u64::from(job.cluster.build.block_size).max(1);
    if rest == 0 {
        return Ok((len, Vec::new()));
    }
    let mut bytes = vec![0; usize::try_from(rest).unwrap_or(0)];
    let source = job.cluster.source().as_ref();
    read_exact_at(source, path, len - rest, &mut bytes).map_err(|error| Error::Cure {
        place: path.into(),
        why: error.to_string(),
    })?;
    Ok((len - rest, bytes))
}

/// Nothing where the segment is missing.
fn length_of(files: &ForkFiles, segment: u32) -> Option<u64> {
    let mut segments = files.segments.iter();
    let own = segments.find(|own| own.number == segment);
    own.map(|own| own.len)
}

impl Extension {
    /// What is there of the first block is made right, and the file longer.
    fn changes(&self) -> Vec<(BlockNo, Change)> {
        let (own, behind) = self.bytes.split_at(self.rest.len().min(self.bytes.len()));
        let of_rest = (own != self.rest).then(|| Change::Bytes {
            path: self.path.clone(),
            offset: self.offset,
            before: self.rest.clone(),
            after: own.to_vec(),
        });
        let longer = Change::Extend {
            path: self.path.clone(),
            before: self.before,
            after: behind.to_vec(),
        };
        let changes = of_rest.into_iter().chain([longer]);
        changes.map(|change| (self.first, change)).collect()
    }
}

pub(super) fn page_change(block: BlockNo, change: &Change) -> PageChange {
    let (before, after) = match change {
        Change::Bytes { before, after, .. } => (before.as_slice(), after.as_slice()),
        Change::Extend { after, .. } => ([].as_slice(), after.as_slice()),
        _ => ([].as_slice(), [].as_slice()),
    };
    PageChange {
        path: change.path().to_owned(),
        fork: Fork::Main,
        block,
        before: blake3::hash(before).to_hex().to_string(),
        after: blake3::hash(after).to_hex().to_string(),
        change: change.clone(),
    }
}
