//! Pages that come back by evidence: what the structure check calls damaged, and what WAL, backups
//! and other copies prove of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pgclinic_check::{CheckOptions, check_cluster};
use pgclinic_cluster::status::StatusPages;
use pgclinic_cluster::wal::{
    BlockAddress, CopyOfCluster, Evidence, PageOrigin, RecoveredBlocks, ReplaySpace, WalDirectory,
    WantedPages, recover_pages,
};
use pgclinic_cluster::{Cluster, ForkFiles, read_block};
use pgclinic_format::{Fork, StatusLog};
use pgclinic_model::document::{
    CheckDocument, CureRequest, FileKind, HealEvidence, NotChecked, NotHealed, RelationSummary,
};
use pgclinic_model::plural;
use pgclinic_model::{Finding, Level, Severity, shell_word};
use pgclinic_source::DataDirectory;
use pgclinic_spill::Part;
use pgclinic_surgery::checksums::PageOfFork;
use pgclinic_surgery::cures::{
    CLEAR_ALL_VISIBLE, CLEAR_MAP_PAGE, CORRECT_PAGE, ProvenPage, ProvenPages, REBUILD_SEQUENCE,
    RESTORE_PAGE, is_same_page, page_corrections, plan_heal,
};

use super::Arguments;
use super::ends::{TruncatedTable, is_of_end, is_of_table, planned_tables, truncated_tables};
use super::status::{LostPages, is_of_status, is_unconfirmed, lost_pages, planned_pages};
use crate::args::ChainArgs;
use crate::env::Env;
use crate::exit::Failure;
use crate::progress::Bar;
use crate::target::{self, Opening};

/// Where evidence lies.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Evidence")]
pub(super) struct EvidenceArgs {
    /// A directory with WAL: an archive
    ///
    /// Segments may be compressed (gz, lz4, zst), and be .partial. The pg_wal of PGDATA and of each
    /// copy is used in any case. Give the option once for each directory.
    #[arg(long, value_name = "DIR")]
    wal: Vec<PathBuf>,
    /// A base backup, as a directory or as base.tar
    ///
    /// Its pages are rolled forward with the WAL since. Give the option once for each backup.
    #[arg(long, value_name = "TARGET")]
    backup: Vec<PathBuf>,
    /// An incremental backup on top of the one of --backup
    ///
    /// Oldest first. Give the option once for each incremental backup.
    #[arg(long, value_name = "DIR", requires = "backup")]
    incremental: Vec<PathBuf>,
    /// A standby that was shut down, or any other copy
    #[arg(long, value_name = "PGDATA")]
    standby: Vec<PathBuf>,
}

impl EvidenceArgs {
    /// Some was named.
    pub(super) fn is_given(&self) -> bool {
        let all = [&self.wal, &self.backup, &self.incremental, &self.standby];
        all.iter().any(|paths| !paths.is_empty())
    }

    /// With full paths, so that a plan in a file can be carried out from anywhere.
    pub(super) fn named(&self) -> Result<HealEvidence, Failure> {
        let all = |paths: &[PathBuf]| -> Result<Vec<String>, Failure> {
            let full = paths.iter().map(|path| {
                let full = path.canonicalize();
                full.map(|path| path.display().to_string())
                    .map_err(|error| {
                        Failure::new(format!("cannot open {}: {error}", path.display()))
                    })
            });
            full.collect()
        };
        if self.backup.len() > 1 && !self.incremental.is_empty() {
            let why = "--incremental is for one --backup: it is unknown on which of them it builds";
            return Err(Failure::new(why));
        }
        Ok(HealEvidence {
            wal: all(&self.wal)?,
            backups: all(&self.backup)?,
            incrementals: all(&self.incremental)?,
            standbys: all(&self.standby)?,
        })
    }
}

