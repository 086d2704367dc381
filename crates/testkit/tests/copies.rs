//! A copy is a cluster of its own: what happens to it does not reach the seed.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed"
)]
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

#[test]
fn a_copy_starts_and_keeps_its_hands_off_the_seed() {
    let seeded = seed(&server(15), Checksums::On);
    assert_eq!(seed(&server(15), Checksums::On), seeded, "made once");
    let copy = copy_of(&seeded);
    assert_eq!(copy.tablespaces.len(), 1);
    let mut running = copy.start().expect("a start");
    let mut session = running.connect("clinic").expect("a session");
    let annexed = session
        .query_value("SELECT count(*) FROM public.annexed")
        .expect("an answer");
    assert_eq!(annexed.as_deref(), Some("200"));
    let location = session.query_value(
        "SELECT pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = 'annex'",
    );
    assert_eq!(
        location.expect("an answer").map(Into::into),
        copy.tablespaces.first().cloned()
    );
    assert!(!seeded.pgdata.join("postmaster.pid").exists());
    running.stop(StopMode::Fast).expect("a stop");
    let folder = copy.pgdata.clone();
    drop((running, copy));
    assert!(!folder.exists() && seeded.pgdata.exists() && seeded.tablespace.exists());
}
