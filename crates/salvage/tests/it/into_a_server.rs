//! A salvage into a running server: the loaded database is the one that was salvaged, also when it
//! took two runs.

use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_model::{Glob, Progress};

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Lines, copied, options, session};
use pgclinic_salvage::{Destination, SalvageError, SalvageOptions, end_of_load, salvage};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, StopMode};
use pgclinic_testkit::{Quiet, copy_of, open, seed, server};

/// Somebody presses Ctrl-C after so many pieces.
struct Impatient(AtomicU64);

impl Progress for Impatient {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
    fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed) > u64::MAX / 2
    }
}

fn run(
    pgdata: &Path,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport, SalvageError> {
    salvage(&open(pgdata), options, progress)
}

/// The rows of all tables, by schema and name.
fn rows(server: &Server, database: &str) -> BTreeMap<String, Lines> {
    let found = copied(server, database, "").into_iter();
    let plain = |name: String| {
        name.split_once('/')
            .map_or(String::new(), |(_, name)| name.to_owned())
    };
    found.map(|(name, lines)| (plain(name), lines)).collect()
}

fn loaded_equals_salvaged(major: u16) {
    let installation = server(major);
    let source = copy_of(&seed(&installation, Checksums::On));
    let mut running = source.start().expect("a server");
    // Rules and triggers of a schema come after its rows.
    let expected = rows(&running, "clinic");
    running.stop(StopMode::Fast).expect("stopped");

    let destination = copy_of(&seed(&installation, Checksums::On));
    let running = destination.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE again TEMPLATE template0")
        .expect("a database");
    let target = Box::new(ConnectionTarget::of(&running, "again"));
    let mut options = options(Path::new("/nowhere"), "csv");
    options.destination = Destination::Server(target);
    options.selection.databases = vec![Glob::new("clinic")];

    let impatient = Impatient(AtomicU64::new(12));
    let account = run(&source.pgdata, &options, &impatient).expect("begun");
    assert!(account.interrupted);
    let ledger = "SELECT count(*) FROM pgclinic_salvage.tables";
    let mut again = session(&running, "again");
    let whole: u64 = again
        .query_value(ledger)
        .expect("a ledger")
        .and_then(|count| count.parse().ok())
        .unwrap_or(0);
    assert!(whole > 0);

    let account = run(&source.pgdata, &options, &Quiet).expect("gone on");
    assert!(
        account.not_salvaged.iter().all(|one| one.inherent),
        "{:#?}",
        account.not_salvaged
    );
    assert_eq!(account.large_objects[0].objects, 12);
    assert_eq!(account.totals.lost, 0);
    end_of_load(&ConnectionTarget::of(&running, "again")).expect("ended");
    let found = rows(&running, "again");
    for (name, lines) in &expected {
        assert_eq!(found.get(name).map(Vec::len), Some(lines.len()), "{name}");
        assert!(found.get(name) == Some(lines), "{name}");
    }
    assert_eq!(found.len(), expected.len());
    let left = "SELECT count(*) FROM pg_namespace WHERE nspname = 'pgclinic_salvage'";
    assert_eq!(
        again.query_value(left).expect("a count").as_deref(),
        Some("0")
    );

    // What is there now is not loaded into.
    let refused = run(&source.pgdata, &options, &Quiet).expect_err("refused");
    assert!(
        matches!(&refused, SalvageError::SchemaHoldsSomething(schemas) if schemas.contains(&"public".to_owned())),
        "{refused}"
    );
}

#[test]
fn the_loaded_database_is_the_salvaged_one() {
    loaded_equals_salvaged(15);
}

#[test]
fn of_13() {
    loaded_equals_salvaged(13);
}

#[test]
fn of_18() {
    loaded_equals_salvaged(18);
}

/// A row that the destination does not take stands in the account; the others are loaded.
#[test]
fn a_refused_row_does_not_take_others_with_it() {
    let installation = server(15);
    let source = copy_of(&seed(&installation, Checksums::On));
    let mut running = source.start().expect("a server");
    let mut old = session(&running, "postgres");
    old.execute("CREATE DATABASE shop TEMPLATE template0; ")
        .expect("a database");
    let mut shop = session(&running, "shop");
    // A domain that rows do not fit which were there before it was changed.
    shop.execute(
        "CREATE DOMAIN short AS text; CREATE TABLE public.t (id int, word short); \
         INSERT INTO public.t SELECT i, repeat('x', i) FROM generate_series(1, 1000) i; \
         ALTER DOMAIN short ADD CHECK (length(value) < 998) NOT VALID; CREATE TABLE public.far (id int PRIMARY KEY USING INDEX TABLESPACE annex) TABLESPACE annex; \
             INSERT INTO public.far VALUES (1), (2), (3); CHECKPOINT",
    )
    .expect("a table");
    running.stop(StopMode::Fast).expect("stopped");

    let destination = copy_of(&seed(&installation, Checksums::On));
    let running = destination.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE again TEMPLATE template0")
        .and_then(|()| {
            session(&running, "postgres").execute("ALTER TABLESPACE annex RENAME TO elsewhere")
        })
        .expect("a database");
    let mut options = options(Path::new("/nowhere"), "copy");
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, "again")));
    options.selection.databases = vec![Glob::new("shop")];
    let account = run(&source.pgdata, &options, &Quiet).expect("loaded");
    assert_eq!(
        (account.totals.written, account.totals.lost),
        (1000, 3),
        "{account:#?}"
    );
    let count = session(&running, "again").query_value("SELECT count(*) FROM public.t");
    assert_eq!(count.expect("a count").as_deref(), Some("997"));
}

