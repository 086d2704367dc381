//! What a run advises, and what its exit code says: nothing is promised that is not proven, and
//! nothing is told twice.

use pgclinic_model::document::{DiffDocument, DiffVerdict, PlanStep};
use pgclinic_model::plan::Safety;
use pgclinic_model::{CheckDocument, Finding, Verdict};

use crate::common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{Ran, check_json, pgclinic, pgclinic_stopped, text, told};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, Session, StopMode};
use pgclinic_testkit::{TempCopy, all_majors, copy_of, execute, seed};

const PAGE: u64 = 8192;
/// A table with an index and so many rows on a page that its first page is full.
const KEYED: &str = "CREATE TABLE public.keyed AS SELECT i AS id, 'row ' || i AS what FROM generate_series(1, 2000) AS i;
ALTER TABLE public.keyed ADD PRIMARY KEY (id);
VACUUM public.keyed";

fn newest(checksums: Checksums) -> TempCopy {
    let installation = all_majors().pop().expect("the newest");
    copy_of(&seed(&installation, checksums))
}

fn clinic(server: &Server) -> Session {
    server.connect("clinic").expect("a session")
}

fn path_of(session: &mut Session, relation: &str) -> String {
    let sql = format!("SELECT pg_relation_filepath('{relation}')");
    session.query_value(&sql).expect(&sql).expect("a path")
}

/// A copy with the table `keyed`, shut down, and the files of the table and of its key.
fn keyed(checksums: Checksums) -> (TempCopy, PathBuf, PathBuf) {
    let copy = newest(checksums);
    let mut server = copy.start().expect("a server");
    for statement in KEYED.split(';') {
        execute(&server, statement);
    }
    let mut session = clinic(&server);
    let paths = ["public.keyed", "public.keyed_pkey"].map(|name| path_of(&mut session, name));
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
    let [table, key] = paths.map(|path| copy.pgdata.join(path));
    (copy, table, key)
}

fn page_of(file: &Path, block: u64) -> Vec<u8> {
    let mut page = vec![0; 8192];
    let opened = std::fs::File::open(file).expect("a file");
    opened
        .read_exact_at(&mut page, block * PAGE)
        .expect("a page");
    page
}

fn write(file: &Path, offset: u64, bytes: &[u8]) {
    let mut options = std::fs::File::options();
    let opened = options.write(true).open(file).expect("a file");
    opened.write_all_at(bytes, offset).expect("hurt");
}

/// Something over the middle of a page that its checksum does not know of.
fn overwrite(file: &Path, block: u64) {
    write(file, block * PAGE + 6000, &[7; 64]);
}

fn u16_of(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}

/// Where the row with this line pointer begins on its page.
fn row_at(page: &[u8], item: usize) -> usize {
    usize::from(u16_of(page, 24 + 4 * (item - 1)) & 0x7FFF)
}

fn steps(document: &CheckDocument) -> Vec<&str> {
    document
        .plan
        .iter()
        .map(|step| step.name.as_str())
        .collect()
}

fn step<'a>(document: &'a CheckDocument, name: &str) -> &'a PlanStep {
    let found = document.plan.iter().find(|step| step.name == name);
    found.unwrap_or_else(|| panic!("{name}: {:?}", document.plan))
}

fn finding<'a>(document: &'a CheckDocument, rule: &str) -> &'a Finding {
    let found = document
        .findings
        .iter()
        .find(|finding| finding.rule == rule);
    found.unwrap_or_else(|| panic!("{rule}: {}", told(document)))
}

fn check_full(copy: &TempCopy) -> CheckDocument {
    check_full_with(copy, &[])
}

fn check_full_with(copy: &TempCopy, more: &[&str]) -> CheckDocument {
    let words = ["check", text(&copy.pgdata), "--level", "full"];
    let words = [&words[..], &["--format", "json"], more].concat();
    pgclinic(&words).exits(1).document()
}