/// The words of a command that name this evidence.
pub(super) fn words(evidence: &HealEvidence) -> Vec<String> {
    let kinds = [
        ("--wal", &evidence.wal),
        ("--backup", &evidence.backups),
        ("--incremental", &evidence.incrementals),
        ("--standby", &evidence.standbys),
    ];
    let words = kinds.into_iter().flat_map(|(option, paths)| {
        let paths = paths.iter();
        paths.map(move |path| format!("{option} {}", shell_word(path)))
    });
    words.collect()
}

/// What is to be healed, and with what.
#[derive(Default)]
pub(super) struct Found {
    pub(super) requests: Vec<CureRequest>,
    pub(super) proven: ProvenPages,
    pub(super) not_healed: Vec<NotHealed>,
    pub(super) not_checked: Vec<NotChecked>,
    /// Pages of pg_xact that rows deny.
    pub(super) denied: Vec<u32>,
}

/// A page to be given back.
struct Wanted<'a> {
    files: &'a ForkFiles,
    block: u32,
    relation: String,
    /// The only damage is that page and visibility map contradict each other.
    is_visibility_alone: bool,
    is_sequence: bool,
}

/// A page that neither WAL nor a copy proves, with the reasons.
type Unproven<'a> = (&'a Wanted<'a>, Vec<String>);

/// A search for damage and its cures.
pub(super) struct Search<'a, 'w> {
    pub(super) arguments: &'a Arguments,
    pub(super) pgdata: &'a Path,
    pub(super) cluster: &'a Cluster,
    pub(super) evidence: &'a HealEvidence,
    pub(super) world: &'a Env<'w>,
}

impl Search<'_, '_> {
    /// Looks for damage at level `structure`, and for what proves each damaged page.
    pub(super) fn found(&self) -> Result<Found, Failure> {
        let bar = self.bar();
        let document = check_cluster(self.cluster, &self.check_options(), &bar);
        bar.finish();
        if document.interrupted {
            return Err(Failure::new("interrupted; nothing was written"));
        }
        let files = forks_by_path(self.cluster)?;
        let mut found = Found {
            not_checked: not_read(&document),
            denied: denied_pages(&document, self.cluster),
            ..Found::default()
        };
        let mut wanted = Vec::new();
        for relation in &document.relations {
            if relation.damaged.is_empty() {
                continue;
            }
            match files.get(&relation.path) {
                Some(files) if is_of_rows(relation) => wanted.extend(pages_of(relation, files)),
                Some(files) if is_map(relation) => {
                    let pages = pages_of(relation, files);
                    found
                        .requests
                        .extend(pages.map(|page| request(&page, CLEAR_MAP_PAGE)));
                }
                _ => found.not_healed.push(other_way(relation)),
            }
        }
        mark_visibility_alone(&document, &mut wanted);
        let truncated = truncated_tables(&document, self.cluster, &files);
        let lost = lost_pages(&document.findings, self.cluster);
        let elsewhere = damage_elsewhere(&document, (&wanted, &truncated, &lost), &found);
        found.not_healed.extend(elsewhere);
        self.prove(&wanted, &truncated, &lost, &mut found)?;
        Ok(found)
    }

    /// The pages that a saved plan wants back, proven again.
    pub(super) fn proven_again(&self, requests: &[CureRequest]) -> Result<ProvenPages, Failure> {
        let files = forks_by_path(self.cluster)?;
        let proven = [RESTORE_PAGE, CLEAR_ALL_VISIBLE];
        let own = requests
            .iter()
            .filter(|own| proven.contains(&own.cure.as_str()));
        let wanted: Vec<Wanted<'_>> = own
            .filter_map(|request| {
                Some(Wanted {
                    files: files.get(&request.path)?,
                    block: request.block,
                    relation: String::new(),
                    is_visibility_alone: request.cure == CLEAR_ALL_VISIBLE,
                    is_sequence: false,
                })
            })
            .collect();
        let mut found = Found::default();
        let truncated = planned_tables(requests, self.cluster, &files);
        let lost = planned_pages(requests, self.cluster.layout.major);
        self.prove(&wanted, &truncated, &lost, &mut found)?;
        found.proven.add(self.segments_again(requests)?);
        Ok(found.proven)
    }

