//! `pgclinic generate-docs --rules FILE --articles FILE`: the index of the rules' pages, and the
//! page of the articles.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_check::rules;
use pgclinic_model::Rule;

use crate::commands::Command;
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

    fn run(&self, matches: &ArgMatches, _world: &mut Env<'_>) -> Result<Exit, Failure> {
        let pages = Arguments::from_arg_matches(matches)?;
        std::fs::write(pages.rules, index())?;
        std::fs::write(pages.articles, crate::articles::page())?;
        Ok(Exit::Healthy)
    }
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
