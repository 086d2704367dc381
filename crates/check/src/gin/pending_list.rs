//! The list of waiting entries of a GIN index is not what its meta page says.
//!
//! Truth: `src/backend/access/gin/ginfast.c`.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::findings::Findings;
use crate::gin::Walk;
use crate::relation_check::{RelationCheck, RelationCx};

/// The rule.
pub static GIN_PENDING_LIST: Rule =
    Rule::from_page(include_str!("../../rules/gin-pending-list.md"));

/// See [`GIN_PENDING_LIST`].
pub struct GinPendingList;

impl RelationCheck for GinPendingList {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIN_PENDING_LIST] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Gin
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        Walk::new(relation).pending(out);
    }
}
