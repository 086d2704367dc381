//! The schema of a database whose function bodies and views are larger than memory is the same as
//! with all the memory there is.

use std::path::Path;

use pgclinic_model::document::SalvageReport;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_spill::MemoryPlan;
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

use crate::common::{options, salvaged, session};

/// Bodies of 1.3 MiB that do not compress, bodies that do, tags within a body, views, and a comment
/// that is longer than a value may be.
const CATALOG: &str = r"
DO $do$
DECLARE hex text;
BEGIN
  FOR i IN 1..12 LOOP
    SELECT string_agg(md5(g::text || i), '') INTO hex FROM generate_series(1, 40000) g;
    EXECUTE format('CREATE FUNCTION public.f%s() RETURNS text LANGUAGE sql AS %L', i, 'SELECT ''' || hex || '''');
    EXECUTE format('CREATE FUNCTION public.g%s() RETURNS text LANGUAGE plpgsql AS %L', i, 'BEGIN RETURN ''' || repeat('$_x über ', 90000) || '''; END');
    SELECT string_agg(format('%L::text AS c%s', md5(g::text || i), g), ',') INTO hex FROM generate_series(1, 200) g;
    EXECUTE format('CREATE VIEW public.v%s AS SELECT %s', i, hex);
  END LOOP;
  EXECUTE format('COMMENT ON FUNCTION public.f1() IS %L', repeat('long ', 300000));
  COMMENT ON FUNCTION public.f2() IS 'short';
END $do$;
CHECKPOINT";

const LIMITED_BYTES: u64 = 4 << 20;
/// One for each thread.
const OUTPUT_PIECES: u64 = 2 << 20;

fn schema(copy: &TempCopy, folder: &Path, memory: MemoryPlan) -> (String, String, SalvageReport) {
    let mut options = options(&folder.join("out"), "copy");
    options.ddl = Some(folder.join("schema.sql"));
    options.memory = memory;
    let account = salvaged(&copy.pgdata, &options);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    (read("schema.sql"), read("out/load.sql"), account)
}

#[test]
fn a_schema_larger_than_memory_is_written_whole() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    session(&running, "clinic")
        .execute(CATALOG)
        .expect("a catalog");
    running.stop(StopMode::Fast).expect("stopped");

    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let plan = MemoryPlan::new(LIMITED_BYTES);
    let (wide, wide_load, _) = schema(&copy, folders[0].path(), MemoryPlan::default());
    let (narrow, narrow_load, account) = schema(&copy, folders[1].path(), plan.clone());
    assert!(wide.len() as u64 > 6 * LIMITED_BYTES, "{}", wide.len());
    // A piece of output that is made is written, whether or not there is room for it.
    let most = LIMITED_BYTES + OUTPUT_PIECES;
    assert!(plan.peak() <= most, "{}", plan.peak());
    assert_eq!(plan.used(), 0, "every lease comes back");

    // What is longer than a value may be is left out, and said.
    let left_out = "-- NOT WRITTEN: of FUNCTION public.f1(): its description has 1500000 bytes, more than --memory allows";
    let same = |text: &str| -> Vec<String> {
        let lines = text.lines();
        let is_comment = |line: &&str| line.starts_with("COMMENT ON FUNCTION public.f1()");
        lines
            .filter(|line| !is_comment(line) && *line != left_out)
            .map(str::to_owned)
            .collect()
    };
    for (wide, narrow) in [(&wide, &narrow), (&wide_load, &narrow_load)] {
        assert!(narrow.contains(left_out) && !wide.contains("NOT WRITTEN"));
        assert!(same(wide) == same(narrow), "the rest is the same");
    }
    assert!(narrow.contains("COMMENT ON FUNCTION public.f2() IS 'short';"));
    let mut told = account.not_salvaged.iter();
    assert!(
        told.any(|told| told.why.contains("more than --memory allows")),
        "{:?}",
        account.not_salvaged
    );
}
