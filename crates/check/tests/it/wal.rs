//! Checks of the WAL on real clusters, hurt in memory.

use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{ReplayEffect, Stop};
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{Fork, Lsn};
use pgclinic_model::{Finding, Level, Severity};
use pgclinic_servers::{Checksums, StartOptions, StopMode};
use pgclinic_source::{Overlay, OverlayPatch, read_all};
use pgclinic_testkit::{
    TempCopy, all_majors, as_primary, catch_up, checked, copy_of, directory, seed, server, standby,
};

fn hurt(pgdata: &Path, patches: Vec<OverlayPatch>) -> Cluster {
    let overlay = Overlay::new(directory(pgdata), patches).expect("plain paths");
    Cluster::open(Arc::new(overlay)).expect("a cluster")
}

fn found(cluster: &Cluster, level: Level) -> Vec<Finding> {
    checked(cluster, level).findings
}

/// Severity, rule and message of findings about WAL and the like, in lines.
fn told(cluster: &Cluster, level: Level) -> Vec<String> {
    const RULES: [&str; 7] = [
        "wal-segment-missing",
        "wal-page-header",
        "wal-record-checksum",
        "wal-record-broken",
        "checkpoint-record-missing",
        "timeline-history",
        "backup-label",
    ];
    let mut found = found(cluster, level);
    found.retain(|finding| RULES.contains(&finding.rule.as_str()));
    found
        .iter()
        .map(|finding| format!("{} {}", finding.severity.name(), finding.rule))
        .collect()
}

fn bytes(path: &str, offset: u64, bytes: &[u8]) -> OverlayPatch {
    OverlayPatch::Bytes {
        path: path.into(),
        offset,
        bytes: bytes.to_vec(),
    }
}

/// The file of the segment that holds `at`, and the offset of `at` in it.
fn place(cluster: &Cluster, at: Lsn) -> (String, u64) {
    let recovery = cluster.recovery().expect("a plan");
    let path = recovery.pages(cluster.source().as_ref()).path_of(at);
    (
        path.expect("a segment"),
        at.0 - recovery.shape.segment_of(at).0,
    )
}

#[test]
fn what_a_stopped_cluster_needs_of_its_wal() {
    for major in [13, 15, 18] {
        let pgdata = seed(&server(major), Checksums::On).pgdata;
        let whole = hurt(&pgdata, Vec::new());
        assert_eq!(told(&whole, Level::Full), [""; 0]);
        let start = whole.recovery().expect("a plan").start;
        let (path, at) = place(&whole, start.checkpoint);
        let told = |patch| told(&hurt(&pgdata, vec![patch]), Level::Structure);
        let missing = ["damage checkpoint-record-missing"];
        assert_eq!(told(bytes(&path, at, &[0; 24])), missing);
        assert_eq!(told(bytes(&path, at + 60, &[0xEE; 2])), missing);
        let head = ["damage checkpoint-record-missing", "damage wal-page-header"];
        assert_eq!(told(bytes(&path, 24, &[1; 8])), head);
        let gone = told(OverlayPatch::Remove { path });
        assert_eq!(gone, ["damage wal-segment-missing"]);
    }
}

#[test]
fn segments_behind_the_end_mean_nothing() {
    let pgdata = seed(&server(18), Checksums::On).pgdata;
    let whole = hurt(&pgdata, Vec::new());
    let recovery = whole.recovery().expect("a plan");
    let (shape, start) = (recovery.shape, recovery.start);
    let (path, _) = place(&whole, start.checkpoint);
    let old = read_all(whole.source().as_ref(), &path, 64 << 20).expect("a segment");
    let number = shape.segment_number(start.checkpoint);
    let later = |by| format!("pg_wal/{}", shape.segment_name(start.timeline, number + by));
    let odd = vec![
        bytes(&later(1), 0, &old),
        bytes(&later(2), 0, &vec![0; old.len()]),
        bytes(&later(3), 0, b"half"),
        bytes(&format!("{path}.partial"), 0, &[7; 100]),
        bytes("pg_wal/00000001000000000000000Z", 0, &[7; 100]),
    ];
    assert_eq!(told(&hurt(&pgdata, odd), Level::Full), [""; 0]);
}

