//! The matrix of losses: everything that bears witness to rows is lost in every way, and what a
//! check and a salvage then say is held against what the server gives of the undamaged cluster.
//!
//! ```text
//! patients (stopped, running, crashed) ─► truth: the server's COPY of every table
//!     │
//!     └► bench copy ─► hurt ─► check (structure, full) ─► salvage ─┬─ rows lost: never healthy, never whole
//!                        ▲                                        ├─ rows that are not the truth's: marked
//!                        └────────────── refresh ◄────────────────┴─ rows that a key names: the loss to 1 %
//! ```

mod cells;
mod hurt;
mod masters;
mod shots;
mod truth;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use pgclinic_cluster::Cluster;
use pgclinic_model::document::{
    LargeObjectsAccount, LossCell, LostBy, LostDatabase, NotRun, Outcome as Ending, SalvageReport,
    TableAccount, Verdict,
};
use pgclinic_model::{CheckDocument, Level, Severity};
use pgclinic_salvage::{encoded, salvage};
use pgclinic_servers::Server;

use crate::drill::bench_copy::BenchCopy;
use crate::drill::crew::on_copies;
use crate::drill::master;
use crate::drill::salvage_options::salvage_options;
use crate::exit::Failure;

use cells::{Cell, Hurt, NoticedWhen};
use hurt::Bench;
pub(crate) use masters::Patients;
use masters::{Condition, Patient};
use truth::Comparison;

/// Which cells are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    /// All of them.
    All,
    /// One in ten, always the same.
    Tenth,
    /// So many random losses instead of the matrix.
    Random(usize),
}

/// Everything that was tried.
pub(crate) struct Outcome {
    pub(crate) cells: Vec<LossCell>,
    pub(crate) not_run: Vec<NotRun>,
    /// What the check says of the undamaged cluster that was shut down.
    pub(crate) healthy: CheckDocument,
}

/// What all cells of one patient in one condition share.
struct Ward<'a> {
    patient: &'a Patient,
    condition: Condition,
    older: &'a Path,
    seed: u64,
}

/// Runs the matrix on `threads` copies at once; `step` hears of each cell. Interrupted, the cells
/// so far come back.
pub(crate) fn run(
    patients: &Patients,
    (share, seed): (Share, u64),
    threads: usize,
    stop: &AtomicBool,
    step: &(dyn Fn(&str) + Sync),
) -> Result<Outcome, Failure> {
    let (mut cells, mut not_run, mut healthy) = (Vec::new(), Vec::new(), None);
    for patient in &patients.all {
        let cluster = master::open(&patient.master.pgdata)?;
        let undamaged = master::check(&patient.master.pgdata, 0)?;
        healthy.get_or_insert(undamaged);
        let page_bytes = usize::try_from(cluster.build.block_size)?;
        for condition in patient.conditions {
            let tasks = chosen(&cluster, *condition, seed, share);
            let ward = Ward {
                patient,
                condition: *condition,
                older: &patients.older,
                seed,
            };
            let done = on_copies(
                (&patient.master, condition.name()),
                &tasks,
                threads,
                stop,
                &|cell, copy| {
                    let done = ward.run(cell, copy, page_bytes)?;
                    step(cell.witness.name);
                    Ok(done.ok_or_else(|| ward.not_run(cell)))
                },
            )?;
            for one in done {
                match one {
                    Ok(cell) => cells.push(cell),
                    Err(entry) => not_run.push(entry),
                }
            }
        }
    }
    let healthy = healthy.ok_or_else(|| Failure::new("there is no cluster to hurt"))?;
    Ok(Outcome {
        cells,
        not_run,
        healthy,
    })
}

/// How many cells will be run.
pub(crate) fn count(patients: &Patients, share: Share, seed: u64) -> Result<usize, Failure> {
    let mut sum = 0;
    for patient in &patients.all {
        let cluster = master::open(&patient.master.pgdata)?;
        let wards = patient.conditions.iter();
        let cells = wards.map(|condition| chosen(&cluster, *condition, seed, share).len());
        sum += cells.sum::<usize>();
    }
    Ok(sum)
}

