//! Pages that come back by evidence: what the structure check calls damaged, and what WAL, backups
//! and other copies prove of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pgclinic_check::{CheckOptions, check_cluster};
use pgclinic_cluster::status::StatusPages;
use pgclinic_cluster::wal::{
    BlockAddress, CopyOfCluster, Evidence, ExactPage, NotProven, PageOrigin, RecoveredBlock,
    RecoveredBlocks, ReplaySpace, WalDirectory, WantedPages, recover_pages,
};
use pgclinic_cluster::{Cluster, ForkFiles, read_block};
use pgclinic_diff::are_alike;
use pgclinic_format::StatusLog;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::document::{CheckDocument, CureRequest, HealEvidence, NotChecked, NotHealed};
use pgclinic_model::{Level, plural, shell_word};
use pgclinic_source::DataDirectory;
use pgclinic_spill::Part;
use pgclinic_surgery::checksums::PageOfFork;
use pgclinic_surgery::cures::{
    CLEAR_ALL_VISIBLE, CLEAR_MAP_PAGE, CORRECT_PAGE, ProvenPage, ProvenPages, REBUILD_SEQUENCE,
    RESTORE_PAGE, is_same_page, page_corrections, plan_heal,
};

use super::Arguments;
use super::accused::{Accusation, accusations, not_cured};
use super::elsewhere::{
    Known, damage_elsewhere, damage_without_answer, index_not_proven, not_proven, other_way,
    sequence_not_proven, zero_page,
};
use super::ends::{TruncatedTable, planned_tables, truncated_tables};
use super::given_up::{OwnState, SOUND_BY_ITSELF, lost_map, may_be_accused_in_vain, own_state};
use super::scratch::{ROLLS_FORWARD, may_be_rolled_forward};
use super::status::{LostPages, is_unconfirmed, lost_pages, planned_pages};
use super::wanted::{
    ForksByPath, Reason, Wanted, accused_pages, is_index, is_map, is_of_rows,
    mark_visibility_alone, pages_of, request,
};
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
        let word = |path: &String| shell_word(&target::spec_of(Path::new(path)));
        paths.map(move |path| format!("{option} {}", word(path)))
    });
    words.collect()
}

/// Accused are pages of tables and of their TOASTed values.
const HEAP: Option<AccessMethod> = Some(AccessMethod::Heap);

/// What is to be healed, and with what.
#[derive(Default)]
pub(super) struct Found {
    pub(super) requests: Vec<CureRequest>,
    pub(super) proven: ProvenPages,
    pub(super) not_healed: Vec<NotHealed>,
    pub(super) not_checked: Vec<NotChecked>,
    /// Pages of pg_xact that rows deny.
    pub(super) denied: Vec<u32>,
    /// Why pages are not proven that are accused.
    unproven: BTreeMap<PageOfFork, Vec<String>>,
}

/// A page that neither WAL nor a copy proves, with the reasons.
pub(super) type Unproven<'a> = (&'a Wanted<'a>, Vec<String>);

pub(super) const IS_AS_IT_WAS: &str =
    "the page is what WAL says that it was: what is wrong lies elsewhere";

const BUT_FOR_HINTS: &str =
    "hint bits and free space differ from that, which the server changes without WAL";

/// Pages that our own redo does not give back.
#[derive(Default)]
struct OpenPages<'a> {
    unproven: Vec<Unproven<'a>>,
    /// Those that a real server may know how to roll forward.
    for_a_server: Vec<Unproven<'a>>,
    /// Those of indexes that are what they were.
    sound: Vec<&'a Wanted<'a>>,
}

/// A search for damage and its cures.
pub(super) struct Search<'a, 'w> {
    pub(super) arguments: &'a Arguments,
    pub(super) pgdata: &'a Path,
    pub(super) cluster: &'a Cluster,
    pub(super) evidence: &'a HealEvidence,
    /// What our own redo does not know goes through a real server.
    pub(super) scratch: bool,
    pub(super) world: &'a Env<'w>,
}

