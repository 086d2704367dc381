//! Base backups in archives: every packing gives what the folder gives, and archives that were cut
//! are told.

use pgclinic_model::{CheckDocument, Severity};

use crate::common;

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{check_json, count, pgclinic, seen, text, told};
use pgclinic_servers::{Checksums, Scratch, Server, StopMode};
use pgclinic_source::TarBackup;
use pgclinic_source::tar::{PackedArchives, base_archive_in};
use pgclinic_testkit::{
    as_primary, base_backup, copy_of, overwrite, plain_backup, scratch, seed, server,
};

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

/// `check` of an archive at this level, with its exit code.
#[track_caller]
fn check_at(archive: &Path, level: &str, exit: u8) -> CheckDocument {
    let line = ["check", text(archive), "--format", "json", "--level", level];
    let ran = pgclinic(&line);
    let document = ran.document();
    assert_eq!(ran.exit, exit, "{}\n{}", told(&document), ran.err);
    document
}

/// The names in a folder: `first`, then the others, then `last`.
fn names(folder: &Path, first: &[&str], last: &[&str]) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let mut names: Vec<String> = names.map(|name| name.expect("UTF-8")).collect();
    names.retain(|name| !first.contains(&&**name) && !last.contains(&&**name));
    names.sort();
    let first = first.iter().map(|name| (*name).to_owned());
    let last = last.iter().map(|name| (*name).to_owned());
    first.chain(names).chain(last).collect()
}

/// These names of a folder in an archive, with what links of tablespaces lead to.
fn tarred(folder: &Path, names: &[String], archive: &Path) {
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder).arg("-chf").arg(archive);
    let made = tar.args(names).status().expect("tar");
    assert!(made.success());
}

/// The same packed: `NAME.tar.gz` for `NAME.tar`.
fn gzipped(folder: &Path, names: &[String], archive: &Path) -> PathBuf {
    tarred(folder, names, archive);
    let mut gzip = Command::new("gzip");
    let made = gzip.args(["-1", "-f"]).arg(archive).status().expect("gzip");
    assert!(made.success());
    archive.with_extension("tar.gz")
}

/// Rules and files of damage.
fn damage(document: &CheckDocument) -> Vec<(&str, &str)> {
    let findings = document.findings.iter();
    findings
        .filter(|finding| finding.severity == Severity::Damage)
        .map(|finding| (&*finding.rule, &*finding.place.path))
        .collect()
}

#[track_caller]
fn hold_undamaged(document: &CheckDocument) {
    assert_eq!(count(document, Severity::Damage), 0, "{}", told(document));
}

/// What comes out of packed archives is packed again to be read at any place.
#[track_caller]
fn takes_less_than_half(folder: &Path, spill_folder: &Path) {
    let base = base_archive_in(folder).expect("an archive");
    let mut go_on = |_: u64| ControlFlow::<()>::Continue(());
    let backup = TarBackup::open(&base, spill_folder, &mut go_on).expect("a backup");
    let (stored, unpacked) = (backup.stored_bytes(), backup.unpacked_bytes());
    assert!(unpacked > 16 << 20, "a whole cluster: {unpacked}");
    assert!(stored < unpacked / 2, "{stored} of {unpacked}");
}

#[test]
fn the_same_damage_gives_the_same_findings_in_every_form() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut server = copy.start_with(&as_primary()).expect("a server");
    let scratch = scratch();
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

    for archive in &archives[1..] {
        takes_less_than_half(archive, scratch.path());
    }

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
    let scratch = scratch();
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
    file.set_len(len * 9 / 10).expect("a truncation");
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
    std::fs::remove_file(folder.join("backup_manifest")).expect("a manifest");
    for level in ["pages", "structure", "full"] {
        let document = check_at(&archive, level, 3);
        let lines = told(&document);
        hold_undamaged(&document);
        let why = "not checked: the archives whole: base.tar.zst: ";
        assert!(lines.contains(why), "{level}: {lines}");
    }
    file.set_len(100).expect("a truncation");
    let failed = pgclinic(&["check", text(&folder)]).exits(2);
    assert!(failed.err.contains("base.tar.zst"), "{}", failed.err);
}

/// What comes behind the cut is not missing: nobody knows what came there.
#[test]
fn a_cut_archive_of_a_stopped_cluster_is_incomplete() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let scratch = scratch();
    let archive = scratch.path().join("cluster.tar");
    let orders = [
        names(&copy.pgdata, &["PG_VERSION", "global", "base"], &[]),
        names(&copy.pgdata, &["PG_VERSION", "base"], &["global"]),
    ];
    for order in orders {
        tarred(&copy.pgdata, &order, &archive);
        hold_undamaged(&check_at(&archive, "full", 0));
        let file = File::options().write(true).open(&archive);
        let file = file.expect("an archive");
        let len = file.metadata().expect("an archive").len();
        for tenths in [9, 7, 5, 3, 1] {
            file.set_len(len * tenths / 10 + 700).expect("a truncation");
            for level in ["pages", "structure", "full"] {
                let document = check_at(&archive, level, 3);
                hold_undamaged(&document);
                let lines = told(&document);
                let why = "not checked: the archives whole: cluster.tar: ";
                assert!(lines.contains(why), "{tenths} {level}: {lines}");
            }
        }
    }
}

