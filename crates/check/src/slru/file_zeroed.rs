//! Zeros stand where `pg_xact` must say what became of transactions.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::zeroed_status;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static SLRU_FILE_ZEROED: Rule =
    Rule::from_page(include_str!("../../rules/slru-file-zeroed.md"));

/// See [`SLRU_FILE_ZEROED`].
pub struct SlruFileZeroed;

impl ClusterCheck for SlruFileZeroed {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SLRU_FILE_ZEROED] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        for zeroed in zeroed_status(cluster) {
            let [begin, end] = zeroed.bytes;
            let message = format!(
                "the status of transactions {} to {} is all 0, and {begin} is where a sector begins",
                zeroed.first, zeroed.last
            );
            let draft = Draft::new(&SLRU_FILE_ZEROED, message)
                .bytes(begin, end)
                .fact("first_transaction", zeroed.first)
                .fact("last_transaction", zeroed.last);
            out.add(draft.place(zeroed.place));
        }
    }
}
