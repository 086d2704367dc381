//! `pgclinic heal` where neither WAL nor a copy helps, or where a file has lost its end: pages that
//! follow from themselves, maps, blocks past the end of a file, and the proof by a server.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pgclinic_format::{LpFlags, Page};
use pgclinic_model::document::{HealOutcome, HealProof};
use pgclinic_model::plan::Safety;
use pgclinic_servers::{Checksums, Server, StartOptions, StopMode};
use pgclinic_testkit::{as_primary, copy_of, execute, seed, server, value};

use crate::common::{self, text};
use crate::heal_evidence::{PAGE, ROWS, Ward, document, without_wal};

fn put(ward: &Ward, path: &str, at: u64, bytes: &[u8]) {
    let file = fs::File::options()
        .write(true)
        .open(ward.copy.pgdata.join(path));
    file.expect("a file")
        .write_all_at(bytes, at)
        .expect("a write");
}

fn get(ward: &Ward, path: &str, at: u64) -> u8 {
    let bytes = fs::read(ward.copy.pgdata.join(path)).expect("a file");
    bytes[usize::try_from(at).expect("an offset")]
}

fn give_wal_back(ward: &Ward, aside: &Path) {
    for entry in fs::read_dir(aside).expect("a directory") {
        let entry = entry.expect("an entry");
        let home = ward.copy.pgdata.join("pg_wal").join(entry.file_name());
        fs::rename(entry.path(), home).expect("a move");
    }
}

fn rows_are_back(ward: &Ward) {
    let mut running: Server = ward.start();
    assert_eq!(value(&running, ROWS), ward.rows);
    execute(&running, "VACUUM (DISABLE_PAGE_SKIPPING) public.papers");
    assert_eq!(value(&running, ROWS), ward.rows);
    running.stop(StopMode::Fast).expect("a stop");
    common::check_json(&ward.copy.pgdata, 0);
}

/// Where on a page of the table the first line pointer stands that leads to a tuple.
fn pointer_to_a_tuple(ward: &Ward, block: usize) -> u64 {
    let bytes = fs::read(ward.copy.pgdata.join(&ward.table)).expect("a file");
    let page = &bytes[block * 8192..][..8192];
    let page = Page::parse(page).expect("a page");
    let mut pointers = page.line_pointers();
    let found = pointers.find(|(_, pointer)| pointer.flags() == LpFlags::Normal);
    let (item, _) = found.expect("a tuple");
    24 + 4 * (u64::from(item) - 1)
}

/// Nothing but the page itself says what it was: a bit of a line pointer, and `pd_lower`.
#[test]
fn a_page_is_corrected_by_its_structure_and_its_checksum() {
    let ward = Ward::new();
    let sound = common::files(&ward.copy.pgdata);
    let pointer = 3 * PAGE + pointer_to_a_tuple(&ward, 3);
    put(
        &ward,
        &ward.table,
        pointer,
        &[get(&ward, &ward.table, pointer) ^ 0x08],
    );
    put(&ward, &ward.table, 9 * PAGE + 12, &[0, 0]);
    let hurt = common::files(&ward.copy.pgdata);
    let aside = without_wal(&ward.copy.pgdata);
    let planned = document(&ward.heal(&["--pages"]).exits(3));
    let cures = planned.cures.iter();
    let cures: Vec<_> = cures
        .map(|cure| (cure.name.as_str(), cure.safety))
        .collect();
    let exact = ("correct-page", Safety::Exact);
    assert_eq!(cures, [exact, exact], "{:?}", planned.not_healed);
    // The WAL that was taken away is damage that remains.
    ward.heal(&["--pages", "--yes"]).exits(1);
    give_wal_back(&ward, &aside);
    assert!(common::files(&ward.copy.pgdata) == sound, "byte for byte");
    let journal = format!("{}.heal.journal", ward.copy.pgdata.display());
    common::pgclinic(&["heal", "--undo", &journal]).exits(0);
    assert!(common::files(&ward.copy.pgdata) == hurt, "the first bytes");
}

