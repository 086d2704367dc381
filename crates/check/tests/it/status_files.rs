//! Status files and small state files of real clusters: silent as servers leave them, found when
//! they are hurt.

use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_model::{Level, Severity};
use pgclinic_servers::{Checksums, Server, StopMode, fill};
use pgclinic_source::{Overlay, OverlayPatch, Source, read_all};
use pgclinic_testkit::{TempCopy, checked, copy_of, directory, seed, server};

const RULES: &[&str] = &[
    "slru-file-missing",
    "slru-file-truncated",
    "slru-file-zeroed",
    "multixact-offset-out-of-range",
    "multixact-member-out-of-range",
    "prepared-transaction-file",
    "replication-slot-file",
    "replication-origin-file",
    "control-file-inconsistent",
    "sequence-beyond-bounds",
    "init-fork-content",
    "empty-catalog",
];

/// What the rules of this file say, as `rule path`, without notes.
fn told(source: Arc<dyn Source>) -> Vec<String> {
    told_at(Level::Structure, source)
}

fn told_at(level: Level, source: Arc<dyn Source>) -> Vec<String> {
    let cluster = Cluster::open(source).expect("a cluster");
    let findings = checked(&cluster, level).findings.into_iter();
    let own = findings.filter(|finding| {
        finding.severity != Severity::Note && RULES.contains(&finding.rule.as_str())
    });
    own.map(|finding| format!("{} {}", finding.rule, finding.place.path))
        .collect()
}

fn hurt(pgdata: &Path, patch: OverlayPatch) -> Vec<String> {
    let overlay = Overlay::new(directory(pgdata), vec![patch]).expect("a patch");
    told(Arc::new(overlay))
}

fn inverted(pgdata: &Path, path: &str, at: usize) -> OverlayPatch {
    let bytes = read_all(directory(pgdata).as_ref(), path, 1 << 20).expect("a small file");
    OverlayPatch::Bytes {
        path: path.into(),
        offset: at as u64,
        bytes: vec![!bytes[at]],
    }
}

