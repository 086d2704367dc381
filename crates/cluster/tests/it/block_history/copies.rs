//! Other copies than backups: a cold one, and a standby.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::wal::{Evidence, NotProven, PageOrigin, RecoveredBlock, WalDirectory};
use pgclinic_servers::{Checksums, Server, StartOptions, StopMode, copy_cluster};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{as_primary, catch_up, copy_of, execute, run_as, seed, server, standby};

use super::ground::{
    AFTER, Sort, all_blocks, compared, copy_of_files, opened, recover, run, start_with, stopped,
    with_copy,
};

/// A copy of the stopped cluster, which was started again afterwards.
#[test]
fn a_cold_copy_is_rolled_forward() {
    for checksums in [Checksums::On, Checksums::Off] {
        let ground = stopped(server(15), checksums);
        let cold = opened(&copy_of_files(&ground));
        let mut server = ground.start();
        run(
            &server,
            "UPDATE rows SET n = n + 1; VACUUM rows; SELECT nextval('used')",
        );
        server.stop(StopMode::Fast).expect("a stop");
        let cluster = ground.cluster();
        let recovered = recover(
            &cluster,
            &all_blocks(&cluster),
            &with_copy("the copy", &cold),
        );
        let tally = compared(&recovered, &cluster);
        assert_eq!(tally.not(Sort::Heap), 0, "{tally:?}");
        // From the copy's checkpoint on there is little WAL.
        let blocks = all_blocks(&cold);
        let recovered = recover(&cluster, &blocks, &with_copy("the copy", &cold));
        let origins = recovered
            .blocks
            .iter()
            .filter_map(|block| block.outcome.as_ref().ok());
        let of_copy = origins.filter(|exact| matches!(exact.origin, PageOrigin::Copy { .. }));
        assert!(of_copy.count() > 1000, "{tally:?}");
    }
}

/// The standby's pages are those of its last restartpoint, or carry the LSN of the last record: so
/// indexes come back, too, whose records are not applied here.
#[test]
fn a_standby_gives_back_indexes_too() {
    let seeded = seed(&server(15), Checksums::On);
    let (a, b) = (copy_of(&seeded), copy_of(&seeded));
    let mut primary = a.start_with(&as_primary()).expect("a server");
    let mut follower = standby(&b, &primary, as_primary());
    let changes = "UPDATE public.docs SET id = id; DELETE FROM public.measurements WHERE id % 7 = 0;
        CREATE TABLE public.fresh AS SELECT i AS id, md5(i::text) AS what FROM generate_series(1, 5000) AS i;
        CREATE INDEX ON public.fresh (what); CHECKPOINT; INSERT INTO public.fresh SELECT i, md5(i::text) FROM generate_series(6000, 8000) AS i";
    execute(&primary, changes);
    let mut session = primary.connect("postgres").expect("a session");
    catch_up(&mut session, &follower);
    follower.stop(StopMode::Fast).expect("a stop");
    drop(session);
    primary.stop(StopMode::Fast).expect("a stop");
    let (cluster, other) = (opened(&a.pgdata), opened(&b.pgdata));
    let blocks = all_blocks(&cluster);
    let alone = compared(&recover(&cluster, &blocks, &Evidence::default()), &cluster);
    let recovered = recover(&cluster, &blocks, &with_copy("the standby", &other));
    let tally = compared(&recovered, &cluster);
    let same = recovered
        .blocks
        .iter()
        .filter_map(|block| block.outcome.as_ref().ok());
    let same = same
        .filter(|exact| matches!(exact.origin, PageOrigin::SameState { .. }))
        .count();
    assert!(same > 10, "{same}: {tally:?}");
    assert!(
        tally.exact(Sort::Other) > alone.exact(Sort::Other),
        "{tally:?} {alone:?}"
    );
}

