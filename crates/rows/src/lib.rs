//! Rows out of pages: what a table holds, read from its files alone, and written where a person can use it.
#![forbid(unsafe_code)]

mod file_names;

pub use file_names::{FileNames, encoded};
