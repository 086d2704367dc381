//! Entries that are marked dead stand for no row that is seen.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pgclinic_model::{Level, Verdict};
use pgclinic_servers::Checksums;

use super::{Clinic, TABLES, roots};

/// Where the second line pointer of the page behind the meta page stands.
const SECOND: u64 = 8192 + 24 + 4;
/// `lp_flags` of `LP_DEAD`.
const DEAD: u32 = 3 << 15;

fn mark_dead(path: &Path) {
    let file = File::options().read(true).write(true).open(path);
    let file = file.expect("an index");
    let mut pointer = [0; 4];
    file.read_exact_at(&mut pointer, SECOND).expect("a pointer");
    let dead = u32::from_le_bytes(pointer) | DEAD;
    file.write_all_at(&dead.to_le_bytes(), SECOND)
        .expect("a pointer");
}

#[test]
fn live_rows_whose_entries_are_marked_dead_have_none() {
    let mut clinic = Clinic::of(Checksums::Off, TABLES);
    let indexes = ["t_btree_id", "t_hash_id"];
    let paths = indexes.map(|index| clinic.path(&format!("public.{index}")));
    clinic.stop();
    assert_eq!(clinic.check(Level::Full).verdict, Verdict::Healthy);
    paths.iter().for_each(|path| mark_dead(path));
    let document = clinic.check(Level::Full);
    let found = roots(&document);
    let missing = found
        .iter()
        .filter(|own| own.rule == "row-without-index-entry");
    let missing: Vec<_> = missing.map(|own| own.place.relation.as_deref()).collect();
    assert_eq!(missing, indexes.map(Some), "{found:?}");
}