/// What is known of all large objects of a database.
const OBJECTS: &str = "SELECT oid, md5(lo_get(oid)), lomowner::regrole, lomacl, obj_description(oid, 'pg_largeobject') \
                       FROM pg_largeobject_metadata ORDER BY oid";

/// Asked whether somebody pressed Ctrl-C, says yes from some time on.
struct AskedOften(AtomicU64);

impl Progress for AskedOften {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn is_interrupted(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) > u64::MAX / 2
    }
}

/// Large objects come with their numbers, owners, rights and comments; empty ones and holes too,
/// also in two runs. What has one of their numbers is left as it is.
#[test]
fn large_objects_go_into_the_server() {
    let installation = server(15);
    let source = copy_of(&seed(&installation, Checksums::On));
    let mut running = source.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE gallery TEMPLATE template0")
        .expect("a database");
    let mut gallery = session(&running, "gallery");
    gallery
        .execute(
            "CREATE ROLE painter; CREATE ROLE \"the public\"; CREATE TABLE public.t AS SELECT 1 AS id; \
             SELECT lo_from_bytea(20000 + i, decode(md5(i::text), 'hex')) FROM generate_series(1, 4000) i; \
             SELECT lo_create(30001); SELECT lo_create(30002); SELECT lo_put(30002, 3000000, 'far behind'); \
             SELECT lo_from_bytea(30003, decode(repeat('c0ffee', 1000000), 'hex')); \
             ALTER LARGE OBJECT 20002 OWNER TO painter; GRANT SELECT ON LARGE OBJECT 20003 TO \"the public\"; \
             GRANT ALL ON LARGE OBJECT 20004 TO PUBLIC; COMMENT ON LARGE OBJECT 30001 IS 'it''s empty'; CHECKPOINT",
        )
        .expect("objects");
    let expected = gallery.query(OBJECTS).expect("objects");
    assert_eq!(expected.len(), 4003);
    running.stop(StopMode::Fast).expect("stopped");

    let destination = copy_of(&seed(&installation, Checksums::On));
    let running = destination.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE again TEMPLATE template0")
        .expect("a database");
    let mut options = options(Path::new("/nowhere"), "copy");
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, "again")));
    options.selection.databases = vec![Glob::new("gallery")];
    let account = run(&source.pgdata, &options, &AskedOften(AtomicU64::new(2500)));
    assert!(account.expect("begun").interrupted);
    let mut again = session(&running, "again");
    let last = again.query_value("SELECT objects FROM pgclinic_salvage.state");
    let last: u32 = last
        .expect("a ledger")
        .and_then(|last| last.parse().ok())
        .expect("a number");
    assert!((20001..24000).contains(&last), "{last}");
    again
        .execute(
            "SELECT lo_from_bytea(30003, 'of somebody else'); CREATE ROLE keeper; \
             ALTER LARGE OBJECT 30003 OWNER TO keeper",
        )
        .expect("an object");

    let account = run(&source.pgdata, &options, &Quiet).expect("gone on");
    let told: Vec<&str> = account
        .not_salvaged
        .iter()
        .filter(|told| !told.inherent)
        .map(|told| told.what.as_str())
        .collect();
    assert_eq!(told, ["1 large object, the first of them 30003"]);
    assert_eq!(account.large_objects[0].objects, 4002);
    let found = again.query(OBJECTS).expect("objects");
    let without_last = |rows: &[pgclinic_servers::TextRow]| rows[..4002].to_vec();
    assert_eq!(without_last(&found), without_last(&expected));
    let kept = again.query_value("SELECT convert_from(lo_get(30003), 'UTF8')");
    assert_eq!(kept.expect("a value").as_deref(), Some("of somebody else"));
    assert_eq!(found[4002][2].as_deref(), Some("keeper"));
}

