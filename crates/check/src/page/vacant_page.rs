//! What is told of a page that holds nothing, and to which entries of indexes lead.

use pgclinic_format::BlockNo;
use pgclinic_model::Rule;
use pgclinic_model::document::Cause;
use pgclinic_model::plan::Safety;
use pgclinic_model::{plural, verb_of};

use crate::entries::lost_rows::{IndexWitness, best};
use crate::findings::Findings;
use crate::relation_check::RelationCx;

/// How a page holds nothing.
pub(crate) struct Vacancy {
    pub(crate) rule: &'static Rule,
    /// What was seen of it.
    pub(crate) seen: &'static str,
    /// What it is, where an entry is wrong instead.
    pub(crate) place: &'static str,
    pub(crate) cause: Option<fn() -> Cause>,
}

/// What the indexes say of one page, if they say anything. `map_bits` are those of the visibility
/// map that such a page does not have by itself.
pub(crate) fn tell(
    relation: &RelationCx<'_>,
    (block, map_bits): (BlockNo, u8),
    witnesses: &[IndexWitness<'_>],
    vacancy: &Vacancy,
    out: &mut Findings,
) {
    let leading = || {
        witnesses
            .iter()
            .filter(|own| own.blocks.contains_key(&block))
    };
    let Some(witness) = best(leading()) else {
        return;
    };
    if map_bits == 0 && witnesses.iter().any(|own| own.denies(block)) {
        let why = format!(
            "which is on {}; other indexes of the table have no entry for it",
            vacancy.place
        );
        let accused = leading().filter_map(|own| Some(own.accuse(own.blocks.get(&block)?, &why)));
        accused.for_each(|draft| out.add(draft));
        return;
    }
    let Some(entries) = witness.blocks.get(&block).map(|own| own.entries) else {
        return;
    };
    let (name, verb) = (witness.name(), verb_of(entries, "lead"));
    let (noun, seen) = (plural(entries, "entry"), vacancy.seen);
    let message = format!("block {block} {seen}, but {noun} of {name} {verb} to it");
    let words = format!(
        "copy the cluster first; then take block {block} of {} from a backup or standby whose copy pgclinic check calls sound; no VACUUM and no REINDEX before that",
        relation.fork.files.path(0)
    );
    let mut draft = relation
        .draft(vacancy.rule, block, message)
        .fact("entries", entries)
        .fact("index", name)
        .remedy("restore-file-from-copy", Safety::ShowOnly, words)
        .rooted();
    if let Some(cause) = vacancy.cause {
        draft = draft.cause(cause());
    }
    if witness.counts_rows() {
        draft = draft.rows(entries);
    }
    if map_bits != 0 {
        draft = draft.fact("map_bits", map_bits);
    }
    out.add(draft);
}
