//! A running server over the network: its base backup is looked at in flight.

use pgclinic_model::{CheckDocument, Severity};

use crate::common;

use common::{Ran, count, hold_ledger, pgclinic, seen, text, told, url};
use pgclinic_servers::{Checksums, Server, StartOptions, StopMode};
use pgclinic_testkit::{
    TempCopy, all_majors, as_primary, catch_up, copy_of, execute, overwrite, seed, server, standby,
    value,
};

fn start(major: u16, checksums: Checksums) -> (Server, TempCopy) {
    let copy = copy_of(&seed(&server(major), checksums));
    let server = copy.start_with(&as_primary()).expect("a server");
    (server, copy)
}

fn check(server: &Server, user: &str, more: &[&str]) -> Ran {
    let url = url(server, user);
    pgclinic(&[&["check", &url, "--format", "json"], more].concat())
}

#[test]
fn a_sound_server_of_every_major_is_healthy() {
    for installation in all_majors() {
        let copy = copy_of(&seed(&installation, Checksums::On));
        let mut server = copy.start_with(&as_primary()).expect("a server");
        let ran = check(&server, "postgres", &[]);
        let document = ran.document();
        assert_eq!(ran.exit, 0, "{}: {}", installation.version, told(&document));
        hold_ledger(&document);
        assert_eq!(document.findings, [], "{}", told(&document));
        assert_eq!(document.target.kind, "server");
        assert_eq!(document.target.major, Some(installation.major));
        server.stop(StopMode::Fast).expect("a stop");

        let stopped = pgclinic(&[
            "check",
            text(&copy.pgdata),
            "--level",
            "pages",
            "--format",
            "json",
        ]);
        let stopped = stopped.document();
        let relations = |document: &CheckDocument| document.coverage.relations;
        // An unlogged table comes with its indexes and its TOAST relation.
        let left_out = relations(&stopped) - relations(&document);
        assert!((1..10).contains(&left_out), "{left_out} are unlogged");
    }
}

#[test]
fn damage_under_a_server_is_found_as_in_its_files() {
    let (mut server, copy) = start(15, Checksums::On);
    let docs = value(&server, "SELECT pg_relation_filepath('public.docs')");
    execute(&server, "CHECKPOINT");
    overwrite(&copy.pgdata.join(&docs), 8192 + 4000);
    overwrite(&copy.pgdata.join(&docs), 3 * 8192 + 16);
    let ran = check(&server, "postgres", &[]);
    let document = ran.document();
    assert_eq!(ran.exit, 1, "{}", told(&document));
    hold_ledger(&document);
    let part = check(&server, "postgres", &["--relation", "public.docs"]).exits(1);
    let words = pgclinic(&["check", &url(&server, "postgres")]).exits(1);
    assert!(words.first_line().starts_with("DAMAGED"), "{}", words.out);

    // Who may replicate but not read files cannot tell damage from a page that is being written.
    execute(&server, "CREATE ROLE copier LOGIN REPLICATION");
    let unsure = check(&server, "copier", &[]);
    let lines = told(&unsure.document());
    assert_eq!(unsure.exit, 3, "{lines}");
    assert!(
        lines.contains(&format!("not checked: block 1 of {docs}: it looked wrong")),
        "{lines}"
    );
    assert!(lines.contains("permission denied"), "{lines}");
    server.stop(StopMode::Fast).expect("a stop");

    let level = ["--level", "pages", "--format", "json"];
    let stopped = pgclinic(&[&["check", text(&copy.pgdata)], &level[..]].concat()).document();
    assert_eq!(seen(&document), seen(&stopped));
    assert_eq!(seen(&part.document()), seen(&stopped));
    assert!(seen(&document).iter().any(|(rule, path, block, name)| {
        rule == "checksum-mismatch"
            && *path == docs
            && *block == Some(1)
            && name.as_deref() == Some("docs")
    }));
}