/// Stops the server when some pieces are done.
struct PullThePlug {
    server: std::sync::Mutex<Option<Server>>,
    pieces: AtomicU64,
}

impl Progress for PullThePlug {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {
        if self.pieces.fetch_sub(1, Ordering::Relaxed) == 1 {
            let server = self.server.lock().expect("one at a time").take();
            if let Some(mut server) = server {
                server.stop(StopMode::Immediate).expect("stopped");
            }
        }
    }
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// A destination that goes away is an error with the word of what to do, and the same command goes
/// on when it is back.
#[test]
fn a_destination_that_goes_away_is_gone_on_with() {
    let installation = server(15);
    let source = copy_of(&seed(&installation, Checksums::On));
    let mut running = source.start().expect("a server");
    let expected = rows(&running, "clinic");
    running.stop(StopMode::Fast).expect("stopped");

    let destination = copy_of(&seed(&installation, Checksums::On));
    let running = destination.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE again TEMPLATE template0")
        .expect("a database");
    let mut options = options(Path::new("/nowhere"), "copy");
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, "again")));
    options.selection.databases = vec![Glob::new("clinic")];
    let plug = PullThePlug {
        server: std::sync::Mutex::new(Some(running)),
        pieces: AtomicU64::new(20),
    };
    let failed = run(&source.pgdata, &options, &plug).expect_err("it went away");
    assert!(matches!(failed, SalvageError::Server { .. }), "{failed}");
    assert!(
        failed.to_string().contains("The same command goes on"),
        "{failed}"
    );

    let running = destination.start().expect("a server");
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, "again")));
    let account = run(&source.pgdata, &options, &Quiet).expect("gone on");
    assert!(
        account.not_salvaged.iter().all(|one| one.inherent),
        "{:#?}",
        account.not_salvaged
    );
    let found = rows(&running, "again");
    for (name, lines) in &expected {
        assert!(found.get(name) == Some(lines), "{name}");
    }
}

/// Tables of which something is lost, one that no other server makes, and a function that it does
/// not take.
const LOSSES: &str = "\
CREATE DOMAIN public.short AS text; \
CREATE TABLE public.early (id int PRIMARY KEY, word text); \
INSERT INTO public.early SELECT i, 'early ' || i FROM generate_series(1, 2000) i; \
CREATE TABLE public.short_words (id int, word public.short); \
INSERT INTO public.short_words SELECT i, repeat('x', i) FROM generate_series(1, 100) i; \
ALTER DOMAIN public.short ADD CHECK (length(value) < 98) NOT VALID; \
CREATE TABLE public.never (id int) WITH (fillfactor = 70); INSERT INTO public.never VALUES (1), (2); \
UPDATE pg_class SET reloptions = '{nowhere=1}' WHERE relname = 'never'; \
CREATE TABLE public.tail AS SELECT i AS id, repeat('late ', 20) AS word FROM generate_series(1, 40000) i; \
CREATE INDEX tail_id ON public.tail (id); \
CREATE FUNCTION public.odd() RETURNS int LANGUAGE sql AS 'SELECT 1'; \
UPDATE pg_proc SET proconfig = '{nowhere=1}' WHERE proname = 'odd'";

