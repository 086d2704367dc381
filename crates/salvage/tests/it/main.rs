//! All tests of this crate that need more than one module: one program, so that it is linked once.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed"
)]
mod common;

mod catalog_memory;
mod checks;
mod columns_on_request;
mod crash;
mod encodings;
mod estimates;
mod from_a_server;
mod from_a_server_locks;
mod from_a_server_losses;
mod from_a_server_more;
mod further_witnesses;
mod guess;
mod injuries;
mod into_a_server;
mod into_a_server_losses;
mod large_values;
mod line_pointers;
mod load_script;
mod losses;
mod lost_catalogs;
mod lost_columns;
mod lost_keys;
mod lost_relations;
mod lost_types;
mod missing_wal;
mod not_read;
mod old_indexes;
mod older_directory;
mod our_own_failure;
mod partial_values;
mod resume;
mod round_trip;
mod row_witnesses;
mod running;
mod running_catalogs;
mod schema;
mod sequences;
mod server_source;
mod standby;
mod stored_types;
mod text_settings;
mod timelines;
mod uncertain;
