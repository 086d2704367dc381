//! All tests of this crate that need more than one module: one program, so that it is linked once.

mod contents;
mod fetching;
mod folders;
mod logins;
mod real;
