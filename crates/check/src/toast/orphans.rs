//! TOASTed values to which no row version points, and what they prove.
//!
//! A transaction writes a value before the row that points to it, and whoever deletes the row, or
//! replaces the value, deletes the chunks in the same transaction: a live value has its row. Only
//! CLUSTER and VACUUM FULL leave some behind. They copy rows that are dead and still seen by
//! somebody, with their values, which nobody deletes when VACUUM removes those rows. All of them
//! carry the number of the one transaction that made the file. Truth: `heap_delete` in
//! `src/backend/access/heap/heapam.c`, `toast_save_datum` in
//! `src/backend/access/common/toast_internals.c`, `copy_table_data` in
//! `src/backend/commands/cluster.c`.

use std::collections::BTreeMap;

use pgclinic_cluster::{Cluster, KILLED_BY_HAND_MAX, rows_with_values};
use pgclinic_model::{Rule, plural, verb_of};

use crate::check::ForkCx;
use crate::findings::Findings;
use crate::relation_check::{RelationCx, draft_at};
use crate::toast::Run;

/// Values that may be left over.
pub(super) const TOAST_VALUE_ORPHANED: Rule =
    Rule::from_page(include_str!("../../rules/toast-value-orphaned.md"));

/// Values whose rows are lost.
pub(super) const TOAST_VALUE_WITHOUT_ROW: Rule =
    Rule::from_page(include_str!("../../rules/toast-value-without-row.md"));

/// Transactions whose values are counted each; those of all others count as of one.
const WRITERS_MAX: usize = 1000;
/// Damaged blocks of the table that may explain lost rows.
const BLOCKS_FOLLOWED: usize = 100;

/// Values without a row.
#[derive(Default)]
pub(super) struct Orphans {
    values: u64,
    bytes: u64,
    /// How many of them are whole and live beyond doubt, by the transaction that wrote them.
    live: BTreeMap<u32, u64>,
    live_of_others: u64,
}

impl Orphans {
    /// Adds one value.
    pub(super) fn add(&mut self, runs: &[Run]) {
        self.values += 1;
        self.bytes += runs.iter().map(|run| run.bytes).sum::<u64>();
        let first = runs.first().filter(|run| run.first_seq == 0);
        let Some(first) = first.filter(|_| runs.iter().all(|run| run.live)) else {
            return;
        };
        let xmin = first.xmin.0;
        if self.live.len() < WRITERS_MAX || self.live.contains_key(&xmin) {
            *self.live.entry(xmin).or_default() += 1;
        } else {
            self.live_of_others += 1;
        }
    }

    /// Values whose rows are lost, at least. `faulty` pointers of live rows may have led to some.
    fn lost(&self, may_be_copies: bool, faulty: u64) -> u64 {
        let counts = || self.live.values().copied().chain([self.live_of_others]);
        let copies = counts().max().filter(|_| may_be_copies).unwrap_or(0);
        counts().sum::<u64>().saturating_sub(copies + faulty)
    }

    /// Tells of lost rows where they prove some, else of values left over.
    pub(super) fn tell(
        &self,
        relation: &RelationCx<'_>,
        owner: &ForkCx<'_>,
        faulty: u64,
        out: &mut Findings,
    ) {
        let names = relation.fork.relation.zip(owner.relation);
        let Some((own, table)) = names.filter(|_| self.values > 0) else {
            return;
        };
        let is_first =
            |cluster: &Cluster| cluster.has_first_file(own) && cluster.has_first_file(table);
        let may_be_copies = !relation.fork.cluster.is_some_and(is_first);
        let lost = self.lost(may_be_copies, faulty);
        let hint = hint(relation, owner);
        let damaged = relation.neighbours.damaged_in(owner);
        let is_hurt = damaged.is_some_and(|blocks| blocks.iter().next().is_some());
        if lost > KILLED_BY_HAND_MAX || lost > 0 && (hint.is_some() || is_hurt) {
            return self.tell_lost(relation, owner, lost, out);
        }
        self.tell_unowned(relation, out);
        // Rows may have been killed on purpose, by pg_surgery or a lossy cure, which leaves values.
        let on_purpose =
            || "nothing else is missed: pg_surgery or a lossy cure may have killed them".to_owned();
        let question = hint.or_else(|| (lost > 0).then(on_purpose));
        if let Some(hint) = question {
            self.leave_open(relation, owner, &hint, out);
        }
    }

    fn tell_lost(
        &self,
        relation: &RelationCx<'_>,
        owner: &ForkCx<'_>,
        lost: u64,
        out: &mut Findings,
    ) {
        let rows = rows_with_values(lost, owner.columns.unwrap_or_default());
        let words = format!(
            "{} of {} {} to no row of the table: at least {} of it {} lost",
            plural(self.values, "live TOASTed value"),
            plural(self.bytes, "byte"),
            verb_of(self.values, "belong"),
            plural(rows, "row"),
            verb_of(rows, "are"),
        );
        let mut draft = draft_at(owner, &TOAST_VALUE_WITHOUT_ROW, None, words)
            .rows(rows)
            .fact("values", self.values)
            .fact("value_bytes", self.bytes)
            .fact("values_of_lost_rows", lost)
            .follows_fork(owner);
        let damaged = relation.neighbours.damaged_in(owner);
        let blocks = damaged.into_iter().flat_map(|blocks| blocks.iter());
        for block in blocks.take(BLOCKS_FOLLOWED).flat_map(u32::try_from) {
            draft = draft.follows(owner, block);
        }
        out.add(draft);
    }

    /// Values that prove nothing.
    pub(super) fn tell_unowned(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        if self.values == 0 {
            return;
        }
        let words = format!(
            "{} of {} bytes {} to no row",
            plural(self.values, "value"),
            self.bytes,
            verb_of(self.values, "belong")
        );
        let draft = relation.draft_of_relation(&TOAST_VALUE_ORPHANED, words);
        out.add(
            draft
                .fact("values", self.values)
                .fact("value_bytes", self.bytes),
        );
    }

    /// Where something hints at lost rows, the values are a question.
    fn leave_open(
        &self,
        relation: &RelationCx<'_>,
        owner: &ForkCx<'_>,
        hint: &str,
        out: &mut Findings,
    ) {
        let why = format!(
            "{} {} to no row, which may be left over by CLUSTER or VACUUM FULL, and {hint}: a backup or a standby shows what stood there",
            plural(self.values, "TOASTed value"),
            verb_of(self.values, "belong")
        );
        relation
            .of(owner)
            .not_checked(out, "rows that may be lost", &why, false);
    }
}

/// What else speaks of lost rows.
fn hint(relation: &RelationCx<'_>, owner: &ForkCx<'_>) -> Option<String> {
    let zeroed = relation.neighbours.zeroed_in(owner);
    let zeroed = zeroed.map_or(0, |zeroed| zeroed.blocks.iter().count() as u64);
    let counted = owner.relation.map_or(0, |own| own.relpages);
    let counted = u64::try_from(counted).unwrap_or(0);
    match (zeroed, owner.blocks) {
        (_, 0) => Some("the table is empty".to_owned()),
        (_, blocks) if counted > blocks => Some(format!(
            "the table has {blocks} of the {counted} pages that pg_class counts"
        )),
        (0, _) => None,
        (zeroed, _) => Some(format!(
            "{} of the table {} all zeros",
            plural(zeroed, "page"),
            verb_of(zeroed, "are")
        )),
    }
}
