//! A server that does not start, by a table of wounds: what it says is explained, what the plan
//! does lets it start, and what the plan says of rows is what the server then shows.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use pgclinic_explain::server_messages::explain_message;
use pgclinic_model::document::TableFates;
use pgclinic_model::plan::Safety;
use pgclinic_servers::{
    Checksums, Installation, Scratch, Server, StartOptions as ServerOptions, StopMode, copy_cluster,
};
use pgclinic_surgery::start_again::{StartOptions, StartPlan, plan_start};
use pgclinic_surgery::start_wounds::{
    Before, LOAD, LOAD_AFTER_CHECKPOINT, LOAD_UNFINISHED, SETTINGS, TABLES, Wound, wounds,
};
use pgclinic_surgery::{Consent, Operation, apply, undo};
use pgclinic_testkit::{
    Quiet, all_majors, copy_of, execute, open, run_as, scratch, seed, server, value,
};

/// A cluster of which each wound gets a copy.
struct Patient {
    installation: Installation,
    pgdata: PathBuf,
    /// Of the committed rows, by table.
    truth: Vec<(String, u64)>,
    _scratch: Scratch,
}

impl Patient {
    fn of(installation: &Installation, before: Before) -> Patient {
        let copy = copy_of(&seed(installation, Checksums::On));
        let options = settings();
        let mut running = copy.start_with(&options).expect("a server");
        let mut open = running.connect("postgres").expect("a session");
        LOAD.iter().for_each(|sql| {
            open.execute(sql)
                .unwrap_or_else(|error| panic!("{sql}: {error}"))
        });
        // In progress when the server ends: half of it gets to disk.
        let mut unfinished = running.connect("postgres").expect("a session");
        for sql in LOAD_UNFINISHED {
            unfinished.execute(sql).expect("a statement");
        }
        open.execute("CHECKPOINT").expect("a checkpoint");
        open.execute(LOAD_AFTER_CHECKPOINT).expect("rows");
        let count = |table: &&str| {
            let sql = format!("SELECT count(*) FROM {table}");
            let rows = in_postgres(&running, &sql).parse().expect("a number");
            ((*table).to_owned(), rows)
        };
        let truth = TABLES.iter().map(count).collect();
        let mode = match before {
            Before::Crash => StopMode::Immediate,
            Before::Shutdown => StopMode::Fast,
        };
        running.stop(mode).expect("an end");
        let scratch = scratch();
        let copied = copy_cluster(&copy.pgdata, scratch.path()).expect("a copy");
        Patient {
            installation: installation.clone(),
            pgdata: copied.pgdata,
            truth,
            _scratch: scratch,
        }
    }

    fn copy(&self) -> (Scratch, PathBuf) {
        let scratch = scratch();
        let copied = copy_cluster(&self.pgdata, scratch.path()).expect("a copy");
        (scratch, copied.pgdata)
    }

    fn start(&self, pgdata: &Path) -> Result<Server, pgclinic_servers::Error> {
        Server::start(&self.installation, &run_as(), pgdata, &settings())
    }

    /// What the server says instead of starting, or of letting somebody in.
    fn refusal(&self, pgdata: &Path) -> Option<String> {
        let mut server = match self.start(pgdata) {
            Ok(server) => server,
            Err(error) => return Some(error.to_string()),
        };
        let error = server
            .connect("postgres")
            .err()
            .map(|error| error.to_string());
        server.stop(StopMode::Immediate).expect("an end");
        error
    }