#[test]
fn damaged_pages_of_maps_are_emptied() {
    let ward = Ward::new();
    let maps = [format!("{}_vm", ward.table), format!("{}_fsm", ward.table)];
    for map in &maps {
        put(&ward, map, 40, &[0xAB; 300]);
    }
    let hurt = common::files(&ward.copy.pgdata);
    let planned = document(&ward.heal(&[]).exits(3));
    let names = planned.cures.iter().map(|cure| cure.name.as_str());
    assert!(
        names.clone().all(|name| name == "clear-map-page"),
        "{planned:?}"
    );
    assert!(names.count() >= 2, "{planned:?}");
    let healed = document(&ward.heal(&["--yes"]).exits(0));
    assert_eq!(healed.outcome, HealOutcome::Healed);
    let journal = healed.applied.expect("it was written").journal;
    common::pgclinic(&["heal", "--undo", &journal]).exits(0);
    assert!(common::files(&ward.copy.pgdata) == hurt, "the first bytes");
    ward.heal(&["--yes"]).exits(0);
    rows_are_back(&ward);
}

#[test]
fn blocks_past_the_end_and_missing_files_come_back() {
    let wounds: [fn(&Ward); 3] = [
        |ward| {
            let file = fs::File::options()
                .write(true)
                .open(ward.copy.pgdata.join(&ward.table));
            file.expect("a file").set_len(5 * PAGE).expect("a cut");
        },
        // Within a block, of which a piece was lost as well.
        |ward| {
            let file = fs::File::options()
                .write(true)
                .open(ward.copy.pgdata.join(&ward.table));
            let file = file.expect("a file");
            file.set_len(5 * PAGE + 5000).expect("a cut");
            file.write_all_at(&[0; 512], 5 * PAGE + 4096)
                .expect("a write");
        },
        |ward| fs::remove_file(ward.copy.pgdata.join(&ward.table)).expect("a file"),
    ];
    for (number, wound) in wounds.into_iter().enumerate() {
        let ward = Ward::new();
        wound(&ward);
        let hurt = common::files(&ward.copy.pgdata);
        let backup = ["--backup", text(&ward.backup)];
        let planned = document(&ward.heal(&backup).exits(3));
        let names = planned.cures.iter().map(|cure| cure.name.as_str());
        let names: Vec<&str> = names.collect();
        assert_eq!(
            names,
            ["restore-end"],
            "wound {number}: {:?}",
            planned.not_healed
        );
        let words = [&backup[..], &["--yes"]].concat();
        let healed = document(&ward.heal(&words).exits(0));
        assert_eq!(healed.outcome, HealOutcome::Healed, "wound {number}");
        let journal = healed.applied.expect("it was written").journal;
        common::pgclinic(&["heal", "--undo", &journal]).exits(0);
        assert!(
            common::files(&ward.copy.pgdata) == hurt,
            "wound {number}: the first bytes"
        );
        ward.heal(&words).exits(0);
        rows_are_back(&ward);
    }
}