#[test]
fn histories_and_labels() {
    let pgdata = seed(&server(18), Checksums::On).pgdata;
    let told = |path: &str, text: &str| {
        told(
            &hurt(&pgdata, vec![bytes(path, 0, text.as_bytes())]),
            Level::Structure,
        )
    };
    assert_eq!(
        told("pg_wal/00000002.history", "nonsense"),
        ["warning timeline-history"]
    );
    assert_eq!(
        told("pg_wal/00000002.history", "1\t0/28\tno reason\n"),
        [""; 0]
    );
    // The first timeline has none, and no server reads it.
    let own = told("pg_wal/00000001.history", "1\t0/28\tno reason\n");
    assert_eq!(own, ["warning timeline-history"]);
    assert_eq!(told("backup_label", "START WAL\n"), ["damage backup-label"]);
    let label = |segment: &str| {
        format!(
            "START WAL LOCATION: 0/100028 (file {segment})\nCHECKPOINT LOCATION: 0/100060\nSTART TIMELINE: 1\n"
        )
    };
    // WAL from the start of the backup is expected from an archive.
    let far = told("backup_label", &label("000000010000000000000001"));
    assert_eq!(far, ["note wal-segment-missing"]);
    let wrong = told("backup_label", &label("000000010000000000000009"));
    assert!(
        wrong.contains(&"damage backup-label".to_owned()),
        "{wrong:?}"
    );
}

/// A standby that was promoted and crashed before its first checkpoint begins its recovery on the
/// timeline that it left; one that was shut down since only needs a file that makes sense.
#[test]
fn the_history_of_a_promoted_cluster() {
    let seeded = seed(&server(15), Checksums::On);
    let (first, second) = (copy_of(&seeded), copy_of(&seeded));
    let primary = first.start_with(&as_primary()).expect("a primary");
    // The checkpoint that follows a promotion takes its time.
    let slow = StartOptions::default().with("checkpoint_timeout", "1h");
    let mut follower = standby(&second, &primary, slow);
    let mut session = primary.connect("clinic").expect("a session");
    session
        .execute("CREATE TABLE public.load AS SELECT i AS id, repeat('x', 500) AS what FROM generate_series(1, 20000) AS i")
        .expect("a table");
    catch_up(&mut session, &follower);
    let mut session = follower.connect("clinic").expect("a session");
    for sql in ["SELECT pg_promote()", "DELETE FROM public.load"] {
        session.execute(sql).expect(sql);
    }
    drop(session);
    follower.kill();

    const HISTORY: &str = "pg_wal/00000002.history";
    let path = HISTORY.to_owned();
    let missing = || {
        hurt(
            &second.pgdata,
            vec![OverlayPatch::Remove { path: path.clone() }],
        )
    };
    let garbage = || hurt(&second.pgdata, vec![bytes(HISTORY, 0, b"nonsense")]);
    assert_eq!(
        told(&hurt(&second.pgdata, Vec::new()), Level::Structure),
        [""; 0]
    );
    let needed = ["damage timeline-history"];
    assert_eq!(told(&garbage(), Level::Structure), needed);
    let cluster = missing();
    assert_eq!(told(&cluster, Level::Structure), needed);
    assert_eq!(cluster.replay().expect("a recovery").stop, Stop::End);
    let text = std::fs::read_to_string(second.pgdata.join(HISTORY)).expect("a history");
    let left = text.split('\t').nth(1).expect("where it was left");
    let mut found = found(&cluster, Level::Structure);
    found.retain(|finding| finding.rule == "timeline-history");
    let shown = format!("records of pg_wal show that it was left at {left}");
    assert!(found[0].message.contains(&shown), "{found:?}");

    let mut again = second.start().expect("a recovery");
    again.stop(StopMode::Fast).expect("a stop");
    assert_eq!(
        told(&hurt(&second.pgdata, Vec::new()), Level::Structure),
        [""; 0]
    );
    assert_eq!(told(&garbage(), Level::Structure), needed);
    assert_eq!(
        told(&missing(), Level::Structure),
        ["note timeline-history"]
    );
}

/// A row lock and an update of a subtransaction make a multixact each.
const MULTIXACTS: &str = "DO $$BEGIN FOR i IN 1..300 LOOP
    PERFORM 1 FROM public.load WHERE id = i FOR KEY SHARE;
    BEGIN
      UPDATE public.load SET what = 'y' WHERE id = i;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    COMMIT;
  END LOOP; END$$";

