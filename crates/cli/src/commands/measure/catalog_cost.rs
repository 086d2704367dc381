//! `pgclinic measure catalog-cost DDL.sql`: a script is run on an empty server, and the rows of its
//! catalogs are counted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use pgclinic_lab::statements;
use pgclinic_measure::{MeasureOptions, ServerFacts, measure_cluster};
use pgclinic_model::document::{
    CATALOG_COST_SCHEMA, CatalogCost, CatalogCostDocument, Figure, StatementCost, Tool,
};
use pgclinic_model::{Glob, Selection};
use pgclinic_report::Document;
use pgclinic_servers::{
    InitOptions, RunAs, Scratch, Server, Session, StartOptions, Wanted, find, initdb,
};
use pgclinic_spill::MemoryPlan;

use super::traffic;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::output::OutputArgs;
use crate::progress::Bar;
use crate::target::{self, Opening};

/// Characters of a statement that are shown.
const SHOWN: usize = 60;
const BLOCK_BYTES: u64 = 8192;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A script that creates tables
    #[arg(value_name = "DDL.sql")]
    script: PathBuf,
    /// Project the catalogs over this table of traffic
    ///
    /// Each line holds a label, a comma and how often the script runs.
    #[arg(long, value_name = "FILE")]
    traffic: Option<PathBuf>,
    /// Take rows a page from this cluster's catalogs
    ///
    /// The cluster is stopped.
    #[arg(long, value_name = "TARGET", conflicts_with = "rows_per_page")]
    like: Option<PathBuf>,
    /// Take this number of rows a page for every catalog
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rows_per_page: Option<u32>,
    /// Run the script on this major, 13 to 18
    ///
    /// By default the newest installed one, else it is fetched.
    #[arg(long, value_name = "MAJOR")]
    major: Option<u16>,
    /// Run the server as this user when started as root
    #[arg(long, value_name = "USER")]
    run_as: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    let start = Instant::now();
    let like: Vec<&Path> = arguments.like.iter().map(PathBuf::as_path).collect();
    arguments.output.refuse_early(CATALOG_COST_SCHEMA, &like)?;
    let sql = std::fs::read_to_string(&arguments.script).map_err(|error| {
        Failure::new(format!(
            "cannot read {}: {error}",
            arguments.script.display()
        ))
    })?;
    let traffic = arguments
        .traffic
        .as_deref()
        .map(traffic::read)
        .transpose()?;
    let like = arguments
        .like
        .as_deref()
        .map(|target| rows_per_page_of(target, arguments, world))
        .transpose()?;
    let mut document = counted(&sql, arguments)?;
    fill_pages(&mut document, arguments, like.as_ref());
    for (label, times) in traffic.unwrap_or_default() {
        let line = document.project(&label, times, BLOCK_BYTES);
        document.projection.push(line);
    }
    document.elapsed_s = start.elapsed().as_secs_f64();
    let document = Document::CatalogCost(document);
    Ok(arguments.output.give(document, Exit::Healthy, world))
}

/// Runs the script on a server of its own.
fn counted(sql: &str, arguments: &Arguments) -> Result<CatalogCostDocument, Failure> {
    let wanted = Wanted {
        major: arguments.major,
        ..Wanted::default()
    };
    let installation = find(&wanted, &mut |_| {})?;
    let run_as = RunAs::new(arguments.run_as.as_deref())?;
    let scratch = Scratch::new(&run_as, None)?;
    let pgdata = scratch.folder("data")?;
    initdb(&installation, &run_as, &pgdata, &InitOptions::default())?;
    let server = Server::start(&installation, &run_as, &pgdata, &StartOptions::default())?;
    let mut session = server.connect("postgres")?;
    let counter = Counter::new(&mut session)?;
    let version = session
        .query_value("SHOW server_version")?
        .unwrap_or_default();
    let script = arguments.script.display().to_string();
    let before = counter.count(&mut session)?;
    let statements = statement_costs(sql, &script, &counter, &before, &mut session)?;
    let after = counter.count(&mut session)?;
    let pages = counter.pages(&mut session)?;
    let catalogs = after.iter().filter_map(|(catalog, rows)| {
        let added = rows - before.get(catalog).unwrap_or(&0);
        let pages = pages.get(catalog).copied().unwrap_or(0).max(1);
        (added != 0).then(|| CatalogCost {
            catalog: catalog.clone(),
            rows: added,
            rows_per_page: *rows as f64 / pages as f64,
        })
    });
    let mut catalogs: Vec<_> = catalogs.collect();
    catalogs.sort_by(|a, b| (b.rows, &a.catalog).cmp(&(a.rows, &b.catalog)));
    Ok(CatalogCostDocument {
        schema: CATALOG_COST_SCHEMA.into(),
        tool: Tool::this(),
        script,
        server_version: version,
        statements,
        catalogs,
        rows_per_page_of: "of the new server that ran the script".into(),
        projection: Vec::new(),
        elapsed_s: 0.0,
    })
}