/// Neither `PG_VERSION` nor the control file stands in front of the cut: databases tell which major
/// it is.
#[test]
fn an_archive_that_was_cut_in_front_of_its_version_is_incomplete() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let scratch = scratch();
    let archive = scratch.path().join("cluster.tar");
    let order = names(&copy.pgdata, &["base"], &["global", "PG_VERSION"]);
    tarred(&copy.pgdata, &order, &archive);
    hold_undamaged(&check_at(&archive, "full", 0));
    let file = File::options().write(true).open(&archive);
    let file = file.expect("an archive");
    let len = file.metadata().expect("an archive").len();
    for tenths in [8, 5, 0] {
        file.set_len(len * tenths / 10 + 200_700)
            .expect("a truncation");
        for level in ["pages", "structure", "full"] {
            let document = check_at(&archive, level, 3);
            hold_undamaged(&document);
            let lines = told(&document);
            let why = "not checked: the archives whole: cluster.tar: ";
            assert!(lines.contains(why), "{tenths} {level}: {lines}");
            let is_known = document.target.major == Some(15) && document.coverage.pages > 0;
            assert!(is_known || tenths == 0, "{lines}");
        }
    }
}

/// The same with the folder of the data directory, as `tar czf x.tgz data` makes it.
#[test]
fn so_is_one_with_the_folder_of_the_data_directory() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let scratch = scratch();
    let archive = scratch.path().join("cluster.tar");
    let home = copy.pgdata.parent().expect("a directory");
    let name = copy.pgdata.file_name().expect("a name").to_str();
    let name = name.expect("directories of tests have plain names");
    let order = [format!("{name}/base"), format!("{name}/PG_VERSION")];
    tarred(home, &order, &archive);
    let file = File::options().write(true).open(&archive);
    let file = file.expect("an archive");
    let len = file.metadata().expect("an archive").len();
    file.set_len(len * 9 / 10).expect("a truncation");
    let document = check_at(&archive, "structure", 3);
    hold_undamaged(&document);
    assert_eq!(document.target.major, Some(15), "{}", told(&document));
}

/// What is left is told, though nothing of it can be looked at.
#[test]
fn what_is_left_of_an_archive_of_an_unknown_version_is_told() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let scratch = scratch();
    let archive = scratch.path().join("cluster.tar");
    let cut = |names: [&str; 2], len: u64| {
        let names = names.map(str::to_owned);
        tarred(&copy.pgdata, &names, &archive);
        let file = File::options().write(true).open(&archive);
        let file = file.expect("an archive");
        assert!(file.metadata().expect("an archive").len() > len);
        file.set_len(len).expect("a truncation");
    };
    cut(["base/1/1259", "PG_VERSION"], 20_000);
    for level in ["pages", "structure", "full"] {
        let document = check_at(&archive, level, 3);
        hold_undamaged(&document);
        assert_eq!(document.target.major, None);
        let coverage = &document.coverage;
        let seen = (coverage.bytes_seen, coverage.bytes_checked);
        assert!(
            seen.0 > 10_000 && seen.1 == 0 && coverage.is_balanced(),
            "{coverage:?}"
        );
        let lines = told(&document);
        assert!(
            lines.contains("the archives whole: cluster.tar: "),
            "{lines}"
        );
        assert!(lines.contains("tells the version of PostgreSQL"), "{lines}");
    }
    let words = pgclinic(&["check", text(&archive)]).exits(3);
    assert!(
        words.first_line().starts_with("INCOMPLETE"),
        "{}",
        words.out
    );
    let failed = pgclinic(&["measure", text(&archive)]).exits(2);
    assert!(failed.err.contains("cluster.tar: "), "{}", failed.err);

    // That is no backup.
    cut(["postgresql.conf", "PG_VERSION"], 10_000);
    let failed = pgclinic(&["check", text(&archive)]).exits(2);
    assert!(failed.err.contains("no data directory"), "{}", failed.err);
}

/// A damaged page in front of the cut is damage all the same. An index among the shared relations,
/// which stand in front of the databases: of them only indexes have a second page.
fn a_shared_index(pgdata: &Path) -> String {
    let entries = std::fs::read_dir(pgdata.join("global")).expect("a directory");
    let numbers = entries.filter_map(|entry| {
        let entry = entry.expect("an entry");
        let len = entry.metadata().expect("a file").len();
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        (len == 2 * 8192).then_some(number)
    });
    format!("global/{}", numbers.min().expect("an index"))
}

