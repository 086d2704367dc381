//! The blocks past the end of a table that was truncated, or all of one whose file is missing, come
//! back as the WAL leaves them.

use pgclinic_cluster::{ForkFiles, fork_place};
use pgclinic_format::{BlockNo, Fork};
use pgclinic_model::document::{Cure, CureOutcome, CureRequest, PageChange, Place};
use pgclinic_model::plan::{Change, Safety};
use pgclinic_model::{plural, verb_of};
use pgclinic_source::read_exact_at;

use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::plan::Job;
use super::proven_pages::{PageRun, ProvenRun};
use super::{CureUnit, CuredFiles};
use crate::error::{Error, Result};
use crate::operate::{Content, FileBeside};

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

/// The cure, what it changes, and what it appends.
pub(super) struct RestoredEnd {
    pub(super) cure: Cure,
    pub(super) changes: Vec<Change>,
    pub(super) beside: Vec<FileBeside>,
}

/// Blocks of one segment that come back.
struct Extension {
    pages: PageRun,
    before: Option<u64>,
    path: String,
    /// Bytes of its first block that are there.
    rest: Vec<u8>,
    /// Where that block begins.
    offset: u64,
}

/// The cure, and what is written after the ends of the segments.
pub(super) fn restore_end(job: &Job<'_>, request: &CureRequest) -> Result<RestoredEnd> {
    let own = (request.path.clone(), request.block);
    let run = job.proven.runs.get(&own);
    let Some(run) = run.filter(|run| !run.blocks.is_empty()) else {
        return Err(Error::Cure {
            place: format!("{}, block {}", request.path, request.block),
            why: "neither WAL nor a copy proves what stood past the end of the file; name more of them with --wal, --backup or --standby".into(),
        });
    };
    let mut evidence = run.evidence.clone();
    if run.blocks.len() > 1 {
        evidence.push(format!(
            "{}, each proven in the same way",
            plural(run.blocks.len() - 1, "more block")
        ));
    }
    let (mut pages, mut beside) = (Vec::new(), Vec::new());
    for extension in extensions(job, run)? {
        pages.extend(extension.part_of_a_block()?);
        let (page, file) = extension.append()?;
        pages.push(page);
        beside.push(file);
    }
    let changes = pages.iter().map(|page| page.change.clone()).collect();
    let cure = Cure {
        id: job.id(request, &[]),
        name: RESTORE_END.into(),
        safety: if run.is_unverified {
            Safety::Lossy
        } else {
            Safety::Exact
        },
        place: place(job, request),
        summary: format!(
            "{} from block {} on {} written past the end of the file, as WAL says that they were but for hint bits",
            plural(run.blocks.len(), "block"),
            request.block,
            verb_of(run.blocks.len(), "are")
        ),
        evidence,
        fields: Vec::new(),
        pages,
        rows: Vec::new(),
        rows_lost: Some(0),
        dangling: Vec::new(),
        warnings: unverified_words(run.is_unverified),
        outcome: CureOutcome::Planned,
        findings: Vec::new(),
        start: None,
    };
    Ok(RestoredEnd {
        cure,
        changes,
        beside,
    })
}

fn unverified_words(is_unverified: bool) -> Vec<String> {
    let words = "the copy has no data checksums: whether its pages are as they were written cannot be verified, and their values may be wrong";
    is_unverified
        .then(|| words.to_owned())
        .into_iter()
        .collect()
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

/// The blocks of the run, segment by segment.
fn extensions(job: &Job<'_>, run: &ProvenRun) -> Result<Vec<Extension>> {
    let per_segment = job.cluster.build.segment_blocks().max(1);
    let per_segment = BlockNo::try_from(per_segment).unwrap_or(BlockNo::MAX);
    let mut found = Vec::new();
    let mut first = run.blocks.start;
    while first < run.blocks.end {
        let segment = first / per_segment;
        let end = segment.saturating_add(1).saturating_mul(per_segment);
        let end = end.min(run.blocks.end);
        let path = job.files.path(segment);
        let before = length_of(job.files, segment);
        let (offset, rest) = rest_of(job, &path, before)?;
        found.push(Extension {
            pages: PageRun {
                run: run.clone(),
                blocks: first..end,
                skip: rest.len(),
            },
            before,
            path,
            rest,
            offset,
        });
        first = end;
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
    fn unreadable(&self, error: &std::io::Error) -> Error {
        Error::Cure {
            place: self.path.clone(),
            why: error.to_string(),
        }
    }

    /// What is there of the first block is made right.
    fn part_of_a_block(&self) -> Result<Option<PageChange>> {
        let first = self.pages.blocks.start;
        let page = self.pages.run.page(first);
        let mut page = page.map_err(|error| self.unreadable(&error))?;
        page.truncate(self.rest.len());
        let change = (page != self.rest).then(|| Change::Bytes {
            path: self.path.clone(),
            offset: self.offset,
            before: self.rest.clone(),
            after: page,
        });
        Ok(change.map(|change| page_change(first, &change)))
    }

    /// The file becomes longer, or is made.
    fn append(self) -> Result<(PageChange, FileBeside)> {
        let mut hasher = blake3::Hasher::new();
        let mut len = 0;
        let read = self.pages.each(&mut |bytes| {
            hasher.update(bytes);
            len += bytes.len() as u64;
            Ok(())
        });
        read.map_err(|error| self.unreadable(&error))?;
        let blake3 = hasher.finalize().to_hex().to_string();
        let from = format!("{}.appended", self.path.replace('/', "-"));
        let change = Change::Append {
            path: self.path,
            before: self.before,
            len,
            from: from.clone(),
            blake3: blake3.clone(),
        };
        let page = PageChange {
            after: blake3,
            ..page_change(self.pages.blocks.start, &change)
        };
        let content = Content::Pages(self.pages);
        let file = FileBeside {
            name: from,
            content,
        };
        Ok((page, file))
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
