//! The second half of `pg_amcheck`'s test of heap tuples, on a real server: chains of updates are
//! made, pruned, rolled back and left open, then their line pointers and headers are changed, and
//! what `amcheck` finds is found here at the same line pointer. And a table on which much goes on
//! stays silent.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_ONLY_TUPLE, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMIN_FROZEN,
};
use pgclinic_format::{HeapTuple, LinePointer, LpFlags, Page};
use pgclinic_model::{CheckDocument, Level, Severity};
use pgclinic_servers::{Checksums, Server, Session, StartOptions, StopMode};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{TempCopy, all_majors, checked, copy_of, seed};

fn check(pgdata: &Path) -> CheckDocument {
    let source = Arc::new(DataDirectory::open(pgdata).expect("a directory"));
    let cluster = Cluster::open(source).expect("a cluster");
    checked(&cluster, Level::Full)
}

fn copy(major: u16, checksums: Checksums) -> TempCopy {
    let installation = all_majors().into_iter().find(|one| one.major == major);
    copy_of(&seed(&installation.expect("a major"), checksums))
}

fn start(copy: &TempCopy) -> Server {
    let options = StartOptions::default()
        .with("max_prepared_transactions", "4")
        .with("autovacuum", "off");
    copy.start_with(&options).expect("a server")
}

fn run(session: &mut Session, batches: &[&str]) {
    for batch in batches {
        session
            .execute(batch)
            .unwrap_or_else(|error| panic!("{batch}: {error}"));
    }
}

fn number(session: &mut Session, sql: &str) -> u32 {
    let value = session
        .query_value(sql)
        .expect("an answer")
        .expect("a value");
    value.parse().expect("a number")
}

/// Line pointers 1-4 redirect to 5-8; 9-18 are inserted, 9 and 12-17 updated to 19-25 in that
/// order, and an update of 11 was rolled back (26).
const CHAINS: &[&str] = &[
    "CREATE TABLE public.chained (id int, what text)",
    "INSERT INTO public.chained SELECT i, 'first' FROM generate_series(1, 4) AS i",
    "UPDATE public.chained SET what = 'second'",
    "VACUUM (FREEZE) public.chained",
    "INSERT INTO public.chained SELECT i, 'first' FROM generate_series(9, 18) AS i",
    "UPDATE public.chained SET what = 'second' WHERE id = 9",
    "UPDATE public.chained SET what = 'second' WHERE id = 12",
    "UPDATE public.chained SET what = 'second' WHERE id = 13",
    "UPDATE public.chained SET what = 'second' WHERE id = 14",
    "UPDATE public.chained SET what = 'second' WHERE id = 15",
    "UPDATE public.chained SET what = 'second' WHERE id = 16",
    "UPDATE public.chained SET what = 'second' WHERE id = 17",
    "BEGIN; UPDATE public.chained SET what = 'never' WHERE id = 11; ROLLBACK",
    "SELECT count(*) FROM public.chained",
    "BEGIN; CREATE TABLE public.kept_open (); PREPARE TRANSACTION 'open'",
];

/// A page whose tuples are edited in place.
struct Edited(Vec<u8>);

impl Edited {
    fn at(&self, item: u16) -> usize {
        let page = Page::parse(&self.0).expect("a page");
        let pointer = page.line_pointer(item).expect("a line pointer");
        assert_eq!(pointer.flags(), LpFlags::Normal, "line pointer {item}");
        usize::from(pointer.lp_off())
    }

    fn header(&self, item: u16) -> (u32, u32, u16, u16) {
        let tuple = HeapTuple::parse(&self.0[self.at(item)..]).expect("a tuple");
        let (xmin, xmax) = (tuple.t_xmin().0, tuple.t_xmax().0);
        (xmin, xmax, tuple.t_infomask2(), tuple.t_infomask())
    }

    fn xid(&mut self, item: u16, field: usize, xid: u32) {
        let at = self.at(item) + field;
        put_u32(&mut self.0, at, xid);
    }

    fn flags(&mut self, item: u16, field: usize, clear: u16, set: u16) {
        let (_, _, mask2, mask) = self.header(item);
        let at = self.at(item) + field;
        let old = if field == 18 { mask2 } else { mask };
        put_u16(&mut self.0, at, old & !clear | set);
    }

    fn redirect(&mut self, item: u16, target: u16) {
        let at = 20 + 4 * usize::from(item);
        put_u32(
            &mut self.0,
            at,
            LinePointer::new(target, LpFlags::Redirect, 0).0,
        );
    }
}

