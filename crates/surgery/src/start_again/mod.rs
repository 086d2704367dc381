//! A server that starts again: what keeps it from starting, and a plan for each.
//!
//! ```text
//! files ─► what stops a start ─► draft: changes, evidence, loss counted ─► patch ─► journal, write, read back
//! ```
//!
//! [`plan_start`] looks at the files of a stopped cluster. A draft is exact where evidence proves
//! what was there, and lossy otherwise; a lossy one says first what it costs. What the server asks
//! for at its start is in `src/backend/postmaster/postmaster.c`,
//! `src/backend/utils/init/miscinit.c` and `src/backend/access/transam/{xlog,xlogrecovery,slru}.c`.

mod agreeing_entries;
mod asked;
mod backup_label;
mod control_file;
mod control_length;
mod databases;
mod directories;
mod draft;
mod far_lsns;
mod ground;
mod limits;
mod logged_map;
mod lost_links;
mod lost_pages;
mod map_evidence;
mod modes;
mod mounted;
mod new_control;
mod next_numbers;
mod numbers;
mod oldest_numbers;
mod page_counters;
mod recovery;
mod relation_maps;
mod reset_wal;
mod row_fates;
mod set_aside;
mod status_denied;
mod status_ends;
mod status_files;
mod status_fill;
mod status_gaps;
mod tablespace_links;
mod version_files;
mod votes;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::{Cluster, ControlState, OpenOptions};
use pgclinic_format::BlockNo;
use pgclinic_format::control_file::FILE_BYTES;
use pgclinic_model::Progress;
use pgclinic_model::document::{Cure, CureRequest, HealBasis, NotHealed, PlanStep};
use pgclinic_model::plan::{Change, Patch, Safety};
use pgclinic_source::read_all;

use crate::error::{Error, Result};
use crate::operate::FileBeside;
use crate::overlay::overlay;
pub use tablespace_links::TablespaceMap;

use draft::{Draft, Found, Stops, kept_name, remove, write};

const CONTROL_FILE: &str = "global/pg_control";

/// Names of the cures with which a server starts again.
pub const START_CURES: [&str; 13] = [
    directories::NAME,
    modes::NAME,
    version_files::NAME,
    backup_label::MAKE,
    backup_label::SET_ASIDE,
    set_aside::NAME,
    relation_maps::NAME,
    status_files::NAME,
    STATUS_FROM_HINT_BITS,
    tablespace_links::NAME,
    control_length::NAME,
    control_file::NAME,
    reset_wal::NAME,
];

/// Name of the cure that lets links lead to where a backup's tablespaces are.
pub const LINK_TABLESPACES: &str = tablespace_links::NAME;
/// Name of the file in a backup that says where tablespaces were.
pub const TABLESPACE_MAP: &str = tablespace_links::MAP;

/// Name of the cure that corrects pages of pg_xact by what rows say.
pub const STATUS_FROM_HINT_BITS: &str = status_denied::NAME;

/// How the files are read.
pub struct StartOptions<'a> {
    /// The data directory, for its permissions.
    pub pgdata: &'a Path,
    /// Workers.
    pub threads: NonZeroUsize,
    /// Who hears of bytes.
    pub progress: &'a dyn Progress,
    /// Where what does not fit into memory is sorted.
    pub temp_folder: &'a Path,
    /// What backups that were named say of where tablespaces are.
    pub tablespace_maps: &'a [TablespaceMap],
}

/// What keeps a server from starting, with a cure for each.
#[derive(Clone, PartialEq, Debug)]
pub struct StartPlan {
    /// The cluster at that moment.
    pub basis: HealBasis,
    /// One for each cure.
    pub request: Vec<CureRequest>,
    /// In the order in which they are done.
    pub cures: Vec<Cure>,
    /// What nothing in these files cures.
    pub not_healed: Vec<NotHealed>,
    /// What to know before.
    pub warnings: Vec<String>,
    /// What to do afterwards.
    pub follow_up: Vec<PlanStep>,
    works: Vec<Work>,
}

/// What a cure writes.
#[derive(Clone, PartialEq, Debug)]
struct Work {
    changes: Vec<Change>,
    beside: Vec<FileBeside>,
}

