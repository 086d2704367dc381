//! Servers that are kept from starting, in every way that is known: each is explained, planned for,
//! undone and carried out, and what the plan promised of rows is held against what the server then
//! gives.
//!
//! ```text
//! patient (crashed, shut down) ─► copy ─► wound ─► server: FATAL ─► explain ─► plan ─► undo = first bytes?
//!     │                                                                          └─► server: COPY of every table
//!     └─ truth: COPY before it ended ──────────────────────────────────────────────────┘
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pgclinic_explain::server_messages::explain_message;
use pgclinic_model::document::{
    NotRun, StartDrillCell, StartDrillCure, StartDrillTable, TableFates, Target,
};
use pgclinic_model::plural;
use pgclinic_servers::{
    Installation, RunAs, Scratch, Server, StartOptions as ServerOptions, StopMode, copy_cluster,
};
use pgclinic_surgery::start_again::{StartOptions, StartPlan, plan_start};
use pgclinic_surgery::start_wounds::{
    Before, LOAD, LOAD_AFTER_CHECKPOINT, LOAD_UNFINISHED, SETTINGS, TABLES, Wound, wounds,
};
use pgclinic_surgery::{Consent, Operation, apply, undo};

use crate::drill::crew::on_copies;
use crate::drill::master::{self, Master, MasterOptions, Unwatched};
use crate::exit::Failure;

/// Everything that was tried.
pub(crate) struct Outcome {
    pub(crate) cells: Vec<StartDrillCell>,
    pub(crate) not_run: Vec<NotRun>,
    /// The cluster that crashed, before it was hurt.
    pub(crate) target: Target,
}

/// A cluster of which each wound gets a copy.
struct Patient {
    master: Master,
    before: Before,
    /// Committed rows, by table.
    truth: Vec<(&'static str, u64)>,
}

/// How many wounds there are.
pub(crate) fn count() -> usize {
    wounds().count()
}

/// Treats all of them on `threads` copies at once; `step` hears of each.
pub(crate) fn run(
    (installation, run_as): (&Installation, &RunAs),
    (seed, threads): (u64, usize),
    stop: &AtomicBool,
    step: &(dyn Fn(&str) + Sync),
) -> Result<Outcome, Failure> {
    let (mut cells, mut not_run, mut target) = (Vec::new(), Vec::new(), None);
    for before in [Before::Crash, Before::Shutdown] {
        let patient = Patient::make((installation, run_as), seed, before)?;
        let cluster = master::open(&patient.master.pgdata)?;
        let spec = "a cluster made for this drill";
        target.get_or_insert(pgclinic_cluster::target_of(&cluster, spec));
        let own: Vec<&Wound> = wounds().filter(|own| own.before == before).collect();
        let done = on_copies(
            (&patient.master, before.name()),
            &own,
            threads,
            stop,
            &|wound, _| {
                let cell = patient.treat(wound)?;
                step(wound.name);
                Ok(cell)
            },
        )?;
        let left = own.iter().skip(done.len());
        not_run.extend(left.map(|wound| NotRun {
            injury: wound.name.into(),
            why: "the drill was stopped".into(),
        }));
        cells.extend(done);
    }
    let target = target.ok_or_else(|| Failure::new("there is no cluster to hurt"))?;
    Ok(Outcome {
        cells,
        not_run,
        target,
    })
}

fn settings() -> ServerOptions {
    let all = SETTINGS.into_iter();
    all.fold(ServerOptions::default(), |options, (name, value)| {
        options.with(name, value)
    })
}

/// The directories of one wound, which go with it.
struct Bed {
    _scratch: Scratch,
    pgdata: PathBuf,
    journals: PathBuf,
}

impl Patient {
    fn make(
        (installation, run_as): (&Installation, &RunAs),
        seed: u64,
        before: Before,
    ) -> Result<Self, Failure> {
        let options = MasterOptions { seed, large: false };
        let master = Master::make(installation.clone(), run_as.clone(), &options)?;
        let mut server = Server::start(installation, run_as, &master.pgdata, &settings())?;
        let mut open = server.connect("postgres")?;
        for sql in LOAD {
            open.execute(sql)?;
        }
        let mut unfinished = server.connect("postgres")?;
        for sql in LOAD_UNFINISHED {
            unfinished.execute(sql)?;
        }
        open.execute("CHECKPOINT")?;
        open.execute(LOAD_AFTER_CHECKPOINT)?;
        let mut truth = Vec::new();
        for table in TABLES {
            let rows = rows_of(&server, table).map_err(Failure::new)?;
            truth.push((table, rows));
        }
        server.stop(match before {
            Before::Crash => StopMode::Immediate,
            Before::Shutdown => StopMode::Fast,
        })?;
        Ok(Patient {
            master,
            before,
            truth,
        })
    }

