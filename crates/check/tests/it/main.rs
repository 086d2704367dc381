//! All tests of this crate that need more than one module: one program, so that it is linked once.

mod index_clusters;

mod brin;
mod cases;
mod causes;
mod collation_versions;
mod files_that_change;
mod gin;
mod lost_blocks;
mod recovery;
mod running;
mod screen;
mod state;
mod status_files;
mod trees;
mod update_chains;
mod wal;