/// A server that says it has no room when an index is made.
const NO_ROOM: &str = "\
CREATE SCHEMA guard; \
CREATE FUNCTION guard.no_room() RETURNS event_trigger LANGUAGE plpgsql AS \
  'BEGIN RAISE EXCEPTION ''no room'' USING ERRCODE = ''53100''; END'; \
CREATE EVENT TRIGGER no_room ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION guard.no_room()";

/// A run that fails while rows are loaded, one that fails behind them, and a third one: its account
/// is that of a single run.
#[test]
fn the_account_of_three_runs_is_that_of_one() {
    let installation = server(15);
    let source = copy_of(&seed(&installation, Checksums::On));
    let mut running = source.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE shop TEMPLATE template0")
        .expect("a database");
    let mut shop = session(&running, "shop");
    shop.execute(LOSSES).expect("tables");
    let paths = ["early", "tail"].map(|table| {
        let path = shop.query_value(&format!("SELECT pg_relation_filepath('public.{table}')"));
        source.pgdata.join(path.expect("a path").expect("a file"))
    });
    shop.execute("CHECKPOINT").expect("a checkpoint");
    running.stop(StopMode::Fast).expect("stopped");
    for path in paths {
        let mut bytes = std::fs::read(&path).expect("a file");
        bytes[8192..2 * 8192].fill(0xFF);
        std::fs::write(&path, bytes).expect("hurt");
    }

    let destination = copy_of(&seed(&installation, Checksums::On));
    let running = destination.start().expect("a server");
    // What belongs to an extension does not make a schema full.
    for name in ["again", "once"] {
        session(&running, "postgres")
            .execute(&format!("CREATE DATABASE {name} TEMPLATE template0"))
            .expect("a database");
        session(&running, name)
            .execute("CREATE EXTENSION hstore SCHEMA public")
            .expect("hstore");
    }
    session(&running, "again")
        .execute(NO_ROOM)
        .expect("a trigger");
    let mut options = options(Path::new("/nowhere"), "copy");
    options.threads = std::num::NonZeroUsize::MIN;
    options.selection.databases = vec![Glob::new("shop")];
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, "once")));
    let at_once = run(&source.pgdata, &options, &Quiet).expect("loaded");
    assert_eq!(at_once.outcome, Outcome::Damaged);
    let table = |name: &str| at_once.tables.iter().find(|table| table.table == name);
    for name in ["early", "tail", "short_words", "never"] {
        let table = table(name).expect("a table");
        assert!(!table.is_whole(), "{table:?}");
    }
    assert!(table("never").is_some_and(|table| table.file.is_none()));
    let mut told = at_once.not_salvaged.iter();
    assert!(
        told.any(|told| told.what.contains("odd")),
        "{:?}",
        at_once.not_salvaged
    );

    options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, "again")));
    // Pieces of a MiB: one of each of the first three tables, several of the last one.
    let plug = PullThePlug {
        server: std::sync::Mutex::new(Some(running)),
        pieces: AtomicU64::new(5),
    };
    run(&source.pgdata, &options, &plug).expect_err("it went away");
    let running = destination.start().expect("a server");
    let mut again = session(&running, "again");
    let whole = again.query("SELECT name FROM pgclinic_salvage.tables ORDER BY 1");
    let whole: Vec<String> = whole
        .expect("a ledger")
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    assert_eq!(whole, ["public.early", "public.short_words"]);
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, "again")));
    let failed = run(&source.pgdata, &options, &Quiet).expect_err("no room");
    assert!(failed.to_string().contains("no room"), "{failed}");
    again
        .execute("DROP EVENT TRIGGER no_room")
        .expect("dropped");

    let told = |account: &SalvageReport| serde_json::to_value(account).expect("plain data");
    let account = run(&source.pgdata, &options, &Quiet).expect("gone on");
    assert_eq!(told(&account), told(&at_once));
    // Until somebody says that the account is written, it can be had once more.
    let account = run(&source.pgdata, &options, &Quiet).expect("once more");
    assert_eq!(told(&account), told(&at_once));
    end_of_load(&ConnectionTarget::of(&running, "again")).expect("ended");
    let refused = run(&source.pgdata, &options, &Quiet).expect_err("refused");
    assert!(
        matches!(refused, SalvageError::SchemaHoldsSomething(_)),
        "{refused}"
    );
}

