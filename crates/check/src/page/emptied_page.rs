//! A page of a table has a sound header and no line pointer in use, and entries of its indexes lead
//! to it.
//!
//! Truth: `lazy_vacuum_heap_page` in `src/backend/access/heap/vacuumlazy.c`, which frees a line
//! pointer after all indexes lost the entries that name it.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, LpFlags, Page};
use pgclinic_model::Rule;
use pgclinic_model::document::{Level, NotChecked};
use pgclinic_model::plural;

use crate::block_set::BlockSet;
use crate::entries::lost_rows::{ask_indexes, without_foreign};
use crate::entries::named_blocks::BITS_MAX;
use crate::findings::Findings;
use crate::page::vacant_page::{Vacancy, tell};
use crate::relation_check::{RelationCheck, RelationCx};

/// The rule.
pub static EMPTIED_PAGE: Rule = Rule::from_page(include_str!("../../rules/emptied-page.md"));

/// How such a page is told.
static EMPTIED: Vacancy = Vacancy {
    rule: &EMPTIED_PAGE,
    seen: "has no line pointer in use",
    place: "a page without line pointers in use",
    cause: None,
};

/// See [`EMPTIED_PAGE`].
pub struct EmptiedPage;

impl RelationCheck for EmptiedPage {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&EMPTIED_PAGE] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Heap
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let emptied = relation.neighbours.emptied_in(relation.fork);
        let Some(emptied) = emptied.filter(|_| relation.settles()) else {
            return;
        };
        if emptied.omitted > 0 && relation.fork.level < Level::Full {
            leave_to_full(relation, emptied.omitted, out);
        }
        // Of what WAL speaks of since the checkpoint, VACUUM may have emptied the page in its file
        // before the index lost its entries there.
        let blocks = || {
            let blocks = emptied.blocks.iter();
            let blocks = blocks.filter_map(|at| BlockNo::try_from(at).ok());
            blocks.filter(|block| relation.is_lasting(relation.fork, *block))
        };
        let mut set = BlockSet::none_of(&(0..relation.fork.blocks));
        blocks().for_each(|block| set.add(u64::from(block)));
        let witnesses = ask_indexes(
            relation,
            |named| blocks().any(|block| named.may_name(block)),
            |block| set.has(block),
        );
        let witnesses = without_foreign(relation, witnesses, out);
        let is_named = |block: &BlockNo| {
            let mut witnesses = witnesses.iter();
            witnesses.any(|own| own.blocks.contains_key(block))
        };
        for block in blocks().filter(is_named) {
            tell(relation, (block, 0), &witnesses, &EMPTIED, out);
        }
    }
}

/// VACUUM leaves such pages anywhere, so that many of them are no reason to doubt the table.
fn leave_to_full(relation: &RelationCx<'_>, pages: u64, out: &mut Findings) {
    let name = relation.fork.relation.map(|own| own.qualified_name());
    out.not_checked(NotChecked {
        what: format!(
            "{} without a line pointer in use against index entries of {}",
            plural(pages, "page"),
            name.unwrap_or_default()
        ),
        why: "they are too many to remember; level full compares them".into(),
        inherent: true,
    });
}

/// No line pointer of the page is in use. In a table of more blocks than a set of named blocks has
/// bits, the neighbours of pages that VACUUM emptied share their bits: there only pages without any
/// line pointer count, which hardly occur in a table with an index.
pub(crate) fn is_emptied(page: Page<'_>, table_blocks: u64) -> bool {
    let mut pointers = page.line_pointers();
    match pointers.next() {
        None => true,
        Some(_) if table_blocks > BITS_MAX => false,
        Some((_, first)) => {
            let is_free = |flags| flags == LpFlags::Unused;
            is_free(first.flags()) && pointers.all(|(_, pointer)| is_free(pointer.flags()))
        }
    }
}
