//! Crashed clusters that lack WAL which their pages have seen: the WAL is the root, and no page.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use crate::roots;
use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::Stop;
use pgclinic_model::document::CheckDocument;
use pgclinic_model::{Level, Severity};
use pgclinic_servers::Checksums;
use pgclinic_source::{Overlay, OverlayPatch};
use pgclinic_testkit::{TempCopy, all_majors, as_primary, checked, copy_of, directory, seed};

/// Bytes of a segment of a seed's WAL.
const SEGMENT: usize = 1 << 20;

/// Killed with some segments of WAL since the checkpoint, and so few buffers that most pages they
/// changed are in the files.
fn crashed(major: u16) -> TempCopy {
    let mut majors = all_majors().into_iter();
    let installation = majors.find(|one| one.major == major).expect("a major");
    let copy = copy_of(&seed(&installation, Checksums::On));
    let options = as_primary().with("autovacuum", "off");
    let options = options.with("shared_buffers", "800kB");
    let options = options.with("max_wal_size", "1GB");
    let mut server = copy.start_with(&options).expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let statements = [
        "CREATE TABLE public.load AS SELECT i AS id, repeat('x', 200) AS what FROM generate_series(1, 8000) AS i",
        "CHECKPOINT",
        "INSERT INTO public.load SELECT i, repeat('y', 200) FROM generate_series(8001, 20000) AS i",
        "UPDATE public.load SET what = 'z' WHERE id % 4 = 0",
        "INSERT INTO public.load SELECT i, repeat('w', 200) FROM generate_series(20001, 30000) AS i",
    ];
    for statement in statements {
        session.execute(statement).expect(statement);
    }
    server.kill();
    copy
}

static CRASHED: LazyLock<TempCopy> = LazyLock::new(|| crashed(15));

/// The segments since the redo point that hold records, in order.
fn segments(pgdata: &Path) -> Vec<String> {
    let cluster = pgclinic_testkit::open(pgdata);
    let (recovery, replay) = (
        cluster.recovery().expect("a plan"),
        cluster.replay().expect("it needs recovery"),
    );
    let shape = &recovery.shape;
    let numbers = shape.segment_number(replay.start)..=shape.segment_number(replay.end.record);
    numbers
        .map(|number| {
            format!(
                "pg_wal/{}",
                shape.segment_name(recovery.start.timeline, number)
            )
        })
        .collect()
}

fn found(patches: Vec<OverlayPatch>) -> CheckDocument {
    let overlay = Overlay::new(directory(&CRASHED.pgdata), patches).expect("plain paths");
    let cluster = Cluster::open(Arc::new(overlay)).expect("a cluster");
    checked(&cluster, Level::Structure)
}

#[track_caller]
fn asks_for_wal_first(document: &CheckDocument, first: &str, last: &str) {
    let step = document.plan.first().expect("a plan");
    assert_eq!(step.name, "fetch-wal");
    let command = step.commands.first().expect("what to fetch");
    for path in [first, last] {
        let name = path.trim_start_matches("pg_wal/");
        assert!(command.contains(name), "{name}: {command}");
    }
    assert!(document.relations.is_empty(), "{:?}", document.relations);
    let mut told = document.coverage.not_checked.iter();
    assert!(told.any(|own| own.what == "changes since the last checkpoint"));
}

fn zeroed(path: &str, offset: usize, len: usize) -> OverlayPatch {
    OverlayPatch::Bytes {
        path: path.into(),
        offset: offset as u64,
        bytes: vec![0; len],
    }
}

#[test]
fn a_crash_with_all_its_wal_is_silent() {
    let document = found(Vec::new());
    assert!(roots(&document).is_empty(), "{:?}", roots(&document));
    assert!(document.needs_recovery && document.plan.is_empty());
    let told = &document.coverage.not_checked;
    assert!(
        !told
            .iter()
            .any(|own| own.why.contains("write-ahead log ends"))
    );
}

#[test]
fn a_segment_from_the_middle_is_the_root_of_what_pages_are_accused_of() {
    let segments = segments(&CRASHED.pgdata);
    assert!(segments.len() > 4, "{segments:?}");
    let gone = &segments[2];
    let document = found(vec![OverlayPatch::Remove { path: gone.clone() }]);
    assert_eq!(roots(&document), [("wal-segment-missing", gone.as_str())]);
    asks_for_wal_first(&document, &segments[1], gone);
}

