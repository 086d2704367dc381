//! Pages of `pg_xact`, `pg_multixact` and `pg_commit_ts` come back, and with them files that were
//! cut or are missing.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::StatusPages;
use pgclinic_format::slru::PAGES_PER_SEGMENT;
use pgclinic_format::{BlockNo, StatusLog};
use pgclinic_model::document::{Cure, CureOutcome, CureRequest, PageChange};
use pgclinic_model::plan::{Change, Safety};
use pgclinic_source::{Presence, read_all};

use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::plan::id_of;
use super::proven_pages::{ProvenPage, ProvenPages};
use super::restore_end::page_change;
use super::{CureUnit, CuredFiles};
use crate::error::{Error, Result};

/// Name of the cure.
pub const RESTORE_STATUS: &str = "restore-status";

pub(super) const CURE: super::Cure = super::Cure {
    name: RESTORE_STATUS,
    summary: "give a file of pg_xact, pg_multixact or pg_commit_ts back from WAL, a backup or another copy",
    unit: CureUnit::Page,
    files: CuredFiles::StatusLogs,
    draft: not_of_a_table,
};

fn not_of_a_table(place: &HeapPlace<'_>) -> Result<Draft> {
    place.refuse("a page of a relation is not one of a status log")
}

/// A file, as it is and as it becomes.
struct StatusFile<'a> {
    path: &'a str,
    log: StatusLog,
    /// Its first page, counted through the whole log.
    first: u64,
    /// Nothing where it is missing.
    bytes: Option<Vec<u8>>,
    page_bytes: usize,
}

