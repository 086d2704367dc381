//! Backups that are taken under the load: whole ones in folders and archives, and a chain of
//! increments where the server makes them.

use std::path::Path;

use super::{Work, gone, take};
use crate::postgres::{Server, Tools};
use crate::shell;

/// One form: its name, the options of `pg_basebackup`, and the level of the check.
struct Form {
    what: &'static str,
    options: &'static [&'static str],
    level: &'static str,
}

const FORMS: [Form; 4] = [
    Form {
        what: "backup under load",
        options: &["-Fp"],
        level: "full",
    },
    Form {
        what: "backup under load, tar.gz",
        options: &["-Ft", "-z"],
        level: "pages",
    },
    Form {
        what: "backup under load, tar.lz4",
        options: &["-Ft", "--compress=lz4"],
        level: "pages",
    },
    Form {
        what: "backup under load, tar.zst",
        options: &["-Ft", "--compress=zstd:1"],
        level: "structure",
    },
];

const CHAIN: &str = "chain under load";

/// Whether the servers of these programs make incremental backups: they do since 17, which brought
/// this program.
pub(super) fn has_increments(tools: &Tools) -> bool {
    tools.has("pg_combinebackup")
}

/// Takes one in each form that the programs were built with, and looks at it.
pub(super) fn all(work: &Work<'_>, server: &Server<'_>) -> Result<usize, String> {
    let mut complaints = 0;
    for form in FORMS.iter().filter(|form| can_make(work.tools, form)) {
        complaints += whole(work, server, form)?;
    }
    if has_increments(work.tools) {
        complaints += chain(work, server)?;
    }
    Ok(complaints)
}

/// A build without a library for compression says so instead of making a backup.
fn can_make(tools: &Tools, form: &Form) -> bool {
    let Some(packing) = form
        .options
        .iter()
        .find(|own| own.starts_with("--compress"))
    else {
        return true;
    };
    let name = packing.trim_start_matches("--compress=");
    let name = name.split(':').next().unwrap_or(name);
    let configured = shell::capture(tools.command("pg_config").arg("--configure"));
    configured.is_ok_and(|words| words.contains(&format!("--with-{name}")))
}

/// Checks it, and compares it with what the server has become.
fn whole(work: &Work<'_>, server: &Server<'_>, form: &Form) -> Result<usize, String> {
    let folder = work.scratch.path().join("backup");
    take(server, &folder, form.options)?;
    let mut complaints = work.silent(form.what, &[&folder], form.level)?;
    complaints += work.explained(form.what, &work.cluster(), &folder)?;
    gone(&folder)?;
    Ok(complaints)
}

/// A whole one and two that build on it, of which the last lies in an archive.
fn chain(work: &Work<'_>, server: &Server<'_>) -> Result<usize, String> {
    let folders = ["full", "first", "second"].map(|name| work.scratch.path().join(name));
    let [full, first, second] = &folders;
    take(server, full, &["-Fp"])?;
    take(server, first, &["-Fp", &since(full)])?;
    take(server, second, &["-Ft", "-z", &since(first)])?;
    let word = Path::new("--incremental");
    let links = [full, word, first, word, second];
    let mut complaints = 0;
    for level in ["pages", "full"] {
        complaints += work.silent(CHAIN, &links, level)?;
    }
    for folder in &folders {
        gone(folder)?;
    }
    Ok(complaints)
}

fn since(earlier: &Path) -> String {
    let manifest = earlier.join("backup_manifest");
    format!("--incremental={}", manifest.display())
}
