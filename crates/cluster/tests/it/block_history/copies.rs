//! Other copies than backups: a cold one, and a standby.

use pgclinic_cluster::wal::{Evidence, PageOrigin};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{as_primary, catch_up, copy_of, execute, seed, server, standby};

use super::ground::{
    Sort, all_blocks, compared, copy_of_files, opened, recover, run, stopped, with_copy,
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
        let recovered = recover(&cluster, &all_blocks(&cluster), &with_copy("the copy", &cold));
        let tally = compared(&recovered, &cluster);
        assert_eq!(tally.not(Sort::Heap), 0, "{tally:?}");
        // From the copy's checkpoint on there is little WAL.
        let blocks = all_blocks(&cold);
        let recovered = recover(&cluster, &blocks, &with_copy("the copy", &cold));
        let origins = recovered.blocks.iter().filter_map(|block| block.outcome.as_ref().ok());
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
    let same = recovered.blocks.iter().filter_map(|block| block.outcome.as_ref().ok());
    let same = same.filter(|exact| matches!(exact.origin, PageOrigin::SameState { .. })).count();
    assert!(same > 10, "{same}: {tally:?}");
    assert!(tally.exact(Sort::Other) > alone.exact(Sort::Other), "{tally:?} {alone:?}");
}
