//! WAL of real clusters, read from their files.

use std::sync::Arc;

use pgclinic_cluster::wal::{CheckpointState, ReplaySpace, StartKind, Stop};
use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_format::wal::{Compression, WalReader};
use pgclinic_servers::{Checksums, InitOptions, Server, Session, StartOptions, StopMode, initdb};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{all_majors, copy_of, run_as, scratch, seed, server};

fn open(pgdata: &std::path::Path) -> Cluster {
    let source = DataDirectory::open(pgdata).expect("a directory");
    Cluster::open(Arc::new(source)).expect("a cluster")
}

/// The checkpoint is found, segments begin as they must, and every older record is right.
#[track_caller]
fn all_is_right(cluster: &Cluster) -> u64 {
    let recovery = cluster.recovery().expect("a control file");
    let survey = cluster.wal_survey().expect("a control file");
    let control = cluster.control.trusted().expect("a control file");
    assert!(
        matches!(survey.checkpoint, CheckpointState::Found { .. }),
        "{survey:?}"
    );
    assert_eq!(survey.checkpoint.difference(control), None);
    assert_eq!(
        (survey.heads.len(), survey.missing.len()),
        (0, 0),
        "{survey:?}"
    );
    let older = survey.older(cluster.source().as_ref(), recovery);
    assert_eq!(older.breaks, [], "{older:?}");
    older.records
}

#[test]
fn the_wal_of_a_stopped_cluster_is_whole() {
    for installation in all_majors() {
        let cluster = open(&seed(&installation, Checksums::On).pgdata);
        assert_eq!(
            cluster.recovery().expect("a plan").start.kind,
            StartKind::Settled
        );
        assert!(cluster.replay().is_none());
        all_is_right(&cluster);
    }
}

#[test]
fn after_a_crash_the_wal_raises_the_limits() {
    for installation in all_majors() {
        if ![13, 15, 18].contains(&installation.major) {
            continue;
        }
        let copy = copy_of(&seed(&installation, Checksums::On));
        let mut server = copy.start().expect("a server");
        let mut session = server.connect("clinic").expect("a session");
        session
            .execute("CREATE TABLE public.load (id int PRIMARY KEY, what text); CHECKPOINT")
            .expect("a table");
        leave_an_invalid_index(&mut session);
        let load = "DO $$BEGIN FOR i IN 1..3000 LOOP
            INSERT INTO public.load VALUES (i, repeat(md5(i::text), 30));
            PERFORM 1 FROM public.load WHERE id = i / 2 FOR KEY SHARE;
            BEGIN
              UPDATE public.load SET what = what || 'x' WHERE id = i / 2;
            EXCEPTION WHEN division_by_zero THEN NULL;
            END;
            COMMIT;
          END LOOP; END$$";
        session.execute(load).expect("load");
        let mut number = |sql: &str| -> u64 {
            let value = session.query_value(sql).expect(sql).expect("a value");
            value.parse().expect("a number")
        };
        let next = number("SELECT pg_snapshot_xmax(pg_current_snapshot())");
        let multi = number("SELECT next_multixact_id::text::bigint FROM pg_control_checkpoint()");
        server.kill();
        let cluster = open(&copy.pgdata);
        let replay = cluster.replay().expect("it needs recovery");
        assert_eq!(replay.stop, Stop::End, "{}", replay.end);
        assert_eq!(u64::from(replay.next_xid.0), next, "{}", replay.end);
        assert!(u64::from(replay.next_multi.0) > multi + 1000);
        assert!(replay.records > 6000 && !cluster.wal_has_grown());
        all_is_right(&cluster);
        assert_eq!(indexes_being_built(&cluster), ["doubled_id"]);
    }
}

/// Its row of `pg_index` stands only in the WAL.
fn leave_an_invalid_index(session: &mut Session) {
    let table = "CREATE TABLE public.doubled AS SELECT 1 AS id FROM generate_series(1, 2)";
    session.execute(table).expect("a table");
    let build = "CREATE UNIQUE INDEX CONCURRENTLY doubled_id ON public.doubled (id)";
    session.execute(build).expect_err("not unique");
}

