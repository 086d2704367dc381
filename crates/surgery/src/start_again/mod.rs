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

mod backup_label;
mod control_file;
mod databases;
mod directories;
mod ground;
mod limits;
mod modes;
mod new_control;
mod next_numbers;
mod oldest_numbers;
mod page_counters;
mod recovery;
mod relation_maps;
mod reset_wal;
mod row_fates;
mod set_aside;
mod status_ends;
mod status_files;
mod status_fill;
mod version_files;

use std::num::NonZeroUsize;
use std::path::Path;

use pgclinic_cluster::{Cluster, file_place};
use pgclinic_format::control_file::FILE_BYTES;
use pgclinic_model::Progress;
use pgclinic_model::document::{
    Cure, CureOutcome, CureRequest, FieldChange, FileKind, HealBasis, HealFile, PlanStep,
    StartCure, TableFates,
};
use pgclinic_model::plan::{Change, Patch, Safety};
use pgclinic_source::read_all;

use crate::error::Result;
use crate::operate::FileBeside;

const CONTROL_FILE: &str = "global/pg_control";
/// A person types it.
const ID_CHARS: usize = 8;

/// Names of the cures with which a server starts again.
pub const START_CURES: [&str; 10] = [
    directories::NAME,
    modes::NAME,
    version_files::NAME,
    backup_label::MAKE,
    backup_label::SET_ASIDE,
    set_aside::NAME,
    relation_maps::NAME,
    status_files::NAME,
    control_file::NAME,
    reset_wal::NAME,
];

/// How the files are read.
pub struct StartOptions<'a> {
    /// The data directory, for its permissions.
    pub pgdata: &'a Path,
    /// Workers.
    pub threads: NonZeroUsize,
    /// Who hears of bytes.
    pub progress: &'a dyn Progress,
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

/// A cure before it has an id.
#[derive(Clone, PartialEq, Debug)]
struct Draft {
    name: &'static str,
    safety: Safety,
    /// The file or directory that stops the server.
    path: String,
    summary: String,
    evidence: Vec<String>,
    warnings: Vec<String>,
    fields: Vec<FieldChange>,
    tables: Vec<TableFates>,
    rows_lost: Option<u64>,
    files: Vec<HealFile>,
    changes: Vec<Change>,
    beside: Vec<FileBeside>,
}

impl Draft {
    fn new(name: &'static str, safety: Safety, path: &str, summary: impl Into<String>) -> Self {
        Draft {
            name,
            safety,
            path: path.to_owned(),
            summary: summary.into(),
            evidence: Vec::new(),
            warnings: Vec::new(),
            fields: Vec::new(),
            tables: Vec::new(),
            rows_lost: Some(0),
            files: Vec::new(),
            changes: Vec::new(),
            beside: Vec::new(),
        }
    }

    fn because(mut self, why: impl Into<String>) -> Self {
        self.evidence.push(why.into());
        self
    }

    fn warn(mut self, what: impl Into<String>) -> Self {
        self.warnings.push(what.into());
        self
    }

    fn change(mut self, what: impl Into<String>, change: Change) -> Self {
        self.files.push(HealFile {
            path: change.path().to_owned(),
            what: what.into(),
        });
        self.changes.push(change);
        self
    }

    fn into_cure(self, identifier: &str) -> (CureRequest, Cure, Work) {
        let request = CureRequest {
            cure: self.name.into(),
            path: self.path.clone(),
            block: 0,
            item: None,
            column: None,
        };
        let cure = Cure {
            id: self.id(identifier),
            name: self.name.into(),
            safety: self.safety,
            place: file_place(self.path, FileKind::File),
            summary: self.summary,
            evidence: self.evidence,
            fields: self.fields,
            pages: Vec::new(),
            rows: Vec::new(),
            rows_lost: self.rows_lost,
            dangling: Vec::new(),
            warnings: self.warnings,
            start: Some(Box::new(StartCure {
                files: self.files,
                tables: self.tables,
            })),
            outcome: CureOutcome::Planned,
            findings: Vec::new(),
        };
        let work = Work {
            changes: self.changes,
            beside: self.beside,
        };
        (request, cure, work)
    }

