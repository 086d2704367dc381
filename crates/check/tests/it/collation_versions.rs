//! Collations of a real server whose recorded version is another one than the machine's.

use std::sync::Arc;

use pgclinic_cluster::{Cluster, MachineCollations};
use pgclinic_model::{CheckDocument, Level, Verdict};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{TempCopy, all_majors, checked, copy_of, seed};

/// Two indexes that lean on a library's order, and three that do not.
const TABLE: &str = r#"
CREATE COLLATION elder (provider = libc, locale = 'C.UTF-8');
CREATE TABLE words (own text COLLATE elder, plain text COLLATE "C", body jsonb, free text);
CREATE INDEX words_own ON words (own);
CREATE INDEX words_pattern ON words (own text_pattern_ops);
CREATE INDEX words_hash ON words USING hash (own);
CREATE INDEX words_plain ON words (plain);
CREATE INDEX words_body ON words (body);
CREATE INDEX words_free ON words (plain, free);
"#;

const AGE_COLLATION: &str = "UPDATE pg_collation SET collcollate = 'xx_XX.utf8', collctype = 'xx_XX.utf8', collversion = '2.28' WHERE collname = 'elder'";
const AGE_DATABASE: &str = "UPDATE pg_database SET datcollate = 'xx_XX.utf8', datctype = 'xx_XX.utf8', datcollversion = '2.28' WHERE datname = 'elderly'";

fn aged(major: u16) -> TempCopy {
    let installation = all_majors()
        .into_iter()
        .find(|installation| installation.major == major)
        .unwrap();
    let copy = copy_of(&seed(&installation, Checksums::On));
    let mut server = copy.start().unwrap();
    let mut session = server.connect("postgres").unwrap();
    session
        .execute("CREATE DATABASE elderly TEMPLATE template0")
        .unwrap();
    let mut elderly = server.connect("elderly").unwrap();
    elderly.execute(TABLE).unwrap();
    elderly.execute(AGE_COLLATION).unwrap();
    session.execute(AGE_DATABASE).unwrap();
    drop((session, elderly));
    server.stop(StopMode::Fast).unwrap();
    copy
}

fn check(copy: &TempCopy, libc: Option<&str>) -> CheckDocument {
    let source = DataDirectory::open(&copy.pgdata).unwrap();
    let mut cluster = Cluster::open(Arc::new(source)).unwrap();
    cluster.machine = MachineCollations {
        libc: libc.map(str::to_owned),
        icu: None,
    };
    checked(&cluster, Level::Structure)
}

fn other_version_is_told(major: u16) {
    let copy = aged(major);
    let document = check(&copy, Some("2.36"));
    assert_eq!(
        document.verdict,
        Verdict::Healthy,
        "a warning damages nothing"
    );
    let [finding] = document.findings.as_slice() else {
        panic!("one finding a database: {:?}", document.findings);
    };
    assert_eq!(finding.rule, "collation-version-changed");
    assert_eq!(finding.place.database.as_deref(), Some("elderly"));
    assert_eq!(
        finding.message,
        "3 indexes are in the order of collation \"default\" and 1 more collation, \
         which was recorded with version 2.28 and has 2.36 on this machine"
    );
    let mut indexes: Vec<&str> = finding.facts["indexes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|name| name.as_str())
        .collect();
    indexes.sort_unstable();
    assert_eq!(
        indexes,
        ["public.words_body", "public.words_free", "public.words_own"]
    );
    let reindex = &finding.remedies[0].command;
    assert!(
        reindex.contains("REINDEX INDEX public.words_body;"),
        "{reindex}"
    );

    assert_eq!(check(&copy, Some("2.28")).findings, []);
    let unknown = check(&copy, None);
    assert_eq!(unknown.findings, []);
    assert_eq!(unknown.verdict, Verdict::Healthy);
    let entry = &unknown.coverage.not_checked;
    assert!(
        entry.iter().any(|entry| entry.inherent
            && entry.what == "collation versions of 3 indexes in database elderly"),
        "{entry:?}"
    );
}

#[test]
fn another_version_is_told_in_fifteen() {
    other_version_is_told(15);
}

#[test]
fn another_version_is_told_in_eighteen() {
    other_version_is_told(18);
}
