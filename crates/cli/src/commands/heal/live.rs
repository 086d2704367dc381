//! `heal postgres://…`: what a running server can do about the damage itself, as SQL. Each
//! statement says what it locks, and is run alone, on request.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use pgclinic_cluster::quoted;
use pgclinic_format::Fork;
use pgclinic_format::digest::{Algorithm, Digest, hex};
use pgclinic_model::document::{
    CheckDocument, FileKind, HEAL_SCHEMA, HealBasis, HealDocument, HealOutcome, HealStatement,
    NotHealed, StatementAnswer, Target, Tool,
};
use pgclinic_model::plan::Safety;
use pgclinic_model::{Finding, Severity};
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Session, SqlError};

use super::Arguments;
use crate::commands::check::check_structure_of;
use crate::drill::oracle::words;
use crate::env::Env;
use crate::exit::Failure;

/// An index of any size is built in this time.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// Characters of an id.
const ID_CHARS: usize = 8;
/// The first major with `pg_surgery`.
const HAS_SURGERY: u16 = 14;

const OF_REINDEX_CONCURRENTLY: &str =
    "SHARE UPDATE EXCLUSIVE on the table: reads and writes go on; it waits for older transactions";
const OF_REINDEX: &str =
    "SHARE on the table: no writes; ACCESS EXCLUSIVE on the index: queries that would use it wait";
const OF_VACUUM: &str = "SHARE UPDATE EXCLUSIVE on the table: reads and writes go on";
const OF_SURGERY: &str =
    "ROW EXCLUSIVE on the table: reads and writes go on; the page is locked while it is changed";
const OF_TRUNCATE_MAP: &str = "ACCESS EXCLUSIVE on the table for a moment: reads and writes wait";
const OF_EXTENSION: &str = "nothing that others wait for";

/// Statements for a running server.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Running servers")]
pub(super) struct LiveArgs {
    /// Run this statement of the plan, and check again
    ///
    /// Of the plan for a postgres:// URL. An exact one needs --yes, a lossy one --accept with its
    /// id.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["at", "undo", "resume", "apply", "save", "copy_to", "prove", "journal"])]
    pub(super) run: Option<u32>,
}

/// A plan for a running server; with `--run` one statement of it is run, and the server checked
/// again.
pub(super) fn planned(
    arguments: &Arguments,
    (server, url): (&ConnectionTarget, &Path),
    world: &mut Env<'_>,
) -> Result<HealDocument, Failure> {
    arguments.refuse_options_of_files()?;
    let checked = check_structure_of(server, url, world)?;
    let document = document_of(&checked, server)?;
    let Some(number) = arguments.live.run else {
        return Ok(document);
    };
    let mut statements = document.statements.into_iter();
    let statement = statements.find(|own| own.number == number).ok_or_else(|| {
        Failure::new(format!(
            "the plan has no statement {number}: nothing was run, show the plan again"
        ))
    })?;
    if !arguments.consents.covers(&statement) {
        return Err(Failure::new(format!(
            "statement {number} needs {}: nothing was run",
            match statement.safety {
                Safety::Exact => "--yes".to_owned(),
                _ => format!("--accept {}", statement.id),
            }
        )));
    }
    let answer = run(server, &statement);
    let again = check_structure_of(server, url, world)?;
    let mut after = document_of(&again, server)?;
    let is_done = answer.done;
    after.outcome = match (is_done, is_left(&again), after.not_checked.is_empty()) {
        (true, false, true) => HealOutcome::Healed,
        (true, false, false) => HealOutcome::PartlyUndecided,
        _ => HealOutcome::DamageRemains,
    };
    after.statements.insert(
        0,
        HealStatement {
            answer: Some(answer),
            ..statement
        },
    );
    Ok(after)
}

fn is_left(document: &CheckDocument) -> bool {
    let mut findings = document.findings.iter();
    findings.any(|own| own.severity == Severity::Damage)
}

/// The statement, alone and outside of any transaction.
fn run(server: &ConnectionTarget, statement: &HealStatement) -> StatementAnswer {
    let options = ConnectOptions {
        wall_limit: PATIENCE,
        statement_timeout: Some(PATIENCE),
        ..ConnectOptions::default()
    };
    let target = ConnectionTarget {
        database: statement.database.clone(),
        ..server.clone()
    };
    let mut messages = Vec::new();
    let ran = Session::open(&target, &options).and_then(|mut session| {
        let ran = session.execute(&statement.sql);
        let notices = session.take_messages();
        messages.extend(notices.iter().map(|own| own.message.clone()));
        // What the server changed in memory reaches the files, which are checked again.
        if let Err(error) = session.execute("CHECKPOINT") {
            messages.push(format!(
                "without a checkpoint the check afterwards reads older pages: {}",
                words(&error)
            ));
        }
        ran
    });
    let failed = |error: SqlError| messages.push(words(&error));
    let done = ran.map_err(failed).is_ok();
    StatementAnswer { done, messages }
}

