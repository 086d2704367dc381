//! What a person reads of a cure before consenting: the row's values, the next steps, the warnings.

use pgclinic_cluster::quoted;
use pgclinic_model::document::{Cure, FileKind, HealRow, PageAnatomy, PlanRelation, PlanStep};
use pgclinic_model::plan::Safety;

use super::draft::ConcernedRow;
use super::restore_end::RESTORE_END;
use super::restore_page::RESTORE_PAGE;
use super::restore_status::RESTORE_STATUS;

/// A row with its values as they are now.
pub(super) fn row_of(row: ConcernedRow, block: u32, before: &PageAnatomy) -> HealRow {
    let item = before.items.iter().find(|own| own.item == row.item);
    HealRow {
        block,
        item: row.item,
        state: item
            .and_then(|item| item.state.clone())
            .unwrap_or_else(|| "it cannot be read".into()),
        lost: row.lost,
        values: item.map(|item| item.values.clone()).unwrap_or_default(),
    }
}

/// True of every heal that writes, so that it is said with each.
pub(super) fn warnings(cures: &[Cure]) -> Vec<String> {
    if cures.is_empty() {
        return Vec::new();
    }
    vec![
        "offline writes are in no WAL: standbys, pg_rewind, incremental backups and WAL archives do not know them. Standbys are made again from a new base backup, or healed with the same plan while they stand at the same position".into(),
    ]
}

/// What to do afterwards.
pub(super) fn follow_up(cures: &[Cure]) -> Vec<PlanStep> {
    let mut steps = Vec::new();
    let indexes = commands(cures, reindex);
    if !indexes.is_empty() {
        steps.push(step(
            "reindex",
            "entries of these indexes lead to rows that are gone, or hold another value; this comes before the table is used",
            cures,
            indexes,
        ));
    }
    let tables = commands(cures, vacuum);
    if !tables.is_empty() {
        let why = "it frees what was emptied and sets the visibility map again";
        steps.push(step("vacuum", why, cures, tables));
    }
    if !cures.is_empty() {
        steps.push(PlanStep {
            relations: Vec::new(),
            ..step(
                "full-backup",
                "no backup that builds on an older one, and no WAL, has what was written here",
                cures,
                vec!["pg_basebackup -D DIR, or a full backup of your backup tool".into()],
            )
        });
    }
    steps
}

fn step(name: &str, why: &str, cures: &[Cure], commands: Vec<String>) -> PlanStep {
    PlanStep {
        name: name.into(),
        safety: Safety::Exact,
        why: why.into(),
        relations: relations(cures),
        relations_omitted: 0,
        commands,
        commands_omitted: 0,
    }
}

fn relations(cures: &[Cure]) -> Vec<PlanRelation> {
    let of = |cure: &Cure| PlanRelation {
        database: cure.place.database.clone(),
        name: cure.place.relation_name(),
    };
    let mut found: Vec<PlanRelation> = cures.iter().map(of).collect();
    found.sort();
    found.dedup();
    found
}

/// Commands of all cures, each once, in their order.
fn commands(cures: &[Cure], of: fn(&Cure) -> Vec<String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for command in cures.iter().flat_map(of) {
        if !found.contains(&command) {
            found.push(command);
        }
    }
    found
}

fn reindex(cure: &Cure) -> Vec<String> {
    let name = |schema: &str, index: &str| format!("{}.{}", quoted(schema), quoted(index));
    let statements = cure.dangling.iter().map(|index| {
        let name = name(&index.schema, &index.index);
        in_database(cure, format!("REINDEX INDEX {name};"))
    });
    statements.collect()
}

fn vacuum(cure: &Cure) -> Vec<String> {
    if [RESTORE_PAGE, RESTORE_END, RESTORE_STATUS].contains(&cure.name.as_str()) {
        return Vec::new();
    }
    // The server refuses both: "cannot vacuum non-tables or special system tables".
    if matches!(cure.place.kind, FileKind::Sequence | FileKind::Index) {
        return Vec::new();
    }
    let (Some(schema), Some(relation)) = (&cure.place.schema, &cure.place.relation) else {
        return Vec::new();
    };
    let statement = format!("VACUUM {}.{};", quoted(schema), quoted(relation));
    vec![in_database(cure, statement)]
}

fn in_database(cure: &Cure, statement: String) -> String {
    match &cure.place.database {
        Some(database) => format!("{statement} -- in database {database}"),
        None => statement,
    }
}
