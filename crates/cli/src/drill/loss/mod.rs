//! The matrix of losses: everything that bears witness to rows is lost in every way, and what a
//! check and a salvage then say is held against what the server gives of the undamaged cluster.
//!
//! ```text
//! patients (stopped, crashed) ─► truth: the server's COPY of every table
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

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use pgclinic_cluster::Cluster;
use pgclinic_model::document::{LossCell, NotRun, SalvageReport, Verdict};
use pgclinic_model::{CheckDocument, Level, Selection, Severity};
use pgclinic_salvage::formats::form_named;
use pgclinic_salvage::{
    Destination, Durability, Encoding, Partial, Rows, SalvageOptions, TextStyle, salvage,
};
use pgclinic_spill::MemoryPlan;

use crate::drill::bench_copy::BenchCopy;
use crate::drill::crew::on_copies;
use crate::drill::master;
use crate::exit::Failure;

use cells::{Cell, Hurt, Seen};
use hurt::Bench;
use masters::Patient;
pub(crate) use masters::Patients;
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

/// What all cells of one patient share.
struct Ward<'a> {
    patient: &'a Patient,
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
        let tasks = chosen(&cluster, seed, share);
        let undamaged = master::check(&patient.master.pgdata, 0)?;
        healthy.get_or_insert(undamaged);
        let ward = Ward {
            patient,
            older: &patients.older,
            seed,
        };
        let page_bytes = usize::try_from(cluster.build.block_size)?;
        let done = on_copies(&patient.master, &tasks, threads, stop, &|cell, copy| {
            let done = ward.run(cell, copy, page_bytes)?;
            step(cell.witness.name);
            Ok(done.ok_or_else(|| ward.not_run(cell)))
        })?;
        for one in done {
            match one {
                Ok(cell) => cells.push(cell),
                Err(entry) => not_run.push(entry),
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
        sum += chosen(&cluster, seed, share).len();
    }
    Ok(sum)
}

fn chosen(cluster: &Cluster, seed: u64, share: Share) -> Vec<Cell> {
    match share {
        Share::All => cells::of(cluster, seed),
        Share::Tenth => cells::of(cluster, seed).into_iter().step_by(10).collect(),
        Share::Random(count) => shots::of(cluster, seed, count),
    }
}

impl Ward<'_> {
    fn not_run(&self, cell: &Cell) -> NotRun {
        let Cell {
            witness,
            hurt,
            site,
        } = cell;
        let state = self.patient.state;
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
        seen.map(Some)
    }

    fn look(&self, cell: &Cell, pgdata: &Path) -> Result<LossCell, Failure> {
        let checked = |level| Said::of(master::check_at(level, pgdata, 0));
        let (structure, full) = (checked(Level::Structure), checked(Level::Full));
        let folder = pgdata.with_file_name("rescued");
        let rescued = rescue(pgdata, &folder);
        let compared = self.patient.truth.compared_with(&folder);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        Ok(self.judged(cell, (structure, full), &rescued, compared))
    }

    fn blind(&self, cell: &Cell) -> Option<&'static str> {
        let is_here = |blind: &&cells::Blind| {
            blind.hurt == cell.hurt && blind.state.is_none_or(|state| state == self.patient.state)
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
        rescued: &Rescued,
        compared: Comparison,
    ) -> LossCell {
        let witness = cell.witness;
        let blind = self.blind(cell);
        let lost = compared.rows.saturating_sub(compared.written);
        let mut judged = LossCell {
            witness: witness.name.into(),
            hurt: cell.hurt.name().into(),
            state: self.patient.state.into(),
            place: cell.site.words(),
            rows: compared.rows,
            written: compared.written,
            lost,
            wrong: compared.wrong,
            marked: rescued.marked,
            predicted: rescued.predicted,
            verdict_at_structure: structure.verdict,
            verdict: full.verdict,
            found_by: full.rules,
            outcome: rescued.outcome.clone(),
            blind: blind.map(str::to_owned),
            passed: true,
            failures: Vec::new(),
        };
        if judged.blind.is_none() {
            judged.failures.extend(failures_of_check(&judged, witness));
            // A salvage that notices an older page is welcome.
            match cell.hurt {
                Hurt::OldCopy if judged.lost + judged.wrong > 0 => {
                    judged.blind = Some(cells::OLD_PAGE.to_owned());
                }
                _ => judged
                    .failures
                    .extend(failures_of_salvage(&judged, witness)),
            }
        }
        judged.passed = judged.failures.is_empty();
        judged
    }
}

/// What was promised of a check and does not hold.
fn failures_of_check(cell: &LossCell, witness: &cells::Witness) -> Option<String> {
    let must_be_seen =
        cell.lost > 0 || cell.wrong > 0 || witness.seen == Seen::Always && cell.state == "stopped";
    let is_missed = must_be_seen && cell.verdict == Verdict::Healthy;
    is_missed.then(|| "the check calls it healthy".to_owned())
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
    // An account that calls itself incomplete vouches for no row alone.
    if *wrong > 0 && cell.outcome != "incomplete" {
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

/// What a salvage says.
struct Rescued {
    outcome: String,
    marked: u64,
    predicted: u64,
}

fn rescue(pgdata: &Path, folder: &Path) -> Rescued {
    match rescued(pgdata, folder) {
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

fn rescued(pgdata: &Path, folder: &Path) -> Result<SalvageReport, Failure> {
    let cluster = master::open(pgdata)?;
    let form = form_named("csv").ok_or_else(|| Failure::new("there is no form csv"))?;
    let options = SalvageOptions {
        destination: Destination::Folder(folder.to_owned()),
        form,
        rows: Rows::Live,
        generated: false,
        dropped: false,
        ddl: None,
        given: Vec::new(),
        without_catalogs: false,
        partial: Partial::Null,
        verify: false,
        encoding: Encoding::Utf8,
        text: TextStyle::default(),
        durability: Durability::Buffered,
        resume: false,
        threads: NonZeroUsize::MIN,
        memory: MemoryPlan::default(),
        selection: Selection::default(),
        spec: "drill".into(),
        spill_folder: pgdata.parent().unwrap_or(pgdata).to_owned(),
    };
    Ok(salvage(&cluster, &options, &master::Unwatched)?)
}
