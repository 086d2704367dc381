//! Pages of the status logs, recovered from WAL, backups and other copies, beside the true ones.

use std::collections::BTreeMap;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::StatusPages;
use pgclinic_cluster::wal::{
    Evidence, NotProven, PageOrigin, RecoveredBlocks, StatusAddress, WantedPages, recover_pages,
};
use pgclinic_format::StatusLog;
use pgclinic_servers::{Checksums, Installation, Server, StopMode, initdb};
use pgclinic_source::OverlayPatch;
use pgclinic_testkit::{
    Quiet, all_majors, as_primary, catch_up, copy_of, run_as, scratch, seed, server, standby,
    streamed_backup,
};

use super::ground::{Ground, copy_of_files, opened, run, space, start_with, with_copy};

const LOGS: [StatusLog; 4] = [
    StatusLog::Xact,
    StatusLog::MultiOffsets,
    StatusLog::MultiMembers,
    StatusLog::CommitTs,
];
const TABLE: &str = "CREATE TABLE rows AS SELECT i AS id FROM generate_series(1, 4000) AS i;
    CREATE TABLE many (id int)";

/// So many subtransactions, each tenth of them rolled back.
fn subtransactions(server: &Server, count: u32) {
    let mut session = server.connect("postgres").expect("a session");
    let block = format!(
        "DO $$ BEGIN FOR i IN 1..{count} LOOP BEGIN
             INSERT INTO many VALUES (i); PERFORM 1 / (i % 10);
         EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$"
    );
    session.execute(&block).expect("subtransactions");
}

/// So many multixacts, each with two members.
fn multixacts(server: &Server, count: u32) {
    let mut sessions = [0, 1].map(|_| server.connect("postgres").expect("a session"));
    let lock = format!(
        "BEGIN; SELECT count(*) FROM (SELECT 1 FROM rows WHERE id <= {count} FOR KEY SHARE) AS l"
    );
    sessions[0].execute(&lock).expect("locks");
    let each = format!(
        "DO $$ BEGIN FOR i IN 1..{count} LOOP BEGIN
             PERFORM 1 FROM rows WHERE id = i FOR KEY SHARE;
         EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$"
    );
    sessions[1].execute(&each).expect("locks");
    sessions[0].execute("COMMIT").expect("an end");
}

fn started(ground: &Ground) -> Server {
    let options = as_primary()
        .with("track_commit_timestamp", "on")
        .with("max_prepared_transactions", "5");
    start_with(ground, &ground.pgdata, options)
}

/// Several pages of each log before a backup and after it, a crash with open transactions, and one
/// that waits for its second phase.
fn lived(installation: Installation) -> Ground {
    let scratch = scratch();
    let ground = Ground {
        pgdata: scratch.folder("data").expect("a directory"),
        backup: scratch.path().join("backup"),
        installation,
        scratch,
    };
    let options = pgclinic_servers::InitOptions {
        checksums: Checksums::Off,
        wal_segsize_mb: Some(1),
        ..Default::default()
    };
    initdb(&ground.installation, &run_as(), &ground.pgdata, &options).expect("a cluster");
    let mut server = started(&ground);
    run(&server, TABLE);
    subtransactions(&server, 3000);
    multixacts(&server, 700);
    streamed_backup(&server, &ground.backup, None);
    subtransactions(&server, 20000);
    run(
        &server,
        "BEGIN; INSERT INTO many VALUES (1); PREPARE TRANSACTION 'waits'",
    );
    multixacts(&server, 2000);
    let mut open = server.connect("postgres").expect("a session");
    open.execute("BEGIN; INSERT INTO many VALUES (2); SAVEPOINT s; INSERT INTO many VALUES (3)")
        .expect("a transaction");
    run(&server, "INSERT INTO many VALUES (4)");
    server.kill();
    let mut server = started(&ground);
    subtransactions(&server, 15000);
    run(
        &server,
        "BEGIN; INSERT INTO many VALUES (1); ROLLBACK; INSERT INTO many VALUES (5)",
    );
    server.stop(StopMode::Fast).expect("a stop");
    ground
}

