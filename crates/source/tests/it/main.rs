//! All tests of this crate that need more than one module: one program, so that it is linked once.

mod archives_of_tar;
mod conformance;
mod hostile_archives;
mod hostile_folders;
mod marks;
mod packed_archives;
mod page_cache;
