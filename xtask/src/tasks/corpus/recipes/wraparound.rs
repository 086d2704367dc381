//! Transaction and multixact numbers that pass the end of their 32 bits, as they do on a busy
//! server after some years.

use std::path::Path;
use std::process::Command;

use super::super::contents;
use super::super::recipe::{Recipe, Unmade};
use super::super::workshop::{Workshop, sql};
use crate::postgres::Tools;
use crate::shell::{self, at};
use crate::task::Outcome;

pub(super) const RECIPE: Recipe = Recipe {
    name: "wraparound",
    summary: "xids and multixacts beyond 2^31 and just past 2^32",
    quick: false,
    make,
};

const SETTINGS: &[&str] = &["fsync=off", "autovacuum=off", "log_min_messages=fatal"];

/// Where the next numbers are set: no step is longer than half of the circle, and everything is
/// frozen before each.
const STEPS: [u64; 3] = [1_800_000_000, 3_600_000_000, 4_294_966_000];

/// A file of a status log, in bytes, and the transactions in one of `pg_xact`.
const FILE_BYTES: u64 = 32 * 8192;
const XIDS_PER_FILE: u64 = FILE_BYTES * 4;
/// Multixacts in a file of `pg_multixact/offsets`.
const MULTIS_PER_FILE: u64 = FILE_BYTES / 4;

/// Uses numbers one by one, and shares rows between transactions.
const WORK: &str = "DO $$ BEGIN FOR i IN 1..900 LOOP \
    INSERT INTO passed VALUES (i, md5(i::text)); UPDATE passed SET word = word || i WHERE id = i / 2; \
    PERFORM 1 FROM passed WHERE id = 1 + i % 20 FOR KEY SHARE; \
    IF i % 10 = 0 THEN DELETE FROM passed WHERE id = i - 5; END IF; \
    IF i % 7 = 0 THEN ROLLBACK; ELSE COMMIT; END IF; END LOOP; END $$";

fn make(shop: &Workshop, folder: &Path) -> Result<(), Unmade> {
    let tools = shop.fifteen()?;
    let cluster = folder.join("stopped");
    tools.new_cluster(&cluster)?;
    let server = tools.start(&cluster, SETTINGS)?;
    contents::fill(&tools, &server, folder)?;
    sql(
        &server,
        "postgres",
        "CREATE TABLE passed (id int, word text)",
    )?;
    sql(
        &server,
        "postgres",
        "CREATE INDEX ON passed (id); CREATE INDEX ON passed USING gin (to_tsvector('simple', word))",
    )?;
    sql(
        &server,
        "postgres",
        "ALTER DATABASE template0 ALLOW_CONNECTIONS true",
    )?;
    server.stop()?;
    for next in STEPS {
        freeze(&tools, &cluster)?;
        jump(&tools, &cluster, next)?;
    }
    // Once more, so that nothing is left of the numbers that were jumped over.
    freeze(&tools, &cluster)?;
    let server = tools.start(&cluster, SETTINGS)?;
    for _ in 0..4 {
        sql(&server, "postgres", WORK)?;
    }
    server.stop()?;
    Ok(())
}

fn freeze(tools: &Tools, cluster: &Path) -> Outcome {
    let server = tools.start(cluster, SETTINGS)?;
    let mut vacuum = server.client("vacuumdb");
    vacuum.args(["-U", "postgres", "-a", "-q", "--freeze"]);
    shell::capture(&mut vacuum)?;
    // Rows that the last step wrote stay beside those of the next.
    sql(&server, "postgres", WORK)?;
    let mut vacuum = server.client("vacuumdb");
    vacuum.args(["-U", "postgres", "-q", "--freeze", "postgres"]);
    shell::capture(&mut vacuum)?;
    server.stop()
}

/// Sets the next transaction and multixact, and makes the status files in which they fall, as the
/// manual says.
fn jump(tools: &Tools, cluster: &Path, next: u64) -> Outcome {
    let oldest = oldest_multi(tools, cluster)?;
    let mut reset = tools.command("pg_resetwal");
    reset.arg("-x").arg(next.to_string());
    reset.arg("-m").arg(format!("{next},{oldest}"));
    shell::capture(reset.arg("-D").arg(cluster))?;
    zeros(cluster, "pg_xact", next / XIDS_PER_FILE)?;
    zeros(cluster, "pg_multixact/offsets", next / MULTIS_PER_FILE)
}

fn oldest_multi(tools: &Tools, cluster: &Path) -> Result<String, String> {
    let shown = shell::capture(tools.command("pg_controldata").arg(cluster))?;
    let line = shown
        .lines()
        .find_map(|line| line.strip_prefix("Latest checkpoint's oldestMultiXid:"));
    let value = line.ok_or("pg_controldata names no oldestMultiXid")?;
    Ok(value.trim().to_string())
}

fn zeros(cluster: &Path, log: &str, file: u64) -> Outcome {
    let path = cluster.join(log).join(format!("{file:04X}"));
    if path.exists() {
        return Ok(());
    }
    let size = usize::try_from(FILE_BYTES).unwrap_or_default();
    std::fs::write(&path, vec![0; size]).map_err(at(&path))?;
    let mut own = Command::new("chown");
    shell::capture(own.arg("--reference").arg(cluster).arg(&path)).map(drop)
}
