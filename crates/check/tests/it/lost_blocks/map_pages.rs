//! What a damaged page of a visibility map says is no witness: the server throws it away.

use std::fs::File;
use std::os::unix::fs::FileExt;

use pgclinic_model::Level;
use pgclinic_servers::Checksums;

use super::{Clinic, roots};

#[test]
fn a_damaged_page_of_a_map_bears_no_witness() {
    let sql = "CREATE TABLE public.bare AS SELECT i AS id FROM generate_series(1, 1000) AS i";
    let mut clinic = Clinic::of(Checksums::On, &format!("{sql}; VACUUM public.bare"));
    let path = clinic.path("public.bare");
    clinic.stop();
    let map = format!("{}_vm", path.display());
    let file = File::options().write(true).open(map).expect("a map");
    file.write_all_at(&[0xFF; 16], 1024).expect("a write");
    let document = clinic.check(Level::Structure);
    let rules: Vec<&str> = roots(&document)
        .iter()
        .map(|own| own.rule.as_str())
        .collect();
    assert_eq!(rules, ["checksum-mismatch"]);
}

/// A mark alone, far behind the end of a table that no index speaks for: it is wrong, or one page
/// is lost. It stands for its own rows, and not for those of all the blocks before it.
#[test]
fn a_single_mark_far_behind_the_end_stands_for_one_page() {
    let sql = "CREATE TABLE public.bare AS SELECT i AS id FROM generate_series(1, 1000) AS i";
    let sql = format!("{sql}; VACUUM ANALYZE public.bare");
    let mut clinic = Clinic::of(Checksums::Off, &sql);
    let path = clinic.path("public.bare");
    clinic.stop();
    let map = format!("{}_vm", path.display());
    let file = File::options().write(true).open(map).expect("a map");
    file.write_all_at(&[1], 24 + 5000).expect("a write");
    let document = clinic.check(Level::Structure);
    let [truncated] = roots(&document)[..] else {
        panic!("{:?}", document.findings)
    };
    assert_eq!(truncated.rule, "file-truncated");
    let rows = truncated.at_risk.rows.expect("an estimate");
    assert!((150..=250).contains(&rows), "{rows}");
}
