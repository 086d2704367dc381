//! What `explain` makes of names, of translated messages and of logs on stdin.

use crate::common::{pgclinic, pgclinic_reading};

const LOG: &str = "\
2026-11-25 08:00:00.123 CET [1] LOG:  database system is ready to accept connections
2026-11-25 08:00:01.123 CET [2] WARNING:  page verification failed, calculated checksum 19601 but expected 152
2026-11-25 08:00:01.124 CET [2] ERROR:  invalid page in block 5 of relation base/5/16384
2026-11-25 08:00:01.124 CET [2] STATEMENT:  SELECT *
\tFROM docs
2026-11-25 08:00:02.123 CET [3] ERROR:  invalid page in block 7 of relation base/5/16384
";

#[test]
fn a_log_on_stdin_is_told_once_per_cause() {
    for arguments in [&["explain"][..], &["explain", "-"]] {
        let out = pgclinic_reading(arguments, LOG).exits(0).out;
        assert!(out.starts_with("First of all take a copy"), "{out}");
        assert!(out.contains("6 lines with 4 entries"), "{out}");
        let heading = "invalid-page: 2 times, from 2026-11-25 08:00:01.124 CET to 2026-11-25 08:00:02.123 CET\n";
        assert!(out.contains(heading), "{out}");
        assert!(out.contains("- blocks: 5, 7\n"), "{out}");
        assert!(
            out.contains("`pgclinic check PGDATA --filenode 16384`"),
            "{out}"
        );
    }
}

#[test]
fn one_message_on_stdin_gets_its_whole_page() {
    let paste = "ERROR:  invalid page in block 5 of relation base/5/16384\n";
    let out = pgclinic_reading(&["explain"], paste).exits(0).out;
    let quoted = pgclinic(&["explain", paste]).exits(0).out;
    assert_eq!(out, quoted);
}

#[test]
fn a_log_without_damage_says_so() {
    let log = "2026-11-25 08:00:00 UTC [1] LOG:  checkpoint starting: time\n";
    let out = pgclinic_reading(&["explain"], log).exits(0).out;
    assert!(out.contains("0 about storage, of 0 causes"), "{out}");
}

#[test]
fn names_terms_and_sqlstates_have_pages_and_misspelt_ones_are_guessed() {
    for name in [
        "zero_damaged_pages",
        "pg_resetwal",
        "PG_SURGERY",
        "wraparound",
        "XX001",
    ] {
        let out = pgclinic(&["explain", name]).exits(0).out;
        assert!(
            out.contains("Never ") && out.contains("Next steps:") && !out.contains("**"),
            "{name}: {out}"
        );
    }
    let wrong = pgclinic(&["explain", "lower-beyond-uper"]).exits(2);
    assert!(
        wrong.err.contains("did you mean lower-beyond-upper"),
        "{}",
        wrong.err
    );
    let wrong = pgclinic(&["explain", "zero_damaged_pges"]).exits(2);
    assert!(
        wrong.err.contains("did you mean zero_damaged_pages"),
        "{}",
        wrong.err
    );
}

#[test]
fn a_translated_message_is_known_by_its_state() {
    let message = "FEHLER:  XX001: ungültige Seite in Block 5 von Relation »base/5/16384«";
    let out = pgclinic(&["explain", message]).exits(0).out;
    assert!(out.contains("data-corrupted"), "{out}");
    assert!(
        out.contains("pgclinic inspect PGDATA --filenode 16384 --block 5"),
        "{out}"
    );
}