    /// Cluster, cure, place, and every byte that is written.
    fn id(&self, identifier: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for word in [identifier, self.name, &self.path] {
            hasher.update(&(word.len() as u64).to_le_bytes());
            hasher.update(word.as_bytes());
        }
        for change in &self.changes {
            // Plain data, which always has a text.
            let text = serde_json::to_vec(change).unwrap_or_default();
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(&text);
        }
        let hex = hasher.finalize().to_hex();
        hex.chars().take(ID_CHARS).collect()
    }
}

/// Plans what makes a server start on these files; nothing where nothing known keeps it from
/// starting. Nothing is written.
///
/// # Errors
/// When the evidence cannot be put together.
pub fn plan_start(cluster: &Cluster, options: &StartOptions<'_>) -> Result<Option<StartPlan>> {
    let mut drafts = Vec::new();
    drafts.extend(modes::draft(options.pgdata));
    drafts.extend(directories::draft(cluster));
    drafts.extend(version_files::drafts(cluster));
    drafts.extend(set_aside::drafts(cluster));
    drafts.extend(relation_maps::drafts(cluster));
    let wal = recovery::drafts(cluster, options)?;
    let is_reset = wal.iter().any(|draft| draft.name == reset_wal::NAME);
    if !is_reset {
        // A reset fills them with the rest.
        drafts.extend(status_files::drafts(cluster, options));
    }
    drafts.extend(wal);
    if drafts.is_empty() {
        return Ok(None);
    }
    let control = cluster.control.trusted();
    let identifier = control.map(|own| own.system_identifier.to_string());
    let basis = HealBasis {
        system_identifier: identifier.unwrap_or_default(),
        control_file: control_hash(cluster),
    };
    let mut plan = StartPlan {
        request: Vec::new(),
        cures: Vec::new(),
        warnings: warnings(),
        follow_up: follow_up(&drafts),
        works: Vec::new(),
        basis,
    };
    for draft in drafts {
        let (request, cure, work) = draft.into_cure(&plan.basis.system_identifier);
        plan.request.push(request);
        plan.cures.push(cure);
        plan.works.push(work);
    }
    Ok(Some(plan))
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

/// Makes a file anew, or for the first time.
fn write(cluster: &Cluster, path: &str, bytes: Vec<u8>, len: u64) -> Change {
    let is_there = cluster.source().len(path).is_ok();
    Change::Write {
        path: path.to_owned(),
        bytes,
        len,
        kept: is_there.then(|| kept_name(path)),
    }
}

fn remove(path: &str) -> Change {
    Change::Remove {
        path: path.to_owned(),
        kept: kept_name(path),
    }
}

/// A plain file name in the journal's directory.
fn kept_name(path: &str) -> String {
    format!("kept.{}", path.replace('/', "."))
}

fn warnings() -> Vec<String> {
    vec![
        "what is written here is in no WAL: standbys, pg_rewind, incremental backups and WAL archives do not know it".into(),
    ]
}

fn follow_up(drafts: &[Draft]) -> Vec<PlanStep> {
    let is_lossy = drafts.iter().any(|draft| draft.safety == Safety::Lossy);
    if !is_lossy {
        return Vec::new();
    }
    let step = |name: &str, why: &str, commands: &[&str]| PlanStep {
        name: name.into(),
        safety: Safety::Lossy,
        why: why.into(),
        relations: Vec::new(),
        relations_omitted: 0,
        commands: commands.iter().map(|own| (*own).to_owned()).collect(),
        commands_omitted: 0,
    };
    vec![
        step(
            "check-again",
            "the copy that starts shows what is left; indexes may not fit their tables",
            &["pgclinic check COPY --level full --heap-all-indexed"],
        ),
        step(
            "dump-and-load",
            "the copy is for dumping only: what its rows say of each other is of two moments. Dump it and load that into a new cluster",
            &["pg_dumpall > dump.sql", "initdb -D NEW", "psql -f dump.sql"],
        ),
    ]
}