#[test]
fn a_server_without_checksums_is_checked_by_its_headers() {
    let (mut server, copy) = start(15, Checksums::Off);
    let docs = value(&server, "SELECT pg_relation_filepath('public.docs')");
    let sound = check(&server, "postgres", &[]).exits(0);
    assert_eq!(sound.document().target.checksums, Some(false));
    execute(&server, "CHECKPOINT");
    overwrite(&copy.pgdata.join(&docs), 2 * 8192 + 10);
    let document = check(&server, "postgres", &[]).exits(1).document();
    assert!(
        seen(&document)
            .iter()
            .all(|(_, path, block, _)| *path == docs && *block == Some(2))
    );
    server.stop(StopMode::Fast).expect("a stop");
}

/// The server says which files it does not have; who may not ask it leaves a question.
#[test]
fn a_missing_file_is_noticed_without_reading_its_pages() {
    let (mut server, copy) = start(15, Checksums::On);
    execute(
        &server,
        "CREATE UNLOGGED TABLE public.fleeting AS SELECT 1 AS id",
    );
    check(&server, "postgres", &[]).exits(0);
    let [docs, fleeting] = ["public.docs", "public.fleeting"]
        .map(|name| value(&server, &format!("SELECT pg_relation_filepath('{name}')")));
    execute(&server, "CHECKPOINT");
    for path in [&docs, &fleeting] {
        std::fs::remove_file(copy.pgdata.join(path)).expect("removed");
    }
    let document = check(&server, "postgres", &[]).exits(1).document();
    let missing: Vec<_> = seen(&document)
        .into_iter()
        .filter(|(rule, ..)| rule == "missing-file")
        .map(|(_, path, ..)| path)
        .collect();
    assert_eq!(missing.len(), 2, "{}", told(&document));
    assert!(missing.contains(&docs) && missing.contains(&fleeting));

    let orders = value(&server, "SELECT pg_relation_filepath('sales.orders')");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(copy.pgdata.join(orders));
    file.and_then(|file| file.set_len(8192)).expect("truncated");
    let lines = told(&check(&server, "postgres", &[]).document());
    let question = "whether the last blocks of sales.orders are lost";
    assert!(lines.contains(question), "{lines}");

    execute(&server, "CREATE ROLE copier LOGIN REPLICATION");
    let unsure = check(&server, "copier", &[]).exits(3);
    let lines = told(&unsure.document());
    assert!(
        lines.contains("whether the file of public.docs is there"),
        "{lines}"
    );
    server.stop(StopMode::Immediate).expect("a stop");
}

#[test]
fn a_rewritten_catalog_keeps_its_names() {
    let (mut server, _copy) = start(15, Checksums::On);
    execute(&server, "VACUUM FULL pg_class; ");
    execute(&server, "VACUUM FULL pg_attribute");
    let document = check(&server, "postgres", &["--relation", "public.docs"])
        .exits(0)
        .document();
    assert!(document.coverage.pages > 3, "{}", told(&document));
    server.stop(StopMode::Fast).expect("a stop");
}

#[test]
fn refusals_say_what_to_do() {
    let (mut server, _copy) = start(15, Checksums::On);
    execute(&server, "CREATE ROLE reader LOGIN");
    let refused = check(&server, "reader", &[]).exits(2).err;
    assert!(
        refused.contains("ALTER ROLE \"reader\" REPLICATION"),
        "{refused}"
    );
    let with_state = check(&server, "postgres", &["--state", "/tmp/never"])
        .exits(2)
        .err;
    assert!(with_state.contains("--state"), "{with_state}");
    let told_running = check(&server, "postgres", &["--running"]).exits(2).err;
    assert!(told_running.contains("--running"), "{told_running}");
    let gone = url(&server, "postgres");
    server.stop(StopMode::Fast).expect("a stop");
    let unreachable = pgclinic(&["check", &gone]).exits(2).err;
    assert!(unreachable.contains("postgres://"), "{unreachable}");
}

