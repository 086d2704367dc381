//! `pg_class` counts more pages than a table has, and nothing is wrong: a check notes it. A salvage
//! leaves the question open, except from 18 on, where statistics are restored.

use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::{Cluster, OpenOptions};
use pgclinic_model::document::Outcome;
use pgclinic_model::{Glob, Level, Verdict};
use pgclinic_salvage::salvage;
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{Quiet, checked, copy_of, execute, open, seed, server, value};

use crate::common::options;

/// TRUNCATE of a table that its own transaction made empties its file and leaves what ANALYZE
/// counted.
const TRUNCATED: &str = "\
BEGIN;
CREATE TABLE public.emptied (id int);
INSERT INTO public.emptied SELECT generate_series(1, 5000);
ANALYZE public.emptied;
TRUNCATE public.emptied;
COMMIT";

/// A dump restores the statistics of a table that was bloated.
const RESTORED: &str = "\
CREATE TABLE public.emptied (id int);
INSERT INTO public.emptied SELECT generate_series(1, 500);
SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', 'emptied', \
  'relpages', 900, 'reltuples', 200000::real, 'relallvisible', 900)";

fn outcome_of(cluster: &Cluster) -> (Outcome, Vec<String>) {
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("out"), "csv");
    options.selection.relations = vec![Glob::new("public.emptied")];
    let account = salvage(cluster, &options, &Quiet).expect("a destination");
    let told = account.not_salvaged.iter();
    let told = told.filter(|gap| gap.what.starts_with("the end of table public.emptied"));
    (account.outcome, told.map(|gap| gap.why.clone()).collect())
}

fn running(pgdata: &Path) -> Cluster {
    let source = DataDirectory::open_beside_a_server(pgdata).expect("a directory");
    Cluster::open(OpenOptions::of(Arc::new(source)).running()).expect("a cluster")
}

fn is_too_large(server: &Server) {
    let sql =
        "SELECT relpages > pg_relation_size(oid) / 8192 FROM pg_class WHERE relname = 'emptied'";
    assert_eq!(value(server, sql), "t");
}

fn nothing_is_missing(major: u16, work: &str, expected: Outcome) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut server = copy.start().expect("a server");
    execute(&server, work);
    is_too_large(&server);
    execute(&server, "CHECKPOINT");
    let (outcome, _) = outcome_of(&running(&copy.pgdata));
    assert_eq!(outcome, expected, "beside a server");
    server.stop(StopMode::Fast).expect("stopped");
    let (outcome, told) = outcome_of(&open(&copy.pgdata));
    assert_eq!(outcome, expected);
    assert!(
        matches!(told.as_slice(), [why] if why.contains("pg_class counts")),
        "{told:?}"
    );
    let document = checked(&open(&copy.pgdata), Level::Structure);
    let verdict = match expected {
        Outcome::Whole => Verdict::Healthy,
        Outcome::Damaged | Outcome::Incomplete => Verdict::Incomplete,
    };
    assert_eq!(document.verdict, verdict);
    let mut rules = document
        .findings
        .iter()
        .map(|finding| finding.rule.as_str());
    assert!(rules.any(|rule| rule == "pages-beyond-end"));
}

#[test]
fn a_table_that_was_truncated_where_it_was_made_leaves_the_question() {
    nothing_is_missing(15, TRUNCATED, Outcome::Incomplete);
}

#[test]
fn a_table_with_restored_statistics_is_whole() {
    nothing_is_missing(18, RESTORED, Outcome::Whole);
}
