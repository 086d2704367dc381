//! Two builds of the program on the same clusters, sound and damaged: their documents and the rows
//! that they write must be equal to the byte.
//!
//! ```text
//! cargo xtask compare OLD NEW [--injuries N] [--cluster DIR]
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::args::Args;
use crate::postgres::{self, Scratch};
use crate::shell::{self, at};
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "compare",
    summary: "two builds of the program on every kept cluster, sound and damaged: equal to the byte",
    in_ci: None,
    run,
};

/// Where clusters of tests, of the corpus and of drills are kept.
const KEPT: [&str; 2] = ["/var/cache/pgclinic/seeds", "/var/cache/pgclinic/corpus"];
/// How deep a cluster may lie in them.
const DEPTH: usize = 3;

/// What is compared, as arguments before the target. One thread: with more, the order of what was
/// left out is not promised.
const DOCUMENTS: &[&[&str]] = &[
    &["check", "--level", "pages"],
    &["check", "--level", "structure"],
    &["check", "--level", "full"],
    &["measure"],
    &["measure", "--sample", "10%"],
];

const ROWS: &[&[&str]] = &[&["salvage"], &["salvage", "--format", "parquet"]];

fn run(words: &[String]) -> Outcome {
    let (programs, rest) = words.split_at(words.len().min(2));
    let [old, new] = programs else {
        return Err("two programs are compared: cargo xtask compare OLD NEW".into());
    };
    let mut args = Args::new(rest);
    let injuries = args.number("--injuries", 12)?;
    let only = args.value("--cluster")?.map(PathBuf::from);
    args.finish()?;
    let scratch = postgres::scratch("compare")?;
    let pair = Pair {
        programs: [Path::new(old), Path::new(new)],
        scratch: &scratch,
    };
    let clusters = only.map_or_else(kept_clusters, |only| vec![only]);
    let mut differences = 0;
    for cluster in &clusters {
        differences += pair.differences(cluster)?;
        for (number, name) in (0u64..).zip(pair.injuries(injuries)?) {
            let Some(copy) = pair.damaged(cluster, &name, number)? else {
                continue;
            };
            println!("{} with {name}", cluster.display());
            differences += pair.differences(&copy)?;
            differences += pair.diff(cluster, &copy)?;
            std::fs::remove_dir_all(&copy).map_err(at(&copy))?;
        }
    }
    println!("{} clusters, {differences} differences", clusters.len());
    match differences {
        0 => Ok(()),
        some => Err(format!("{some} answers of the two programs differ")),
    }
}

fn kept_clusters() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for root in KEPT {
        add_clusters(Path::new(root), DEPTH, &mut found);
    }
    found.sort();
    found
}

fn add_clusters(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if directory.join("global/pg_control").exists() {
        found.push(directory.to_path_buf());
        return;
    }
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten().filter(|_| depth > 0) {
        add_clusters(&entry.path(), depth - 1, found);
    }
}

struct Pair<'a> {
    programs: [&'a Path; 2],
    scratch: &'a Scratch,
}