/// Hurts the page in all the ways at once; each line pointer in one way.
fn hurt(page: &mut Edited, prepared: u32) {
    let aborted = page.header(26).0;
    page.flags(5, 18, HEAP_ONLY_TUPLE, 0);
    page.redirect(2, 1);
    page.redirect(4, 7);
    page.flags(9, 18, HEAP_HOT_UPDATED, 0);
    let of_9 = page.header(9).1;
    page.xid(10, 4, of_9);
    let ctid = page.at(10) + 16;
    put_u16(&mut page.0, ctid, 19);
    page.xid(12, 0, aborted);
    page.flags(12, 20, HEAP_XMIN_FROZEN, 0);
    page.flags(21, 18, HEAP_ONLY_TUPLE, 0);
    page.xid(14, 4, 0);
    page.xid(15, 0, prepared);
    page.flags(15, 20, HEAP_XMIN_FROZEN, 0);
    page.xid(16, 0, aborted);
    page.xid(16, 4, prepared);
    page.flags(
        16,
        20,
        HEAP_XMIN_FROZEN | HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID,
        0,
    );
    page.xid(24, 0, prepared);
    page.flags(24, 20, HEAP_XMIN_FROZEN, 0);
    page.flags(18, 18, 0, HEAP_ONLY_TUPLE);
}

const EXPECTED: [&str; 18] = [
    "1 redirect-to-indexed-row",
    "10 hot-flags-disagree",
    "10 update-chains-meet",
    "10 xmax-hint-wrong",
    "12 update-outlives-row",
    "13 hot-flags-disagree",
    "14 hot-update-leads-nowhere",
    "14 xmax-hint-wrong",
    "15 update-outlives-row",
    "16 update-outlives-row",
    "18 heap-only-not-updated",
    "18 heap-only-without-chain",
    "2 redirect-target",
    "22 heap-only-without-chain",
    "4 update-chains-meet",
    "6 heap-only-without-chain",
    "8 heap-only-without-chain",
    "9 hot-flags-disagree",
];

#[test]
fn what_amcheck_finds_in_update_chains_is_found_at_the_same_place() {
    let copy = copy(18, Checksums::Off);
    let mut server = start(&copy);
    let mut session = server.connect("clinic").expect("a session");
    run(&mut session, CHAINS);
    let prepared = number(&mut session, "SELECT transaction FROM pg_prepared_xacts");
    let path = "SELECT pg_relation_filepath('public.chained')";
    let path = session
        .query_value(path)
        .expect("an answer")
        .expect("a path");
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
    let before = check(&copy.pgdata);
    assert_eq!(before.findings, [], "a healthy cluster");

    let file = copy.pgdata.join(&path);
    let mut page = Edited(std::fs::read(&file).expect("the file"));
    assert_eq!(page.0.len(), 8192, "one page");
    hurt(&mut page, prepared);
    std::fs::write(&file, &page.0).expect("a write");

    let document = check(&copy.pgdata);
    let ours = document
        .findings
        .iter()
        .filter(|finding| finding.place.path == path);
    let told: BTreeSet<String> = ours
        .clone()
        .map(|finding| format!("{} {}", finding.place.item.unwrap_or(0), finding.rule))
        .collect();
    assert_eq!(Vec::from_iter(&told), EXPECTED);

    let items: BTreeSet<u32> = ours
        .filter_map(|finding| finding.place.item.map(u32::from))
        .collect();
    let server = start(&copy);
    let mut session = server.connect("clinic").expect("a session");
    run(&mut session, &["CREATE EXTENSION IF NOT EXISTS amcheck"]);
    let schema = "SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'amcheck'";
    let schema = session
        .query_value(schema)
        .expect("an answer")
        .expect("a schema");
    let sql = format!("SELECT offnum, msg FROM {schema}.verify_heapam('public.chained')");
    let theirs = session.query(&sql).expect("an answer");
    assert!(theirs.len() >= 12, "{theirs:?}");
    for row in theirs {
        let item: u32 = row[0]
            .as_deref()
            .expect("a number")
            .parse()
            .expect("a number");
        assert!(items.contains(&item), "missed: {row:?}");
    }
}

