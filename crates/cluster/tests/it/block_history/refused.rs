//! WAL that is missing, damaged or of another cluster: refused with the reason, and never wrong.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{Evidence, NotProven};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::{Memory, OverlayPatch};
use pgclinic_testkit::server;

use super::ground::{
    Ground, Sort, Tally, all_blocks, archive, compared, copy_of_files, opened, recover, run,
    start_on, stopped, with_copy,
};

/// What is called exact is true all the same.
#[track_caller]
fn tallied(ground: &Ground, cluster: &Cluster, evidence: &Evidence<'_>) -> (Tally, Vec<NotProven>) {
    let blocks = all_blocks(cluster);
    let recovered = recover(cluster, &blocks, evidence);
    let tally = compared(&recovered, &ground.cluster());
    let why = recovered
        .blocks
        .into_iter()
        .filter_map(|block| block.outcome.err());
    (tally, why.collect())
}

fn has(all: &[NotProven], expected: impl Fn(&NotProven) -> bool) -> bool {
    all.iter().any(expected)
}

fn path(name: &str) -> String {
    format!("pg_wal/{name}")
}

#[test]
fn a_gap_leaves_only_what_has_an_image_after_it() {
    let ground = stopped(server(15), Checksums::On);
    let (names, backup) = (ground.segments(), ground.backup());
    // Behind the backup, before the end.
    let name = &names[names.len() - 5];
    let byte = ground.segment(name)[500_000] ^ 0x10;
    let damages = [
        OverlayPatch::Remove { path: path(name) },
        OverlayPatch::Cut {
            path: path(name),
            len: 400_000,
        },
        OverlayPatch::Bytes {
            path: path(name),
            offset: 500_000,
            bytes: vec![byte],
        },
    ];
    for damage in damages {
        let cluster = ground.patched([damage.clone()]);
        let evidence = with_copy("the backup", &backup);
        let (tally, why) = tallied(&ground, &cluster, &evidence);
        assert!(tally.exact(Sort::Heap) > 20, "{damage:?} {tally:?}");
        assert!(tally.not(Sort::Heap) > 200, "{damage:?} {tally:?}");
        let is_gap = |why: &NotProven| {
            let gap = matches!(why, NotProven::Gap { .. } | NotProven::NoPage { .. });
            gap && !why.to_string().is_empty()
        };
        assert!(has(&why, is_gap), "{damage:?}");
        // The same with a sound copy of the segment in an archive.
        let mut evidence = with_copy("the backup", &backup);
        evidence.wal.push(archive(
            Memory::new("archive").with(name.as_str(), ground.segment(name)),
        ));
        let (tally, _) = tallied(&ground, &cluster, &evidence);
        assert_eq!(tally.not(Sort::Heap), 0, "{damage:?} {tally:?}");
    }
}

#[test]
fn wal_that_ends_before_the_shutdown_proves_nothing() {
    let ground = stopped(server(15), Checksums::On);
    let (names, backup) = (ground.segments(), ground.backup());
    let control = ground.cluster();
    let control = control.control.trusted().expect("a control file");
    let at = control.checkpoint_lsn.0 % (1 << 20);
    let last = names.last().expect("a segment");
    let byte = ground.segment(last)[at as usize - 40] ^ 1;
    let damages = [
        OverlayPatch::Remove { path: path(last) },
        OverlayPatch::Cut {
            path: path(last),
            len: at & !8191,
        },
        OverlayPatch::Bytes {
            path: path(last),
            offset: at - 40,
            bytes: vec![byte],
        },
    ];
    for damage in damages {
        let cluster = ground.patched([damage.clone()]);
        let evidence = with_copy("the backup", &backup);
        let (tally, why) = tallied(&ground, &cluster, &evidence);
        assert!(tally.exact.is_empty(), "{damage:?} {tally:?}");
        let ends =
            |why: &NotProven| matches!(why, NotProven::WalEnds { .. } | NotProven::NoWal { .. });
        assert!(has(&why, ends), "{damage:?} {why:?}");
    }
}

/// Segments of the same names, from a cluster that `initdb` made, and from a clone that went on by
/// itself.
#[test]
fn wal_of_another_cluster_and_of_a_clone_is_none() {
    let ground = stopped(server(15), Checksums::On);
    let other = stopped(server(15), Checksums::On);
    let backup = ground.backup();
    let names = ground.segments();
    let lost = &names[names.len() - 5..];
    let memory = Memory::new("other");
    for name in lost.iter().filter(|name| other.segments().contains(name)) {
        memory.insert(name.as_str(), other.segment(name));
    }
    let cluster = ground.without(lost);
    let mut evidence = with_copy("the backup", &backup);
    evidence.wal.push(archive(memory));
    let (tally, _) = tallied(&ground, &cluster, &evidence);
    assert!(tally.exact.is_empty(), "{tally:?}");
    let other_backup = other.backup();
    let recovered = recover(&ground.cluster(), &[], &with_copy("other", &other_backup));
    assert!(recovered.refused_copies[0].contains("it is of another cluster"));
}

#[test]
fn a_clone_that_went_on_by_itself_is_another_history() {
    let ground = stopped(server(15), Checksums::On);
    let clone = copy_of_files(&ground);
    let changes = "UPDATE rows SET n = n + 1; CHECKPOINT; UPDATE still SET what = 'new'";
    let other = "UPDATE still SET what = 'other'; CHECKPOINT; UPDATE rows SET n = n + 2";
    for (pgdata, sql) in [(&ground.pgdata, changes), (&clone, other)] {
        let mut server = start_on(&ground, pgdata);
        run(&server, sql);
        server.stop(StopMode::Fast).expect("a stop");
    }
    let (backup, clone_cluster) = (ground.backup(), opened(&clone));
    // As a copy, its pages are no evidence.
    let evidence = with_copy("the clone", &clone_cluster);
    let (_, _) = tallied(&ground, &ground.cluster(), &evidence);
    // As an archive for a segment that was written after they parted.
    let names = ground.segments();
    for name in names.iter().rev().take(4) {
        let bytes = std::fs::read(clone.join("pg_wal").join(name));
        let Ok(bytes) = bytes else { continue };
        let mut evidence = with_copy("the backup", &backup);
        evidence
            .wal
            .push(archive(Memory::new("clone").with(name.as_str(), bytes)));
        let cluster = ground.without(std::slice::from_ref(name));
        let (tally, why) = tallied(&ground, &cluster, &evidence);
        assert!(tally.not(Sort::Heap) > 0, "{name}: {tally:?} {why:?}");
    }
}

#[test]
fn a_running_server_and_a_damaged_control_file_are_no_ground_to_stand_on() {
    let ground = stopped(server(15), Checksums::On);
    let blocks = all_blocks(&ground.cluster());
    let damaged = ground.patched([OverlayPatch::Bytes {
        path: "global/pg_control".into(),
        offset: 40,
        bytes: vec![0xFF; 8],
    }]);
    let recovered = recover(&damaged, &blocks, &Evidence::default());
    super::ground::all_refused(&recovered, |why| *why == NotProven::ControlFile);
    let running = pgclinic_cluster::OpenOptions::of(ground.source()).running();
    let running = Cluster::open(running).expect("a cluster");
    let recovered = recover(&running, &blocks, &Evidence::default());
    super::ground::all_refused(&recovered, |why| *why == NotProven::ServerRuns);
}