/// More blocks than a journal can hold lie beside it.
#[test]
fn a_long_end_comes_back_at_once_and_goes_again() {
    const BROAD: &str =
        "CREATE TABLE public.broad (id int PRIMARY KEY, v text) WITH (fillfactor = 10);
        INSERT INTO public.broad SELECT g, repeat('x', 800) FROM generate_series(1, 8600) AS g";
    const COUNT: &str =
        "SELECT count(*) || ' ' || sum(id) || ' ' || sum(length(v)) FROM public.broad";
    let ward = Ward::new();
    let options = as_primary().with("wal_keep_size", "512MB");
    let mut running = ward.copy.start_with(&options).expect("a server");
    execute(&running, BROAD);
    let rows = value(&running, COUNT);
    let path = value(&running, "SELECT pg_relation_filepath('public.broad')");
    running.stop(StopMode::Fast).expect("a stop");
    let file = fs::File::options()
        .write(true)
        .open(ward.copy.pgdata.join(&path));
    let file = file.expect("a file");
    assert_eq!(file.metadata().expect("a length").len(), 8600 * PAGE);
    file.set_len(100 * PAGE).expect("a cut");

    let hurt = common::files(&ward.copy.pgdata);
    let healed = document(&ward.heal(&["--yes"]).exits(0));
    assert_eq!(healed.outcome, HealOutcome::Healed);
    assert_eq!(file.metadata().expect("a length").len(), 8600 * PAGE);
    let journal = healed.applied.expect("it was written").journal;
    let words = std::fs::read(Path::new(&journal).join("journal.json")).expect("a journal");
    assert!(words.len() < 100_000, "{} bytes", words.len());
    common::pgclinic(&["heal", "--undo", &journal]).exits(0);
    assert!(common::files(&ward.copy.pgdata) == hurt, "the first bytes");
    let again = document(&ward.heal(&["--yes"]).exits(0));
    assert_eq!(again.outcome, HealOutcome::Healed);
    common::check_json(&ward.copy.pgdata, 0);
    let mut running = ward.start();
    assert_eq!(value(&running, COUNT), rows);
    running.stop(StopMode::Fast).expect("a stop");
}

/// Without a copy and without the record that makes the file nobody knows how far it reached.
#[test]
fn an_end_that_nothing_proves_stays_where_it_is() {
    let ward = Ward::new();
    let file = fs::File::options()
        .write(true)
        .open(ward.copy.pgdata.join(&ward.table));
    file.expect("a file").set_len(5 * PAGE).expect("a cut");
    let hurt = common::files(&ward.copy.pgdata);
    let aside = without_wal(&ward.copy.pgdata);
    let planned = document(&ward.heal(&["--pages", "--yes"]).exits(3));
    assert!(planned.cures.is_empty() && planned.applied.is_none());
    let own = planned.not_healed.iter().any(|own| own.path == ward.table);
    assert!(own, "{:?}", planned.not_healed);
    give_wal_back(&ward, &aside);
    assert!(common::files(&ward.copy.pgdata) == hurt);
}

/// A table of three blocks of which WAL names the first alone: the record that makes its file says
/// nothing of how long it became.
#[test]
fn a_file_that_was_filled_without_records_has_no_end_in_wal() {
    const NAMED: &str = "CHECKPOINT; DELETE FROM filled WHERE ctid = '(0,3)'";
    const MODEL: [&str; 3] = [
        "CREATE TABLE filled AS SELECT i, repeat('x', 100) FROM generate_series(1, 150) i",
        "SELECT count(*) FROM filled",
        "CHECKPOINT",
    ];
    let minimal = StartOptions::default()
        .with("wal_level", "minimal")
        .with("max_wal_senders", "0")
        .with("wal_skip_threshold", "0")
        .with("autovacuum", "off");
    let ways: [(StartOptions, &str, &[&str]); 2] = [
        (
            minimal,
            "postgres",
            &[
                "BEGIN; CREATE TABLE filled AS SELECT i, repeat('x', 100) FROM generate_series(1, 150) i; COMMIT",
            ],
        ),
        (
            StartOptions::default().with("autovacuum", "off"),
            "copied",
            &[
                "CREATE DATABASE model",
                "CREATE DATABASE copied TEMPLATE model STRATEGY file_copy",
            ],
        ),
    ];
    for (options, database, made) in ways {
        let copy = copy_of(&seed(&server(15), Checksums::On));
        let mut running = copy.start_with(&options).expect("a server");
        for (number, sql) in made.iter().enumerate() {
            let mut own = running.connect("postgres").expect("a session");
            own.execute(sql).expect("a statement");
            if number + 1 < made.len() {
                let mut model = running.connect("model").expect("a session");
                for sql in MODEL {
                    model.execute(sql).expect("a statement");
                }
            }
        }
        let mut own = running.connect(database).expect("a session");
        NAMED
            .split(';')
            .for_each(|sql| own.execute(sql).expect("a statement"));
        let path = own.query_value("SELECT pg_relation_filepath('filled')");
        let path = path.expect("a path").expect("a path");
        drop(own);
        running.stop(StopMode::Fast).expect("a stop");
        fs::remove_file(copy.pgdata.join(path)).expect("a file");
        let ran = common::pgclinic(&["heal", text(&copy.pgdata), "--format", "json"]).exits(3);
        let planned = document(&ran);
        assert!(planned.cures.is_empty(), "{database}: {:?}", planned.cures);
        let mut open = planned.not_healed.iter();
        assert!(
            open.any(|own| own.why.iter().any(|why| why.contains("has no records"))),
            "{database}: {:?}",
            planned.not_healed
        );
    }
}

