//! `pgclinic heal --level full`: pages that are sound by themselves and are not what they were; and
//! pages of indexes, where somebody wants them back.

use std::fs;
use std::os::unix::fs::FileExt;

use pgclinic_model::Level;
use pgclinic_model::document::{HealOutcome, HealReach};
use pgclinic_model::plan::Safety;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{TempCopy, as_primary, copy_of, execute, seed, server, value};

use crate::common::{Ran, pgclinic, text};
use crate::heal_evidence::{PAGE, Ward, document};

/// Values that are compressed and still too long for their row, so that a server unpacks them.
const LETTERS: &str = "CREATE TABLE public.letters (id int PRIMARY KEY, body text);
    INSERT INTO public.letters SELECT g, (SELECT string_agg(md5(g || '-' || n), '') FROM generate_series(1, 150) n) || repeat('a', 4000)
        FROM generate_series(1, 40) AS g";
const MORE: &str = "INSERT INTO public.letters SELECT g, (SELECT string_agg(md5(g || '-' || n), '') FROM generate_series(1, 150) n) || repeat('a', 4000)
        FROM generate_series(41, 60) AS g";
const SUM: &str = "SELECT md5(string_agg(id || body, ',' ORDER BY id)) FROM public.letters";
const TOAST: &str =
    "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE relname = 'letters'";

/// A stopped cluster with long values, all of whose WAL is there.
struct Letters {
    copy: TempCopy,
    table: String,
    toast: String,
    sum: String,
    /// The file of the chunks before the last rows came.
    toast_before: Vec<u8>,
}

impl Letters {
    fn new(checksums: Checksums) -> Self {
        let copy = copy_of(&seed(&server(15), checksums));
        let kept = as_primary().with("wal_keep_size", "512MB");
        let mut running = copy.start_with(&kept).expect("a server");
        execute(&running, LETTERS);
        execute(&running, "CHECKPOINT");
        let table = value(&running, "SELECT pg_relation_filepath('public.letters')");
        let toast = value(&running, TOAST);
        let toast_before = fs::read(copy.pgdata.join(&toast)).expect("a file");
        execute(&running, MORE);
        let sum = value(&running, SUM);
        running.stop(StopMode::Fast).expect("a stop");
        Letters {
            copy,
            table,
            toast,
            sum,
            toast_before,
        }
    }

    fn heal(&self, words: &[&str]) -> Ran {
        let line = ["heal", text(&self.copy.pgdata), "--format", "json"];
        pgclinic(&[&line[..], words].concat())
    }

    fn write(&self, path: &str, at: u64, bytes: &[u8]) {
        let file = fs::File::options()
            .write(true)
            .open(self.copy.pgdata.join(path));
        let file = file.expect("a file");
        file.write_all_at(bytes, at).expect("a write");
    }

    fn shows_all_rows(&self) {
        let mut running = self.copy.start().expect("a server");
        assert_eq!(value(&running, SUM), self.sum);
        running.stop(StopMode::Fast).expect("a stop");
    }
}

#[test]
fn a_value_that_only_the_full_check_reads_comes_back_from_wal() {
    let ward = Letters::new(Checksums::Off);
    // The middle of a chunk, in a page whose structure stays as it is.
    ward.write(&ward.toast, 3 * PAGE + 5000, &[0xFF; 200]);
    let quick = document(&ward.heal(&[]).exits(0));
    assert_eq!(quick.outcome, HealOutcome::NothingToHeal);
    let full = document(&ward.heal(&["--level", "full"]).exits(3));
    assert_eq!(full.scope.map(|scope| scope.level), Some(Level::Full));
    assert!(full.not_healed.is_empty(), "{:?}", full.not_healed);
    let cures: Vec<_> = full
        .cures
        .iter()
        .map(|own| (&own.place.path, own.safety))
        .collect();
    assert_eq!(cures, [(&ward.toast, Safety::Exact)]);
    let one = HealReach {
        pages: 1,
        exact: 1,
        ..HealReach::default()
    };
    assert_eq!(full.reach, Some(one));
    let healed = document(&ward.heal(&["--level", "full", "--yes"]).exits(0));
    assert_eq!(healed.outcome, HealOutcome::Healed);
    let nothing = document(&ward.heal(&["--level", "full"]).exits(0));
    assert_eq!(nothing.outcome, HealOutcome::NothingToHeal);
    ward.shows_all_rows();
}