fn document_of(
    checked: &CheckDocument,
    server: &ConnectionTarget,
) -> Result<HealDocument, Failure> {
    let identifier = checked.target.system_identifier.clone();
    let identifier =
        identifier.ok_or_else(|| Failure::new("the server's system identifier is not known"))?;
    let mut plan = Plan {
        server,
        identifier: &identifier,
        major: checked.target.major.unwrap_or_default(),
        statements: Vec::new(),
        not_healed: Vec::new(),
    };
    plan.add_all(checked);
    let open = checked.coverage.not_checked.iter();
    let not_checked: Vec<_> = open.filter(|gap| !gap.inherent).cloned().collect();
    let is_empty = plan.statements.is_empty() && plan.not_healed.is_empty();
    let outcome = match (is_empty && !is_left(checked), not_checked.is_empty()) {
        (true, true) => HealOutcome::NothingToHeal,
        (true, false) => HealOutcome::PartlyUndecided,
        (false, _) => HealOutcome::Planned,
    };
    let (statements, not_healed) = (plan.statements, plan.not_healed);
    Ok(HealDocument {
        schema: HEAL_SCHEMA.into(),
        tool: Tool::this(),
        target: Target {
            kind: "server".into(),
            ..checked.target.clone()
        },
        outcome,
        basis: HealBasis {
            system_identifier: identifier,
            control_file: String::new(),
            requests: None,
        },
        request: Vec::new(),
        evidence: None,
        scope: None,
        reach: None,
        not_healed,
        not_checked,
        obstacles: Vec::new(),
        cures: Vec::new(),
        warnings: Vec::new(),
        other_findings: Vec::new(),
        follow_up: Vec::new(),
        applied: None,
        statements,
        proof: None,
        elapsed_s: 0.0,
    })
}

/// The plan as it grows.
struct Plan<'a> {
    server: &'a ConnectionTarget,
    identifier: &'a str,
    major: u16,
    statements: Vec<HealStatement>,
    not_healed: Vec<NotHealed>,
}

/// What a statement is, before it has its number.
struct Draft {
    safety: Safety,
    sql: String,
    locks: &'static str,
    why: String,
}

/// A relation with its damage.
struct Damaged<'a> {
    database: String,
    /// `schema.name`, quoted.
    name: String,
    is_catalog: bool,
    kind: FileKind,
    fork: Fork,
    findings: Vec<&'a Finding>,
}

