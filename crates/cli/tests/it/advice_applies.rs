//! Advice that articles give: `measure` says it where files or the server show that it applies, and
//! is silent where they do not.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;

use pgclinic_measure::{MeasureOptions, ServerFacts, measure_cluster};
use pgclinic_model::Selection;
use pgclinic_model::document::{Advice, MeasureDocument};
use pgclinic_servers::{
    Checksums, ConnectionTarget, Installation, Server, StopMode, Wanted, fetched,
};
use pgclinic_spill::MemoryPlan;
use pgclinic_testkit::{Quiet, TempCopy, copy_of, execute, open, seed, server, value};

use crate::common::{pgclinic, text};

/// A filled cluster whose server runs; autovacuum is off, so that the test decides what is
/// analyzed.
fn begun(installation: &Installation) -> (TempCopy, Server) {
    let copy = copy_of(&seed(installation, Checksums::On));
    let server = copy.start().expect("a server");
    (copy, server)
}

fn minor(major: u16, minor: u16) -> Installation {
    let wanted = Wanted {
        major: Some(major),
        minor: Some(minor),
        ..Wanted::default()
    };
    fetched(&wanted, &mut |_| {}).expect("a release")
}

fn measured(target: &str) -> MeasureDocument {
    let ran = pgclinic(&["measure", target, "--format", "json"]).exits(0);
    serde_json::from_str(&ran.out).expect("a document")
}

fn stopped(server: &mut Server, copy: &TempCopy) -> MeasureDocument {
    execute(server, "CHECKPOINT");
    server.stop(StopMode::Fast).expect("a stop");
    measured(text(&copy.pgdata))
}

/// The piece of this name in the database of the tests, or in the whole cluster.
fn piece<'a>(document: &'a MeasureDocument, name: &str) -> Option<&'a Advice> {
    let is_ours = |own: &&Advice| own.database.as_deref().is_none_or(|own| own == "clinic");
    let mut own = document.advice.iter().filter(is_ours);
    own.find(|own| own.advice == name)
}

/// A statement with semicolons of its own.
fn execute_whole(server: &Server, statement: &str) {
    let mut session = server.connect("clinic").expect("a session");
    session.execute(statement).expect(statement);
}

/// Statements that advice gives, as psql would take them.
fn obey(server: &Server, own: &Advice) {
    for command in &own.commands {
        let statements = command
            .split_once(" --")
            .map_or(command.as_str(), |own| own.0);
        for statement in statements.split(';').filter(|own| !own.trim().is_empty()) {
            execute(server, statement);
        }
    }
}

#[test]
fn tables_without_statistics_are_named_until_they_are_analyzed() {
    let (copy, mut server) = begun(&server(15));
    execute(&server, "ANALYZE");
    let document = stopped(&mut server, &copy);
    assert_eq!(piece(&document, "analyze-after-upgrade"), None);

    let mut server = copy.start().expect("a server");
    execute(
        &server,
        "CREATE TABLE public.cold AS SELECT i FROM generate_series(1, 500) AS i",
    );
    execute(
        &server,
        "CREATE TABLE public.small AS SELECT i FROM generate_series(1, 50) AS i",
    );
    let document = stopped(&mut server, &copy);
    let own = piece(&document, "analyze-after-upgrade").expect("it applies");
    assert_eq!(own.of, ["public.cold"]);
    assert_eq!(own.commands, ["ANALYZE public.cold;"]);

    let mut server = copy.start().expect("a server");
    obey(&server, own);
    let document = stopped(&mut server, &copy);
    assert_eq!(piece(&document, "analyze-after-upgrade"), None);

    // What pg_upgrade up to 17 leaves behind.
    let mut server = copy.start().expect("a server");
    execute(&server, "DELETE FROM pg_statistic WHERE starelid >= 16384");
    let document = stopped(&mut server, &copy);
    let own = piece(&document, "analyze-after-upgrade").expect("it applies");
    assert!(
        own.message.starts_with("none of the tables"),
        "{}",
        own.message
    );
    assert_eq!(
        own.commands,
        ["vacuumdb --analyze-in-stages --dbname=clinic"]
    );
}