/// Killed behind a checkpoint, with a table that was changed since and others that were not.
fn crashed(major: u16) -> TempCopy {
    let mut majors = all_majors().into_iter();
    let installation = majors.find(|one| one.major == major).expect("a major");
    let copy = copy_of(&seed(&installation, Checksums::On));
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let sql = "CREATE TABLE public.load AS SELECT i AS id, repeat('x', 500) AS what FROM generate_series(1, 2000) AS i;
        CREATE TABLE public.still AS SELECT * FROM public.load";
    for statement in sql.split(';') {
        session.execute(statement).expect("a table");
    }
    session.execute(MULTIXACTS).expect("multixacts");
    session.execute("CHECKPOINT").expect("a checkpoint");
    session.execute(MULTIXACTS).expect("multixacts");
    session
        .execute("UPDATE public.load SET id = id + 1")
        .expect("load");
    server.kill();
    copy
}

/// A page of a user's table with this fate, as path and offset.
fn page_of_fate(cluster: &Cluster, wanted: ReplayEffect) -> (String, u64) {
    let replay = cluster.replay().expect("it needs recovery");
    for home in &cluster.homes {
        for files in cluster.files(home).expect("a directory") {
            let file = FileNumber {
                tablespace: home.tablespace,
                database: home.database,
                filenode: files.filenode,
            };
            let blocks = files.blocks(8192, cluster.build.segment_bytes);
            let large = files.fork == Fork::Main && files.filenode >= 16384 && blocks > 100;
            let mut blocks = (0..u32::try_from(blocks).expect("a small table")).rev();
            let block = blocks.find(|block| replay.fate(file, files.fork, *block) == wanted);
            if let Some(block) = block.filter(|_| large && !replay.creates(file)) {
                return (files.path(0), u64::from(block) * 8192);
            }
        }
    }
    panic!("no page is {wanted:?}");
}

#[test]
fn a_bad_page_is_a_note_if_its_image_follows_and_damage_if_not() {
    for major in [13, 18] {
        let copy = crashed(major);
        let whole = hurt(&copy.pgdata, Vec::new());
        let replay = whole.replay().expect("it needs recovery");
        assert_eq!(replay.stop, Stop::End, "{}", replay.end);
        let severities = |wanted| {
            let (path, offset) = page_of_fate(&whole, wanted);
            let cluster = hurt(&copy.pgdata, vec![bytes(&path, offset, &[0xA5; 8192])]);
            let mut found = found(&cluster, Level::Structure);
            found.retain(|finding| finding.place.path == path);
            assert!(!found.is_empty());
            let mut severities: Vec<_> = found.iter().map(|one| one.severity.name()).collect();
            severities.dedup();
            severities
        };
        assert_eq!(severities(ReplayEffect::Rewritten), ["note"]);
        assert_eq!(severities(ReplayEffect::Kept).first(), Some(&"damage"));
    }
}

#[test]
fn behind_the_last_record_of_a_crash_anything_goes() {
    let copy = crashed(18);
    let whole = hurt(&copy.pgdata, Vec::new());
    assert_eq!(told(&whole, Level::Full), [""; 0]);
    let end = whole.replay().expect("it needs recovery").end.record;
    let (path, at) = place(&whole, end);
    for garbage in [&[0xFF; 40][..], &[24, 0, 0, 0, 9][..], &[200, 0, 0, 0][..]] {
        let cluster = hurt(&copy.pgdata, vec![bytes(&path, at, garbage)]);
        assert_eq!(told(&cluster, Level::Full), [""; 0]);
        assert_eq!(cluster.replay().expect("it needs recovery").end.record, end);
    }
}

#[test]
fn wal_that_breaks_between_redo_and_checkpoint_and_wal_that_goes_on_behind_a_break() {
    let copy = crashed(18);
    let whole = hurt(&copy.pgdata, Vec::new());
    let start = whole.recovery().expect("a plan").start;
    assert!(start.redo < start.checkpoint, "{start:?}");
    let (path, at) = place(&whole, start.redo);
    let told = |patch| told(&hurt(&copy.pgdata, vec![patch]), Level::Structure);
    assert_eq!(
        told(bytes(&path, at + 20, &[0x11; 4])),
        ["damage wal-record-checksum"]
    );
    assert_eq!(
        told(bytes(&path, at, &[0; 8])),
        ["damage wal-record-broken"]
    );
    let end = whole.replay().expect("it needs recovery").end.record;
    let middle = Lsn((start.checkpoint.0 + end.0) / 2);
    let (path, at) = place(&whole, middle);
    let goes_on = told(bytes(&path, at, &[0xEE; 64]));
    assert_eq!(goes_on.len(), 1, "{goes_on:?}");
    assert!(
        goes_on.iter().all(|line| line.starts_with("warning wal-")),
        "{goes_on:?}"
    );
}

