//! `relation mapping file … contains incorrect checksum`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct RelationMapMessage;

impl ServerMessage for RelationMapMessage {
    fn name(&self) -> &'static str {
        "relation-map-damaged"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001", "XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "relation mapping file {file} contains incorrect checksum",
            "relation mapping file {file} contains invalid data",
            "relation mapping file",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
A few catalogs cannot say in `pg_class` where they live, since `pg_class` is one of them. Their file \
numbers stand in `pg_filenode.map`: one file in each database's folder and one in `global` for the \
shared ones. It holds a magic number, up to 64 pairs and a CRC. One of these is wrong.

The file is 512 bytes (524 since 16), so it is damaged as a whole or not at all: zeroed, cut, \
overwritten, or of another major version.

For one in a database's folder only this database cannot be used; with the one in `global` nobody can \
log in anywhere. **The data are not touched**: only the list of where the catalogs begin is lost.

It does **not** change often: only when a mapped catalog is rewritten. So an older copy from a backup of \
the same cluster is mostly right, and `template1` of the same cluster shows the shape (numbers equal the \
catalogs' OIDs unless rewritten).

**Never** copy the map of another cluster or another database: it would name wrong files, and the server \
would write to them."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec!["See what is there: `".to_owned() + &names.check_all_command() + "`", "Restore `pg_filenode.map` of exactly this database from a backup since which none of its mapped catalogs was rewritten (VACUUM FULL, CLUSTER, REINDEX of pg_class, pg_attribute, pg_proc, pg_type); then start and compare".to_owned(), names.restore()]
    }
}
