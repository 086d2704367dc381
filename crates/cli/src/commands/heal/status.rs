//! Files of `pg_xact`, `pg_multixact` and `pg_commit_ts` that are missing, truncated or zeroed:
//! which pages are lost, and what proves them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pgclinic_check::check_status_files;
use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::StatusPages;
use pgclinic_cluster::wal::{
    Evidence, PageOrigin, RecoveredStatusPage, StatusAddress, WantedPages,
};
use pgclinic_format::StatusLog;
use pgclinic_format::slru::PAGES_PER_SEGMENT;
use pgclinic_model::document::{CureRequest, FileKind, HealDocument, NotChecked, NotHealed};
use pgclinic_model::{Finding, Severity};
use pgclinic_surgery::cures::{ProvenByBlock, ProvenPage, ProvenPages, RESTORE_STATUS};

use super::evidence::{Found, Search};
use super::{Arguments, plan_of, shown_commands};
use crate::env::Env;
use crate::exit::Failure;

/// More pages of status logs would not fit the memory that a heal may take.
const PAGES_MAX: usize = 2048;
/// By these a file of a status log ends too early, is missing or was overwritten: the server may
/// not start, and no row says what it should.
const FILE_RULES: [&str; 3] = [
    "slru-file-missing",
    "slru-file-truncated",
    "slru-file-zeroed",
];

/// Pages that were lost, by the file in which they are.
pub(super) type LostPages = BTreeMap<String, BTreeSet<StatusAddress>>;

/// A plan that gives files of status logs back, and nothing else: what stands in tables and
/// catalogs is known only afterwards, and without these files a server does not start.
pub(super) fn planned(
    arguments: &Arguments,
    pgdata: &Path,
    cluster: &Cluster,
    world: &mut Env<'_>,
) -> Result<Option<(HealDocument, ProvenPages)>, Failure> {
    let is_other = arguments.pages
        || arguments.apply.is_some()
        || arguments.cure.named().is_some()
        || !arguments.at.is_empty();
    if is_other || cluster.needs_recovery() {
        return Ok(None);
    }
    let mut findings = check_status_files(cluster);
    findings.retain(|own| FILE_RULES.contains(&own.rule.as_str()));
    let lost = lost_pages(&findings, cluster);
    if lost.is_empty() {
        return Ok(None);
    }
    let named = arguments.evidence.named()?;
    let mut found = Found::default();
    Search {
        arguments,
        pgdata,
        cluster,
        evidence: &named,
        scratch: false,
        world,
    }
    .prove_status_alone(&lost, &mut found)?;
    if found.requests.is_empty() {
        for own in &found.not_healed {
            world.say(&format!(
                "{} is not proven: {}",
                own.path,
                own.why.join("; ")
            ));
        }
        return Ok(None);
    }
    let mut document = plan_of(cluster, pgdata, &found.requests, &found.proven)?;
    document.evidence = Some(named);
    document.not_healed = found.not_healed;
    document.not_checked = found.not_checked;
    document.not_checked.push(NotChecked {
        what: "tables, indexes and catalogs".into(),
        why: "without these files nobody knows which rows count: heal again once they are back"
            .into(),
        inherent: false,
    });
    Ok(Some((document, found.proven)))
}

/// The finding is of a file of a status log that must survive a restart.
pub(super) fn is_of_status(finding: &Finding) -> bool {
    finding.place.kind == FileKind::Slru && finding.severity == Severity::Damage
}

/// All pages that these findings say are damaged, and those that are missing before them.
pub(super) fn lost_pages(findings: &[Finding], cluster: &Cluster) -> LostPages {
    let mut lost = LostPages::new();
    for finding in findings.iter().filter(|own| is_of_status(own)) {
        let path = &finding.place.path;
        let Some((log, segment)) = StatusLog::of_path(path, cluster.layout.major) else {
            continue;
        };
        let Ok(pages) = StatusPages::open(cluster, log) else {
            continue;
        };
        let own = pages_of(finding, &pages);
        let first = segment.saturating_mul(PAGES_PER_SEGMENT);
        let Some(last) = own.iter().next_back().copied() else {
            continue;
        };
        // A file has no holes: what it lacks before comes first.
        let missing = (first..=last).filter(|page| !pages.has(*page));
        let own = own.iter().copied().chain(missing);
        let own = own.filter(|page| page / PAGES_PER_SEGMENT == segment);
        let of_file = lost.entry(path.clone()).or_default();
        of_file.extend(own.map(|page| StatusAddress { log, page }));
    }
    lost
}

fn pages_of(finding: &Finding, pages: &StatusPages<'_>) -> BTreeSet<u64> {
    let fact = |name: &str| finding.facts.get(name).and_then(|value| value.as_u64());
    let number = |name: &str| u32::try_from(fact(name)?).ok();
    let xids = number("first_transaction").zip(number("last_transaction"));
    match (fact("first_page").zip(fact("pages")), xids) {
        (Some((first, count)), _) => (first..first.saturating_add(count)).collect(),
        (_, Some((first, last))) => (pages.page_of(first)..=pages.page_of(last)).collect(),
        _ => finding.place.block.into_iter().map(u64::from).collect(),
    }
}

