//! Clusters with a life: loaded, backed up while they live, changed, and stopped or killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{
    BlockAddress, CopyOfCluster, Evidence, NotProven, RecoveredBlock, RecoveredBlocks, ReplaySpace,
    WalDirectory, recover_blocks,
};
use pgclinic_diff::are_alike;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::sequence::{SEQUENCE_MAGIC, magic};
use pgclinic_format::{Fork, Page};
use pgclinic_servers::{
    Checksums, InitOptions, Installation, Scratch, Server, StartOptions, StopMode, copy_cluster,
    initdb,
};
use pgclinic_source::{DataDirectory, Memory, Overlay, OverlayPatch, Source};
use pgclinic_testkit::{Quiet, as_primary, run_as, scratch, streamed_backup};

/// Tables of all sorts, before the backup.
pub(super) const BEFORE: &str = "
CREATE TABLE rows (id int PRIMARY KEY, n int, what text) WITH (fillfactor = 70);
INSERT INTO rows SELECT i, i % 7, md5(i::text) FROM generate_series(1, 6000) AS i;
CREATE TABLE still (id int PRIMARY KEY, what text);
INSERT INTO still SELECT i, md5(i::text) FROM generate_series(1, 2000) AS i;
CREATE TABLE long_values (id int, body text);
ALTER TABLE long_values ALTER body SET STORAGE EXTERNAL;
INSERT INTO long_values SELECT i, repeat(md5(i::text), 100) FROM generate_series(1, 100) AS i;
CREATE SEQUENCE used;
CREATE SEQUENCE unused;
SELECT nextval('used'), nextval('unused');
CREATE UNLOGGED TABLE unlogged AS SELECT i FROM generate_series(1, 1000) AS i;
CREATE TABLE shrinks AS SELECT i, md5(i::text) AS what FROM generate_series(1, 4000) AS i;
CREATE TABLE parted (id int, n int) PARTITION BY LIST (n);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN (0);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
INSERT INTO parted SELECT i, i % 2 FROM generate_series(1, 500) AS i;
VACUUM (FREEZE) still";

/// What happens to them after it: HOT updates, pruning, freezing, locks, TOAST, sequences, files
/// that are cut, removed and made.
pub(super) const AFTER: &str = "
UPDATE rows SET n = n + 1 WHERE id % 3 = 0;
UPDATE rows SET what = what || 'x' WHERE id % 5 = 0;
DELETE FROM rows WHERE id % 11 = 0;
BEGIN; SELECT count(*) FROM (SELECT 1 FROM rows WHERE id < 300 FOR SHARE) AS locked; ROLLBACK;
SELECT nextval('used') FROM generate_series(1, 40);
CHECKPOINT;
UPDATE rows SET n = n + 1 WHERE id % 4 = 0;
VACUUM rows;
INSERT INTO rows SELECT i, 0, repeat('y', i % 300) FROM generate_series(10001, 12000) AS i;
INSERT INTO rows VALUES (1, 1, 'again') ON CONFLICT (id) DO UPDATE SET n = 5;
UPDATE rows SET id = id + 100000 WHERE id % 17 = 0;
UPDATE long_values SET body = repeat(md5(id::text), 150) WHERE id % 2 = 0;
DELETE FROM long_values WHERE id % 9 = 0;
VACUUM long_values;
DELETE FROM shrinks WHERE i > 500;
VACUUM shrinks;
INSERT INTO shrinks SELECT i, 'new' FROM generate_series(1, 900) AS i;
UPDATE parted SET n = 1 - n WHERE id % 3 = 0;
CREATE TABLE made AS SELECT i, md5(i::text) AS what FROM generate_series(1, 1500) AS i;
CREATE TABLE gone AS SELECT i FROM generate_series(1, 500) AS i;
DROP TABLE gone;
VACUUM (FREEZE) made;
UPDATE made SET what = 'z' WHERE i % 10 = 0;
VACUUM FULL parted_0;
SELECT nextval('used');
ANALYZE";

pub(super) struct Ground {
    pub(super) installation: Installation,
    pub(super) pgdata: PathBuf,
    pub(super) backup: PathBuf,
    pub(super) scratch: Scratch,
}

/// A cluster with a backup from the middle of its life; its server still runs.
pub(super) fn begun(installation: Installation, checksums: Checksums) -> (Ground, Server) {
    let scratch = scratch();
    let pgdata = scratch.folder("data").expect("a directory");
    let options = InitOptions {
        checksums,
        wal_segsize_mb: Some(1),
        ..InitOptions::default()
    };
    initdb(&installation, &run_as(), &pgdata, &options).expect("a cluster");
    let backup = scratch.path().join("backup");
    let ground = Ground {
        installation,
        pgdata,
        backup,
        scratch,
    };
    let server = ground.start();
    run(&server, BEFORE);
    streamed_backup(&server, &ground.backup, None);
    lock_by_two(&server);
    run(&server, AFTER);
    (ground, server)
}

