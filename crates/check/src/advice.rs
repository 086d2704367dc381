//! Advice that does no harm: which cures are proven, and in which order all of them are taken.
//!
//! An index is made again from its table. That restores it where the index alone is damaged. Where
//! the table is damaged too, `REINDEX` stops at its bad page (and with `CONCURRENTLY` leaves an
//! invalid index behind), and where both contradict each other it takes the table's word, which may
//! be the wrong one. Truth: `src/backend/catalog/index.c`, `reindex_index` and
//! `ReindexRelationConcurrently` in `src/backend/commands/indexcmds.c`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pgclinic_format::{Fork, Oid};
use pgclinic_model::Severity;
use pgclinic_model::document::{CheckDocument, FileKind, Finding, Level, PlanStep, Target};
use pgclinic_model::plan::Safety;

mod steps;

/// Rules by which an index and its table contradict each other: either may be the wrong side.
const CONTRADICTIONS: &[&str] = &[
    "index-entry-without-row",
    "row-without-index-entry",
    "index-entry-of-other-key",
    "index-entry-duplicate",
    "hash-code-wrong",
    "brin-summary-misses-row",
    "unique-key-duplicate",
];
/// Cures that make something again from the rows of tables.
const MADE_FROM_ROWS: &[&str] = &[
    "reindex",
    "refresh",
    "rebuild-visibility-map",
    "rebuild-free-space-map",
];
/// Steps from a finding to its root that are followed.
const STEPS_MAX: usize = 16;

/// Holds the cures of all findings to what this run knows, and puts them in order.
pub(crate) fn advise(findings: &mut [Finding], target: &Target, level: Level) -> Vec<PlanStep> {
    let tables = TableDamage::of(findings);
    // Pages that carry no checksum say nothing below the level that looks at what stands on them.
    let examined = level > Level::Pages || target.checksums == Some(true);
    for finding in findings.iter_mut() {
        tables.hold(finding, examined);
    }
    steps::plan(findings, target)
}

/// Makes the plan again, where it is known only later what the target is.
pub fn plan_again(document: &mut CheckDocument) {
    document.plan = steps::plan(&document.findings, &document.target);
}

/// Tables whose rows cannot be relied on.
struct TableDamage {
    /// By database and OID; those whose long values are damaged too.
    tables: BTreeSet<(Oid, Oid)>,
    /// Databases with such a table, or with one that has no name.
    databases: BTreeSet<Oid>,
    /// Which rows are live is not known.
    status_is_lost: bool,
}

impl TableDamage {
    fn of(findings: &[Finding]) -> Self {
        let roots = Roots::of(findings);
        let damage = || {
            let all = findings.iter();
            all.filter(|finding| finding.severity == Severity::Damage)
        };
        let hurts_rows = |finding: &&Finding| {
            // Entries that name no row are told at the row's block, whoever is to blame.
            holds_rows(finding) && roots.of_finding(finding).place.kind != FileKind::Index
        };
        let hurt: Vec<&Finding> = damage().filter(hurts_rows).collect();
        TableDamage {
            tables: hurt.iter().flat_map(|own| tables_hurt_by(own)).collect(),
            databases: hurt
                .iter()
                .filter_map(|own| own.place.database_oid)
                .collect(),
            status_is_lost: damage().any(|finding| finding.place.kind == FileKind::Slru),
        }
    }

    /// Takes back what is promised of a cure and not proven.
    fn hold(&self, finding: &mut Finding, examined: bool) {
        let Some(doubt) = self.doubt(finding, examined) else {
            return;
        };
        let name = finding.place.relation.clone().unwrap_or_default();
        for remedy in &mut finding.remedies {
            if remedy.safety != Safety::Exact || !MADE_FROM_ROWS.contains(&remedy.name.as_str()) {
                continue;
            }
            remedy.safety = doubt.safety();
            remedy.command = remedy.command.replace("INDEX CONCURRENTLY ", "INDEX ");
            let aside = doubt.words(&remedy.name, &name);
            remedy.command = format!("{} -- {aside}", remedy.command.trim_end());
        }
    }

    /// Why what is made again from rows may be worse than what is there.
    fn doubt(&self, finding: &Finding, examined: bool) -> Option<Doubt> {
        let place = &finding.place;
        let database = place.database_oid.unwrap_or_default();
        let made_from_table = place.kind == FileKind::Index || is_map(finding);
        let is_contradiction = CONTRADICTIONS.contains(&finding.rule.as_str());
        let is_foreign = finding.facts.contains_key("foreign");
        if is_contradiction && place.kind == FileKind::Index && !is_foreign {
            match finding.facts.get("flipped").and_then(|side| side.as_str()) {
                Some("row") => return Some(Doubt::RowIsWrong),
                // The index alone is damaged, as far as this finding goes.
                Some("entry") => {}
                _ => return Some(Doubt::Contradiction),
            }
        }
        if self.status_is_lost {
            return Some(Doubt::StatusLost);
        }
        if place.kind == FileKind::MaterializedView {
            return self
                .databases
                .contains(&database)
                .then_some(Doubt::SomeTable);
        }
        if !made_from_table {
            return None;
        }
        let owner = finding.links.owner.as_ref();
        match table_of(finding) {
            Some(table) if self.tables.contains(&table) => {
                let name = owner.map_or_else(|| place.relation_name(), |own| own.name.clone());
                Some(Doubt::Table(name))
            }
            _ if place.kind != FileKind::Index => None,
            _ if examined && owner.is_some_and(|own| own.is_examined) => owner
                .filter(|own| own.is_unvouched)
                .map(|own| Doubt::Unvouched(own.name.clone())),
            _ => Some(Doubt::Unseen(owner.map(|own| own.name.clone()))),
        }
    }
}

