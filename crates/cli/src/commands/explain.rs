//! `pgclinic explain RULE` or `"server message" [PGDATA]`: the textbook, offline.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_check::{rule_named, rules};
use pgclinic_explain::server_messages::{
    FIRST_LINE, SERVER_MESSAGES, explain_message, explain_rule, message_named, render,
    render_unknown, resolve,
};

use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::target::{self, Opening};

#[derive(Debug, Args)]
struct Arguments {
    /// The name of a rule, or a server's message as it was printed
    #[arg(value_name = "RULE|MESSAGE", required_unless_present = "list")]
    text: Option<String>,
    /// The cluster that the message is about, or its server's URL
    ///
    /// The server of a data directory may be running. A URL is
    /// postgres://user:password@host:port/database. With either, the names in the message and the
    /// rows at risk are reported.
    #[arg(value_name = "PGDATA")]
    pgdata: Option<PathBuf>,
    /// List every rule and every family of messages
    #[arg(long)]
    list: bool,
}

/// The command `explain`.
pub struct Explain;

impl Command for Explain {
    fn name(&self) -> &'static str {
        "explain"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Explains a finding or a server's message, and says what to do")
            .after_help("Examples:\n  pgclinic explain lower-beyond-upper\n  pgclinic explain 'invalid page in block 7 of relation base/5/16384' PGDATA")
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        let text = arguments.text.as_deref().unwrap_or_default();
        let (answer, exit) = match rule_named(text) {
            _ if arguments.list => (list(), Exit::Healthy),
            Some(rule) => (
                format!("{FIRST_LINE}\n\n{}", explain_rule(rule)),
                Exit::Healthy,
            ),
            None => explained(text, arguments.pgdata.as_deref(), world)?,
        };
        write!(world.stdout, "{answer}")
            .map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))?;
        Ok(exit)
    }
}

fn list() -> String {
    let rules = rules().map(|rule| {
        format!(
            "{:32} {:8} {}\n",
            rule.name,
            rule.severity.name(),
            rule.summary
        )
    });
    let messages = SERVER_MESSAGES
        .iter()
        .map(|message| format!("{:32} message\n", message.name));
    rules.chain(messages).collect()
}

/// A message, or the name of a family of messages, or nothing that is known.
fn explained(
    text: &str,
    pgdata: Option<&std::path::Path>,
    world: &mut Env<'_>,
) -> Result<(String, Exit), Failure> {
    if let Some(family) = message_named(text) {
        return Ok((
            format!("{FIRST_LINE}\n\n# {}\n\n{}\n", family.name, family.meaning),
            Exit::Healthy,
        ));
    }
    if !text.contains(char::is_whitespace) {
        let why = "`pgclinic explain --list` names all; a server's message is quoted as a whole";
        return Err(Failure::new(format!("there is no rule {text:?}: {why}")));
    }
    let found = explain_message(text);
    let Some(best) = found.first() else {
        return Ok((render_unknown(), Exit::Failed));
    };
    let resolved = match pgdata {
        Some(pgdata) => {
            let named = target::named_server(pgdata, world)?;
            // Pages that a server is writing are read again before anybody counts their rows.
            let opening = Opening::new(world, None)
                .of_server(named.as_ref())
                .reading_again();
            Some(resolve(
                &target::open_cluster(pgdata, opening)?,
                &best.facts,
            ))
        }
        None => None,
    };
    Ok((render(best, resolved.as_ref()), Exit::Healthy))
}