fn all_pages(cluster: &Cluster) -> Vec<StatusAddress> {
    let mut all = Vec::new();
    for log in LOGS {
        let pages = StatusPages::open(cluster, log).expect("a listing");
        for file in pages.files() {
            let first = file.segment * 32;
            let pages = first..first + file.len / 8192;
            all.extend(pages.map(|page| StatusAddress { log, page }));
        }
    }
    all
}

fn recover(cluster: &Cluster, evidence: &Evidence<'_>) -> RecoveredBlocks {
    let status = all_pages(cluster);
    let wanted = WantedPages {
        blocks: &[],
        status: &status,
    };
    recover_pages(cluster, &wanted, evidence, &space(), &Quiet)
}

/// How many pages of each log are proven; each of them is the true one.
#[track_caller]
fn proven(recovered: &RecoveredBlocks, truth: &Cluster) -> BTreeMap<StatusLog, (usize, usize)> {
    let next = truth
        .control
        .trusted()
        .expect("a control file")
        .checkpoint
        .next_multi;
    let mut counts: BTreeMap<StatusLog, (usize, usize)> = BTreeMap::new();
    for page in &recovered.status {
        let StatusAddress { log, page: number } = page.address;
        let mut pages = StatusPages::open(truth, log).expect("a listing");
        let mut expected = pages.page(number).expect("a page").to_vec();
        let count = counts.entry(log).or_default();
        match &page.outcome {
            Ok((exact, bytes)) => {
                let mut own = bytes.clone();
                // Only later minors write where the next multixact will begin.
                if log == StatusLog::MultiOffsets && pages.page_of(next.0) == number {
                    let at = pages.entry_of(next.0) * 4;
                    own[at..at + 4].fill(0);
                    expected[at..at + 4].fill(0);
                }
                let wrong = own.iter().zip(&expected).position(|(a, b)| a != b);
                assert_eq!(wrong, None, "{:?}: {:?}", page.address, exact.evidence());
                count.0 += 1;
            }
            Err(_) => count.1 += 1,
        }
    }
    counts
}

fn with_backup(ground: &Ground) {
    let (cluster, backup) = (ground.cluster(), ground.backup());
    let recovered = recover(&cluster, &with_copy("the backup", &backup));
    let counts = proven(&recovered, &cluster);
    for log in LOGS {
        let (own, not) = counts[&log];
        assert!(
            own >= 2 && not == 0,
            "{log:?}: {counts:?} {:?}",
            recovered.status.iter().find(|p| p.outcome.is_err())
        );
    }
    let first = recovered.status.first().expect("a page");
    let (exact, _) = first.outcome.as_ref().expect("it is proven");
    let is_verified = matches!(
        exact.origin,
        PageOrigin::StatusCopy {
            is_in_manifest: true,
            ..
        }
    );
    assert!(is_verified, "{:?}", exact.evidence());
}

#[test]
fn every_page_of_the_status_logs_is_given_back_in_every_major() {
    for installation in all_majors() {
        with_backup(&lived(installation));
    }
}

