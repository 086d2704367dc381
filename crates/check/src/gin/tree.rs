//! The pages of a GIN index do not hang together: the tree of keys and the trees of row numbers.
//!
//! Truth: `src/backend/access/gin/{README,ginbtree.c,ginentrypage.c,gindatapage.c}`.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::findings::Findings;
use crate::gin::Walk;
use crate::relation_check::{RelationCheck, RelationCx};

/// A link leads elsewhere than it should.
pub static GIN_TREE_LINK: Rule = Rule::from_page(include_str!("../../rules/gin-tree-link.md"));

/// Keys are not in order.
pub static GIN_KEY_ORDER: Rule = Rule::from_page(include_str!("../../rules/gin-key-order.md"));

/// Row numbers are not in order.
pub static GIN_POSTING_TREE_ORDER: Rule =
    Rule::from_page(include_str!("../../rules/gin-posting-tree-order.md"));

/// See the rules.
pub struct GinTree;

impl RelationCheck for GinTree {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIN_TREE_LINK, &GIN_KEY_ORDER, &GIN_POSTING_TREE_ORDER] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Gin
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let mut walk = Walk::new(relation);
        walk.all(out);
        let unknown = walk.keys.iter().flat_map(|keys| keys.unknown());
        for (column, why) in unknown {
            relation.not_checked(
                out,
                &format!("order of the keys of column {column}"),
                why,
                true,
            );
        }
    }
}