    /// The page begins with bytes that no checksum covers: an image in WAL has the record's.
    pub(super) fn is_unverified(&self, origin: &PageOrigin) -> bool {
        match origin {
            PageOrigin::Image { .. } | PageOrigin::NewPage { .. } => false,
            PageOrigin::Copy { has_checksum, .. } => !has_checksum,
            PageOrigin::NeverAsked => false,
            own @ PageOrigin::StatusCopy { .. } => is_unconfirmed(own),
            PageOrigin::SameState { .. } => self.cluster.checksums() != Some(true),
        }
    }

    /// The page on the disk is this one already.
    fn holds(&self, page: &Wanted<'_>, bytes: &[u8]) -> bool {
        let source = self.cluster.source();
        let found = read_block(source.as_ref(), page.files, self.cluster.build, page.block);
        found.is_some_and(|found| is_same_page(self.cluster, &found, bytes))
    }

    fn bar(&self) -> Bar {
        let world = self.world;
        Bar::of_bytes(&self.arguments.output, world.terminal, &world.interrupted)
    }

    fn check_options(&self) -> CheckOptions {
        let (arguments, pgdata, world) = (self.arguments, self.pgdata, self.world);
        CheckOptions {
            level: Level::Structure,
            threads: arguments.load.threads(),
            evidence: 0,
            selection: pgclinic_model::Selection::default(),
            spec: target::spec_of(pgdata),
            memory: arguments.load.memory_plan(),
            spill_folder: arguments.load.spill_folder(&world.temp_folder),
            since: None,
        }
    }

    /// One pass over the WAL for these blocks.
    pub(super) fn recover(
        &self,
        evidence: &Evidence<'_>,
        addresses: &[BlockAddress],
    ) -> RecoveredBlocks {
        let wanted = WantedPages {
            blocks: addresses,
            status: &[],
        };
        self.recover_all(evidence, &wanted)
    }

    /// One pass over the WAL for these pages.
    pub(super) fn recover_all(
        &self,
        evidence: &Evidence<'_>,
        wanted: &WantedPages<'_>,
    ) -> RecoveredBlocks {
        let memory = self.arguments.load.memory_plan();
        let spill = self.arguments.load.spill_folder(&self.world.temp_folder);
        let space = ReplaySpace {
            memory: memory.part(Part::ReplayedPages),
            spill_folder: Some(&spill),
        };
        let bar = self.bar();
        let recovered = recover_pages(self.cluster, wanted, evidence, &space, &bar);
        bar.finish();
        recovered
    }

