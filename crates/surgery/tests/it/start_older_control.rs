//! A control file that does not fit: copied back from an earlier day, or truncated after its live
//! part. What is planned lets the server start with every row.

use std::fs;
use std::path::Path;

use pgclinic_cluster::ControlState;
use pgclinic_model::Level;
use pgclinic_model::plan::Safety;
use pgclinic_servers::{Checksums, Server, StartOptions, StopMode, copy_cluster};
use pgclinic_testkit::{
    TempCopy, as_primary, checked, copy_of, execute, open, run_as, seed, server, value,
};

use crate::start_again::{carry_out, plan};

const CONTROL_FILE: &str = "global/pg_control";

/// A cluster, killed, whose control file was noted before some checkpoints.
struct Aged {
    copy: TempCopy,
    /// While the server ran, and after it was shut down.
    in_production: Vec<u8>,
    shut_down: Vec<u8>,
    rows: String,
}

fn aged(options: &StartOptions) -> Aged {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let read = || fs::read(copy.pgdata.join(CONTROL_FILE)).expect("a control file");
    let mut running = copy.start_with(options).expect("a server");
    execute(
        &running,
        "CREATE TABLE grows AS SELECT g AS id, repeat('x', 90) AS body FROM generate_series(1, 3000) g; CHECKPOINT",
    );
    let in_production = read();
    running.stop(StopMode::Fast).expect("an end");
    let shut_down = read();
    let mut running = copy.start_with(options).expect("a server");
    for _ in 0..3 {
        execute(
            &running,
            "INSERT INTO grows SELECT g, repeat('y', 90) FROM generate_series(1, 3000) g; SELECT pg_switch_wal(); CHECKPOINT",
        );
    }
    execute(
        &running,
        "DELETE FROM grows WHERE id % 3 = 0; CHECKPOINT; INSERT INTO grows VALUES (0, 'late')",
    );
    let rows = rows(&running);
    running.kill();
    fs::remove_file(copy.pgdata.join("postmaster.pid")).expect("the server is gone");
    Aged {
        copy,
        in_production,
        shut_down,
        rows,
    }
}

fn rows(server: &Server) -> String {
    value(
        server,
        "SELECT count(*) || ' ' || sum(id) || ' ' || count(*) FILTER (WHERE body = 'late') FROM grows",
    )
}

impl Aged {
    fn put(&self, control: &[u8]) -> &Path {
        fs::write(self.copy.pgdata.join(CONTROL_FILE), control).expect("a write");
        &self.copy.pgdata
    }

    /// The server recovers, and shows what was there when it was killed.
    #[track_caller]
    fn starts_whole(&self) {
        let mut running = self.copy.start_with(&as_primary()).expect("a server");
        assert_eq!(rows(&running), self.rows);
        running.stop(StopMode::Fast).expect("an end");
    }

    #[track_caller]
    fn is_named_and_healed(&self, control: &[u8]) {
        let pgdata = self.put(control);
        let cluster = open(pgdata);
        assert!(
            matches!(cluster.control, ControlState::Older { .. }),
            "{:?}",
            cluster.control
        );
        let document = checked(&cluster, Level::Structure);
        let own = document.findings.iter().find(|own| own.caused_by.is_none());
        let own = own.expect("it is found");
        assert_eq!(own.rule, "control-file-inconsistent");
        assert!(
            own.message
                .starts_with("the file is older than the cluster: it "),
            "{}",
            own.message
        );
        let plan = plan(pgdata).expect("a plan");
        let cures = plan.cures.iter().map(|own| (own.name.as_str(), own.safety));
        let cures: Vec<_> = cures.collect();
        assert_eq!(cures, [("control-file-from-wal", Safety::Exact)]);
        let journals = tempfile::tempdir().expect("a directory");
        carry_out(pgdata, &plan, &journals.path().join("journal"));
        self.starts_whole();
    }
}

/// The server removes or renames segments that it needs no more.
fn forgetful() -> StartOptions {
    as_primary()
        .with("wal_keep_size", "0")
        .with("min_wal_size", "32MB")
}

#[test]
fn a_control_file_whose_wal_is_gone_is_written_from_the_last_checkpoint() {
    let forgetful = aged(&forgetful());
    forgetful.is_named_and_healed(&forgetful.in_production);
}

#[test]
fn a_control_file_of_a_shutdown_whose_wal_goes_on_is_written_from_the_last_checkpoint() {
    let aged = aged(&as_primary().with("wal_keep_size", "1GB"));
    aged.is_named_and_healed(&aged.shut_down);
}

/// Recovery from an earlier checkpoint takes longer, and ends at the same place.
#[test]
fn a_control_file_with_all_wal_since_needs_no_cure() {
    let aged = aged(&as_primary().with("wal_keep_size", "1GB"));
    let pgdata = aged.put(&aged.in_production);
    assert!(matches!(open(pgdata).control, ControlState::Right(_)));
    assert_eq!(plan(pgdata), None);
    aged.starts_whole();
}

/// A cold copy beside WAL of later days is as old as its control file.
#[test]
fn files_as_old_as_their_control_file_leave_it_as_it_is() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let cold = tempfile::tempdir().expect("a directory");
    run_as().own(cold.path()).expect("an owner");
    let cold = copy_cluster(&copy.pgdata, &cold.path().join("cold")).expect("a copy");
    let mut running = copy.start().expect("a server");
    execute(
        &running,
        "CREATE TABLE later AS SELECT g AS id FROM generate_series(1, 9000) g; CHECKPOINT",
    );
    running.kill();
    for entry in fs::read_dir(copy.pgdata.join("pg_wal")).expect("a directory") {
        let path = entry.expect("an entry").path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            fs::copy(&path, cold.pgdata.join("pg_wal").join(name)).expect("a segment");
        }
    }
    let cluster = open(&cold.pgdata);
    assert!(
        matches!(cluster.control, ControlState::Right(_)),
        "{:?}",
        cluster.control
    );
}

#[test]
fn a_control_file_truncated_after_its_live_part_is_filled_up() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let path = copy.pgdata.join(CONTROL_FILE);
    let whole = fs::read(&path).expect("a control file");
    for left in [296, 512, 4096] {
        fs::write(&path, &whole[..left]).expect("a write");
        let plan = plan(&copy.pgdata).expect("a plan");
        let cures = plan.cures.iter().map(|own| (own.name.as_str(), own.safety));
        let cures: Vec<_> = cures.collect();
        assert_eq!(cures, [("fill-control-file", Safety::Exact)]);
        let journals = tempfile::tempdir().expect("a directory");
        let journal = journals.path().join("journal");
        carry_out(&copy.pgdata, &plan, &journal);
        assert!(fs::read(&path).expect("a control file") == whole);
        pgclinic_surgery::undo(&journal, None).expect("the first bytes");
        assert_eq!(fs::read(&path).expect("a control file").len(), left);
    }
    // Without its checksum nothing vouches for the rest.
    fs::write(&path, &whole[..280]).expect("a write");
    let plan = plan(&copy.pgdata).expect("a plan");
    assert_eq!(plan.cures[0].name, "control-file-from-wal");
}