impl Plan<'_> {
    /// Tables come before their indexes, which are built from them.
    fn add_all(&mut self, checked: &CheckDocument) {
        let mut relations: Vec<Damaged<'_>> = damaged(checked, &mut self.not_healed);
        relations.sort_by_key(|own| {
            (
                own.kind == FileKind::Index,
                own.database.clone(),
                own.name.clone(),
                own.fork,
            )
        });
        for relation in &relations {
            match (relation.fork, relation.kind) {
                (Fork::Main, FileKind::Index) => self.add(relation, reindex(relation)),
                (Fork::Vm, _) => self.add_map(relation),
                (Fork::Fsm, _) => self.add(relation, vacuum(relation, "the free space map")),
                (Fork::Main, FileKind::Table | FileKind::Toast | FileKind::MaterializedView) => {
                    self.add_rows(relation);
                }
                _ => self.leave(relation, relation.findings.iter().copied()),
            }
        }
    }

    fn add(&mut self, relation: &Damaged<'_>, draft: Draft) {
        let number = u32::try_from(self.statements.len() + 1).unwrap_or(u32::MAX);
        let own = self.statements.iter();
        let mut same = own.filter(|own| own.sql == draft.sql && own.database == relation.database);
        if same.next().is_some() {
            return;
        }
        self.statements.push(HealStatement {
            number,
            id: id(self.identifier, &relation.database, &draft.sql),
            safety: draft.safety,
            database: relation.database.clone(),
            sql: draft.sql,
            locks: draft.locks.into(),
            why: draft.why,
            answer: None,
        });
    }

    fn add_map(&mut self, relation: &Damaged<'_>) {
        let table = literal(&relation.name);
        let schema = self.extension(relation, "pg_visibility");
        self.add(
            relation,
            Draft {
                safety: Safety::Exact,
                sql: format!("SELECT {schema}.pg_truncate_visibility_map({table})"),
                locks: OF_TRUNCATE_MAP,
                why: "the damaged visibility map is dropped: no page counts as all-visible, which is always right".into(),
            },
        );
        self.add(relation, vacuum(relation, "the visibility map"));
    }

    /// Rows by `pg_surgery`, visibility by VACUUM; the rest of a table is not for SQL.
    fn add_rows(&mut self, relation: &Damaged<'_>) {
        let (visibility, others): (Vec<&Finding>, Vec<&Finding>) = relation
            .findings
            .iter()
            .copied()
            .partition(|own| VISIBILITY_RULES.contains(&own.rule.as_str()));
        if !visibility.is_empty() {
            self.add(relation, vacuum(relation, "the visibility map"));
        }
        let (rows, pages): (Vec<&Finding>, Vec<&Finding>) = others
            .into_iter()
            .partition(|own| tid_of(own).is_some() && self.major >= HAS_SURGERY);
        // While the page itself is refused, no function reaches its rows.
        let refused: Vec<Option<u32>> = pages.iter().map(|own| own.place.block).collect();
        let mut tids: BTreeMap<(u32, u16), bool> = BTreeMap::new();
        for (finding, tid) in rows.into_iter().filter_map(|own| Some((own, tid_of(own)?))) {
            if !refused.contains(&Some(tid.0)) {
                *tids.entry(tid).or_insert(true) &= is_of_header(finding);
            }
        }
        if tids.is_empty() {
            return self.leave_some(relation, pages);
        }
        let schema = self.extension(relation, "pg_surgery");
        for ((block, item), is_of_header) in tids {
            for draft in surgery((relation, &schema), (block, item), is_of_header) {
                self.add(relation, draft);
            }
        }
        self.leave_some(relation, pages);
    }

    fn leave_some(&mut self, relation: &Damaged<'_>, findings: Vec<&Finding>) {
        if !findings.is_empty() {
            self.leave(relation, findings.into_iter());
        }
    }

    /// The schema with the functions of an extension, which is made where the database has none.
    fn extension(&mut self, relation: &Damaged<'_>, name: &str) -> String {
        if let Some(schema) = schema_of(self.server, &relation.database, name) {
            return schema;
        }
        self.add(relation, extension(name));
        "public".into()
    }

    fn leave<'a>(&mut self, relation: &Damaged<'_>, findings: impl Iterator<Item = &'a Finding>) {
        let findings: Vec<&Finding> = findings.collect();
        let blocks = findings.iter().filter_map(|own| own.place.block);
        let mut blocks: Vec<u32> = blocks.collect();
        blocks.sort_unstable();
        blocks.dedup();
        let path = findings.first().map(|own| own.place.path.clone());
        let mut why: Vec<String> = findings
            .iter()
            .take(FINDINGS_SHOWN)
            .map(|own| format!("{}: {}", own.rule, own.message))
            .collect();
        why.push("no statement gives it back: WAL, a backup or a standby may, while the server is shut down".into());
        self.not_healed.push(NotHealed {
            path: path.unwrap_or_default(),
            relation: Some(relation.name.clone()),
            blocks: blocks
                .into_iter()
                .map(|block| [block.into(), u64::from(block) + 1])
                .collect(),
            needs_loss: false,
            why,
            commands: vec!["pgclinic heal PGDATA --wal DIR --backup TARGET".into()],
        });
    }
}

/// Findings of one relation that are listed with their words.
const FINDINGS_SHOWN: usize = 5;
const VISIBILITY_RULES: [&str; 2] = ["visibility-map-wrong", "page-not-all-visible"];

/// Damage by relation; what is of none is listed as it is.
fn damaged<'a>(checked: &'a CheckDocument, rest: &mut Vec<NotHealed>) -> Vec<Damaged<'a>> {
    let mut relations: BTreeMap<(String, u8), Damaged<'a>> = BTreeMap::new();
    let damage = checked.findings.iter();
    for finding in damage.filter(|own| own.severity == Severity::Damage) {
        let place = &finding.place;
        let named = place.schema.as_ref().zip(place.relation.as_ref());
        let Some((schema, name)) = named else {
            rest.push(not_of_a_relation(finding));
            continue;
        };
        let fork = place.fork.unwrap_or(Fork::Main);
        let database = place.database.clone().unwrap_or_else(|| "postgres".into());
        let name = format!("{}.{}", quoted(schema), quoted(name));
        let key = (format!("{database}/{name}"), fork as u8);
        let own = relations.entry(key).or_insert_with(|| Damaged {
            database,
            name,
            is_catalog: schema == "pg_catalog",
            kind: place.kind,
            fork,
            findings: Vec::new(),
        });
        own.findings.push(finding);
    }
    relations.into_values().collect()
}