/// Without checksums only what chance hits is hurt: the matrix asks for losses, not for values. A
/// tenth begins elsewhere in each condition.
fn chosen(cluster: &Cluster, condition: Condition, seed: u64, share: Share) -> Vec<Cell> {
    let is_of_matrix = condition != Condition::WithoutChecksums;
    match share {
        Share::Random(count) => shots::of(cluster, seed ^ condition as u64, count),
        _ if !is_of_matrix => Vec::new(),
        Share::All => cells::of(cluster, seed),
        Share::Tenth => {
            let cells = cells::of(cluster, seed).into_iter();
            cells.skip(condition as usize).step_by(10).collect()
        }
    }
}

impl Ward<'_> {
    fn not_run(&self, cell: &Cell) -> NotRun {
        let Cell {
            witness,
            hurt,
            site,
        } = cell;
        let state = self.condition.name();
        NotRun {
            injury: format!(
                "{} {}, {state}, {}",
                witness.name,
                hurt.name(),
                site.words()
            ),
            why: "there is no older page, or it is the same".into(),
        }
    }

    fn run(
        &self,
        cell: &Cell,
        copy: &mut BenchCopy,
        page_bytes: usize,
    ) -> Result<Option<LossCell>, Failure> {
        copy.refresh()?;
        if self.condition == Condition::WithoutChecksums {
            copy.disable_checksums()?;
        }
        let running = (self.condition == Condition::Running)
            .then(|| self.at_rest(&copy.pgdata))
            .transpose()?;
        let bench = Bench {
            pgdata: &copy.pgdata,
            older: self.older,
            seed: self.seed,
        };
        let Some(kept) = bench.hurt(cell.hurt, &cell.site, page_bytes)? else {
            return Ok(None);
        };
        let seen = self.look(cell, &copy.pgdata);
        kept.bring_back()?;
        // A server whose files are gone is stopped hard when it is dropped.
        drop(running);
        seen.map(Some)
    }

    /// A running server that has written everything.
    fn at_rest(&self, pgdata: &Path) -> Result<Server, Failure> {
        let server = self.patient.master.start(pgdata)?;
        server.connect("postgres")?.execute("CHECKPOINT")?;
        Ok(server)
    }

    fn look(&self, cell: &Cell, pgdata: &Path) -> Result<LossCell, Failure> {
        let checked = |level| Said::of(master::check_at(level, pgdata, 0));
        let (structure, full) = (checked(Level::Structure), checked(Level::Full));
        let folder = pgdata.with_file_name("rescued");
        let rescued = rescued(pgdata, &folder);
        let compared = self.patient.truth.compared_with(&folder);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        Ok(self.judged(cell, (structure, full), &rescued, &compared))
    }

    fn blind(&self, cell: &Cell, by_table: &BTreeMap<String, Comparison>) -> Option<&'static str> {
        let is_unverified = self.condition == Condition::WithoutChecksums && cell.changes_values();
        if is_unverified && is_within_a_page(by_table) {
            return Some(cells::NO_CHECKSUM);
        }
        let is_here = |blind: &&cells::Blind| {
            blind.hurt == cell.hurt
                && blind
                    .state
                    .is_none_or(|state| state == self.condition.name())
        };
        cell.witness
            .blind
            .iter()
            .find(is_here)
            .map(|blind| blind.why)
    }

    fn judged(
        &self,
        cell: &Cell,
        (structure, full): (Said, Said),
        rescued: &Result<SalvageReport, Failure>,
        by_table: &BTreeMap<String, Comparison>,
    ) -> LossCell {
        let witness = cell.witness;
        let blind = self.blind(cell, by_table);
        let compared: Comparison = by_table.values().copied().sum();
        let rescue = Rescued::of(rescued);
        let lost = compared.rows.saturating_sub(compared.written);
        let mut judged = LossCell {
            witness: witness.name.into(),
            hurt: cell.hurt.name().into(),
            state: self.condition.name().into(),
            place: cell.site.words(),
            rows: compared.rows,
            written: compared.written,
            lost,
            wrong: compared.wrong,
            marked: rescue.marked,
            predicted: rescue.predicted,
            verdict_at_structure: structure.verdict,
            verdict: full.verdict,
            found_by: full.rules,
            outcome: rescue.outcome,
            blind: blind.map(str::to_owned),
            passed: true,
            failures: Vec::new(),
        };
        if judged.blind.is_none() {
            judged.failures.extend(failures_of_check(&judged, cell));
            let hides_age = witness.hides_age.filter(|_| cell.hurt == Hurt::OldCopy);
            // A salvage that notices an older page is welcome.
            match hides_age.filter(|_| judged.lost + judged.wrong > 0) {
                Some(why) => judged.blind = Some(why.to_owned()),
                None => {
                    let failures = failures_of_salvage(&judged, witness);
                    judged.failures.extend(failures);
                    let account = rescued.as_ref().ok();
                    let failures =
                        account.map(|account| failures_of_tables(account, cell, by_table));
                    judged.failures.extend(failures.into_iter().flatten());
                }
            }
        }
        judged.passed = judged.failures.is_empty();
        judged
    }
}