impl Search<'_, '_> {
    /// Looks for damage at level `structure`, and for what proves each damaged page.
    pub(super) fn found(&self) -> Result<Found, Failure> {
        let level = self.arguments.level.level();
        let document = self.checked(level, "interrupted; nothing was written")?;
        let files = forks_by_path(self.cluster)?;
        let mut found = Found {
            not_checked: not_read(&document),
            denied: denied_pages(&document, self.cluster),
            ..Found::default()
        };
        let mut wanted = self.damaged_pages(&document, &files, &mut found);
        mark_visibility_alone(&document, &mut wanted);
        let accused = accusations(&document, self.cluster, &files);
        wanted.extend(accused_pages(&accused, &files, &wanted));
        let truncated = truncated_tables(&document, self.cluster, &files);
        let lost = lost_pages(&document.findings, self.cluster);
        let known = Known {
            wanted: &wanted,
            truncated: &truncated,
            lost: &lost,
            accused: &accused,
        };
        let mut elsewhere = damage_elsewhere(&document, &known, &found);
        self.explain_lost_files(&mut elsewhere)?;
        found.not_healed.extend(elsewhere);
        self.prove(&wanted, &truncated, &lost, &mut found)?;
        self.tell_accused(&accused, &mut found);
        let rest = damage_without_answer(&document, &accused, &found);
        let rest = rest
            .into_iter()
            .filter(|own| !is_below_lost_link(own, &found));
        let rest: Vec<NotHealed> = rest.collect();
        found.not_healed.extend(rest);
        self.fold_into_maps(&mut found.not_healed);
        if !accused.is_empty() && document.findings_omitted > 0 {
            found.not_checked.push(NotChecked {
                what: plural(document.findings_omitted, "finding"),
                why: "so many were found that these were left out: heal again afterwards".into(),
                inherent: false,
            });
        }
        Ok(found)
    }

