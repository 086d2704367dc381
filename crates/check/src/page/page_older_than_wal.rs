//! A page of a table is older than what WAL has written to it.

use pgclinic_cluster::OutdatedBlock;
use pgclinic_format::Fork;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::findings::Findings;
use crate::relation_check::{RelationCheck, RelationCx};

/// The rule.
pub static PAGE_OLDER_THAN_WAL: Rule =
    Rule::from_page(include_str!("../../rules/page-older-than-wal.md"));

/// See [`PAGE_OLDER_THAN_WAL`].
pub struct PageOlderThanWal;

impl RelationCheck for PageOlderThanWal {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&PAGE_OLDER_THAN_WAL] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Heap
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let fork = relation.fork;
        let Some(cluster) = fork.cluster.filter(|_| fork.fork() == Fork::Main) else {
            return;
        };
        for OutdatedBlock {
            block,
            lsn,
            changed_at,
        } in cluster.outdated_blocks(fork.files)
        {
            let message = format!(
                "block {block} is older than WAL: its LSN is {lsn}, and the record that last changed its rows ends at {changed_at}"
            );
            let draft = relation
                .draft(&PAGE_OLDER_THAN_WAL, block, message)
                .bytes(0, 8);
            let draft = draft
                .fact("lsn", lsn.to_string())
                .fact("changed_at", changed_at.to_string());
            out.add(draft.rooted());
        }
    }
}
