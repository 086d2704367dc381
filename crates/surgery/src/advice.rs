//! What a user without the journal can do, in the words that injuries share. Every way begins with
//! a copy of the whole data directory.

pub(crate) const RESTORE_PAGE: &str = "Take the page from a backup or a standby. Where WAL reaches back to the last full page image of it, restoring the backup and replaying gives it back exactly.";
pub(crate) const CHECKSUM_ONLY: &str = "The bytes are whole: with ignore_checksum_failure = on the relation can be dumped and loaded again, which writes a right checksum. Ask first why only the checksum is wrong.";
pub(crate) const PAGE_HEADER: &str = "Take the page from a backup or a standby. Without one the rows are often still whole after the header: read them with pageinspect or inspect from the copy before zero_damaged_pages or a dump gives the page up.";
pub(crate) const SET_RIGHT_BY_VACUUM: &str = "The rows are whole. VACUUM of the table sets the field right once the page is pruned; dump the table and load it again if it does not.";
pub(crate) const LINE_POINTER: &str = "Take the page from a backup or a standby. Without one the other rows can be read by ctid; the one row can be read from the copy with inspect, then delete it with pg_surgery (heap_force_kill, 14 and later) or leave it out of the dump.";
pub(crate) const PAGE_LOST: &str = "Take the page from a backup or a standby, or restore a backup and replay the WAL. Without one, dump the rows of the other blocks by ctid ranges into a new table and rebuild its indexes; what stood on this page is lost.";
pub(crate) const INDEX: &str = "Nothing is lost: REINDEX builds the index from its table. For a catalog's index start the server with ignore_system_indexes first.";
pub(crate) const ROW: &str = "Take the page from a backup or a standby. Without one, copy all rows but this one into a new table by ctid, and read the row's bytes from the copy with inspect; pg_surgery can kill the row (14 and later).";
pub(crate) const TRANSACTION: &str = "Take the page from a backup or a standby. Without one, pg_surgery's heap_force_freeze makes the row readable and heap_force_kill removes it (14 and later); never make up a file of pg_xact or pg_multixact before everything else failed.";
pub(crate) const HINT_BITS: &str = "Compare with a backup or a standby, where the row is visible. pg_surgery's heap_force_freeze makes it visible again (14 and later).";
pub(crate) const NOTHING: &str = "Nothing needs to be done: the field is never read again.";
pub(crate) const VALUE: &str = "Only a backup, a standby or somebody who knows the data can tell what the value was; compare the table with one of them.";
pub(crate) const TOAST: &str = "Take the page from a backup or a standby. Without one, find the row by reading the table row by row, save its other columns, and set the TOASTed value again.";
pub(crate) const SEQUENCE: &str = "Nothing is lost that the table does not know: drop and create the sequence, or setval() it after the largest number in use.";
pub(crate) const FILE: &str = "Restore the file's database from a backup or promote a standby. What is left of the relation can be dumped after a file of zeros of the old length was put in its place on a copy, with zero_damaged_pages = on.";
pub(crate) const VERSION: &str = "Write the file again with the major of the cluster and a line feed, with owner and mode of PG_VERSION in the data directory.";
pub(crate) const CONTROL: &str = "Restore the control file from a backup of the same moment, or restore the whole backup and replay. pg_resetwal makes a new one from guesses: only on a copy, and only to dump what can still be read.";
pub(crate) const CATALOG: &str = "Take the catalog's page from a backup or a standby of the same moment. Without one, dump everything that can still be dumped and load it into a fresh cluster; changing a row of a catalog by hand is the last resort, on a copy, with allow_system_table_mods = on.";
pub(crate) const MAP: &str = "Take pg_filenode.map from a backup, as long as no VACUUM FULL, CLUSTER or REINDEX of a mapped catalog ran since. The map of another database created from the same template fits, if neither was changed.";
pub(crate) const STATUS: &str = "Take the file from a backup or a standby of this cluster: what stands in it does not change once it is full, and the rest comes back by replaying WAL. A file that is made up lets the server start, and decides by guess which rows exist: only on a copy, and only to dump.";
pub(crate) const SMALL_STATE: &str = "Take the file from a backup or a standby of the same moment. Without one move it away, so that the server starts without it: a prepared transaction then counts as rolled back, a slot must be made again, a subscription may apply changes twice.";
pub(crate) const WAL: &str = "Put the segment back from the archive, a standby or a backup. Without it, restore a backup; pg_resetwal makes the server start on a copy, only to dump what can be read (after a shutdown in good order nothing is lost by it).";
pub(crate) const OLDER_WAL: &str = "This cluster does not need it any more. Put the segment back from the archive for standbys that still wait for it, or make them again from a base backup.";
