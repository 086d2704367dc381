//! Chains of incremental backups: put together as `pg_combinebackup` does, without writing
//! anything.

use pgclinic_cluster::{Cluster, OpenOptions};
use pgclinic_model::{CheckDocument, Severity};

use crate::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Ran, Seen, apart_from_manifests, count, hold_ledger, pgclinic, seen, text, told};
use pgclinic_servers::{Checksums, Scratch, StopMode, everywhere};
use pgclinic_source::{DataDirectory, EntryKind, Source, read_all};
use pgclinic_testkit::{
    CHANGES, Load, Packing, all_majors, archived, busy, copy_of, directory, execute, scratch, seed,
    server, started, streamed_backup, value, with_summaries,
};

/// A full backup, two that build on it, and a full one of the same moment as the last.
struct Backups {
    full: PathBuf,
    first: PathBuf,
    second: PathBuf,
    again: PathBuf,
    docs: String,
    _scratch: Scratch,
}

impl Backups {
    fn of_major(major: u16) -> Self {
        let copy = copy_of(&seed(&server(major), Checksums::On));
        let mut server = copy.start_with(&with_summaries()).expect("a server");
        let scratch = scratch();
        let folder = |name: &str| scratch.path().join(name);
        let (full, first) = (folder("full"), folder("first"));
        let (second, again) = (folder("second"), folder("again"));
        execute(
            &server,
            "CREATE TABLE shrunk AS SELECT g FROM generate_series(1, 100000) g",
        );
        execute(
            &server,
            "CREATE TABLE dropped AS SELECT g FROM generate_series(1, 1000) g",
        );
        streamed_backup(&server, &full, None);
        execute(&server, "DELETE FROM shrunk WHERE g > 20000");
        execute(&server, "VACUUM shrunk");
        execute(&server, "DROP TABLE dropped");
        execute(
            &server,
            "CREATE TABLE fresh AS SELECT g FROM generate_series(1, 5000) g",
        );
        streamed_backup(&server, &first, Some(&full));
        execute(
            &server,
            "INSERT INTO shrunk SELECT g FROM generate_series(1, 30000) g",
        );
        execute(&server, "UPDATE fresh SET g = -g WHERE g % 100 = 0");
        streamed_backup(&server, &second, Some(&first));
        streamed_backup(&server, &again, None);
        let docs = value(&server, "SELECT pg_relation_filepath('public.docs')");
        server.stop(StopMode::Fast).expect("a stop");
        Backups {
            full,
            first,
            second,
            again,
            docs,
            _scratch: scratch,
        }
    }

    fn links(&self) -> [&Path; 3] {
        [&self.full, &self.first, &self.second]
    }
}

/// `VERB links[0] --incremental links[1] …` with further arguments.
fn of_chain(verb: &str, links: &[&Path], more: &[&str]) -> Ran {
    let (full, others) = links.split_first().expect("a link");
    let mut line = vec![verb, text(full)];
    for link in others {
        line.extend(["--incremental", text(link)]);
    }
    line.extend(more);
    pgclinic(&line)
}

fn check_chain(links: &[&Path], exit: u8) -> CheckDocument {
    let ran = of_chain("check", links, &["--format", "json"]);
    let document = ran.document();
    assert_eq!(ran.exit, exit, "{}\n{}", told(&document), ran.err);
    hold_ledger(&document);
    document
}

/// Every file of relations with its bytes.
fn relations(source: &dyn Source) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left: Vec<String> = ["base", "global", "pg_tblspc"].map(String::from).to_vec();
    while let Some(folder) = left.pop() {
        for entry in source.list(&folder).expect("a directory") {
            let path = format!("{folder}/{}", entry.name);
            match entry.kind {
                EntryKind::Folder => left.push(path),
                EntryKind::File => {
                    let bytes = read_all(source, &path, 1 << 30).expect("a file");
                    assert_eq!(bytes.len() as u64, entry.len, "{path}");
                    found.insert(path, bytes);
                }
                EntryKind::Other => {}
            }
        }
    }
    // It says when the backup was taken.
    found.remove("global/pg_control");
    found
}

/// A server that never rests while its backups are taken.
#[test]
fn a_chain_of_a_server_under_load_is_silent() {
    let sending = busy()
        .with("max_wal_senders", "4")
        .with("wal_keep_size", "1GB");
    let (_copy, server) = started(18, Checksums::On, &sending.with("summarize_wal", "on"));
    let scratch = scratch();
    let links = ["full", "first", "second"].map(|name| scratch.path().join(name));
    let load = Load::start(&server, &[CHANGES]);
    let mut earlier = None;
    for link in &links {
        streamed_backup(&server, link, earlier);
        earlier = Some(link);
    }
    assert!(load.stop() > 0);

    let links = links.each_ref().map(PathBuf::as_path);
    for level in ["pages", "structure", "full"] {
        let ran = of_chain("check", &links, &["--level", level, "--format", "json"]).exits(3);
        let document = ran.document();
        hold_ledger(&document);
        assert!(document.needs_recovery);
        assert_eq!(seen(&document), Seen::new(), "{}", told(&document));
    }
}

