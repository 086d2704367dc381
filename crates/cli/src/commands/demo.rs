//! `pgclinic demo`: what damage looks like, what is done about it, and that it can be undone, on a
//! miniature cluster that the program carries. No server is needed.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_model::plural;
use pgclinic_model::shell_word;
use pgclinic_surgery::mark_copy;

use crate::commands::Command;
use crate::env::{Env, Terminal};
use crate::exit::{Exit, Failure};
use crate::quiet_run::{QuietRun, Surroundings, run_quietly};

/// Made by `cargo xtask demo-cluster`.
const CLUSTER: &[u8] = include_bytes!("demo/cluster.tar.zst");

#[derive(Debug, Args)]
struct Arguments {
    /// Keep the cluster and what was saved in this new directory
    ///
    /// By default both lie in a temporary directory, which is removed.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// The command `demo`.
pub struct Demo;

impl Command for Demo {
    fn name(&self) -> &'static str {
        "demo"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Shows damage, rescue and undo on a small cluster of its own")
            .after_help(
                "No server is started, and nothing but that cluster is written.\n\n\
                 Examples:\n  \
                   pgclinic demo\n  \
                   pgclinic demo --to /var/tmp/demo\n\n\
                 Exit codes: 0 all of it went as it should, 2 it did not.",
            )
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        match Arguments::from_arg_matches(matches)?.to {
            Some(folder) => {
                std::fs::create_dir(&folder).map_err(|error| {
                    Failure::new(format!("cannot make {}: {error}", folder.display()))
                })?;
                show(&folder.canonicalize()?, world)?;
                let kept = shell_word(&folder.display().to_string());
                world.write(format!("All of it is kept in {kept}.\n").as_bytes())?;
            }
            None => {
                let folder = tempfile::Builder::new()
                    .prefix("pgclinic-demo-")
                    .tempdir_in(&world.temp_folder)?;
                show(folder.path(), world)?;
                world.write(b"All of it was removed; `pgclinic demo --to DIR` keeps it.\n")?;
            }
        }
        Ok(Exit::Healthy)
    }
}

/// One thing that is shown.
struct Step {
    title: &'static str,
    /// What is typed after `pgclinic`; `CLUSTER` and `ROWS` stand for the two directories.
    typed: &'static str,
    /// With which code it must end.
    exit: u8,
    /// How much of what it says is shown.
    lines: usize,
}

const STEPS: [Step; 7] = [
    Step {
        title: "A sound cluster of PostgreSQL 15, stopped: customers, orders, documents.",
        typed: "check CLUSTER",
        exit: 0,
        lines: 4,
    },
    Step {
        title: "A disk loses one sector of 512 bytes, in the middle of a page of orders.",
        typed: "injure CLUSTER --injury zeroed-sector --relation public.orders --block 12",
        exit: 0,
        lines: 4,
    },
    Step {
        title: "check names place, cause, rows at risk, and what to do in which order.",
        typed: "check CLUSTER",
        exit: 1,
        lines: 30,
    },
    Step {
        title: "inspect takes the page apart.",
        typed: "inspect CLUSTER --relation public.orders --block 12",
        exit: 0,
        lines: 16,
    },
    Step {
        title: "The server refuses that page: salvage writes its rows, and the lost keys.",
        typed: "salvage CLUSTER --to ROWS",
        exit: 1,
        lines: 40,
    },
    Step {
        title: "What was written has a journal, which takes it back.",
        typed: "injure --undo CLUSTER.zeroed-sector.journal",
        exit: 0,
        lines: 1,
    },
    Step {
        title: "The cluster is as it was.",
        typed: "check CLUSTER --level full",
        exit: 0,
        lines: 4,
    },
];

/// Runs every step on a new cluster in this directory.
fn show(folder: &Path, world: &mut Env<'_>) -> Result<(), Failure> {
    let cluster = folder.join("shop");
    unpack(&cluster)?;
    let places = [
        ("CLUSTER", cluster.display().to_string()),
        ("ROWS", folder.join("rows").display().to_string()),
    ];
    for (number, step) in (1..).zip(&STEPS) {
        if world.is_interrupted() {
            return Err(Failure::new("interrupted"));
        }
        let words = step.words(&places);
        let shown: Vec<_> = words.iter().map(|word| shell_word(word)).collect();
        let typed = format!(
            "{number}. {}\n   $ pgclinic {}\n",
            step.title,
            shown.join(" ")
        );
        world.write(typed.as_bytes())?;
        let ran = run(&words, world, folder);
        if ran.exit != step.exit {
            let first = ran.out.lines().chain(ran.err.lines()).next();
            return Err(Failure::new(format!(
                "this ended with {} where it should with {}: {}",
                ran.exit,
                step.exit,
                first.unwrap_or("without a word")
            )));
        }
        world.write(step.shown(&ran.out).as_bytes())?;
    }
    let next = "Next: pgclinic check PGDATA, which only reads, on a cluster of yours; or\n\
         pgclinic drill, which rehearses all damage with a real server.\n";
    world.write(next.as_bytes())
}

impl Step {
    fn words(&self, places: &[(&str, String)]) -> Vec<String> {
        let words = self.typed.split(' ').map(|word| {
            let place = places.iter().find(|(name, _)| word.starts_with(name));
            place.map_or_else(
                || word.to_owned(),
                |(name, path)| word.replacen(name, path, 1),
            )
        });
        words.collect()
    }

    /// The first lines, and how many there are more.
    fn shown(&self, out: &str) -> String {
        let lines: Vec<&str> = out.trim_end().lines().collect();
        let first = lines.iter().take(self.lines);
        let mut shown: String = first.map(|line| format!("   {line}\n")).collect();
        let more = lines.len().saturating_sub(self.lines);
        if more > 0 {
            shown.push_str(&format!(
                "   … and {more}\n",
                more = plural(more, "more line")
            ));
        }
        shown.push('\n');
        shown
    }
}

/// As in the terminal of the caller, without its progress; as high as it takes, so that nothing
/// is repeated at the end of a full screen.
fn run(words: &[String], world: &Env<'_>, temp_folder: &Path) -> QuietRun {
    let around = Surroundings {
        terminal: Terminal {
            stderr: false,
            width: world.terminal.width.saturating_sub(3),
            height: u16::MAX,
            ..world.terminal
        },
        started: world.started,
        host: world.host.clone(),
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run_quietly(&words, &around, temp_folder)
}

/// As private as a server wants its data directory to be.
fn unpack(cluster: &Path) -> Result<(), Failure> {
    std::fs::DirBuilder::new().mode(0o700).create(cluster)?;
    let unpacked = zstd::Decoder::new(CLUSTER)?;
    tar::Archive::new(unpacked).unpack(cluster)?;
    Ok(mark_copy(cluster)?)
}
