//! "The server writes meanwhile": what a run beside a server does about it, the same for everybody.
//!
//! ```text
//! FreshView ─► round over what is open ─┬─ nothing left: settled
//!     ▲                                 └─ something left, or made since ─┐
//!     └───────────────────────────────────────────────────────────────────┘  at most LIVE_LIMITS.rounds
//!
//! suspects ─► print ─► wait, FreshView ─► examine ─┬─ gone or sound: it was on its way
//!                                                  ├─ the same bytes: it counts
//!                                                  └─ other bytes: once more, at most LIVE_LIMITS.second_looks
//! ```
//!
//! A single page that may be half written is read again by `pgclinic_cluster::PageWaits`.

mod catalog_reads;
mod fresh_view;
mod rounds;
mod second_look;
mod server;

pub use catalog_reads::CatalogReads;
pub use fresh_view::{FreshView, ViewPosition};
pub use rounds::{Left, Round, Rounds, RoundsEnd, rounds};
pub use second_look::{Look, Ruling, SecondLook, Suspect, SuspectOf, look_again};
pub use server::{AskedPage, LiveServer, ServerSays};
