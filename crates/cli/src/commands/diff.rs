//! `pgclinic diff A B`: two copies of one cluster, block by block.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_cluster::Cluster;
use pgclinic_diff::{DiffOptions, diff_clusters};
use pgclinic_model::Progress as _;
use pgclinic_model::document::{DIFF_SCHEMA, DiffDocument, DiffVerdict, NotChecked};
use pgclinic_report::Document;
use pgclinic_servers::ConnectionTarget;

use crate::args::{ChainArgs, LoadArgs, SelectionArgs};
use crate::beside_a_server::{self, BesideAServer};
use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, FailOnArgs, Failure, ResultClass};
use crate::foreseen;
use crate::near_names::nothing_selected;
use crate::output::OutputArgs;
use crate::progress::Bar;
use crate::target::{self, Opening};
use crate::undetected_server::{self, UndetectedServer, Watch};

#[derive(Debug, Args)]
struct Arguments {
    /// One copy: data directory, base backup, or server URL
    ///
    /// A data directory, whose server may be running; a base backup, as a directory or as base.tar;
    /// or a running server, postgres://user:password@host:port/database, whose files are read
    /// through SQL.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The other copy
    #[arg(value_name = "B")]
    b: PathBuf,
    /// An incremental backup on top of A, oldest first
    ///
    /// Give the option once for each incremental backup.
    #[arg(long, value_name = "DIR")]
    incremental_a: Vec<PathBuf>,
    /// An incremental backup on top of B, oldest first
    ///
    /// Give the option once for each incremental backup.
    #[arg(long, value_name = "DIR")]
    incremental_b: Vec<PathBuf>,
    /// A server runs on A, though none is visible
    ///
    /// For a server in a container, or on another host that shares the disk: its process cannot be
    /// seen from here.
    #[arg(long)]
    running_a: bool,
    /// A server runs on B, though none is visible
    #[arg(long)]
    running_b: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    fail_on: FailOnArgs,
}

/// The command `diff`.
pub struct Diff;

impl Command for Diff {
    fn name(&self) -> &'static str {
        "diff"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Compares two copies of one cluster, block by block")
            .long_about(
                "Compares two copies of one cluster, block by block: which is older, which is\n\
                 sound, and whether WAL explains the difference",
            )
            .after_help(
                "Copies are a primary and its standby, a cluster and its backup, two snapshots;\n\
                 their servers may run. Nothing is written to either copy.\n\n\
                 Exit codes: 0 the same, or explained by WAL; 1 a contradiction, an unsound copy,\n\
                 or copies that parted, each on its own timeline; 2 could not work; 3 something\n\
                 could not be compared. --fail-on says which of them count.",
            )
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        let start = Instant::now();
        arguments
            .output
            .refuse_early(DIFF_SCHEMA, &arguments.targets())?;
        let servers = [
            target::named_server(&arguments.a, world)?,
            target::named_server(&arguments.b, world)?,
        ];
        let first = [arguments.running_a, arguments.running_b].map(UndetectedServer::told);
        let look = |unseen, world: &mut Env<'_>| arguments.look(&servers, unseen, world);
        let mut document = undetected_server::look(first, world, look)?;
        document.elapsed_s = start.elapsed().as_secs_f64();
        if !arguments.selection.selection().is_everything()
            && document.coverage.blocks == 0
            && document.forks.is_empty()
        {
            let opened = target::open_cluster(&arguments.a, Opening::new(world, None)).ok();
            let copies = format!("{} and {}", document.a.spec, document.b.spec);
            return Err(nothing_selected(
                &arguments.selection,
                &copies,
                opened.as_ref().as_slice(),
            ));
        }
        let exit = arguments
            .fail_on
            .exit(&classes_of(&document), document.interrupted);
        let document = Document::Diff(document);
        Ok(arguments.output.give(document, exit, world))
    }
}