fn run(server: &Server, statements: &[&str]) {
    let mut session = server.connect("postgres").expect("a session");
    for statement in statements {
        session
            .execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// A cluster with a prepared transaction, a slot, some pages of `pg_xact` and hundreds of
/// multixacts.
fn busy(major: u16) -> TempCopy {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut server = copy.start().expect("a seed starts");
    fill::leave_unfinished(&server).expect("a prepared transaction");
    run(
        &server,
        &[
            "CREATE TABLE public.contended (id int PRIMARY KEY, n int)",
            "INSERT INTO public.contended VALUES (1, 0)",
            "BEGIN",
            "SELECT 1 FROM public.contended FOR KEY SHARE",
            "PREPARE TRANSACTION 'locker'",
            "SET synchronous_commit = off",
            "DO $$ BEGIN FOR i IN 1..300 LOOP UPDATE public.contended SET n = i; COMMIT; END LOOP; END $$",
            "DO $$ BEGIN FOR i IN 1..70000 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$",
        ],
    );
    server.stop(StopMode::Fast).expect("it stops");
    copy
}

#[test]
fn a_prepared_transaction_that_wal_alone_knows_is_missed() {
    for major in [15, 18] {
        let copy = copy_of(&seed(&server(major), Checksums::On));
        let mut server = copy.start().expect("a seed starts");
        fill::leave_unfinished(&server).expect("a prepared transaction");
        run(
            &server,
            &[
                "CREATE TABLE public.ended (id int)",
                "BEGIN",
                "INSERT INTO public.ended VALUES (1)",
                "PREPARE TRANSACTION 'ended'",
                "COMMIT PREPARED 'ended'",
            ],
        );
        server.stop(StopMode::Fast).expect("it stops");
        let folder = directory(&copy.pgdata);
        assert_eq!(told_at(Level::Full, Arc::clone(&folder)), [""; 0]);
        let entries = folder.list("pg_twophase").expect("a directory");
        let [own] = entries.as_slice() else {
            panic!("one waits: {entries:?}");
        };
        let path = format!("pg_twophase/{}", own.name);
        let patch = OverlayPatch::Remove { path: path.clone() };
        let overlay = Overlay::new(folder, vec![patch]).expect("a patch");
        let overlay: Arc<dyn Source> = Arc::new(overlay);
        for level in [Level::Structure, Level::Full] {
            let missed = told_at(level, Arc::clone(&overlay));
            assert_eq!(missed, [format!("prepared-transaction-file {path}")]);
        }
    }
}

#[test]
fn the_seeds_of_four_majors_are_silent() {
    for major in [13, 15, 16, 18] {
        let seeded = seed(&server(major), Checksums::On);
        assert_eq!(told(directory(&seeded.pgdata)), [""; 0], "{major}");
    }
}

#[test]
fn what_a_busy_server_leaves_is_right_and_each_loss_is_found() {
    let copy = busy(18);
    let pgdata = &copy.pgdata;
    assert_eq!(told(directory(pgdata)), [""; 0]);
    let cut = |path: &str, len| {
        let path = path.into();
        hurt(pgdata, OverlayPatch::Cut { path, len })
    };
    let zeroed = |path: &str, offset, len| {
        let bytes = vec![0; len];
        let path = path.into();
        hurt(
            pgdata,
            OverlayPatch::Bytes {
                path,
                offset,
                bytes,
            },
        )
    };
    let lost = |path: &str| hurt(pgdata, OverlayPatch::Remove { path: path.into() });
    assert_eq!(lost("pg_xact/0000"), ["slru-file-missing pg_xact/0000"]);
    assert_eq!(
        cut("pg_xact/0000", 8192),
        ["slru-file-truncated pg_xact/0000"]
    );
    assert_eq!(
        zeroed("pg_xact/0000", 1024, 512),
        ["slru-file-zeroed pg_xact/0000"]
    );
    let offsets = "pg_multixact/offsets/0000";
    assert_eq!(lost(offsets), [format!("slru-file-missing {offsets}")]);
    assert_eq!(
        hurt(pgdata, inverted(pgdata, offsets, 402)),
        [format!("multixact-offset-out-of-range {offsets}")]
    );
    let members = "pg_multixact/members/0000";
    assert_eq!(lost(members), [format!("slru-file-missing {members}")]);
    assert_eq!(
        hurt(pgdata, inverted(pgdata, members, 200)),
        [format!("multixact-member-out-of-range {members}")]
    );
    let folder = directory(pgdata);
    let prepared = folder.list("pg_twophase").expect("a directory");
    assert_eq!(prepared.len(), 2);
    for entry in prepared {
        let path = format!("pg_twophase/{}", entry.name);
        assert_eq!(
            hurt(pgdata, inverted(pgdata, &path, 30)),
            [format!("prepared-transaction-file {path}")]
        );
    }
    let slot = "pg_replslot/standby/state";
    assert_eq!(
        hurt(pgdata, inverted(pgdata, slot, 20)),
        [format!("replication-slot-file {slot}")]
    );
    let origins = "pg_logical/replorigin_checkpoint";
    assert_eq!(
        hurt(pgdata, inverted(pgdata, origins, 5)),
        [format!("replication-origin-file {origins}")]
    );
}

#[test]
fn freezing_everything_and_crashing_leave_nothing_to_tell() {
    let copy = busy(15);
    let mut server = copy.start().expect("it starts");
    run(
        &server,
        &[
            "COMMIT PREPARED 'locker'",
            "COMMIT PREPARED 'promised'",
            "UPDATE pg_database SET datallowconn = true",
            "VACUUM FREEZE",
            "CHECKPOINT",
        ],
    );
    let mut session = server.connect("postgres").expect("a session");
    let names = session
        .query("SELECT datname FROM pg_database")
        .expect("names");
    for name in names.into_iter().flatten().flatten() {
        let mut own = server.connect(&name).expect("a session");
        own.execute("VACUUM FREEZE").expect("it freezes");
    }
    drop(session);
    run(&server, &["CREATE TABLE public.after (id int)"]);
    server.stop(StopMode::Immediate).expect("it stops");
    assert_eq!(told(directory(&copy.pgdata)), [""; 0], "crashed");
    let mut server = copy.start().expect("it recovers");
    server.stop(StopMode::Fast).expect("it stops");
    assert_eq!(told(directory(&copy.pgdata)), [""; 0], "recovered");
}

#[test]
fn an_emptied_catalog_is_damage() {
    let seeded = seed(&server(15), Checksums::On);
    let cluster = Cluster::open(directory(&seeded.pgdata)).expect("a cluster");
    let clinic = cluster
        .homes
        .iter()
        .find(|home| home.database != 0 && home.tablespace == 1663)
        .expect("a database");
    let map = cluster.relation_map(clinic).expect("a map");
    let file = map.filenode(1259).expect("pg_class is mapped");
    let path = format!("{}/{file}", clinic.folder);
    let told = hurt(
        &seeded.pgdata,
        OverlayPatch::Cut {
            path: path.clone(),
            len: 0,
        },
    );
    assert_eq!(told, [format!("empty-catalog {path}")]);
}

/// By chance the last transactions before a crash begin where a sector of the disk does; more than
/// there can be sessions are lost.
#[test]
fn only_as_many_transactions_as_sessions_may_end_without_a_status() {
    const SECTOR: u64 = 2048;
    let copy = copy_of(&seed(&server(15), Checksums::On));
    for (used, is_loss) in [(4, false), (600, true)] {
        let mut running = copy.start().expect("a server");
        let burn = format!(
            "DO $$ BEGIN LOOP EXIT WHEN txid_current() % {SECTOR} = {used} - 1; COMMIT; END LOOP; END $$"
        );
        running
            .connect("clinic")
            .and_then(|mut session| session.execute(&burn))
            .expect("transactions");
        running.stop(StopMode::Fast).expect("stopped");
        let cluster = Cluster::open(directory(&copy.pgdata)).expect("a cluster");
        let control = cluster.control.trusted().expect("a control file");
        let next = control.checkpoint.next_full_xid;
        let begin = next / SECTOR * SECTOR;
        let bytes = vec![0; usize::try_from((next - begin).div_ceil(4)).expect("a sector")];
        let patch = OverlayPatch::Bytes {
            path: "pg_xact/0000".into(),
            offset: begin / 4,
            bytes,
        };
        let found = hurt(&copy.pgdata, patch);
        let is_found = found
            .iter()
            .any(|own| own == "slru-file-zeroed pg_xact/0000");
        assert_eq!(is_found, is_loss, "{used}: {found:?}");
    }
}