    fn bed(&self) -> Result<Bed, Failure> {
        let scratch = Scratch::new(&self.master.run_as, None)?;
        let pgdata = copy_cluster(&self.master.pgdata, scratch.path())?.pgdata;
        let journals = scratch.folder("journals")?;
        Ok(Bed {
            _scratch: scratch,
            pgdata,
            journals,
        })
    }

    fn start(&self, pgdata: &Path) -> Result<Server, String> {
        let Master {
            installation,
            run_as,
            ..
        } = &self.master;
        let started = Server::start(installation, run_as, pgdata, &settings());
        started.map_err(|error| error.to_string())
    }

    /// What the server says instead of starting, or of letting somebody in.
    fn refusal(&self, pgdata: &Path) -> Result<Option<String>, Failure> {
        let mut server = match self.start(pgdata) {
            Ok(server) => server,
            Err(said) => return Ok(Some(said)),
        };
        let said = server.connect("postgres").err();
        server.stop(StopMode::Immediate)?;
        Ok(said.map(|error| error.to_string()))
    }

    fn treat(&self, wound: &Wound) -> Result<StartDrillCell, Failure> {
        let bed = self.bed()?;
        (wound.hurt)(&bed.pgdata)?;
        let mut cell = StartDrillCell {
            wound: wound.name.into(),
            before: self.before.name().into(),
            says: String::new(),
            explained_by: Vec::new(),
            cures: Vec::new(),
            undone: false,
            started: false,
            tables: Vec::new(),
            passed: false,
            failures: Vec::new(),
        };
        match self.refusal(&bed.pgdata)? {
            None => cell.failures.push("the server starts".into()),
            Some(said) => {
                self.explain(wound, &said, &mut cell);
                self.heal(wound, &bed, &mut cell)?;
            }
        }
        cell.passed = cell.failures.is_empty();
        Ok(cell)
    }

    fn explain(&self, wound: &Wound, said: &str, cell: &mut StartDrillCell) {
        let found = explain_message(said).into_iter();
        cell.explained_by = found.map(|own| own.message.name.to_owned()).collect();
        let own = said.lines().find(|line| line.contains(wound.says));
        let line = own.or_else(|| said.lines().last()).unwrap_or_default();
        cell.says = without_log_prefix(line).into();
        if own.is_none() {
            cell.failures
                .push(format!("the server does not say {:?}", wound.says));
        }
        if !cell.explained_by.iter().any(|page| page == wound.page) {
            cell.failures
                .push(format!("it is not explained by {}", wound.page));
        }
    }

