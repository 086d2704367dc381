//! Runs on a server that is there already: what is allowed leaves nothing behind, what is not is
//! refused.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use common::{Nobody, metric, options, smallest};
use pgclinic_lab::load::ConnectionTarget;
use pgclinic_lab::{
    Experiment, GivenServer, OwnExperiment, Plan, PlanOptions, RunFolder, RunResult, TEMPLATE,
    carry_out, experiment_named,
};
use pgclinic_servers::{Checksums, InitOptions, Scratch, StartOptions, initdb};
use pgclinic_servers::{ConnectOptions, Server, Session};
use pgclinic_testkit::{run_as, server};

/// A server that asks every role for its password, as others' servers do.
fn theirs() -> (Server, ConnectionTarget, Scratch) {
    let (run_as, installation) = (run_as(), server(15));
    let scratch = Scratch::new(&run_as, None).expect("a scratch directory");
    let pgdata = scratch.folder("data").expect("a directory");
    let init = InitOptions {
        checksums: Checksums::On,
        ..InitOptions::default()
    };
    initdb(&installation, &run_as, &pgdata, &init).expect("a cluster");
    let start = StartOptions::default().with("autovacuum", "on");
    let mut server = Server::start(&installation, &run_as, &pgdata, &start).expect("a start");
    let mut session = server.connect("postgres").expect("a session");
    session
        .execute("SET password_encryption = 'scram-sha-256'; CREATE ROLE ann SUPERUSER LOGIN PASSWORD 'p@ss word'")
        .expect("a role");
    drop(session);
    server
        .stop(pgclinic_servers::StopMode::Fast)
        .expect("a stop");
    std::fs::write(pgdata.join("pg_hba.conf"), "local all all scram-sha-256\n").expect("a write");
    let server = Server::start(&installation, &run_as, &pgdata, &start).expect("a start");
    let folder = server.socket_folder().display().to_string();
    let url = format!("postgres://ann:p%40ss%20word@/postgres?host={folder}");
    let target = ConnectionTarget::from_url(&url).expect("a target");
    (server, target, scratch)
}

fn run(
    experiment: &dyn Experiment,
    plan: Plan,
    target: &ConnectionTarget,
    word: bool,
) -> pgclinic_lab::Result<Vec<RunResult>> {
    let home = tempfile::tempdir().expect("a directory");
    let folder = RunFolder::create(&home.path().join("run"), plan).expect("a run directory");
    let mut options = options(None);
    options.site.url = Some(GivenServer {
        target: target.clone(),
        is_not_production: word,
    });
    let stop = Arc::new(AtomicBool::new(false));
    carry_out(experiment, &folder, &options, stop, &mut Nobody)
}

fn session(target: &ConnectionTarget) -> Session {
    Session::open(target, &ConnectOptions::default()).expect("a session with a password")
}

#[test]
fn an_existing_server_is_left_as_it_was() {
    let (_server, target, _scratch) = theirs();
    let listed = |name: &str| experiment_named(name).expect("an experiment");

    // What a killed laboratory left goes; a schema of somebody else with such a name stays.
    session(&target)
        .execute(
            "CREATE SCHEMA pgclinic_lab_7; COMMENT ON SCHEMA pgclinic_lab_7 IS 'made by pgclinic lab; it is dropped at the end of a run'; \
             CREATE SCHEMA pgclinic_lab_9",
        )
        .expect("schemas");
    let plan = smallest("toast-compression", &[]);
    let results = run(listed("toast-compression"), plan, &target, false).expect("results");
    assert!(
        metric(&results, "pglz", &[], "bytes_row")
            < 0.7 * metric(&results, "external", &[], "bytes_row")
    );
    let url = &results[0].environment["server_url"];
    assert!(
        url.starts_with("postgres://ann@") && !url.contains("p@ss"),
        "{url}"
    );

    // A setting that needs a restart skips its runs and says which it is.
    let plan = smallest("duplicate-inserts", &[("collides", &["primary"])]);
    let results = run(listed("duplicate-inserts"), plan, &target, false).expect("results");
    for result in &results {
        let words = result.outcome.words();
        assert!(
            words.contains("skipped: autovacuum is on at the URL"),
            "{words}"
        );
    }
    let left = session(&target)
        .query_value(
            "SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname LIKE 'pgclinic%'",
        )
        .expect("an answer");
    assert_eq!(left.as_deref(), Some("pgclinic_lab_9"));

    let plan = smallest("checksum-cost", &[]);
    let refused = run(listed("checksum-cost"), plan, &target, true).expect_err("a refusal");
    assert!(
        refused
            .to_string()
            .contains("does not run on an existing server"),
        "{refused}"
    );
    own_files_ask_for_the_word(&target);
    schemas_are_filled_under_the_settings_of_their_arms(&target);
}

const SEEN: &str = r#"
name = "seen-by-setup"
question = "Which settings does filling see?"
blocks = 1
[setup]
sql = "CREATE TABLE seen AS SELECT current_setting('work_mem') AS memory"
shared = true
[[arm]]
name = "little"
settings = { work_mem = "1MB" }
[[arm]]
name = "much"
settings = { work_mem = "7MB" }
[run]
sql = "SELECT count(*) FROM seen"
[[metric]]
name = "memory_bytes"
sql = "SELECT pg_size_bytes(memory) FROM seen"
"#;

fn schemas_are_filled_under_the_settings_of_their_arms(target: &ConnectionTarget) {
    let own = OwnExperiment::parse(SEEN).expect("an experiment");
    let plan = Plan::make(&own, Some(SEEN.to_owned()), &PlanOptions::default()).expect("a plan");
    let results = run(&own, plan, target, true).expect("results");
    for (arm, megabytes) in [("little", 1.0), ("much", 7.0)] {
        let seen = metric(&results, arm, &[], "memory_bytes");
        assert_eq!(seen, megabytes * 1024.0 * 1024.0, "{arm}");
    }
}

fn own_files_ask_for_the_word(target: &ConnectionTarget) {
    let text = TEMPLATE.replace("seconds = 5", "seconds = 1");
    let own = OwnExperiment::parse(&text).expect("an experiment");
    let options = PlanOptions {
        blocks: Some(1),
        only: vec![
            ("rows".into(), vec!["20000".into()]),
            ("clients".into(), vec!["1".into()]),
        ],
        ..PlanOptions::default()
    };
    let plan = Plan::make(&own, Some(text), &options).expect("a plan");
    let refused = run(&own, plan.clone(), target, false).expect_err("a refusal");
    assert!(
        refused.to_string().contains("--this-is-not-production"),
        "{refused}"
    );
    let results = run(&own, plan, target, true).expect("results");
    assert!(results.iter().all(RunResult::is_done), "{results:?}");
}
