//! Tables that a running server has not changed since its last checkpoint, compared as those of a
//! stopped cluster.
//!
//! What changed before that checkpoint is in the files, and what changed later stands in WAL. So a
//! table to which no record leads, with its indexes and its TOAST relation, is in its files as the
//! server knows it, and its pages agree with each other. The server may change it while it is read:
//! what a look finds counts only when a second look finds the same, under WAL that begins before
//! the first look and still leads to none of it.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::unreachable::OutOfReach;
use pgclinic_cluster::wal::Replay;
use pgclinic_cluster::{
    Catalog, Cluster, Comparison, DatabaseContext, Persistence, file_place, selected,
};
use pgclinic_format::{Fork, Oid};
use pgclinic_model::Progress;
use pgclinic_model::document::{FileKind, Finding, Level, NotChecked};
use pgclinic_model::{plural, verb_of};
use pgclinic_scan::guarded;
use pgclinic_scan::live::{FreshView, ViewPosition};
use pgclinic_spill::Part;

use crate::check::ForkCx;
use crate::consequences;
use crate::findings::Findings;
use crate::register::RELATION_CHECKS;
use crate::relation_check::{Believes, RelationCheck, RelationCx};
use crate::run_state::Owner;
use crate::walker::database_relations::DatabaseRelations;
use crate::walker::job::jobs_of;
use crate::walker::run_ledger::RunLedger;
use crate::walker::running_losses::overlap;
use crate::walker::state::owner;
use crate::walker::{CheckOptions, catalogs, forks_of, pass, system_identifier};

/// A table with what belongs to it.
type Family = (Oid, Owner);

/// What one look found.
pub(super) struct RestingTables {
    position: ViewPosition,
    /// What is wrong, with the table of each finding.
    found: BTreeMap<String, (Family, Finding)>,
    /// What the checks left out by nature, and comparisons on which our own code failed.
    left_out: Vec<NotChecked>,
    /// What the checks left out though it may come with a newer view.
    open: BTreeMap<(String, String), (Family, NotChecked)>,
    /// Tables that were compared, and those that wait for a checkpoint.
    pub(super) compared: u64,
    pub(super) changed: u64,
}

/// What is looked at.
pub(super) struct RestingLook<'a> {
    pub(super) options: &'a CheckOptions,
    pub(super) progress: &'a dyn Progress,
    /// Only these; all without.
    pub(super) only: Option<BTreeSet<Family>>,
}

impl RestingTables {
    pub(super) fn are_sound(&self) -> bool {
        self.found.is_empty() && self.open.is_empty()
    }

    /// Those that need a second look.
    pub(super) fn suspicious(&self) -> BTreeSet<Family> {
        let found = self.found.values().map(|(family, _)| *family);
        let open = self.open.values().map(|(family, _)| *family);
        found.chain(open).collect()
    }

    /// Keeps what the second look found as well. False where a checkpoint came between the two, so
    /// that nothing tells whether the first look met pages on their way.
    pub(super) fn confirm(&self, second: Self, books: &mut RunLedger) -> bool {
        if !overlap(self.position, second.position) {
            return false;
        }
        for (id, (_, finding)) in second.found {
            let before = self.found.get(&id);
            if before.is_some_and(|(_, before)| before.message == finding.message) {
                books.findings.keep(finding);
            }
        }
        for (entry, (_, gap)) in second.open {
            if self.open.contains_key(&entry) {
                books.stays_open(None, gap);
            }
        }
        true
    }

    /// What the checks left out, and which tables they did not see.
    pub(super) fn tell_left_out(&mut self, level: Level, books: &mut RunLedger) {
        for entry in self.left_out.drain(..) {
            if entry.inherent {
                books.not_checked(entry);
            } else {
                books.stays_open(None, entry);
            }
        }
        if self.changed > 0 {
            let all = self.compared + self.changed;
            let what = match level {
                Level::Full => format!(
                    "rows against index entries and TOASTed values of {} of {all} tables",
                    self.changed
                ),
                Level::Pages | Level::Structure => format!(
                    "order and links of index pages of {} that {} not to hang together",
                    plural(self.changed, "table"),
                    verb_of(self.changed, "seem")
                ),
            };
            books.not_checked(NotChecked {
                what,
                why: "the server changed them since its last checkpoint and may hold pages of them in memory: --server URL --checkpoint asks for one first"
                    .into(),
                inherent: true,
            });
        }
    }
}