/// What was promised of a check and does not hold.
fn failures_of_check(judged: &LossCell, cell: &Cell) -> Vec<String> {
    let is_always_seen = cell.witness.seen == NoticedWhen::Always && judged.state == "stopped";
    if judged.lost == 0 && judged.wrong == 0 && !is_always_seen {
        return Vec::new();
    }
    let at_structure = (!cell.hurt.is_left_to_full())
        .then_some((judged.verdict_at_structure, "the check at level structure"));
    let verdicts = [Some((judged.verdict, "the check")), at_structure];
    let missed = verdicts.into_iter().flatten();
    let missed = missed.filter(|(verdict, _)| *verdict == Verdict::Healthy);
    missed
        .map(|(_, who)| format!("{who} calls it healthy"))
        .collect()
}

/// What was promised of a salvage and does not hold.
fn failures_of_salvage(cell: &LossCell, witness: &cells::Witness) -> Vec<String> {
    let LossCell {
        lost,
        wrong,
        predicted,
        ..
    } = cell;
    let mut failures = Vec::new();
    if (*lost > 0 || *wrong > 0) && cell.outcome == "whole" {
        failures.push(format!(
            "the salvage calls it whole; {lost} rows are lost and {wrong} are wrong"
        ));
    }
    // Of an account that calls itself incomplete each table is asked. One that names the file as
    // another table's vouches for none of its rows.
    let is_named = cell.hurt == Hurt::Foreign.name() && cell.marked >= *wrong;
    if *wrong > 0 && cell.outcome != "incomplete" && !is_named {
        failures.push(format!(
            "{wrong} rows are not the server's and stand among the good ones"
        ));
    }
    let off = lost.abs_diff(*predicted);
    if witness.is_counted && cell.state == "stopped" && off * 100 > *lost {
        failures.push(format!(
            "{lost} rows are lost, and the salvage says {predicted}"
        ));
    }
    failures
}

/// What a check says; a cluster that cannot be opened is not called healthy.
struct Said {
    verdict: Verdict,
    rules: Vec<String>,
}

impl Said {
    fn of(checked: Result<CheckDocument, Failure>) -> Self {
        let Ok(document) = checked else {
            return Said {
                verdict: Verdict::Incomplete,
                rules: Vec::new(),
            };
        };
        let damage = document.findings.iter();
        let damage = damage.filter(|finding| finding.severity == Severity::Damage);
        let mut rules: Vec<String> = damage.map(|finding| finding.rule.clone()).collect();
        rules.sort();
        rules.dedup();
        Said {
            verdict: document.verdict,
            rules,
        }
    }
}

/// What is lost or wrong may be the rows of one page of one table.
fn is_within_a_page(by_table: &BTreeMap<String, Comparison>) -> bool {
    const ROWS_OF_A_PAGE: u64 = 300;
    let hurt = by_table.values().map(|one| one.lost().max(one.wrong));
    let hurt: Vec<u64> = hurt.filter(|rows| *rows > 0).collect();
    hurt.len() <= 1 && hurt.iter().all(|rows| *rows <= ROWS_OF_A_PAGE)
}