    fn prove(
        &self,
        wanted: &[Wanted<'_>],
        truncated: &[TruncatedTable],
        lost: &LostPages,
        found: &mut Found,
    ) -> Result<(), Failure> {
        if wanted.is_empty() && truncated.is_empty() && lost.is_empty() {
            return Ok(());
        }
        let copies = self.copies()?;
        let evidence = self.all_evidence(&copies)?;
        if !lost.is_empty() {
            self.prove_status(lost, &evidence, found);
        }
        if wanted.is_empty() && truncated.is_empty() {
            return Ok(());
        }
        let of_pages = wanted.iter().map(|page| address_of(page.files, page.block));
        // A block past the end tells how far the WAL goes there.
        let past_ends = truncated
            .iter()
            .map(|table| address_of(&table.files, table.missing.first));
        let addresses: Vec<BlockAddress> = of_pages.chain(past_ends).collect();
        let recovered = self.recover(&evidence, &addresses);
        let mut unproven: Vec<Unproven<'_>> = Vec::new();
        for (page, block) in wanted.iter().zip(&recovered.blocks) {
            match &block.outcome {
                Ok(exact) => {
                    let bytes = recovered.page(block);
                    let bytes = bytes.map_err(|error| {
                        Failure::new(format!("a recovered page is lost: {error}"))
                    })?;
                    let Some(bytes) = bytes else { continue };
                    let cure = match (self.holds(page, &bytes), page.is_visibility_alone) {
                        (false, _) => RESTORE_PAGE,
                        (true, true) => CLEAR_ALL_VISIBLE,
                        (true, false) => {
                            let why = "the page is what WAL says that it was: what is wrong lies elsewhere";
                            let reasons = vec![why.to_owned()];
                            found
                                .not_healed
                                .push(not_proven(page, reasons, self.pgdata));
                            continue;
                        }
                    };
                    found.proven.pages.insert(
                        (page.files.path(0), page.block),
                        ProvenPage {
                            bytes,
                            evidence: exact.evidence(),
                            is_unverified: self.is_unverified(&exact.origin),
                        },
                    );
                    found.requests.push(request(page, cure));
                }
                Err(why) => {
                    let copies = recovered.refused_copies.iter().chain(&block.refused_copies);
                    let reasons = std::iter::once(why.to_string()).chain(copies.cloned());
                    unproven.push((page, reasons.collect()));
                }
            }
        }
        self.correct(unproven, found)?;
        for table in truncated {
            let end = recovered.ends.get(&table.files.number());
            self.prove_end(table, end, &evidence, found)?;
        }
        self.tell_troubles(&recovered, found);
        Ok(())
    }

    /// What of the evidence could not be read, each once.
    pub(super) fn tell_troubles(&self, recovered: &RecoveredBlocks, found: &mut Found) {
        for trouble in &recovered.troubles {
            let entry = NotChecked {
                what: trouble.what.clone(),
                why: trouble.why.clone(),
                inherent: false,
            };
            if !found.not_checked.contains(&entry) {
                found.not_checked.push(entry);
            }
        }
    }

    /// Backups and other copies, opened.
    pub(super) fn copies(&self) -> Result<Vec<(String, Cluster)>, Failure> {
        copies(self.evidence, self.world)
    }

    /// All that was named.
    pub(super) fn all_evidence<'c>(
        &self,
        copies: &'c [(String, Cluster)],
    ) -> Result<Evidence<'c>, Failure> {
        let copies = copies.iter().map(|(name, cluster)| CopyOfCluster {
            name: name.clone(),
            cluster,
        });
        Ok(Evidence {
            wal: archives(self.evidence, self.pgdata)?,
            copies: copies.collect(),
        })
    }

    /// What nothing else proves may follow from what stands on the page itself.
    fn correct(&self, unproven: Vec<Unproven<'_>>, found: &mut Found) -> Result<(), Failure> {
        let requests = unproven.iter().map(|(page, _)| request(page, CORRECT_PAGE));
        let requests: Vec<CureRequest> = requests.collect();
        let corrections = page_corrections(self.cluster, &requests)?;
        let pages = unproven.into_iter().zip(corrections);
        for (((page, mut reasons), correction), request) in pages.zip(requests) {
            match correction {
                Ok(_) => found.requests.push(request),
                Err(_) if page.is_visibility_alone => found.requests.push(CureRequest {
                    cure: CLEAR_ALL_VISIBLE.into(),
                    ..request
                }),
                Err(why) if page.is_sequence => {
                    let request = CureRequest {
                        cure: REBUILD_SEQUENCE.into(),
                        ..request
                    };
                    match plan_heal(self.cluster, std::slice::from_ref(&request), &found.proven) {
                        Ok(_) => found.requests.push(request),
                        Err(error) => {
                            reasons.extend([why, error.to_string()]);
                            found.not_healed.push(sequence_not_proven(page, reasons));
                        }
                    }
                }
                Err(why) => {
                    reasons.push(why);
                    found
                        .not_healed
                        .push(not_proven(page, reasons, self.pgdata));
                }
            }
        }
        Ok(())
    }
}

