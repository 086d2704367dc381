//! All tests of this crate that need more than one module: one program, so that it is linked once.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed"
)]
mod archives_of_tar;
mod conformance;
mod hostile_archives;
mod hostile_folders;
mod marks;
mod packed_archives;
mod page_cache;
