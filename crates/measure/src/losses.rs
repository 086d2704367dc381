//! What a cluster lacks of what is measured, as the witnesses beside its files tell: figures of the
//! rest are right, and not those of the relation.

use std::collections::BTreeMap;

use pgclinic_cluster::inventory::{Inventory, default_home};
use pgclinic_cluster::wal::StartKind;
use pgclinic_cluster::{
    Cluster, Comparison, DatabaseContext, ForkContext, MarkedBeyond, Persistence, Relation,
    selected,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, Oid};
use pgclinic_model::document::Coverage;
use pgclinic_model::{plural, verb_of};
use pgclinic_source::Presence;

use super::job::Job;
use super::run::{MeasureOptions, leave_out};

/// Maps, status files and catalogs are of the moment of the pages.
pub(super) fn compares(fork: &ForkContext<'_>) -> bool {
    let may_compare = |cluster: &Cluster| cluster.may_compare(Comparison::ForksOfRelation);
    fork.cluster.is_some_and(may_compare)
}

/// The visibility map says that rows stood on this page of zeros.
pub(super) fn held_rows(fork: &ForkContext<'_>, block: BlockNo) -> bool {
    let is_table = fork.method == Some(AccessMethod::Heap) && compares(fork);
    let cluster = fork.cluster.filter(|_| is_table);
    cluster.is_some_and(|cluster| cluster.map_bits(fork.files, block) != 0)
}

