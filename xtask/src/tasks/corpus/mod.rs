//! Odd but legal clusters, made once and kept in a cache; `pgclinic check` must have nothing to say
//! about any of them.
//!
//! ```text
//! recipe ──► CACHE/corpus/RECIPE/CLUSTER ──► pgclinic check at every level ──► nothing above a note
//! ```
//!
//! What programs, packages or locales a recipe needs and this machine lacks is said and skipped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::shell::{self, at};
use crate::task::{Outcome, Task};
use crate::{postgres, repository};

mod contents;
mod debian;
mod judge;
mod recipe;
mod recipes;
mod rows;
mod running;
mod suite;
mod workshop;

use recipe::{Recipe, Unmade};
use workshop::Workshop;

pub(crate) const TASK: Task = Task {
    name: "corpus",
    summary: "checks odd but legal clusters, which must be silent: [--quick] [--only RECIPE] [--level LEVEL] [--fresh] [--list]; --rows: also what salvage gives of them, beside COPY; --running MINUTES [--server BIN]: a server at work instead",
    in_ci: Some(&["--quick"]),
    run,
};

fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    if args.flag("--list") {
        args.finish()?;
        return list();
    }
    let quick = args.flag("--quick");
    let fresh = args.flag("--fresh");
    let rows = args.flag("--rows");
    let only = args.value("--only")?;
    let level = args.value("--level")?;
    let program = args.value("--pgclinic")?;
    let minutes = args.number("--running", 0)?;
    let server = args.value("--server")?;
    args.finish()?;

    let chosen = choose(quick, only.as_deref())?;
    let levels = level
        .as_deref()
        .map_or_else(|| judge::LEVELS.to_vec(), |level| vec![level]);
    let program = match program {
        Some(path) => PathBuf::from(path),
        None => build()?,
    };
    let shop = Workshop::open()?;
    let mut complaints = 0;
    let minutes = if quick && only.is_none() {
        minutes.max(1)
    } else {
        minutes
    };
    if minutes > 0 {
        let time = Duration::from_secs(60 * minutes);
        let tools = shop.chosen(server.as_deref());
        complaints += running::run(tools, &program, &levels, time)?;
    }
    let chosen = if minutes > 0 && !quick {
        Vec::new()
    } else {
        chosen
    };
    for recipe in chosen {
        complaints += visit(&shop, recipe, fresh, &program, &levels)?;
        if rows {
            complaints += visit_rows(&shop, recipe, &program)?;
        }
    }
    match complaints {
        0 => Ok(()),
        count => Err(format!("{count} complaints about healthy clusters")),
    }
}

fn list() -> Outcome {
    for recipe in recipes::RECIPES {
        let quick = if recipe.quick { "quick" } else { "" };
        println!("{:<14} {quick:<6} {}", recipe.name, recipe.summary);
    }
    Ok(())
}

fn choose(quick: bool, only: Option<&str>) -> Result<Vec<&'static Recipe>, String> {
    let wanted =
        |recipe: &&Recipe| (!quick || recipe.quick) && only.is_none_or(|name| name == recipe.name);
    let chosen: Vec<&Recipe> = recipes::RECIPES.iter().filter(wanted).collect();
    match only {
        Some(name) if chosen.is_empty() => Err(format!("no recipe is called {name}; see --list")),
        _ => Ok(chosen),
    }
}

fn build() -> Result<PathBuf, String> {
    let words = ["build", "--release", "-q", "-p", "pgclinic-cli"];
    shell::run(&mut shell::command("cargo", &words))?;
    Ok(repository::target().join("release/pgclinic"))
}

/// Makes the recipe's clusters where they are missing, checks each, and gives the number of
/// complaints.
fn visit(
    shop: &Workshop,
    recipe: &Recipe,
    fresh: bool,
    program: &Path,
    levels: &[&str],
) -> Result<usize, String> {
    let folder = match ensure(shop, recipe, fresh) {
        Ok(folder) => folder,
        Err(Unmade::Lacking(what)) => {
            println!("{:<28} skipped: {what}", recipe.name);
            return Ok(0);
        }
        Err(Unmade::Failed(why)) => {
            println!("{:<28} NOT MADE: {why}", recipe.name);
            return Ok(1);
        }
    };
    let mut complaints = 0;
    for cluster in clusters(&folder)? {
        let name = cluster.strip_prefix(shop.folder()).unwrap_or(&cluster);
        for level in levels {
            let verdict = judge::check(program, &[&cluster], level)?;
            println!("{:<28} {level:<10} {}", name.display(), verdict.line);
            for complaint in &verdict.complaints {
                println!("    {complaint}");
            }
            complaints += verdict.complaints.len();
        }
    }
    Ok(complaints)
}

/// Holds the rows of a recipe's clusters to their servers, and gives the number of complaints.
fn visit_rows(shop: &Workshop, recipe: &Recipe, program: &Path) -> Result<usize, String> {
    let folder = shop.folder().join(recipe.name);
    if !folder.exists() {
        return Ok(0);
    }
    let mut complaints = 0;
    for cluster in clusters(&folder)? {
        let name = cluster.strip_prefix(shop.folder()).unwrap_or(&cluster);
        match rows::compare(shop, program, &cluster) {
            Ok(None) => {}
            Ok(Some(found)) => {
                for line in found.lines {
                    println!("{:<28} {line}", name.display());
                }
                for complaint in &found.complaints {
                    println!("    {complaint}");
                }
                complaints += found.complaints.len();
            }
            Err(Unmade::Lacking(what)) => println!("{:<28} rows skipped: {what}", name.display()),
            Err(Unmade::Failed(why)) => return Err(why),
        }
    }
    Ok(complaints)
}

fn ensure(shop: &Workshop, recipe: &Recipe, fresh: bool) -> Result<PathBuf, Unmade> {
    let finished = shop.folder().join(recipe.name);
    // Two runs must not make the same thing at once.
    let lock = shop.folder().join(format!("{}.lock", recipe.name));
    let lock = File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .map_err(at(&lock))?;
    // Links to tablespaces are absolute, so the folder has its last name from the start.
    let complete = finished.join("complete");
    if finished.exists() && (fresh || !complete.exists()) {
        std::fs::remove_dir_all(&finished).map_err(at(&finished))?;
    }
    if !finished.exists() {
        let start = Instant::now();
        std::fs::create_dir(&finished).map_err(at(&finished))?;
        postgres::give_to_server_user(&finished)?;
        (recipe.make)(shop, &finished)?;
        std::fs::write(&complete, "").map_err(at(&complete))?;
        println!(
            "{:<28} made in {:.0} s",
            recipe.name,
            start.elapsed().as_secs_f64()
        );
    }
    drop(lock);
    Ok(finished)
}

/// The data directories right below `folder`, in order.
fn clusters(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        if path.join("PG_VERSION").exists() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipe_names_are_unique_and_found() {
        for recipe in recipes::RECIPES {
            let found = choose(false, Some(recipe.name)).expect("a name of the register");
            assert_eq!(found.len(), 1, "{}", recipe.name);
        }
        assert!(choose(false, Some("none")).is_err());
    }
}
