//! The order in which indexes were made, and INSERTs that fail: the server adds a row's entries
//! index by index, by their OIDs, and stops at the unique one that refuses. Those before it keep an
//! entry of each row that failed.
//!
//! From the article on failed inserts. Truth: `RelationGetIndexList` in
//! `src/backend/utils/cache/relcache.c`, `ExecInsertIndexTuples` in
//! `src/backend/executor/execIndexing.c`.

use std::collections::HashMap;

use pgclinic_cluster::{Index, Relation};
use pgclinic_format::Oid;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::document::MeasuredRelation;
use pgclinic_model::{plural, verb_of};

use super::{Piece, Said, SeenDatabase, some_of};

/// Fewer rows that were rolled back are nobody's habit.
const ABORTED_MIN: u64 = 1000;
/// They are so large a share of the live rows, in percent.
const ABORTED_PERCENT_MIN: u64 = 10;

/// Tables whose older indexes keep entries that a younger unique index never got.
pub(crate) struct FailedInserts;

impl Piece for FailedInserts {
    fn name(&self) -> &'static str {
        "failed-inserts"
    }

    fn of_database(&self, seen: &SeenDatabase<'_>) -> Option<Said> {
        let indexes = Indexes::of(seen);
        let mut of = Vec::new();
        let mut commands = Vec::new();
        for (own, table) in seen.tables() {
            let count = |name: &str| own.count("table", name).unwrap_or(0);
            let (live, aborted) = (count("tuple_count"), count("aborted_tuple_count"));
            let is_habit =
                aborted >= ABORTED_MIN && aborted >= live.saturating_mul(ABORTED_PERCENT_MIN) / 100;
            let found = is_habit
                .then(|| indexes.refuser_of(table.oid, aborted))
                .flatten();
            let Some((refuser, before)) = found else {
                continue;
            };
            of.push(format!(
                "{}: {aborted} {were} rolled back beside {live} live ones, and {} stand before {} with entries of them",
                table.qualified_name(),
                names(&before),
                refuser.name, aborted = plural(aborted, "row"), were = verb_of(aborted, "were"), live = pgclinic_model::count(live)));
            commands.extend(
                before
                    .iter()
                    .map(|index| format!("REINDEX INDEX CONCURRENTLY {};", index.sql_name())),
            );
        }
        (!of.is_empty()).then(|| {
            let insert = "INSERT … ON CONFLICT DO NOTHING -- where duplicates are expected: no row, no entry, no transaction number";
            commands.insert(0, insert.to_owned());
            Said {
                message: "INSERTs that a unique index refuses leave a dead row, and an entry in each index that was made before \
                          the one that refuses: entries are added in the order of the indexes' OIDs. An index that is made again \
                          by REINDEX CONCURRENTLY loses such entries, and stands after the unique one from then on"
                    .into(),
                of: some_of(of),
                commands: some_of(commands),
                settled_by: "pgclinic lab run duplicate-inserts --into DIR".into(),
            }
        })
    }
}

fn names(indexes: &[&Relation]) -> String {
    let names: Vec<&str> = indexes.iter().map(|own| own.name.as_str()).collect();
    names.join(", ")
}

/// Btrees on all rows of their tables, and how many entries they have.
struct Indexes<'a> {
    by_table: HashMap<Oid, Vec<(&'a Relation, &'a Index, u64)>>,
}

impl<'a> Indexes<'a> {
    fn of(seen: &SeenDatabase<'a>) -> Self {
        let mut by_table: HashMap<Oid, Vec<_>> = HashMap::new();
        for (relation, own, index) in seen.measured.iter().filter_map(|own| indexed(seen, own)) {
            if let Some(entries) = own.count("index", "row_count") {
                let of_table = by_table.entry(index.table).or_default();
                of_table.push((relation, index, entries));
            }
        }
        Indexes { by_table }
    }

    /// The unique index that has the fewest entries, and those before it that have more of them by
    /// at least half of what was rolled back.
    fn refuser_of(&self, table: Oid, aborted: u64) -> Option<(&'a Relation, Vec<&'a Relation>)> {
        let all = self.by_table.get(&table)?;
        let unique = all.iter().filter(|(_, index, _)| index.unique);
        let (refuser, _, entries) = unique.min_by_key(|(own, _, entries)| (*entries, own.oid))?;
        let surplus = entries.saturating_add(aborted / 2);
        let before = all
            .iter()
            .filter(|(own, _, others)| own.oid < refuser.oid && *others >= surplus);
        let mut before: Vec<&Relation> = before.map(|(own, _, _)| *own).collect();
        before.sort_by_key(|own| own.oid);
        (!before.is_empty()).then_some((*refuser, before))
    }
}

/// A btree with an entry for each row.
fn indexed<'a>(
    seen: &SeenDatabase<'a>,
    own: &'a MeasuredRelation,
) -> Option<(&'a Relation, &'a MeasuredRelation, &'a Index)> {
    let relation = seen.view.catalog.relations.get(&own.relation_oid?)?;
    let index = relation.index.as_ref()?;
    let is_btree = relation.page_method() == Some(AccessMethod::Btree);
    let has_all = index.valid && !index.has_predicate;
    (is_btree && has_all).then_some((relation, own, index))
}