impl StartPlan {
    /// The changes of these cures. A directory that several of them need is made once.
    pub fn patch(&self, chosen: &[usize]) -> Patch {
        let works = chosen.iter().filter_map(|index| self.works.get(*index));
        let mut patch = Patch::default();
        for change in works.flat_map(|work| &work.changes) {
            let is_made = matches!(change, Change::Directory { .. });
            if !is_made || !patch.changes.contains(change) {
                patch.changes.push(change.clone());
            }
        }
        patch
    }

    /// What is to stand beside the journal of these cures.
    pub fn beside(&self, chosen: &[usize]) -> Vec<FileBeside> {
        let works = chosen.iter().filter_map(|index| self.works.get(*index));
        works.flat_map(|work| work.beside.clone()).collect()
    }
}

/// Plans what makes a server start on these files; nothing where nothing known keeps it from
/// starting. Nothing is written.
///
/// # Errors
/// When the evidence cannot be put together.
pub fn plan_start(cluster: &Cluster, options: &StartOptions<'_>) -> Result<Option<StartPlan>> {
    let found = found(cluster, options)?;
    if found.drafts.is_empty() && !found.is_stopped() {
        return Ok(None);
    }
    Ok(Some(planned(cluster, found)))
}

/// What a server starts without, and nothing in these files gives back, with the reason of each:
/// relation maps and version files of databases, and links to tablespaces. Where nothing else keeps
/// a server from starting, no plan for a start names it.
///
/// # Errors
/// When the evidence cannot be put together.
pub fn not_cured(cluster: &Cluster, options: &StartOptions<'_>) -> Result<Vec<NotHealed>> {
    let mut found = relation_maps::found(cluster, options)?;
    found.add(version_files::directories(cluster, options.pgdata));
    let mapped = with_drafts(cluster, &found.drafts)?;
    let cluster = mapped.as_ref().unwrap_or(cluster);
    found.add(tablespace_links::found(cluster, options).open);
    Ok(found.open.into_iter().map(|own| own.what).collect())
}

/// Links to tablespaces are missing.
pub fn has_lost_links(cluster: &Cluster) -> bool {
    !tablespace_links::lost(cluster).is_empty()
}

/// Plans what rows say of these pages of pg_xact, which the rows of many pages deny: no cure where
/// they say nothing else than the log. Nothing is written.
pub fn plan_denied_status(
    cluster: &Cluster,
    pages: &[BlockNo],
    options: &StartOptions<'_>,
) -> StartPlan {
    planned(cluster, status_denied::found(cluster, pages, options))
}

fn planned(cluster: &Cluster, found: Found) -> StartPlan {
    let control = match &cluster.control {
        // It is of this cluster, whatever day it is from.
        ControlState::Older { control, .. } => Some(control),
        other => other.trusted(),
    };
    let identifier = control.map(|own| own.system_identifier.to_string());
    let basis = HealBasis {
        system_identifier: identifier.unwrap_or_default(),
        control_file: control_hash(cluster),
        requests: None,
    };
    let mut plan = StartPlan {
        request: Vec::new(),
        cures: Vec::new(),
        not_healed: found.open.into_iter().map(|own| own.what).collect(),
        warnings: warnings(&found.drafts),
        follow_up: follow_up(&found.drafts),
        works: Vec::new(),
        basis,
    };
    for draft in found.drafts {
        let (request, cure, work) = draft.into_cure(&plan.basis.system_identifier);
        plan.request.push(request);
        plan.cures.push(cure);
        plan.works.push(work);
    }
    plan
}

fn found(cluster: &Cluster, options: &StartOptions<'_>) -> Result<Found> {
    let mut found = Found::default();
    found.drafts.extend(modes::draft(options.pgdata));
    found.drafts.extend(directories::draft(cluster));
    found.add(version_files::found(cluster, options.pgdata));
    found.drafts.extend(set_aside::drafts(cluster));
    let maps = relation_maps::found(cluster, options)?;
    // Numbers come from catalogs, which only the maps lead to.
    let mapped = with_drafts(cluster, &maps.drafts)?;
    found.add(maps);
    let cluster = mapped.as_ref().unwrap_or(cluster);
    let wal = with_links(cluster, options)?;
    let is_reset = wal.drafts.iter().any(|draft| draft.name == reset_wal::NAME);
    if !is_reset {
        // A reset fills them with the rest.
        found.add(status_files::found(cluster, options));
    }
    // Who writes the file writes all of it.
    let is_written = |draft: &Draft| draft.files.iter().any(|own| own.path == CONTROL_FILE);
    if !wal.drafts.iter().any(is_written) {
        found.drafts.extend(control_length::draft(cluster));
    }
    found.add(wal);
    Ok(found)
}