/// The cure of a file, and what is written to it.
pub(super) fn restore_status(
    (cluster, identifier): (&Cluster, &str),
    request: &CureRequest,
    proven: &ProvenPages,
) -> Result<(Cure, Vec<Change>)> {
    let refuse = |why: &str| Error::Cure {
        place: request.path.clone(),
        why: why.into(),
    };
    let file = StatusFile::read(cluster, &request.path)?;
    let pages = file.proven(request, proven);
    let is_whole = pages.len() == usize::from(request.item.unwrap_or(1));
    if pages.is_empty() || !is_whole || !file.leaves_no_hole(request) {
        return Err(refuse(
            "neither WAL nor a copy proves what stood there; name more of them with --wal, --backup or --standby",
        ));
    }
    let changes = file.changes(&pages);
    if changes.is_empty() {
        return Err(refuse("the file is as it should be"));
    }
    let on_disk = file.bytes.as_deref().unwrap_or_default();
    let is_unverified = pages.iter().any(|(_, page)| page.is_unverified);
    let place = StatusPages::open(cluster, file.log)
        .map_err(|gap| refuse(&gap.why))?
        .place(u64::from(request.block));
    let cure = Cure {
        id: id_of((identifier, &request.path), request, on_disk),
        name: RESTORE_STATUS.into(),
        safety: if is_unverified {
            Safety::Lossy
        } else {
            Safety::Exact
        },
        place,
        summary: summary_of(&pages, file.log),
        evidence: evidence_of(&pages),
        fields: Vec::new(),
        pages: changes
            .iter()
            .map(|change| file.page_change(change))
            .collect(),
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
    let words = "the file has no checksum, and no manifest of a backup has one of it: whether the copy is as it was written cannot be verified, and rows may be taken for committed or rolled back that were not. Another copy that agrees verifies it";
    is_unverified
        .then(|| words.to_owned())
        .into_iter()
        .collect()
}

fn summary_of(pages: &[(BlockNo, &ProvenPage)], log: StatusLog) -> String {
    let own = log.folder();
    let what = match pages {
        [(first, _), .., (last, _)] => format!("pages {first} to {last} of {own} become"),
        _ => {
            let page = pages.first().map_or(0, |(page, _)| *page);
            format!("page {page} of {own} becomes")
        }
    };
    format!("{what} what records and copies say of each entry")
}

/// Each sentence once: the pages of a file are proven by the same copy and the same WAL.
fn evidence_of(pages: &[(BlockNo, &ProvenPage)]) -> Vec<String> {
    let mut evidence: Vec<String> = Vec::new();
    for sentence in pages.iter().flat_map(|(_, page)| &page.evidence) {
        if !evidence.contains(sentence) {
            evidence.push(sentence.clone());
        }
    }
    const SENTENCES_MAX: usize = 8;
    let more = evidence.len().saturating_sub(SENTENCES_MAX);
    if more > 0 {
        evidence.truncate(SENTENCES_MAX);
        evidence.push(format!("and {more} more sentences of this kind"));
    }
    evidence
}

impl<'a> StatusFile<'a> {
    fn read(cluster: &Cluster, path: &'a str) -> Result<Self> {
        let refuse = |why: String| Error::Cure {
            place: path.into(),
            why,
        };
        let named = StatusLog::of_path(path, cluster.layout.major);
        let named = named.filter(|(log, _)| log.is_kept());
        let (log, segment) = named.ok_or_else(|| {
            refuse("it is not the name of a file of pg_xact, pg_multixact or pg_commit_ts".into())
        })?;
        let page_bytes = u64::from(cluster.build.block_size);
        let source = cluster.source().as_ref();
        let bytes = match Presence::of_file(source, path) {
            Presence::Missing => None,
            Presence::There(_) => {
                let read = read_all(source, path, PAGES_PER_SEGMENT * page_bytes);
                Some(read.map_err(|error| refuse(error.to_string()))?)
            }
            Presence::Unreadable(error) => return Err(refuse(error.to_string())),
        };
        Ok(StatusFile {
            path,
            log,
            first: segment.saturating_mul(PAGES_PER_SEGMENT),
            bytes,
            page_bytes: usize::try_from(page_bytes).unwrap_or(usize::MAX),
        })
    }

    /// The pages of a request, up to the first that is not proven.
    fn proven<'p>(
        &self,
        request: &CureRequest,
        proven: &'p ProvenPages,
    ) -> Vec<(BlockNo, &'p ProvenPage)> {
        let end = self.first.saturating_add(PAGES_PER_SEGMENT);
        let end = BlockNo::try_from(end).unwrap_or(BlockNo::MAX);
        let count = request.item.unwrap_or(1);
        let last = request.block.saturating_add(count.into()).min(end);
        let pages = (request.block..last).filter(|page| u64::from(*page) >= self.first);
        let own = pages.map_while(|page| {
            let page_of_it = proven.page(self.path, page)?;
            Some((page, page_of_it))
        });
        own.collect()
    }

    /// The pages begin in the file, or where its whole pages end.
    fn leaves_no_hole(&self, request: &CureRequest) -> bool {
        self.start_of(request.block) <= self.whole()
    }

    fn start_of(&self, page: BlockNo) -> usize {
        let within = u64::from(page).saturating_sub(self.first);
        usize::try_from(within)
            .unwrap_or(usize::MAX)
            .saturating_mul(self.page_bytes)
    }

    /// Bytes of whole pages.
    fn whole(&self) -> usize {
        let len = self.bytes.as_ref().map_or(0, Vec::len);
        len - len % self.page_bytes.max(1)
    }

    fn changes(&self, pages: &[(BlockNo, &ProvenPage)]) -> Vec<Change> {
        let on_disk = self.bytes.as_deref().unwrap_or_default();
        let (mut changes, mut behind) = (Vec::new(), Vec::new());
        for (page, proven) in pages {
            let start = self.start_of(*page);
            let before = on_disk.get(start..).unwrap_or_default();
            let there = before.len().min(proven.bytes.len());
            let (own, rest) = proven.bytes.split_at(there);
            let before = before.get(..there).unwrap_or_default();
            if before != own {
                changes.push(Change::Bytes {
                    path: self.path.into(),
                    offset: start as u64,
                    before: before.to_vec(),
                    after: own.to_vec(),
                });
            }
            behind.extend_from_slice(rest);
        }
        if !behind.is_empty() {
            changes.push(Change::Extend {
                path: self.path.into(),
                before: self.bytes.as_ref().map(|bytes| bytes.len() as u64),
                after: behind,
            });
        }
        changes
    }

    fn page_change(&self, change: &Change) -> PageChange {
        let offset = match change {
            Change::Bytes { offset, .. } => *offset,
            Change::Extend { before, .. } => before.unwrap_or(0),
            _ => 0,
        };
        let page = self.first + offset / (self.page_bytes as u64).max(1);
        page_change(BlockNo::try_from(page).unwrap_or(BlockNo::MAX), change)
    }
}