/// Half of the numbers were given out behind the checkpoint: what status files and folders hold is
/// held against the end of the WAL.
#[test]
fn a_crashed_cluster_is_held_against_what_recovery_leaves() {
    for major in [13, 18] {
        let copy = crashed(major);
        let damage = |patches| {
            let mut found = found(&hurt(&copy.pgdata, patches), Level::Structure);
            found.retain(|finding| finding.severity == Severity::Damage);
            let told = found.into_iter().map(|one| (one.rule, one.place.path));
            told.collect::<Vec<_>>()
        };
        assert_eq!(damage(Vec::new()), []);
        let whole = hurt(&copy.pgdata, Vec::new());
        let (path, _) = page_of_fate(&whole, ReplayEffect::Kept);
        let gone = damage(vec![OverlayPatch::Remove { path: path.clone() }]);
        assert_eq!(gone, [("missing-file".to_owned(), path)]);
        let offsets = "pg_multixact/offsets/0000";
        let told = damage(vec![bytes(offsets, 512, &[0; 512])]);
        let wanted = (
            "multixact-offset-out-of-range".to_owned(),
            offsets.to_owned(),
        );
        assert_eq!(told.first(), Some(&wanted), "{told:?}");
    }
}

/// The head of a record of 2 GiB that follows the last one.
fn head_of_a_long_record(previous: Lsn) -> Vec<u8> {
    let mut head = (2_u32 << 30).to_le_bytes().to_vec();
    head.extend(0_u32.to_le_bytes());
    head.extend(previous.0.to_le_bytes());
    head.extend([0; 8]);
    head
}

fn page_head(magic: u16, info: u16, address: u64, remaining: u32) -> Vec<u8> {
    let mut head = magic.to_le_bytes().to_vec();
    head.extend(info.to_le_bytes());
    head.extend(1_u32.to_le_bytes());
    head.extend(address.to_le_bytes());
    head.extend(u64::from(remaining).to_le_bytes());
    head
}

/// The ends of WAL that PostgreSQL's own test of recovery makes: a record that goes on over pages
/// that are none, that are old ones, or that continue nothing. The server stops there and is
/// content.
#[test]
fn a_last_record_that_ends_in_nothing() {
    let copy = crashed(18);
    let whole = hurt(&copy.pgdata, Vec::new());
    let replay = whole.replay().expect("it needs recovery");
    let (end, shape) = (replay.end.record, whole.recovery().expect("a plan").shape);
    let next = shape.page_of(end).0 + u64::from(shape.page_bytes);
    let (path, at) = place(&whole, end);
    let (next_path, next_at) = place(&whole, Lsn(next));
    let pages = [
        vec![0; 24],
        page_head(0xCAFE, 0, 0, 0),
        page_head(shape.magic, 0, 0xBAAA_AAAD, 0),
        page_head(shape.magic, 0x1234, next, 0),
        page_head(shape.magic, 0, next, 0),
        page_head(shape.magic, 1, next, 123_456),
    ];
    for (page, previous) in pages
        .iter()
        .flat_map(|page| [(page, end), (page, Lsn(0xDEAD_BEEF))])
    {
        let head = head_of_a_long_record(previous);
        let patches = vec![bytes(&path, at, &head), bytes(&next_path, next_at, page)];
        let cluster = hurt(&copy.pgdata, patches);
        let mut damage = found(&cluster, Level::Full);
        damage.retain(|finding| finding.severity == Severity::Damage);
        assert!(damage.is_empty(), "{page:02x?} {damage:?}");
        assert_eq!(cluster.replay().expect("it needs recovery").end.record, end);
    }
}

/// A crash in the middle of building an index leaves a file whose pages are ahead of the WAL that
/// was written.
#[test]
fn a_file_without_a_name_may_be_ahead_of_the_wal() {
    let pgdata = seed(&server(18), Checksums::Off).pgdata;
    let lsn_beyond_wal = |path: &str, page: &[u8]| {
        let cluster = hurt(&pgdata, vec![bytes(path, 0, page)]);
        let mut found = found(&cluster, Level::Structure);
        found.retain(|finding| finding.rule == "lsn-beyond-wal");
        found.len()
    };
    let catalog = "base/1/2610";
    let whole = hurt(&pgdata, Vec::new());
    let mut page = read_all(whole.source().as_ref(), catalog, 1 << 20).expect("pg_index");
    page.truncate(8192);
    page[..4].copy_from_slice(&[0x7F, 0, 0, 0]);
    assert_eq!(lsn_beyond_wal(catalog, &page), 1);
    assert_eq!(lsn_beyond_wal("base/1/99999", &page), 0);
}
