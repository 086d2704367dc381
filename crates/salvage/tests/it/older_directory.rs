//! The directory of a database is an older copy, or another database's: its files agree with each
//! other, and WAL tells.

use std::fs;
use std::path::Path;

use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_salvage::salvage;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{Quiet, TempCopy, copy_of, execute, open, seed, server, value};

use crate::common::options;

fn salvaged(copy: &TempCopy) -> SalvageReport {
    let folder = tempfile::tempdir().expect("a directory");
    let options = options(&folder.path().join("out"), "csv");
    salvage(&open(&copy.pgdata), &options, &Quiet).expect("an account")
}

fn gaps_of(account: &SalvageReport) -> Vec<&str> {
    let gaps = account.not_salvaged.iter().filter(|gap| !gap.inherent);
    gaps.map(|gap| gap.why.as_str()).collect()
}

fn replace(with: &Path, directory: &Path) {
    fs::remove_dir_all(directory).expect("it goes");
    fs::create_dir(directory).expect("a directory");
    for entry in fs::read_dir(with).expect("files").flatten() {
        fs::copy(entry.path(), directory.join(entry.file_name())).expect("a copy");
    }
}

#[test]
fn an_older_directory_and_another_databases_are_never_whole() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(
        &running,
        "CREATE TABLE public.kept AS SELECT generate_series(1, 500) AS id",
    );
    let oid = value(
        &running,
        "SELECT oid FROM pg_database WHERE datname = current_database()",
    );
    running.stop(StopMode::Fast).expect("it stops");
    let own = copy.pgdata.join("base").join(&oid);
    let older = copy.pgdata.join("older");
    fs::create_dir(&older).expect("a directory");
    replace(&own, &older);
    let mut running = copy.start().expect("a server");
    execute(
        &running,
        "CREATE TABLE public.later AS SELECT generate_series(1, 300) AS id",
    );
    execute(&running, "INSERT INTO public.later VALUES (301)");
    execute(&running, "DELETE FROM public.kept WHERE id < 10");
    running.stop(StopMode::Fast).expect("it stops");
    let sound = salvaged(&copy);
    assert!(gaps_of(&sound).is_empty(), "{:#?}", sound.not_salvaged);
    let other = copy.pgdata.join("base/1");
    for (with, what, older_catalogs) in [
        (&older, "an older copy", true),
        (&other, "template1", false),
    ] {
        replace(with, &own);
        let account = salvaged(&copy);
        let gaps = gaps_of(&account);
        assert_ne!(account.outcome, Outcome::Whole, "{what}");
        let is_told = |words: &str| gaps.iter().any(|why| why.contains(words));
        assert!(
            is_told("older than WAL") || !older_catalogs,
            "{what}: {gaps:#?}"
        );
        assert!(is_told("no catalog names it"), "{what}: {gaps:#?}");
    }
}