#[test]
fn pages_that_went_back_to_an_older_state_come_back_with_their_chunks() {
    let ward = Letters::new(Checksums::On);
    // A disk that lost the last writes: the checksums are right.
    let last = ward.toast_before.len() as u64 / PAGE - 1;
    let old = ward
        .toast_before
        .get(usize::try_from(last * PAGE).expect("a place")..);
    ward.write(&ward.toast, last * PAGE, old.expect("a page"));
    let full = document(&ward.heal(&["--level", "full", "--yes"]).exits(0));
    assert_eq!(full.outcome, HealOutcome::Healed, "{:?}", full.not_healed);
    assert!(full.cures.iter().all(|own| own.safety == Safety::Exact));
    ward.shows_all_rows();
}

#[test]
fn a_value_that_nothing_proves_is_listed_with_what_gives_it_up() {
    let ward = Letters::new(Checksums::Off);
    ward.write(&ward.toast, 3 * PAGE + 5000, &[0xFF; 200]);
    let _wal = crate::heal_evidence::without_wal(&ward.copy.pgdata);
    let full = document(&ward.heal(&["--level", "full", "--pages"]).exits(3));
    let mut own = full.not_healed.iter().filter(|own| own.path == ward.table);
    let value = own.next().expect("the value is told");
    assert!(value.needs_loss);
    let cut = value
        .commands
        .iter()
        .find(|own| own.contains("--cut-toast-value body"));
    assert!(cut.is_some(), "{:?}", value.commands);
    assert!(full.cures.is_empty(), "{:?}", full.cures);
}

#[test]
fn pages_of_indexes_come_back_where_no_record_is_unknown_and_are_rebuilt_elsewhere() {
    let ward = Ward::new();
    let kept = as_primary().with("wal_keep_size", "512MB");
    let mut running = ward.copy.start_with(&kept).expect("a server");
    let still = value(
        &running,
        "SELECT pg_relation_filepath('pg_proc_proname_args_nsp_index')",
    );
    running.stop(StopMode::Fast).expect("a stop");
    ward.hurt(&still, 4);
    ward.hurt(&ward.key, 3);
    let backup = ["--backup", text(&ward.backup)];
    let without = document(&ward.heal(&backup).exits(3));
    assert!(without.cures.is_empty());
    assert_eq!(without.not_healed.len(), 2, "{:?}", without.not_healed);
    let words = [&backup[..], &["--index-pages"]].concat();
    let planned = document(&ward.heal(&words).exits(3));
    let cures: Vec<_> = planned
        .cures
        .iter()
        .map(|own| (&own.place.path, own.safety))
        .collect();
    assert_eq!(cures, [(&still, Safety::Exact)]);
    let [key] = planned.not_healed.as_slice() else {
        panic!("{:?}", planned.not_healed);
    };
    assert_eq!(key.path, ward.key);
    assert!(
        key.why.iter().any(|why| why.contains("Btree")),
        "{:?}",
        key.why
    );
    let reindex = "REINDEX INDEX public.papers_pkey; -- in database ";
    assert!(key.commands.iter().all(|own| own.starts_with(reindex)));
    let two = HealReach {
        pages: 2,
        exact: 1,
        lossy: 0,
        other: 1,
    };
    assert_eq!(planned.reach, Some(two));
    let healed = document(&ward.heal(&[&words[..], &["--yes"]].concat()).exits(1));
    assert_eq!(healed.applied.map(|own| own.changes), Some(1));
    let mut running = ward.start();
    execute(&running, "REINDEX INDEX public.papers_pkey");
    execute(&running, "ALTER EXTENSION amcheck SET SCHEMA public");
    execute(
        &running,
        "SELECT public.bt_index_check('pg_proc_proname_args_nsp_index', true)",
    );
    running.stop(StopMode::Fast).expect("a stop");
}