#[test]
fn an_index_alone_is_made_again_and_its_table_comes_first_where_it_is_damaged() {
    let (copy, table, key) = keyed(Checksums::On);
    overwrite(&key, 1);
    let document = check_json(&copy.pgdata, 1);
    let reindex = step(&document, "reindex");
    assert_eq!(reindex.safety, Safety::Exact, "{reindex:?}");
    assert_eq!(
        reindex.commands,
        ["REINDEX INDEX CONCURRENTLY public.keyed_pkey;"]
    );
    assert_eq!(
        steps(&document),
        ["secure-a-copy", "reindex", "check-again"]
    );
    // No row is at stake: there is nothing to salvage.
    overwrite(&table, 0);
    let document = check_json(&copy.pgdata, 1);
    assert_eq!(
        steps(&document),
        [
            "secure-a-copy",
            "salvage-rows",
            "restore-page-from-copy",
            "reindex",
            "check-again"
        ]
    );
    let reindex = step(&document, "reindex");
    assert_eq!(reindex.safety, Safety::Lossy, "{reindex:?}");
    let command = reindex.commands.concat();
    assert!(
        command
            .starts_with("REINDEX INDEX public.keyed_pkey; -- only after public.keyed is mended"),
        "{command}"
    );
    let salvage = step(&document, "salvage-rows").commands.concat();
    let spec = text(&copy.pgdata);
    let expected =
        format!("pgclinic salvage {spec} --database clinic --relation public.keyed --to ");
    assert!(salvage.starts_with(&expected), "{salvage}");
    let words = pgclinic(&["check", spec]).exits(1).out;
    assert!(words.contains("WHAT TO DO  in this order"), "{words}");
    assert_eq!(words.matches("REINDEX INDEX").count(), 1, "{words}");
    let html = pgclinic(&["check", spec, "--format", "html"]).exits(1).out;
    assert!(html.contains("What to do, in this order"), "{html}");
}

/// Bit 20 of a key in the table: the index holds what stood there, and the keys beside it prove it.
#[test]
fn the_flipped_side_of_a_contradiction_is_named() {
    let (copy, table, _) = keyed(Checksums::Off);
    let page = page_of(&table, 0);
    let row = row_at(&page, 10);
    let id = row + 24;
    assert_eq!(page[id], 10, "the tenth row has the tenth key");
    write(&table, id as u64 + 2, &[page[id + 2] ^ 0x10]);
    let quiet = check_full(&copy);
    let quiet = &finding(&quiet, "index-entry-of-other-key").message;
    assert!(
        !quiet.contains("1048586") && quiet.contains("row (0,10); they differ"),
        "{quiet}"
    );
    let document = check_full_with(&copy, &["--values"]);
    let found = finding(&document, "index-entry-of-other-key");
    let words = "id is 10 in the entry and 1048586 in the row; they differ in one bit";
    assert!(found.message.contains(words), "{}", found.message);
    assert!(
        found.message.ends_with("the bit flipped in the row"),
        "{}",
        found.message
    );
    assert_eq!(found.facts["flipped"], "row");
    let reindex = step(&document, "reindex");
    assert_eq!(reindex.safety, Safety::ShowOnly, "{reindex:?}");
    assert!(
        reindex
            .commands
            .concat()
            .contains("not before the row is mended"),
        "{reindex:?}"
    );
}

/// The server takes the page for empty and says nothing.
#[test]
fn rows_that_the_server_drops_in_silence_are_at_risk() {
    let (copy, table, _) = keyed(Checksums::Off);
    let rows = u64::from((u16_of(&page_of(&table, 0), 12) - 24) / 4);
    write(&table, 12, &[20, 0]);
    let document = check_json(&copy.pgdata, 1);
    let found = finding(&document, "lower-inside-header");
    assert_eq!(found.at_risk.rows, Some(rows), "{}", told(&document));
    // The server does not look at the page's size, and reads all of its rows.
    let (copy, table, _) = keyed(Checksums::Off);
    write(&table, 18, &[4, 0x10]);
    let document = check_json(&copy.pgdata, 1);
    assert_eq!(finding(&document, "wrong-page-size").at_risk.rows, Some(0));
}