const KEYED: &str = "
CREATE TABLE public.refused (id serial PRIMARY KEY, word text, number int);
CREATE INDEX refused_number ON public.refused (number);
CREATE UNIQUE INDEX refused_word ON public.refused (word);
INSERT INTO public.refused (word, number) SELECT i, i FROM generate_series(1, 1000) AS i;
ANALYZE public.refused";

/// So many INSERTs that fail, each in a transaction of its own.
const REFUSED: &str = "DO $$BEGIN FOR i IN 1..1500 LOOP BEGIN \
    INSERT INTO public.refused (word, number) VALUES ('1', i); \
    EXCEPTION WHEN unique_violation THEN NULL; END; END LOOP; END$$";

#[test]
fn indexes_that_were_made_before_the_one_that_refuses_are_named() {
    for major in [13, 18] {
        let (copy, mut server) = begun(&server(major));
        for statement in KEYED.split(';') {
            execute(&server, statement);
        }
        execute(
            &server,
            "INSERT INTO public.refused (word, number) SELECT 1, i FROM generate_series(1, 1500) AS i ON CONFLICT DO NOTHING",
        );
        let document = stopped(&mut server, &copy);
        assert_eq!(piece(&document, "failed-inserts"), None);

        let mut server = copy.start().expect("a server");
        execute_whole(&server, REFUSED);
        let document = stopped(&mut server, &copy);
        let own = piece(&document, "failed-inserts").expect("it applies");
        assert_eq!(
            own.of,
            [
                "public.refused: 1,500 rows were rolled back beside 1,000 live ones, and refused_pkey, refused_number stand before refused_word with entries of them"
            ]
        );
        let [_, first, second] = own.commands.as_slice() else {
            panic!("{:?}", own.commands);
        };
        assert_eq!(
            [first.as_str(), second.as_str()],
            [
                "REINDEX INDEX CONCURRENTLY public.refused_pkey;",
                "REINDEX INDEX CONCURRENTLY public.refused_number;"
            ]
        );

        // An index that is made again stands after the one that refuses, and gets nothing more.
        let mut server = copy.start().expect("a server");
        execute(&server, first);
        execute(&server, second);
        execute_whole(&server, REFUSED);
        let document = stopped(&mut server, &copy);
        assert_eq!(piece(&document, "failed-inserts"), None);
        let rows = |name: &str| {
            let mut all = document.relations.iter();
            let own = all.find(|own| own.relation.as_deref() == Some(name));
            own.and_then(|own| own.count("index", "row_count"))
        };
        assert_eq!(rows("refused_pkey"), Some(1000));
    }
}

const LONG_ROWS: &str = "
CREATE TABLE public.raised (id int, body text) WITH (toast_tuple_target = 8160);
CREATE TABLE public.kept (id int, body text);
ALTER TABLE public.kept ALTER body SET STORAGE MAIN;
CREATE TABLE public.usual (id int, body text);
INSERT INTO public.raised SELECT i, string_agg(md5(i::text || j), '') FROM generate_series(1, 200) AS i, generate_series(1, 150) AS j GROUP BY i;
INSERT INTO public.kept TABLE public.raised;
INSERT INTO public.usual TABLE public.raised";

#[test]
fn rows_that_toast_would_make_shorter_are_named() {
    let (copy, mut server) = begun(&server(15));
    for statement in LONG_ROWS.split(';') {
        execute(&server, statement);
    }
    // Nothing makes rows of numbers shorter.
    let numbers: Vec<String> = (0..300)
        .map(|number| format!("n{number} int8 DEFAULT 1"))
        .collect();
    execute(
        &server,
        &format!(
            "CREATE TABLE public.numbers (id int, {}, word text)",
            numbers.join(", ")
        ),
    );
    execute(
        &server,
        "INSERT INTO public.numbers (id, word) SELECT i, 'short' FROM generate_series(1, 400) AS i",
    );
    let document = stopped(&mut server, &copy);
    let own = piece(&document, "toast-tuple-target").expect("it applies");
    let mut of = own.of.clone();
    of.sort();
    assert_eq!(
        of,
        [
            "public.kept: body is STORAGE MAIN",
            "public.raised: toast_tuple_target is 8160"
        ]
    );
    let mut server = copy.start().expect("a server");
    obey(&server, own);
    let rows_on_first = "SELECT count(*) FROM public.raised WHERE ctid < '(1,0)'";
    let count: u64 = value(&server, rows_on_first).parse().expect("a number");
    assert!(count >= 4, "{count} rows");
    let document = stopped(&mut server, &copy);
    assert_eq!(piece(&document, "toast-tuple-target"), None);
}

