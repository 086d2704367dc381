//! All tests of this crate that need more than one module: one program, so that it is linked once.

mod common;

mod diff;
mod html;
mod json;
mod text;
