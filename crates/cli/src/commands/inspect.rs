//! `pgclinic inspect TARGET --relation NAME --block N`: a page taken apart.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_check::check::ForkCx;
use pgclinic_check::{check_page, fork_cx};
use pgclinic_cluster::{
    Catalog, Cluster, DatabaseContext, ForkFiles, fork_place, read_block, selected, target_of,
};
use pgclinic_explain::anatomy::{AnatomyCx, PageKind, page_anatomy};
use pgclinic_format::datum::TypeInfo;
use pgclinic_format::{Fork, Oid, Page};
use pgclinic_model::document::{Coverage, InspectDocument, Target, Tool};
use pgclinic_model::plural;
use pgclinic_model::{Level, Place};
use pgclinic_report::{Document, INSPECT};
use pgclinic_servers::ConnectionTarget as Server;
use pgclinic_source::{Presence, Source};

use crate::args::{ChainArgs, ForkName, RunningArgs, SelectionArgs};
use crate::commands::Command;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::near_names::why_nothing;
use crate::output::OutputArgs;
use crate::target::{self, BareFile, OpenTarget, Opening};
use crate::undetected_server::{self, UndetectedServer, Watch};

#[derive(Debug, Args)]
struct Arguments {
    /// Data directory, base backup, relation file, or server URL
    ///
    /// A data directory, whose server may be running; a base backup, as a directory or as base.tar;
    /// one relation file; or a running server, postgres://user:password@host:port/database, whose
    /// files are read through SQL.
    ///
    /// Where none is given it is $PGDATA.
    #[arg(value_name = "TARGET", required = false)]
    target: PathBuf,
    #[command(flatten)]
    chain: ChainArgs,
    /// The relation, as schema.name; not needed for a file
    #[arg(long, value_name = "NAME")]
    relation: Option<String>,
    /// The relation with this relfilenumber
    #[arg(long, value_name = "NUMBER", conflicts_with = "relation")]
    filenode: Option<u32>,
    /// The database, where several have such a relation
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// The block, counted through all segments
    #[arg(long, value_name = "N", default_value_t = 0)]
    block: u32,
    /// The fork
    #[arg(long, value_enum, value_name = "FORK", default_value_t = ForkName::Main)]
    fork: ForkName,
    /// Longest value that is shown, in bytes
    #[arg(long, value_name = "N", default_value_t = 400)]
    value_bytes: usize,
    #[command(flatten)]
    running: RunningArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The command `inspect`.
pub struct Inspect;

impl Command for Inspect {
    fn name(&self) -> &'static str {
        "inspect"
    }

    fn arguments(&self) -> ClapCommand {
        Arguments::augment_args(ClapCommand::new(self.name()))
            .about("Takes a page apart: header, line pointers, rows, values, bytes")
            .after_help("Examples:\n  pgclinic inspect PGDATA --relation public.docs --block 7\n  pgclinic inspect base/5/16384 --block 7 --format html --output page.html")
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let arguments = Arguments::from_arg_matches(matches)?;
        let start = Instant::now();
        let targets = arguments.chain.behind(&arguments.target);
        arguments.output.refuse_early(INSPECT, &targets)?;
        let named = target::named_server(&arguments.target, world)?;
        let first = UndetectedServer::told(arguments.running.running);
        let look = |unseen, world: &mut Env<'_>| look(&arguments, named.as_ref(), unseen, world);
        let mut document = undetected_server::look(first, world, look)?;
        document.elapsed_s = start.elapsed().as_secs_f64();
        let document = Document::Inspect(document);
        Ok(arguments.output.give(document, Exit::Healthy, world))
    }
}

/// One look at the page, with what is known of a running server; and what turned out of one
/// meanwhile.
fn look(
    arguments: &Arguments,
    named: Option<&Server>,
    unseen: Option<UndetectedServer>,
    world: &Env<'_>,
) -> Result<(InspectDocument, Option<Option<UndetectedServer>>), Failure> {
    let opening = Opening::new(world, None)
        .with_chain(&arguments.chain)
        .of_server(named)
        .with_unseen(unseen)
        .beside_a_server();
    let cluster = match target::open(&arguments.target, opening)? {
        OpenTarget::Cluster(cluster) => cluster,
        OpenTarget::File(file) => return Ok((of_file(&file, arguments)?, None)),
        OpenTarget::TruncatedArchive(remains) => return Err(remains.failure()),
    };
    let unseen = opening.unseen_beside(&cluster, &arguments.target);
    let watch = Watch::of_control_file();
    let mut document = of_cluster(&cluster, arguments, world)?;
    let gap = unseen.map(UndetectedServer::gap);
    document.coverage.not_checked.extend(gap);
    Ok((document, watch.seen(&cluster).map(Some)))
}

