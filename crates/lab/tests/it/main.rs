//! All tests of this crate that need more than one module: one program, so that it is linked once.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed"
)]
mod common;

mod analyze_prefetch;
mod bases;
mod by_url;
mod duplicate_inserts;
mod large_object_dump;
mod learned;
mod learned_rates;
mod load;
mod load_experiments;
mod oauth_login;
mod own_settings;
mod samplers;
mod shapes_of_data;
mod watched;
mod yours;
