//! `pgclinic heal` where a catalog holds nothing but zeros: every page of it is wanted back,
//! whatever is left to show that rows stood there.

use std::fs;

use pgclinic_model::document::HealOutcome;
use pgclinic_model::plan::Safety;
use pgclinic_servers::StopMode;
use pgclinic_testkit::{as_primary, value};

use crate::common::{pgclinic, text};
use crate::heal_evidence::{PAGE, ROWS, Ward, document};

const PG_INDEX: &str = "pg_index";

impl Ward {
    /// The files of these relations of the system, filled with zeros; those of the first one.
    fn zero(&self, relations: &[&str]) -> (String, u64) {
        let kept = as_primary().with("wal_keep_size", "512MB");
        let mut running = self.copy.start_with(&kept).expect("a server");
        let path = |of: &&str| value(&running, &format!("SELECT pg_relation_filepath('{of}')"));
        let paths: Vec<String> = relations.iter().map(path).collect();
        running.stop(StopMode::Fast).expect("a stop");
        for own in &paths {
            let path = self.copy.pgdata.join(own);
            let len = fs::metadata(&path).expect("a file").len();
            let zeros = vec![0; usize::try_from(len).expect("a length")];
            fs::write(&path, zeros).expect("a write");
        }
        let pages = fs::metadata(self.copy.pgdata.join(&paths[0])).expect("a file");
        (paths[0].clone(), pages.len() / PAGE)
    }

    /// No map shows that pages of this file had rows.
    fn forget_map(&self, path: &str) {
        let _none = fs::remove_file(self.copy.pgdata.join(format!("{path}_vm")));
    }

    fn is_damaged(&self) {
        let checked = pgclinic(&["check", text(&self.copy.pgdata)]).exits(1);
        assert!(
            checked.first_line().starts_with("DAMAGED"),
            "{}",
            checked.out
        );
    }

    /// All pages of the file are planned for, and back after that.
    fn gets_back(&self, path: &str, pages: u64) {
        let backup = ["--backup", text(&self.backup)];
        let planned = document(&self.heal(&backup).exits(3));
        let own = planned.cures.iter().filter(|own| own.place.path == path);
        let own: Vec<Safety> = own.map(|cure| cure.safety).collect();
        assert_eq!(own.len() as u64, pages, "{:?}", planned.not_healed);
        assert!(own.iter().all(|own| *own == Safety::Exact));
        let is_listed = planned.not_healed.iter().any(|own| own.path == path);
        assert!(!is_listed, "{:?}", planned.not_healed);
        self.heal(&[&backup[..], &["--yes"]].concat());
    }
}

#[test]
fn all_of_pg_index_comes_back_from_a_backup() {
    let ward = Ward::new();
    let (path, pages) = ward.zero(&[PG_INDEX]);
    ward.forget_map(&path);
    ward.is_damaged();
    ward.gets_back(&path, pages);
    let nothing = document(&ward.heal(&[]).exits(0));
    assert_eq!(nothing.outcome, HealOutcome::NothingToHeal);
    let mut running = ward.start();
    assert_eq!(value(&running, ROWS), ward.rows);
    running.stop(StopMode::Fast).expect("a stop");
}

/// No entry leads to its pages any more, but every database has indexes.
#[test]
fn pg_index_is_wanted_back_where_its_own_indexes_are_zeros_too() {
    let ward = Ward::new();
    let indexes = ["pg_index_indexrelid_index", "pg_index_indrelid_index"];
    let (path, pages) = ward.zero(&[PG_INDEX, indexes[0], indexes[1]]);
    ward.forget_map(&path);
    ward.is_damaged();
    ward.gets_back(&path, pages);
}

#[test]
fn pg_index_that_nothing_proves_is_listed() {
    let ward = Ward::new();
    let (path, _) = ward.zero(&[PG_INDEX]);
    ward.forget_map(&path);
    let _wal = crate::heal_evidence::without_wal(&ward.copy.pgdata);
    ward.is_damaged();
    let planned = document(&ward.heal(&["--pages"]).exits(3));
    assert_eq!(planned.cures, []);
    let own = planned.not_healed.iter().filter(|own| own.path == path);
    let own: Vec<&String> = own.flat_map(|own| &own.why).collect();
    let is_empty = |why: &&&String| why.contains("pg_index has nothing but zeros");
    assert_eq!(own.iter().filter(is_empty).count(), 1, "{own:?}");
}
