//! What samplers see of a real server beside a small load.

use std::collections::BTreeMap;
use std::time::Duration;

use pgclinic_lab::load::{ConnectionTarget, Length, Load, LoadResult, Script};
use pgclinic_lab::samplers::{RunningSamplers, SAMPLERS, Sampled, WatchedServer};
use pgclinic_servers::{InitOptions, Scratch, Server, StartOptions, initdb};
use pgclinic_testkit::{run_as, server};

fn watched(major: u16) -> Sampled {
    let (run_as, installation) = (run_as(), server(major));
    let scratch = Scratch::new(&run_as, None).expect("a scratch directory");
    let pgdata = scratch.folder("data").expect("a directory");
    initdb(&installation, &run_as, &pgdata, &InitOptions::default()).expect("a cluster");
    let server =
        Server::start(&installation, &run_as, &pgdata, &StartOptions::default()).expect("a start");
    let mut session = server.connect("postgres").expect("a session");
    session
        .execute("CREATE TABLE t (i integer)")
        .expect("a table");
    session
        .execute("CREATE FUNCTION noise() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM pg_sleep(0.02)'")
        .expect("a function");

    let script = "INSERT INTO t SELECT generate_series(1, 100);\nSELECT noise();\n";
    let script = Script::parse(script, &BTreeMap::new()).expect("a script");
    let mut load = Load::new(script, 2, Duration::ZERO);
    load.length = Length::Rounds(20);
    let beside = RunningSamplers::start(
        SAMPLERS,
        &WatchedServer::of(&server),
        server.connect("postgres").expect("a session"),
    );
    let result = load.run(&ConnectionTarget::of(&server, "postgres"), &|| {});
    // The stop reads once more and sees it.
    session.execute("CHECKPOINT").expect("a checkpoint");
    let sampled = beside.stop();
    assert!(matches!(result, LoadResult::Measured(_)), "{result:?}");
    sampled
}

/// What samplers must give on a server of this major, and which of them it cannot have.
fn check(major: u16, sampled: &Sampled) {
    let failed: Vec<_> = sampled
        .costs
        .iter()
        .filter(|cost| cost.failed > 0)
        .collect();
    assert!(failed.is_empty(), "{major}: {failed:?}");
    let missing: Vec<&str> = sampled
        .costs
        .iter()
        .filter(|cost| cost.trouble.is_some() && cost.name != "disk")
        .map(|cost| cost.name.as_str())
        .collect();
    let expected: &[&str] = match major {
        ..16 => &["io", "aio"],
        16 | 17 => &["aio"],
        _ => &[],
    };
    assert_eq!(missing, expected, "{major}");
    let metric = |name: &str| sampled.metrics.get(name).copied().unwrap_or(-1.0);
    assert!(metric("wal.bytes") > 0.0, "{major}: {:?}", sampled.metrics);
    assert!(
        metric("checkpoints.ended") >= 1.0,
        "{major}: {:?}",
        sampled.metrics
    );
    assert!(
        sampled
            .overlaps
            .iter()
            .any(|words| words.starts_with("a checkpoint ended"))
    );
    assert!(
        metric("wait.Timeout:PgSleep") > 0.0,
        "{major}: {:?}",
        sampled.metrics
    );
    assert!(sampled.costs.iter().any(|cost| cost.name == "session"));
    assert_eq!(metric("watching.cpu_s"), sampled.cpu_s());
    assert!(
        sampled
            .costs
            .iter()
            .all(|cost| cost.trouble.is_some() || cost.name == "session" || cost.samples >= 2)
    );
}

#[test]
fn each_sampler_reads_what_its_server_has() {
    for major in [15, 18] {
        check(major, &watched(major));
    }
}
