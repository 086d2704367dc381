//! What there is to do in one database: a job a fork, with all that the checks need to know.

use std::sync::Arc;

use pgclinic_cluster::inventory::is_orphan;
use pgclinic_cluster::{
    Cluster, DatabaseContext, ForkContext, ForkFiles, MapPositions, Persistence, Relation, State,
    selected,
};
use pgclinic_format::Fork;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::document::{FileKind, Level, NotChecked, RelationFate};
use pgclinic_model::plural;
use pgclinic_source::SourceErrorKind;

use crate::btree::KeyOrder;
use crate::check::{ForkCx, Limits};
use crate::heap::context::HeapContext;
use crate::walker::CheckOptions;
use crate::walker::run_ledger::RunLedger;

/// Relations without columns that are told by name, in each database.
const UNKNOWN_TOLD: u64 = 20;
const NO_COLUMNS: &str = "pg_attribute does not give all of them";

/// Limits of a cluster that was shut down in good order.
pub(crate) fn limits_of(cluster: &pgclinic_cluster::Cluster) -> Option<Limits> {
    let wal_end = cluster.settled_wal_end()?;
    let control = cluster.control.trusted()?;
    let checkpoint = &control.checkpoint;
    Some(Limits {
        next_xid: checkpoint.next_xid(),
        oldest_xid: checkpoint.oldest_xid,
        next_multi: checkpoint.next_multi,
        oldest_multi: checkpoint.oldest_multi,
        wal_end,
    })
}

/// The jobs of a database, in the order of its files. What is left out is booked.
pub(crate) fn jobs_of<'a>(
    view: &'a DatabaseContext<'a>,
    options: &CheckOptions,
    books: &mut RunLedger,
) -> Vec<ForkCx<'a>> {
    let mut jobs = Vec::new();
    let mut nameless = 0;
    let positions = map_positions(view, options);
    for files in view.forks {
        let relation = view.catalog.by_file(files.home.tablespace, files.filenode);
        if !selected::dependent(&options.selection, files, view.catalog) {
            continue;
        }
        let is_main = u64::from(files.fork == Fork::Main);
        if is_left_out(view, files, relation, books) {
            let coverage = &mut books.coverage;
            coverage.book_relations(RelationFate::Skipped, is_main);
            continue;
        }
        if files.segments.is_empty() {
            let why = "it is a link, a directory or something else that is no regular file; it is not followed";
            books.not_checked(NotChecked {
                what: files.path(0),
                why: why.into(),
                inherent: false,
            });
            books.unread.insert(files.path(0));
            let coverage = &mut books.coverage;
            coverage.book_relations(RelationFate::Unreadable, is_main);
            continue;
        }
        if let Some(why) = why_empty_is_unread(view.cluster, files) {
            books.not_checked(NotChecked {
                what: files.path(0),
                why,
                inherent: false,
            });
            books.unread.insert(files.path(0));
        }
        let mut job = fork_cx(view, files, options.level);
        if let Some(positions) = &positions {
            job.heap = job.heap.beside_maps(positions);
        }
        if is_half_known(view, &job) {
            books.unread.insert(files.path(0));
        }
        if files.fork == Fork::Main {
            nameless += u64::from(columns_are_unknown(&job));
            if nameless <= UNKNOWN_TOLD {
                tell_what_is_unknown(&job, books);
            }
        }
        jobs.push(job);
    }
    if nameless > UNKNOWN_TOLD {
        let what = format!(
            "columns of {}",
            plural(nameless - UNKNOWN_TOLD, "more relation")
        );
        books.not_checked(NotChecked {
            what,
            why: NO_COLUMNS.into(),
            inherent: view.cluster.is_running(),
        });
    }
    jobs
}

/// Whose file is whose by the visibility maps; while a server runs they are on their way.
fn map_positions(view: &DatabaseContext<'_>, options: &CheckOptions) -> Option<Arc<MapPositions>> {
    let cluster = view.cluster;
    let is_asked = options.level >= Level::Structure && !cluster.is_running();
    is_asked.then(|| Arc::new(MapPositions::of(cluster, view.catalog.database)))
}

/// No pass opens a file without bytes, and the server has to open it all the same.
fn why_empty_is_unread(cluster: &Cluster, files: &ForkFiles) -> Option<String> {
    let is_empty = files.segments.iter().all(|segment| segment.len == 0);
    let is_asked = is_empty && !matches!(cluster.state(), State::Streamed(_));
    is_asked.then_some(())?;
    let error = cluster
        .source()
        .read_at(&files.path(0), 0, &mut [0])
        .err()?;
    (error.kind != SourceErrorKind::NotFound).then(|| error.to_string())
}