/// The backup comes slowly; the server ends as soon as it is seen to send.
#[test]
fn a_server_that_goes_away_leaves_an_incomplete_report() {
    let (mut server, _copy) = start(15, Checksums::On);
    let slow = url(&server, "postgres");
    let ran = std::thread::scope(|scope| {
        let check =
            scope.spawn(|| pgclinic(&["check", &slow, "--rate", "300kB/s", "--format", "json"]));
        let sending = "SELECT count(*) FROM pg_stat_progress_basebackup WHERE backup_streamed > 0";
        while value(&server, sending) == "0" && !check.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        server.stop(StopMode::Immediate).expect("a stop");
        check.join().expect("a check")
    });
    let document = ran.document();
    let lines = told(&document);
    assert_eq!(ran.exit, 3, "{lines}");
    assert!(
        lines.contains("not checked: what had not come when the server broke off"),
        "{lines}"
    );
    assert_eq!(count(&document, Severity::Damage), 0, "{lines}");
}

/// A primary and its standby, which has replayed all there is.
fn primary_and_standby(major: u16) -> (Server, Server, [TempCopy; 2]) {
    let seeded = seed(&server(major), Checksums::On);
    let (first, second) = (copy_of(&seeded), copy_of(&seeded));
    let options = as_primary().with("wal_keep_size", "1GB");
    let primary = first.start_with(&options).expect("a primary");
    let follower = standby(&second, &primary, StartOptions::default());
    execute(&primary, "UPDATE public.docs SET id = id");
    let mut session = primary.connect("clinic").expect("a session");
    catch_up(&mut session, &follower);
    (primary, follower, [first, second])
}

/// A damaged page of its own is found in it.
#[test]
fn a_standby_is_checked_as_a_primary_is() {
    for major in [13, 18] {
        let (_primary, follower, [_, copy]) = primary_and_standby(major);
        let sound = check(&follower, "postgres", &[]);
        let document = sound.document();
        assert_eq!(sound.exit, 0, "{major}: {}", told(&document));
        hold_ledger(&document);
        assert_eq!(document.findings, [], "{}", told(&document));
        let path = value(&follower, "SELECT pg_relation_filepath('public.frozen')");
        overwrite(&copy.pgdata.join(&path), 8192 + 4000);
        let document = check(&follower, "postgres", &[]).exits(1).document();
        let places: Vec<_> = seen(&document).into_iter().collect();
        assert!(
            places
                .iter()
                .all(|(_, own, block, _)| *own == path && *block == Some(1)),
            "{places:?}"
        );
    }
}

/// The backup comes slowly; the standby becomes a primary as soon as it is seen to send.
#[test]
fn a_standby_that_is_promoted_meanwhile_is_no_damage() {
    for major in [13, 18] {
        let (_primary, follower, _copies) = primary_and_standby(major);
        let slow = url(&follower, "postgres");
        let ran = std::thread::scope(|scope| {
            let check =
                scope.spawn(|| pgclinic(&["check", &slow, "--rate", "8MB/s", "--format", "json"]));
            let sending =
                "SELECT count(*) FROM pg_stat_progress_basebackup WHERE backup_streamed > 0";
            while value(&follower, sending) == "0" && !check.is_finished() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            assert!(!check.is_finished(), "it came too fast");
            assert_eq!(value(&follower, "SELECT pg_promote()"), "t");
            execute(&follower, "UPDATE public.docs SET id = id; CHECKPOINT");
            check.join().expect("a check")
        });
        let document = ran.document();
        let lines = told(&document);
        // A server breaks off a backup over which it was promoted, at its end.
        assert_eq!(ran.exit, 3, "{lines}");
        assert_eq!(count(&document, Severity::Damage), 0, "{lines}");
        assert_eq!(count(&document, Severity::Warning), 0, "{lines}");
        assert!(lines.contains("promoted"), "{lines}");
        let again = check(&follower, "postgres", &[]);
        assert_eq!(again.exit, 0, "{}", told(&again.document()));
    }
}
