//! The pages of a GIN index do not hang together: the tree of keys and the trees of row numbers.
//!
//! Truth: `src/backend/access/gin/{README,ginbtree.c,ginentrypage.c,gindatapage.c}`.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::findings::Findings;
use crate::gin::Walk;
use crate::relation_check::{RelationCheck, RelationCx};

/// A link leads elsewhere than it should.
pub static GIN_TREE_LINK: Rule = Rule {
    name: "gin-tree-link",
    severity: Severity::Damage,
    summary: "the pages of a GIN index do not lead to each other",
    explain: "\
The keys of a GIN index stand in a tree of pages, and the row numbers of a frequent key in a tree of their \
own. Each page names its right neighbour, and pages above name those below, in the same order. Here the \
two contradict each other, or a link leads to an empty or deleted page, to one of another kind, or to one \
that is in use elsewhere.

The server says `right sibling of GIN page is of different type` where it looks; else queries miss rows, \
give wrong rows, or do not end. An insert may spread the damage.

A split that did not come to its end is no damage, and is not told. The usual causes are a damaged page, \
or pages from different moments: a file that was copied while the server worked, or a lost write.

Rows of the table are not at risk. Keep a copy of the file, then `REINDEX` the index.",
};

/// Keys are not in order.
pub static GIN_KEY_ORDER: Rule = Rule {
    name: "gin-key-order",
    severity: Severity::Damage,
    summary: "keys of a GIN index are not in order",
    explain: "\
The keys of a GIN index rise from page to page and on each page: by the column they belong to, then keys \
before nulls, then as the operator class compares them. No key occurs twice, and no page holds a key above \
the highest one that the page above gives for it. Here one does not fit.

A search goes down the tree by comparing, so it looks in the wrong place: queries miss rows. An insert \
may enter the key a second time.

The usual causes are a damaged page, or an order that changed under the index: another version of a \
library that sorts text, or another signedness of `char` after moving a cluster between machines.

Rows of the table are not at risk. Keep a copy of the file, then `REINDEX` the index.",
};

/// Row numbers are not in order.
pub static GIN_ROW_ORDER: Rule = Rule {
    name: "gin-row-order",
    severity: Severity::Damage,
    summary: "row numbers of a GIN index are not in order from page to page",
    explain: "\
The tree behind a frequent key of a GIN index holds row numbers that rise from page to page, and each page \
says up to which row number it reaches; the page above says the same of it. Here a page begins before its \
left neighbour ends, reaches beyond what the page above says, or the two say different things.

Queries that combine several keys walk these lists side by side and rely on the order: they miss rows. \
VACUUM may leave row numbers behind that later belong to other rows.

The usual causes are a damaged page, or pages from different moments.

Rows of the table are not at risk. Keep a copy of the file, then `REINDEX` the index.",
};

/// See the rules.
pub struct GinTree;

impl RelationCheck for GinTree {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIN_TREE_LINK, &GIN_KEY_ORDER, &GIN_ROW_ORDER] }
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
