//! ANALYZE after `pg_upgrade`: up to 17 it takes no statistics along, and neither does a restore of
//! a dump; the planner then guesses, and autovacuum comes only to tables that change.
//!
//! From the article on ANALYZE and `maintenance_io_concurrency`. Truth: `relation_needs_vacanalyze`
//! in `src/backend/postmaster/autovacuum.c`, `src/bin/pg_upgrade/check.c`.

use std::collections::BTreeSet;

use pgclinic_cluster::Relation;
use pgclinic_format::Oid;
use pgclinic_format::oid::PG_STATISTIC;
use pgclinic_model::shell_word;

use super::{Piece, Said, SeenDatabase, some_of};
use crate::catalog_rows::{Reading, each_row, place};

/// `autovacuum_analyze_threshold`: of fewer rows the server itself has no statistics.
const ROWS_MIN: u64 = 50;

/// Tables with rows and without statistics.
pub(crate) struct AnalyzeAfterUpgrade;

impl Piece for AnalyzeAfterUpgrade {
    fn name(&self) -> &'static str {
        "analyze-after-upgrade"
    }

    fn of_database(&self, seen: &SeenDatabase<'_>) -> Option<Said> {
        let mut tables = seen.tables();
        tables.retain(|(own, relation)| {
            let rows = own.count("table", "tuple_count");
            rows.is_some_and(|rows| rows > ROWS_MIN) && has_columns(relation)
        });
        (!tables.is_empty()).then_some(())?;
        let analyzed = analyzed(seen)?;
        let count = tables.len();
        tables.retain(|(_, relation)| !analyzed.contains(&relation.oid));
        let first = tables.first()?;
        let message = if tables.len() == count {
            format!(
                "none of the tables with more than {ROWS_MIN} rows has statistics, as after pg_upgrade up to 17 or after a restore: \
                 the planner guesses how many rows a condition leaves, and autovacuum comes only to tables that change"
            )
        } else {
            format!(
                "{} of {count} tables with more than {ROWS_MIN} rows have no statistics: nobody has analyzed them since pg_upgrade, \
                 a restore or their load, and autovacuum comes only to tables that change",
                tables.len()
            )
        };
        let command = match (tables.as_slice(), seen.view.cluster.layout.major) {
            ([(_, only)], _) => format!("ANALYZE {};", only.sql_name()),
            (_, major) => {
                let only_missing = if major >= 18 {
                    " --missing-stats-only"
                } else {
                    ""
                };
                let database = shell_word(seen.name());
                format!("vacuumdb --analyze-in-stages{only_missing} --dbname={database}")
            }
        };
        // The largest shows how long it takes.
        let settled_by = format!(
            "pgclinic lab run analyze-prefetch --learn-from PGDATA --relation {} --into DIR",
            shell_word(&first.1.qualified_name())
        );
        let of = tables.iter().map(|(own, _)| own.name()).collect();
        Some(Said {
            message,
            of: some_of(of),
            commands: vec![command],
            settled_by,
        })
    }
}

fn has_columns(relation: &Relation) -> bool {
    let mut columns = relation.columns.iter().flatten();
    columns.any(|column| !column.dropped)
}

/// Relations that `pg_statistic` has rows of; nothing where not all of it can be read.
fn analyzed(seen: &SeenDatabase<'_>) -> Option<BTreeSet<Oid>> {
    let catalog = seen.view.catalog.relations.get(&PG_STATISTIC)?;
    let relation = place(catalog, "starelid")?;
    let mut analyzed = BTreeSet::new();
    let reading = each_row(seen.view, catalog, &mut |row| {
        analyzed.extend(row.u32(relation));
    });
    (reading == Reading::Whole).then_some(analyzed)
}