/// The pages that a saved plan gives back.
pub(super) fn planned_pages(requests: &[CureRequest], major: u16) -> LostPages {
    let own = requests.iter().filter(|own| own.cure == RESTORE_STATUS);
    let mut lost = LostPages::new();
    for request in own {
        let Some((log, _)) = StatusLog::of_path(&request.path, major) else {
            continue;
        };
        let first = u64::from(request.block);
        let pages = first..first + u64::from(request.item.unwrap_or(1));
        let of_file = lost.entry(request.path.clone()).or_default();
        of_file.extend(pages.map(|page| StatusAddress { log, page }));
    }
    lost
}

impl Search<'_, '_> {
    fn prove_status_alone(&self, lost: &LostPages, found: &mut Found) -> Result<(), Failure> {
        let copies = self.copies()?;
        let evidence = self.all_evidence(&copies)?;
        self.prove_status(lost, &evidence, found);
        Ok(())
    }

    /// All pages of a file are proven, or none comes back.
    pub(super) fn prove_status(
        &self,
        lost: &LostPages,
        evidence: &Evidence<'_>,
        found: &mut Found,
    ) {
        let wanted: Vec<StatusAddress> = lost.values().flatten().copied().collect();
        let asked = wanted
            .get(..PAGES_MAX.min(wanted.len()))
            .unwrap_or_default();
        let pages = WantedPages {
            blocks: &[],
            status: asked,
        };
        let recovered = self.recover_all(evidence, &pages);
        let proven: BTreeMap<StatusAddress, &RecoveredStatusPage> = recovered
            .status
            .iter()
            .map(|page| (page.address, page))
            .collect();
        for (path, pages) in lost {
            match self.proven_file(path, pages, &proven) {
                Ok((requests, own)) => {
                    found.requests.extend(requests);
                    found.proven.pages.extend(own);
                }
                Err(mut why) => {
                    why.extend(recovered.refused_copies.iter().cloned());
                    found
                        .not_healed
                        .push(self.status_not_healed(path, pages, why));
                }
            }
        }
        self.tell_troubles(&recovered, found);
    }

    fn proven_file(
        &self,
        path: &str,
        pages: &BTreeSet<StatusAddress>,
        proven: &BTreeMap<StatusAddress, &RecoveredStatusPage>,
    ) -> Result<(Vec<CureRequest>, ProvenByBlock), Vec<String>> {
        let mut own = ProvenByBlock::new();
        for address in pages {
            let Some(recovered) = proven.get(address) else {
                return Err(vec![format!(
                    "more than {PAGES_MAX} pages of status logs are damaged, and one plan gives back no more: restore a backup"
                )]);
            };
            let (exact, bytes) = recovered.outcome.as_ref().map_err(|why| {
                let words = format!("page {}: {why}", address.page);
                std::iter::once(words)
                    .chain(recovered.refused_copies.iter().cloned())
                    .collect::<Vec<_>>()
            })?;
            let page = ProvenPage {
                bytes: bytes.clone(),
                evidence: exact.evidence(),
                is_unverified: self.is_unverified(&exact.origin),
            };
            let block = u32::try_from(address.page).unwrap_or(u32::MAX);
            own.insert((path.to_owned(), block), page);
        }
        if own
            .iter()
            .all(|((_, block), page)| self.has_status(pages, *block, &page.bytes))
        {
            return Err(vec![
                "the pages are what WAL says that they were: what is wrong lies elsewhere".into(),
            ]);
        }
        let blocks = own.keys().map(|(_, block)| *block);
        Ok((requests(path, blocks), own))
    }

    /// The page on the disk is this one already.
    fn has_status(&self, pages: &BTreeSet<StatusAddress>, block: u32, bytes: &[u8]) -> bool {
        let log = pages.first().map(|address| address.log);
        let on_disk = log.and_then(|log| StatusPages::open(self.cluster, log).ok());
        on_disk.is_some_and(|mut pages| pages.page(block.into()) == Some(bytes))
    }

    fn status_not_healed(
        &self,
        path: &str,
        pages: &BTreeSet<StatusAddress>,
        why: Vec<String>,
    ) -> NotHealed {
        NotHealed {
            path: path.to_owned(),
            relation: None,
            blocks: pages.iter().map(|own| [own.page, own.page + 1]).collect(),
            needs_loss: true,
            why,
            commands: vec![shown_commands::salvage(self.pgdata, None)],
        }
    }
}

/// One for each run of pages.
fn requests(path: &str, blocks: impl Iterator<Item = u32>) -> Vec<CureRequest> {
    let mut requests: Vec<CureRequest> = Vec::new();
    for block in blocks {
        let last = requests.last_mut();
        let count = last.and_then(|last| {
            let count = last.item.as_mut()?;
            (last.block.checked_add((*count).into())? == block).then_some(count)
        });
        match count {
            Some(count) => *count = count.saturating_add(1),
            None => requests.push(CureRequest {
                cure: RESTORE_STATUS.into(),
                path: path.to_owned(),
                block,
                item: Some(1),
                column: None,
            }),
        }
    }
    requests
}

/// Whether the page begins with bytes of a copy that nothing confirms.
pub(super) fn is_unconfirmed(origin: &PageOrigin) -> bool {
    matches!(
        origin,
        PageOrigin::StatusCopy {
            is_in_manifest: false,
            agree: false,
            ..
        }
    )
}