/// The same, stopped in good order.
pub(super) fn stopped(installation: Installation, checksums: Checksums) -> Ground {
    let (ground, mut server) = begun(installation, checksums);
    server.stop(StopMode::Fast).expect("a stop");
    ground
}

impl Ground {
    pub(super) fn start(&self) -> Server {
        start_on(self, &self.pgdata)
    }

    pub(super) fn source(&self) -> Arc<dyn Source> {
        Arc::new(DataDirectory::open(&self.pgdata).expect("a directory"))
    }

    pub(super) fn cluster(&self) -> Cluster {
        Cluster::open(self.source()).expect("a cluster")
    }

    pub(super) fn backup(&self) -> Cluster {
        opened(&self.backup)
    }

    /// Names of the segments in `pg_wal`, in order.
    pub(super) fn segments(&self) -> Vec<String> {
        segments(&self.pgdata.join("pg_wal"))
    }

    /// The cluster without these files of `pg_wal`.
    pub(super) fn without(&self, names: &[String]) -> Cluster {
        self.patched(names.iter().map(|name| OverlayPatch::Remove {
            path: format!("pg_wal/{name}"),
        }))
    }

    pub(super) fn patched(&self, patches: impl IntoIterator<Item = OverlayPatch>) -> Cluster {
        let patches = patches.into_iter().collect();
        let source = Overlay::new(self.source(), patches).expect("an overlay");
        Cluster::open(Arc::new(source)).expect("a cluster")
    }

    pub(super) fn segment(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.pgdata.join("pg_wal").join(name)).expect("a segment")
    }
}

/// A server on these files that keeps its WAL.
pub(super) fn start_on(ground: &Ground, pgdata: &Path) -> Server {
    start_with(ground, pgdata, as_primary())
}

pub(super) fn start_with(ground: &Ground, pgdata: &Path, options: StartOptions) -> Server {
    let options = options.with("wal_keep_size", "16GB");
    Server::start(&ground.installation, &run_as(), pgdata, &options).expect("a server")
}

/// The files as they are now, in another directory.
pub(super) fn copy_of_files(ground: &Ground) -> PathBuf {
    let into = ground.scratch.folder("copy").expect("a directory");
    copy_cluster(&ground.pgdata, &into).expect("a copy").pgdata
}

/// Two sessions lock the same rows: multixacts.
fn lock_by_two(server: &Server) {
    let mut sessions = [0, 1].map(|_| server.connect("postgres").expect("a session"));
    for session in &mut sessions {
        let lock =
            "BEGIN; SELECT count(*) FROM (SELECT 1 FROM rows WHERE id < 200 FOR KEY SHARE) AS l";
        session.execute(lock).expect("locks");
    }
    sessions[0]
        .execute("UPDATE rows SET n = -1 WHERE id < 50")
        .expect("an update");
    for session in &mut sessions {
        session.execute("COMMIT").expect("an end");
    }
}

pub(super) fn run(server: &Server, sql: &str) {
    let mut session = server.connect("postgres").expect("a session");
    for statement in sql.split(';') {
        session.execute(statement).expect(statement);
    }
}

pub(super) fn opened(pgdata: &Path) -> Cluster {
    let source = DataDirectory::open(pgdata).expect("a directory");
    Cluster::open(Arc::new(source)).expect("a cluster")
}

pub(super) fn segments(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let mut names: Vec<String> = names.map(|name| name.expect("UTF-8")).collect();
    names.retain(|name| name.len() == 24 && !name.contains('.'));
    names.sort();
    names
}

/// All blocks of main forks.
pub(super) fn all_blocks(cluster: &Cluster) -> Vec<BlockAddress> {
    let mut all = Vec::new();
    for home in &cluster.homes {
        for files in cluster.files(home).expect("a listing") {
            let blocks = files.blocks(cluster.build.block_size, cluster.build.segment_bytes);
            if files.fork == Fork::Main && files.temporary.is_none() {
                all.extend((0..blocks as u32).map(|block| BlockAddress {
                    file: files.number(),
                    fork: Fork::Main,
                    block,
                }));
            }
        }
    }
    all
}

pub(super) fn page_of(cluster: &Cluster, at: BlockAddress) -> Option<Vec<u8>> {
    let homes = cluster.homes.iter();
    let mut homes = homes
        .filter(|home| (home.tablespace, home.database) == (at.file.tablespace, at.file.database));
    let folder = &homes.next()?.folder;
    let path = format!("{folder}/{}", at.file.filenode);
    let mut page = vec![0; 8192];
    let read = cluster
        .source()
        .read_at(&path, u64::from(at.block) * 8192, &mut page);
    (read.ok()? == 8192).then_some(page)
}