impl RestingLook<'_> {
    /// What a view shows; nothing where its WAL cannot be read whole, so that nobody knows which
    /// tables the server left alone.
    pub(super) fn at(&self, fresh: &FreshView<'_>) -> Option<RestingTables> {
        let (view, names) = (fresh.cluster(), fresh.replayed_cluster());
        let may_compare = view.may_compare(Comparison::PagesThatWalLeftAlone);
        let replay = view.replay().filter(|_| may_compare)?;
        let mut tables = RestingTables {
            position: fresh.position(),
            found: BTreeMap::new(),
            left_out: Vec::new(),
            open: BTreeMap::new(),
            compared: 0,
            changed: 0,
        };
        let all = std::iter::once(0).chain(names.databases.keys().copied());
        let is_asked = |database: &Oid| match &self.only {
            None => selected::database(&self.options.selection, names, *database),
            Some(only) => only.iter().any(|family| family.0 == *database),
        };
        for database in all.filter(is_asked) {
            for catalog in catalogs(names, &[database], self.options.level) {
                if !self.progress.is_interrupted() {
                    self.database((view, replay), &catalog, &mut tables);
                }
            }
        }
        Some(tables)
    }

    fn database(
        &self,
        (view, replay): (&Cluster, &Replay),
        catalog: &Catalog,
        tables: &mut RestingTables,
    ) {
        // What could not be listed or named was reported by the rounds.
        let (forks, _) = forks_of(view, catalog);
        let cx = DatabaseContext {
            cluster: view,
            catalog,
            forks: &forks,
        };
        // Bytes and findings of single pages were counted by the rounds.
        let mut counted_already = RunLedger::new();
        let mut jobs = jobs_of(&cx, self.options, &mut counted_already);
        let changed = changed_families(&jobs, catalog, replay);
        let is_left_out = |own: &&Owner| {
            let family = (catalog.database, **own);
            let is_asked = self.only.as_ref().is_none_or(|only| only.contains(&family));
            is_asked && matches!(own, Owner::Table(_))
        };
        tables.changed += changed.iter().filter(is_left_out).count() as u64;
        jobs.retain(|job| {
            let owner = owner(job, catalog);
            let is_asked = |only: &BTreeSet<Family>| only.contains(&(catalog.database, owner));
            matches!(owner, Owner::Table(_))
                && !changed.contains(&owner)
                && self.only.as_ref().is_none_or(is_asked)
        });
        let families: BTreeSet<Owner> = jobs.iter().map(|job| owner(job, catalog)).collect();
        tables.compared += families.len() as u64;
        self.progress.expect(pass::bytes(&jobs, &counted_already));
        let records = pass::run(
            &jobs,
            pass::Reading::alone(view.source().as_ref(), self.progress),
            system_identifier(view),
            self.options,
            &self.options.memory.part(Part::LeafSummaries),
            &mut counted_already,
        );
        let relations = DatabaseRelations::new(&jobs, records).without(&OutOfReach::of(view));
        self.compare((view, catalog), &relations, tables);
    }

    fn compare(
        &self,
        (view, catalog): (&Cluster, &Catalog),
        relations: &DatabaseRelations<'_>,
        tables: &mut RestingTables,
    ) {
        let budget = self.options.memory.part(Part::Comparisons);
        for (place, fork) in relations.forks().iter().enumerate() {
            if !relations.is_in_reach(place) {
                continue;
            }
            let relation = RelationCx {
                fork,
                catalog,
                neighbours: relations,
                budget: &budget,
                spill_folder: &self.options.spill_folder,
                threads: self.options.threads.get(),
                believes: Believes::WhatRestsWhole,
                source: view.source().as_ref(),
                progress: self.progress,
            };
            let family = (catalog.database, owner(fork, catalog));
            for check in checks_of(fork, self.options) {
                let mut out = Findings::of_relation();
                let compared = guarded(|| check.check(&relation, &mut out));
                if let Err(failure) = compared {
                    let what = format!("the comparison of {}", fork.files.path(0));
                    tables.left_out.push(failure.not_checked(what));
                } else if !self.progress.is_interrupted() {
                    tables.add(family, out, system_identifier(view));
                }
            }
        }
    }
}

impl RestingTables {
    fn add(&mut self, family: Family, mut out: Findings, system_identifier: u64) {
        for mut draft in out.take_drafts() {
            draft.links.compared = true;
            consequences::complete_file(&mut draft);
            let finding = draft.finish(&file_place("", FileKind::File), system_identifier);
            self.found.insert(finding.id.clone(), (family, finding));
        }
        for gap in out.not_checked.drain(..) {
            if gap.inherent {
                self.left_out.push(gap);
            } else {
                let entry = (gap.what.clone(), gap.why.clone());
                self.open.insert(entry, (family, gap));
            }
        }
    }
}

/// The forks, by place, of tables that recovery leaves alone with all that belongs to them: after a
/// crash they are compared as in a stopped cluster.
pub(super) fn kept_by_recovery(jobs: &[ForkCx<'_>], catalog: &Catalog) -> BTreeSet<usize> {
    let cluster = jobs.first().and_then(|job| job.cluster);
    let crashed = cluster.filter(|cluster| {
        cluster.needs_recovery() && cluster.may_compare(Comparison::ForksThatRecoveryKeeps)
    });
    let Some(replay) = crashed.and_then(Cluster::replay) else {
        return BTreeSet::new();
    };
    let changed = changed_families(jobs, catalog, replay);
    let owners = jobs.iter().map(|job| owner(job, catalog)).enumerate();
    let kept =
        owners.filter(|(_, owner)| matches!(owner, Owner::Table(_)) && !changed.contains(owner));
    kept.map(|(place, _)| place).collect()
}

/// Those with a file that WAL leads to, or whose pages do not reach the disk by checkpoints.
fn changed_families(jobs: &[ForkCx<'_>], catalog: &Catalog, replay: &Replay) -> BTreeSet<Owner> {
    let changed = jobs.iter().filter(|job| {
        let is_permanent =
            |own: &pgclinic_cluster::Relation| own.persistence == Persistence::Permanent;
        !job.relation.is_some_and(is_permanent) || replay.touches(job.file_number())
    });
    changed.map(|job| owner(job, catalog)).collect()
}

fn checks_of(
    fork: &ForkCx<'_>,
    options: &CheckOptions,
) -> impl Iterator<Item = &'static dyn RelationCheck> {
    let is_main = fork.fork() == Fork::Main && fork.relation.is_some();
    let (method, level) = (fork.method.filter(|_| is_main), options.level);
    let checks = RELATION_CHECKS.iter().copied();
    checks.filter(move |check| check.level() <= level && Some(check.method()) == method)
}
