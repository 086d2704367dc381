//! The list of waiting entries of a GIN index is not what its meta page says.
//!
//! Truth: `src/backend/access/gin/ginfast.c`.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::findings::Findings;
use crate::gin::Walk;
use crate::relation_check::{RelationCheck, RelationCx};

/// The rule.
pub static GIN_PENDING_LIST: Rule = Rule {
    name: "gin-pending-list",
    severity: Severity::Damage,
    summary: "the list of waiting entries of a GIN index is broken",
    explain: "\
With `fastupdate` a GIN index first collects new entries in a list of pages. The meta page says where it \
begins and ends, how many pages and rows it holds, and how much room its last page has; each page names \
the next. Here the list leads to a page that is none of it, ends elsewhere, is not as long as the meta \
page says, or holds the keys of a row out of order.

Every search reads the whole list. Where it breaks off, the rows behind are not found by queries that use \
the index. Where it says more free room than there is, the next insert stops the server with `PANIC:  \
failed to add item to index page`.

The usual cause is a damaged page, or pages from different moments: a file that was copied while the \
server worked, or a lost write.

Rows of the table are not at risk. Keep a copy of the file, then `REINDEX` the index before anything is \
inserted.",
};

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