/// What kind of page it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Sort {
    Heap,
    Sequence,
    Other,
}

pub(super) fn sort_of(page: &[u8]) -> Sort {
    let view = Page::parse(page).expect("a page");
    match magic(view) {
        Some(SEQUENCE_MAGIC) => Sort::Sequence,
        _ if view.is_new() || usize::from(view.pd_special()) == page.len() => Sort::Heap,
        _ => Sort::Other,
    }
}

pub(super) fn space() -> ReplaySpace<'static> {
    ReplaySpace {
        memory: pgclinic_spill::Budget::new(256 << 20),
        spill_folder: None,
    }
}

pub(super) fn recover(
    cluster: &Cluster,
    blocks: &[BlockAddress],
    evidence: &Evidence<'_>,
) -> RecoveredBlocks {
    recover_blocks(cluster, blocks, evidence, &space(), &Quiet)
}

pub(super) fn with_copy<'a>(name: &str, cluster: &'a Cluster) -> Evidence<'a> {
    Evidence {
        wal: Vec::new(),
        copies: vec![CopyOfCluster {
            name: name.into(),
            cluster,
        }],
    }
}

pub(super) fn archive(memory: Memory) -> WalDirectory {
    WalDirectory::archive("the archive", Arc::new(memory))
}

/// How many blocks were proven, and how many were not, by the kind of their true page.
#[derive(Default, Debug)]
pub(super) struct Tally {
    pub(super) exact: std::collections::BTreeMap<Sort, u64>,
    pub(super) not: std::collections::BTreeMap<Sort, u64>,
    /// Blocks of unlogged tables, which count nowhere else.
    pub(super) unlogged: u64,
}

impl Tally {
    pub(super) fn exact(&self, sort: Sort) -> u64 {
        self.exact.get(&sort).copied().unwrap_or(0)
    }

    pub(super) fn not(&self, sort: Sort) -> u64 {
        self.not.get(&sort).copied().unwrap_or(0)
    }
}

/// Every page that is called exact is the true one under the server's masks.
#[track_caller]
pub(super) fn compared(recovered: &RecoveredBlocks, truth: &Cluster) -> Tally {
    let mut tally = Tally::default();
    for block in &recovered.blocks {
        let page = page_of(truth, block.address).expect("a page");
        let sort = sort_of(&page);
        match &block.outcome {
            Ok(exact) => {
                let own = recovered.page(block).expect("memory").expect("a page");
                is_true(block, (&own, &page), sort, &exact.evidence());
                *tally.exact.entry(sort).or_default() += 1;
            }
            Err(NotProven::Unlogged) => tally.unlogged += 1,
            Err(_) => *tally.not.entry(sort).or_default() += 1,
        }
    }
    tally
}

#[track_caller]
fn is_true(block: &RecoveredBlock, (own, page): (&[u8], &[u8]), sort: Sort, evidence: &[String]) {
    let at = block.address;
    let method = (sort == Sort::Sequence).then_some(AccessMethod::Sequence);
    let same = are_alike((own, page), at.fork, method, at.block);
    let differing = own.iter().zip(page).zip(0..).filter(|((a, b), _)| a != b);
    let differing: Vec<String> = differing
        .map(|((a, b), at)| format!("{at}: {a:02x} {b:02x}"))
        .collect();
    assert!(same, "{at:?}: {evidence:?} {differing:?}");
    let (own, page) = (Page::parse(own), Page::parse(page));
    let (own, page) = (own.expect("a page"), page.expect("a page"));
    let is_visible = |page: Page<'_>| page.pd_flags() & PD_ALL_VISIBLE;
    if sort == Sort::Heap {
        assert_eq!(is_visible(own), is_visible(page), "{at:?}: {evidence:?}");
        assert_eq!(own.pd_lsn(), page.pd_lsn(), "{at:?}: {evidence:?}");
    }
    if sort == Sort::Sequence {
        assert!(last_value(own) >= last_value(page), "{at:?}: {evidence:?}");
    }
}

fn last_value(page: Page<'_>) -> i64 {
    let pointer = page.line_pointer(1).expect("a row");
    let row = page.item(pointer).expect("a row");
    let start = usize::from(row[22]);
    i64::from_le_bytes(*row[start..].first_chunk().expect("a value"))
}

#[track_caller]
pub(super) fn all_refused(recovered: &RecoveredBlocks, expected: impl Fn(&NotProven) -> bool) {
    for block in &recovered.blocks {
        let why = block.outcome.as_ref().expect_err("it is not proven");
        let is_never = matches!(why, NotProven::Unlogged | NotProven::Map);
        assert!(expected(why) || is_never, "{:?}: {why}", block.address);
    }
}