fn not_of_a_relation(finding: &Finding) -> NotHealed {
    NotHealed {
        path: finding.place.path.clone(),
        relation: None,
        blocks: Vec::new(),
        needs_loss: false,
        why: vec![format!("{}: {}", finding.rule, finding.message)],
        commands: vec![format!("pgclinic explain {}", finding.rule)],
    }
}

/// Block and line pointer of a row.
fn tid_of(finding: &Finding) -> Option<(u32, u16)> {
    finding.place.block.zip(finding.place.item)
}

/// What is wrong stands in the tuple's header, which `heap_force_freeze` writes again.
fn is_of_header(finding: &Finding) -> bool {
    let rule = finding.rule.as_str();
    let kinds = ["xmin-", "xmax-", "multixact-", "transaction-status-"];
    kinds.iter().any(|kind| rule.starts_with(kind))
}

fn reindex(relation: &Damaged<'_>) -> Draft {
    let name = &relation.name;
    let why = "the index is built again from its table; a unique one fails with the first key that two rows have".to_owned();
    let (sql, locks) = if relation.is_catalog {
        (format!("REINDEX INDEX {name}"), OF_REINDEX)
    } else {
        (
            format!("REINDEX INDEX CONCURRENTLY {name}"),
            OF_REINDEX_CONCURRENTLY,
        )
    };
    Draft {
        safety: Safety::Exact,
        sql,
        locks,
        why,
    }
}

fn vacuum(relation: &Damaged<'_>, what: &str) -> Draft {
    Draft {
        safety: Safety::Exact,
        sql: format!("VACUUM (DISABLE_PAGE_SKIPPING) {}", relation.name),
        locks: OF_VACUUM,
        why: format!("every page is read, and {what} is made again"),
    }
}

fn extension(name: &str) -> Draft {
    Draft {
        safety: Safety::Exact,
        sql: format!("CREATE EXTENSION IF NOT EXISTS {name} SCHEMA public"),
        locks: OF_EXTENSION,
        why: "the next statements need its functions; nothing else uses them".into(),
    }
}

/// Where an extension is; nothing where it is not made there, or cannot be asked for.
fn schema_of(server: &ConnectionTarget, database: &str, extension: &str) -> Option<String> {
    let target = ConnectionTarget {
        database: database.to_owned(),
        ..server.clone()
    };
    let mut session = Session::open(&target, &ConnectOptions::default()).ok()?;
    let sql = format!(
        "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension e
         JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = '{extension}'"
    );
    session.query_value(&sql).ok()?
}

/// A row comes back for everybody, or goes; a value that is wrong stays wrong when it is frozen.
fn surgery(
    (relation, schema): (&Damaged<'_>, &str),
    (block, item): (u32, u16),
    is_of_header: bool,
) -> Vec<Draft> {
    let table = literal(&relation.name);
    let call = |function: &str| {
        format!("SELECT {schema}.{function}({table}::regclass, ARRAY['({block},{item})']::tid[])")
    };
    let kill = Draft {
        safety: Safety::Lossy,
        sql: call("heap_force_kill"),
        locks: OF_SURGERY,
        why: "the row goes; entries of indexes that lead to it go with VACUUM or REINDEX".into(),
    };
    let freeze = Draft {
        safety: Safety::Lossy,
        sql: call("heap_force_freeze"),
        locks: OF_SURGERY,
        why: "the row becomes visible to everybody, whether its transaction committed or not"
            .into(),
    };
    if is_of_header {
        vec![freeze, kill]
    } else {
        vec![kill]
    }
}

fn literal(name: &str) -> String {
    format!("'{}'", name.replace('\'', "''"))
}

/// Cluster and statement, so that it means what was shown.
fn id(identifier: &str, database: &str, sql: &str) -> String {
    let mut digest = Digest::new(Algorithm::Sha256);
    for word in [identifier, database, sql] {
        digest.update(&(word.len() as u64).to_le_bytes());
        digest.update(word.as_bytes());
    }
    hex(&digest.finish()).chars().take(ID_CHARS).collect()
}
