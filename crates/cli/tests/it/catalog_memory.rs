//! Function bodies and views that are larger than `--memory`: no command takes more than it was
//! given and what the program is itself.

use std::path::Path;
use std::process::{Command, Stdio};

use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

use crate::common::text;

const MEMORY: &str = "16MiB";
const MEMORY_BYTES: u64 = 16 << 20;
/// What the program, its threads and their buffers take beside `--memory`: 15 MiB of it are pages
/// of the program itself, as it is built for tests.
const BESIDE_BYTES: u64 = 43 << 20;

/// 60 MiB of bodies, one of them larger than `--memory`, and views.
const CATALOG: &str = r"
DO $do$
DECLARE body text; columns text;
BEGIN
  SELECT string_agg(md5(g::text), '') INTO body FROM generate_series(1, 32768) g;
  FOR i IN 1..40 LOOP
    EXECUTE format('CREATE FUNCTION public.f%s() RETURNS text LANGUAGE sql AS %L', i, 'SELECT ''' || i || body || '''');
    SELECT string_agg(format('%L::text AS c%s', md5(g::text || i), g), ',') INTO columns FROM generate_series(1, 300) g;
    EXECUTE format('CREATE VIEW public.v%s AS SELECT %s', i, columns);
  END LOOP;
  SELECT string_agg(md5((-g)::text), '') INTO body FROM generate_series(1, 655360) g;
  EXECUTE format('CREATE FUNCTION public.huge() RETURNS text LANGUAGE plpgsql AS %L', 'BEGIN RETURN ''' || body || '''; END');
END $do$;
CHECKPOINT";

fn high_water(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The most memory that the program had.
fn peak_of(arguments: &[&str]) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pgclinic"))
        .args(arguments)
        .args(["--memory", MEMORY, "--jobs", "2", "--quiet"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program");
    let mut peak = 0;
    loop {
        peak = high_water(child.id()).unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait().expect("a process") {
            assert_eq!(status.code(), Some(0), "{arguments:?}");
            return peak;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn no_command_holds_the_bodies_of_functions() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    session.execute(CATALOG).expect("a catalog");
    running.stop(StopMode::Fast).expect("stopped");

    let data = text(&copy.pgdata).to_owned();
    let folder = tempfile::tempdir().expect("a directory");
    let place = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (csv, parquet, whole, ddl) = (
        place("csv"),
        place("parquet"),
        place("whole"),
        place("schema.sql"),
    );
    let salvage = |to, form| ["salvage", &data, "--no-sync", "--format", form, "--to", to];
    let with_schema = [&salvage(&whole, "csv")[..], &["--ddl", &ddl]].concat();
    let commands: [&[&str]; 6] = [
        &["check", &data, "--level", "full"],
        &["measure", &data],
        &["diff", &data, &data],
        &salvage(&csv, "csv"),
        &salvage(&parquet, "parquet"),
        &with_schema,
    ];
    for command in commands {
        let peak = peak_of(command);
        println!("{} MiB: {command:?}", peak >> 20);
        assert!(
            peak > 0 && peak <= MEMORY_BYTES + BESIDE_BYTES,
            "{command:?}: {peak}"
        );
    }
    let schema = std::fs::metadata(Path::new(&ddl)).expect("a schema").len();
    assert!(schema > 60 << 20, "{schema}");
}
