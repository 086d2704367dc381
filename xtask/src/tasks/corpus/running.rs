//! A server at work all the time, and `pgclinic check` again and again on its data directory, on its stream over the network and on
//! backups taken meanwhile: silent at every level, until a page is overwritten in its file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::judge;
use super::recipe::Unmade;
use super::recipes::load::{SETTINGS, Scripts, prepare};
use super::workshop::{Workshop, sql};
use crate::postgres::{self, Server};
use crate::shell::{self, at};

/// A table that nobody touches. VACUUM wants to be alone.
const COLD: [&str; 3] = [
    "CREATE TABLE cold AS SELECT i, md5(i::text) AS word FROM generate_series(1, 20000) i",
    "VACUUM (FREEZE) cold",
    "CHECKPOINT",
];
const PAGE: u64 = 8192;

/// Backups that are taken under the load, with the options of `pg_basebackup` and the level of the check.
const BACKUPS: [(&str, &[&str], &str); 4] = [
    ("backup under load", &["-Fp"], "full"),
    ("backup under load, tar.gz", &["-Ft", "-z"], "pages"),
    (
        "backup under load, tar.lz4",
        &["-Ft", "--compress=lz4"],
        "pages",
    ),
    (
        "backup under load, tar.zst",
        &["-Ft", "--compress=zstd:1"],
        "structure",
    ),
];

/// Checks for so long, and gives the number of complaints.
pub(super) fn run(
    shop: &Workshop,
    program: &Path,
    levels: &[&str],
    time: Duration,
) -> Result<usize, String> {
    match beside_a_load(shop, program, levels, time) {
        Ok(complaints) => Ok(complaints),
        Err(Unmade::Lacking(what)) => {
            println!("{:<28} skipped: {what}", "running");
            Ok(0)
        }
        Err(Unmade::Failed(why)) => Err(why),
    }
}

fn beside_a_load(
    shop: &Workshop,
    program: &Path,
    levels: &[&str],
    time: Duration,
) -> Result<usize, Unmade> {
    let tools = shop.installed()?;
    if !tools.folder().join("pgbench").exists() {
        return Err(Unmade::Lacking("no pgbench is installed".into()));
    }
    let scratch = postgres::scratch("corpus-running")?;
    postgres::give_to_server_user(scratch.path())?;
    let scripts = Scripts::write(scratch.path())?;
    let cluster = scratch.path().join("data");
    tools.new_cluster(&cluster)?;
    let server = tools.start(&cluster, SETTINGS)?;
    prepare(&server, scratch.path(), 10)?;
    for statement in COLD {
        sql(&server, "postgres", statement)?;
    }
    let mut working = scripts.start(&server, time)?;
    let end = Instant::now() + time;
    let mut complaints = 0;
    while Instant::now() < end {
        for level in levels {
            complaints += silent(program, "running", &cluster, level)?;
        }
        complaints += silent(program, "running, streamed", &url_of(&server), "pages")?;
        for form in BACKUPS {
            complaints += backed_up(&server, program, (&cluster, scratch.path()), form)?;
        }
    }
    for child in &mut working {
        // A deadlock ends a client, which is part of such a life.
        child.wait().map_err(|error| format!("pgbench: {error}"))?;
    }
    complaints += overwritten(&server, program, &cluster, levels)?;
    server.stop()?;
    Ok(complaints)
}

fn silent(program: &Path, what: &str, target: &Path, level: &str) -> Result<usize, String> {
    let verdict = judge::check(program, target, level)?;
    println!("{what:<28} {level:<10} {}", verdict.line);
    for complaint in &verdict.complaints {
        println!("    {complaint}");
    }
    Ok(verdict.complaints.len())
}

fn url_of(server: &Server<'_>) -> PathBuf {
    let folder = server.folder().display();
    PathBuf::from(format!("postgres://postgres@/postgres?host={folder}"))
}

/// Takes a backup, checks it, and compares it with what the server has become.
fn backed_up(
    server: &Server<'_>,
    program: &Path,
    (cluster, scratch): (&Path, &Path),
    (what, options, level): (&str, &[&str], &str),
) -> Result<usize, String> {
    let folder = scratch.join("backup");
    let mut take = server.client("pg_basebackup");
    take.args(["-U", "postgres", "-c", "fast", "-X", "stream"]);
    shell::capture(take.args(options).arg("-D").arg(&folder))?;
    let mut complaints = silent(program, what, &folder, level)?;
    complaints += explained(program, what, cluster, &folder)?;
    std::fs::remove_dir_all(&folder).map_err(at(&folder))?;
    Ok(complaints)
}

/// What a copy that lives on and one of before differ in is explained by WAL.
fn explained(program: &Path, what: &str, now: &Path, then: &Path) -> Result<usize, String> {
    let mut diff = Command::new(program);
    diff.args(["diff", "--progress", "none"]).args([now, then]);
    let output = shell::output(&mut diff)?;
    let words = String::from_utf8_lossy(&output.stdout);
    let first = words.lines().next().unwrap_or("no answer");
    println!("{what:<28} {:<10} {first}", "diff");
    if output.status.success() {
        return Ok(0);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    for line in words.lines().chain(said.lines()).skip(1).take(20) {
        println!("    {line}");
    }
    Ok(1)
}

/// Hurts a page beside a load of its own, and must be told so, and nothing else.
fn overwritten(
    server: &Server<'_>,
    program: &Path,
    cluster: &Path,
    levels: &[&str],
) -> Result<usize, String> {
    let mut ask = server.client("psql");
    ask.args(["-X", "-A", "-t", "-U", "postgres", "-d", "postgres", "-c"]);
    let path = shell::capture(ask.arg("SELECT pg_relation_filepath('cold')"))?;
    let path = cluster.join(path.trim());
    let file = File::options().write(true).open(&path).map_err(at(&path))?;
    file.write_all_at(&[0x55; 64], 3 * PAGE + 5000)
        .map_err(at(&path))?;
    let mut complaints = 0;
    for level in levels {
        let verdict = judge::check(program, cluster, level)?;
        println!(
            "{:<28} {level:<10} {}",
            "running, overwritten", verdict.line
        );
        let told =
            |complaint: &&String| complaint.contains(" cold (") && complaint.contains("block 3 ");
        let known = verdict.complaints.iter().filter(told).count();
        if known == 0 {
            println!("    the page that was overwritten is not told");
        }
        let others = verdict
            .complaints
            .iter()
            .filter(|one| !told(one) && !one.starts_with("exit code"));
        for other in others.clone() {
            println!("    {other}");
        }
        complaints += others.count() + usize::from(known == 0);
    }
    Ok(complaints)
}
