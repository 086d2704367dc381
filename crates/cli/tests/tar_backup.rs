//! Base backups in archives: every packing gives what the folder gives, and archives that were cut are told.

mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{check_json, count, pgclinic, seen, text, told};
use pgclinic_diagnose::Severity;
use pgclinic_servers::{Checksums, Scratch, Server, StopMode};
use pgclinic_source::tar::{PackedArchives, base_archive_in};
use pgclinic_testkit::{as_primary, base_backup, copy_of, overwrite, run_as, seed, server};

/// Options of `pg_basebackup` that make archives.
const FORMS: [(&str, &str); 4] = [
    ("plain-tar", "--compress=none"),
    ("gzip", "--compress=gzip:1"),
    ("lz4", "--compress=lz4"),
    ("zstd", "--compress=zstd:1"),
];

fn archives(server: &Server, scratch: &Scratch) -> Vec<PathBuf> {
    let made = FORMS.map(|(name, packing)| {
        let folder = scratch.path().join(name);
        let arguments = ["--format=tar", packing, "--no-verify-checksums"];
        base_backup(server, &folder, &arguments);
        folder
    });
    made.to_vec()
}

#[test]
fn the_same_damage_gives_the_same_findings_in_every_form() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut server = copy.start_with(&as_primary()).expect("a server");
    let scratch = Scratch::new(&run_as(), None).expect("a folder");
    let mut session = server.connect("clinic").expect("a session");
    let sql = "SELECT pg_relation_filepath('public.docs')";
    let docs = session.query_value(sql).expect(sql).expect("a path");
    session.execute("CHECKPOINT").expect("a checkpoint");
    overwrite(&copy.pgdata.join(&docs), 8192 + 4000);
    overwrite(&copy.pgdata.join(&docs), 3 * 8192 + 16);
    let folder = scratch.path().join("plain");
    let annex = scratch.path().join("annex");
    let from = copy.tablespaces.first().expect("a tablespace");
    let mapping = format!(
        "--tablespace-mapping={}={}",
        from.display(),
        annex.display()
    );
    base_backup(&server, &folder, &[&mapping, "--no-verify-checksums"]);
    let archives = archives(&server, &scratch);
    server.stop(StopMode::Fast).expect("a stop");

    let expected = seen(&check_json(&folder, 1));
    assert!(expected.iter().any(|(rule, path, block, _)| {
        rule == "checksum-mismatch" && *path == docs && *block == Some(1)
    }));
    assert!(
        expected
            .iter()
            .all(|(rule, ..)| !rule.starts_with("backup-")),
        "damaged before the backup: {expected:?}"
    );
    assert_eq!(seen(&check_json(&copy.pgdata, 1)), expected, "stopped");
    for archive in &archives {
        let document = check_json(archive, 1);
        assert_eq!(seen(&document), expected, "{}", archive.display());
        assert_eq!(document.target.kind, "tar-backup");
    }

    // At level pages packed archives are looked at while they are unpacked.
    let pages = |folder: &Path| {
        let ran = pgclinic(&[
            "check",
            text(folder),
            "--level",
            "pages",
            "--format",
            "json",
        ])
        .exits(1);
        let document = ran.document();
        let told = document.coverage.not_checked.len();
        let counted = (
            document.coverage.pages,
            document.coverage.zeroed_pages,
            told,
        );
        (seen(&document), document.coverage.bytes_seen, counted)
    };
    let passes_by = |folder: &PathBuf| {
        let base = base_archive_in(folder).expect("an archive");
        PackedArchives::of(&base).expect("archives").is_some()
    };
    // Beside LZ4 and zstd the WAL stays plain.
    assert!(archives[3].join("pg_wal.tar").exists());
    let passing: Vec<bool> = archives.iter().map(passes_by).collect();
    assert_eq!(passing, [false, true, true, true]);
    let expected = pages(archives.first().expect("plain"));
    assert!(
        expected
            .0
            .iter()
            .any(|(rule, ..)| rule == "checksum-mismatch")
    );
    for archive in &archives {
        assert_eq!(pages(archive), expected, "{}", archive.display());
    }
    assert_eq!(pages(&folder).0, expected.0);

    let gzip = archives.get(1).expect("gzip").join("base.tar.gz");
    pgclinic(&["measure", text(&gzip)]).exits(3);
    pgclinic(&[
        "inspect",
        text(&gzip),
        "--relation",
        "public.docs",
        "--block",
        "1",
    ])
    .exits(0);
    let to = scratch.path().join("rescued");
    pgclinic(&["salvage", text(&gzip), "--to", text(&to)]).exits(1);
}

#[test]
fn a_cut_archive_is_damaged_by_its_manifest_and_incomplete_without() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut server = copy.start_with(&as_primary()).expect("a server");
    let scratch = Scratch::new(&run_as(), None).expect("a folder");
    let folder = scratch.path().join("cut");
    base_backup(&server, &folder, &["--format=tar", "--compress=zstd:1"]);
    server.stop(StopMode::Fast).expect("a stop");
    let sound = check_json(&folder, 3);
    assert_eq!(count(&sound, Severity::Damage), 0, "{}", told(&sound));

    let wal = folder.join("pg_wal.tar");
    std::fs::remove_file(&wal)
        .or_else(|_| std::fs::remove_file(folder.join("pg_wal.tar.zst")))
        .expect("WAL");
    let without = told(&check_json(&folder, 3));
    assert!(without.contains("not checked: WAL from "), "{without}");

    let archive = folder.join("base.tar.zst");
    let len = archive.metadata().expect("an archive").len();
    let file = File::options()
        .write(true)
        .open(&archive)
        .expect("an archive");
    // The control file comes last: it is gone with the end.
    file.set_len(len * 9 / 10).expect("a cut");
    let document = check_json(&folder, 1);
    assert!(
        told(&document).contains("not checked: the archives whole: base.tar.zst: "),
        "{}",
        told(&document)
    );
    assert!(
        document
            .findings
            .iter()
            .any(|finding| finding.rule == "backup-file-missing")
    );
    file.set_len(100).expect("a cut");
    let failed = pgclinic(&["check", text(&folder)]).exits(2);
    assert!(failed.err.contains("base.tar.zst"), "{}", failed.err);
}
