//! Logs in every format, with what is read out of them.

use std::fmt::Write;

use super::{LogEntries, LogEntry, LogSummary};

fn entries(log: &str) -> Vec<LogEntry> {
    let mut entries = LogEntries::new(log.as_bytes());
    let mut found = Vec::new();
    while let Some(entry) = entries.next_entry().expect("bytes in memory") {
        found.push(entry);
    }
    found
}

fn summary(log: &str) -> LogSummary {
    let mut summary = LogSummary::default();
    for entry in entries(log) {
        summary.add(&entry);
    }
    summary
}

/// Name of the page, count, and first and last time.
fn causes(log: &str) -> Vec<(&'static str, u64, String)> {
    let of = |time: &Option<String>| time.clone().unwrap_or_default();
    summary(log)
        .causes()
        .map(|cause| {
            let span = format!("{}..{}", of(&cause.first_time), of(&cause.last_time));
            (cause.found.message.name, cause.count, span)
        })
        .collect()
}

const INVALID: &str = "invalid page in block 5 of relation base/5/16384";

#[test]
fn an_entry_is_found_behind_any_prefix() {
    for prefix in [
        "",
        "2026-11-25 08:00:00.123 CET [4711] ",
        "2026-11-25 08:00:00.123 CET [4711] app@shop ",
        "2026-11-25 08:00:00 UTC:10.0.0.7(5000):app@shop:[4711]:",
        "[4711]: user=app,db=shop,app=psql,client=10.0.0.7 ",
        "<2026-11-25 08:00:00.123 CET> ",
        "Nov 25 08:00:00 host postgres[4711]: [5-1] ",
        "1764057600.123 %",
    ] {
        let log = format!("{prefix}ERROR:  {INVALID}\n{prefix}STATEMENT:  SELECT 1\n\tFROM docs\n");
        let found = entries(&log);
        assert_eq!(found.len(), 1, "{log}");
        let entry = found.first().expect("one");
        assert_eq!(
            (entry.severity.as_str(), entry.message.as_str()),
            ("ERROR", INVALID),
            "{log}"
        );
    }
}

#[test]
fn parts_and_continued_lines_belong_to_their_entry() {
    let log = "\
2026-11-25 08:00:00 UTC [1] ERROR:  found xmin 700 from before relfrozenxid 1200
2026-11-25 08:00:00 UTC [1] CONTEXT:  while scanning block 3 and offset 7 of relation \"public.docs\"
\tautomatic vacuum of table \"shop.public.docs\"
2026-11-25 08:00:00 UTC [1] STATEMENT:  SELECT 'ERROR:  invalid page in block 1'
\tFROM docs
2026-11-25 08:00:01 UTC [1] LOG:  checkpoint starting: time
";
    let found = entries(log);
    assert_eq!(found.len(), 2);
    let first = found.first().expect("two");
    assert_eq!(
        first.context,
        "while scanning block 3 and offset 7 of relation \"public.docs\"\nautomatic vacuum of table \"shop.public.docs\""
    );
    let summary = summary(log);
    let cause = summary.causes().next().expect("one");
    assert_eq!(
        cause.found.facts.relation_name.as_deref(),
        Some("public.docs")
    );
    assert_eq!(cause.found.facts.block, Some(3));
}

#[test]
fn csvlog_is_read_with_its_line_breaks_and_quotes() {
    let log = "\
2026-11-25 08:00:00.123 CET,\"app\",\"shop\",4711,\"10.0.0.7:5000\",6565.1267,1,\"SELECT\",2026-11-25 07:00:00 CET,3/7,0,ERROR,XX001,\"invalid page in block 5 of relation \"\"base/5/16384\"\"\",,,,,,\"SELECT
2026-11-25 09:00:00.123 CET,\"\"x\"\" FROM docs\",,,\"psql\",\"client backend\",,0
2026-11-25 08:00:01.123 CET,,,4712,,6565.1268,1,,2026-11-25 07:00:00 CET,,0,LOG,00000,\"checkpoint starting: time\",,,,,,,,,\"\",\"checkpointer\",,0
";
    let found = entries(log);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!(
        causes(log),
        [(
            "invalid-page",
            1,
            "2026-11-25 08:00:00.123 CET..2026-11-25 08:00:00.123 CET".into()
        )]
    );
    let summary = summary(log);
    let cause = summary.causes().next().expect("one");
    assert_eq!(cause.database.as_deref(), Some("shop"));
}

#[test]
fn jsonlog_is_read_alone_and_inside_of_other_objects() {
    let own = r#"{"timestamp":"2026-11-25 08:00:00.123 CET","dbname":"shop","pid":4711,"error_severity":"ERROR","state_code":"XX001","message":"invalid page in block 5 of relation base/5/16384","statement":"SELECT 1"}"#;
    let operator = r#"{"level":"info","logger":"postgres","msg":"record","record":{"log_time":"2026-11-25 08:00:00.123 CET","error_severity":"ERROR","sql_state_code":"XX001","message":"invalid page in block 5 of relation base/5/16384"}}"#;
    let docker = r#"{"log":"2026-11-25 08:00:00.123 CET [4711] ERROR:  invalid page in block 5 of relation base/5/16384\n","stream":"stderr"}"#;
    for line in [own, operator, docker] {
        let time = "2026-11-25 08:00:00.123 CET";
        assert_eq!(
            causes(line),
            [("invalid-page", 1, format!("{time}..{time}"))],
            "{line}"
        );
    }
}

