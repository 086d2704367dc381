//! `pgclinic measure TARGET`: exact figures of bloat and index layout, from the files.

mod catalog_cost;
pub(super) mod traffic;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_measure::{MeasureOptions, growth, measure_cluster};
use pgclinic_model::document::{MEASURE_SCHEMA, MeasureDocument};
use pgclinic_report::Document;
use pgclinic_servers::ConnectionTarget;

use crate::args::{ChainArgs, LoadArgs, RunningArgs, SelectionArgs};
use crate::beside_a_server;
use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, FailOnArgs, Failure, ResultClass};
use crate::foreseen;
use crate::near_names::nothing_selected;
use crate::output::OutputArgs;
use crate::progress::Bar;
use crate::server_facts;
use crate::target::{self, Opening};
use crate::undetected_server::{self, UndetectedServer, Watch};

#[derive(Debug, Args)]
struct Arguments {
    /// Data directory, base backup, or server URL
    ///
    /// A data directory, whose server may be running; a base backup, as a directory or as base.tar;
    /// or a running server, postgres://user:password@host:port/database, whose files are read
    /// through SQL.
    ///
    /// Where none is given it is $PGDATA.
    #[arg(value_name = "TARGET", required = false)]
    target: PathBuf,
    #[command(flatten)]
    chain: ChainArgs,
    /// Read this share of each large relation, such as 1%
    ///
    /// Figures then come with intervals.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    sample: Option<f64>,
    /// Try pglz, lz4 and zstd on stored TOASTed values
    ///
    /// Reports bytes and time, and how many values would stay in their rows.
    #[arg(long)]
    try_compression: bool,
    /// Compare with an older measurement, in JSON
    ///
    /// The measurement is of the same cluster. Reports growth a day, and when limits are reached.
    #[arg(long, value_name = "FILE")]
    since: Option<PathBuf>,
    #[command(flatten)]
    running: RunningArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    fail_on: FailOnArgs,
}

const CATALOG_COST: &str = "catalog-cost";

/// The command `measure`.
pub struct MeasureCommand;

impl Command for MeasureCommand {
    fn name(&self) -> &'static str {
        "measure"
    }

    fn arguments(&self) -> ClapCommand {
        let catalog_cost = catalog_cost::Arguments::augment_args(ClapCommand::new(CATALOG_COST))
            .about("Counts the catalog rows that a script's tables write")
            .long_about(
                "Counts the rows that a script's tables write into the system catalogs,\n\
                 on a server of its own",
            );
        Arguments::augment_args(ClapCommand::new(self.name()))
            .subcommand(catalog_cost)
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true)
            .about("Measures bloat and index layout exactly, from a cluster's files")
            .after_help(
                "Figures that pgstattuple, pgstatindex and bt_multi_page_stats give too carry\n\
                 their names and are equal to theirs. While a server runs, figures are those of\n\
                 the moment in which each relation was read.\n\n\
                 Exit codes: 0 everything was measured, 2 could not work, 3 something could not\n\
                 be measured. --fail-on says whether that counts.",
            )
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        if let Some((CATALOG_COST, matches)) = matches.subcommand() {
            let arguments = catalog_cost::Arguments::from_arg_matches(matches)?;
            return catalog_cost::run(&arguments, world);
        }
        let arguments = Arguments::from_arg_matches(matches)?;
        let start = Instant::now();
        let targets = arguments.chain.behind(&arguments.target);
        arguments.output.refuse_early(MEASURE_SCHEMA, &targets)?;
        let older = arguments.since.as_deref().map(older).transpose()?;
        let named = target::named_server(&arguments.target, world)?;
        let first = UndetectedServer::told(arguments.running.running);
        let look = |unseen, world: &mut Env<'_>| arguments.look(named.as_ref(), unseen, world);
        let mut document = undetected_server::look(first, world, look)?;
        if let (Some(older), Some(path)) = (&older, &arguments.since) {
            let grown = growth(older, &document);
            let refused =
                |why| Failure::new(format!("cannot compare with {}: {why}", path.display()));
            document.growth = Some(grown.map_err(refused)?);
        }
        document.elapsed_s = start.elapsed().as_secs_f64();
        if document.relations.is_empty() && !document.interrupted {
            let spec = &document.target.spec;
            let opened = target::open_cluster(&arguments.target, Opening::new(world, None)).ok();
            return Err(nothing_selected(
                &arguments.selection,
                spec,
                opened.as_ref().as_slice(),
            ));
        }
        let classes = class_of(&document);
        let exit = arguments
            .fail_on
            .exit(classes.as_slice(), document.interrupted);
        let document = Document::Measure(document);
        Ok(arguments.output.give(document, exit, world))
    }
}

impl Arguments {
    /// One look at the target, with what is known of a running server; and what turned out of one
    /// meanwhile.
    fn look(
        &self,
        named: Option<&ConnectionTarget>,
        unseen: Option<UndetectedServer>,
        world: &mut Env<'_>,
    ) -> Result<(MeasureDocument, Option<Option<UndetectedServer>>), Failure> {
        let opening = Opening::new(world, Some(&self.load))
            .with_chain(&self.chain)
            .of_server(named)
            .with_unseen(unseen)
            .reading_again();
        let cluster = target::open_cluster(&self.target, opening)?;
        let unseen = opening.unseen_beside(&cluster, &self.target);
        let watch = Watch::begin(&cluster);
        beside_a_server::let_others_go_first(self.load.io_priority, cluster.is_running(), world);
        let options = MeasureOptions {
            threads: self.load.threads(),
            selection: self.selection.selection(),
            spec: target::spec_of_target(&self.target, &self.chain, world),
            sample_percent: self.sample,
            memory: self.load.memory_plan(),
            trial_clock: self.try_compression.then_some(clock),
            server: server_facts::of(&cluster, named),
        };
        let bar = Bar::of_bytes(&self.output, world.terminal, &world.interrupted);
        if options.sample_percent.is_none() {
            foreseen::tell(&cluster, &options.selection, 1, &bar);
        }
        let mut document = measure_cluster(&cluster, &options, &bar);
        bar.finish();
        document.notes.extend(unseen.map(UndetectedServer::note));
        Ok((document, watch.seen(&cluster).map(Some)))
    }
}

/// Incomplete where something that is there could not be measured.
pub(super) fn class_of(document: &MeasureDocument) -> Option<ResultClass> {
    let mut relations = document.relations.iter();
    let mut gaps = document.coverage.not_checked.iter();
    let has_gaps = relations.any(|own| own.pages_not_measured > 0) || gaps.any(|gap| !gap.inherent);
    has_gaps.then_some(ResultClass::Incomplete)
}

/// Time that only goes forward.
fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// An older measurement.
fn older(path: &Path) -> Result<MeasureDocument, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    match Document::from_json(&bytes) {
        Ok(Document::Measure(document)) => Ok(document),
        Ok(other) => Err(Failure::new(format!(
            "{} is no measurement but {}",
            path.display(),
            other.schema()
        ))),
        Err(error) => Err(Failure::new(format!("{}: {error}", path.display()))),
    }
}

/// `1%`, `0.5 %` or `1`.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    number
        .filter(|share| *share > 0.0 && *share <= 100.0)
        .ok_or_else(|| format!("{text:?} is no share; write 1%"))
}
