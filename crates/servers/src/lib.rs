//! Real PostgreSQL servers: find one, fetch one, make a cluster, start it as another user, talk to
//! it, stop it, and leave none behind.
//!
//! ```text
//! find ──► Installation ──► initdb ──► Server::start ──► connect ──► Session
//!            │ installed, or fetched          │                        │ simple protocol,
//!            │ into a cache                   │ dies with us           │ messages collected
//!            └ 13-18                          └ Drop, stop_all, sweep  └ never waits for ever
//! ```
//!
//! Everything here blocks. Servers never run as root ([`RunAs`]), listen only on a private Unix
//! socket, and are ended four ways: [`Server`]'s drop, [`stop_all`] from a signal handler, the
//! death of this process (where `setpriv` is installed), and [`sweep`] at the next start.
#![forbid(unsafe_code)]

mod cache;
mod connection_defaults;
mod copy;
mod error;
mod features;
mod fetch;
pub mod fill;
mod find;
mod initdb;
mod installation;
mod message;
mod passwd;
mod passwords;
mod process;
mod run_as;
mod running;
mod scratch;
mod scratch_cluster;
mod server;
mod session;
mod settings;
mod slow_disk;
mod spawn;
mod stream;
mod sweep;
mod target;
mod wire;

pub use cache::cache_folder;
pub use connection_defaults::ConnectionDefaults;
pub use copy::{Copied, copy_cluster, point_link};
pub use error::{Error, Result};
pub use features::{Features, io_uring_forbidden};
pub use fill::{FillOptions, Filled, fill};
pub use find::{Wanted, everywhere, fetched, find, here, installed, made, made_folder};
pub use initdb::{Checksums, InitOptions, initdb};
pub use installation::{Installation, MAJORS};
pub use message::{Message, SqlError};
pub use passwords::Passwords;
pub use run_as::RunAs;
pub use running::{remove_all, stop_all};
pub use scratch::Scratch;
pub use scratch_cluster::{RecoveryTarget, ScratchCluster};
pub use server::{Server, StartOptions, StopMode};
pub use session::{
    Archive, BackupOptions, BaseBackup, ConnectOptions, CopyIn, Login, Proof, Prover, Session,
    TextRow,
};
pub use slow_disk::SlowDisk;
pub use sweep::{Swept, sweep, sweep_in};
pub use target::{Address, ConnectionTarget, Tls};
