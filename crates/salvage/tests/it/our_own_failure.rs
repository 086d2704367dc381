//! A salvage goes on where our own code fails on a row: its page is told with the place, nobody
//! waits for its piece, and the table is incomplete, as what is missing of it may be whole in the
//! files.

use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, TableAccount};
use pgclinic_salvage::formats::{FORMS, Form};
use pgclinic_salvage::{Row, Table, Texts};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

use crate::common::{options, salvaged, session};

/// The form of COPY, but for the rows that hold this text.
struct FailsOnRequest;

const REQUEST: &[u8] = b"pgclinic fails on this row";

static FAILS_ON_REQUEST: FailsOnRequest = FailsOnRequest;

impl FailsOnRequest {
    fn copy_text(&self) -> &'static dyn Form {
        let mut forms = FORMS.iter();
        *forms.find(|form| form.name() == "copy").expect("COPY text")
    }
}

impl Form for FailsOnRequest {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn extension(&self) -> &'static str {
        self.copy_text().extension()
    }

    fn head(&self, table: &Table, out: &mut Vec<u8>) {
        self.copy_text().head(table, out);
    }

    fn row(&self, table: &Table, row: &Row<'_>, texts: &mut Texts, out: &mut Vec<u8>) {
        let start = out.len();
        self.copy_text().row(table, row, texts, out);
        let written = out.get(start..).unwrap_or_default();
        let asks = written.windows(REQUEST.len()).any(|bytes| bytes == REQUEST);
        assert!(!asks, "a row asked for it");
    }

    fn tail(&self, out: &mut Vec<u8>) {
        self.copy_text().tail(out);
    }
}

fn table<'a>(tables: &'a [TableAccount], name: &str) -> &'a TableAccount {
    let mut tables = tables.iter();
    tables
        .find(|table| table.table == name)
        .expect("the table is in the account")
}

#[test]
fn a_row_on_which_the_printing_fails_ends_neither_its_table_nor_the_run() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = session(&running, "postgres");
    for sql in [
        "CREATE SCHEMA ours",
        "CREATE TABLE ours.asks (id int PRIMARY KEY, word text)",
        "INSERT INTO ours.asks SELECT n, CASE n WHEN 9000 THEN 'pgclinic fails on this row' ELSE md5(n::text) END FROM generate_series(1, 30000) n",
        "CREATE TABLE ours.other AS SELECT n AS id, md5(n::text) AS word FROM generate_series(1, 30000) n",
    ] {
        session.execute(sql).expect(sql);
    }
    running.stop(StopMode::Fast).expect("stopped");
    for threads in [1, 2] {
        let folder = tempfile::tempdir().expect("a directory");
        let mut options = options(&folder.path().join("out"), "copy");
        options.form = &FAILS_ON_REQUEST;
        options.threads = std::num::NonZeroUsize::new(threads).expect("a thread");
        options.selection.relations = vec![Glob::new("ours.*")];
        let account = salvaged(&copy.pgdata, &options);
        assert_eq!(account.outcome, Outcome::Incomplete);
        let other = table(&account.tables, "other");
        assert_eq!((other.rows.written, other.places.len()), (30_000, 0));
        let asks = table(&account.tables, "asks");
        assert!(asks.out_of_reach && asks.file.is_some());
        let [place] = asks.places.as_slice() else {
            panic!("one page failed, not {:?}", asks.places);
        };
        assert!(place.why.contains("a row asked for it"), "{}", place.why);
        // The rows before it on its page, and those of all other pages.
        let written = asks.rows.written;
        assert!((29_800..30_000).contains(&written), "{written}");
        let file = folder
            .path()
            .join("out")
            .join(asks.file.as_ref().expect("a file"));
        let text = std::fs::read_to_string(file).expect("rows");
        assert_eq!(text.lines().count() as u64, written);
        assert!(text.lines().all(|line| line.split('\t').count() == 2));
    }
}