/// Tables whose rows are lost or wrong, and of which the account says nothing, or other numbers.
fn failures_of_tables(
    account: &SalvageReport,
    cell: &Cell,
    by_table: &BTreeMap<String, Comparison>,
) -> Vec<String> {
    let is_incomplete = account.outcome == Ending::Incomplete;
    if is_incomplete && !cell.is_of_named_tables() {
        return Vec::new();
    }
    let hurt = by_table
        .iter()
        .filter(|(_, one)| one.lost() > 0 || one.wrong > 0);
    let failure = |(file, one): (&String, &Comparison)| {
        let (lost, wrong) = (one.lost(), one.wrong);
        if !is_named(account, file) {
            return Some(format!(
                "of {file} {lost} rows are lost and {wrong} wrong, and the account does not say so"
            ));
        }
        let table = account_of(account, file).filter(|_| !is_incomplete)?;
        let least = rows_at_least(table);
        if least > lost + marked(table) {
            return Some(format!(
                "of {file} {lost} rows are lost, and the account has {least} exactly"
            ));
        }
        let most = rows_told(table)?;
        (lost > most)
            .then(|| format!("of {file} {lost} rows are lost, and the account has at most {most}"))
    };
    hurt.filter_map(failure).collect()
}

/// Rows of which a table's account says that they are lost, neither more nor less.
fn rows_at_least(table: &TableAccount) -> u64 {
    let exact = table.lost_by.iter().filter(|by| by.exact);
    exact.map(|by| by.rows).sum()
}

/// Rows that stand among the suspects, or are marked.
fn marked(table: &TableAccount) -> u64 {
    let rows = &table.rows;
    let marked = rows.partial + rows.carved + rows.mended + rows.uncertain + rows.withheld;
    marked.max(rows.suspect)
}

/// Rows of which a table's account says that they may not be among the good ones; nothing where it
/// gives no bound.
fn rows_told(table: &TableAccount) -> Option<u64> {
    let is_estimate = |by: &LostBy| matches!(by.witness.as_str(), "rows-per-page" | "pg-class");
    let is_open = |by: &LostBy| is_estimate(by) && by.at_most.is_none();
    if table.lost_by.iter().any(is_open) {
        return None;
    }
    let bounds = table.lost_by.iter().filter_map(|by| by.at_most);
    Some(table.rows.lost_known + bounds.sum::<u64>() + marked(table))
}

fn account_of<'a>(account: &'a SalvageReport, file: &str) -> Option<&'a TableAccount> {
    let names_of = |table: &TableAccount| {
        [&table.database, &table.schema, &table.table].map(|name| encoded(name))
    };
    account.tables.iter().find(|table| {
        let [database, schema, name] = names_of(table);
        format!("{database}/{schema}.{name}") == file
    })
}

/// A table is named where its own account is not whole, or where its name or its database stands
/// among what was not salvaged.
fn is_named(account: &SalvageReport, file: &str) -> bool {
    let (database, name) = file.split_once('/').unwrap_or_default();
    if let Some(table) = account_of(account, file) {
        let mut open = account.not_salvaged.iter().filter(|gap| !gap.inherent);
        return !table.is_whole() || open.any(|gap| gap.what.contains(name));
    }
    let mut told = account.not_salvaged.iter().map(|told| &told.what);
    let lost = |one: &LostDatabase| one.database == database;
    let objects_are_lost = |one: &LargeObjectsAccount| {
        one.database == database && one.file.starts_with(file) && !one.places.is_empty()
    };
    if account.large_objects.iter().any(objects_are_lost) {
        return true;
    }
    told.any(|what| what.contains(name) || what.contains(database))
        || account.lost_databases.iter().any(lost)
        || account.lost_catalogs.iter().any(lost)
}

/// What a salvage says.
struct Rescued {
    outcome: String,
    marked: u64,
    predicted: u64,
}

impl Rescued {
    fn of(rescued: &Result<SalvageReport, Failure>) -> Self {
        match rescued {
            Ok(account) => Rescued {
                outcome: format!("{:?}", account.outcome).to_lowercase(),
                marked: account.totals.partial
                    + account.totals.carved
                    + account.totals.mended
                    + account.totals.uncertain,
                predicted: account.totals.lost,
            },
            Err(failure) => Rescued {
                outcome: format!("failed: {}", failure.0),
                marked: 0,
                predicted: 0,
            },
        }
    }
}

fn rescued(pgdata: &Path, folder: &Path) -> Result<SalvageReport, Failure> {
    let cluster = master::open(pgdata)?;
    let spill = pgdata.parent().unwrap_or(pgdata);
    let options = salvage_options("csv", (folder, spill), NonZeroUsize::MIN)?;
    Ok(salvage(&cluster, &options, &master::Unwatched)?)
}
