//! A sequence stands at a number that its own bounds forbid.
//!
//! `setval` and every `ALTER SEQUENCE` refuse such a number, and `ALTER SEQUENCE` writes bounds and
//! number in one transaction. Truth: `init_params`, `do_setval` and `nextval_internal` in
//! `src/backend/commands/sequence.c`.

use pgclinic_cluster::DatabaseContext;
use pgclinic_cluster::inventory::catalogs_are_sure;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::findings::Findings;
use crate::relation_check::{RelationCheck, RelationCx};
use crate::sequence::tuple::row_of;

/// The rule.
pub static SEQUENCE_BEYOND_BOUNDS: Rule =
    Rule::from_page(include_str!("../../rules/sequence-beyond-bounds.md"));

/// See [`SEQUENCE_BEYOND_BOUNDS`].
pub struct SequenceBeyondBounds;

impl RelationCheck for SequenceBeyondBounds {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SEQUENCE_BEYOND_BOUNDS] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Sequence
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let Some(cluster) = relation.fork.cluster.filter(|_| relation.settled()) else {
            return;
        };
        let cx = DatabaseContext {
            cluster,
            catalog: relation.catalog,
            forks: &[],
        };
        let doubted =
            |trouble: &pgclinic_cluster::ReadGap| trouble.what.starts_with("catalog pg_sequence ");
        if !catalogs_are_sure(&cx) || relation.catalog.troubles.iter().any(doubted) {
            return;
        }
        let own = relation.fork.relation.map(|own| own.oid);
        let Some(bounds) = own.and_then(|oid| relation.catalog.sequence(oid)) else {
            return;
        };
        let mut pages = relation.pages();
        let Some(row) = pages.page(0).and_then(|page| row_of(page).ok()) else {
            return;
        };
        let [last_value, ..] = &row.values;
        let Some(bytes) = row
            .bytes
            .get(last_value.clone())
            .and_then(|bytes| bytes.first_chunk())
        else {
            return;
        };
        let last = i64::from_le_bytes(*bytes);
        if (bounds.min..=bounds.max).contains(&last) {
            return;
        }
        let message = format!(
            "last_value {last} is not between {} and {}",
            bounds.min, bounds.max
        );
        let (start, end) = (row.start + last_value.start, row.start + last_value.end);
        let draft = relation.draft(&SEQUENCE_BEYOND_BOUNDS, 0, message);
        out.add(
            draft
                .item(1)
                .attribute(1)
                .bytes(start, end)
                .fact("last_value", last)
                .fact("least", bounds.min)
                .fact("greatest", bounds.max),
        );
    }
}
