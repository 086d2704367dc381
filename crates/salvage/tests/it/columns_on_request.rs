//! Columns that are written only where somebody asks for them: generated and dropped ones.

#![allow(
    clippy::fn_params_excessive_bools,
    reason = "a test that panics has failed"
)]

use pgclinic_model::Glob;
use pgclinic_model::document::Outcome;

use crate::common;

use std::path::Path;

use common::{compare, copied, lines, options, salvaged, session};
use pgclinic_salvage::{Destination, Encoding, SalvageError, salvage};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, StopMode};
use pgclinic_testkit::{Quiet, TempCopy, copy_of, open, seed, server};

const WORK: &str = "\
CREATE TABLE public.made (id int, gone int, name text, faded text, \
  twice int GENERATED ALWAYS AS (id * 2) STORED, loud text GENERATED ALWAYS AS (upper(name)) STORED); \
INSERT INTO public.made (id, gone, name, faded) VALUES (1, 258, 'one', 'away'), (2, NULL, 'two', NULL); \
ALTER TABLE public.made DROP gone, DROP faded; \
INSERT INTO public.made VALUES (3, 'three')";

fn shop() -> (TempCopy, Server) {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE shop TEMPLATE template0")
        .and_then(|()| session(&running, "shop").execute(WORK))
        .expect("a table");
    (copy, running)
}

/// The file of the table, with these columns beside the usual ones.
fn written(pgdata: &Path, generated: bool, dropped: bool) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let mut options = options(&destination, "csv");
    options.selection.databases = vec![Glob::new("shop")];
    (options.generated, options.dropped) = (generated, dropped);
    let account = salvaged(pgdata, &options);
    assert_eq!(account.outcome, Outcome::Whole, "{account:#?}");
    std::fs::read(destination.join("shop/public.made.csv")).expect("a file")
}

#[test]
fn generated_and_dropped_columns_are_written_on_request() {
    let (copy, mut running) = shop();
    let mut expected = Vec::new();
    session(&running, "shop")
        .copy_out(
            "COPY (SELECT * FROM public.made) TO STDOUT (FORMAT csv, HEADER)",
            &mut |data| expected.extend_from_slice(data),
        )
        .expect("rows");
    running.stop(StopMode::Fast).expect("stopped");
    assert!(expected.starts_with(b"id,name,twice,loud\n1,one,2,ONE\n"));
    assert_eq!(lines(&written(&copy.pgdata, true, false)), lines(&expected));

    // A number of four bytes, and a text without its length.
    let dropped = "id,........pg.dropped.2........,name,........pg.dropped.4........\n\
                   1,\\x02010000,one,\\x61776179\n2,,two,\n3,,three,\n";
    let found = written(&copy.pgdata, false, true);
    assert_eq!(String::from_utf8_lossy(&found), dropped);
    let plain = written(&copy.pgdata, false, false);
    assert_eq!(
        String::from_utf8_lossy(&plain),
        "id,name\n1,one\n2,two\n3,three\n"
    );
}

/// A server computes generated columns by itself; what has no place there is refused before
/// anything is done.
#[test]
fn a_server_gets_the_columns_that_it_takes() {
    let (copy, mut running) = shop();
    let expected = copied(&running, "shop", "");
    let all = "SELECT * FROM public.made ORDER BY id";
    let rows = session(&running, "shop").query(all).expect("rows");
    running.stop(StopMode::Fast).expect("stopped");

    let destination = copy_of(&seed(&server(15), Checksums::On));
    let running = destination.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE again TEMPLATE template0")
        .expect("a database");
    let mut options = options(Path::new("/nowhere"), "copy");
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, "again")));
    options.selection.databases = vec![Glob::new("shop")];
    options.generated = true;

    let mut with_dropped = options.clone();
    with_dropped.dropped = true;
    let mut raw = options.clone();
    raw.encoding = Encoding::Raw;
    for (options, word) in [(with_dropped, "--dropped"), (raw, "--encoding raw")] {
        let refused = salvage(&open(&copy.pgdata), &options, &Quiet).expect_err("refused");
        assert!(
            matches!(&refused, SalvageError::Unsuitable(why) if why.contains(word)),
            "{refused}"
        );
    }
    let schemas = "SELECT count(*) FROM pg_class WHERE oid >= 16384";
    let made = session(&running, "again").query_value(schemas);
    assert_eq!(made.expect("a count").as_deref(), Some("0"));

    let account = salvaged(&copy.pgdata, &options);
    assert_eq!(account.outcome, Outcome::Whole, "{account:#?}");
    assert_eq!(session(&running, "again").query(all).expect("rows"), rows);

    // And from a folder, the usual columns are those of the server's own COPY.
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = common::options(&folder.path().join("out"), "copy");
    options.selection.databases = vec![Glob::new("shop")];
    salvaged(&copy.pgdata, &options);
    compare(&folder.path().join("out"), "copy", &expected);
}
