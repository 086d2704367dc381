//! What is said where the index that would name lost rows is lost itself, and where a table has no
//! witness at all.

use std::fs;
use std::os::unix::fs::FileExt;

use pgclinic_model::document::ROWS_MAY_BE_LOST;
use pgclinic_model::plan::Safety;
use pgclinic_model::{CheckDocument, Level, Severity};

use super::{Clinic, PAGE, truncate};

const TABLES: &str = "\
CREATE TABLE public.t_young (id int PRIMARY KEY, what text);
INSERT INTO public.t_young SELECT i, repeat('x', 100) FROM generate_series(1, 3000) AS i;
CREATE TABLE public.t_old (id int PRIMARY KEY, what text);
INSERT INTO public.t_old SELECT i, repeat('x', 100) FROM generate_series(1, 3000) AS i;
CREATE TABLE public.t_bare (id int, what text);
INSERT INTO public.t_bare SELECT i, repeat('x', 100) FROM generate_series(1, 3000) AS i";

fn reindex_of(document: &CheckDocument, index: &str) -> Vec<Safety> {
    let all = document.findings.iter();
    let own = all.filter(|own| own.place.relation.as_deref() == Some(index));
    let cures = own.flat_map(|own| &own.remedies);
    let cures = cures.filter(|cure| cure.name == "reindex");
    cures.map(|cure| cure.safety).collect()
}

#[test]
fn an_index_is_not_made_again_from_a_table_that_nothing_vouches_for() {
    let mut clinic = Clinic::with(TABLES);
    let [young, young_key, old_key] = ["t_young", "t_young_pkey", "t_old_pkey"]
        .map(|name| clinic.path(&format!("public.{name}")));
    super::execute(clinic.server(), "VACUUM public.t_old");
    clinic.forget_wal();
    clinic.stop();
    let sound = clinic.check(Level::Structure);
    let gaps = &sound.coverage.not_checked;
    let bare: Vec<_> = gaps
        .iter()
        .filter(|gap| gap.what.contains("without a trace"))
        .collect();
    assert!(
        matches!(bare.as_slice(), [one] if one.inherent && one.why.contains("public.t_bare")),
        "{bare:?}"
    );

    truncate(&young, 3);
    fs::remove_file(young_key).expect("a file");
    fs::remove_file(old_key).expect("a file");
    let document = clinic.check(Level::Structure);
    assert_eq!(reindex_of(&document, "t_young_pkey"), [Safety::Lossy]);
    assert_eq!(reindex_of(&document, "t_old_pkey"), [Safety::Exact]);
    let open = document.coverage.not_checked.iter();
    let open: Vec<_> = open
        .filter(|gap| gap.what.starts_with(ROWS_MAY_BE_LOST))
        .collect();
    assert!(
        matches!(open.as_slice(), [one] if one.what.ends_with("public.t_young") && !one.inherent),
        "{open:?}"
    );
}

#[test]
fn a_key_counts_the_rows_of_a_missing_file_and_of_a_page_of_noise() {
    let mut clinic = Clinic::with(TABLES);
    let (young, old) = (clinic.path("public.t_young"), clinic.path("public.t_old"));
    clinic.stop();
    fs::remove_file(young).expect("a file");
    let file = fs::File::options().write(true).open(old).expect("a file");
    let noise = vec![0xA5; PAGE as usize];
    file.write_all_at(&noise, 2 * PAGE).expect("a write");
    let document = clinic.check(Level::Structure);
    let rows = |relation: &str| {
        let mut roots = document.findings.iter();
        let root = roots.find(|own| {
            own.severity == Severity::Damage
                && own.caused_by.is_none()
                && own.place.relation.as_deref() == Some(relation)
        });
        root.and_then(|own| own.at_risk.rows)
    };
    assert_eq!(rows("t_young"), Some(3000));
    let on_page = rows("t_old").expect("the key names them");
    assert!((40..80).contains(&on_page), "{on_page}");
    let plan = document.plan.iter().flat_map(|step| &step.commands);
    let salvage: Vec<_> = plan
        .filter(|own| own.starts_with("pgclinic salvage"))
        .collect();
    assert!(
        salvage.iter().all(|own| own.contains("--relation")),
        "{salvage:?}"
    );
}

#[test]
fn a_damaged_catalog_asks_for_the_salvage_of_the_whole_database() {
    let mut clinic = Clinic::with(TABLES);
    let path = clinic.path("pg_catalog.pg_class");
    clinic.stop();
    super::zero(&path, 0);
    let document = clinic.check(Level::Structure);
    let plan = document.plan.iter().flat_map(|step| &step.commands);
    let salvage: Vec<_> = plan
        .filter(|own| own.starts_with("pgclinic salvage"))
        .collect();
    assert!(
        matches!(salvage.as_slice(), [one] if one.contains("--database clinic") && !one.contains("--relation")),
        "{salvage:?}"
    );
}

#[test]
fn a_table_that_is_a_directory_counts_as_not_read() {
    let mut clinic = Clinic::with(TABLES);
    let old = clinic.path("public.t_old");
    super::execute(clinic.server(), "ANALYZE public.t_old");
    clinic.stop();
    fs::remove_file(&old).expect("a file");
    fs::create_dir(&old).expect("a directory");
    let document = clinic.check(Level::Structure);
    let coverage = &document.coverage;
    assert!(coverage.bytes_unreadable >= 50 * PAGE, "{coverage:?}");
    let mut gaps = coverage.not_checked.iter();
    assert!(
        gaps.any(|gap| gap.why.contains("about 3,000 rows")),
        "{coverage:?}"
    );
}
