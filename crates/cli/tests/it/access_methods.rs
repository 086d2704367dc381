//! Tables whose access method is not the server's own heap: by the handler in `pg_am`, whatever the
//! name.

use pgclinic_model::{CheckDocument, Severity, Verdict};

use crate::common;

use std::fs;
use std::path::Path;

use common::{check_json, count, pgclinic, text, told};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{TempCopy, clinic, copy_of, execute, open, seed, server};

/// A function of its own around the heap's code stands for the handler of an extension: the server
/// reads and writes such tables, and nothing but `pg_am` says that they are no plain heap.
const HANDLER: &str = "
CREATE FUNCTION other_handler(internal) RETURNS table_am_handler LANGUAGE internal AS 'heap_tableam_handler';";

fn filled(sql: &str) -> TempCopy {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut server = copy.start().expect("a server");
    execute(&server, sql);
    server.stop(StopMode::Fast).expect("the server stops");
    copy
}

fn file_of(pgdata: &Path, name: &str) -> String {
    let cluster = open(pgdata);
    let catalog = clinic(&cluster);
    let relation = catalog.by_name("public", name).expect("a relation");
    format!("base/{}/{}", catalog.database, relation.filenode)
}

/// Bytes without a pattern, as encryption leaves them.
fn scramble(path: &Path) {
    let len = fs::metadata(path).expect("a file").len();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let bytes = (0..len).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u8::try_from(state >> 56).expect("a byte")
    });
    fs::write(path, bytes.collect::<Vec<u8>>()).expect("a file");
}

#[track_caller]
fn gap<'d>(document: &'d CheckDocument, what: &str) -> (&'d str, bool) {
    let mut gaps = document.coverage.not_checked.iter();
    let gap = gaps.find(|gap| gap.what.contains(what));
    let gap = gap.unwrap_or_else(|| panic!("nothing of {what}: {}", told(document)));
    (&gap.why, gap.inherent)
}

#[test]
fn a_heap_under_another_name_is_a_heap() {
    let copy = filled(
        "CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler;
         CREATE ACCESS METHOD btree2 TYPE INDEX HANDLER bthandler;
         CREATE TABLE other_heap (id int, word text) USING heap2;
         INSERT INTO other_heap SELECT n, 'word ' || n FROM generate_series(1, 500) n;",
    );
    let document = check_json(&copy.pgdata, 0);
    assert_eq!(document.verdict, Verdict::Healthy, "{}", told(&document));
    let to = copy.pgdata.with_file_name("rows");
    let arguments = ["salvage", text(&copy.pgdata), "--to", text(&to)];
    let ran = pgclinic(&[&arguments[..], &["--relation", "public.other_heap"]].concat()).exits(0);
    assert!(ran.out.contains("500"), "{}", ran.out);

    let path = copy.pgdata.join(file_of(&copy.pgdata, "other_heap"));
    pgclinic_testkit::overwrite(&path, 8192);
    let document = check_json(&copy.pgdata, 1);
    assert!(count(&document, Severity::Damage) > 0, "its pages are read");
}

#[test]
fn tables_of_an_extension_are_not_checked_and_not_damaged() {
    let copy = filled(&format!(
        "{HANDLER}
         CREATE ACCESS METHOD columnar TYPE TABLE HANDLER other_handler;
         CREATE TABLE measures (id int PRIMARY KEY, word text) USING columnar;
         INSERT INTO measures SELECT n, repeat('word', 2000) FROM generate_series(1, 500) n;
         ALTER TABLE measures ALTER word SET STORAGE external;
         UPDATE measures SET word = word || 'x';
         CHECKPOINT;"
    ));
    let pgdata = &copy.pgdata;
    for name in ["measures", "measures_pkey"] {
        scramble(&pgdata.join(file_of(pgdata, name)));
    }
    for level in ["pages", "structure", "full"] {
        let arguments = ["check", text(pgdata), "--level", level, "--format", "json"];
        let document = pgclinic(&arguments).document();
        assert_eq!(
            document.verdict,
            Verdict::Healthy,
            "{level}: {}",
            told(&document)
        );
        for name in [
            "public.measures (",
            "public.measures_pkey (",
            "pg_toast.pg_toast_",
        ] {
            let (why, inherent) = gap(&document, name);
            let expected = "stored by the access method columnar, whose pages are not known here";
            assert_eq!((why, inherent), (expected, true), "{level}: {name}");
        }
    }
    let to = pgdata.with_file_name("rows");
    let ran = pgclinic(&["salvage", text(pgdata), "--to", text(&to)]).exits(3);
    assert!(ran.out.contains("access method columnar"), "{}", ran.out);
    pgclinic(&["measure", text(pgdata)]).exits(0);

    // Such an extension may keep its rows elsewhere: its file proves nothing.
    fs::remove_file(pgdata.join(file_of(pgdata, "measures"))).expect("a file");
    let document = check_json(pgdata, 0);
    assert_eq!(count(&document, Severity::Damage), 0, "{}", told(&document));
}

#[test]
fn pages_without_sense_beside_pg_tde_may_be_encrypted() {
    let plain =
        "CREATE TABLE secrets (id int); INSERT INTO secrets SELECT generate_series(1, 5000);";
    let method = "CREATE ACCESS METHOD tde_heap TYPE TABLE HANDLER other_handler;";
    let with = filled(&format!("{HANDLER} {method} {plain}"));
    scramble(&with.pgdata.join(file_of(&with.pgdata, "secrets")));
    let document = check_json(&with.pgdata, 3);
    let (why, inherent) = gap(&document, "public.secrets (");
    assert!(why.contains("may be encrypted") && !inherent, "{why}");

    let without = filled(plain);
    scramble(&without.pgdata.join(file_of(&without.pgdata, "secrets")));
    check_json(&without.pgdata, 1);
}