/// Why a cure is not proven.
enum Doubt {
    /// Table and index say different things.
    Contradiction,
    /// A bit flipped in the table, and the index holds what stood there.
    RowIsWrong,
    /// The table it is made from is damaged.
    Table(String),
    /// A table of the database is damaged, and perhaps one that the view reads.
    SomeTable,
    /// The status of transactions is lost.
    StatusLost,
    /// Nothing beside the table's own pages tells how many it had.
    Unvouched(String),
    /// This run has not looked at the table.
    Unseen(Option<String>),
}

impl Doubt {
    fn safety(&self) -> Safety {
        match self {
            Doubt::Contradiction | Doubt::RowIsWrong | Doubt::Unseen(_) => Safety::ShowOnly,
            Doubt::Table(_) | Doubt::SomeTable | Doubt::StatusLost | Doubt::Unvouched(_) => {
                Safety::Lossy
            }
        }
    }

    fn words(&self, remedy: &str, index: &str) -> String {
        match self {
            Doubt::Contradiction => "it takes the table's word, which may be the wrong one: compare both with a backup first".into(),
            Doubt::RowIsWrong => "not before the row is mended: it takes the row's flipped value, and the right one is lost with the old index".into(),
            Doubt::Table(table) if remedy == "reindex" => format!(
                "only after {table} is mended: it takes over what the table lost and stops at its bad pages, and with CONCURRENTLY leaves an invalid index {index}_ccnew behind"
            ),
            Doubt::Table(table) => {
                format!("only after {table} is mended: VACUUM stops at its bad pages or takes their rows for gone")
            }
            Doubt::SomeTable => "only after the tables that it reads are mended".into(),
            Doubt::StatusLost => "only after the status of transactions is mended: it decides which rows there are".into(),
            Doubt::Unvouched(table) => format!("only once a backup or a standby shows that {table} has all its rows: no other index, visibility map or count of pages vouches for them"),
            Doubt::Unseen(Some(table)) => format!("once {table}, which this run did not examine, is known to be sound"),
            Doubt::Unseen(None) => "once its table is known to be sound".into(),
        }
    }
}

/// The finding is about the rows of a table, or about their long values.
fn holds_rows(finding: &Finding) -> bool {
    let place = &finding.place;
    let kind = matches!(
        place.kind,
        FileKind::Table | FileKind::Toast | FileKind::MaterializedView | FileKind::Unknown
    );
    kind && !is_map(finding)
}

/// The finding is about a free space map or a visibility map.
fn is_map(finding: &Finding) -> bool {
    matches!(finding.place.fork, Some(Fork::Fsm | Fork::Vm))
}

/// The table whose rows are hurt, and that whose long values they are.
fn tables_hurt_by(finding: &Finding) -> impl Iterator<Item = (Oid, Oid)> {
    let own = finding.place.relation_oid;
    let own = own.map(|oid| (finding.place.database_oid.unwrap_or_default(), oid));
    own.into_iter().chain(table_of(finding))
}

/// Database and OID of the table that a finding is about: an index's, that of long values, or
/// itself.
fn table_of(finding: &Finding) -> Option<(Oid, Oid)> {
    let place = &finding.place;
    let own = match (&finding.links.owner, place.kind) {
        (Some(owner), _) => owner.oid,
        (None, FileKind::Index) => return None,
        (None, _) => place.relation_oid?,
    };
    Some((place.database_oid.unwrap_or_default(), own))
}

/// Findings by their ids.
struct Roots<'a>(HashMap<&'a str, &'a Finding>);

impl<'a> Roots<'a> {
    fn of(findings: &'a [Finding]) -> Self {
        let named = findings
            .iter()
            .map(|finding| (finding.id.as_str(), finding));
        Roots(named.collect())
    }

    /// What the finding follows from in the end, or itself.
    fn of_finding<'b>(&self, finding: &'b Finding) -> &'b Finding
    where
        'a: 'b,
    {
        let mut at = finding;
        for _ in 0..STEPS_MAX {
            let cause = at.caused_by.as_deref().and_then(|id| self.0.get(id));
            let Some(next) = cause else { break };
            at = next;
        }
        at
    }
}

/// Commands of several findings, each once, in the order of their places.
type Commands = BTreeMap<String, BTreeSet<u64>>;