fn open(links: &[&Path]) -> Cluster {
    let links = links
        .iter()
        .map(|link| (text(link).to_owned(), directory(link)));
    Cluster::open(OpenOptions::chain(links.collect())).expect("a chain")
}

#[test]
fn a_chain_is_the_full_backup_of_its_last_moment() {
    for installation in all_majors() {
        if installation.major < 17 {
            continue;
        }
        let backups = Backups::of_major(installation.major);
        let chain = open(&backups.links());
        let resolved = relations(chain.source().as_ref());
        let again = DataDirectory::open(&backups.again).expect("a directory");
        let expected = relations(&again);
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&resolved), names(&expected));
        for (path, bytes) in &expected {
            assert!(resolved.get(path) == Some(bytes), "{path} differs");
        }
        let parts = std::fs::read_dir(backups.second.join("global")).expect("a directory");
        let parts = parts.filter(|entry| {
            let name = entry.as_ref().expect("an entry").file_name();
            name.to_string_lossy().starts_with("INCREMENTAL.")
        });
        assert!(parts.count() > 10, "most files came in parts");

        let document = check_chain(&backups.links(), 3);
        assert_eq!(count(&document, Severity::Damage), 0, "{}", told(&document));
        assert_eq!(
            count(&document, Severity::Warning),
            0,
            "{}",
            told(&document)
        );
        assert_eq!(document.target.kind, "backup-chain");
        let gaps = told(&document);
        assert!(
            !gaps.contains("WAL from") && !gaps.contains("manifest"),
            "{gaps}"
        );
        let plain = pgclinic(&["check", text(&backups.again), "--format", "json"]).document();
        assert_eq!(document.coverage.pages, plain.coverage.pages);
    }
}

#[test]
fn every_verb_takes_a_chain() {
    let backups = Backups::of_major(18);
    let links = backups.links();
    of_chain("measure", &links, &[]).exits(0);
    let page = of_chain(
        "inspect",
        &links,
        &["--relation", "public.fresh", "--block", "2"],
    );
    page.exits(0);
    let to = backups.full.with_extension("rescued");
    of_chain("salvage", &links, &["--to", text(&to)]).exits(0);
    let rows = std::fs::read_to_string(to.join("clinic/public.shrunk.csv"));
    assert_eq!(rows.expect("rows").lines().count(), 50_001);
    let chain = [
        "--incremental-a",
        text(links[1]),
        "--incremental-a",
        text(links[2]),
    ];
    let diff = [&["diff", text(links[0]), text(&backups.again)], &chain[..]].concat();
    pgclinic(&diff).exits(0);
}

#[test]
fn what_is_no_chain_is_refused_with_a_reason() {
    let backups = Backups::of_major(18);
    let [full, first, second] = backups.links();
    let refused = |links: &[&Path], why: &str| {
        let ran = of_chain("check", links, &[]).exits(2);
        assert!(ran.err.contains(why), "{}", ran.err);
        ran.err
    };
    let alone = pgclinic(&["check", text(first)]).exits(2).err;
    assert!(alone.contains("--incremental"), "{alone}");
    let missing = refused(&[full, second], "a link is missing: ");
    assert!(missing.contains("second builds on"), "{missing}");
    let order = refused(&[full, second, first], "the wrong order");
    let right = format!(
        "in order they are {}, {}, {}",
        text(full),
        text(first),
        text(second)
    );
    assert!(order.contains(&right), "{order}");
    refused(&[first, full, second], "the wrong order");
    refused(&[full, &backups.again], "are both full backups");
    refused(&[full, first, first], "is named twice");
    refused(&[first, second], "a link is missing");
    let copy = copy_of(&seed(&server(18), Checksums::On));
    refused(&[full, &copy.pgdata], "there is no backup_label");
}

/// A link whose label fits and whose files are of another cluster: a restored folder was mixed up.
#[test]
fn links_of_two_clusters_are_no_chain() {
    let backups = Backups::of_major(18);
    let [full, first, second] = backups.links();
    let other = copy_of(&seed(&server(18), Checksums::Off));
    let control = "global/pg_control";
    std::fs::copy(other.pgdata.join(control), first.join(control)).expect("a copy");
    for links in [&[full, first][..], &[full, first, second]] {
        let ran = of_chain("check", links, &[]).exits(2);
        let words = format!("{} is of the cluster ", text(full));
        assert!(ran.err.contains(&words), "{}", ran.err);
        let words = format!("{} of the cluster ", text(first));
        assert!(ran.err.contains(&words), "{}", ran.err);
        assert!(ran.err.contains("they are no chain"), "{}", ran.err);
    }
}

