//! A short run of every fuzz target, and of the canary, which must be caught.
//!
//! The seed is the commit, so that a run can be repeated and no two commits look at the same
//! inputs.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use crate::args::Args;
use crate::shell::at;
use crate::task::{Outcome, Task};
use crate::{repository, shell};

pub(crate) const TASK: Task = Task {
    name: "fuzz-smoke",
    summary: "runs each fuzz target for --seconds N (20); the canary must be caught",
    in_ci: Some(&[]),
    run,
};

/// Holds a panic that a fuzzer finds in seconds; finding none means that fuzzing finds nothing.
const CANARY: &str = "canary";
const CANARY_SECONDS: u64 = 60;

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let seconds = args.number("--seconds", 20)?;
    args.finish()?;

    ensure_tool()?;
    let targets = targets()?;
    if !targets.iter().any(|target| target == CANARY) {
        return Err("the canary is missing from fuzz/fuzz_targets".into());
    }
    let seed = seed()?;
    shell::run(cargo_fuzz("build").args(["--target-dir"]).arg(target_dir()))?;
    canary_is_caught(seed)?;
    let real = targets.iter().filter(|target| *target != CANARY);
    run_each(real, |target| holds(target, seed, seconds))
}

/// As many at once as there are processors, since a fuzzer uses one.
fn run_each<'t>(
    targets: impl Iterator<Item = &'t String> + Send,
    holds: impl Fn(&str) -> Outcome + Sync,
) -> Outcome {
    let left = Mutex::new(targets);
    let next = || left.lock().expect("no panic").next();
    let work = || std::iter::from_fn(next).try_for_each(|target| holds(target));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut ended = started.into_iter().map(|worker| worker.join());
        ended.try_for_each(|outcome| outcome.expect("no panic"))
    })
}

fn holds(target: &str, seed: u32, seconds: u64) -> Outcome {
    let output = shell::output(&mut fuzz(target, seed, seconds)?)?;
    if !output.status.success() {
        return Err(format!("{target} fell over\n{}", shell::both(&output)));
    }
    println!("{target:<14} {}", last_figures(&shell::both(&output)));
    Ok(())
}

fn canary_is_caught(seed: u32) -> Outcome {
    let output = shell::output(&mut fuzz(CANARY, seed, CANARY_SECONDS)?)?;
    let text = shell::both(&output);
    if output.status.success() || !text.contains("the canary sings") {
        return Err(format!(
            "the fuzzer did not find the canary's panic, so it finds nothing\n{text}"
        ));
    }
    println!("{CANARY:<14} caught, as it must be");
    Ok(())
}

fn fuzz(target: &str, seed: u32, seconds: u64) -> Result<Command, String> {
    let corpus = fresh_corpus(target)?;
    let seeds = repository::root().join("fuzz/seeds").join(target);
    let artifacts = target_dir().join("artifacts").join(target);
    std::fs::create_dir_all(&artifacts).map_err(at(&artifacts))?;

    let mut command = cargo_fuzz("run");
    command
        .arg("--target-dir")
        .arg(target_dir())
        .arg(target)
        .arg(corpus);
    if seeds.exists() {
        command.arg(seeds);
    }
    command.arg("--").args([
        format!("-seed={seed}"),
        format!("-max_total_time={seconds}"),
        format!("-artifact_prefix={}/", artifacts.display()),
        "-max_len=8192".into(),
        "-timeout=5".into(),
        "-rss_limit_mb=1024".into(),
    ]);
    Ok(command)
}

/// An empty folder for what this run learns: the same commit starts from the same place.
fn fresh_corpus(target: &str) -> Result<PathBuf, String> {
    let corpus = target_dir().join("corpus").join(target);
    if corpus.exists() {
        std::fs::remove_dir_all(&corpus).map_err(at(&corpus))?;
    }
    std::fs::create_dir_all(&corpus).map_err(at(&corpus))?;
    Ok(corpus)
}

/// Coverage feedback needs an unstable flag; the bootstrap variable lets a stable compiler take it.
/// Memory is safe by construction here, so no sanitizer slows the search down.
fn cargo_fuzz(verb: &str) -> Command {
    let mut command = shell::command(
        "cargo",
        &["fuzz", verb, "--fuzz-dir", "fuzz", "--sanitizer", "none"],
    );
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("CARGO_TARGET_DIR");
    command
}

fn target_dir() -> PathBuf {
    repository::target().join("fuzz")
}

fn targets() -> Result<Vec<String>, String> {
    let folder = repository::root().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(at(&folder))? {
        let path = entry.map_err(at(&folder))?.path();
        names.extend(
            path.file_stem()
                .map(|name| name.to_string_lossy().into_owned()),
        );
    }
    names.sort();
    Ok(names)
}

fn seed() -> Result<u32, String> {
    let commit = repository::commit()?;
    let digits = commit
        .get(..8)
        .ok_or_else(|| format!("{commit} is no commit hash"))?;
    u32::from_str_radix(digits, 16).map_err(|error| format!("{commit} is no commit hash: {error}"))
}

fn ensure_tool() -> Outcome {
    let present = shell::output(&mut shell::command("cargo", &["fuzz", "--version"]))?;
    if present.status.success() {
        return Ok(());
    }
    let mut install = shell::command("cargo", &["install", "cargo-fuzz", "--locked"]);
    install.env("CARGO_TARGET_DIR", target_dir().join("tool"));
    shell::run(&mut install).map_err(|error| {
        format!("cargo-fuzz is missing and could not be installed (is there a network?): {error}")
    })
}

/// The fuzzer's closing figures, such as `Done 1234 runs in 21 second(s)`.
fn last_figures(text: &str) -> &str {
    text.lines()
        .rev()
        .find(|line| line.starts_with("Done "))
        .unwrap_or("done")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_its_line_in_the_manifest() {
        let manifest = repository::root().join("fuzz/Cargo.toml");
        let manifest = std::fs::read_to_string(&manifest).expect("fuzz has a manifest");
        for target in targets().expect("fuzz has targets") {
            assert!(
                manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")),
                "{target} is not listed"
            );
        }
    }

    #[test]
    fn figures_are_found_behind_the_noise() {
        assert_eq!(
            last_figures("#1 NEW\nDone 7 runs in 1 second(s)\n\n"),
            "Done 7 runs in 1 second(s)"
        );
    }
}
