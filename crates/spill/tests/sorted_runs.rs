//! Sorting within any budget gives what a plain stable sort gives.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed"
)]
use std::fs;
use std::io;

use pgclinic_spill::SortedRuns;
use proptest::prelude::*;

type Record = (Vec<u8>, Vec<u8>);

fn sorted(budget_bytes: usize, records: &[Record]) -> io::Result<(usize, Vec<Record>)> {
    let folder = tempfile::tempdir()?;
    let mut runs = SortedRuns::new(budget_bytes, folder.path())?;
    for (key, value) in records {
        runs.push(key, value)?;
    }
    let count = runs.runs();
    assert_eq!(
        fs::read_dir(folder.path())?.count(),
        0,
        "the temporary file has no name"
    );
    Ok((count, runs.finish()?.collect::<io::Result<_>>()?))
}

fn plain(records: &[Record]) -> Vec<Record> {
    let mut records = records.to_vec();
    records.sort_by(|a, b| a.0.cmp(&b.0));
    records
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_budget_gives_the_plain_order(
        budget in 0usize..600,
        // Few different keys, so that ties across runs are common.
        records in prop::collection::vec((prop::collection::vec(0u8..3, 0..3), prop::collection::vec(any::<u8>(), 0..40)), 0..120),
    ) {
        let (_, sorted) = sorted(budget, &records)?;
        prop_assert_eq!(sorted, plain(&records));
    }
}

#[test]
fn many_runs_are_merged_in_rounds() -> io::Result<()> {
    let numbers = 0..5000u32;
    let records: Vec<Record> = numbers
        .map(|n| {
            (
                vec![n.wrapping_mul(2_654_435_761).to_be_bytes()[0]],
                n.to_le_bytes().to_vec(),
            )
        })
        .collect();
    // 12 kB of budget allow three buffers: several rounds for eight runs.
    let (runs, sorted) = sorted(12 << 10, &records)?;
    assert!(runs >= 8, "{runs} runs");
    assert_eq!(sorted, plain(&records));
    Ok(())
}

#[test]
fn what_fits_stays_in_memory() -> io::Result<()> {
    let records = [
        (b"b".to_vec(), b"1".to_vec()),
        (b"a".to_vec(), b"2".to_vec()),
    ];
    assert_eq!(sorted(1000, &records)?, (0, plain(&records)));
    assert_eq!(sorted(0, &[])?, (0, vec![]));
    Ok(())
}

#[test]
fn no_temporary_file_goes_into_a_cluster() -> io::Result<()> {
    let cluster = tempfile::tempdir()?;
    fs::create_dir_all(cluster.path().join("base/pgsql_tmp"))?;
    fs::write(cluster.path().join("PG_VERSION"), "18\n")?;
    let said = SortedRuns::new(10, &cluster.path().join("base/pgsql_tmp"))
        .err()
        .map(|error| error.to_string());
    assert!(said.is_some_and(|said| said.contains("lies inside the cluster")));
    Ok(())
}

#[test]
fn a_folder_that_is_missing_is_said_at_once() {
    let said = SortedRuns::new(10, "/no/such/folder".as_ref())
        .err()
        .map(|error| error.to_string());
    let expected =
        "cannot use /no/such/folder for temporary files: No such file or directory (os error 2)";
    assert_eq!(said.as_deref(), Some(expected));
}
