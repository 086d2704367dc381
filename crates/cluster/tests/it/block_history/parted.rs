//! Archives of clones of one cluster, which parted: the same names and the same system identifier,
//! and other records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{Evidence, NotProven, WalDirectory, missing_segments};
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_source::{Memory, OverlayPatch};
use pgclinic_testkit::server;

use super::ground::{
    Ground, Sort, Tally, all_blocks, compared, copy_of_files, recover, run, start_on, stopped,
    with_copy,
};

/// A cluster and its clone, which went on by themselves.
struct Parted {
    ground: Ground,
    clone: PathBuf,
    /// The segment in which their records differ; both have others after it.
    name: String,
}

/// Each in its turn switches to a new segment, does what it is given, and switches again.
fn parted(own: &str, other: &str) -> Parted {
    ended(own, other, |server| {
        server.stop(StopMode::Fast).expect("a stop");
    })
}

fn ended(own: &str, other: &str, end: impl Fn(&mut Server)) -> Parted {
    let ground = stopped(server(15), Checksums::On);
    let clone = copy_of_files(&ground);
    let before = ground.segments();
    for (pgdata, sql) in [(&ground.pgdata, own), (&clone, other)] {
        let mut server = start_on(&ground, pgdata);
        run(&server, "SELECT pg_switch_wal()");
        run(&server, sql);
        run(
            &server,
            "SELECT pg_switch_wal(); UPDATE rows SET n = n + 1 WHERE id < 50",
        );
        end(&mut server);
    }
    let last = before.last().expect("a segment");
    let names = ground.segments();
    let mut later = names.into_iter().filter(|name| name > last);
    let name = later.next().expect("a segment after the switch");
    Parted {
        ground,
        clone,
        name,
    }
}

impl Parted {
    fn archive(&self, title: &str, pgdata: &Path) -> WalDirectory {
        let bytes = std::fs::read(pgdata.join("pg_wal").join(&self.name)).expect("a segment");
        let memory = Memory::new(title).with(self.name.as_str(), bytes);
        WalDirectory::archive(title, Arc::new(memory))
    }

    /// The archive of the clone first, and then the other way round.
    fn archives(&self) -> [Vec<WalDirectory>; 2] {
        let own = self.archive("own archive", &self.ground.pgdata);
        let other = self.archive("other archive", &self.clone);
        [vec![other.clone(), own.clone()], vec![own, other]]
    }

    /// What is proven of all blocks in either order; what is called exact is true.
    #[track_caller]
    fn tallies(&self, cluster: &Cluster) -> [(Tally, Vec<NotProven>); 2] {
        let (truth, backup) = (self.ground.cluster(), self.ground.backup());
        let blocks = all_blocks(&truth);
        self.archives().map(|wal| {
            let mut evidence = with_copy("the backup", &backup);
            evidence.wal = wal;
            let recovered = recover(cluster, &blocks, &evidence);
            let tally = compared(&recovered, &truth);
            let why = recovered.blocks.into_iter();
            (tally, why.filter_map(|block| block.outcome.err()).collect())
        })
    }

    fn without_segment(&self) -> Cluster {
        self.ground.without(std::slice::from_ref(&self.name))
    }

    #[track_caller]
    fn all_given_back(&self, cluster: &Cluster) {
        for (tally, why) in self.tallies(cluster) {
            assert_eq!(tally.not(Sort::Heap), 0, "{tally:?} {:?}", why.first());
        }
    }
}

fn names_both(why: &NotProven) -> bool {
    let words = why.to_string();
    let both = words.contains("in own archive") && words.contains("in other archive");
    matches!(why, NotProven::WalCopiesDiffer { .. }) && both
}

/// Their records are as long as each other and change the same blocks: no page and no later record
/// tells them apart.
#[test]
fn records_that_only_differ_in_what_they_say_prove_nothing() {
    let parted = parted(
        "UPDATE still SET what = 'this'",
        "UPDATE still SET what = 'that'",
    );
    for (tally, why) in parted.tallies(&parted.without_segment()) {
        assert!(tally.not(Sort::Heap) > 100, "{tally:?}");
        assert!(why.iter().any(names_both), "{:?}", why.first());
        // What has an image after it is proven all the same.
        assert!(tally.exact(Sort::Heap) > 0, "{tally:?}");
    }
    // The cluster's own segment decides, also where a part of it is damaged.
    parted.all_given_back(&parted.ground.cluster());
    let bytes = parted.ground.segment(&parted.name);
    let damage = OverlayPatch::Bytes {
        path: format!("pg_wal/{}", parted.name),
        offset: 40_000,
        bytes: vec![bytes[40_000] ^ 0x10],
    };
    parted.all_given_back(&parted.ground.patched([damage]));
}

#[test]
fn the_records_that_lead_into_the_clusters_own_segment_are_its_own() {
    let parted = parted(
        "UPDATE still SET what = 'this'",
        "UPDATE rows SET n = n + 7 WHERE id % 3 = 0",
    );
    parted.all_given_back(&parted.without_segment());
}

/// As many records of the same lengths, of other rows: pages carry the ends of those that are
/// their own.
#[test]
fn pages_of_the_cluster_tell_records_apart() {
    let parted = parted(
        "DELETE FROM still WHERE ctid < '(5,0)'",
        "DELETE FROM still WHERE ctid >= '(5,0)' AND ctid < '(10,0)'",
    );
    parted.all_given_back(&parted.without_segment());
    // Without the files of the tables nothing does.
    let blocks = all_blocks(&parted.ground.cluster()).into_iter();
    let of_users = blocks.filter(|block| block.file.filenode >= 16384);
    let paths: BTreeSet<String> = of_users
        .map(|block| format!("base/{}/{}", block.file.database, block.file.filenode))
        .collect();
    let segment = format!("pg_wal/{}", parted.name);
    let lost = paths.into_iter().chain([segment]);
    let cluster = parted
        .ground
        .patched(lost.map(|path| OverlayPatch::Remove { path }));
    for (_, why) in parted.tallies(&cluster) {
        assert!(why.iter().any(names_both), "{:?}", why.first());
    }
}

/// What the clone does in the segment that is looked for, and what becomes of it.
#[track_caller]
fn put_in_place(own: &str, other: &str) -> [Result<Vec<u8>, String>; 2] {
    let parted = ended(own, other, Server::kill);
    let without = parted.without_segment();
    assert!(without.needs_recovery());
    parted.archives().map(|wal| {
        let evidence = Evidence {
            wal,
            copies: Vec::new(),
        };
        let found = missing_segments(&without, &evidence)?;
        let found = found.expect("a segment is missing").segments;
        assert_eq!(found.len(), 1);
        let own = parted.ground.segment(&parted.name);
        assert!(found[0].bytes == own, "{}", found[0].found_in);
        Ok(own)
    })
}

#[test]
fn a_segment_comes_back_only_where_its_records_are_the_clusters_own() {
    let alike = put_in_place(
        "UPDATE still SET what = 'this'",
        "UPDATE still SET what = 'that'",
    );
    for found in alike {
        let why = found.expect_err("nothing tells them apart");
        assert!(why.contains("in own archive"), "{why}");
        assert!(why.contains("in other archive"), "{why}");
    }
    let unlike = put_in_place(
        "UPDATE still SET what = 'this'",
        "UPDATE rows SET n = n + 7 WHERE id % 3 = 0",
    );
    for found in unlike {
        found.expect("only one leads into the next segment");
    }
}
