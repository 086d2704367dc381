//! Memory of `pgclinic watch` over a simulated day: fifty databases on three servers of different
//! majors, with its endpoint, its page and alerts; one server is away for a while.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::table::machine;
use super::watched::{self, Watch};
use crate::args::Args;
use crate::postgres;
use crate::shell::at;
use crate::task::Outcome;

const SERVERS: usize = 3;
const TARGETS: usize = 50;
/// Seconds that pass between two samples by the clock of the alerts.
const STEP_S: u64 = 10;
const DAY_S: u64 = 86_400;
/// What is looked for.
const LIMIT_MIB: u64 = 200;
const SETTINGS: &[&str] = &["fsync=off", "max_connections=60", "shared_buffers=32MB"];

/// Between two looks, and between two requests for pages.
const LOOK: Duration = Duration::from_secs(5);
const LOOKS_PER_REQUEST: u64 = 6;
/// The first server is away within these looks.
const AWAY: std::ops::Range<u64> = 24..48;

/// What was seen at one moment.
struct Look {
    at_s: u64,
    resident_kib: u64,
    metrics_bytes: usize,
    page_bytes: usize,
}

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let step_s = args.number("--step", STEP_S)?.max(1);
    let samples = args.number("--samples", DAY_S / step_s)?.max(1);
    let program = args.value("--pgclinic")?.map(PathBuf::from);
    args.finish()?;
    let program = program.map_or_else(super::check::build, Ok)?;

    let scratch = postgres::scratch("bench-watch")?;
    let installations = watched::installations(SERVERS)?;
    let per_server = TARGETS.div_ceil(SERVERS);
    let mut servers = Vec::new();
    for number in 0..SERVERS {
        let tools = &installations[number % installations.len()];
        let folder = scratch.path().join(format!("s{number}"));
        servers.push((
            tools,
            folder.clone(),
            watched::start(tools, &folder, SETTINGS, per_server)?,
        ));
    }
    let of_servers = (0..per_server).flat_map(|database| {
        let servers = servers.iter();
        servers.map(move |(.., server)| watched::url(server, &format!("d{database}")))
    });
    let mut words: Vec<String> = of_servers.take(TARGETS).collect();
    let messages = scratch.path().join("messages");
    let step = step_s.to_string();
    words.extend(["--interval", "0", "--clock-step", &step, "--samples"].map(str::to_owned));
    words.push(samples.to_string());
    words.extend([
        "--alert-command".to_owned(),
        format!("cat >>'{}'", messages.display()),
    ]);

    let mut watch = Watch::start(&program, &words)?;
    let begun = Instant::now();
    let mut looks = Vec::new();
    let mut away = None;
    let mut number = 0;
    while !watch.is_over()? {
        std::thread::sleep(LOOK);
        number += 1;
        if number == AWAY.start {
            let (tools, folder, server) = servers.remove(0);
            server.stop()?;
            away = Some((tools, folder));
        }
        if number == AWAY.end
            && let Some((tools, folder)) = away.take()
        {
            let server = tools.start(&folder, SETTINGS)?;
            servers.push((tools, folder, server));
        }
        // Its last sample ends it between two looks.
        let Some(resident_kib) = resident_kib(watch.pid()) else {
            break;
        };
        let is_asked = number % LOOKS_PER_REQUEST == 0;
        let pages = ["/metrics", "/"].map(|path| {
            if is_asked {
                watch.bytes_of(path)
            } else {
                Ok(0)
            }
        });
        let [Ok(metrics_bytes), Ok(page_bytes)] = pages else {
            continue;
        };
        looks.push(Look {
            at_s: begun.elapsed().as_secs(),
            resident_kib,
            metrics_bytes,
            page_bytes,
        });
    }
    let wall_s = begun.elapsed().as_secs().max(1);
    println!("{}\n", machine());
    println!(
        "{TARGETS} databases of {SERVERS} servers ({} majors), {samples} samples, each counted as {step_s} s: {:.1} hours in {wall_s} s; \
         {} messages about alerts.\n",
        installations.len(),
        (samples * step_s) as f64 / 3600.0,
        messages_in(&messages)?,
    );
    table(&looks, wall_s)
}

/// Ten rows over the time, and the peak.
fn table(looks: &[Look], wall_s: u64) -> Outcome {
    println!("| part of the time | memory at most | `/metrics` at most | `/` at most |");
    println!("|--:|--:|--:|--:|");
    for tenth in 0..10 {
        let within = |look: &&Look| (look.at_s * 10 / wall_s).min(9) == tenth;
        let own: Vec<&Look> = looks.iter().filter(within).collect();
        let most =
            |figure: fn(&Look) -> u64| own.iter().map(|look| figure(look)).max().unwrap_or(0);
        println!(
            "| {} % | {} MiB | {:.1} MB | {:.1} MB |",
            (tenth + 1) * 10,
            most(|look| look.resident_kib) >> 10,
            most(|look| look.metrics_bytes as u64) as f64 / 1e6,
            most(|look| look.page_bytes as u64) as f64 / 1e6,
        );
    }
    let peak = looks
        .iter()
        .map(|look| look.resident_kib)
        .max()
        .unwrap_or(0)
        >> 10;
    println!("\npeak {peak} MiB");
    if peak < LIMIT_MIB {
        Ok(())
    } else {
        Err(format!("{peak} MiB are not below {LIMIT_MIB} MiB"))
    }
}

fn resident_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn messages_in(file: &Path) -> Result<usize, String> {
    if !file.exists() {
        return Ok(0);
    }
    let text = std::fs::read_to_string(file).map_err(at(file))?;
    Ok(text.matches("pgclinic.alert/1").count())
}
