//! WAL from before the shutdown speaks for a table without index and map.

use std::fs::File;
use std::os::unix::fs::FileExt;

use pgclinic_model::{Level, Verdict};
use pgclinic_servers::{Checksums, StartOptions, StopMode};
use pgclinic_testkit::execute;

use super::{Clinic, PAGE, told, truncate, zero};

/// Tables whose pages are in WAL, the second one truncated and filled up again, the third one
/// copied with a page that was made ahead.
const SQL: &str = "\
CREATE TABLE public.bare AS SELECT i AS id, repeat('x', 200) AS what FROM generate_series(1, 1000) AS i;
CREATE TABLE public.cut AS SELECT i AS id, repeat('x', 200) AS what FROM generate_series(1, 1000) AS i;
DELETE FROM public.cut WHERE id > 100;
VACUUM public.cut;
INSERT INTO public.cut SELECT i, repeat('x', 200) FROM generate_series(1, 100) AS i";

#[test]
fn pages_that_wal_wrote_are_missed_without_an_index() {
    for major in [13, 18] {
        let mut clinic = Clinic::on(major, Checksums::Off, SQL);
        let path = clinic.path("public.bare");
        clinic.stop();
        assert_eq!(clinic.check(Level::Structure).verdict, Verdict::Healthy);
        zero(&path, 3);
        let one = |rule: &str, block| (rule.into(), "bare".into(), block, None);
        let zeroed = told(&clinic.check(Level::Structure));
        assert_eq!(zeroed, [one("zeroed-page", Some(3))], "{major}");
        truncate(&path, 3);
        let truncated = told(&clinic.check(Level::Structure));
        assert_eq!(truncated, [one("file-truncated", None)], "{major}");
    }
}

#[test]
fn a_page_that_lost_its_last_write_is_older_than_wal() {
    for major in [13, 18] {
        let mut clinic = Clinic::on(major, Checksums::On, SQL);
        let path = clinic.path("public.bare");
        clinic.stop();
        let before = std::fs::read(&path).expect("the table");
        // The shutdown removes segments of 1 MB that nobody needs.
        let kept = StartOptions::default().with("wal_keep_size", "64MB");
        let mut server = clinic.copy.start_with(&kept).expect("a server");
        execute(&server, "UPDATE public.bare SET what = 'new' WHERE id = 7");
        server.stop(StopMode::Fast).expect("it stops");
        let sound = clinic.check(Level::Structure);
        assert_eq!(sound.verdict, Verdict::Healthy, "{sound:#?}");
        let file = File::options().write(true).open(&path).expect("a file");
        file.write_all_at(&before[..PAGE as usize], 0)
            .expect("a write");
        let one = ("page-older-than-wal".into(), "bare".into(), Some(0), None);
        assert_eq!(told(&clinic.check(Level::Structure)), [one], "{major}");
    }
}

#[test]
fn a_commit_that_only_wal_has_accuses_pg_xact() {
    let mut clinic = Clinic::on(15, Checksums::On, SQL);
    clinic.stop();
    let kept = StartOptions::default().with("wal_keep_size", "64MB");
    let mut server = clinic.copy.start_with(&kept).expect("a server");
    execute(&server, "CREATE TABLE public.late (id int)");
    execute(&server, "INSERT INTO public.late VALUES (1)");
    server.stop(StopMode::Fast).expect("it stops");
    let sound = clinic.check(Level::Structure);
    assert_eq!(sound.verdict, Verdict::Healthy, "{sound:#?}");
    let path = clinic.copy.pgdata.join("pg_xact/0000");
    let mut statuses = std::fs::read(&path).expect("statuses");
    let last = statuses.iter().rposition(|byte| *byte != 0);
    statuses[last.expect("a transaction")] = 0;
    std::fs::write(&path, statuses).expect("written");
    for level in [Level::Pages, Level::Structure] {
        let checked = clinic.check(level);
        let rules: Vec<&str> = checked
            .findings
            .iter()
            .map(|own| own.rule.as_str())
            .collect();
        assert!(
            rules.contains(&"transaction-status-contradicted"),
            "{rules:?}"
        );
    }
}
