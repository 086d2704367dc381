//! The end of a program, alone in its process because it ends all servers of the process.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed"
)]
use pgclinic_servers::{
    Error, InitOptions, RunAs, Scratch, Server, StartOptions, Wanted, find, initdb, remove_all,
};

#[test]
fn the_end_of_the_program_ends_its_servers_and_no_new_one_starts() {
    let run_as = RunAs::new(None).expect("a user");
    let installation = find(&Wanted::default(), &mut |_| {}).expect("a server");
    let scratch = Scratch::new(&run_as, None).expect("a scratch directory");
    let pgdata = scratch.folder("data").expect("a directory");
    initdb(&installation, &run_as, &pgdata, &InitOptions::default()).expect("a cluster");
    let options = StartOptions::default();
    let server = Server::start(&installation, &run_as, &pgdata, &options).expect("a start");
    remove_all();
    assert!(server.connect("postgres").is_err());
    assert!(!scratch.path().exists() && !server.socket_folder().exists());
    assert!(matches!(
        Server::start(&installation, &run_as, &pgdata, &options),
        Err(Error::Ending)
    ));
}