    fn heal(&self, wound: &Wound, bed: &Bed, cell: &mut StartDrillCell) -> Result<(), Failure> {
        // Some ends leave it; heal goes by copies then, which have none.
        if let Err(error) = fs::remove_file(bed.pgdata.join("postmaster.pid"))
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error.into());
        }
        let hurt = sums(&bed.pgdata)?;
        let Some(plan) = plan(&bed.pgdata, &bed.journals)? else {
            cell.failures.push("there is no plan".into());
            return Ok(());
        };
        let cures = plan.cures.iter().map(|cure| StartDrillCure {
            name: cure.name.clone(),
            safety: cure.safety,
        });
        cell.cures = cures.collect();
        let planned: Vec<_> = cell
            .cures
            .iter()
            .map(|cure| (cure.name.as_str(), cure.safety))
            .collect();
        if planned != wound.cures {
            cell.failures.push("other cures are planned".into());
        }
        let journal = bed.journals.join("first");
        carry_out(&bed.pgdata, &plan, &journal)?;
        undo(&journal, None)?;
        cell.undone = sums(&bed.pgdata)? == hurt;
        if !cell.undone {
            cell.failures
                .push("undo does not give the first bytes back".into());
        }
        carry_out(&bed.pgdata, &plan, &bed.journals.join("second"))?;
        match self.start(&bed.pgdata) {
            Ok(mut server) => {
                cell.started = true;
                self.compare(&plan, &server, cell);
                server.stop(StopMode::Immediate)?;
            }
            Err(why) => cell.failures.push(format!("it does not start: {why}")),
        }
        Ok(())
    }

    /// The rows that the server gives are those that the plan promised.
    fn compare(&self, plan: &StartPlan, server: &Server, cell: &mut StartDrillCell) {
        let predicted = plan.cures.iter().filter_map(|cure| cure.start.as_ref());
        let predicted: Vec<&TableFates> = predicted.flat_map(|own| &own.tables).collect();
        for (table, rows) in &self.truth {
            let own = predicted
                .iter()
                .find(|own| own.relation == *table && own.schema == "public");
            let told = StartDrillTable {
                relation: (*table).into(),
                rows: *rows,
                predicted: match own {
                    Some(own) => (own.undecided == 0).then_some(own.rows),
                    None => Some(*rows),
                },
                measured: rows_of(server, table).ok(),
            };
            if !told.agrees() {
                let words = |rows: Option<u64>| {
                    rows.map_or_else(|| "a refusal".into(), |rows| plural(rows, "row"))
                };
                cell.failures.push(format!(
                    "{table} gives {}, and the plan says {}",
                    words(told.measured),
                    words(told.predicted)
                ));
            }
            cell.tables.push(told);
        }
    }
}

/// Rows that COPY gives, long values read.
fn rows_of(server: &Server, table: &str) -> Result<u64, String> {
    let words = |error: pgclinic_servers::SqlError| error.to_string();
    let mut session = server.connect("postgres").map_err(words)?;
    let mut rows = 0;
    let sql = format!("COPY {table} TO STDOUT");
    let copied = session.copy_out(&sql, &mut |bytes| {
        let ends = bytes.iter().filter(|byte| **byte == b'\n');
        rows += ends.count() as u64;
    });
    copied.map_err(words)?;
    Ok(rows)
}

fn plan(pgdata: &Path, temp_folder: &Path) -> Result<Option<StartPlan>, Failure> {
    let options = StartOptions {
        pgdata,
        threads: NonZeroUsize::MIN,
        progress: &Unwatched,
        temp_folder,
        tablespace_maps: &[],
    };
    Ok(plan_start(&master::open(pgdata)?, &options)?)
}

fn carry_out(pgdata: &Path, plan: &StartPlan, journal: &Path) -> Result<(), Failure> {
    let chosen: Vec<usize> = (0..plan.cures.len()).collect();
    let consent = match plan.basis.system_identifier.parse() {
        Ok(identifier) => Consent::Plan(identifier),
        Err(_) => Consent::PlanByBytes,
    };
    apply(&Operation {
        pgdata,
        patch: &plan.patch(&chosen),
        journal,
        consent,
        what: "start again",
        time: None,
        beside: &plan.beside(&chosen),
        control_file: Some(&plan.basis.control_file),
    })?;
    Ok(())
}

/// Every file with a sum of its bytes, and every directory.
fn sums(pgdata: &Path) -> Result<BTreeMap<PathBuf, Option<u64>>, Failure> {
    let mut left = vec![pgdata.to_path_buf()];
    let mut all = BTreeMap::new();
    while let Some(path) = left.pop() {
        let mut sum = None;
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        } else {
            let mut hasher = DefaultHasher::new();
            hasher.write(&fs::read(&path)?);
            sum = Some(hasher.finish());
        }
        all.insert(path, sum);
    }
    Ok(all)
}

/// The message without its time and process: what stands on every line of a log.
fn without_log_prefix(line: &str) -> &str {
    let severities = ["FATAL:  ", "PANIC:  ", "ERROR:  ", "LOG:  "];
    let starts = severities.iter().filter_map(|own| line.find(own));
    starts.min().and_then(|at| line.get(at..)).unwrap_or(line)
}