    /// Wound, words, page, plan, start, rows.
    fn treat(&self, wound: &Wound) -> Vec<String> {
        let name = wound.name;
        let (_scratch, pgdata) = self.copy();
        (wound.hurt)(&pgdata).unwrap_or_else(|error| panic!("{name}: {error}"));
        let Some(said) = self.refusal(&pgdata) else {
            return vec![format!("{name}: the server starts")];
        };
        // Some ends leave it; heal goes by copies then, which have none.
        let _none = fs::remove_file(pgdata.join("postmaster.pid"));
        let mut wrong = Vec::new();
        if !said.contains(wound.says) {
            wrong.push(format!("{name}: it says {said}"));
        }
        let pages: Vec<&str> = explain_message(&said)
            .iter()
            .map(|found| found.message.name)
            .collect();
        if !pages.contains(&wound.page) {
            wrong.push(format!("{name}: explained by {pages:?}"));
        }
        let hurt = contents(&pgdata);
        let Some(plan) = plan(&pgdata) else {
            wrong.push(format!("{name}: no plan"));
            return wrong;
        };
        let cures: Vec<(&str, Safety)> = plan
            .cures
            .iter()
            .map(|cure| (cure.name.as_str(), cure.safety))
            .collect();
        if cures != wound.cures {
            wrong.push(format!("{name}: planned {cures:?}"));
        }
        let journals = tempfile::tempdir().expect("a directory");
        let journal = journals.path().join("journal");
        carry_out(&pgdata, &plan, &journal);
        undo(&journal, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        if contents(&pgdata) != hurt {
            wrong.push(format!("{name}: undo does not give the first bytes back"));
        }
        carry_out(&pgdata, &plan, &journals.path().join("again"));
        match self.start(&pgdata) {
            Ok(server) => wrong.extend(self.compare(wound, &plan, &server)),
            Err(error) => wrong.push(format!("{name}: after the cure {error}")),
        }
        wrong
    }

    /// The rows that the server shows are those that the plan promised.
    fn compare(&self, wound: &Wound, plan: &StartPlan, server: &Server) -> Vec<String> {
        let predicted = plan.cures.iter().filter_map(|cure| cure.start.as_ref());
        let predicted: Vec<TableFates> = predicted.flat_map(|own| own.tables.clone()).collect();
        let mut wrong = Vec::new();
        for (table, truth) in &self.truth {
            let own = predicted
                .iter()
                .find(|own| own.relation == *table && own.schema == "public");
            let is_refused = own.is_some_and(|own| own.undecided > 0);
            let expected = own.map_or(*truth, |own| own.rows);
            let seen = copied(server, table);
            let is_as_promised = match &seen {
                Ok(rows) => *rows == expected && !is_refused,
                Err(_) => is_refused,
            };
            if !is_as_promised {
                wrong.push(format!(
                    "{}: {table} shows {seen:?} rows, {expected} expected ({own:?})",
                    wound.name
                ));
            }
        }
        wrong
    }
}

pub(crate) fn settings() -> ServerOptions {
    let all = SETTINGS.into_iter();
    all.fold(ServerOptions::default(), |options, (name, value)| {
        options.with(name, value)
    })
}

/// Rows that COPY gives, long values read.
pub(crate) fn copied(server: &Server, table: &str) -> Result<u64, String> {
    let mut session = server.connect("postgres").expect("a session");
    let mut rows = 0;
    let sql = format!("COPY {table} TO STDOUT");
    session
        .copy_out(&sql, &mut |bytes| {
            rows += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        })
        .map_err(|error| error.to_string())?;
    Ok(rows)
}

fn in_postgres(server: &Server, sql: &str) -> String {
    let mut session = server.connect("postgres").expect("a session");
    session
        .query_value(sql)
        .expect("a query")
        .unwrap_or_default()
}

pub(crate) fn plan(pgdata: &Path) -> Option<StartPlan> {
    let options = StartOptions {
        pgdata,
        threads: NonZeroUsize::MIN,
        progress: &Quiet,
        temp_folder: &std::env::temp_dir(),
        tablespace_maps: &[],
    };
    plan_start(&open(pgdata), &options).expect("a plan")
}

pub(crate) fn carry_out(pgdata: &Path, plan: &StartPlan, journal: &Path) {
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
    })
    .unwrap_or_else(|error| panic!("{}: {error}", plan.cures[0].summary));
}

/// Every file with its bytes, every directory, and permissions of the root.
pub(crate) fn contents(pgdata: &Path) -> Vec<(PathBuf, Option<blake3::Hash>)> {
    let mut left = vec![pgdata.to_path_buf()];
    let mut all = Vec::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
            all.push((path, None));
        } else {
            let bytes = fs::read(&path).expect("a file");
            all.push((path, Some(blake3::hash(&bytes))));
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn treat_all(installation: &Installation, wounds: &[&Wound]) {
    let mut wrong = Vec::new();
    for before in [Before::Crash, Before::Shutdown] {
        let own: Vec<&&Wound> = wounds.iter().filter(|own| own.before == before).collect();
        if own.is_empty() {
            continue;
        }
        let patient = Patient::of(installation, before);
        for wound in own {
            wrong.extend(patient.treat(wound));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_wound_is_explained_healed_and_the_server_starts_with_the_rows_that_were_promised() {
    let all: Vec<&Wound> = wounds().collect();
    assert!(all.len() >= 60, "{}", all.len());
    treat_all(&server(15), &all);
}

#[test]
fn wal_and_control_file_are_written_for_every_major() {
    let is_of_all = |own: &&Wound| {
        matches!(
            own.name,
            "control file and WAL lost" | "control file lost" | "WAL deleted after a shutdown"
        )
    };
    let own: Vec<&Wound> = wounds().filter(is_of_all).collect();
    for installation in all_majors() {
        treat_all(&installation, &own);
    }
}

#[test]
fn a_sound_cluster_gets_no_plan() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    assert_eq!(plan(&copy.pgdata), None);
    let mut running = copy.start().expect("a server");
    execute(&running, "CREATE TABLE more (id int)");
    let count = value(&running, "SELECT count(*) FROM more");
    assert_eq!(count, "0");
    running.stop(StopMode::Immediate).expect("an end");
    assert_eq!(plan(&copy.pgdata), None, "a crash is recovered from");
}