    /// Damaged pages of relations that may come back; maps are cleared, and of the others what else
    /// there is is listed.
    fn damaged_pages<'f>(
        &self,
        document: &'f CheckDocument,
        files: &'f ForksByPath,
        found: &mut Found,
    ) -> Vec<Wanted<'f>> {
        let mut wanted = Vec::new();
        for relation in &document.relations {
            if relation.damaged.is_empty() {
                continue;
            }
            match files.get(&relation.path) {
                Some(files) if is_of_rows(relation) => wanted.extend(pages_of(relation, files)),
                Some(files) if is_index(relation) && self.arguments.index_pages => {
                    wanted.extend(pages_of(relation, files));
                }
                Some(files) if is_map(relation) => {
                    let pages = pages_of(relation, files);
                    found
                        .requests
                        .extend(pages.map(|page| request(&page, CLEAR_MAP_PAGE)));
                }
                _ => found.not_healed.push(other_way(relation)),
            }
        }
        wanted
    }

    /// Accusations of which no page comes back. Those of which one does are checked again
    /// afterwards.
    fn tell_accused(&self, accused: &[Accusation<'_>], found: &mut Found) {
        let spec = target::spec_of(self.pgdata);
        for accusation in accused {
            let is_back = |page: &PageOfFork| {
                let block = u32::try_from(page.block);
                block.is_ok_and(|block| found.proven.page(&page.path, block).is_some())
            };
            if accusation.pages.iter().any(is_back) {
                continue;
            }
            let unproven = accusation
                .pages
                .iter()
                .filter_map(|page| found.unproven.get(page));
            let mut why: Vec<String> = unproven.flatten().cloned().collect();
            why.sort();
            why.dedup();
            let is_listed = |own: &NotHealed| own.path == accusation.finding.place.path;
            if why.is_empty() && !found.not_healed.iter().any(is_listed) {
                why.push("its pages are what WAL says that they were: what is wrong was written so, or lies elsewhere".into());
            }
            let database = accusation.finding.place.database_oid;
            let map = database.and_then(|own| lost_map(self.cluster, own));
            let own = not_cured(accusation, why, map.as_deref(), &spec);
            found.not_healed.push(own);
        }
    }

    /// What a check at this level still finds, but for what these requests would cure.
    pub(super) fn damage_left(
        &self,
        level: Level,
        left_out: &[CureRequest],
    ) -> Result<Found, Failure> {
        let interrupted = "interrupted: the cures were written, and not checked again";
        let document = self.checked(level, interrupted)?;
        let files = forks_by_path(self.cluster)?;
        let mut accused = accusations(&document, self.cluster, &files);
        let is_asked = |page: &PageOfFork| {
            let mut requests = left_out.iter();
            requests.any(|own| *page == PageOfFork::new(&own.path, own.block.into()))
        };
        accused.retain(|own| own.pages.iter().any(is_asked));
        let known = Known {
            wanted: &[],
            truncated: &planned_tables(left_out, self.cluster, &files),
            lost: &planned_pages(left_out, self.cluster.layout.major),
            accused: &accused,
        };
        let mut found = Found {
            requests: left_out.to_vec(),
            not_checked: not_read(&document),
            ..Found::default()
        };
        let mut left = damage_elsewhere(&document, &known, &found);
        self.explain_lost_files(&mut left)?;
        self.fold_into_maps(&mut left);
        found.not_healed = left;
        Ok(found)
    }

    fn checked(&self, level: Level, interrupted: &str) -> Result<CheckDocument, Failure> {
        let bar = self.bar();
        let document = check_cluster(self.cluster, &self.check_options(level), &bar);
        bar.finish();
        if document.interrupted {
            return Err(Failure::new(interrupted));
        }
        Ok(document)
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
                    table: String::new(),
                    database: None,
                    reason: if request.cure == CLEAR_ALL_VISIBLE {
                        Reason::Visibility
                    } else {
                        Reason::Rows
                    },
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
    pub(super) fn holds(&self, page: &Wanted<'_>, bytes: &[u8]) -> bool {
        self.on_disk(page).is_some_and(|found| match page.reason {
            // Its checksum is right: hint bits and free space are the server's own.
            Reason::Accused | Reason::Visibility => {
                are_alike((&found, bytes), page.files.fork, HEAP, page.block)
            }
            _ => is_same_page(self.cluster, &found, bytes),
        })
    }

    fn on_disk(&self, page: &Wanted<'_>) -> Option<Vec<u8>> {
        let source = self.cluster.source();
        read_block(source.as_ref(), page.files, self.cluster.build, page.block)
    }

    pub(super) fn bar(&self) -> Bar {
        let world = self.world;
        Bar::of_bytes(&self.arguments.output, world.terminal, &world.interrupted)
    }

    fn check_options(&self, level: Level) -> CheckOptions {
        let (arguments, pgdata, world) = (self.arguments, self.pgdata, self.world);
        CheckOptions {
            level,
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
        let mut open = OpenPages::default();
        for (page, block) in wanted.iter().zip(&recovered.blocks) {
            match &block.outcome {
                Ok(exact) => {
                    self.take_proven(page, (exact, &recovered, block), found, &mut open)?
                }
                Err(why) => {
                    let copies = recovered.refused_copies.iter().chain(&block.refused_copies);
                    let reasons = std::iter::once(why.to_string()).chain(copies.cloned());
                    self.take_unproven((page, reasons.collect()), why, &mut open);
                }
            }
        }
        let rolled = self.roll_forward(open.for_a_server, &evidence, found)?;
        open.unproven.extend(rolled.unproven);
        open.sound.extend(rolled.sound);
        list_sound_index_pages(&open.sound, found);
        let unproven = without_index_pages(open.unproven, found);
        self.correct(unproven, found)?;
        for table in truncated {
            let end = recovered.ends.get(&table.files.number());
            self.prove_end(table, end, &evidence, found)?;
        }
        self.tell_troubles(&recovered, found);
        Ok(())
    }

    /// The page that is proven, unless the disk has it already.
    fn take_proven<'a>(
        &self,
        page: &'a Wanted<'a>,
        (exact, recovered, block): (&ExactPage, &RecoveredBlocks, &RecoveredBlock),
        found: &mut Found,
        open: &mut OpenPages<'a>,
    ) -> Result<(), Failure> {
        let bytes = recovered.page(block);
        let bytes =
            bytes.map_err(|error| Failure::new(format!("a recovered page is lost: {error}")))?;
        let bytes = bytes.ok_or_else(|| Failure::new("a recovered page is lost"))?;
        let cure = match (self.holds(page, &bytes), page.reason) {
            (false, _) => RESTORE_PAGE,
            (true, Reason::Visibility) => CLEAR_ALL_VISIBLE,
            (true, Reason::Accused) => return Ok(()),
            (true, Reason::Index) => {
                open.sound.push(page);
                return Ok(());
            }
            (true, _) => {
                let entry = self.given_up(page, vec![IS_AS_IT_WAS.to_owned()]);
                found.not_healed.push(entry);
                return Ok(());
            }
        };
        let mut proven = ProvenPage {
            bytes,
            evidence: exact.evidence(),
            is_unverified: self.is_unverified(&exact.origin),
        };
        if cure == CLEAR_ALL_VISIBLE {
            self.keep_hints(page, &mut proven);
        }
        let own = (page.files.path(0), page.block);
        found.proven.pages.insert(own, proven);
        found.requests.push(request(page, cure));
        Ok(())
    }

    /// Where nothing but visibility is wrong, the page that stands on the disk is what is proven:
    /// its hint bits are the server's own, and need no page to be written for them.
    fn keep_hints(&self, page: &Wanted<'_>, proven: &mut ProvenPage) {
        let Some(found) = self.on_disk(page) else {
            return;
        };
        if !is_same_page(self.cluster, &found, &proven.bytes) {
            proven.bytes = found;
            proven.evidence.push(BUT_FOR_HINTS.to_owned());
        }
    }

    fn take_unproven<'a>(
        &self,
        (page, mut reasons): Unproven<'a>,
        why: &NotProven,
        open: &mut OpenPages<'a>,
    ) {
        let may_be_rolled = may_be_rolled_forward(why);
        if self.scratch && may_be_rolled {
            open.for_a_server.push((page, reasons));
            return;
        }
        if page.reason == Reason::Index && may_be_rolled {
            reasons.push(ROLLS_FORWARD.into());
        }
        open.unproven.push((page, reasons));
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

    /// Its rows are saved first. Only a page that fails by itself may be given up whole: one that
    /// is zero already holds nothing, and on one that is sound, or is what it was, the rows stand.
    fn given_up(&self, page: &Wanted<'_>, mut why: Vec<String>) -> NotHealed {
        let cluster = self.cluster;
        let bytes = self.on_disk(page);
        let state = own_state(bytes.as_deref(), page.block, cluster.checksums());
        let is_as_it_was = why.iter().any(|own| own == IS_AS_IT_WAS);
        let is_sound = state == OwnState::Sound && !is_as_it_was;
        let map = is_sound
            .then(|| lost_map(cluster, page.files.home.database))
            .flatten();
        match &map {
            Some(map) => why.push(may_be_accused_in_vain(map)),
            None if is_sound => why.push(SOUND_BY_ITSELF.to_owned()),
            None => {}
        }
        let mut own = not_proven(page, why, self.pgdata);
        own.needs_loss = !is_as_it_was && map.is_none();
        if state == OwnState::Broken && !is_as_it_was {
            own.commands.push(zero_page(page, self.pgdata));
        }
        own
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
                Err(_) if page.reason == Reason::Visibility => found.requests.push(CureRequest {
                    cure: CLEAR_ALL_VISIBLE.into(),
                    ..request
                }),
                Err(why) if page.reason == Reason::Sequence => {
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
                    found.not_healed.push(self.given_up(page, reasons));
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

/// It is in a tablespace that no link leads to, which is listed.
fn is_below_lost_link(own: &NotHealed, found: &Found) -> bool {
    let mut links = found
        .not_healed
        .iter()
        .filter(|own| own.path.starts_with("pg_tblspc/"));
    links.any(|link| {
        let rest = own.path.strip_prefix(&link.path);
        rest.is_some_and(|rest| rest.starts_with('/'))
    })
}

fn forks_by_path(cluster: &Cluster) -> Result<ForksByPath, Failure> {
    let mut all = BTreeMap::new();
    for home in &cluster.homes {
        let forks = cluster.files(home);
        let forks = forks.map_err(|gap| Failure::new(format!("{}: {}", gap.what, gap.why)))?;
        all.extend(forks.into_iter().map(|files| (files.path(0), files)));
    }
    Ok(all)
}

/// Pages of an index that are what they were: what is wrong with them goes with another page of it
/// that comes back, or lies elsewhere.
fn list_sound_index_pages(sound: &[&Wanted<'_>], found: &mut Found) {
    for page in sound {
        let path = page.files.path(0);
        let mut requests = found.requests.iter();
        if !requests.any(|own| own.path == path && own.cure == RESTORE_PAGE) {
            let entry = index_not_proven(page, vec![IS_AS_IT_WAS.to_owned()]);
            found.not_healed.push(entry);
        }
    }
}

/// Nothing on a page of an index, or on one that is sound by itself, shows what it was: for indexes
/// what else there is is listed, and of the others the reasons are kept for their accusations.
fn without_index_pages<'a>(unproven: Vec<Unproven<'a>>, found: &mut Found) -> Vec<Unproven<'a>> {
    let mut left = Vec::new();
    for (page, reasons) in unproven {
        match page.reason {
            Reason::Index => found.not_healed.push(index_not_proven(page, reasons)),
            Reason::Accused => {
                found.unproven.insert(page.page(), reasons);
            }
            Reason::Rows | Reason::Visibility | Reason::Sequence => left.push((page, reasons)),
        }
    }
    left
}

/// Backups and other copies, opened.
pub(super) fn copies(
    evidence: &HealEvidence,
    world: &Env<'_>,
) -> Result<Vec<(String, Cluster)>, Failure> {
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
