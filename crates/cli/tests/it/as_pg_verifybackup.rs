//! What PostgreSQL's own tests ask of `pg_verifybackup` (a base backup with a file too many, a file
//! too few, one cut, one longer, one replaced, a tablespace lost), asked of `pgclinic check`.

use pgclinic_model::{CheckDocument, Severity};

use crate::common;

use std::os::unix::fs::symlink;
use std::path::Path;

use common::{count, pgclinic, text, told};
use pgclinic_servers::{Checksums, Server};
use pgclinic_testkit::{as_primary, copy_of, plain_backup, scratch, seed, server};

fn check(pgdata: &Path) -> (u8, CheckDocument) {
    let ran = pgclinic(&["check", text(pgdata), "--level", "full", "--format", "json"]);
    (ran.exit, ran.document())
}

/// Nothing but the recovery that every base backup needs.
#[track_caller]
fn is_whole(pgdata: &Path) {
    let (exit, document) = check(pgdata);
    let damage = count(&document, Severity::Damage) + count(&document, Severity::Warning);
    assert_eq!((exit, damage), (3, 0), "{}", told(&document));
    assert!(document.needs_recovery);
}

/// A warning at this path by this rule, and no damage.
#[track_caller]
fn is_warned(pgdata: &Path, rule: &str, path: &str) {
    let (exit, document) = check(pgdata);
    let warned = document.findings.iter().any(|finding| {
        finding.severity == Severity::Warning
            && finding.rule == rule
            && finding.place.path.starts_with(path)
    });
    assert!(warned && exit == 3, "{rule} {path} {}", told(&document));
}

/// Damage at this path, by this rule.
#[track_caller]
fn is_damaged(pgdata: &Path, rule: &str, path: &str) {
    let (exit, document) = check(pgdata);
    let found = document.findings.iter().any(|finding| {
        finding.severity == Severity::Damage
            && finding.rule == rule
            && finding.place.path.starts_with(path)
    });
    assert!(found && exit == 1, "{rule} {path} {}", told(&document));
}

/// Takes a file away, looks, and puts it back.
fn without(pgdata: &Path, path: &str, look: impl FnOnce()) {
    let (path, aside) = (pgdata.join(path), pgdata.join("../aside"));
    std::fs::rename(&path, &aside).expect("a file");
    look();
    if path.exists() {
        std::fs::remove_file(&path).expect("a file");
    }
    std::fs::rename(&aside, &path).expect("a file");
}

/// The file of a user's table that the WAL of the backup does not touch.
fn settled_table(running: &Server) -> String {
    let mut session = running.connect("clinic").expect("a session");
    let path = session.query_value("SELECT pg_relation_filepath('public.settled')");
    path.expect("an answer").expect("a path")
}

#[test]
fn hurt_base_backups() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start_with(&as_primary()).expect("a server");
    let scratch = scratch();
    let backup = scratch.path().join("backup");
    plain_backup(&copy, &running, &backup, &[]);
    let table = settled_table(&running);
    drop(running);
    is_whole(&backup);

    let space = std::fs::read_dir(backup.join("pg_tblspc")).expect("a directory");
    let link = space.flatten().next().expect("a link").path();
    let link = format!(
        "pg_tblspc/{}",
        text(Path::new(link.file_name().expect("a name")))
    );
    let extra = format!("{link}/extra");
    for path in ["extra_file", &extra] {
        std::fs::write(backup.join(path), "extra").expect("a file");
        is_warned(&backup, "backup-file-extra", path);
        std::fs::remove_file(backup.join(path)).expect("a file");
    }
    without(&backup, "pg_xact/0000", || {
        is_damaged(&backup, "slru-file-missing", "pg_xact/0000");
    });
    without(&backup, &table, || {
        is_damaged(&backup, "missing-file", &table)
    });
    without(&backup, &link, || {
        is_damaged(&backup, "missing-database-directory", &link);
        symlink("/nowhere/at/all", backup.join(&link)).expect("a link");
        is_damaged(&backup, "missing-database-directory", &link);
    });
    let control = "global/pg_control";
    let bytes = std::fs::read(backup.join(control)).expect("a file");
    without(&backup, control, || {
        std::fs::write(backup.join(control), "").expect("a file");
        is_damaged(&backup, "control-file-unreadable", control);
        std::fs::write(backup.join(control), [&bytes[..], b"x"].concat()).expect("a file");
        is_damaged(&backup, "control-file-unreadable", control);
    });
    without(&backup, "PG_VERSION", || {
        std::fs::write(backup.join("PG_VERSION"), "qqq").expect("a file");
        is_damaged(&backup, "version-file", "PG_VERSION");
    });
    is_whole(&backup);
}
