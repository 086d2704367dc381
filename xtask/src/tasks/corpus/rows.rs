//! The rows of a stopped cluster: what `pgclinic salvage` writes is what its server's `COPY … TO`
//! gives, and so is what a new server holds that they were loaded into.
//!
//! ```text
//! cluster ─┬─► a copy with a server ─► COPY … TO ───────────────┐
//!          ├─► salvage --to FOLDER ─► files ────────────────────┤ sorted lines, equal
//!          └─► salvage --to a new server ─► COPY … TO ──────────┘
//! ```

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::recipe::Unmade;
use super::workshop::{self, Workshop};
use crate::postgres::{Scratch, Server, Tools, scratch};
use crate::shell::{self, at};

/// What the text of `pgclinic salvage` is that of.
const STYLE: &str = "SET DateStyle = ISO; SET IntervalStyle = postgres; SET TimeZone = 'UTC'; SET bytea_output = hex; \
     SET extra_float_digits = 1; SET lc_monetary = 'C'; SET row_security = off";

const DATABASES: &str = "SELECT coalesce(json_agg(datname ORDER BY datname), '[]') FROM pg_database \
     WHERE datallowconn AND NOT datistemplate";

/// The tables and materialised views that people made: as SQL names them, and by schema and name.
///
/// Columns stand in their order: a table that inherits has its own behind the others when it is
/// made anew.
const TABLES: &str = "SELECT coalesce(json_agg(json_build_array(CASE relkind WHEN 'm' THEN '(SELECT * FROM ' || own || ')' \
     ELSE own || coalesce(' (' || columns || ')', '') END, nspname, relname) ORDER BY own), '[]') \
     FROM (SELECT *, quote_ident(nspname) || '.' || quote_ident(relname) AS own, \
       (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute \
        WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns \
     FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace \
     WHERE relkind IN ('r', 'm') AND relispopulated AND nspname !~ '^pg_' AND nspname <> 'information_schema' \
     AND relpersistence <> 't') AS t";

/// The answer about one cluster.
pub(super) struct Comparison {
    /// Tables that are equal, of how many, in files and in a server.
    pub(super) lines: Vec<String>,
    /// Tables that differ, and of which the account says nothing.
    pub(super) complaints: Vec<String>,
}

/// A table of the server.
struct Table {
    /// What `COPY` takes.
    what: String,
    schema: String,
    name: String,
    /// Its rows, sorted.
    rows: Vec<Vec<u8>>,
}

/// Of a database's tables, those that are not equal.
#[derive(Default)]
struct Held {
    all: usize,
    told: Vec<String>,
    untold: Vec<String>,
}

/// Holds a cluster that was shut down in good order to its own server; nothing for another one.
pub(super) fn compare(
    shop: &Workshop,
    program: &Path,
    cluster: &Path,
) -> Result<Option<Comparison>, Unmade> {
    let tools = tools_of(shop, cluster)?;
    if !is_shut_down(&tools, cluster)? {
        return Ok(None);
    }
    let folder = scratch("rows")?;
    let copy = folder.path().join("copy");
    workshop::copy(cluster, &copy)?;
    let server = tools.start(&copy, super::suite::SETTINGS)?;
    let mut found = Comparison {
        lines: Vec::new(),
        complaints: Vec::new(),
    };
    for database in names(&server, "postgres", DATABASES)? {
        let Some(database) = database.as_str() else {
            continue;
        };
        let tables = tables(&server, database)?;
        if tables.is_empty() {
            continue;
        }
        let of_files = in_files(program, cluster, database, &tables, &folder)?;
        of_files.tell(&format!("{database}: files"), &mut found);
        let of_server = in_server(&tools, program, cluster, database, &tables, &folder)?;
        of_server.tell(&format!("{database}: loaded"), &mut found);
    }
    server.stop()?;
    Ok(Some(found))
}

fn tools_of(shop: &Workshop, cluster: &Path) -> Result<Tools, Unmade> {
    let path = cluster.join("PG_VERSION");
    let text = std::fs::read_to_string(&path).map_err(at(&path))?;
    let major = text
        .trim()
        .parse()
        .map_err(|_| format!("{}: {text:?}", path.display()))?;
    match Tools::of_major(major) {
        Some(tools) => Ok(tools),
        None => shop.fetched(major),
    }
}