/// Files whose bytes mean nothing: nobody will read them again as they are.
fn is_left_out(
    view: &DatabaseContext<'_>,
    files: &ForkFiles,
    relation: Option<&Relation>,
    books: &mut RunLedger,
) -> bool {
    if let Some(relation) = relation
        && let Some(why) = pgclinic_cluster::unknown_storage::why(view, files, relation)
    {
        books.unread.insert(files.path(0));
        books.not_checked(why);
        return true;
    }
    let running = view.cluster.is_running();
    let (what, why) = if files.temporary.is_some() && running {
        (
            "files of temporary relations",
            "only the session that made them knows their pages",
        )
    } else if files.temporary.is_some() {
        (
            "files of temporary relations",
            "the server removes them when it starts",
        )
    } else if !running
        && files.fork != Fork::Init
        && view.cluster.needs_recovery()
        && relation.is_some_and(|relation| relation.persistence == Persistence::Unlogged)
    {
        (
            "unlogged relations",
            "the server empties them when it starts after a crash",
        )
    } else {
        return false;
    };
    books.not_checked(NotChecked {
        what: what.into(),
        why: why.into(),
        inherent: true,
    });
    true
}

/// What the checks may know of one fork.
pub fn fork_cx<'a>(view: &DatabaseContext<'a>, files: &'a ForkFiles, level: Level) -> ForkCx<'a> {
    let base = ForkContext::new(view, files);
    ForkCx {
        key_order: key_order(view, base.relation, files, level),
        // What a crash left of an unfinished transaction may be ahead of the WAL; no server reads
        // it.
        limits: limits_of(view.cluster).filter(|_| !is_orphan(view, files)),
        level,
        heap: heap_aids(view, files, base.relation),
        base,
    }
}

fn heap_aids<'a>(
    view: &DatabaseContext<'a>,
    files: &'a ForkFiles,
    relation: Option<&Relation>,
) -> HeapContext<'a> {
    if relation.and_then(Relation::page_method) != Some(AccessMethod::Heap)
        || files.fork != Fork::Main
    {
        return HeapContext::default();
    }
    let is_map = |other: &&ForkFiles| {
        other.fork == Fork::Vm && other.filenode == files.filenode && other.home == files.home
    };
    // Forks of one relation stand side by side.
    let own = view.forks.element_offset(files).unwrap_or(0);
    let behind = view.forks.get(own..).unwrap_or_default();
    let beside = behind
        .iter()
        .take_while(|other| other.filenode == files.filenode);
    let map = beside
        .filter(|other| other.temporary.is_none())
        .find(is_map);
    HeapContext::new(view.cluster, view.catalog, map)
}

/// The order of keys, where somebody will compare some.
fn key_order(
    view: &DatabaseContext<'_>,
    relation: Option<&Relation>,
    files: &ForkFiles,
    level: Level,
) -> Option<KeyOrder> {
    let relation = relation.filter(|relation| {
        relation.page_method() == Some(AccessMethod::Btree)
            && files.fork == Fork::Main
            && level >= Level::Structure
    });
    KeyOrder::of_index(relation?, view.catalog)
}

/// A heap at level structure whose rows cannot be walked.
fn columns_are_unknown(job: &ForkCx<'_>) -> bool {
    let heap = matches!(
        job.kind,
        FileKind::Table | FileKind::Toast | FileKind::MaterializedView
    );
    heap && job.level >= Level::Structure && job.columns.is_none()
}

/// The catalogs do not say all that the checks of its pages ask for, and may say it another time.
fn is_half_known(view: &DatabaseContext<'_>, job: &ForkCx<'_>) -> bool {
    if !view.catalog.troubles.is_empty() || job.relation.is_none() {
        return true;
    }
    let has_keys = job.method == Some(AccessMethod::Btree)
        && job.fork() == Fork::Main
        && job.level >= Level::Structure;
    columns_are_unknown(job) || has_keys && job.key_order.is_none()
}

fn tell_what_is_unknown(job: &ForkCx<'_>, books: &mut RunLedger) {
    let Some(relation) = job.relation.filter(|_| job.level >= Level::Structure) else {
        return;
    };
    let name = relation.qualified_name();
    if columns_are_unknown(job) {
        books.not_checked(NotChecked {
            what: format!("columns of {name}"),
            why: NO_COLUMNS.into(),
            // A server at work changes them faster than they can be read.
            inherent: job.is_running(),
        });
    } else if job.method.is_none() {
        let foreign = job.relation.and_then(|own| own.foreign_method.as_ref());
        let why = match foreign {
            Some(method) => format!("its access method {} belongs to an extension", method.name),
            None => "its access method belongs to an extension".into(),
        };
        books.not_checked(NotChecked {
            what: format!("contents of {name}"),
            why,
            inherent: true,
        });
    }
}
