//! All tests of this crate that need more than one module: one program, so that it is linked once.

#[path = "../../../salvage/tests/it/common/mod.rs"]
mod common;
mod reading;

mod packer;
mod salvage;
