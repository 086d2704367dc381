//! Blocks of real clusters, recovered from WAL, backups and other copies, beside the true ones.

mod copies;
mod ground;
mod many;
mod parted;
mod refused;
mod status;

use std::io::Write;

use pgclinic_cluster::wal::{Evidence, NotProven, PageOrigin, RecoveredBlock};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::Memory;
use pgclinic_testkit::{all_majors, server};

use ground::{
    Ground, Sort, Tally, all_blocks, archive, begun, compared, copy_of_files, opened, recover,
    stopped, with_copy,
};

/// With a backup and all WAL since, every block of every table is given back.
#[track_caller]
fn whole_cluster(ground: &Ground) -> Tally {
    let (cluster, backup) = (ground.cluster(), ground.backup());
    let blocks = all_blocks(&cluster);
    let recovered = recover(&cluster, &blocks, &with_copy("the backup", &backup));
    assert_eq!(recovered.refused_copies, Vec::<String>::new());
    let tally = compared(&recovered, &cluster);
    let is_odd = |block: &&RecoveredBlock| {
        let legal = matches!(
            block.outcome,
            Ok(_) | Err(NotProven::Unlogged | NotProven::UnknownRecord { .. })
        );
        !legal
    };
    let odd = recovered.blocks.iter().find(is_odd);
    assert_eq!(odd.map(|block| format!("{block:?}")), None, "{tally:?}");
    assert!(tally.exact(Sort::Heap) > 500, "{tally:?}");
    assert_eq!(tally.not(Sort::Heap), 0, "{tally:?}");
    assert!(tally.unlogged > 0, "{tally:?}");
    assert_eq!(
        (tally.exact(Sort::Sequence), tally.not(Sort::Sequence)),
        (2, 0)
    );
    tally
}

#[test]
fn every_block_of_every_table_is_given_back_from_a_backup_and_wal() {
    whole_cluster(&stopped(server(15), Checksums::On));
    whole_cluster(&stopped(server(15), Checksums::Off));
}

#[test]
fn so_it_is_in_every_major() {
    for installation in all_majors() {
        let major = installation.major;
        let tally = whole_cluster(&stopped(installation, Checksums::On));
        println!("{major}: {tally:?}");
    }
}

/// Some blocks alone: the pass begins at the backup's redo point, and a sequence of which WAL has
/// no record since is not proven.
#[test]
fn what_wal_does_not_touch_is_the_page_of_the_backup() {
    let ground = stopped(server(15), Checksums::On);
    let (cluster, backup) = (ground.cluster(), ground.backup());
    let in_backup = all_blocks(&backup);
    let mut blocks = all_blocks(&cluster);
    blocks.retain(|block| in_backup.contains(block));
    let recovered = recover(&cluster, &blocks, &with_copy("the backup", &backup));
    let tally = compared(&recovered, &cluster);
    assert_eq!(
        (tally.exact(Sort::Sequence), tally.not(Sort::Sequence)),
        (1, 1)
    );
    let untouched = recovered
        .blocks
        .iter()
        .filter_map(|block| block.outcome.as_ref().ok());
    let untouched = untouched.filter(|exact| matches!(exact.origin, PageOrigin::Copy { .. }));
    let evidence = untouched
        .map(|exact| exact.evidence())
        .next()
        .expect("some");
    assert!(
        evidence[0].starts_with("page of the backup with LSN "),
        "{evidence:?}"
    );
    assert!(
        evidence[1].starts_with("WAL read without a gap from "),
        "{evidence:?}"
    );
    let start = backup.recovery().expect("a label").start.redo;
    let all = all_blocks(&cluster);
    let more = recover(&cluster, &all, &with_copy("the backup", &backup));
    assert!(recovered.wal_bytes < more.wal_bytes, "from {start} on");
}

/// The control file and `pg_wal` alone: blocks with an image, and none without.
#[test]
fn wal_alone_gives_back_what_it_has_an_image_of() {
    let ground = stopped(server(15), Checksums::On);
    let names = ground.segments();
    let (older, newer) = names.split_at(names.len() - 4);
    let cluster = ground.without(older);
    let blocks = all_blocks(&cluster);
    let recovered = recover(&cluster, &blocks, &Evidence::default());
    let tally = compared(&recovered, &ground.cluster());
    assert!(
        tally.exact(Sort::Heap) > 50 && tally.not(Sort::Heap) > 50,
        "{tally:?}"
    );
    let is_known = |block: &RecoveredBlock| match &block.outcome {
        Ok(exact) => matches!(
            exact.origin,
            PageOrigin::Image { .. } | PageOrigin::NewPage { .. }
        ),
        Err(why) => matches!(
            why,
            NotProven::NoPage { .. }
                | NotProven::NoImage { .. }
                | NotProven::UnknownRecord { .. }
                | NotProven::Unlogged
        ),
    };
    assert!(recovered.blocks.iter().all(is_known), "{newer:?} {tally:?}");
}

fn packed(way: &str, bytes: &[u8]) -> Vec<u8> {
    match way {
        ".gz" => {
            let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            to.write_all(bytes).expect("memory");
            to.finish().expect("memory")
        }
        ".lz4" => {
            let mut to = lz4_flex::frame::FrameEncoder::new(Vec::new());
            to.write_all(bytes).expect("memory");
            to.finish().expect("memory")
        }
        ".zst" => zstd::encode_all(bytes, 1).expect("memory"),
        _ => bytes.to_vec(),
    }
}

/// What `pg_wal` no longer has comes from an archive, in whatever form each segment has there.
#[test]
fn an_archive_may_be_compressed_in_several_ways() {
    let ground = stopped(server(15), Checksums::On);
    let names = ground.segments();
    let older = &names[..names.len() - 1];
    let memory = Memory::new("the archive");
    let ways = ["", ".gz", ".lz4", ".zst", ".partial", ".gz.partial"];
    for (name, way) in older.iter().zip(ways.iter().cycle()) {
        let bytes = packed(way.trim_end_matches(".partial"), &ground.segment(name));
        memory.insert(format!("{name}{way}"), bytes);
    }
    let (cluster, backup) = (ground.without(older), ground.backup());
    let blocks = all_blocks(&cluster);
    let mut evidence = with_copy("the backup", &backup);
    evidence.wal.push(archive(memory));
    let recovered = recover(&cluster, &blocks, &evidence);
    let tally = compared(&recovered, &ground.cluster());
    assert_eq!(tally.not(Sort::Heap), 0, "{tally:?}");
    assert_eq!(recovered.troubles, []);
}

/// The end of a killed server's WAL is the end of its changes; the truth is what its own recovery
/// leaves.
#[test]
fn a_crashed_cluster_is_given_back_as_recovery_leaves_it() {
    let (ground, mut server) = begun(server(15), Checksums::On);
    server.kill();
    let crashed = copy_of_files(&ground);
    let mut server = ground.start();
    server.stop(StopMode::Fast).expect("a stop");
    let (cluster, backup) = (opened(&crashed), ground.backup());
    assert!(cluster.needs_recovery());
    let truth = ground.cluster();
    let mut blocks = all_blocks(&cluster);
    let after = all_blocks(&truth);
    blocks.retain(|block| after.contains(block));
    let recovered = recover(&cluster, &blocks, &with_copy("the backup", &backup));
    let tally = compared(&recovered, &truth);
    assert!(tally.exact(Sort::Heap) > 500, "{tally:?}");
    assert_eq!(tally.not(Sort::Sequence), 0, "{tally:?}");
    assert_eq!(tally.not(Sort::Heap), 0, "{tally:?}");
}
