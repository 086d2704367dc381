//! The same damage in every form in which people have their pages: the same findings.

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Ran, pgclinic, seen, text, told};
use pgclinic_servers::{Checksums, ConnectionTarget, StopMode};
use pgclinic_testkit::{
    copy_of, execute, overwrite, scratch, seed, server, streamed_backup, value, with_summaries,
};

/// The files of a plain backup in an archive.
fn packed(folder: &Path) -> PathBuf {
    let to = folder.with_extension("tar");
    std::fs::create_dir(&to).expect("a directory");
    let archive = to.join("base.tar");
    let entries = std::fs::read_dir(folder).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut tar = Command::new("tar");
    tar.arg("-C")
        .arg(folder)
        .arg("-cf")
        .arg(&archive)
        .args(names);
    assert!(tar.status().expect("tar").success());
    let manifest = "backup_manifest";
    std::fs::copy(folder.join(manifest), to.join(manifest)).expect("a manifest");
    archive
}

#[test]
fn the_same_damage_gives_the_same_findings_in_every_form() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let mut server = copy.start_with(&with_summaries()).expect("a server");
    let scratch = scratch();
    let docs = value(&server, "SELECT pg_relation_filepath('public.docs')");
    let index = value(&server, "SELECT pg_relation_filepath('public.docs_pkey')");
    execute(&server, "CHECKPOINT");
    overwrite(&copy.pgdata.join(&docs), 8192 + 4000);
    overwrite(&copy.pgdata.join(&docs), 3 * 8192 + 16);
    overwrite(&copy.pgdata.join(&index), 8192 + 8);

    let full = scratch.path().join("full");
    let link = scratch.path().join("link");
    streamed_backup(&server, &full, None);
    execute(
        &server,
        "CREATE TABLE since AS SELECT g FROM generate_series(1, 5000) g",
    );
    streamed_backup(&server, &link, Some(&full));
    let archive = packed(&full);
    let url = ConnectionTarget::of(&server, "clinic").to_string();

    let check = |words: &[&str], level: &str| {
        let more = ["--level", level, "--format", "json"];
        let ran: Ran = pgclinic(&[&["check"], words, &more[..]].concat());
        let document = ran.document();
        assert_eq!(ran.exit, 1, "{words:?}: {}\n{}", told(&document), ran.err);
        let mut found = seen(&document);
        found.retain(|(rule, ..)| !rule.starts_with("backup-"));
        found
    };
    let data = [text(&copy.pgdata)];
    let (running, stream) = (check(&data, "pages"), check(&[&url], "pages"));
    server.stop(StopMode::Fast).expect("a stop");

    let stopped = check(&data, "pages");
    let places: Vec<_> = stopped
        .iter()
        .map(|(_, path, block, _)| (path.as_str(), *block))
        .collect();
    for place in [(&*docs, Some(1)), (&*docs, Some(3)), (&*index, Some(1))] {
        assert!(places.contains(&place), "{stopped:?}");
    }
    let chain = [text(&full), "--incremental", text(&link)];
    let forms = [
        ("a running server's directory", running),
        ("a stream", stream),
        ("a plain backup", check(&data_of(&full), "pages")),
        ("an archive", check(&data_of(&archive), "pages")),
        ("a chain", check(&chain, "pages")),
    ];
    for (form, found) in forms {
        assert_eq!(found, stopped, "{form}");
    }
    // What pages say of each other is judged where recovery is done only: backups agree with each
    // other.
    let plain = check(&data_of(&full), "structure");
    assert!(plain.is_superset(&stopped), "{plain:?}");
    for form in [&data_of(&archive)[..], &chain] {
        assert_eq!(check(form, "structure"), plain, "{form:?}");
    }
}

fn data_of(path: &Path) -> [&str; 1] {
    [text(path)]
}
