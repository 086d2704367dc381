//! `pgclinic generate-docs --rules FILE --articles FILE --gallery FILE --signs FILE`: the index of
//! the rules' pages, the page of the articles, the index of the messages, the page of the signs;
//! with `--messages DIR` also the pages of the messages, for which scenarios are run on a real
//! server.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_check::rules;
use pgclinic_model::Rule;
use pgclinic_servers::{RunAs, Wanted, find};

use crate::commands::Command;
use crate::drill::scenario::{self, PAGES, Page, Scene};
use crate::env::Env;
use crate::exit::{Exit, Failure};

#[derive(Debug, Args)]
struct Arguments {
    /// Where the index of the rules goes
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// Where the page of the articles goes
    #[arg(long, value_name = "FILE")]
    articles: PathBuf,
    /// Where the index of the messages goes
    #[arg(long, value_name = "FILE")]
    gallery: PathBuf,
    /// Where the page of the signs goes
    #[arg(long, value_name = "FILE")]
    signs: PathBuf,
    /// Run every scenario, and write the pages of the messages here
    #[arg(long, value_name = "DIR")]
    messages: Option<PathBuf>,
    /// Only the pages of these names, of the messages
    #[arg(long, value_name = "NAME", requires = "messages")]
    only: Vec<String>,
}

/// The hidden command `generate-docs`.
pub struct GenerateDocs;

impl Command for GenerateDocs {
    fn name(&self) -> &'static str {
        "generate-docs"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Writes the pages of docs that follow from registers")
            .hide(true)
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let pages = Arguments::from_arg_matches(matches)?;
        std::fs::write(pages.rules, index())?;
        std::fs::write(pages.articles, crate::articles::page())?;
        std::fs::write(pages.gallery, scenario::index())?;
        std::fs::write(pages.signs, pgclinic_watch::manual())?;
        if let Some(folder) = pages.messages {
            write_messages(&folder, &pages.only, world)?;
        }
        Ok(Exit::Healthy)
    }
}

/// The major whose messages the pages show.
const MAJOR: u16 = 15;

/// Runs every scenario of the gallery, and writes a page for each message.
fn write_messages(folder: &Path, only: &[String], world: &mut Env<'_>) -> Result<(), Failure> {
    let wanted = Wanted {
        major: Some(MAJOR),
        ..Wanted::default()
    };
    let installation = find(&wanted, &mut |line| world.say(line))?;
    let scene = Scene::make(installation, RunAs::new(None)?)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut without = Vec::new();
    let is_meant = |page: &&Page| only.is_empty() || only.iter().any(|name| name == page.name);
    for page in PAGES.iter().filter(is_meant) {
        world.say(page.name);
        let tasks = scenario::tasks_of(page);
        let runs = scenario::run(&scene, &tasks, threads, &world.interrupted, &|_| {})?;
        let text = scenario::page_of(page, &runs);
        std::fs::write(folder.join(format!("{}.md", page.name)), text)?;
        if !scenario::shows_its_message(page, &runs) {
            without.push(page.name);
        }
    }
    if without.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "no server gave the message of these pages: {}",
        without.join(", ")
    )))
}

const HEAD: &str = "# Rules

Every defect that `pgclinic check` can name, each with its page. `cargo xtask docs` writes this index from the pages themselves, which lie in \
[crates/check/rules](../../crates/check/rules); `pgclinic explain RULE` prints them.

| rule | severity | what |
|---|---|---|
";

fn index() -> String {
    let mut rules: Vec<&Rule> = rules().collect();
    rules.sort_by_key(|rule| rule.name);
    let lines = rules.into_iter().map(|rule| {
        format!(
            "| [{0}](../../crates/check/rules/{0}.md) | {1} | {2} |\n",
            rule.name,
            rule.severity.name(),
            rule.summary
        )
    });
    std::iter::once(HEAD.to_owned()).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_line_of_the_index_leads_to_a_page_of_the_repository() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules/");
        let index = super::index();
        let links = index
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'));
        let mut count = 0;
        for (link, _) in links {
            assert!(std::path::Path::new(docs).join(link).exists(), "{link}");
            count += 1;
        }
        assert!(count > 100, "{count} links");
    }
}