/// A block, as WAL names it.
pub(super) fn address_of(files: &ForkFiles, block: u32) -> BlockAddress {
    BlockAddress {
        file: files.number(),
        fork: files.fork,
        block,
    }
}

/// Damage that belongs to none of these pages: files that are missing or too short, SLRU files,
/// the control file. What follows from a page that comes back goes with it.
fn damage_elsewhere(
    document: &CheckDocument,
    (wanted, truncated, lost): (&[Wanted<'_>], &[TruncatedTable], &LostPages),
    found: &Found,
) -> Vec<NotHealed> {
    let other = &found.not_healed;
    let of_rows = wanted
        .iter()
        .map(|page| PageOfFork::new(&page.files.path(0), page.block.into()));
    let of_maps = found
        .requests
        .iter()
        .map(|own| PageOfFork::new(&own.path, own.block.into()));
    let pages: BTreeSet<PageOfFork> = of_rows.chain(of_maps).collect();
    let is_wanted = |finding: &Finding| page_of(finding).is_some_and(|page| pages.contains(&page));
    let is_end = |finding: &Finding| {
        let mut tables = truncated.iter();
        is_of_end(finding) && tables.any(|own| is_of_table(finding, own))
    };
    let is_lost = |own: &Finding| is_of_status(own) && lost.contains_key(&own.place.path);
    let is_other = |finding: &Finding| {
        page_of(finding).is_some_and(|page| {
            let mut own = other.iter().filter(|own| own.path == page.path);
            own.any(|own| {
                own.blocks
                    .iter()
                    .any(|[start, end]| (*start..*end).contains(&page.block))
            })
        })
    };
    let damage = document.findings.iter();
    let damage = damage.filter(|own| own.severity == Severity::Damage);
    let roots: BTreeSet<&str> = damage
        .clone()
        .filter(|own| is_wanted(own) || is_end(own) || is_lost(own))
        .map(|own| own.id.as_str())
        .collect();
    let follows = |own: &Finding| {
        own.caused_by
            .as_deref()
            .is_some_and(|id| roots.contains(id))
    };
    let mut by_path: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    let is_known = |own: &Finding| is_wanted(own) || is_end(own) || is_lost(own) || is_other(own);
    for finding in damage.filter(|own| !is_known(own) && !follows(own)) {
        by_path
            .entry(&finding.place.path)
            .or_default()
            .push(finding);
    }
    by_path
        .into_iter()
        .map(|(path, findings)| not_of_a_page(path, &findings, &document.target.spec))
        .collect()
}

fn page_of(finding: &Finding) -> Option<PageOfFork> {
    let block = finding.place.block?;
    Some(PageOfFork::new(&finding.place.path, block.into()))
}

/// Rules by which the visibility map says more of a page than the page itself, or the page more
/// than its rows.
const VISIBILITY_RULES: [&str; 2] = ["visibility-map-wrong", "page-not-all-visible"];

/// Pages with which nothing else is wrong.
fn mark_visibility_alone(document: &CheckDocument, wanted: &mut [Wanted<'_>]) {
    let mut alone: BTreeMap<PageOfFork, bool> = BTreeMap::new();
    let damage = document.findings.iter();
    for finding in damage.filter(|own| own.severity == Severity::Damage) {
        if let Some(page) = page_of(finding) {
            *alone.entry(page).or_insert(true) &= VISIBILITY_RULES.contains(&finding.rule.as_str());
        }
    }
    // Findings that were left out may be of any page.
    let is_complete = document.findings_omitted == 0;
    for page in wanted {
        let own = PageOfFork::new(&page.files.path(0), page.block.into());
        page.is_visibility_alone = is_complete && alone.get(&own) == Some(&true);
    }
}

/// Findings of one file that are listed with their words.
const FINDINGS_SHOWN: usize = 5;

fn not_of_a_page(path: &str, findings: &[&Finding], pgdata: &str) -> NotHealed {
    let blocks = findings.iter().filter_map(|own| own.place.block);
    let shown = findings.iter().take(FINDINGS_SHOWN);
    let mut why: Vec<String> = shown
        .map(|own| format!("{}: {}", own.rule, own.message))
        .collect();
    let more = findings.len().saturating_sub(FINDINGS_SHOWN);
    if more > 0 {
        why.push(format!(
            "and {more} of this file",
            more = plural(more, "more finding")
        ));
    }
    let rules: BTreeSet<&str> = findings.iter().map(|own| own.rule.as_str()).collect();
    let mut commands = vec![format!(
        "pgclinic check {} --level full",
        shell_word(pgdata)
    )];
    commands.extend(rules.iter().map(|rule| format!("pgclinic explain {rule}")));
    NotHealed {
        path: path.to_owned(),
        relation: findings.iter().find_map(|own| own.place.relation.clone()),
        blocks: blocks
            .map(|block| [block.into(), u64::from(block) + 1])
            .collect(),
        needs_loss: false,
        why,
        commands,
    }
}

/// The rule of pg_xact against rows.
const STATUS_CONTRADICTED: &str = "transaction-status-contradicted";

/// Pages of pg_xact with transactions of which many rows say otherwise.
fn denied_pages(document: &CheckDocument, cluster: &Cluster) -> Vec<u32> {
    let Ok(log) = StatusPages::open(cluster, StatusLog::Xact) else {
        return Vec::new();
    };
    let own = document.findings.iter();
    let own = own.filter(|own| own.rule == STATUS_CONTRADICTED);
    let pages = own.flat_map(|finding| {
        let page = |name: &str| {
            let xid = finding.facts.get(name)?.as_u64()?;
            u32::try_from(log.page_of(u32::try_from(xid).ok()?)).ok()
        };
        match (page("first_transaction"), page("last_transaction")) {
            (Some(first), Some(last)) => first..last.saturating_add(1),
            _ => 0..0,
        }
    });
    pages.collect()
}

/// What the check did not see may be damaged too.
fn not_read(document: &CheckDocument) -> Vec<NotChecked> {
    let open = document.coverage.not_checked.iter();
    open.filter(|gap| !gap.inherent).cloned().collect()
}

fn forks_by_path(cluster: &Cluster) -> Result<BTreeMap<String, ForkFiles>, Failure> {
    let mut all = BTreeMap::new();
    for home in &cluster.homes {
        let forks = cluster.files(home);
        let forks = forks.map_err(|gap| Failure::new(format!("{}: {}", gap.what, gap.why)))?;
        all.extend(forks.into_iter().map(|files| (files.path(0), files)));
    }
    Ok(all)
}

/// Our own redo knows the pages of tables, TOAST tables and sequences.
fn is_of_rows(relation: &RelationSummary) -> bool {
    let kinds = [
        FileKind::Table,
        FileKind::Toast,
        FileKind::MaterializedView,
        FileKind::Sequence,
    ];
    relation.fork == Fork::Main && kinds.contains(&relation.kind)
}

/// A map of anything that has one.
fn is_map(relation: &RelationSummary) -> bool {
    matches!(relation.fork, Fork::Vm | Fork::Fsm)
}

fn pages_of<'a>(
    relation: &'a RelationSummary,
    files: &'a ForkFiles,
) -> impl Iterator<Item = Wanted<'a>> {
    let blocks = relation
        .damaged
        .iter()
        .flat_map(|[start, end]| *start..*end);
    let blocks = blocks.filter(|block| *block < relation.blocks);
    blocks.filter_map(|block| {
        Some(Wanted {
            files,
            block: u32::try_from(block).ok()?,
            relation: name_of(relation),
            is_visibility_alone: false,
            is_sequence: relation.kind == FileKind::Sequence,
        })
    })
}

fn name_of(relation: &RelationSummary) -> String {
    match (&relation.schema, &relation.relation) {
        (Some(schema), Some(name)) => format!("{schema}.{name}"),
        _ => relation.path.clone(),
    }
}

/// Damage whose cure is no page: what follows from tables is made again.
fn other_way(relation: &RelationSummary) -> NotHealed {
    let name = name_of(relation);
    let (why, command) = match (relation.fork, relation.kind) {
        (Fork::Main, FileKind::Index) => (
            "an index is rebuilt from its table, not patched; its table comes first",
            format!("REINDEX INDEX {name};"),
        ),
        _ => (
            "the kind of this relation is unknown",
            "pgclinic check --level full shows more".into(),
        ),
    };
    let in_database = relation.database.as_ref();
    let in_database = in_database.map(|database| format!(" -- in database {database}"));
    NotHealed {
        path: relation.path.clone(),
        relation: Some(name),
        blocks: relation.damaged.clone(),
        needs_loss: false,
        why: vec![why.into()],
        commands: vec![format!("{command}{}", in_database.unwrap_or_default())],
    }
}

fn request(page: &Wanted<'_>, cure: &str) -> CureRequest {
    CureRequest {
        cure: cure.into(),
        path: page.files.path(0),
        block: page.block,
        item: None,
        column: None,
    }
}

/// What is left where nothing proves the page: its rows are saved first, then it is given up.
fn not_proven(page: &Wanted<'_>, why: Vec<String>, pgdata: &Path) -> NotHealed {
    let path = page.files.path(0);
    let pgdata = shell_word(&pgdata.display().to_string());
    let block = u64::from(page.block);
    NotHealed {
        relation: Some(page.relation.clone()),
        blocks: vec![[block, block + 1]],
        needs_loss: true,
        why,
        commands: vec![
            format!(
                "pgclinic salvage {pgdata} --relation {} --to DIR",
                shell_word(&page.relation)
            ),
            format!(
                "pgclinic heal {pgdata} --at {}:{} --zero-page",
                shell_word(&path),
                page.block
            ),
        ],
        path,
    }
}

/// A sequence that no column owns.
fn sequence_not_proven(page: &Wanted<'_>, why: Vec<String>) -> NotHealed {
    NotHealed {
        path: page.files.path(0),
        relation: Some(page.relation.clone()),
        blocks: vec![[0, 1]],
        needs_loss: true,
        why,
        commands: vec![
            format!("DROP SEQUENCE {};", page.relation),
            format!("CREATE SEQUENCE {} START 1;", page.relation),
        ],
    }
}

/// Backups and other copies, opened.
fn copies(evidence: &HealEvidence, world: &Env<'_>) -> Result<Vec<(String, Cluster)>, Failure> {
    let chain = ChainArgs {
        incremental: evidence.incrementals.iter().map(PathBuf::from).collect(),
    };
    let none = ChainArgs::default();
    let backups = evidence.backups.iter().map(|name| (name, &chain));
    let standbys = evidence.standbys.iter().map(|name| (name, &none));
    let opened = backups.chain(standbys).map(|(name, chain)| {
        let opening = Opening::new(world, None).with_chain(chain);
        let cluster = target::open_cluster(Path::new(name), opening)?;
        Ok((name.clone(), cluster))
    });
    opened.collect()
}

fn archives(evidence: &HealEvidence, pgdata: &Path) -> Result<Vec<WalDirectory>, Failure> {
    // What is named twice, or is the cluster's own, would be read twice and compared with itself.
    let mut known: BTreeSet<PathBuf> = pgdata.join("pg_wal").canonicalize().into_iter().collect();
    let is_new = |path: &&String| {
        let full = Path::new(path).canonicalize();
        let is_known = full.is_ok_and(|full| !known.insert(full));
        !is_known
    };
    let opened = evidence.wal.iter().filter(is_new).map(|path| {
        let source = DataDirectory::open(Path::new(path))?;
        Ok(WalDirectory::archive(path.clone(), Arc::new(source)))
    });
    opened.collect()
}
