//! Damage under a server at work: a page of a table that nobody touches is overwritten in its file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{BEFORE_THE_KILL, Work, ended, judge};
use crate::postgres::Server;
use crate::shell::{self, at};

/// The table. VACUUM wants to be alone.
pub(super) const COLD: [&str; 3] = [
    "CREATE TABLE cold AS SELECT i, md5(i::text) AS word FROM generate_series(1, 20000) i",
    "VACUUM (FREEZE) cold",
    "CHECKPOINT",
];

const PAGE: u64 = 8192;
/// In the middle of the rows of block 3.
const PLACE: u64 = 3 * PAGE + 5000;

/// Hurts the page beside a load, must be told so and nothing else, and makes it whole again.
pub(super) fn told(work: &Work<'_>, server: &Server<'_>) -> Result<usize, String> {
    let path = file_of_cold(work, server)?;
    let file = File::options().read(true).write(true).open(&path);
    let file = file.map_err(at(&path))?;
    let mut whole = [0; 64];
    file.read_exact_at(&mut whole, PLACE).map_err(at(&path))?;
    file.write_all_at(&[0x55; 64], PLACE).map_err(at(&path))?;
    let mut working = work.scripts.start(server, BEFORE_THE_KILL)?;
    let complaints = work.levels.iter().map(|level| told_at(work, level)).sum();
    ended(&mut working)?;
    file.write_all_at(&whole, PLACE).map_err(at(&path))?;
    complaints
}

fn file_of_cold(work: &Work<'_>, server: &Server<'_>) -> Result<PathBuf, String> {
    let mut ask = server.client("psql");
    ask.args(["-X", "-A", "-t", "-U", "postgres", "-d", "postgres", "-c"]);
    let path = shell::capture(ask.arg("SELECT pg_relation_filepath('cold')"))?;
    Ok(work.cluster().join(path.trim()))
}

fn told_at(work: &Work<'_>, level: &str) -> Result<usize, String> {
    let cluster: &Path = &work.cluster();
    let verdict = judge::check(work.program, &[cluster], level)?;
    println!("{:<28} {level:<10} {}", "overwritten", verdict.line);
    let is_own =
        |complaint: &&String| complaint.contains(" cold (") && complaint.contains("block 3 ");
    let is_told = verdict.complaints.iter().any(|one| is_own(&one));
    if !is_told {
        println!("    the page that was overwritten is not told");
    }
    let others = verdict.complaints.iter();
    let others = others.filter(|one| !is_own(one) && !one.starts_with("exit code"));
    for other in others.clone() {
        println!("    {other}");
    }
    Ok(others.count() + usize::from(!is_told))
}
