//! A table ends before blocks that its indexes or its visibility map know.

use pgclinic_cluster::MarkedBeyond;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_model::plan::Safety;
use pgclinic_model::{plural, verb_of};

use crate::entries::lost_map;
use crate::entries::lost_rows::{IndexWitness, ask_indexes, best, without_foreign};
use crate::findings::{Draft, Findings};
use crate::page::zeroed_page::has_checksums;
use crate::relation_check::{RelationCheck, RelationCx};

/// The rule.
pub static FILE_TRUNCATED: Rule = Rule::from_page(include_str!("../../rules/file-truncated.md"));

/// See [`FILE_TRUNCATED`].
pub struct FileTruncated;

impl RelationCheck for FileTruncated {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&FILE_TRUNCATED] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Heap
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let segments = &relation.fork.files.segments;
        // A missing first file is a missing relation, and told by another rule.
        let begins = segments.first().is_some_and(|first| first.number == 0);
        if !begins || !relation.settles() {
            return;
        }
        let end = relation.fork.blocks;
        let marked = marked_beyond(relation);
        let witnesses = ask_indexes(
            relation,
            |named| named.end() > end,
            |block| u64::from(block) >= end,
        );
        if relation.is_interrupted() {
            return;
        }
        let witnesses = without_foreign(relation, witnesses, out);
        let leading: Vec<_> = witnesses.iter().filter(|own| own.entries > 0).collect();
        let is_denied = witnesses.iter().any(IndexWitness::denies_all);
        match (marked, leading.as_slice()) {
            (None, []) => {
                let why = "pg_class counts more pages than the file has";
                if is_denied || tell_logged(relation, out) {
                    return;
                }
                if counts_more(relation) && lost_map::is_lost(relation) {
                    let what = format!("blocks past the end, {end},");
                    lost_map::leave_open(relation, &what, why, out);
                }
            }
            // An index that would know rows there knows none: the map is of another day, and told
            // as such.
            (Some(_), []) if is_denied => {}
            (None, indexes) if is_denied || is_a_single_entry(indexes, end) => {
                accuse(indexes, end, out);
            }
            (_, indexes) => tell(relation, indexes, marked, out),
        }
    }
}

/// WAL has records of blocks behind the end, from before the last checkpoint; whether it has.
fn tell_logged(relation: &RelationCx<'_>, out: &mut Findings) -> bool {
    let fork = relation.fork;
    // Only where something raises the question is WAL read for it, however much there is.
    let logged = fork.cluster.map(|own| {
        if counts_more(relation) {
            own.logged_blocks(fork.files)
        } else {
            own.logged_blocks_aside(fork.files)
        }
    });
    let last = logged.and_then(|logged| logged.last().copied());
    let Some(last) = last.filter(|last| u64::from(*last) >= fork.blocks) else {
        return false;
    };
    let missing = what_is_missing(relation, last);
    let draft = draft_of(
        relation,
        format!("{missing}: WAL has records of block {last}"),
        last,
    );
    out.add(draft);
    true
}

/// The catalog counts more pages than there are.
fn counts_more(relation: &RelationCx<'_>) -> bool {
    let counted = relation.fork.relation.map_or(0, |own| own.relpages);
    u64::try_from(counted).is_ok_and(|counted| counted > relation.fork.blocks)
}

/// What the visibility map marks behind the table's end.
fn marked_beyond(relation: &RelationCx<'_>) -> Option<MarkedBeyond> {
    let map = relation.neighbours.beside(relation.fork, Fork::Vm)?;
    let pages = (map.build, has_checksums(map));
    // Recovery may still change the map, as it changes what it speaks of.
    let is_believed = |block| relation.believes_absence_of(relation.fork, block);
    let end = relation.fork.blocks;
    MarkedBeyond::of(relation.source, map.files, pages, end, is_believed)
}

/// One entry of one index that leads far behind the end is rather wrong itself: rows stood in all
/// the blocks before it, or most of them.
fn is_a_single_entry(indexes: &[&IndexWitness<'_>], end: u64) -> bool {
    match indexes {
        [only] => only.entries == 1 && u64::from(only.highest) > end,
        _ => false,
    }
}

/// The entries are wrong, not the length of the table.
fn accuse(indexes: &[&IndexWitness<'_>], end: u64, out: &mut Findings) {
    let why = format!(
        "past the end of the table, which has {end} and by no other witness more",
        end = plural(end, "block")
    );
    for index in indexes {
        for leading in index.blocks.values() {
            out.add(index.accuse(leading, &why));
        }
    }
}

fn tell(
    relation: &RelationCx<'_>,
    indexes: &[&IndexWitness<'_>],
    marked: Option<MarkedBeyond>,
    out: &mut Findings,
) {
    let named = indexes.iter().map(|own| own.highest).max();
    let last = named.max(marked.map(|own| own.last)).unwrap_or(0);
    let witness = best(indexes.iter().copied());
    let rows = match witness {
        Some(witness) => witness.counts_rows().then_some(witness.entries),
        None => marked.and_then(|marked| estimated_rows(relation, marked.lost)),
    };
    let by_whom = match witness {
        Some(witness) => format!(
            "{} of {} {} there",
            plural(witness.entries, "entry"),
            witness.name(),
            verb_of(witness.entries, "lead")
        ),
        None => format!("the visibility map marks block {last}{}", about(rows)),
    };
    let message = format!("{}: {by_whom}", what_is_missing(relation, last));
    let mut draft = draft_of(relation, message, last);
    for own in indexes {
        draft = draft.fact(&format!("entries_of {}", own.name()), own.entries);
    }
    draft.rows = rows;
    out.add(with_marked(draft, marked));
}

fn draft_of(relation: &RelationCx<'_>, message: String, last: BlockNo) -> Draft {
    let end = relation.fork.blocks;
    relation
        .draft_of_relation(&FILE_TRUNCATED, message)
        .fact("blocks", end)
        .fact("first_missing", end)
        .fact("last_missing", last)
        .remedy("restore-file-from-copy", Safety::ShowOnly, format!(
            "stop the server before it writes to the table; copy the cluster; then take {} from a backup or standby and replay WAL; no VACUUM and no REINDEX before that",
            relation.fork.files.path(0)
        ))
        .rooted()
}

fn with_marked(draft: Draft, marked: Option<MarkedBeyond>) -> Draft {
    match marked {
        Some(marked) => draft.fact("marked_block", marked.last),
        None => draft,
    }
}

/// Which blocks, in words. Later segments may be there, but nobody gets at them.
fn what_is_missing(relation: &RelationCx<'_>, last: BlockNo) -> String {
    let end = relation.fork.blocks;
    let cut = relation.fork.files.bytes() / u64::from(relation.fork.build.block_size).max(1);
    match u64::from(last) {
        _ if cut > end => format!("the table breaks off at block {end} of at least {last}"),
        last if last <= end => format!("block {end} is missing"),
        last => format!("blocks {end} to {last} are missing"),
    }
}

/// Rows on so many blocks, by the catalog's estimate of how many a page has.
fn estimated_rows(relation: &RelationCx<'_>, blocks: u64) -> Option<u64> {
    let own = relation.fork.relation?;
    let pages = u64::try_from(own.relpages).ok()?;
    own.reltuples?.checked_mul(blocks)?.checked_div(pages)
}

fn about(rows: Option<u64>) -> String {
    rows.map_or_else(String::new, |rows| {
        format!(", about {}", plural(rows, "row"))
    })
}