#[test]
fn what_proves_a_page_of_a_status_log_and_what_does_not() {
    let ground = lived(server(15));
    with_backup(&ground);
    let cluster = ground.cluster();
    // WAL alone has the pages that were made in it, and the first one of a cluster never is.
    let alone = recover(&cluster, &Evidence::default());
    let counts = proven(&alone, &cluster);
    assert_eq!(counts[&StatusLog::Xact], (1, 1), "{counts:?}");
    assert!(counts[&StatusLog::CommitTs].0 > 10, "{counts:?}");

    // A copy without a manifest is not verified by itself, and is by another one.
    let cold = opened(&copy_of_files(&ground));
    let origin = |evidence: &Evidence<'_>| {
        let recovered = recover(&cluster, evidence);
        proven(&recovered, &cluster);
        match &recovered.status[0].outcome {
            Ok((exact, _)) => exact.origin.clone(),
            Err(why) => panic!("{why}"),
        }
    };
    let of_cold = origin(&with_copy("the copy", &cold));
    let is_unverified = matches!(
        of_cold,
        PageOrigin::StatusCopy {
            is_in_manifest: false,
            agree: false,
            ..
        }
    );
    assert!(is_unverified, "{of_cold:?}");
    let backup = ground.backup();
    let mut both = with_copy("the copy", &cold);
    both.copies.extend(with_copy("the backup", &backup).copies);
    assert!(matches!(
        origin(&both),
        PageOrigin::StatusCopy { agree: true, .. }
    ));

    // A backup whose own file was hit proves nothing.
    let mut bytes = vec![0; 8192];
    let source = backup.source();
    source
        .read_at("pg_xact/0000", 0, &mut bytes)
        .expect("a page");
    bytes[100] ^= 0x55;
    let hit = OverlayPatch::Bytes {
        path: "pg_xact/0000".into(),
        offset: 0,
        bytes,
    };
    let hit = pgclinic_source::Overlay::new(std::sync::Arc::clone(source), vec![hit]);
    let hit = Cluster::open(std::sync::Arc::new(hit.expect("an overlay"))).expect("a cluster");
    let recovered = recover(&cluster, &with_copy("the backup", &hit));
    let first = &recovered.status[0];
    assert!(
        matches!(first.outcome, Err(NotProven::NoStatusPage { .. })),
        "{:?}",
        first.outcome
    );
    assert!(first.refused_copies[0].contains("manifest"), "{first:?}");

    // A gap in WAL between the backup and the end.
    let names = ground.segments();
    let middle = &names[names.len() / 2..=names.len() / 2];
    let gapped = ground.without(middle);
    let mut copy = with_copy("the backup", &backup);
    copy.copies[0].name = "the backup".into();
    let recovered = recover(&gapped, &copy);
    proven(&recovered, &cluster);
    assert!(recovered.status[0].outcome.is_err());
}

/// The files of a standby that was shut down are those of its last restartpoint, and later.
#[test]
fn a_standby_gives_back_pages_that_nothing_else_confirms() {
    let seeded = seed(&server(15), Checksums::Off);
    let (a, b) = (copy_of(&seeded), copy_of(&seeded));
    let mut primary = a.start_with(&as_primary()).expect("a server");
    let mut follower = standby(&b, &primary, as_primary());
    run(&primary, TABLE);
    subtransactions(&primary, 5000);
    run(&primary, "CHECKPOINT");
    subtransactions(&primary, 5000);
    let mut session = primary.connect("postgres").expect("a session");
    catch_up(&mut session, &follower);
    follower.stop(StopMode::Fast).expect("a stop");
    drop(session);
    primary.stop(StopMode::Fast).expect("a stop");
    let (cluster, other) = (opened(&a.pgdata), opened(&b.pgdata));
    let recovered = recover(&cluster, &with_copy("the standby", &other));
    let counts = proven(&recovered, &cluster);
    assert_eq!(counts[&StatusLog::Xact], (1, 0), "{:?}", recovered.status);
    let (exact, _) = recovered.status[0].outcome.as_ref().expect("it is proven");
    let origin = &exact.origin;
    let is_unverified = matches!(
        origin,
        PageOrigin::StatusCopy {
            is_in_manifest: false,
            agree: false,
            ..
        }
    );
    assert!(is_unverified, "{origin:?}");
}

/// A server that crashed writes its status logs when it starts.
#[test]
fn of_a_crashed_cluster_no_page_is_given_back() {
    let ground = lived(server(15));
    let mut running = started(&ground);
    run(&running, "INSERT INTO many VALUES (6)");
    running.kill();
    let cluster = ground.cluster();
    let backup = ground.backup();
    let recovered = recover(&cluster, &with_copy("the backup", &backup));
    let all = recovered.status.iter();
    let refused = all.filter(|page| matches!(page.outcome, Err(NotProven::NotShutDown)));
    assert_eq!(refused.count(), recovered.status.len());
}