/// A fork that fits what was asked for.
struct Found {
    database: Oid,
    catalog: Catalog,
    files: ForkFiles,
}

fn of_cluster(
    cluster: &Cluster,
    arguments: &Arguments,
    world: &Env<'_>,
) -> Result<InspectDocument, Failure> {
    let found = find(cluster, arguments)?;
    let forks = [found.files.clone()];
    let view = DatabaseContext {
        cluster,
        catalog: &found.catalog,
        forks: &forks,
    };
    let [files] = &forks;
    let fork = fork_cx(&view, files, Level::Structure);
    let encoding = cluster
        .databases
        .get(&found.database)
        .and_then(|database| database.encoding);
    let types = |oid| found.catalog.type_info(oid);
    let more = More {
        cluster: Some(cluster),
        encoding,
        types: &types,
        target: target_of(
            cluster,
            &target::spec_of_target(&arguments.target, &arguments.chain, world),
        ),
    };
    taken_apart(&fork, more, arguments)
}

fn find(cluster: &Cluster, arguments: &Arguments) -> Result<Found, Failure> {
    let selection = SelectionArgs {
        database: arguments.database.clone().into_iter().collect(),
        relation: arguments.relation.clone().into_iter().collect(),
        filenode: arguments.filenode.into_iter().collect(),
        fork: vec![arguments.fork],
        blocks: None,
    }
    .selection();
    if selection.relations.is_empty() && selection.filenodes.is_empty() {
        return Err(Failure::new(
            "name a relation with --relation schema.name, or a file with --filenode",
        ));
    }
    let mut found: Vec<Found> = Vec::new();
    for database in std::iter::once(0).chain(cluster.databases.keys().copied()) {
        if !selected::database(&selection, cluster, database) {
            continue;
        }
        let catalog = Arc::new(cluster.catalog(database));
        for home in cluster
            .homes
            .iter()
            .filter(|home| home.database == database)
        {
            let files = cluster
                .files(home)
                .map_err(|trouble| Failure::new(format!("{}: {}", trouble.what, trouble.why)))?;
            let fits = |files: &ForkFiles| {
                selected::fork(
                    &selection,
                    files,
                    catalog.by_file(home.tablespace, files.filenode),
                )
            };
            if let Some(files) = files.into_iter().find(fits) {
                found.push(Found {
                    database,
                    catalog: cluster.catalog(database),
                    files,
                });
            }
        }
    }
    let hidden = cluster.unreadable();
    match hidden.first().filter(|_| found.is_empty()) {
        // Where it would stand is out of reach: nobody can say that it does not exist.
        Some(trouble) => Err(Failure::new(&trouble.why)),
        None => one_of(found, cluster, arguments),
    }
}

fn one_of(
    mut found: Vec<Found>,
    cluster: &Cluster,
    arguments: &Arguments,
) -> Result<Found, Failure> {
    let asked = arguments
        .relation
        .clone()
        .or(arguments.filenode.map(|number| number.to_string()))
        .unwrap_or_default();
    if found.len() > 1 {
        let names: Vec<String> = found
            .iter()
            .map(|found| {
                found
                    .catalog
                    .database_name
                    .clone()
                    .unwrap_or_else(|| found.database.to_string())
            })
            .collect();
        let mut names = names;
        names.dedup();
        let user = |found: &Found| {
            !matches!(
                found.catalog.database_name.as_deref(),
                Some("template0" | "template1")
            )
        };
        found.retain(user);
        if found.len() != 1 {
            return Err(Failure::new(format!(
                "several databases have {asked:?}: {}. Name one with --database",
                names.join(", ")
            )));
        }
    }
    let hint = "Relations are written schema.name, * and ? are wild";
    found.pop().ok_or_else(|| {
        let databases: Vec<String> = arguments.database.clone().into_iter().collect();
        let relations: Vec<String> = arguments.relation.clone().into_iter().collect();
        let why = why_nothing(cluster, &databases, &relations);
        Failure::new(format!(
            "{asked:?} matches nothing with a {} fork{why}. {hint}",
            Fork::from(arguments.fork)
        ))
    })
}