#[test]
fn a_table_that_the_server_refuses_for_one_row_is_named() {
    let (copy, table, _) = keyed(Checksums::Off);
    let page = page_of(&table, 0);
    let row = row_at(&page, 3);
    // An old xmin of which no status is kept, without a hint that spares the lookup.
    write(&table, row as u64, &4_000_000_000u32.to_le_bytes());
    // A scan asks for no row of a page that is all visible.
    write(&table, 10, &(u16_of(&page, 10) & !4).to_le_bytes());
    let hints = u16_of(&page, row + 20) & !0x0300;
    write(&table, row as u64 + 20, &hints.to_le_bytes());
    let words = pgclinic(&["check", text(&copy.pgdata)]).exits(1);
    let document = check_json(&copy.pgdata, 1);
    if document
        .findings
        .iter()
        .any(|finding| finding.at_risk.whole_table)
    {
        assert!(
            words.first_line().contains("1 table refused as a whole"),
            "{}",
            words.out
        );
        let why = &step(&document, "salvage-rows").why;
        assert!(
            why.contains("refuses the whole of public.keyed because of 1 row"),
            "{why}"
        );
    } else {
        panic!("{}", told(&document));
    }
}

#[test]
fn listed_results_keep_their_exit_code_and_words_stay() {
    let (copy, table, _) = keyed(Checksums::On);
    let spec = text(&copy.pgdata);
    overwrite(&table, 0);
    // A table that the other copy has, too.
    overwrite(&copy.pgdata.join("base/1/1255"), 2);
    let check = |list: &str, exit: u8| -> Ran {
        pgclinic(&["check", spec, "--level", "pages", "--fail-on", list]).exits(exit)
    };
    let usual = check("damage,incomplete,recovery", 1);
    let lenient = check("incomplete,recovery", 0);
    let line = |ran: &Ran| ran.first_line().split("checked").next().map(str::to_owned);
    assert_eq!(line(&usual), line(&lenient));
    assert!(
        lenient.first_line().starts_with("DAMAGED"),
        "{}",
        lenient.out
    );
    let typo = check("damage,everything", 2);
    assert!(typo.err.contains("everything"), "{}", typo.err);
    let to = tempfile::tempdir().expect("a directory");
    let salvage = |name: &str, list: &str, exit: u8| {
        let to = to.path().join(name);
        let words = [
            "salvage",
            spec,
            "--relation",
            "public.keyed",
            "--to",
            text(&to),
        ];
        pgclinic(&[&words[..], &["--fail-on", list]].concat()).exits(exit)
    };
    salvage("strict", "damage", 1);
    salvage("lenient", "incomplete", 0);
    let other = newest(Checksums::On);
    let diff = ["diff", spec, text(&other.pgdata), "--fail-on"];
    pgclinic(&[&diff[..], &["damage"]].concat()).exits(1);
    pgclinic(&[&diff[..], &["incomplete"]].concat()).exits(0);
}

#[test]
fn a_cluster_that_only_needs_recovery_passes_where_that_is_not_listed() {
    let copy = newest(Checksums::On);
    let mut server = copy.start().expect("a server");
    execute(&server, "CREATE TABLE public.late AS SELECT 1 AS a");
    server.kill();
    let spec = text(&copy.pgdata);
    pgclinic(&["check", spec]).exits(3);
    let ran = pgclinic(&["check", spec, "--fail-on", "damage,incomplete"]).exits(0);
    assert!(
        ran.first_line().starts_with("INCOMPLETE (needs recovery)"),
        "{}",
        ran.out
    );
}

#[test]
fn without_checksums_the_first_line_says_what_that_means() {
    let copy = newest(Checksums::Off);
    let ran = pgclinic(&["check", text(&copy.pgdata)]).exits(0);
    let words = "HEALTHY (no data checksums: values cannot be verified)";
    assert!(ran.first_line().starts_with(words), "{}", ran.out);
    let document = check_json(&copy.pgdata, 0);
    assert_eq!(document.verdict, Verdict::Healthy);
    let mut gaps = document.coverage.not_checked.iter();
    assert!(gaps.any(|gap| gap.inherent && gap.why.starts_with("data checksums are off")));
}