const PGLZ: &str = "
CREATE TABLE public.pglz AS SELECT i, string_agg(md5((i * j % 97)::text), '') AS body
FROM generate_series(1, 500) AS i, generate_series(1, 800) AS j GROUP BY i";

#[test]
fn lz4_is_advised_where_the_server_has_it_and_does_not_use_it() {
    // Debian's has it, the fetched ones do not.
    for (installation, applies) in [(server(15), true), (server(16), false)] {
        assert_eq!(
            installation.features().lz4,
            applies,
            "{}",
            installation.bindir.display()
        );
        let (copy, mut server) = begun(&installation);
        execute(&server, PGLZ);
        let document = stopped(&mut server, &copy);
        let own = piece(&document, "lz4-by-default");
        assert_eq!(own.is_some(), applies);
        let Some(own) = own else { continue };
        assert!(
            own.of.iter().any(|of| of.starts_with("public.pglz.body: ")),
            "{:?}",
            own.of
        );
        assert!(
            !own.message.contains("where the server was compiled"),
            "{}",
            own.message
        );
        assert_eq!(
            own.commands,
            ["ALTER DATABASE clinic SET default_toast_compression = 'lz4';"]
        );
        let mut server = copy.start().expect("a server");
        obey(&server, own);
        let document = stopped(&mut server, &copy);
        assert_eq!(piece(&document, "lz4-by-default"), None);
    }
}

fn url(server: &Server) -> String {
    ConnectionTarget::of(server, "clinic").to_string()
}

#[test]
fn releases_that_mend_what_is_stored_are_named_by_directory_and_by_url() {
    let (copy, mut server) = begun(&minor(15, 5));
    execute(
        &server,
        "CREATE TABLE public.words AS SELECT ARRAY[1, 2] AS a",
    );
    execute(
        &server,
        "CREATE INDEX words_gin ON public.words USING gin (a)",
    );
    execute(&server, "CHECKPOINT");
    let by_url = measured(&url(&server));
    let by_path = stopped(&mut server, &copy);
    let own = piece(&by_path, "minor-release").expect("it applies");
    assert_eq!(Some(own), piece(&by_url, "minor-release"));
    assert!(
        own.message.starts_with("the server is 15.5; "),
        "{}",
        own.message
    );
    let named = |words: &str| own.of.iter().any(|of| of.contains(words));
    assert!(
        named("15.6: two processes that finished the same split of a GIN index"),
        "{:?}",
        own.of
    );
    assert!(named("15.6: long sessions with JIT leaked memory"));
    // 15.5 has mended that.
    assert!(!named("GiST"));
    assert!(
        own.settled_by.contains("pgclinic lab run jit-memory"),
        "{}",
        own.settled_by
    );
}

#[test]
fn a_release_that_has_all_of_it_is_no_advice() {
    let (copy, mut server) = begun(&server(15));
    let document = stopped(&mut server, &copy);
    assert_eq!(piece(&document, "minor-release"), None);
    // Of files whose program is not installed here the release is not known.
    let (copy, mut server) = begun(&minor(15, 5));
    execute(&server, "CHECKPOINT");
    server.stop(StopMode::Fast).expect("a stop");
    let options = copy.pgdata.join("postmaster.opts");
    std::fs::write(&options, "/opt/elsewhere/bin/postgres \"-D\" \"/data\"\n").expect("written");
    let document = measured(text(&copy.pgdata));
    assert_eq!(piece(&document, "minor-release"), None);
}

