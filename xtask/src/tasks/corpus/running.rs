//! A server at work all the time, and `pgclinic check` again and again on its data directory, on its stream over the network and on
//! backups taken meanwhile: silent at every level, until a page is overwritten in its file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
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
const BACKUPS: [(&str, &[&str], &str); 2] = [
    ("backup under load", &["-Fp"], "full"),
    ("backup under load, tar", &["-Ft", "-z"], "pages"),
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
            complaints += backed_up(&server, program, scratch.path(), form)?;
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

/// Takes a backup and checks it.
fn backed_up(
    server: &Server<'_>,
    program: &Path,
    scratch: &Path,
    (what, options, level): (&str, &[&str], &str),
) -> Result<usize, String> {
    let folder = scratch.join("backup");
    let mut take = server.client("pg_basebackup");
    take.args(["-U", "postgres", "-c", "fast", "-X", "stream"]);
    shell::capture(take.args(options).arg("-D").arg(&folder))?;
    let complaints = silent(program, what, &folder, level)?;
    std::fs::remove_dir_all(&folder).map_err(at(&folder))?;
    Ok(complaints)
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
