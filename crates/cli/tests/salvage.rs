//! The command as a person meets it: files, account, exit codes, refusals.

mod common;

use std::fs;

use common::{files, pgclinic, text};
use pgclinic_rows::{Account, Outcome};
use pgclinic_servers::Checksums;
use pgclinic_testkit::{copy_of, seed, server};

#[test]
fn a_whole_cluster_gives_files_and_an_account_and_is_not_touched() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let before = files(&copy.pgdata);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let to = ["salvage", text(&copy.pgdata), "--to", text(&out)];

    let ran = pgclinic(&[&to[..], &["--relation", "sales.*"]].concat()).exits(0);
    assert!(ran.out.starts_with("WHOLE  "), "{}", ran.out);
    let account = fs::read(out.join("salvage.json")).expect("an account");
    let account: Account = serde_json::from_slice(&account).expect("a document");
    assert_eq!(account.outcome, Outcome::Whole);
    let orders = account
        .tables
        .iter()
        .find(|table| table.table == "orders")
        .expect("the table");
    assert_eq!((orders.rows.live, orders.rows.written), (2880, 2880));
    let csv = fs::read_to_string(out.join("clinic/sales.orders.csv")).expect("a file");
    assert!(csv.starts_with("id,customer,placed,status,total\n1,1,2024-01-02,new,1.25\n"));
    assert_eq!(csv.len() as u64, orders.file_bytes);

    let page = pgclinic(&[
        "report",
        text(&out.join("salvage.json")),
        "--format",
        "html",
    ])
    .exits(0);
    assert!(page.out.contains("sales.orders"));

    let again = pgclinic(&to).exits(2);
    assert!(again.err.contains("is not empty"), "{}", again.err);
    let inside = copy.pgdata.join("rescued");
    let inside = pgclinic(&["salvage", text(&copy.pgdata), "--to", text(&inside)]).exits(2);
    assert!(
        inside.err.contains("lies inside the data directory"),
        "{}",
        inside.err
    );
    assert!(files(&copy.pgdata) == before, "the target was written to");
}

#[test]
fn dead_versions_come_with_their_fate() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let words = [
        "--relation",
        "public.aborted",
        "--rows",
        "all",
        "--format",
        "copy",
    ];
    let to = ["salvage", text(&copy.pgdata), "--to", text(&out)];
    pgclinic(&[&to[..], &words].concat()).exits(0);
    let rows = fs::read_to_string(out.join("clinic/public.aborted.copy")).expect("a file");
    let of = |verdict: &str| {
        let fate = |row: &&str| row.split('\t').nth(3) == Some(verdict);
        rows.lines().filter(fate).count()
    };
    assert_eq!(of("live"), 202);
    assert_eq!(of("aborted"), 15);
}