#[test]
fn a_zeroed_page_of_wal_is_the_root() {
    let segments = segments(&CRASHED.pgdata);
    let hurt = &segments[2];
    let document = found(vec![zeroed(hurt, 3 * 8192, 8192)]);
    assert_eq!(roots(&document), [("wal-page-header", hurt.as_str())]);
    asks_for_wal_first(&document, hurt, hurt);
}

#[test]
fn zeros_from_a_segment_on_are_no_end_of_wal() {
    let segments = segments(&CRASHED.pgdata);
    let patches = segments[2..].iter().map(|path| zeroed(path, 0, SEGMENT));
    let document = found(patches.collect());
    assert_eq!(
        roots(&document),
        [("wal-page-header", segments[2].as_str())]
    );
    let last = segments.last().expect("a segment");
    let before_last = &segments[segments.len() - 2];
    let fetched = document.plan[0].commands[0].contains(last.trim_start_matches("pg_wal/"));
    asks_for_wal_first(
        &document,
        &segments[1],
        if fetched { last } else { before_last },
    );
}

/// As the server renames them to be used again: the record that goes on in the first of them was
/// never completed, for all that WAL tells.
#[test]
fn segments_put_back_to_their_older_use_are_no_end_of_wal() {
    let segments = segments(&CRASHED.pgdata);
    let older = std::fs::read(CRASHED.pgdata.join(&segments[0])).expect("a segment");
    let patches = segments[2..].iter().map(|path| OverlayPatch::Bytes {
        path: path.clone(),
        offset: 0,
        bytes: older.clone(),
    });
    let document = found(patches.collect());
    assert_eq!(
        roots(&document),
        [("wal-page-header", segments[2].as_str())]
    );
}

#[test]
fn the_last_segment_is_asked_for() {
    let segments = segments(&CRASHED.pgdata);
    let gone = segments.last().expect("a segment").clone();
    let document = found(vec![OverlayPatch::Remove { path: gone }]);
    let mut told = document.coverage.not_checked.iter();
    assert!(told.any(|own| own.why.contains("is needed, from an archive")));
}

/// The server recycles segments of the timeline that it leaves: under the name of the new one they
/// hold pages of the old one.
#[test]
fn segments_left_by_a_promotion_are_no_wal_that_goes_on() {
    let mut majors = all_majors().into_iter();
    let installation = majors.find(|one| one.major == 15).expect("a major");
    let copy = copy_of(&seed(&installation, Checksums::On));
    std::fs::write(copy.pgdata.join("standby.signal"), "").expect("a file");
    let mut server = copy.start_with(&as_primary()).expect("a standby");
    let mut session = server.connect("clinic").expect("a session");
    let told = session
        .query_value("SELECT pg_promote()")
        .expect("promoted");
    assert_eq!(told.as_deref(), Some("t"));
    session
        .execute("CREATE TABLE public.later AS SELECT 1 AS id")
        .expect("WAL of the new timeline");
    server.kill();

    let cluster = pgclinic_testkit::open(&copy.pgdata);
    let (recovery, replay) = (
        cluster.recovery().expect("a plan"),
        cluster.replay().expect("it needs recovery"),
    );
    let shape = &recovery.shape;
    let number = shape.segment_number(replay.end.record);
    let folder = copy.pgdata.join("pg_wal");
    let old = shape.segment_name(1, number);
    let mut stale = std::fs::read(folder.join(old)).expect("the segment that was left");
    let begin = (number + 1) * SEGMENT as u64;
    for (at, page) in (begin..).step_by(8192).zip(stale.chunks_exact_mut(8192)) {
        page[8..16].copy_from_slice(&at.to_le_bytes());
    }
    std::fs::write(folder.join(shape.segment_name(2, number + 1)), stale).expect("renamed");
    let cluster = pgclinic_testkit::open(&copy.pgdata);
    assert_eq!(cluster.replay().expect("a recovery").stop, Stop::End);
    let findings = checked(&cluster, Level::Structure).findings;
    let loud: Vec<_> = findings
        .iter()
        .filter(|own| own.severity != Severity::Note)
        .collect();
    assert!(loud.is_empty(), "{loud:?}");
}