#[test]
fn bloated_catalogs_ask_for_logs_and_for_a_role_that_watches() {
    let (copy, mut server) = begun(&server(15));
    let document = measured_running(&server);
    assert_eq!(piece(&document, "catalog-logging"), None);
    let columns: Vec<String> = (0..30).map(|number| format!("c{number} int")).collect();
    execute_whole(
        &server,
        &format!(
            "DO $$BEGIN FOR i IN 1..400 LOOP CREATE TEMP TABLE report ({}); DROP TABLE report; END LOOP; END$$",
            columns.join(", ")
        ),
    );
    let document = stopped(&mut server, &copy);
    let own = piece(&document, "catalog-logging").expect("it applies");
    assert!(
        own.of
            .iter()
            .any(|of| of.starts_with("pg_catalog.pg_attribute: ")),
        "{:?}",
        own.of
    );
    assert_eq!(own.commands.len(), 4, "{:?}", own.commands);
    let mut server = copy.start().expect("a server");
    obey(&server, own);
    let document = stopped(&mut server, &copy);
    assert_eq!(piece(&document, "catalog-logging"), None);
}

fn measured_running(server: &Server) -> MeasureDocument {
    execute(server, "CHECKPOINT");
    measured(&url(server))
}

fn measured_with(pgdata: &Path, server: ServerFacts) -> MeasureDocument {
    let options = MeasureOptions {
        threads: NonZeroUsize::MIN,
        selection: Selection::default(),
        spec: String::new(),
        sample_percent: None,
        memory: MemoryPlan::new(64 << 20),
        trial_clock: None,
        server,
    };
    measure_cluster(&open(pgdata), &options, &Quiet)
}

#[test]
fn io_uring_is_spoken_of_where_it_is_set() {
    let (copy, mut server) = begun(&server(18));
    assert_eq!(piece(&stopped(&mut server, &copy), "io-uring"), None);
    let mut file = std::fs::File::options();
    let conf = copy.pgdata.join("postgresql.conf");
    let mut file = file.append(true).open(&conf).expect("settings");
    writeln!(file, "io_method = io_uring").expect("written");
    // The fetched one was compiled without it, and does not start.
    let document = measured(text(&copy.pgdata));
    let own = piece(&document, "io-uring").expect("it applies");
    assert!(
        own.message.contains("compiled without it"),
        "{}",
        own.message
    );
    assert!(copy.start().is_err());

    let with = |io_uring_forbidden: Option<&str>| ServerFacts {
        io_uring: Some(true),
        io_uring_forbidden: io_uring_forbidden.map(str::to_owned),
        ..ServerFacts::default()
    };
    let document = measured_with(
        &copy.pgdata,
        with(Some("/proc/sys/kernel/io_uring_disabled is 2")),
    );
    let own = piece(&document, "io-uring").expect("it applies");
    assert!(
        own.message
            .contains("the kernel refuses it (/proc/sys/kernel/io_uring_disabled is 2)"),
        "{}",
        own.message
    );
    let document = measured_with(&copy.pgdata, with(None));
    let own = piece(&document, "io-uring").expect("it applies");
    assert_eq!(own.settled_by, "pgclinic lab run async-io --into DIR");
    // Files that may be set elsewhere say nothing.
    std::fs::write(&conf, "include 'elsewhere.conf'\n").expect("written");
    assert_eq!(
        piece(&measured_with(&copy.pgdata, with(None)), "io-uring"),
        None
    );
}

#[test]
fn advice_is_in_every_form_and_changes_no_exit_code() {
    let (copy, mut server) = begun(&server(15));
    execute(
        &server,
        "CREATE TABLE public.cold AS SELECT i FROM generate_series(1, 500) AS i",
    );
    stopped(&mut server, &copy);
    let pgdata = text(&copy.pgdata);
    let ran = pgclinic(&["measure", pgdata]).exits(0);
    assert!(
        ran.out.contains("analyze-after-upgrade in clinic"),
        "{}",
        ran.out
    );
    assert!(
        ran.out
            .contains("settled by pgclinic lab run analyze-prefetch"),
        "{}",
        ran.out
    );
    let page = pgclinic(&["measure", pgdata, "--format", "html"]).exits(0);
    assert!(page.out.contains("Advice that applies"));
    let both = pgclinic(&["check", pgdata, "--with", "measure"]).exits(0);
    assert!(both.out.starts_with("HEALTHY"), "{}", both.out);
    assert!(
        both.out.contains("analyze-after-upgrade in clinic"),
        "{}",
        both.out
    );
}