/// Two sessions that update, lock, roll back, prune and freeze rows of one table.
fn busy(first: &mut Session, second: &mut Session) {
    run(
        first,
        &[
            "CREATE TABLE public.busy (id int PRIMARY KEY, n int, what text) WITH (fillfactor = 70)",
            "CREATE TABLE public.child (id int REFERENCES public.busy (id))",
            "INSERT INTO public.busy SELECT i, 0, repeat(md5(i::text), 3) FROM generate_series(1, 2000) AS i",
            "INSERT INTO public.child SELECT i FROM generate_series(1, 300) AS i",
            "UPDATE public.busy SET n = 1 WHERE id % 3 = 0",
            "UPDATE public.busy SET n = 2 WHERE id % 6 = 0",
            "VACUUM public.busy",
            "UPDATE public.busy SET n = 3 WHERE id % 4 = 0",
            "BEGIN; UPDATE public.busy SET n = -1 WHERE id % 5 = 0; DELETE FROM public.busy WHERE id > 300 AND id % 7 = 0; ROLLBACK",
            "DELETE FROM public.busy WHERE id > 400 AND id % 11 = 0",
            "BEGIN",
            "SELECT count(*) FROM (SELECT 1 FROM public.busy WHERE id BETWEEN 500 AND 600 FOR KEY SHARE) AS locked",
        ],
    );
    run(
        second,
        &[
            "BEGIN",
            "SELECT count(*) FROM (SELECT 1 FROM public.busy WHERE id BETWEEN 500 AND 550 FOR SHARE) AS locked",
            "COMMIT",
            "BEGIN",
            "UPDATE public.busy SET n = n + 1 WHERE id BETWEEN 551 AND 580",
            "SAVEPOINT a",
            "UPDATE public.busy SET n = n + 10 WHERE id BETWEEN 560 AND 575",
            "ROLLBACK TO a",
            "UPDATE public.busy SET n = n + 20 WHERE id BETWEEN 565 AND 590",
            "COMMIT",
            "BEGIN",
            "UPDATE public.busy SET n = n + 1 WHERE id BETWEEN 591 AND 600",
            "ROLLBACK",
        ],
    );
    run(
        first,
        &[
            "SAVEPOINT b",
            "UPDATE public.busy SET n = n + 1 WHERE id BETWEEN 500 AND 520",
            "ROLLBACK TO b",
            "SELECT count(*) FROM (SELECT 1 FROM public.busy WHERE id BETWEEN 510 AND 530 FOR UPDATE) AS locked",
            "COMMIT",
            "UPDATE public.busy SET n = n + 1 WHERE id BETWEEN 560 AND 600",
            "SELECT count(*) FROM public.busy",
            "VACUUM (FREEZE) public.busy",
            "UPDATE public.busy SET n = n + 1 WHERE id BETWEEN 100 AND 300",
            "UPDATE public.busy SET id = id + 100000 WHERE id BETWEEN 120 AND 140 AND id NOT IN (SELECT id FROM public.child)",
            "BEGIN; UPDATE public.busy SET n = -7 WHERE id BETWEEN 700 AND 720; DELETE FROM public.busy WHERE id = 721; PREPARE TRANSACTION 'left open'",
            "BEGIN; SELECT count(*) FROM (SELECT 1 FROM public.busy WHERE id BETWEEN 730 AND 740 FOR UPDATE) AS locked; PREPARE TRANSACTION 'left locked'",
        ],
    );
    run(
        second,
        &[
            "INSERT INTO public.busy SELECT i, 0, 'more' FROM generate_series(3000, 3100) AS i ON CONFLICT DO NOTHING",
            "INSERT INTO public.busy VALUES (3001, 1, 'x') ON CONFLICT (id) DO UPDATE SET n = excluded.n",
            "BEGIN; CREATE TABLE public.loaded (i int, t text); INSERT INTO public.loaded SELECT i, NULL FROM generate_series(1, 500) AS i; COMMIT",
            "ALTER TABLE public.loaded DROP COLUMN i, ADD COLUMN more numeric DEFAULT 1.5",
            "UPDATE public.loaded SET t = 'x'",
            "VACUUM public.loaded",
            "SELECT count(*) FROM public.loaded",
            "CREATE TABLE public.grown (id int, what text)",
            "INSERT INTO public.grown SELECT i, 'x' FROM generate_series(1, 100) AS i",
            "ALTER TABLE public.grown ADD COLUMN a text DEFAULT 'short', ADD COLUMN b int, ADD COLUMN c numeric DEFAULT 12345.678",
            "CREATE FUNCTION public.same() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id % 2 = 0 THEN RETURN OLD; END IF; NEW.b := 7; RETURN NEW; END $$",
            "CREATE TRIGGER same BEFORE UPDATE ON public.grown FOR EACH ROW EXECUTE FUNCTION public.same()",
            "UPDATE public.grown SET what = 'y' WHERE id < 60",
            "CREATE TABLE public.taken AS TABLE public.grown",
            "INSERT INTO public.grown SELECT * FROM public.grown WHERE id > 50",
            "SELECT count(*) FROM public.grown",
        ],
    );
}

#[test]
fn a_busy_table_is_silent() {
    for major in [13, 15, 16, 18] {
        let copy = copy(major, Checksums::On);
        let mut server = start(&copy);
        let mut first = server.connect("clinic").expect("a session");
        let mut second = server.connect("clinic").expect("a session");
        busy(&mut first, &mut second);
        drop((first, second));
        server.stop(StopMode::Fast).expect("a stop");
        assert_eq!(check(&copy.pgdata).findings, [], "PostgreSQL {major}");

        let mut server = start(&copy);
        let mut first = server.connect("clinic").expect("a session");
        run(
            &mut first,
            &[
                "UPDATE public.busy SET n = n + 1 WHERE id BETWEEN 1000 AND 1200",
                "CHECKPOINT",
                "UPDATE public.busy SET n = n + 1 WHERE id BETWEEN 1100 AND 1300",
                "BEGIN; UPDATE public.busy SET n = n + 1 WHERE id BETWEEN 1100 AND 1300",
                "SELECT count(*) FROM public.busy",
            ],
        );
        server.kill();
        let document = check(&copy.pgdata);
        let loud = document
            .findings
            .iter()
            .filter(|finding| finding.severity != Severity::Note);
        assert_eq!(loud.count(), 0, "killed, PostgreSQL {major}: {document:?}");
    }
}