/// By name, from the first columns of `pg_index` and from all of them: the same.
fn indexes_being_built(cluster: &Cluster) -> Vec<String> {
    let space = ReplaySpace {
        memory: pgclinic_spill::Budget::new(256 << 20),
        spill_folder: None,
    };
    let (after, _) = cluster.replayed_catalogs(&space).expect("a recovery");
    let mut databases = after.databases.iter();
    let clinic = databases.find(|(_, own)| own.name.as_deref() == Some("clinic"));
    let clinic = *clinic.expect("a database").0;
    let read = |catalog: Catalog| -> Vec<String> {
        let relations = catalog.relations.into_values();
        let unfinished = relations.filter(|relation| relation.being_built);
        unfinished.map(|relation| relation.name).collect()
    };
    let names = read(after.catalog_names(clinic));
    assert_eq!(names, read(after.catalog(clinic)));
    names
}

#[test]
fn small_and_large_segments() {
    let installation = all_majors().pop().expect("the newest");
    for megabytes in [1, 64] {
        let scratch = scratch();
        let pgdata = scratch.folder("data").expect("a directory");
        let options = InitOptions {
            wal_segsize_mb: Some(megabytes),
            ..InitOptions::default()
        };
        initdb(&installation, &run_as(), &pgdata, &options).expect("a cluster");
        let keep = StartOptions::default().with("wal_keep_size", "1GB");
        let mut server = Server::start(&installation, &run_as(), &pgdata, &keep).expect("a server");
        let mut session = server.connect("postgres").expect("a session");
        let sql =
            "CREATE TABLE t AS SELECT i, repeat('x', 200) FROM generate_series(1, 40000) AS i;
            SELECT pg_switch_wal(); CHECKPOINT; UPDATE t SET i = i + 1; SELECT pg_switch_wal();
            SELECT pg_logical_emit_message(true, 'long', repeat('y', 3000000))";
        session.execute(sql).expect("WAL");
        drop(session);
        server.stop(StopMode::Fast).expect("a stop");
        let records = all_is_right(&open(&pgdata));
        assert!(records > 40_000, "{records} records");
    }
}

/// The images of a table's pages are written in each packing that this server knows, and all are
/// unpacked.
#[test]
fn images_of_every_packing_are_unpacked() {
    let installation = server(15);
    let packings = [
        ("pglz", Compression::Pglz),
        ("lz4", Compression::Lz4),
        ("zstd", Compression::Zstd),
    ];
    let known = |(name, _): &(&str, Compression)| installation.accepts("wal_compression", name);
    let packings: Vec<_> = packings.into_iter().filter(known).collect();
    let copy = copy_of(&seed(&installation, Checksums::On));
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let make = |name| {
        format!(
            "CREATE TABLE public.{name} AS SELECT i, repeat(md5(i::text), 9) AS t FROM generate_series(1, 500) AS i"
        )
    };
    for (name, _) in &packings {
        session.execute(&make(name)).expect("a table");
    }
    session.execute("CHECKPOINT").expect("a checkpoint");
    for (name, _) in &packings {
        let update = format!("SET wal_compression = {name}; UPDATE public.{name} SET i = i + 1");
        session.execute(&update).expect("images");
    }
    server.kill();
    let cluster = open(&copy.pgdata);
    let recovery = cluster.recovery().expect("a plan");
    let pages = recovery.pages(cluster.source().as_ref());
    let mut reader = WalReader::new(pages, recovery.shape, recovery.start.redo);
    let mut seen = vec![0; packings.len()];
    while let Ok(record) = reader.read() {
        for image in record.blocks.iter().filter_map(|block| block.image) {
            let packing = packings
                .iter()
                .position(|(_, packing)| *packing == image.compression);
            if let Some(count) = packing.and_then(|at| seen.get_mut(at)) {
                *count += 1;
            }
            assert_eq!(image.page(8192).map(|page| page.len()), Ok(8192));
        }
    }
    assert!(seen.iter().all(|count| *count > 5), "{packings:?} {seen:?}");
    let space = ReplaySpace {
        memory: pgclinic_spill::Budget::new(256 << 20),
        spill_folder: None,
    };
    let (_, replayed) = cluster.replayed(&space).expect("a recovery in memory");
    assert!(replayed.not_applied.is_empty(), "{:?}", replayed.faults);
}