/// With `wal_level = minimal`, what a transaction loads into files of its own is in no WAL.
#[test]
fn what_was_loaded_without_wal_is_not_proven() {
    let ground = stopped(server(15), Checksums::On);
    let cold = opened(&copy_of_files(&ground));
    let options = StartOptions::default().with("wal_level", "minimal");
    let options = options.with("wal_skip_threshold", "0");
    let mut server = start_with(&ground, &ground.pgdata, options);
    let load = "BEGIN; TRUNCATE shrinks; INSERT INTO shrinks SELECT i, 'z' FROM generate_series(1, 3000) AS i; COMMIT";
    let mut session = server.connect("postgres").expect("a session");
    session.execute(load).expect("a load");
    session.execute("UPDATE rows SET n = 3").expect("an update");
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
    let cluster = ground.cluster();
    let recovered = recover(
        &cluster,
        &all_blocks(&cluster),
        &with_copy("the copy", &cold),
    );
    let tally = compared(&recovered, &cluster);
    let remade =
        |block: &&RecoveredBlock| matches!(block.outcome, Err(NotProven::FileRemade { .. }));
    let remade = recovered.blocks.iter().filter(remade).count() as u64;
    assert!((10..=remade).contains(&tally.not(Sort::Heap)), "{tally:?}");
}

/// A backup of timeline 1, recovered and promoted before the primary went on: WAL of timeline 1 is
/// taken up to the switch only, though the archive has more of it.
#[test]
fn timelines_are_followed_where_they_parted() {
    let ground = stopped(server(15), Checksums::On);
    let restored = ground.scratch.folder("restored").expect("a directory");
    let restored = copy_cluster(&ground.backup, &restored)
        .expect("a copy")
        .pgdata;
    std::fs::write(restored.join("recovery.signal"), "").expect("a file");
    own(&restored);
    std::fs::set_permissions(&restored, Permissions::from_mode(0o700)).expect("a mode");
    let from = ground.pgdata.join("pg_wal");
    let options = as_primary().with("restore_command", &format!("cp {}/%f %p", from.display()));
    let options = options.with("recovery_target", "immediate");
    let options = options.with("recovery_target_action", "promote");
    let mut server = start_with(&ground, &restored, options);
    wait_for_promotion(&server);
    run(&server, AFTER);
    server.stop(StopMode::Fast).expect("a stop");
    let (cluster, backup) = (opened(&restored), ground.backup());
    let control = cluster.control.trusted().expect("a control file");
    assert_eq!(control.checkpoint.timeline, 2);
    let mut evidence = with_copy("the backup", &backup);
    let directory = DataDirectory::open(&from).expect("a directory");
    let archive = WalDirectory::archive("the archive", Arc::new(directory));
    evidence.wal.push(archive);
    let recovered = recover(&cluster, &all_blocks(&cluster), &evidence);
    let tally = compared(&recovered, &cluster);
    assert_eq!(tally.not(Sort::Heap), 0, "{tally:?}");
    assert!(tally.exact(Sort::Heap) > 500, "{tally:?}");
    // The other way round: the primary that stayed on timeline 1, and the promoted one as a copy.
    let primary = ground.cluster();
    let recovered = recover(
        &primary,
        &all_blocks(&primary),
        &with_copy("promoted", &cluster),
    );
    compared(&recovered, &primary);
    assert_eq!(
        recovered.refused_copies.len(),
        1,
        "{:?}",
        recovered.refused_copies
    );
}

/// A server in recovery takes sessions before it is promoted.
fn wait_for_promotion(server: &Server) {
    let mut session = server.connect("postgres").expect("a session");
    let promoted = "SELECT pg_promote()";
    let in_recovery = session.query_value("SELECT pg_is_in_recovery()");
    if in_recovery.expect("an answer").as_deref() == Some("t") {
        // It may have ended its recovery by itself meanwhile.
        let _ = session.execute(promoted);
    }
}

/// Gives files to the user that servers run as.
fn own(path: &Path) {
    run_as().own(path).expect("an owner");
    let below = std::fs::read_dir(path).into_iter().flatten();
    below.for_each(|entry| own(&entry.expect("an entry").path()));
}
