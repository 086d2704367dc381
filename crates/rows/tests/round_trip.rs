//! What is salvaged from a stopped cluster is what its server gave with `COPY … TO`, to the byte.

mod common;

use common::{compare, copied, options, salvaged};
use pgclinic_rows::Outcome;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

const DATABASES: [&str; 3] = ["clinic", "od\"d näme", "postgres"];

fn salvage_equals_copy(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    let forms = [("copy", ""), ("csv", "(FORMAT csv, HEADER)")];
    let expected =
        forms.map(|(_, with)| DATABASES.map(|database| copied(&running, database, with)));
    running.stop(StopMode::Fast).expect("stopped");
    for ((form, _), expected) in forms.iter().zip(&expected) {
        let folder = tempfile::tempdir().expect("a folder");
        let destination = folder.path().join("out");
        let account = salvaged(&copy.pgdata, &options(&destination, form));
        for expected in expected {
            compare(&destination, form, expected);
        }
        let lossy: Vec<_> = account
            .tables
            .iter()
            .filter(|table| !table.places.is_empty())
            .collect();
        assert_eq!(
            account.outcome,
            Outcome::Whole,
            "{lossy:#?} {:?}",
            account.not_salvaged
        );
        let tables: usize = expected.iter().map(|tables| tables.len()).sum();
        assert_eq!(account.tables.len(), tables);
    }
}

#[test]
fn of_13() {
    salvage_equals_copy(13);
}

#[test]
fn of_15() {
    salvage_equals_copy(15);
}

#[test]
fn of_18() {
    salvage_equals_copy(18);
}