#[test]
fn damage_in_front_of_the_cut_is_told() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let scratch = scratch();
    let hurt = a_shared_index(&copy.pgdata);
    overwrite(&copy.pgdata.join(&hurt), 8192 + 4000);
    let archive = scratch.path().join("cluster.tar");
    let order = names(&copy.pgdata, &["PG_VERSION", "global", "base"], &[]);
    tarred(&copy.pgdata, &order, &archive);
    let file = File::options().write(true).open(&archive);
    let file = file.expect("an archive");
    let len = file.metadata().expect("an archive").len();
    file.set_len(len / 2).expect("a truncation");
    let document = check_at(&archive, "structure", 1);
    let damage = damage(&document);
    assert!(
        damage.contains(&("checksum-mismatch", hurt.as_str())),
        "{damage:?}"
    );
    let elsewhere = damage.iter().any(|(_, path)| *path != hurt);
    assert!(!elsewhere, "{damage:?}");
}

#[test]
fn a_manifest_in_the_archive_is_held_against_what_passed_by() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut server = copy.start_with(&as_primary()).expect("a server");
    let scratch = scratch();
    let backup = |name: &str, arguments: &[&str]| {
        let folder = scratch.path().join(name);
        plain_backup(&copy, &server, &folder, arguments);
        folder
    };
    let usual = backup("usual", &[]);
    let sha = backup("sha", &["--manifest-checksums=SHA256"]);
    server.stop(StopMode::Fast).expect("a stop");
    let packed = |folder: &Path| {
        let names = names(folder, &["backup_label"], &["backup_manifest"]);
        gzipped(folder, &names, &scratch.path().join("monday.tar"))
    };

    let sound = check_at(&packed(&usual), "pages", 3);
    hold_undamaged(&sound);
    assert!(!told(&sound).contains("files against the manifest"));

    // Of the sums that were not made, none is guessed.
    let unknown = check_at(&packed(&sha), "pages", 3);
    hold_undamaged(&unknown);
    assert!(
        told(&unknown).contains(" files against the manifest, the first of them "),
        "{}",
        told(&unknown)
    );

    let settings = File::options()
        .write(true)
        .open(usual.join("postgresql.conf"));
    let settings = settings.expect("a file");
    settings.write_all_at(b"%", 0).expect("a write");
    let archive = packed(&usual);
    for level in ["pages", "structure"] {
        let changed = check_at(&archive, level, 1);
        let expected = [("backup-file-changed", "postgresql.conf")];
        assert_eq!(damage(&changed), expected, "{level}");
    }
}

/// `backup_manifest` lies beside `base.tar`; an archive of another name has nothing to do with it.
#[test]
fn a_manifest_beside_belongs_to_base_tar_only() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut server = copy.start_with(&as_primary()).expect("a server");
    let scratch = scratch();
    let folder = scratch.path().join("backup");
    plain_backup(&copy, &server, &folder, &[]);
    server.stop(StopMode::Fast).expect("a stop");
    let beside = scratch.path().join("beside");
    std::fs::create_dir(&beside).expect("a directory");
    let manifest = "backup_manifest";
    std::fs::rename(folder.join(manifest), beside.join(manifest)).expect("a manifest");
    std::fs::remove_file(folder.join("postgresql.conf")).expect("settings");
    let names = names(&folder, &["backup_label"], &[]);
    let monday = gzipped(&folder, &names, &beside.join("monday.tar"));
    let base = gzipped(&folder, &names, &beside.join("base.tar"));
    for level in ["pages", "structure"] {
        hold_undamaged(&check_at(&monday, level, 3));
        let expected = [("backup-file-missing", "postgresql.conf")];
        assert_eq!(damage(&check_at(&base, level, 1)), expected, "{level}");
    }
}

/// More small files than are kept come before what everything else needs.
#[test]
fn the_control_file_may_come_after_many_small_files() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let scratch = scratch();
    for number in 900_000..900_260 {
        let path = copy.pgdata.join(format!("base/1/{number}"));
        let file = File::create(path).expect("a file");
        file.set_len(1 << 20).expect("zeros");
    }
    let names = names(&copy.pgdata, &["PG_VERSION", "base"], &["global"]);
    let archive = gzipped(&copy.pgdata, &names, &scratch.path().join("many.tar"));
    let ran = pgclinic(&[
        "check",
        text(&archive),
        "--level",
        "pages",
        "--format",
        "json",
    ]);
    let document = ran.document();
    let lines = told(&document);
    hold_undamaged(&document);
    assert!(!lines.contains("control file"), "{lines}");
    assert_eq!(document.target.checksums, Some(true));
}