fn proof(ward: &Ward, words: &[&str], exit: u8) -> HealProof {
    let ran = ward.heal(words).exits(exit);
    document(&ran)
        .proof
        .unwrap_or_else(|| panic!("{}", ran.err))
}

#[test]
fn a_server_reads_everything_of_what_was_healed() {
    let ward = Ward::new();
    ward.hurt(&ward.table, 3);
    let backup = text(&ward.backup);
    let sound = proof(&ward, &["--backup", backup, "--yes", "--prove"], 0);
    assert!(sound.holds() && sound.started, "{sound:?}");
    assert!(
        sound.tables_verified > 50 && sound.indexes_verified > 50,
        "{sound:?}"
    );
    let [count] = &sound.counts[..] else {
        panic!("one table was healed: {sound:?}");
    };
    assert_eq!(count.relation, "public.papers");
    assert!(
        count.files.is_some() && count.files == count.server,
        "{count:?}"
    );

    // An index that is damaged is no page of this heal, and the server says so.
    ward.hurt(&ward.table, 4);
    ward.hurt(&ward.key, 1);
    let hurt = proof(&ward, &["--backup", backup, "--yes", "--prove"], 1);
    assert!(!hurt.holds() && hurt.started, "{hurt:?}");
    let mut messages = hurt.messages.iter();
    assert!(
        messages.any(|own| own.contains("papers_pkey")),
        "{:?}",
        hurt.messages
    );
}

/// The numbers that the column holds are the only witnesses, and a larger one may have been given.
#[test]
fn a_sequence_goes_on_after_its_column() {
    let ward = Ward::new();
    let mut running = ward.start();
    execute(
        &running,
        "CREATE TABLE public.counted (id bigserial, down int GENERATED ALWAYS AS IDENTITY (INCREMENT -5 MAXVALUE 0 MINVALUE -10000 START 0));
         INSERT INTO public.counted SELECT FROM generate_series(1, 700)",
    );
    let path = |name: &str| value(&running, &format!("SELECT pg_relation_filepath('{name}')"));
    let sequences = [path("counted_id_seq"), path("counted_down_seq")];
    running.stop(StopMode::Fast).expect("a stop");
    let aside = without_wal(&ward.copy.pgdata);
    for sequence in &sequences {
        put(&ward, sequence, 0, &[0x77; 8192]);
    }
    let planned = document(&ward.heal(&["--pages", "--yes"]).exits(3));
    let cures = planned.cures.iter();
    let kinds: Vec<_> = cures
        .clone()
        .map(|cure| (cure.name.as_str(), cure.safety))
        .collect();
    let lossy = ("rebuild-sequence", Safety::Lossy);
    assert_eq!(kinds, [lossy, lossy], "{:?}", planned.not_healed);
    let mut accept: Vec<&str> = cures
        .flat_map(|cure| ["--accept", cure.id.as_str()])
        .collect();
    accept.push("--pages");
    // The WAL that was taken away is damage that remains.
    ward.heal(&accept).exits(1);
    give_wal_back(&ward, &aside);
    let mut running = ward.start();
    let next =
        "SELECT nextval('public.counted_id_seq') || ' ' || nextval('public.counted_down_seq')";
    assert_eq!(value(&running, next), "701 -3500");
    running.stop(StopMode::Fast).expect("a stop");
    common::check_json(&ward.copy.pgdata, 0);
}