fn is_shut_down(tools: &Tools, cluster: &Path) -> Result<bool, String> {
    let mut control = tools.command("pg_controldata");
    let told = shell::capture(control.arg("-D").arg(cluster).env("LC_ALL", "C"))?;
    let state = told
        .lines()
        .find(|line| line.starts_with("Database cluster state:"));
    Ok(state.is_some_and(|state| state.ends_with(" shut down")))
}

impl Held {
    fn add(&mut self, table: &Table, rows: Option<Vec<Vec<u8>>>, account: &Value) {
        self.all += 1;
        if rows.as_ref() == Some(&table.rows) {
            return;
        }
        let name = format!("{}.{}", table.schema, table.name);
        let count = rows.map_or("no".into(), |rows| rows.len().to_string());
        let words = format!("{name}: {count} rows of {}", table.rows.len());
        match told(account, table) {
            Some(why) => self.told.push(format!("{words} ({why})")),
            None => self.untold.push(words),
        }
    }

    fn tell(self, what: &str, found: &mut Comparison) {
        let other = self.told.len() + self.untold.len();
        let (equal, all) = (self.all - other, self.all);
        found.lines.push(format!(
            "{what}: {equal} of {all} tables as COPY gives them"
        ));
        let told = self.told.iter();
        found.lines.extend(told.map(|told| format!("    {told}")));
        let untold = self.untold.iter();
        found
            .complaints
            .extend(untold.map(|words| format!("{what}: {words}")));
    }
}

/// What the account says of a table that is not whole.
fn told(account: &Value, table: &Table) -> Option<String> {
    let name = format!("table {}.{} ", table.schema, table.name);
    let gaps = account["not_salvaged"].as_array().into_iter().flatten();
    let mut gaps = gaps.filter(|gap| {
        gap["what"]
            .as_str()
            .is_some_and(|what| what.starts_with(&name))
    });
    let gap = gaps.next().and_then(|gap| gap["why"].as_str());
    let entry = entry(account, table);
    let note = entry.and_then(|entry| entry["notes"][0].as_str());
    let place = entry.and_then(|entry| entry["places"][0]["why"].as_str());
    gap.or(note).or(place).map(str::to_owned)
}

fn entry<'a>(account: &'a Value, table: &Table) -> Option<&'a Value> {
    let mut entries = account["tables"].as_array().into_iter().flatten();
    entries.find(|entry| {
        entry["schema"].as_str() == Some(&table.schema)
            && entry["table"].as_str() == Some(&table.name)
    })
}

/// The salvage of one database in a folder, beside the server's tables.
fn in_files(
    program: &Path,
    cluster: &Path,
    database: &str,
    tables: &[Table],
    folder: &Scratch,
) -> Result<Held, String> {
    let out = folder.path().join(format!("files-{database}"));
    let account = out.join("salvage.json");
    let mut salvage = salvage(program, cluster, database);
    salvage
        .args(["--format", "copy", "--no-sync", "--to"])
        .arg(&out);
    let account = run(&mut salvage, &account)?;
    let mut held = Held::default();
    for table in tables {
        let file = entry(&account, table).and_then(|entry| entry["file"].as_str());
        let rows = file.map(|file| {
            let path = out.join(file);
            std::fs::read(&path).map_err(at(&path))
        });
        held.add(table, rows.transpose()?.map(|rows| sorted(&rows)), &account);
    }
    std::fs::remove_dir_all(&out).map_err(at(&out))?;
    Ok(held)
}

/// The same in a new server of the same installation.
fn in_server(
    tools: &Tools,
    program: &Path,
    cluster: &Path,
    database: &str,
    tables: &[Table],
    folder: &Scratch,
) -> Result<Held, String> {
    let new = folder.path().join("new");
    tools.new_cluster(&new)?;
    let server = tools.start(&new, super::suite::SETTINGS)?;
    workshop::sql(
        &server,
        "template1",
        "CREATE DATABASE loaded TEMPLATE template0",
    )?;
    let account = folder.path().join("loaded.json");
    let url = format!(
        "postgres://postgres@:5432/loaded?host={}",
        server.folder().display()
    );
    let mut salvage = salvage(program, cluster, database);
    salvage.arg("--account").arg(&account).args(["--to", &url]);
    let account = run(&mut salvage, &account)?;
    let mut held = Held::default();
    // A materialised view is made of the rows that its tables have now.
    for table in tables.iter().filter(|table| !table.what.starts_with('(')) {
        // A table that is not there is told, or a complaint.
        let rows = copied(&server, "loaded", &table.what).ok();
        held.add(table, rows, &account);
    }
    server.stop()?;
    std::fs::remove_dir_all(&new).map_err(at(&new))?;
    Ok(held)
}