/// A schema of functions or types alone holds something too.
#[test]
fn a_schema_without_tables_is_not_loaded_into() {
    let installation = server(15);
    let source = copy_of(&seed(&installation, Checksums::On));
    let mut running = source.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE shop TEMPLATE template0")
        .expect("a database");
    session(&running, "shop")
        .execute(
            "CREATE TABLE public.t AS SELECT 1 AS id; CREATE SCHEMA tools; CREATE SCHEMA types; CREATE SCHEMA empty; \
             CREATE FUNCTION tools.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TYPE types.mood AS ENUM ('good'); CHECKPOINT",
        )
        .expect("a schema");
    running.stop(StopMode::Fast).expect("stopped");
    let destination = copy_of(&seed(&installation, Checksums::On));
    let running = destination.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE again TEMPLATE template0")
        .expect("a database");
    let mut again = session(&running, "again");
    again
        .execute(
            "CREATE SCHEMA tools; CREATE SCHEMA types; CREATE SCHEMA empty; CREATE TABLE empty.t (id int); \
             CREATE FUNCTION tools.f() RETURNS int LANGUAGE sql AS 'SELECT 2'; CREATE TYPE types.mood AS ENUM ('bad')",
        )
        .expect("schemas");
    let mut options = options(Path::new("/nowhere"), "copy");
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, "again")));
    options.selection.databases = vec![Glob::new("shop")];
    let refused = run(&source.pgdata, &options, &Quiet).expect_err("refused");
    assert!(
        matches!(&refused, SalvageError::SchemaHoldsSomething(schemas) if schemas == &["tools", "types"]),
        "{refused}"
    );
    let ledger = again.query_value("SELECT to_regnamespace('pgclinic_salvage')");
    assert_eq!(ledger.expect("an answer"), None);
}

/// Rows alone are not the database: what its catalogs have lost is in the account.
#[test]
fn a_schema_that_lost_its_constraints_is_not_loaded_as_whole() {
    let installation = server(15);
    let source = copy_of(&seed(&installation, Checksums::On));
    let mut running = source.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE shop TEMPLATE template0")
        .expect("a database");
    let mut shop = session(&running, "shop");
    shop.execute("CREATE TABLE public.t (id int PRIMARY KEY); INSERT INTO public.t VALUES (1)")
        .expect("a table");
    let path = "SELECT pg_relation_filepath('pg_constraint')";
    let path = shop.query_value(path).expect(path).expect("a path");
    drop(shop);
    running.stop(StopMode::Fast).expect("stopped");
    std::fs::write(source.pgdata.join(path), "").expect("emptied");
    let destination = copy_of(&seed(&installation, Checksums::On));
    let running = destination.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE again TEMPLATE template0")
        .expect("a database");
    let mut options = options(Path::new("/nowhere"), "copy");
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, "again")));
    options.selection.databases = vec![Glob::new("shop")];
    let account = run(&source.pgdata, &options, &Quiet).expect("loaded");
    assert_eq!(account.outcome, Outcome::Incomplete);
    let mut gaps = account.not_salvaged.iter();
    let is_told = gaps.any(|gap| gap.why.starts_with("pg_constraint: "));
    assert!(is_told, "{:#?}", account.not_salvaged);
    assert_eq!(account.totals.written, 1);
}
