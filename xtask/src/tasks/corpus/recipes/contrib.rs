//! What the suites of the contrib modules leave behind, each in a database of its own.

use std::path::Path;

use super::super::debian::{self, Debian};
use super::super::recipe::{Recipe, Unmade};
use super::super::suite::{Driver, SETTINGS, Suite};
use super::super::workshop::Workshop;
use crate::postgres::{Server, Tools};
use crate::shell::at;

pub(super) const RECIPE: Recipe = Recipe {
    name: "contrib",
    summary: "after the suites of all contrib modules of 15",
    quick: false,
    make,
};

fn make(shop: &Workshop, folder: &Path) -> Result<(), Unmade> {
    let tools = shop.fifteen()?;
    let debian = debian::ensure(shop)?;
    let cluster = folder.join("stopped");
    tools.new_cluster(&cluster)?;
    let mut settings = SETTINGS.to_vec();
    settings.push("shared_preload_libraries=pg_stat_statements");
    let server = tools.start(&cluster, &settings)?;
    let contrib = debian.source.join("contrib");
    let mut modules = Vec::new();
    for entry in std::fs::read_dir(&contrib).map_err(at(&contrib))? {
        modules.push(entry.map_err(at(&contrib))?.path());
    }
    modules.sort();
    for module in modules.iter().filter(|module| module.join("sql").is_dir()) {
        run(&tools, &debian, &server, module, folder)?;
    }
    server.stop()?;
    Ok(())
}

fn run(
    tools: &Tools,
    debian: &Debian,
    server: &Server<'_>,
    module: &Path,
    folder: &Path,
) -> Result<(), String> {
    let name = module
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let makefile = std::fs::read_to_string(module.join("Makefile")).unwrap_or_default();
    let mut arguments = vec![format!("--dbname=contrib_{name}")];
    let options = values(&makefile, "REGRESS_OPTS");
    arguments.extend(
        options
            .into_iter()
            .filter(|option| option.starts_with("--load-extension=")),
    );
    let tests = values(&makefile, "REGRESS");
    if tests.is_empty() {
        return Ok(());
    }
    arguments.extend(tests);
    let suite = Suite {
        driver: Driver::Regress,
        tools,
        debian,
        input: module.to_path_buf(),
        output: folder.join("results").join(&name),
        arguments,
    };
    // A module that is not installed (plpython, sepgsql) cannot be loaded, and its suite ends
    // there.
    let _ = suite.run(server);
    Ok(())
}

/// The words that a makefile gives a variable, over all its assignments.
fn values(makefile: &str, variable: &str) -> Vec<String> {
    let joined = makefile.replace("\\\n", " ");
    let mut words = Vec::new();
    for line in joined.lines() {
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        if name.trim().trim_end_matches(['+', ':']).trim() == variable {
            words.extend(value.split_whitespace().map(str::to_string));
        }
    }
    words.retain(|word| !word.contains('$'));
    words
}

#[cfg(test)]
mod tests {
    use super::values;

    #[test]
    fn assignments_continue_over_lines_and_add_up() {
        let makefile = "REGRESS = a \\\n\tb\nREGRESS += c $(d)\nREGRESS_OPTS = --x=1\n";
        assert_eq!(values(makefile, "REGRESS"), ["a", "b", "c"]);
        assert_eq!(values(makefile, "REGRESS_OPTS"), ["--x=1"]);
    }
}