fn of_file(file: &BareFile, arguments: &Arguments) -> Result<InspectDocument, Failure> {
    let wanted = Fork::from(arguments.fork);
    let named = file
        .forks
        .iter()
        .find(|files| files.fork == wanted)
        .or(file.forks.first());
    let files = named
        .ok_or_else(|| Failure::new(format!("{} holds no pages", arguments.target.display())))?;
    let fork = file.fork_cx(files, Level::Structure);
    let types = |oid| {
        let unknown = TypeInfo {
            oid,
            name: format!("type {oid}"),
            len: -1,
            byval: false,
            align: 4,
            kind: pgclinic_format::datum::TypeKind::Unknown,
        };
        Arc::new(pgclinic_format::datum::builtin(oid).unwrap_or(unknown))
    };
    let more = More {
        cluster: None,
        encoding: None,
        types: &types,
        target: file.target(&target::spec_of(&arguments.target)),
    };
    taken_apart(&fork, more, arguments)
}

/// What the anatomy wants beside the fork.
struct More<'a> {
    cluster: Option<&'a Cluster>,
    encoding: Option<i32>,
    types: &'a dyn Fn(Oid) -> Arc<TypeInfo>,
    target: Target,
}

/// A file that is out of reach has its own reason; one that can be read is too short.
fn not_read(source: &dyn Source, fork: &ForkCx<'_>, (block, segment): (u32, u32)) -> Failure {
    let path = fork.files.path(segment);
    let why = match Presence::of_file(source, &path) {
        Presence::Unreadable(error) => Some(error),
        Presence::There(_) | Presence::Missing => {
            let mut failures = source.unreadable().into_iter();
            failures.find(|error| error.path == path)
        }
    };
    let first = fork.files.path(0);
    Failure::new(match why {
        Some(error) => format!("block {block}: {error}"),
        None => format!(
            "block {block} cannot be read: {first} has {}, from 0",
            plural(fork.blocks, "block")
        ),
    })
}

fn taken_apart(
    fork: &ForkCx<'_>,
    more: More<'_>,
    arguments: &Arguments,
) -> Result<InspectDocument, Failure> {
    let block = arguments.block;
    let source = fork
        .source
        .ok_or_else(|| Failure::new("there is nothing to read from"))?;
    let segment =
        u32::try_from(u64::from(block) / fork.build.segment_blocks().max(1)).unwrap_or(u32::MAX);
    let bytes = read_block(source, fork.files, fork.build, block)
        .ok_or_else(|| not_read(source, fork, (block, segment)))?;
    let page = Page::parse(&bytes).ok_or_else(|| Failure::new("the page has no valid size"))?;
    let kind = match fork.fork() {
        Fork::Fsm => PageKind::FreeSpaceMap,
        Fork::Vm => PageKind::VisibilityMap,
        Fork::Main | Fork::Init => fork.method.map_or(PageKind::Unknown, PageKind::Method),
    };
    let cx = AnatomyCx {
        major: fork.major(),
        block,
        kind,
        checksums: more.cluster.and_then(Cluster::checksums),
        columns: fork
            .relation
            .and_then(|relation| relation.columns.as_deref()),
        types: more.types,
        cluster: more.cluster,
        encoding: more.encoding,
        value_bytes_max: arguments.value_bytes,
    };
    let identifier = more
        .target
        .system_identifier
        .as_deref()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0);
    let findings = check_page(&bytes, block, fork, identifier);
    let len = bytes.len() as u64;
    Ok(InspectDocument {
        schema: "pgclinic.inspect/1".into(),
        tool: Tool::this(),
        target: more.target,
        level: fork.level,
        coverage: Coverage {
            bytes_seen: len,
            bytes_checked: len,
            pages: 1,
            relations: 1,
            relations_selected: 1,
            ..Coverage::default()
        },
        place: Place {
            block: Some(block),
            kind: fork.kind,
            ..fork_place(fork.database, fork.relation, fork.files, segment)
        },
        blocks: fork.blocks,
        anatomy: page_anatomy(page, &cx),
        findings,
        elapsed_s: 0.0,
    })
}
