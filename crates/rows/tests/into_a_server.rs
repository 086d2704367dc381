//! A salvage into a running server: the loaded database is the one that was salvaged, also when it took two runs.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Lines, copied, options, session};
use pgclinic_diagnose::{Glob, Progress};
use pgclinic_rows::{Account, Destination, SalvageError, SalvageOptions, salvage};
use pgclinic_servers::{Checksums, Server, StopMode, Target};
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
) -> Result<Account, SalvageError> {
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

#[test]
fn the_loaded_database_is_the_salvaged_one() {
    let installation = server(15);
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
    let target = Box::new(Target::of(&running, "again"));
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
    let told: Vec<_> = account
        .not_salvaged
        .iter()
        .filter(|told| told.what != "large objects")
        .collect();
    assert!(told.is_empty(), "{told:#?}");
    assert_eq!(account.totals.lost, 0);
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
    options.destination = Destination::Server(Box::new(Target::of(&running, "again")));
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
