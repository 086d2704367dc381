//! Tables without an index whose files changed places: only their visibility maps know it.

use std::fs;

use pgclinic_model::Level;
use pgclinic_servers::Checksums;

use super::{Clinic, roots};

const TABLES: &str = "\
CREATE TABLE public.one AS SELECT i AS id, repeat('x', 200) AS what FROM generate_series(1, 1000) AS i;
CREATE TABLE public.two AS SELECT -i AS id, repeat('y', 200) AS what FROM generate_series(1, 1000) AS i;
VACUUM public.one;
VACUUM public.two";

#[test]
fn files_that_changed_places_are_told_by_their_maps() {
    let mut clinic = Clinic::on(15, Checksums::On, TABLES);
    let paths = ["public.one", "public.two"].map(|table| clinic.path(table));
    clinic.stop();
    assert_eq!(
        roots(&clinic.check(Level::Full)).len(),
        0,
        "nothing is wrong yet"
    );
    let [one, two] = paths.each_ref().map(|path| fs::read(path).expect("a file"));
    fs::write(&paths[0], two).expect("a write");
    fs::write(&paths[1], one).expect("a write");
    let document = clinic.check(Level::Structure);
    let mut found: Vec<_> = roots(&document)
        .iter()
        .map(|own| (own.rule.as_str(), own.place.relation.as_deref()))
        .collect();
    found.sort_unstable();
    // The rows of the one are older than the other.
    let rule = "page-of-another-table";
    found.retain(|(own, _)| *own == rule);
    assert_eq!(found, [(rule, Some("one")), (rule, Some("two"))]);
}
