//! All tests of this crate that need more than one module: one program, so that it is linked once.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed"
)]
mod catalogs;
mod checksums;
mod corrected_pages;
mod expectations;
mod hash_indexes;
mod injuries;
mod old_journals;
mod parity;
mod pg_checksums;
mod random_injuries;
mod safety;
mod start_again;
mod start_evidence;
mod start_links;
mod start_maps;
mod start_older_control;
mod start_versions;
