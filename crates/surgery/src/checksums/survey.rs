//! What a cluster's pages have and need, before anything is written.

use std::collections::BTreeMap;
use std::io::Write;

use pgclinic_check::{CheckOptions, ResumableRun, check_cluster_with};
use pgclinic_cluster::Cluster;
use pgclinic_model::document::{
    CheckDocument, DamagedPage, DamagedPageChoice, NotChecked, RECOVERY_IS_DUE,
};
use pgclinic_model::plural;
use pgclinic_model::{Finding, Level, Progress, Severity};
use serde::{Deserialize, Serialize};

use super::record::RecordWriter;
use super::recorder::{PageCounts, Recorder};
use crate::error::{Error, Result};

/// A page by its fork.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct PageOfFork {
    /// The first file of the fork.
    pub path: String,
    /// Through all segments.
    pub block: u64,
}

impl PageOfFork {
    /// Of a block of the fork that one of these files is a segment of.
    pub fn new(path: &str, block: u64) -> Self {
        PageOfFork {
            path: first_file(path).to_owned(),
            block,
        }
    }
}

impl PageOfFork {
    /// It belongs to the fork of which this file is a segment.
    pub(super) fn is_of(&self, path: &str) -> bool {
        self.path == first_file(path)
    }
}

/// The first file of the fork to which a segment belongs: its path without the number.
fn first_file(path: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match path.rsplit_once('.') {
        Some((first, number)) if is_number(number) => first,
        _ => path,
    }
}

/// What a survey found.
#[derive(Clone, PartialEq, Debug)]
pub struct Survey {
    /// What the structure check says of the files.
    pub document: CheckDocument,
    /// Files of relations.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Pages with content.
    pub pages: u64,
    /// Pages that were never written, which have no checksum.
    pub pages_new: u64,
    /// Pages whose stored checksum is another one.
    pub pages_to_write: u64,
    /// What was not read, so that its checksums are unknown.
    pub not_read: Vec<NotChecked>,
}

/// Checks a cluster at level `structure`, and records on the way which checksum each page needs.
pub(super) fn surveyed<W: Write + Send>(
    cluster: &Cluster,
    options: &CheckOptions,
    out: W,
    progress: &dyn Progress,
) -> Result<(Survey, RecordWriter<W>)> {
    let options = CheckOptions {
        level: Level::Structure,
        ..options.clone()
    };
    let recorder = Recorder::new(out);
    let run = ResumableRun::new(cluster, &options, None);
    let document = check_cluster_with(run, cluster, &options, progress, Some(&recorder));
    let (counts, record) = recorder.finish().map_err(|error| Error::Patch {
        why: format!("its checksums cannot be recorded: {error}"),
    })?;
    let forks = forks_of(cluster);
    let not_read = not_read(&document, counts, &forks);
    let survey = Survey {
        files: forks.files,
        bytes: forks.bytes,
        pages: counts.pages,
        pages_new: counts.pages_new,
        pages_to_write: counts.to_write,
        not_read,
        document,
    };
    Ok((survey, record))
}

/// What the directories hold.
#[derive(Default)]
struct Forks {
    files: u64,
    bytes: u64,
    pages: u64,
    unreachable: Vec<NotChecked>,
}

fn forks_of(cluster: &Cluster) -> Forks {
    let mut all = Forks::default();
    for home in &cluster.homes {
        let files = match cluster.files(home) {
            Ok(files) => files,
            Err(gap) => {
                all.unreachable.push(NotChecked {
                    what: gap.what,
                    why: gap.why,
                    inherent: false,
                });
                continue;
            }
        };
        for segment in files.iter().flat_map(|fork| &fork.segments) {
            all.files += 1;
            all.bytes += segment.len;
            all.pages += segment.len / u64::from(cluster.build.block_size).max(1);
        }
    }
    all
}

/// A page that was not counted would be without a checksum, and nothing would say so.
fn not_read(document: &CheckDocument, counts: PageCounts, forks: &Forks) -> Vec<NotChecked> {
    let mut gaps = forks.unreachable.clone();
    // A file behind a link that leads nowhere has no bytes that could be missed.
    let open = document.coverage.not_checked.iter();
    let open = open.filter(|gap| !gap.inherent && gap.why != RECOVERY_IS_DUE);
    gaps.extend(open.cloned());
    let counted = counts.pages + counts.pages_new;
    if counted != forks.pages {
        gaps.push(NotChecked {
            what: plural(forks.pages.abs_diff(counted), "page"),
            why: format!(
                "the files have {} pages and {counted} were read",
                forks.pages
            ),
            inherent: false,
        });
    }
    gaps
}

/// Every page that the check calls damaged.
pub fn damaged_pages(document: &CheckDocument) -> Vec<PageOfFork> {
    let ranges = document.relations.iter().flat_map(|relation| {
        let ranges = relation.damaged.iter();
        ranges.map(move |range| (relation.path.as_str(), *range))
    });
    let pages = ranges.flat_map(|(path, [start, end])| {
        (start..end).map(move |block| PageOfFork::new(path, block))
    });
    let mut pages: Vec<PageOfFork> = pages.collect();
    pages.sort();
    pages.dedup();
    pages
}

/// The same with what is wrong with them, for people.
pub fn described(document: &CheckDocument) -> Vec<DamagedPage> {
    let mut findings: BTreeMap<PageOfFork, Vec<&Finding>> = BTreeMap::new();
    for finding in damage(document) {
        if let Some(block) = finding.place.block {
            let page = PageOfFork::new(&finding.place.path, block.into());
            findings.entry(page).or_default().push(finding);
        }
    }
    let described = damaged_pages(document).into_iter().map(|page| {
        let found = findings.get(&page).map_or(&[][..], Vec::as_slice);
        let mut rules: Vec<String> = found.iter().map(|own| own.rule.clone()).collect();
        rules.sort();
        rules.dedup();
        let first = found.first();
        let relation = first.and_then(|own| {
            let place = &own.place;
            let name = place.relation.as_ref()?;
            Some(match &place.schema {
                Some(schema) => format!("{schema}.{name}"),
                None => name.clone(),
            })
        });
        DamagedPage {
            path: first.map_or(page.path, |own| own.place.path.clone()),
            block: u32::try_from(page.block).unwrap_or(u32::MAX),
            relation,
            rules,
            message: first.map_or_else(String::new, |own| own.message.clone()),
            choice: DamagedPageChoice::Undecided,
        }
    });
    described.collect()
}

/// Findings of damage that belong to no page: missing files, status files, the control file.
pub fn damage_elsewhere(document: &CheckDocument) -> u64 {
    damage(document)
        .filter(|own| own.place.block.is_none())
        .count() as u64
}

fn damage(document: &CheckDocument) -> impl Iterator<Item = &Finding> {
    let findings = document.findings.iter();
    findings.filter(|finding| finding.severity == Severity::Damage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_known_by_any_segment_of_its_fork() {
        let page = PageOfFork::new("base/5/16384", 140_000);
        assert_eq!(PageOfFork::new("base/5/16384.1", 140_000), page);
        assert_eq!(
            PageOfFork::new("base/5/16384_vm", 0).path,
            "base/5/16384_vm"
        );
        assert_eq!(
            PageOfFork::new("base/5/16384_vm.2", 0).path,
            "base/5/16384_vm"
        );
    }
}