fn statement_costs(
    sql: &str,
    script: &str,
    counter: &Counter,
    before: &BTreeMap<String, i64>,
    session: &mut Session,
) -> Result<Vec<StatementCost>, Failure> {
    let mut costs = Vec::new();
    let (mut known, mut at) = (before.clone(), 0);
    for statement in statements(sql) {
        let found = sql
            .get(at..)
            .and_then(|rest| rest.find(&statement))
            .unwrap_or(0);
        let bare = behind_comments(&statement);
        let first = at + found + (statement.len() - bare.len());
        at += found + statement.len();
        let line = 1 + sql.get(..first).unwrap_or_default().matches('\n').count() as u64;
        if bare.is_empty() {
            continue;
        }
        session
            .execute(&statement)
            .map_err(|error| Failure::new(format!("{script}, line {line}: {error}")))?;
        let now = counter.count(session)?;
        let added = now.iter().filter_map(|(catalog, rows)| {
            let added = rows - known.get(catalog).unwrap_or(&0);
            (added != 0).then(|| (catalog.clone(), added))
        });
        costs.push(StatementCost {
            line,
            statement: shown(bare),
            rows: added.collect(),
        });
        known = now;
    }
    if costs.is_empty() {
        Err(Failure::new(format!("{script} holds no statement")))
    } else {
        Ok(costs)
    }
}

/// The statement from its first word on.
fn behind_comments(statement: &str) -> &str {
    let mut rest = statement.trim_start();
    loop {
        rest = match (rest.strip_prefix("--"), rest.strip_prefix("/*")) {
            (Some(comment), _) => comment.split_once('\n').map_or("", |(_, rest)| rest),
            (_, Some(comment)) => comment.split_once("*/").map_or("", |(_, rest)| rest),
            (None, None) => return rest,
        }
        .trim_start();
    }
}

fn shown(statement: &str) -> String {
    let words = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() > SHOWN {
        words.chars().take(SHOWN - 1).chain(['…']).collect()
    } else {
        words
    }
}

/// Counts all rows of all catalogs.
struct Counter {
    rows: String,
    pages: String,
}

impl Counter {
    fn new(session: &mut Session) -> Result<Self, Failure> {
        let names = session.query(
            "SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' ORDER BY 1",
        )?;
        let names: Vec<String> = names.into_iter().flatten().flatten().collect();
        let each = |what: &dyn Fn(&str) -> String| {
            let parts = names
                .iter()
                .map(|name| format!("SELECT '{name}', {}", what(name)));
            parts.collect::<Vec<_>>().join(" UNION ALL ")
        };
        Ok(Counter {
            rows: each(&|name| format!("count(*) FROM pg_catalog.{name}")),
            pages: each(&|name| format!("pg_relation_size('pg_catalog.{name}') / {BLOCK_BYTES}")),
        })
    }

    fn count(&self, session: &mut Session) -> Result<BTreeMap<String, i64>, Failure> {
        numbers(session, &self.rows)
    }

    fn pages(&self, session: &mut Session) -> Result<BTreeMap<String, i64>, Failure> {
        numbers(session, &self.pages)
    }
}

fn numbers(session: &mut Session, sql: &str) -> Result<BTreeMap<String, i64>, Failure> {
    let rows = session.query(sql)?;
    let numbers = rows.into_iter().filter_map(|row| match row.as_slice() {
        [Some(name), Some(number)] => Some((name.clone(), number.parse().ok()?)),
        _ => None,
    });
    Ok(numbers.collect())
}

/// Row versions on a page of each catalog, of the database in which it is largest.
fn rows_per_page_of(
    path: &Path,
    arguments: &Arguments,
    world: &Env<'_>,
) -> Result<BTreeMap<String, f64>, Failure> {
    let cluster = target::open_cluster(path, Opening::new(world, None))?;
    let options = MeasureOptions {
        threads: std::num::NonZeroUsize::MIN,
        selection: Selection {
            relations: vec![Glob::new("pg_catalog.*")],
            ..Selection::default()
        },
        spec: target::spec_of(path),
        sample_percent: None,
        memory: MemoryPlan::new(0),
        trial_clock: None,
        server: ServerFacts::default(),
    };
    let bar = Bar::of_bytes(&arguments.output, world.terminal, &world.interrupted);
    let document = measure_cluster(&cluster, &options, &bar);
    bar.finish();
    let mut largest: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    for own in &document.relations {
        let (Some(name), Some(Figure::Spread(rows))) =
            (&own.relation, own.figure("table", "stored_tuples_per_page"))
        else {
            continue;
        };
        let known = largest.entry(name.clone()).or_default();
        // A single page says little of how full pages are.
        if own.blocks > 1 && own.bytes > known.0 {
            *known = (own.bytes, rows.mean);
        }
    }
    largest.retain(|_, (bytes, _)| *bytes > 0);
    Ok(largest
        .into_iter()
        .map(|(name, (_, mean))| (name, mean))
        .collect())
}

fn fill_pages(
    document: &mut CatalogCostDocument,
    arguments: &Arguments,
    like: Option<&BTreeMap<String, f64>>,
) {
    for own in &mut document.catalogs {
        if let Some(rows) = arguments.rows_per_page {
            own.rows_per_page = f64::from(rows);
        }
        if let Some(rows) = like.and_then(|like| like.get(&own.catalog)) {
            own.rows_per_page = *rows;
        }
    }
    if let Some(rows) = arguments.rows_per_page {
        document.rows_per_page_of = format!("{rows}, as asked for");
    }
    if let Some(target) = &arguments.like {
        document.rows_per_page_of = format!("of the catalogs of {}", target.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_cost_nothing() {
        assert_eq!(behind_comments("-- a\n /* b; */ "), "");
        assert_eq!(
            behind_comments("-- a\nCREATE TABLE t ()"),
            "CREATE TABLE t ()"
        );
    }
}
