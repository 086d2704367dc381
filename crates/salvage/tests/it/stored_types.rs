//! Values of types whose text is not known here come over as they are, or not at all: never as
//! another value.

use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, SalvageReport};

use crate::common;

use std::path::Path;

use common::{copied, options, session};
use pgclinic_salvage::{Destination, SalvageOptions, end_of_load, salvage};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, StopMode};
use pgclinic_testkit::{Quiet, copy_of, open, seed, server};

const TYPES: &str = include_str!("stored_types/types.sql");

fn into(server: &Server, database: &str) -> SalvageOptions {
    let mut options = options(Path::new("/nowhere"), "copy");
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(server, database)));
    options.selection.databases = vec![Glob::new("types")];
    options
}

/// A database made by these statements is stopped, and another server runs with an empty one.
fn loaded(
    major: u16,
    statements: &str,
    prepare: &str,
    change: impl FnOnce(&mut SalvageOptions),
    look: impl FnOnce(&Server, SalvageReport),
) -> Vec<(String, common::Lines)> {
    let installation = server(major);
    let source = copy_of(&seed(&installation, Checksums::On));
    let mut running = source.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE types TEMPLATE template0")
        .expect("a database");
    session(&running, "types")
        .execute(statements)
        .expect("types");
    let expected = copied(&running, "types", "").into_iter().collect();
    running.stop(StopMode::Fast).expect("stopped");

    let destination = copy_of(&seed(&installation, Checksums::On));
    let running = destination.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE again TEMPLATE template0")
        .expect("a database");
    if !prepare.is_empty() {
        session(&running, "again")
            .execute(prepare)
            .expect("prepared");
    }
    let mut options = into(&running, "again");
    change(&mut options);
    let account = salvage(&open(&source.pgdata), &options, &Quiet).expect("loaded");
    look(&running, account);
    expected
}

fn stored_values_come_over(major: u16) {
    let mut found = Vec::new();
    let expected = loaded(
        major,
        TYPES,
        "",
        |_| {},
        |server, account| {
            // The table has no index to say that no row is missing.
            let gaps = &account.not_salvaged;
            assert!(gaps.iter().all(|gap| gap.inherent), "{gaps:#?}");
            assert_eq!(account.outcome, Outcome::Whole, "{:#?}", account.tables);
            let note = "column m is of type of6, whose text is not known here: its stored bytes were loaded as they are";
            let notes = &account.tables[0].notes;
            assert!(notes.contains(&note.to_owned()), "{notes:#?}");
            end_of_load(&ConnectionTarget::of(server, "again")).expect("ended");
            found = copied(server, "again", "").into_iter().collect();
        },
    );
    assert_eq!(expected.len(), 1);
    assert_eq!(expected[0].1.len(), 241);
    let shown = |lines: &common::Lines| {
        let last = lines
            .last()
            .map(|line| String::from_utf8_lossy(line).into_owned());
        last.unwrap_or_default()
    };
    let (expected, found) = (&expected[0].1, &found[0].1);
    assert!(expected == found, "{}\n{}", shown(expected), shown(found));
}

#[test]
fn of_15() {
    stored_values_come_over(15);
}

#[test]
fn of_13() {
    stored_values_come_over(13);
}

#[test]
fn of_18() {
    stored_values_come_over(18);
}

/// Who is no superuser cannot make a type: the column stays empty and is named, the rows come.
#[test]
fn without_a_superuser_a_column_is_refused_by_name() {
    let statements = "CREATE EXTENSION seg; CREATE EXTENSION isn; \
         CREATE TABLE public.t (id int PRIMARY KEY, s seg NOT NULL, n issn, words text); \
         INSERT INTO public.t SELECT i, i::text::seg, '1436-4522', 'row ' || i FROM generate_series(1, 100) i; CHECKPOINT";
    let expected = loaded(
        15,
        statements,
        "CREATE ROLE loader LOGIN; ALTER DATABASE again OWNER TO loader; ALTER SCHEMA public OWNER TO loader",
        |options| {
            let Destination::Server(target) = &mut options.destination else {
                panic!("a server");
            };
            target.user = "loader".to_owned();
        },
        |server, account| {
            let told: Vec<String> = account
                .not_salvaged
                .iter()
                .map(|told| format!("{}: {}", told.what, told.why))
                .collect();
            let why = "its text is not known here, and only a superuser can load stored bytes: its rows come with a null there";
            for column in ["column s (seg)", "column n (issn)"] {
                let expected = format!("{column} of table public.t: {why}");
                assert!(told.contains(&expected), "{told:#?}");
            }
            assert_ne!(account.outcome, Outcome::Whole);
            assert_eq!(account.totals.partial, 100);
            let mut session = session(server, "again");
            let found =
                session.query("SELECT count(*), count(words), count(s), count(n) FROM public.t");
            let found = found.expect("counts").into_iter().flatten().flatten();
            assert_eq!(found.collect::<Vec<_>>(), ["100", "100", "0", "0"]);
        },
    );
    assert_eq!(expected.len(), 1);
}