impl Pair<'_> {
    /// Answers about a cluster that differ.
    fn differences(&self, cluster: &Path) -> Result<usize, String> {
        let mut count = 0;
        for words in DOCUMENTS {
            let answers = self.answers(words, &[cluster])?;
            count += told(words, cluster, &answers);
        }
        for words in ROWS {
            count += told(words, cluster, &self.rows(words, cluster)?);
        }
        Ok(count)
    }

    /// The comparison of the cluster and its damaged copy.
    fn diff(&self, cluster: &Path, copy: &Path) -> Result<usize, String> {
        let words = &["diff"];
        Ok(told(words, copy, &self.answers(words, &[cluster, copy])?))
    }

    fn answers(&self, words: &[&str], targets: &[&Path]) -> Result<[String; 2], String> {
        let of = |program: &Path| -> Result<String, String> {
            let mut command = Command::new(program);
            command.args(words).args(targets);
            command.args(["--format", "json", "--progress", "none", "--jobs", "1"]);
            let output = shell::output(&mut command)?;
            let code = output.status.code();
            let document = serde_json::from_slice(&output.stdout).map_or_else(
                |_| String::from_utf8_lossy(&output.stderr).into_owned(),
                |document| timeless(document).to_string(),
            );
            Ok(format!("exit {code:?}\n{document}"))
        };
        let [old, new] = self.programs;
        Ok([of(old)?, of(new)?])
    }

    /// Every file that a salvage writes.
    fn rows(&self, words: &[&str], cluster: &Path) -> Result<[String; 2], String> {
        let of = |program: &Path| -> Result<String, String> {
            let to = self.scratch.path().join("rows");
            let mut command = Command::new(program);
            command.args(words).arg(cluster).arg("--to").arg(&to);
            command.args(["--progress", "none", "--jobs", "1"]);
            let code = shell::output(&mut command)?.status.code();
            let mut files = BTreeMap::new();
            add_files(&to, &to, &mut files)?;
            if to.exists() {
                std::fs::remove_dir_all(&to).map_err(at(&to))?;
            }
            let files = files
                .into_iter()
                .map(|(name, text)| format!("{name} {text}\n"));
            Ok(format!("exit {code:?}\n{}", files.collect::<String>()))
        };
        let [old, new] = self.programs;
        Ok([of(old)?, of(new)?])
    }

    /// Names of injuries, spread over the register.
    fn injuries(&self, wanted: u64) -> Result<Vec<String>, String> {
        let listed = shell::capture(Command::new(self.programs[0]).args(["injure", "--list"]))?;
        let names = listed.lines().filter(|line| !line.starts_with(' '));
        let names: Vec<&str> = names
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        let step = names.len() / usize::try_from(wanted.max(1)).unwrap_or(1);
        let spread = names.iter().step_by(step.max(1));
        let count = usize::try_from(wanted).unwrap_or(usize::MAX);
        Ok(spread.take(count).map(|name| (*name).to_owned()).collect())
    }

    /// A copy that is hurt so; nothing where the injury does not fit the cluster.
    fn damaged(
        &self,
        cluster: &Path,
        injury: &str,
        number: u64,
    ) -> Result<Option<PathBuf>, String> {
        let copy = self.scratch.path().join(format!("copy-{number}"));
        let mut command = Command::new(self.programs[0]);
        command.arg("injure").arg(cluster);
        command
            .args(["--injury", injury])
            .arg("--copy-to")
            .arg(&copy);
        let done = shell::output(&mut command)?.status.success();
        if !done && copy.exists() {
            std::fs::remove_dir_all(&copy).map_err(at(&copy))?;
        }
        Ok(done.then_some(copy))
    }
}

fn told(words: &[&str], cluster: &Path, [old, new]: &[String; 2]) -> usize {
    if old == new {
        return 0;
    }
    println!("DIFFERS {} {}", words.join(" "), cluster.display());
    let apart = old.bytes().zip(new.bytes()).position(|(a, b)| a != b);
    let apart = apart.unwrap_or(old.len().min(new.len()));
    for text in [old, new] {
        let bytes = text.as_bytes();
        let shown = bytes.get(apart.saturating_sub(80)..(apart + 200).min(bytes.len()));
        println!("  … {}", String::from_utf8_lossy(shown.unwrap_or_default()));
    }
    1
}

/// Without what the clock says.
fn timeless(mut document: Value) -> Value {
    if let Some(fields) = document.as_object_mut() {
        fields.remove("elapsed_s");
    }
    document
}

fn add_files(
    root: &Path,
    directory: &Path,
    files: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            add_files(root, &path, files)?;
            continue;
        }
        let bytes = std::fs::read(&path).map_err(at(&path))?;
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .display()
            .to_string();
        let text = match serde_json::from_slice::<Value>(&bytes) {
            Ok(document) => timeless(document).to_string(),
            // The page shows the seconds that it took.
            Err(_) if name.ends_with(".html") => String::new(),
            Err(_) => format!("{} bytes, {:x}", bytes.len(), sum(&bytes)),
        };
        files.insert(name, text);
    }
    Ok(())
}

/// FNV-1a: enough to tell two files apart that a bug has made different.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
