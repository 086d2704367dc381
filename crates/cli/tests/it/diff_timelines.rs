//! `diff` of a primary and its promoted standby: explained where one goes on from the other, parted
//! where each went its own way.

use pgclinic_model::document::{Copy, DiffDocument, DiffVerdict, Difference};

use crate::common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{pgclinic, text};
use pgclinic_servers::{Checksums, Server, Session, StartOptions, StopMode};
use pgclinic_testkit::{
    TempCopy, all_majors, as_primary, catch_up, copy_of, execute, seed, standby,
};

#[track_caller]
fn diff(a: &Path, b: &Path, exit: u8) -> DiffDocument {
    let ran = pgclinic(&["diff", text(a), text(b), "--format", "json"]).exits(exit);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

fn clinic(server: &Server) -> Session {
    server.connect("clinic").expect("a session")
}

fn stop(mut server: Server) {
    server.stop(StopMode::Fast).expect("a stop");
}

/// A primary and its standby, which has all that the primary wrote.
struct Pair {
    first: TempCopy,
    second: TempCopy,
    primary: Server,
    follower: Server,
}

fn pair() -> Pair {
    let seeded = seed(&all_majors().pop().expect("the newest"), Checksums::On);
    let (first, second) = (copy_of(&seeded), copy_of(&seeded));
    let primary = first.start_with(&as_primary()).expect("a primary");
    let follower = standby(&second, &primary, StartOptions::default());
    let mut session = clinic(&primary);
    let changes = "UPDATE public.chains SET id = id";
    session.execute(changes).expect("changes");
    catch_up(&mut session, &follower);
    drop(session);
    Pair {
        first,
        second,
        primary,
        follower,
    }
}

fn promote(server: &Server) {
    let told = clinic(server).query_value("SELECT pg_promote()");
    assert_eq!(told.expect("an answer").as_deref(), Some("t"));
}

/// Waits until the standby has replayed all that it has received.
fn replay_all(standby: &Server) {
    let sql = "SELECT pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()";
    let end = Instant::now() + Duration::from_secs(60);
    while clinic(standby).query_value(sql).expect(sql).as_deref() != Some("t") {
        assert!(Instant::now() < end, "{}", standby.log());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ways(document: &DiffDocument) -> Vec<Difference> {
    let counts = document.counts().into_iter().map(|(way, _)| way);
    counts.filter(|way| *way != Difference::Hints).collect()
}

#[test]
fn a_primary_that_went_on_has_parted_from_its_promoted_standby() {
    let Pair {
        first,
        second,
        primary,
        follower,
    } = pair();
    promote(&follower);
    // What only one changed, and what both changed.
    execute(&follower, "UPDATE public.pruned SET id = id");
    execute(&follower, "UPDATE public.chains SET id = id");
    execute(&primary, "UPDATE public.docs SET id = id");
    execute(&primary, "UPDATE public.chains SET id = id");
    for server in [&primary, &follower] {
        execute(server, "CHECKPOINT");
    }
    stop(follower);
    stop(primary);

    let document = diff(&first.pgdata, &second.pgdata, 1);
    assert_eq!(
        (document.verdict, document.older),
        (DiffVerdict::Parted, None)
    );
    let at = document.parted_at.as_deref().expect("where they parted");
    let history = second.pgdata.join("pg_wal/00000002.history");
    let written = std::fs::read_to_string(&history).expect("a history");
    assert!(written.contains(&format!("\t{at}\t")), "{at}: {written}");
    let timelines = [&document.position_a, &document.position_b]
        .map(|position| position.as_ref().and_then(|own| own.timeline));
    assert_eq!(timelines, [Some(1), Some(2)]);
    assert!(
        document
            .counts()
            .iter()
            .all(|(way, _)| !way.is_contradiction()),
        "{:?}",
        document.counts()
    );
    for table in ["docs", "chains", "pruned"] {
        let of =
            |fork: &&pgclinic_model::document::DiffFork| fork.relation.as_deref() == Some(table);
        let fork = document.forks.iter().find(of);
        let fork = fork.unwrap_or_else(|| panic!("{table} is equal"));
        assert!(fork.has(Difference::Parted), "{fork:?}");
    }
    let mirrored = diff(&second.pgdata, &first.pgdata, 1);
    assert_eq!(
        (mirrored.verdict, mirrored.older, mirrored.counts()),
        (DiffVerdict::Parted, None, document.counts())
    );
    let words = pgclinic(&["diff", text(&first.pgdata), text(&second.pgdata)]).exits(1);
    assert!(words.out.starts_with("PARTED  "), "{}", words.out);
    assert!(words.out.contains("pg_rewind"), "{}", words.out);

    // Without the history nothing is claimed.
    std::fs::remove_file(&history).expect("the history");
    let document = diff(&first.pgdata, &second.pgdata, 3);
    assert_eq!(
        (document.verdict, document.older, &document.parted_at),
        (DiffVerdict::Incomplete, None, &None)
    );
    assert!(
        ways(&document)
            .iter()
            .all(|way| matches!(way, Difference::Undecided | Difference::Missing)),
        "{:?}",
        document.counts()
    );
    let why = "no history in pg_wal tells where they parted";
    let gaps = &document.coverage.not_checked;
    assert!(gaps.iter().any(|gap| gap.why.contains(why)), "{gaps:?}");
}

#[test]
fn a_primary_that_stopped_before_the_promotion_is_the_older_copy() {
    let Pair {
        first,
        second,
        primary,
        follower,
    } = pair();
    stop(primary);
    promote(&follower);
    execute(&follower, "UPDATE public.docs SET id = id");
    execute(&follower, "CHECKPOINT");
    stop(follower);
    let document = diff(&first.pgdata, &second.pgdata, 0);
    assert_eq!(
        (document.verdict, document.older, &document.parted_at),
        (DiffVerdict::Explained, Some(Copy::A), &None)
    );
    let mirrored = diff(&second.pgdata, &first.pgdata, 0);
    assert_eq!(mirrored.older, Some(Copy::B));
}

#[test]
fn a_standby_that_came_to_the_shutdown_of_its_primary_is_the_same_in_its_status_files_too() {
    let Pair {
        first,
        second,
        primary,
        follower,
    } = pair();
    // Commits, aborts, aborted parts of what committed, and rows that several lock.
    execute(&primary, "CREATE TABLE public.contested AS SELECT 1 AS id");
    let mut session = clinic(&primary);
    for statement in [
        "DO $$ BEGIN FOR n IN 1..300 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$",
        "DO $$ BEGIN FOR n IN 1..50 LOOP PERFORM txid_current(); ROLLBACK; END LOOP; END $$",
        "DO $$ BEGIN UPDATE public.contested SET id = 2; BEGIN UPDATE public.contested SET id = 3; RAISE 'no'; EXCEPTION WHEN others THEN NULL; END; END $$",
        "BEGIN; SELECT 1 FROM public.contested FOR SHARE; SAVEPOINT one; UPDATE public.contested SET id = 4; COMMIT",
    ] {
        session.execute(statement).expect(statement);
    }
    drop(session);
    stop(primary);
    replay_all(&follower);
    stop(follower);
    for (a, b) in [(&first, &second), (&second, &first)] {
        let document = diff(&a.pgdata, &b.pgdata, 0);
        assert_eq!(
            (document.verdict, document.older),
            (DiffVerdict::Same, None)
        );
        let gaps = &document.coverage.not_checked;
        assert!(
            !gaps.iter().any(|gap| gap.what.contains("pg_xact")),
            "{gaps:?}"
        );
        assert!(document.coverage.files > 3, "{:?}", document.coverage);
    }

    // A page of zeros would roll back everything on it.
    let path = second.pgdata.join("pg_xact/0000");
    let mut bytes = std::fs::read(&path).expect("a file");
    bytes.fill(0);
    std::fs::write(&path, bytes).expect("a file");
    let document = diff(&first.pgdata, &second.pgdata, 1);
    let told = document.files.iter();
    let told: Vec<_> = told
        .map(|own| (own.path.as_str(), own.difference))
        .collect();
    assert_eq!(told, [("pg_xact/0000", Difference::Conflict)]);
}
