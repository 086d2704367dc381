//! `check --since STATE` does not forget: what a run found stays until it is put right, however
//! many runs over changed pages follow.

use pgclinic_model::CheckDocument;
use pgclinic_model::document::SinceSummary;

use crate::common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{hold_ledger, pgclinic, seen, text, told};
use pgclinic_servers::{Checksums, Scratch, Session, StopMode};
use pgclinic_testkit::{TempCopy, all_majors, copy_of, scratch, seed};

const PAGE: u64 = 8192;

/// A copy and the states of the runs over it.
struct Patient {
    copy: TempCopy,
    folder: Scratch,
}

impl Patient {
    fn new() -> Self {
        let installation = all_majors().pop().expect("the newest");
        Patient {
            copy: copy_of(&seed(&installation, Checksums::On)),
            folder: scratch(),
        }
    }

    fn state(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A run that leaves the state `to`, after the one that left `since`.
    #[track_caller]
    fn check(&self, level: &str, since: Option<&str>, to: &str, exit: u8) -> CheckDocument {
        let state = self.state(to);
        let mut words = vec!["check", text(&self.copy.pgdata), "--format", "json"];
        words.extend(["--level", level, "--state", text(&state)]);
        words.extend(["--evidence", "100"]);
        let since = since.map(|name| self.state(name));
        if let Some(since) = &since {
            words.extend(["--since", text(since)]);
        }
        let ran = pgclinic(&words);
        let document = ran.document();
        assert_eq!(ran.exit, exit, "{}\n{}", told(&document), ran.err);
        hold_ledger(&document);
        document
    }

    /// Statements on a server that is started for them and stopped.
    fn serve(&self, statements: &[&str]) {
        let mut server = self.copy.start().expect("a server");
        let mut session = server.connect("clinic").expect("a session");
        for sql in statements {
            session.execute(sql).expect(sql);
        }
        drop(session);
        server.stop(StopMode::Fast).expect("a stop");
    }

    /// The file of a relation.
    fn path_of(&self, relation: &str) -> String {
        let mut server = self.copy.start().expect("a server");
        let mut session = server.connect("clinic").expect("a session");
        let path = path_of(&mut session, relation);
        drop(session);
        server.stop(StopMode::Fast).expect("a stop");
        path
    }

    /// Overwrites bytes of a block and gives what was there.
    fn write(&self, path: &str, block: u64, bytes: &[u8]) -> Vec<u8> {
        let mut options = std::fs::File::options();
        let file = options.read(true).write(true);
        let file = file.open(self.copy.pgdata.join(path)).expect("a file");
        let mut before = vec![0; bytes.len()];
        let at = block * PAGE + 6000;
        file.read_exact_at(&mut before, at).expect("a page");
        file.write_all_at(bytes, at).expect("hurt");
        before
    }
}

fn path_of(session: &mut Session, relation: &str) -> String {
    let sql = format!("SELECT pg_relation_filepath('{relation}')");
    session.query_value(&sql).expect(&sql).expect("a path")
}

fn since(document: &CheckDocument) -> &SinceSummary {
    document.since.as_ref().expect("what --since did")
}

/// Words of a run after the one that left this state, without its lines.
fn words(pgdata: &Path, since: &Path, format: &str, exit: u8) -> String {
    let ran = pgclinic(&[
        "check",
        text(pgdata),
        "--since",
        text(since),
        "--format",
        format,
    ]);
    let out = ran.exits(exit).out;
    let words: Vec<&str> = out.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn damage_in_a_page_that_does_not_change_is_told_by_every_run_until_it_is_healed() {
    let patient = Patient::new();
    let path = patient.path_of("public.frozen");
    let before = patient.write(&path, 1, &[7; 64]);
    let first = patient.check("structure", None, "first", 1);
    assert_eq!(first.since, None);
    assert!(
        seen(&first)
            .iter()
            .all(|(_, file, block, _)| (file, *block) == (&path, Some(1)))
    );

    patient.serve(&["UPDATE public.docs SET title = title"]);
    let second = patient.check("structure", Some("first"), "second", 1);
    assert_eq!(seen(&second), seen(&first));
    assert_eq!(second.relations, first.relations, "the map of blocks");
    assert_eq!(second.evidence, first.evidence);
    assert_eq!(
        (since(&second).pages_again, since(&second).findings_carried),
        (1, 0)
    );
    assert!(since(&second).pages_unchanged > second.coverage.pages);

    let third = patient.check("structure", Some("second"), "third", 1);
    assert_eq!(seen(&third), seen(&first));
    let third = patient.state("third");
    let pgdata = &patient.copy.pgdata;
    let told = words(pgdata, &third, "text", 1);
    assert!(told.starts_with("DAMAGED 1 relation, 1 page"), "{told}");
    assert!(
        told.contains("1 unchanged page with known findings examined again"),
        "{told}"
    );
    let page = words(pgdata, &third, "html", 1);
    assert!(page.contains("1 unchanged page with known findings examined again"));

    // The old bytes come back, and with them the old LSN.
    patient.write(&path, 1, &before);
    let healed = patient.check("structure", Some("third"), "healed", 0);
    assert_eq!((seen(&healed).len(), since(&healed).pages_again), (0, 1));
    let after = patient.check("structure", Some("healed"), "after", 0);
    assert_eq!(since(&after).pages_again, 0);
}

#[test]
fn a_page_that_changed_and_is_sound_now_is_forgotten_and_so_is_a_relation_that_is_gone() {
    let patient = Patient::new();
    let (path, gone) = (
        patient.path_of("public.frozen"),
        patient.path_of("public.chains"),
    );
    let before = patient.write(&path, 1, &[7; 64]);
    patient.write(&gone, 0, &[7; 64]);
    patient.check("structure", None, "first", 1);
    patient.write(&path, 1, &before);
    // The first row of the page, whichever that is.
    let changed = "DELETE FROM public.frozen WHERE ctid = (SELECT min(ctid) FROM public.frozen WHERE ctid >= '(1,0)' AND ctid < '(2,0)')";
    patient.serve(&[changed, "DROP TABLE public.chains CASCADE"]);
    let second = patient.check("structure", Some("first"), "second", 0);
    assert_eq!(
        (since(&second).pages_again, since(&second).findings_carried),
        (0, 0)
    );
    let third = patient.check("structure", Some("second"), "third", 0);
    assert_eq!(third.findings, []);
}

/// A row that was written while its index was out of use: each page is sound by itself.
const ROW_WITHOUT_ENTRY: [&str; 5] = [
    "CREATE TABLE public.lost AS SELECT i AS id FROM generate_series(1, 100) AS i",
    "CREATE INDEX lost_id ON public.lost (id)",
    "UPDATE pg_index SET indisready = false WHERE indexrelid = 'public.lost_id'::regclass",
    "INSERT INTO public.lost VALUES (1000)",
    "UPDATE pg_index SET indisready = true WHERE indexrelid = 'public.lost_id'::regclass",
];

#[test]
fn what_a_comparison_found_is_carried_until_its_files_are_gone() {
    let patient = Patient::new();
    patient.serve(&ROW_WITHOUT_ENTRY);
    let first = patient.check("full", None, "first", 1);
    let found = seen(&first);
    assert!(!found.is_empty());
    assert_eq!(first.findings[0].known_from, None);

    patient.serve(&["UPDATE public.docs SET title = title"]);
    let second = patient.check("full", Some("first"), "second", 1);
    assert_eq!(seen(&second), found);
    assert_eq!(second.relations, first.relations);
    assert_eq!(since(&second).findings_carried, found.len() as u64);
    let known = second.findings[0].known_from.clone();
    assert_eq!(known.as_deref(), Some(&*since(&second).lsn));

    // Also at a lower level, and beside a server, which no file is compared with another for.
    let server = patient.copy.start().expect("a server");
    let third = patient.check("structure", Some("second"), "third", 1);
    assert_eq!(
        (seen(&third), third.findings[0].known_from.clone()),
        (found, known)
    );
    drop(server);
    let pgdata = &patient.copy.pgdata;
    let told = words(pgdata, &patient.state("third"), "text", 1);
    assert!(told.contains("this one did not look for it"), "{told}");
    assert!(told.contains("known finding"), "{told}");

    patient.serve(&["REINDEX INDEX public.lost_id"]);
    let fourth = patient.check("structure", Some("third"), "fourth", 0);
    assert_eq!(
        (fourth.findings.len(), since(&fourth).findings_carried),
        (0, 0)
    );
    patient.check("full", None, "fifth", 0);
}

#[test]
fn a_run_in_which_nothing_stayed_as_it_was_says_so() {
    let patient = Patient::new();
    let state = patient.state("first");
    let only = [
        "check",
        text(&patient.copy.pgdata),
        "--relation",
        "public.docs",
    ];
    pgclinic(&[&only[..], &["--state", text(&state)]].concat()).exits(0);
    patient.serve(&["VACUUM FULL public.docs"]);
    let ran = pgclinic(&[&only[..], &["--since", text(&state)]].concat()).exits(0);
    assert!(
        ran.first_line().contains("no page unchanged since"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("no page was passed over"), "{}", ran.out);
}

/// The gaps of this run that an earlier one left.
fn left_open(document: &CheckDocument) -> Vec<bool> {
    let gaps = document.coverage.not_checked.iter();
    let left = gaps.filter(|gap| gap.why.starts_with("an earlier run left it open"));
    left.map(|gap| gap.inherent).collect()
}

/// What the pages of a crashed cluster say of others is judged by no run that passes over them.
#[test]
fn what_a_crash_left_open_stays_open_until_a_run_over_everything() {
    let patient = Patient::new();
    let mut server = patient.copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let sql = "UPDATE public.docs SET title = title";
    session.execute(sql).expect(sql);
    server.kill();
    let crashed = patient.check("structure", None, "crashed", 3);
    assert!(crashed.needs_recovery);

    // Beside the server nobody judges it, as without --since.
    let server = patient.copy.start().expect("it recovers");
    let beside = patient.check("structure", Some("crashed"), "beside", 0);
    assert!(left_open(&beside).is_empty(), "{}", told(&beside));
    drop(server);
    patient.serve(&["UPDATE public.docs SET title = title"]);
    for (since, to) in [
        ("crashed", "second"),
        ("beside", "third"),
        ("third", "fourth"),
    ] {
        let later = patient.check("structure", Some(since), to, 3);
        assert!(!later.needs_recovery);
        assert!(self::since(&later).pages_unchanged > 0);
        assert!(left_open(&later).contains(&false), "{}", told(&later));
    }
    patient.check("structure", None, "whole", 0);
    let after = patient.check("structure", Some("whole"), "after", 0);
    assert!(left_open(&after).is_empty(), "{}", told(&after));
}

/// A run beside a server is healthy when each page is by itself, and so is one after it; what was
/// left out is told.
#[test]
fn what_a_run_beside_a_server_left_open_is_told_of_the_stopped_cluster() {
    let patient = Patient::new();
    let server = patient.copy.start().expect("a server");
    let beside = patient.check("structure", None, "beside", 0);
    assert!(left_open(&beside).is_empty(), "{}", told(&beside));
    drop(server);
    patient.serve(&["UPDATE public.docs SET title = title"]);
    let later = patient.check("structure", Some("beside"), "later", 0);
    assert_eq!(left_open(&later), [true], "{}", told(&later));
}