/// What was not begun counts, too.
#[test]
fn an_interrupted_run_is_a_share_of_all() {
    let copy = newest(Checksums::On);
    let words = ["check", text(&copy.pgdata), "--format", "json"];
    let whole = pgclinic(&words).exits(0).document().coverage;
    let stopped = pgclinic_stopped(&words).exits(130).document();
    assert!(stopped.interrupted);
    let coverage = stopped.coverage;
    assert!(coverage.is_balanced(), "{coverage:?}");
    let relations = whole.pages * PAGE;
    assert!(
        coverage.bytes_seen >= relations,
        "{coverage:?} of {whole:?}"
    );
    assert!(
        coverage.bytes_skipped >= relations,
        "{coverage:?} of {whole:?}"
    );
    let line = pgclinic_stopped(&["check", text(&copy.pgdata)]).exits(130);
    assert!(line.first_line().contains("interrupted"), "{}", line.out);
    assert!(!line.first_line().contains("100 %"), "{}", line.out);
}

#[test]
fn level_pages_misses_a_file() {
    let (copy, table, _) = keyed(Checksums::On);
    std::fs::remove_file(&table).expect("a file");
    let words = [
        "check",
        text(&copy.pgdata),
        "--level",
        "pages",
        "--format",
        "json",
    ];
    let document = pgclinic(&words).exits(1).document();
    let found = finding(&document, "missing-file");
    assert_eq!(found.place.relation_name(), "public.keyed");
}

#[test]
fn a_message_is_explained_beside_its_running_server() {
    let copy = newest(Checksums::On);
    let server = copy.start().expect("a server");
    for statement in KEYED.split(';') {
        execute(&server, statement);
    }
    execute(&server, "CHECKPOINT");
    let mut session = clinic(&server);
    let path = path_of(&mut session, "public.keyed");
    let message = format!("ERROR:  invalid page in block 1 of relation {path}");
    let url = ConnectionTarget {
        user: "postgres".into(),
        ..ConnectionTarget::of(&server, "clinic")
    };
    let url = url.to_string();
    for target in [text(&copy.pgdata), url.as_str()] {
        let ran = pgclinic(&["explain", &message, target]).exits(0);
        assert!(ran.out.contains("public.keyed"), "{target}: {}", ran.out);
    }
}

fn diff(a: &Path, b: &Path, exit: u8) -> DiffDocument {
    let ran = pgclinic(&["diff", text(a), text(b), "--format", "json"]).exits(exit);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

/// Two servers were started from one copy, and none of them was promoted.
#[test]
fn clones_of_one_timeline_have_parted() {
    let seeded = newest(Checksums::On);
    let installation = all_majors().pop().expect("the newest");
    let other = copy_of(&seed(&installation, Checksums::On));
    for (copy, sql) in [
        (&seeded, "CREATE TABLE public.one AS SELECT 1 AS a"),
        (&other, "UPDATE public.chains SET id = id"),
    ] {
        let mut server = copy.start().expect("a server");
        execute(&server, sql);
        server.stop(StopMode::Fast).expect("a stop");
    }
    let document = diff(&seeded.pgdata, &other.pgdata, 1);
    assert_eq!(document.verdict, DiffVerdict::Parted, "{document:?}");
    assert!(document.parted_at.is_some());
    let words = pgclinic(&["diff", text(&seeded.pgdata), text(&other.pgdata)])
        .exits(1)
        .out;
    assert!(words.contains("on one timeline"), "{words}");
}

#[test]
fn the_first_line_says_which_copy_is_sound() {
    let (copy, table, _) = keyed(Checksums::On);
    let folder = tempfile::tempdir().expect("a directory");
    let hurt = folder.path().join("hurt");
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([&copy.pgdata, &hurt])
        .status();
    assert!(copied.expect("cp").success());
    let within = table.strip_prefix(&copy.pgdata).expect("inside");
    overwrite(&hurt.join(within), 0);
    let ran = pgclinic(&["diff", text(&copy.pgdata), text(&hurt)]).exits(1);
    let words = "CONTRADICTORY  A is sound where they contradict, B is at fault";
    assert!(ran.first_line().starts_with(words), "{}", ran.out);
}