/// Says what is missing of these relations, whose pages were read.
pub(super) fn tell(jobs: &[Job<'_>], database: &str, coverage: &mut Coverage) {
    let (mut denied_pages, mut denied_tables) = (0, 0_u64);
    for job in jobs.iter().filter(|job| compares(&job.fork)) {
        let emptied = job.gathered.sum(|tally| tally.emptied_pages);
        if emptied > 0 {
            let why = format!(
                "{pages} of it {are} all zeros, and the visibility map says that {they} held rows",
                pages = plural(emptied, "page"),
                are = verb_of(emptied, "are"),
                they = if emptied == 1 { "it" } else { "they" }
            );
            leave_out(coverage, rows_of(&job.fork), why);
        }
        if let Some(why) = why_short(&job.fork) {
            leave_out(coverage, format!("the end of {}", name_of(&job.fork)), why);
        }
        let undecided = job.gathered.sum(|tally| tally.rows_undecided);
        if undecided > 0 {
            let why = format!(
                "the status of {} is lost; {} counted as dead",
                plural(undecided, "row"),
                if undecided == 1 { "it is" } else { "they are" }
            );
            leave_out(coverage, rows_of(&job.fork), why);
        }
        let denied = job.gathered.sum(|tally| tally.pages_against_status);
        denied_pages += denied;
        denied_tables += u64::from(denied > 0);
    }
    if denied_pages > 0 {
        let what = format!("which rows of database {database} are live");
        let why = format!(
            "hint bits on {} of {} say that transactions committed of which pg_xact says that they did not: pg_xact is damaged, or the pages are",
            plural(denied_pages, "page"),
            plural(denied_tables, "table")
        );
        leave_out(coverage, what, why);
    }
}

fn name_of(fork: &ForkContext<'_>) -> String {
    let name = fork.relation.map(Relation::qualified_name);
    name.unwrap_or_else(|| fork.files.path(0))
}

fn rows_of(fork: &ForkContext<'_>) -> String {
    format!("rows of {}", name_of(fork))
}

/// The map marks blocks past the end of the table, or `pg_class` counts more than there are.
fn why_short(fork: &ForkContext<'_>) -> Option<String> {
    let (cluster, relation) = (fork.cluster?, fork.relation?);
    let is_table = fork.method == Some(AccessMethod::Heap);
    let marked = is_table.then(|| cluster.marked_beyond(fork.files, fork.blocks, |_| true));
    if let Some(MarkedBeyond { last, .. }) = marked.flatten() {
        return Some(format!(
            "its file ends before block {}, and the visibility map says that rows stood up to block {last}",
            fork.blocks
        ));
    }
    let counted = u64::try_from(relation.relpages).unwrap_or(0);
    let is_short = counted > fork.blocks && cluster.counts_own_pages();
    (is_short && relation.persistence == Persistence::Permanent).then(|| {
        format!(
            "pg_class counts {}, and its file has {}",
            plural(counted, "page"),
            fork.blocks
        )
    })
}

/// WAL that a recovery needs is not there: what it would change is in no figure.
pub(super) fn tell_wal(cluster: &Cluster, coverage: &mut Coverage) {
    // The WAL of a backup or of a standby may lie elsewhere.
    let start = cluster.recovery().map(|recovery| recovery.start.kind);
    let is_own = start.is_none_or(|kind| kind == StartKind::Crash);
    let is_due = cluster.needs_recovery() && !cluster.is_running() && !cluster.is_partial();
    if !is_due || !is_own {
        return;
    }
    let why = match cluster.replay() {
        Some(replay) if replay.is_complete() => return,
        Some(replay) => format!(
            "the write-ahead log ends at {}, before recovery would be done",
            replay.end.record
        ),
        None => {
            "the cluster was not shut down in good order, and its write-ahead log cannot be read"
                .to_owned()
        }
    };
    leave_out(coverage, "changes since the last checkpoint".into(), why);
}

/// Relations of which nothing can be measured: their file is not there, or is none that can be
/// read. What recovery makes or removes proves nothing.
pub(super) fn tell_missing(
    view: &DatabaseContext<'_>,
    options: &MeasureOptions,
    coverage: &mut Coverage,
) {
    let Some(inventory) = Inventory::comparable(view) else {
        return;
    };
    for (_, gap) in missing(view, &inventory, options) {
        gap.tell(coverage);
    }
}

/// A relation whose file is missing, by OID and number of the file.
pub(super) type MissingFile = (Oid, Oid);

/// What is said of it.
pub(super) struct MissingGap {
    what: String,
    why: String,
}

impl MissingGap {
    /// Once, however many looks find it.
    pub(super) fn tell(self, coverage: &mut Coverage) {
        let mut told = coverage.not_checked.iter();
        if !told.any(|gap| gap.what == self.what) {
            leave_out(coverage, self.what, self.why);
        }
    }
}

/// Relations of a running server whose files are not there at this look: whether they are gone,
/// the next one shows.
pub(super) fn missing_now(
    view: &DatabaseContext<'_>,
    options: &MeasureOptions,
) -> BTreeMap<MissingFile, MissingGap> {
    // A database that was dropped meanwhile has no directory.
    if default_home(view.cluster, view.catalog.database).is_none() {
        return BTreeMap::new();
    }
    missing(view, &Inventory::new(view), options)
}

fn missing(
    view: &DatabaseContext<'_>,
    inventory: &Inventory<'_>,
    options: &MeasureOptions,
) -> BTreeMap<MissingFile, MissingGap> {
    let source = view.cluster.source().as_ref();
    let mut found = BTreeMap::new();
    // A server that follows another one has no unlogged relations.
    let is_running = view.cluster.is_running();
    let lasting = inventory
        .relations()
        .filter(|own| !is_running || own.persistence == Persistence::Permanent);
    for relation in lasting {
        let files = inventory.fork(relation, Fork::Main);
        let begins = files.is_some_and(|files| !files.segments.is_empty());
        let Some(home) = inventory.home(relation).filter(|_| !begins) else {
            continue;
        };
        let own = inventory.files(relation, home, Fork::Main);
        if !selected::dependent(&options.selection, &own, view.catalog) {
            continue;
        }
        let why = match Presence::of_file(source, &own.path(0)) {
            Presence::Missing => "its file is missing".into(),
            Presence::Unreadable(error) => error.to_string(),
            // The server made it since the directory was listed.
            Presence::There(_) if is_running => continue,
            Presence::There(_) => "it is a link, which is not followed".into(),
        };
        let what = format!("{} ({})", own.path(0), relation.qualified_name());
        found.insert((relation.oid, relation.filenode), MissingGap { what, why });
    }
    found
}
