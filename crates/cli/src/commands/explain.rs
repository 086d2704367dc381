//! `pgclinic explain RULE`, `"server message" [PGDATA]` or `< postgresql.log`: the textbook,
//! offline.

use std::io;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_check::{rule_named, rules};
use pgclinic_cluster::Cluster;
use pgclinic_explain::server_messages::log::{LogEntries, LogSummary};
use pgclinic_explain::server_messages::{
    FIRST_LINE, Facts, Match, SERVER_MESSAGES, explain_message, explain_rule, message_named, names,
    render, render_unknown, resolve,
};
use pgclinic_report::{Options, write_manual};

use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::near_names::meant;
use crate::output::{PIPE_COLUMNS, closed_pipe};
use crate::target::{self, Opening};

/// Entries after which somebody is asked whether to go on.
const ENTRIES_BETWEEN_LOOKS: u64 = 1024;

#[derive(Debug, Args)]
struct Arguments {
    /// A rule, setting, tool or message as printed; - reads stdin
    ///
    /// Without it, or with -, a log is read from stdin: stderr logs with any
    /// log_line_prefix, csvlog, jsonlog, and what the programs beside the
    /// server print. Each message about storage is reported once per cause.
    #[arg(value_name = "RULE|MESSAGE|-")]
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
            .about("Explains a finding, a message or a whole log, and what to do")
            .after_help("Examples:\n  pgclinic explain lower-beyond-upper\n  pgclinic explain zero_damaged_pages\n  pgclinic explain 'invalid page in block 7 of relation base/5/16384' PGDATA\n  pgclinic explain - PGDATA < postgresql.log")
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        let pgdata = arguments.pgdata.as_deref();
        let (answer, exit) = match arguments.text.as_deref() {
            _ if arguments.list => (list(), Exit::Healthy),
            None if world.terminal.stdin => return Err(nothing_to_explain()),
            None | Some("-") => (explained_log(pgdata, world)?, Exit::Healthy),
            Some(text) => explained(text, pgdata, world)?,
        };
        written(&answer, arguments.list, world)
            .or_else(closed_pipe)
            .map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))?;
        Ok(exit)
    }
}

/// Lists are lines already; all other answers are pages of Markdown.
fn written(answer: &str, is_list: bool, world: &mut Env<'_>) -> io::Result<()> {
    if is_list {
        return world.stdout.write_all(answer.as_bytes());
    }
    let terminal = world.terminal;
    let options = Options {
        color: terminal.may_be_coloured(),
        width: if terminal.stdout {
            terminal.width
        } else {
            PIPE_COLUMNS
        },
        ..Options::default()
    };
    write_manual(answer, &options, &mut *world.stdout)
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
    let messages = SERVER_MESSAGES.iter().map(|message| {
        let line = format!("{:32} message  {}", message.name, message.terms.join(", "));
        format!("{}\n", line.trim_end())
    });
    rules.chain(messages).collect()
}

fn nothing_to_explain() -> Failure {
    Failure::new(
        "nothing to explain: name a rule or a setting, quote a server's message, or hand over a log: \
         `pgclinic explain < postgresql.log`",
    )
}

/// A rule, a page by its name or term, a message, or nothing that is known.
fn explained(
    text: &str,
    pgdata: Option<&Path>,
    world: &mut Env<'_>,
) -> Result<(String, Exit), Failure> {
    if let Some(rule) = rule_named(text) {
        let page = format!("{FIRST_LINE}\n\n{}", explain_rule(rule));
        return Ok((page, Exit::Healthy));
    }
    if let Some(message) = message_named(text) {
        let facts = Facts::default();
        let page = render(&Match { message, facts }, None);
        return Ok((page, Exit::Healthy));
    }
    match explain_message(text).first() {
        Some(best) => Ok((page_of(best, pgdata, world)?, Exit::Healthy)),
        None if text.contains(char::is_whitespace) => Ok((render_unknown(), Exit::Failed)),
        None => Err(unknown_name(text)),
    }
}

/// A misspelt name, with those that it may have been meant for.
fn unknown_name(text: &str) -> Failure {
    let known = rules().map(|rule| rule.name).chain(names());
    let meant = meant(text, known);
    let why = "`pgclinic explain --list` names all; a server's message is quoted as a whole";
    Failure::new(format!("there is no rule {text:?}: {meant}{why}"))
}

/// The page of a message, with what the cluster knows of it.
fn page_of(found: &Match, pgdata: Option<&Path>, world: &mut Env<'_>) -> Result<String, Failure> {
    let cluster = opened(pgdata, world)?;
    let resolved = cluster.map(|cluster| resolve(&cluster, &found.facts));
    Ok(render(found, resolved.as_ref()))
}

fn opened(pgdata: Option<&Path>, world: &mut Env<'_>) -> Result<Option<Cluster>, Failure> {
    let Some(pgdata) = pgdata else {
        return Ok(None);
    };
    let named = target::named_server(pgdata, world)?;
    // Pages that a server is writing are read again before anybody counts their rows.
    let opening = Opening::new(world, None)
        .of_server(named.as_ref())
        .reading_again();
    target::open_cluster(pgdata, opening).map(Some)
}

/// The account of a log on stdin. A paste that holds one message gets the whole page.
fn explained_log(pgdata: Option<&Path>, world: &mut Env<'_>) -> Result<String, Failure> {
    let (summary, lines) = read_log(world)?;
    if let Some(found) = summary.only_entry() {
        return page_of(found, pgdata, world);
    }
    let cluster = opened(pgdata, world)?;
    Ok(summary.render(lines, |facts| {
        cluster.as_ref().map(|cluster| resolve(cluster, facts))
    }))
}

/// Reads stdin to its end, or to where somebody interrupts: what was read so far is an answer too.
fn read_log(world: &mut Env<'_>) -> Result<(LogSummary, u64), Failure> {
    let mut summary = LogSummary::default();
    let mut entries = LogEntries::new(&mut *world.stdin);
    let mut read: u64 = 0;
    let failed = |error| Failure::new(format!("cannot read stdin: {error}"));
    while let Some(entry) = entries.next_entry().map_err(failed)? {
        summary.add(&entry);
        read += 1;
        let is_time_to_look = read.is_multiple_of(ENTRIES_BETWEEN_LOOKS);
        if is_time_to_look && world.interrupted.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
    }
    let lines = entries.lines_read();
    Ok((summary, lines))
}
