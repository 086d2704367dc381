//! All tests of this crate that need more than one module: one program, so that it is linked once.

mod catalogs;
mod expectations;
mod hash_indexes;
mod injuries;
mod parity;
mod pg_checksums;
mod safety;