fn salvage(program: &Path, cluster: &Path, database: &str) -> Command {
    let mut salvage = Command::new(program);
    salvage.arg("salvage").arg(cluster);
    salvage.args(["--database", database, "--quiet", "--progress", "none"]);
    salvage
}

/// Runs a salvage, which may tell of losses; gives its account.
fn run(salvage: &mut Command, account: &Path) -> Result<Value, String> {
    let output = shell::output(salvage)?;
    if !matches!(output.status.code(), Some(0 | 1 | 3)) {
        return Err(format!(
            "{}\n{}",
            shell::line(salvage),
            shell::both(&output)
        ));
    }
    let bytes = std::fs::read(account).map_err(at(account))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", account.display()))
}

fn tables(server: &Server<'_>, database: &str) -> Result<Vec<Table>, String> {
    let mut found = Vec::new();
    for names in names(server, database, TABLES)? {
        let text = |at: usize| names[at].as_str().unwrap_or_default().to_owned();
        let what = text(0);
        found.push(Table {
            rows: copied(server, database, &what)?,
            what,
            schema: text(1),
            name: text(2),
        });
    }
    Ok(found)
}

/// A query whose answer is one list.
fn names(server: &Server<'_>, database: &str, query: &str) -> Result<Vec<Value>, String> {
    let answer = shell::capture(psql(server, database).args(["-A", "-t", "-c", query]))?;
    serde_json::from_str(answer.trim()).map_err(|error| format!("{error}: {answer}"))
}

fn copied(server: &Server<'_>, database: &str, what: &str) -> Result<Vec<Vec<u8>>, String> {
    let copy = format!("COPY {what} TO STDOUT");
    let mut psql = psql(server, database);
    let output = shell::output(psql.args(["-c", STYLE, "-c", &copy]))?;
    if output.status.success() {
        Ok(sorted(&output.stdout))
    } else {
        Err(shell::both(&output))
    }
}

fn psql(server: &Server<'_>, database: &str) -> Command {
    let mut psql = server.client("psql");
    psql.args([
        "-X",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-U",
        "postgres",
        "-d",
        database,
    ]);
    psql
}

fn sorted(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    lines.sort();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> Table {
        Table {
            what: format!("public.{name}"),
            schema: "public".into(),
            name: name.into(),
            rows: sorted(b"2\n1\n"),
        }
    }

    #[test]
    fn a_table_that_differs_is_told_or_complained_of() {
        let account = serde_json::json!({
            "tables": [
                {"schema": "public", "table": "same"},
                {"schema": "public", "table": "noted", "notes": ["column a is bytea"]},
                {"schema": "public", "table": "odd"},
            ],
            "not_salvaged": [{"what": "table public.gone of database regression", "why": "another access method"}]
        });
        let mut held = Held::default();
        held.add(&table("same"), Some(sorted(b"1\n2\n")), &account);
        held.add(&table("noted"), Some(sorted(b"1\n")), &account);
        held.add(&table("gone"), None, &account);
        held.add(&table("odd"), Some(sorted(b"1\n3\n")), &account);
        let mut found = Comparison {
            lines: Vec::new(),
            complaints: Vec::new(),
        };
        held.tell("files", &mut found);
        assert_eq!(found.lines[0], "files: 1 of 4 tables as COPY gives them");
        assert!(
            found.lines[1].ends_with("(column a is bytea)"),
            "{:?}",
            found.lines
        );
        assert!(
            found.lines[2].ends_with("(another access method)"),
            "{:?}",
            found.lines
        );
        assert_eq!(found.complaints, ["files: public.odd: 2 rows of 2"]);
    }
}
