//! `check --since STATE` over a promotion: the state of the primary holds up to where the timelines
//! parted, and no further.

use pgclinic_model::CheckDocument;

use crate::common;

use std::os::unix::fs::FileExt;
use std::path::Path;

use common::{hold_ledger, pgclinic, text, told};
use pgclinic_servers::{Checksums, Server, Session, StartOptions, StopMode};
use pgclinic_testkit::{
    TempCopy, all_majors, as_primary, catch_up, copy_of, scratch, seed, standby,
};
use serde_json::Value;

const PAGE: u64 = 8192;

fn clinic(server: &Server) -> Session {
    server.connect("clinic").expect("a session")
}

fn value(session: &mut Session, sql: &str) -> String {
    session.query_value(sql).expect(sql).expect("a value")
}

fn stop(mut session: Session, mut server: Server) {
    session.execute("CHECKPOINT").expect("written");
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
}

#[track_caller]
fn since(copy: &TempCopy, state: &Path, exit: u8) -> CheckDocument {
    let words = [
        "check",
        text(&copy.pgdata),
        "--since",
        text(state),
        "--format",
        "json",
    ];
    let ran = pgclinic(&words);
    let document = ran.document();
    assert_eq!(ran.exit, exit, "{}\n{}", told(&document), ran.err);
    hold_ledger(&document);
    document
}

/// `0/3000148` as a number.
fn position(words: &str) -> u64 {
    let (high, low) = words.split_once('/').expect("an LSN");
    let part = |digits| u64::from_str_radix(digits, 16).expect("digits");
    part(high) << 32 | part(low)
}

/// `pd_lsn` of a page.
fn lsn_of(copy: &TempCopy, path: &str, block: u64) -> u64 {
    let file = std::fs::File::open(copy.pgdata.join(path)).expect("a file");
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, block * PAGE)
        .expect("a page");
    let [a, b, c, d, e, f, g, h] = bytes;
    u64::from(u32::from_le_bytes([a, b, c, d])) << 32 | u64::from(u32::from_le_bytes([e, f, g, h]))
}

#[test]
fn a_state_of_the_primary_holds_for_its_promoted_standby_up_to_the_parting() {
    let seeded = seed(&all_majors().pop().expect("the newest"), Checksums::On);
    let (first, copy) = (copy_of(&seeded), copy_of(&seeded));
    let folder = scratch();
    let state = folder.path().join("primary");
    let primary = first.start_with(&as_primary()).expect("a primary");
    let follower = standby(&copy, &primary, StartOptions::default());
    let mut session = clinic(&primary);
    session
        .execute("UPDATE public.chains SET id = id")
        .expect("changes");
    catch_up(&mut session, &follower);

    // The standby goes its own way: its changes stand where the primary has others.
    let mut promoted = clinic(&follower);
    assert_eq!(value(&mut promoted, "SELECT pg_promote()"), "t");
    let changes = "UPDATE public.docs SET title = title";
    promoted.execute(changes).expect("changes");
    let path = value(&mut promoted, "SELECT pg_relation_filepath('public.docs')");
    let sql = "SELECT max((ctid::text::point)[0])::int FROM public.docs";
    let block: u64 = value(&mut promoted, sql).parse().expect("a block");
    stop(promoted, follower);
    for _ in 0..3 {
        session.execute(changes).expect("changes");
    }
    stop(session, primary);
    let words = ["check", text(&first.pgdata), "--state", text(&state)];
    pgclinic(&words).exits(0);
    let words = ["check", text(&copy.pgdata), "--since", text(&state)];
    let refused = pgclinic(&words).exits(2);
    assert!(
        refused.err.contains("copies of one cluster"),
        "{}",
        refused.err
    );

    // The promoted standby takes the primary's place, and the state, as those of before, does not
    // say of which files it is.
    let mut kept: Value =
        serde_json::from_slice(&std::fs::read(&state).expect("a state")).expect("JSON");
    let files = kept.as_object_mut().expect("a state").remove("files");
    assert!(files.is_some_and(|files| !files.as_array().expect("a list").is_empty()));
    std::fs::write(&state, kept.to_string()).expect("a state");
    std::fs::rename(&first.pgdata, first.pgdata.with_extension("before")).expect("moved away");
    std::fs::rename(&copy.pgdata, &first.pgdata).expect("moved");
    let copy = first;
    let healthy = since(&copy, &state, 0);
    let parting = position(&healthy.since.as_ref().expect("what --since did").lsn);
    let written = std::fs::read(&state).expect("a state");
    let written: Value = serde_json::from_slice(&written).expect("JSON");
    let redo = written["begin"]["redo"].as_u64().expect("an LSN");
    let lsn = lsn_of(&copy, &path, block);
    assert!(parting <= lsn && lsn < redo, "{parting} {lsn} {redo}");
    assert!(healthy.coverage.pages_unchanged > 0);

    let mut options = std::fs::File::options();
    let file = options.write(true).open(copy.pgdata.join(&path));
    let file = file.expect("a file");
    file.write_all_at(&[7; 64], block * PAGE + 6000)
        .expect("hurt");
    let found = since(&copy, &state, 1);
    let place = &found.findings.first().expect("damage").place;
    assert_eq!(
        (place.path.as_str(), place.block.map(u64::from)),
        (path.as_str(), Some(block))
    );

    // Nothing tells where the way of the primary was left.
    let history = copy.pgdata.join("pg_wal/00000002.history");
    std::fs::remove_file(history).expect("the history");
    let words = ["check", text(&copy.pgdata), "--since", text(&state)];
    let refused = pgclinic(&words).exits(2);
    let why = "the state is of timeline 1, and no history in pg_wal tells";
    assert!(refused.err.contains(why), "{}", refused.err);
}