/// The classes that hold for two copies.
fn classes_of(document: &DiffDocument) -> Vec<ResultClass> {
    let contradicts = matches!(
        document.verdict,
        DiffVerdict::Contradictory | DiffVerdict::Parted
    );
    let mut gaps = document.coverage.not_checked.iter();
    let has_gaps = document.verdict == DiffVerdict::Incomplete || gaps.any(|gap| !gap.inherent);
    let mut classes = Vec::new();
    classes.extend(contradicts.then_some(ResultClass::Damage));
    classes.extend(has_gaps.then_some(ResultClass::Incomplete));
    classes
}

/// What is known of running servers on both copies that cannot be seen.
type Unseen = [Option<UndetectedServer>; 2];

/// One of both copies.
struct Side {
    cluster: Cluster,
    spec: String,
    watch: Watch,
    unseen: Option<UndetectedServer>,
}

impl Arguments {
    /// What is only read.
    fn targets(&self) -> Vec<&Path> {
        let copies = [&self.a, &self.b];
        let links = self.incremental_a.iter().chain(&self.incremental_b);
        copies
            .into_iter()
            .chain(links)
            .map(PathBuf::as_path)
            .collect()
    }

    /// One look at both, with what is known of running servers; and what turned out of one
    /// meanwhile.
    fn look(
        &self,
        servers: &[Option<ConnectionTarget>; 2],
        known: Unseen,
        world: &mut Env<'_>,
    ) -> Result<(DiffDocument, Option<Unseen>), Failure> {
        let [server_a, server_b] = servers.each_ref().map(Option::as_ref);
        let [known_a, known_b] = known;
        let a = self.open((&self.a, &self.incremental_a), server_a, known_a, world)?;
        let b = self.open((&self.b, &self.incremental_b), server_b, known_b, world)?;
        let is_running = a.cluster.is_running() || b.cluster.is_running();
        beside_a_server::let_others_go_first(self.load.io_priority, is_running, world);
        let options = DiffOptions {
            threads: self.load.threads(),
            selection: self.selection.selection(),
            spec_a: a.spec.clone(),
            spec_b: b.spec.clone(),
        };
        let bar = Bar::of_bytes(&self.output, world.terminal, &world.interrupted);
        for cluster in [&a.cluster, &b.cluster] {
            foreseen::expect(cluster, &options.selection, 1, &bar);
        }
        bar.foresee();
        let beside = BesideAServer::new(&world.interrupted, None);
        let compared = diff_clusters(&a.cluster, &b.cluster, &options, &bar, &beside);
        bar.finish();
        let mut document = compared?;
        for (name, copy) in [("A", &a), ("B", &b)] {
            let gap = copy.unseen.map(UndetectedServer::gap);
            let gap = gap.map(|gap| NotChecked {
                what: format!("{name}: {}", gap.what),
                ..gap
            });
            document.coverage.not_checked.extend(gap);
        }
        let news = [&a, &b].map(|copy| copy.watch.seen(&copy.cluster));
        let is_news = news.iter().any(Option::is_some);
        let [news_a, news_b] = news;
        Ok((
            document,
            is_news.then_some([news_a.or(known_a), news_b.or(known_b)]),
        ))
    }

    fn open(
        &self,
        (path, links): (&Path, &[PathBuf]),
        server: Option<&ConnectionTarget>,
        known: Option<UndetectedServer>,
        world: &Env<'_>,
    ) -> Result<Side, Failure> {
        let chain = ChainArgs {
            incremental: links.to_vec(),
        };
        let opening = Opening::new(world, Some(&self.load))
            .with_chain(&chain)
            .of_server(server)
            .with_unseen(known)
            .reading_again();
        let cluster = target::open_cluster(path, opening)?;
        Ok(Side {
            unseen: opening.unseen_beside(&cluster, path),
            watch: Watch::begin(&cluster),
            spec: target::spec_of_target(path, &chain, world),
            cluster,
        })
    }
}
