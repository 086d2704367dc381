//! A standby that was promoted and crashed before its first checkpoint: recovery begins on the
//! timeline that it left, and the way to its own is told by a history file, or by WAL itself.

use std::fs;
use std::path::{Path, PathBuf};

use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_servers::{Checksums, StartOptions};
use pgclinic_testkit::{TempCopy, as_primary, catch_up, copy_of, seed, server, standby};

use crate::common;

use common::{compare, copied, options, salvaged};

/// Recovery begins before these, which fill segments of the first timeline.
const BEFORE: [&str; 2] = [
    "CREATE TABLE public.load (id int PRIMARY KEY, what text)",
    "INSERT INTO public.load SELECT i, repeat(md5(i::text), 4) FROM generate_series(1, 20000) i",
];
/// On the second one.
const AFTER: [&str; 3] = [
    "UPDATE public.load SET what = 'changed ' || id WHERE id % 3 = 0",
    "SELECT pg_switch_wal()",
    "INSERT INTO public.load SELECT -i, md5(i::text) FROM generate_series(1, 5000) i",
];

fn promoted_and_killed(major: u16) -> TempCopy {
    let seeded = seed(&server(major), Checksums::On);
    let (first, second) = (copy_of(&seeded), copy_of(&seeded));
    let primary = first.start_with(&as_primary()).expect("a primary");
    // The checkpoint that follows a promotion takes its time.
    let slow = StartOptions::default().with("checkpoint_timeout", "1h");
    let mut follower = standby(&second, &primary, slow);
    let mut session = primary.connect("clinic").expect("a session");
    for sql in BEFORE {
        session.execute(sql).expect(sql);
    }
    catch_up(&mut session, &follower);
    let mut session = follower.connect("clinic").expect("a session");
    let told = session
        .query_value("SELECT pg_promote()")
        .expect("an answer");
    assert_eq!(told.as_deref(), Some("t"));
    for sql in AFTER {
        session.execute(sql).expect(sql);
    }
    drop(session);
    follower.kill();
    second
}

/// What was said of the history file.
fn words(account: &SalvageReport) -> Option<String> {
    let mut gaps = account.not_salvaged.iter();
    let gap = gaps.find(|gap| format!("{} {}", gap.what, gap.why).contains("00000002.history"));
    gap.map(|gap| gap.why.clone())
}

/// The first segment of the second timeline.
fn first_segment(pgdata: &Path) -> PathBuf {
    let entries = fs::read_dir(pgdata.join("pg_wal")).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_own = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy();
        name.len() == 24 && name.starts_with("00000002")
    };
    paths.filter(is_own).min().expect("a segment")
}

fn without_its_history_wal_tells_the_way(major: u16) {
    let copy = promoted_and_killed(major);
    let history = copy.pgdata.join("pg_wal/00000002.history");
    let text = fs::read_to_string(&history).expect("a history");
    let left = text.split('\t').nth(1).expect("where it was left");
    let folder = tempfile::tempdir().expect("a directory");
    let salvage_to =
        |name: &str| salvaged(&copy.pgdata, &options(&folder.path().join(name), "copy"));
    let account = salvage_to("whole");
    assert_eq!(
        account.outcome,
        Outcome::Whole,
        "{:#?}",
        account.not_salvaged
    );
    assert_eq!(words(&account), None);

    // The file itself comes back in the end, with its owner.
    let kept = history.with_extension("kept");
    fs::rename(&history, &kept).expect("put away");
    for (name, bytes) in [("missing", None), ("garbage", Some("nonsense\n"))] {
        if let Some(bytes) = bytes {
            fs::write(&history, bytes).expect("written");
        }
        let account = salvage_to(name);
        let replay = account.replay.as_ref().expect("a recovery in memory");
        assert!(replay.is_complete && replay.applied > 0, "{replay:?}");
        let words = words(&account).expect("the file is named");
        let shown = format!("timeline 1 was left at {left}, and were followed");
        assert!(words.contains(&shown), "{words}");
        assert_eq!(
            account.outcome,
            Outcome::Whole,
            "{:#?}",
            account.not_salvaged
        );
    }
    fs::remove_file(&history).expect("removed");

    // No other file tells where the second timeline began.
    let segment = first_segment(&copy.pgdata);
    let away = segment.with_extension("kept");
    fs::rename(&segment, &away).expect("put away");
    let account = salvage_to("neither");
    let told = words(&account).expect("the file is named");
    assert!(
        told.contains("no record of pg_wal shows where it was left"),
        "{told}"
    );
    assert_ne!(account.outcome, Outcome::Whole);
    fs::rename(&away, &segment).expect("put back");

    fs::rename(&kept, &history).expect("put back");
    let again = copy.start().expect("a recovery");
    let mut expected = copied(&again, "clinic", "");
    expected.retain(|name, _| !name.ends_with("scratchpad"));
    for name in ["whole", "missing", "garbage"] {
        compare(&folder.path().join(name), "copy", &expected);
    }
}

#[test]
fn without_its_history_wal_tells_the_way_of_13() {
    without_its_history_wal_tells_the_way(13);
}

#[test]
fn without_its_history_wal_tells_the_way_of_15() {
    without_its_history_wal_tells_the_way(15);
}

#[test]
fn without_its_history_wal_tells_the_way_of_18() {
    without_its_history_wal_tells_the_way(18);
}