/// What is done about WAL, with the tablespaces that no link leads to, and to which the server that
/// starts makes none: their rows have numbers, too.
fn with_links(cluster: &Cluster, options: &StartOptions<'_>) -> Result<Found> {
    let tablespace_links::Found { links, open } = tablespace_links::found(cluster, options);
    let mut found = match links {
        None => recovery::found(cluster, options)?,
        Some(links) => with_some_links(cluster, options, links)?,
    };
    found.add(open);
    Ok(found)
}

fn with_some_links(
    cluster: &Cluster,
    options: &StartOptions<'_>,
    links: tablespace_links::Links,
) -> Result<Found> {
    let mut found = recovery::found(&links.linked, options)?;
    let sets_aside = [reset_wal::NAME, backup_label::SET_ASIDE];
    let is_needed = |draft: &Draft| sets_aside.contains(&draft.name);
    let makes_none = !tablespace_links::are_made_by_server(cluster);
    if makes_none || found.drafts.iter().any(is_needed) {
        found.drafts.insert(0, links.draft);
        return Ok(found);
    }
    recovery::found(cluster, options)
}

/// The cluster as it is once these are carried out; nothing where there are none.
fn with_drafts(cluster: &Cluster, drafts: &[Draft]) -> Result<Option<Cluster>> {
    let Some(first) = drafts.first() else {
        return Ok(None);
    };
    let changes = drafts.iter().flat_map(|draft| draft.changes.clone());
    let patch = Patch {
        changes: changes.collect(),
    };
    let cannot = |why: String| Error::Cure {
        place: first.path.clone(),
        why,
    };
    let source = overlay(Arc::clone(cluster.source()), &patch);
    let source = source.map_err(|error| cannot(error.to_string()))?;
    let after = Cluster::open(OpenOptions::of(source));
    after.map(Some).map_err(|error| cannot(error.to_string()))
}

/// Of a file that is not there, that of no bytes.
fn control_hash(cluster: &Cluster) -> String {
    let bytes = control_bytes(cluster);
    blake3::hash(&bytes).to_hex().to_string()
}

fn control_bytes(cluster: &Cluster) -> Vec<u8> {
    let most = FILE_BYTES as u64 * 2;
    read_all(cluster.source().as_ref(), CONTROL_FILE, most).unwrap_or_default()
}

fn warnings(drafts: &[Draft]) -> Vec<String> {
    let why = "what is written here is in no WAL: standbys, pg_rewind, incremental backups and WAL archives do not know it";
    let is_written = !drafts.is_empty();
    Vec::from_iter(is_written.then(|| why.into()))
}

fn follow_up(drafts: &[Draft]) -> Vec<PlanStep> {
    let is_lossy = drafts.iter().any(|draft| draft.safety == Safety::Lossy);
    if !is_lossy {
        return Vec::new();
    }
    let step = |name: &str, safety: Safety, why: &str, commands: &[&str]| PlanStep {
        name: name.into(),
        safety,
        why: why.into(),
        relations: Vec::new(),
        relations_omitted: 0,
        commands: commands.iter().map(|own| (*own).to_owned()).collect(),
        commands_omitted: 0,
    };
    vec![
        step(
            "check-again",
            Safety::ShowOnly,
            "the copy that starts shows what is left; indexes may not fit their tables",
            &["pgclinic check COPY --level full"],
        ),
        step(
            "dump-and-load",
            Safety::Lossy,
            "the copy is for dumping only: what its rows say of each other is of two moments. Dump it and load that into a new cluster",
            &["pg_dumpall > dump.sql", "initdb -D NEW", "psql -f dump.sql"],
        ),
    ]
}
