//! Keys of rows that are lost, told by the indexes that survived.

use pgclinic_model::Glob;
use pgclinic_spill::MemoryPlan;

use crate::common;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use common::{options, salvaged};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

const WORK: &str = "\
CREATE TABLE public.shop (id int PRIMARY KEY, word text, amount numeric); \
INSERT INTO public.shop SELECT i, 'word, ' || i, i / 4.0 FROM generate_series(1, 2000) i; \
CREATE UNIQUE INDEX shop_word ON public.shop (word) INCLUDE (amount); \
UPDATE public.shop SET amount = 0 WHERE id BETWEEN 300 AND 310; \
DELETE FROM public.shop WHERE id BETWEEN 311 AND 320; \
VACUUM public.shop; CHECKPOINT";

#[test]
fn keys_of_lost_rows_are_listed() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    for statement in WORK.split("; ") {
        session.execute(statement).expect("a table");
    }
    let path = session
        .query_value("SELECT pg_relation_filepath('public.shop')")
        .expect("a path")
        .expect("a file");
    let rows = session
        .query("SELECT id, amount FROM public.shop WHERE ctid >= '(2,0)' AND ctid < '(3,0)'")
        .expect("rows");
    running.stop(StopMode::Fast).expect("stopped");
    let file = OpenOptions::new().write(true).open(copy.pgdata.join(path));
    file.and_then(|file| file.write_all_at(&[0xFF; 8192], 2 * 8192))
        .expect("hurt");

    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let account = salvaged(&copy.pgdata, &options(&destination, "csv"));
    let shop = account
        .tables
        .iter()
        .find(|table| table.table == "shop")
        .expect("the table");
    let indexes: Vec<&str> = shop
        .lost_keys
        .iter()
        .map(|keys| keys.index.as_str())
        .collect();
    assert_eq!(indexes, ["public.shop_pkey", "public.shop_word"]);
    let others = account
        .tables
        .iter()
        .filter(|table| !table.lost_keys.is_empty());
    assert_eq!(others.count(), 1);

    let lines = |number: usize| -> BTreeSet<String> {
        let keys = shop.lost_keys.get(number).expect("an index");
        let text = std::fs::read_to_string(destination.join(&keys.file)).expect("a list");
        let lines: BTreeSet<String> = text.lines().skip(1).map(str::to_owned).collect();
        assert_eq!(lines.len() as u64, keys.keys);
        lines
    };
    let expected = |line: &dyn Fn(&str, &str) -> String| -> BTreeSet<String> {
        rows.iter()
            .map(|row| match row.as_slice() {
                [Some(id), Some(amount)] => line(id, amount),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    assert!(rows.len() > 100);
    assert_eq!(lines(0), expected(&|id, _| id.to_owned()));
    assert_eq!(
        lines(1),
        expected(&|id, amount| format!("\"word, {id}\",{amount}"))
    );
    assert_eq!(shop.rows.written + rows.len() as u64, 1990);

    // Where memory has no room for all keys, the account says how many are not on the list.
    let destination = folder.path().join("small");
    let mut options = options(&destination, "csv");
    options.memory = MemoryPlan::new(16 << 10);
    options.selection.relations = vec![Glob::new("public.shop")];
    let account = salvaged(&copy.pgdata, &options);
    let [shop] = account.tables.as_slice() else {
        panic!("{account:?}");
    };
    for keys in &shop.lost_keys {
        assert!((1..rows.len() as u64).contains(&keys.keys), "{keys:?}");
        let omitted = rows.len() as u64 - keys.keys;
        let told = format!(
            "the list of lost keys of {} is not whole: {omitted} more of its entries",
            keys.index
        );
        assert!(
            shop.notes.iter().any(|note| note.starts_with(&told)),
            "{:?}",
            shop.notes
        );
    }
    assert_eq!(shop.lost_keys.len(), 2);
}

/// Lists of indexes whose names are long, or equal but for case, have names of their own that every
/// disk takes.
#[test]
fn lists_have_names_that_disks_take() {
    let (table, index) = ("ä".repeat(31), "ö".repeat(31));
    let work = format!(
        "CREATE TABLE public.\"{table}\" (id int, word text); \
         INSERT INTO public.\"{table}\" SELECT i, 'word ' || i FROM generate_series(1, 2000) i; \
         CREATE UNIQUE INDEX \"{index}\" ON public.\"{table}\" (word); \
         CREATE UNIQUE INDEX \"Keys\" ON public.\"{table}\" (id); CREATE UNIQUE INDEX \"keys\" ON public.\"{table}\" (id); \
         VACUUM public.\"{table}\"; CHECKPOINT"
    );
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    for statement in work.split("; ") {
        session.execute(statement).expect("a table");
    }
    let path = session.query_value(&format!(
        "SELECT pg_relation_filepath('public.\"{table}\"')"
    ));
    let path = path.expect("a path").expect("a file");
    running.stop(StopMode::Fast).expect("stopped");
    let file = OpenOptions::new().write(true).open(copy.pgdata.join(path));
    file.and_then(|file| file.write_all_at(&[0xFF; 8192], 2 * 8192))
        .expect("hurt");

    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let account = salvaged(&copy.pgdata, &options(&destination, "csv"));
    let hurt = account.tables.iter().find(|one| one.table == table);
    let lists = &hurt.expect("the table").lost_keys;
    assert_eq!(lists.len(), 3);
    let mut names = BTreeSet::new();
    for list in lists {
        let (_, name) = list.file.rsplit_once('/').expect("a directory");
        assert!(name.len() < 250, "{name}");
        let text = std::fs::read_to_string(destination.join(&list.file)).expect("a list");
        assert_eq!(text.lines().count() as u64, list.keys + 1);
        names.insert(name.to_lowercase());
    }
    assert_eq!(names.len(), 3, "{names:?}");
}
