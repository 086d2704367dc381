//! Very many blocks of one table whose every page was changed: how many are given back, and that
//! none of them is wrong. `cargo xtask healed-pages` asks for 100,000.

use std::time::Instant;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{BlockAddress, Evidence, ReplaySpace, recover_blocks};
use pgclinic_format::Fork;
use pgclinic_servers::{Checksums, InitOptions, Server, StopMode, initdb};
use pgclinic_spill::Budget;
use pgclinic_testkit::{Quiet, as_primary, run_as, scratch, server, streamed_backup};

use super::ground::{
    Ground, Sort, all_blocks, compared, page_of, run, sort_of, start_with, with_copy,
};

/// Rows that fit a page of the table at its fill factor.
const ROWS_PER_PAGE: usize = 13;

fn before(pages: usize) -> String {
    let rows = pages * ROWS_PER_PAGE;
    format!(
        "CREATE TABLE rows (id int, n int, what text) WITH (fillfactor = 70);
         INSERT INTO rows SELECT i, i % 7, repeat(md5(i::text), 12) FROM generate_series(1, {rows}) AS i;
         CREATE INDEX ON rows (id);
         VACUUM rows"
    )
}

/// HOT updates, others, deletions, pruning, freezing, locks, and rows that are rolled back.
const AFTER: &str = "
UPDATE rows SET n = n + 1 WHERE id % 11 = 0;
DELETE FROM rows WHERE id % 31 = 0;
CHECKPOINT;
UPDATE rows SET what = md5(what) WHERE id % 23 = 0;
VACUUM rows;
BEGIN; UPDATE rows SET n = -1 WHERE id % 29 = 0; ROLLBACK;
BEGIN; SELECT count(*) FROM (SELECT 1 FROM rows WHERE id % 37 = 0 FOR SHARE) AS locked; COMMIT;
CHECKPOINT;
UPDATE rows SET n = n + 1 WHERE id % 13 = 0;
UPDATE rows SET id = -id WHERE id % 101 = 0;
VACUUM (FREEZE) rows;
INSERT INTO rows SELECT i, 0, repeat('y', i % 300) FROM generate_series(1, 20000) AS i;
DELETE FROM rows WHERE n = 3 AND id % 3 = 0";

fn lived(pages: usize) -> Ground {
    let scratch = scratch();
    let ground = Ground {
        installation: server(15),
        pgdata: scratch.folder("data").expect("a directory"),
        backup: scratch.path().join("backup"),
        scratch,
    };
    let options = InitOptions {
        checksums: Checksums::On,
        ..InitOptions::default()
    };
    initdb(&ground.installation, &run_as(), &ground.pgdata, &options).expect("a cluster");
    let options = as_primary()
        .with("max_wal_size", "8GB")
        .with("maintenance_work_mem", "256MB");
    let mut server = start_with(&ground, &ground.pgdata, options);
    run(&server, &before(pages));
    streamed_backup(&server, &ground.backup, None);
    run(&server, AFTER);
    server.stop(StopMode::Fast).expect("a stop");
    ground
}

fn heap_blocks(cluster: &Cluster) -> Vec<BlockAddress> {
    let mut blocks = all_blocks(cluster);
    blocks.retain(|block| block.fork == Fork::Main && block.file.filenode >= 16384);
    let is_heap = |block: &BlockAddress| {
        page_of(cluster, *block).is_some_and(|page| sort_of(&page) == Sort::Heap)
    };
    blocks.retain(is_heap);
    blocks
}

#[expect(
    clippy::print_stdout,
    reason = "`cargo xtask healed-pages` shows what came of it"
)]
fn told(
    ground: &Ground,
    cluster: &Cluster,
    blocks: &[BlockAddress],
    evidence: (&str, &Evidence<'_>),
) -> (u64, u64) {
    let folder = ground.scratch.path();
    let space = ReplaySpace {
        memory: Budget::new(256 << 20),
        spill_folder: Some(folder),
    };
    let start = Instant::now();
    let recovered = recover_blocks(cluster, blocks, evidence.1, &space, &Quiet);
    let seconds = start.elapsed().as_secs_f64();
    let tally = compared(&recovered, cluster);
    let (own, not) = (tally.exact(Sort::Heap), tally.not(Sort::Heap));
    let total = own + not;
    println!(
        "{}: {own} of {total} heap pages given back ({:.3} %), none wrong; {:.1} s, {} bytes of WAL",
        evidence.0,
        100.0 * own as f64 / total as f64,
        seconds,
        recovered.wal_bytes
    );
    (own, total)
}

/// A hundred pages out of very much WAL, in the time that it takes to read it once. `cargo xtask
/// bench recovery` asks for gigabytes.
#[test]
fn a_hundred_blocks_cost_one_pass_over_the_wal() {
    let bytes = std::env::var("PGCLINIC_WAL_BYTES").ok();
    let bytes: u64 = bytes.map_or(100 << 20, |bytes| bytes.parse().expect("a number"));
    let ground = lived(2000);
    let mut server = ground.start();
    let written = |server: &Server| -> u64 {
        let mut session = server.connect("postgres").expect("a session");
        let lsn = session.query_value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn");
        let lsn = lsn.expect("a place").expect("a place");
        lsn.parse().expect("a number")
    };
    let start = written(&server);
    let mut round = 0;
    while written(&server) - start < bytes {
        round += 1;
        let before_images = if round % 3 == 0 { "CHECKPOINT;" } else { "" };
        let update = format!("{before_images} UPDATE rows SET n = n + 1; VACUUM rows");
        run(&server, &update);
    }
    server.stop(StopMode::Fast).expect("a stop");
    let cluster = ground.cluster();
    let mut blocks = heap_blocks(&cluster);
    let step = (blocks.len() / 100).max(1);
    blocks = blocks.into_iter().step_by(step).take(100).collect();
    let backup = ground.backup();
    let full = with_copy("the backup", &backup);
    for _ in 0..3 {
        let (own, total) = told(&ground, &cluster, &blocks, ("100 blocks", &full));
        assert_eq!((own, total), (100, 100));
    }
}

/// The page that is damaged is never read: what is given back follows from backup and WAL alone.
#[test]
fn of_many_changed_pages_none_comes_back_wrong() {
    let pages = std::env::var("PGCLINIC_RECOVERED_PAGES").ok();
    let pages = pages.map_or(2000, |pages| pages.parse().expect("a number"));
    let ground = lived(pages);
    let cluster = ground.cluster();
    let blocks = heap_blocks(&cluster);
    assert!(blocks.len() >= pages, "{} blocks", blocks.len());
    let backup = ground.backup();
    let full = with_copy("the backup", &backup);
    let (own, total) = told(&ground, &cluster, &blocks, ("backup and WAL", &full));
    assert_eq!(own, total, "with full evidence all of them come back");
    let alone = Evidence::default();
    let (own, _) = told(&ground, &cluster, &blocks, ("WAL alone", &alone));
    assert!(own > 0);
    let wal: Vec<String> = ground.segments();
    // What came before the last checkpoint but one is gone: images, and records since.
    let recent = ground.without(&wal[..wal.len() / 2]);
    told(&ground, &recent, &blocks, ("the later half of WAL", &alone));
}