#[test]
fn what_programs_print_is_a_log_too() {
    let log = "\
pg_dump: error: Dumping the contents of table \"docs\" failed: PQgetResult() failed.
pg_dump: detail: Error message from server: ERROR:  missing chunk number 0 for toast value 29611 in pg_toast_29580
pg_dump: detail: Command was: COPY public.docs (id) TO stdout;
pg_verifybackup: error: checksum mismatch for file \"base/5/1259\"
";
    let names: Vec<_> = causes(log).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(
        names,
        ["toast-chunk-number", "backup-differs-from-manifest"]
    );
    let log = "\
btree index \"shop.public.docs_pkey\":
    ERROR:  item order invariant violated for index \"docs_pkey\"
heap table \"shop.public.docs\", block 3, offset 7, attribute 0:
    number of attributes 2047 exceeds maximum expected for table 3
";
    let names: Vec<_> = causes(log).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["heap-tuple-malformed", "index-order-violated"]);
    let summary = summary(log);
    let facts = &summary.causes().next().expect("two").found.facts;
    assert_eq!(
        (facts.relation_name.as_deref(), facts.block, facts.item),
        (Some("public.docs"), Some(3), Some(7))
    );
}

#[test]
fn a_cause_is_told_once_with_its_count_its_times_and_its_blocks() {
    let mut log = String::new();
    for number in 0..3000_u32 {
        let block = 5 + number % 20;
        let second = number % 60;
        writeln!(log, "2026-11-25 08:00:{second:02} UTC [1] ERROR:  invalid page in block {block} of relation base/5/16384\n2026-11-25 08:00:{second:02} UTC [1] STATEMENT:  SELECT {number}\n2026-11-25 08:00:{second:02} UTC [1] LOG:  duration: 3 ms  statement: SELECT 'zero_damaged_pages'").expect("a String");
    }
    let text = summary(&log).render(9000, |_| None);
    assert_eq!(text, "\
First of all take a copy: stop the server and copy the whole data directory, tablespaces and WAL included, to another disk. Before anything else.

9000 lines with 6000 entries, from 2026-11-25 08:00:00 UTC to 2026-11-25 08:00:59 UTC: 3000 about storage, of 1 cause.

# invalid-page: 3000 times, from 2026-11-25 08:00:00 UTC to 2026-11-25 08:00:59 UTC

- first logged: ERROR:  invalid page in block 5 of relation base/5/16384
- about: base/5/16384
- blocks: 5, 6, 7, 8, 9, 10, 11, 12 and more
- next: See everything that is wrong there, on the stopped copy: `pgclinic check PGDATA --filenode 16384`
- what it means: `pgclinic explain invalid-page`
");
}

#[test]
fn a_paste_of_one_message_is_told_apart_from_a_log() {
    let one = "ERROR:  could not access status of transaction 7\nDETAIL:  Could not open file \"pg_xact/0C7E\": No such file or directory.\n";
    assert!(summary(one).only_entry().is_some());
    assert!(summary(&one.repeat(2)).only_entry().is_none());
    assert!(summary("nothing of the kind\n").only_entry().is_none());
    assert!(summary("").only_entry().is_none());
}

#[test]
fn two_relations_are_two_causes_and_segments_of_one_are_one() {
    let log = "\
ERROR:  could not read block 12 in file \"base/5/16390\": read only 0 of 8192 bytes
ERROR:  could not read block 131073 in file \"base/5/16390.1\": read only 0 of 8192 bytes
ERROR:  could not read block 12 in file \"base/5/16400\": read only 0 of 8192 bytes
";
    let counts: Vec<_> = causes(log)
        .into_iter()
        .map(|(name, count, _)| (name, count))
        .collect();
    assert_eq!(counts, [("short-read", 2), ("short-read", 1)]);
}

#[test]
fn translated_entries_are_known_by_their_state_and_others_are_counted() {
    let log = "\
2026-11-25 08:00:00 CET [1] FEHLER:  XX001: ungültige Seite in Block 5 von Relation »base/5/16384«
2026-11-25 08:00:00 CET [1] ANWEISUNG:  SELECT 1
2026-11-25 08:00:01 CET [1] PANIK:  etwas Unbekanntes
2026-11-25 08:00:02 CET [1] FEHLER:  42601: Syntaxfehler
";
    let summary = summary(log);
    let text = summary.render(4, |_| None);
    assert!(
        text.contains("# data-corrupted: once, at 2026-11-25 08:00:00 CET"),
        "{text}"
    );
    assert!(text.contains("--filenode 16384"), "{text}");
    assert!(
        text.contains("# not in the textbook\n\n- once: PANIC:  etwas Unbekanntes\n"),
        "{text}"
    );
    assert!(
        text.contains("3 entries") && text.contains("2 about storage, of 1 cause"),
        "{text}"
    );
}

#[test]
fn hostile_logs_do_no_harm_and_stay_small() {
    let mut log = String::from("2026-11-25 08:00:00.123 CET,\"never closed\n");
    log.push_str(&"x\"".repeat(200_000));
    for number in 0..5000_u32 {
        writeln!(
            log,
            "\nERROR:  could not open file \"pg_xact/{number}\": No such file or directory"
        )
        .expect("a String");
        writeln!(log, "PANIC:  unheard of {number} \u{1b}[2J").expect("a String");
    }
    log.push_str(&"{".repeat(100_000));
    let summary = summary(&log);
    assert!(summary.causes().count() <= 1000);
    let text = summary.render(1, |_| None);
    assert!(!text.chars().any(|char| char.is_control() && char != '\n'));
    assert!(text.contains("are not listed"), "{}", text.len());
}
