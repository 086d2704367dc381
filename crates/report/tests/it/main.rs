//! All tests of this crate that need more than one module: one program, so that it is linked once.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed"
)]
mod common;

mod diff;
mod heal;
mod html;
mod json;
mod programs;
mod redacted;
mod text;
