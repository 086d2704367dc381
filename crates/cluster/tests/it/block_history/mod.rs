//! Blocks of real clusters, recovered from WAL, backups and other copies, beside the true ones.

mod ground;

use pgclinic_cluster::wal::{Evidence, NotProven, PageOrigin};
use pgclinic_servers::Checksums;
use pgclinic_source::{Memory, OverlayPatch};
use pgclinic_testkit::server;

use ground::{
    Ground, Sort, Tally, all_blocks, all_refused, archive, begun, compared, opened, recover, run, stopped,
    with_copy,
};

/// With a backup and all WAL since, every block of every table is given back.
#[track_caller]
fn whole_cluster(ground: &Ground) -> Tally {
    let (cluster, backup) = (ground.cluster(), ground.backup());
    let blocks = all_blocks(&cluster);
    let recovered = recover(&cluster, &blocks, &with_copy("the backup", &backup));
    assert_eq!(recovered.refused_copies, Vec::<String>::new());
    let tally = compared(&recovered, &cluster);
    let only_unlogged = |block: &&pgclinic_cluster::wal::RecoveredBlock| {
        !matches!(block.outcome, Ok(_) | Err(NotProven::Unlogged | NotProven::Sequence | NotProven::UnknownRecord { .. }))
    };
    let odd = recovered.blocks.iter().find(only_unlogged);
    assert_eq!(odd.map(|block| format!("{block:?}")), None, "{tally:?}");
    assert!(tally.exact(Sort::Heap) > 500, "{tally:?}");
    assert!(tally.exact(Sort::Sequence) >= 1, "{tally:?}");
    tally
}

#[test]
fn every_block_of_every_table_is_given_back_from_a_backup_and_wal() {
    let tally = whole_cluster(&stopped(server(15), Checksums::On));
    println!("{tally:?}");
}