/// Each link may be a folder or archives of its own.
#[test]
fn a_chain_of_archives_is_the_chain_of_its_folders() {
    let backups = Backups::of_major(18);
    let [full, first, second] = backups.links();
    let expected = check_chain(&[full, first, second], 3);
    let [plain, gzip, lz4, zstd] = [
        archived(full, Packing::Plain),
        archived(first, Packing::Gzip),
        archived(first, Packing::Lz4),
        archived(second, Packing::Zstd),
    ];
    let folder = plain.parent().expect("a directory");
    for links in [
        [&*plain, &*gzip, &*zstd],
        [full, &*lz4, &*zstd],
        [folder, first, &*zstd],
    ] {
        let document = check_chain(&links, 3);
        assert_eq!(document.target.kind, "backup-chain");
        assert_eq!(
            apart_from_manifests(&document),
            apart_from_manifests(&expected),
            "{}",
            told(&document)
        );
        let counted = |document: &CheckDocument| {
            let coverage = &document.coverage;
            (coverage.pages, coverage.relations, coverage.bytes_checked)
        };
        assert_eq!(counted(&document), counted(&expected));
    }
    let to = full.with_extension("rescued");
    let links = [&*plain, &*gzip, &*zstd];
    of_chain("salvage", &links, &["--to", text(&to)]).exits(0);
    let rows = std::fs::read_to_string(to.join("clinic/public.shrunk.csv"));
    assert_eq!(rows.expect("rows").lines().count(), 50_001);

    // What is wrong with an archive is wrong with the chain.
    let file = std::fs::File::options().write(true).open(&zstd);
    let len = zstd.metadata().expect("an archive").len();
    file.expect("an archive")
        .set_len(len - 40)
        .expect("a truncation");
    let lines = told(&of_chain("check", &links, &["--format", "json"]).document());
    assert!(
        lines.contains("the archives whole: base.tar.zst: "),
        "{lines}"
    );
    // A chain without a link is no chain, in whatever form.
    let ran = of_chain("check", &[&*plain, &*zstd], &[]).exits(2);
    assert!(ran.err.contains("a link is missing"), "{}", ran.err);
}

/// What `pg_combinebackup` writes is what a chain is read as.
#[test]
fn a_chain_is_what_pg_combinebackup_makes_of_it() {
    for major in [17, 18] {
        let servers = everywhere().into_iter();
        let mut own = servers.filter(|installation| installation.major == major);
        let Some(program) = own.find_map(|own| own.tool("pg_combinebackup")) else {
            eprintln!("there is no pg_combinebackup of {major}: nothing is compared");
            continue;
        };
        let backups = Backups::of_major(major);
        let to = backups.full.with_extension("combined");
        let mut combine = Command::new(program);
        combine.args(backups.links()).arg("--output").arg(&to);
        let output = combine.output().expect("a program");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let chain = open(&backups.links());
        let resolved = relations(chain.source().as_ref());
        let expected = relations(&DataDirectory::open(&to).expect("a directory"));
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&resolved), names(&expected));
        for (path, bytes) in &expected {
            assert!(resolved.get(path) == Some(bytes), "{path} differs");
        }
    }
}

fn change(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).expect("a file");
    edit(&mut bytes);
    std::fs::write(path, bytes).expect("a file");
}

#[test]
fn damage_in_a_link_is_found_where_its_pages_count() {
    let backups = Backups::of_major(18);
    let [full, first, second] = backups.links();
    // The page is the oldest link's own, and nobody wrote it since; the other copy is hurt alike.
    for folder in [full, backups.again.as_path()] {
        change(&folder.join(&backups.docs), |bytes| {
            bytes[8192 + 4000] ^= 0x20
        });
    }
    let plain = pgclinic(&["check", text(&backups.again), "--format", "json"]).exits(1);
    let document = check_chain(&[full, first, second], 1);
    assert_eq!(
        apart_from_manifests(&document),
        apart_from_manifests(&plain.document()),
        "{}",
        told(&document)
    );
    let changed = document
        .findings
        .iter()
        .find(|one| one.rule == "backup-file-changed");
    let changed = changed.unwrap_or_else(|| panic!("{}", told(&document)));
    assert!(
        changed.message.starts_with(&format!("in {}: ", text(full))),
        "{}",
        changed.message
    );
    assert_eq!(changed.place.relation.as_deref(), Some("docs"));
    assert!(changed.caused_by.is_some(), "the page is the story");

    // A head that lies: its file cannot be read, and its manifest knows.
    let (folder, name) = backups.docs.rsplit_once('/').expect("a directory");
    let part = format!("{folder}/INCREMENTAL.{name}");
    change(&second.join(&part), |bytes| bytes[8] ^= 0xff);
    change(&second.join(&part), |bytes| bytes[11] ^= 0xff);
    let document = check_chain(&[full, first, second], 1);
    let lines = told(&document);
    assert!(document.coverage.bytes_unreadable > 0, "{lines}");
    assert!(
        lines.contains("INCREMENTAL.") && lines.contains("backup-file-changed"),
        "{lines}"
    );

    // Another backup's manifest, and a file that is gone.
    std::fs::copy(full.join("backup_manifest"), first.join("backup_manifest")).expect("a copy");
    std::fs::remove_file(second.join(&part)).expect("a file");
    let lines = told(&check_chain(&[full, first, second], 1));
    assert!(
        lines.contains("the manifest is of a backup that begins at"),
        "{lines}"
    );
    assert!(lines.contains("backup-file-missing"), "{lines}");
}
