//! A cure before it has an id, what nothing cures, and the changes that cures are made of.

use pgclinic_cluster::{Cluster, file_place};
use pgclinic_format::BlockNo;
use pgclinic_model::document::{
    Cure, CureOutcome, CureRequest, FieldChange, FileKind, HealFile, NotHealed, StartCure,
    TableFates,
};
use pgclinic_model::plan::{Change, Safety};

use super::Work;
use crate::operate::FileBeside;

/// A person types it.
const ID_CHARS: usize = 8;

/// What was found to do, and what nobody can do from these files.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Found {
    pub(super) drafts: Vec<Draft>,
    pub(super) open: Vec<Open>,
}

/// What nothing cures.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Open {
    pub(super) what: NotHealed,
    pub(super) stops: Stops,
}

/// What a damage stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stops {
    /// The server does not start.
    Start,
    /// It starts, and something else fails.
    Other,
}

impl Found {
    pub(super) fn add(&mut self, other: Found) {
        self.drafts.extend(other.drafts);
        self.open.extend(other.open);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.open.iter().any(|own| own.stops == Stops::Start)
    }

    pub(super) fn leave_open(&mut self, path: &str, stops: Stops, why: impl Into<String>) {
        self.leave_to_user(path, stops, vec![why.into()], Vec::new());
    }

    /// With what a user can do about it.
    pub(super) fn leave_to_user(
        &mut self,
        path: &str,
        stops: Stops,
        why: Vec<String>,
        commands: Vec<String>,
    ) {
        let what = NotHealed {
            path: path.to_owned(),
            relation: None,
            blocks: Vec::new(),
            needs_loss: false,
            why,
            commands,
        };
        self.open.push(Open { what, stops });
    }
}

impl From<Vec<Draft>> for Found {
    fn from(drafts: Vec<Draft>) -> Self {
        Found {
            drafts,
            open: Vec::new(),
        }
    }
}

/// A cure before it has an id.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Draft {
    pub(super) name: &'static str,
    pub(super) safety: Safety,
    /// The file or directory that stops the server.
    pub(super) path: String,
    /// Its page, counted through all files of a status log; 0 where it is the whole file.
    pub(super) block: BlockNo,
    pub(super) summary: String,
    pub(super) evidence: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) fields: Vec<FieldChange>,
    pub(super) tables: Vec<TableFates>,
    pub(super) rows_lost: Option<u64>,
    pub(super) files: Vec<HealFile>,
    pub(super) changes: Vec<Change>,
    pub(super) beside: Vec<FileBeside>,
}

impl Draft {
    pub(super) fn new(
        name: &'static str,
        safety: Safety,
        path: &str,
        summary: impl Into<String>,
    ) -> Self {
        Draft {
            name,
            safety,
            path: path.to_owned(),
            block: 0,
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

    pub(super) fn because(mut self, why: impl Into<String>) -> Self {
        self.evidence.push(why.into());
        self
    }

    pub(super) fn warn(mut self, what: impl Into<String>) -> Self {
        self.warnings.push(what.into());
        self
    }

    pub(super) fn change(mut self, what: impl Into<String>, change: Change) -> Self {
        self.files.push(HealFile {
            path: change.path().to_owned(),
            what: what.into(),
        });
        self.changes.push(change);
        self
    }

    pub(super) fn into_cure(self, identifier: &str) -> (CureRequest, Cure, Work) {
        let request = CureRequest {
            cure: self.name.into(),
            path: self.path.clone(),
            block: self.block,
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

/// Makes a file anew, or for the first time.
pub(super) fn write(cluster: &Cluster, path: &str, bytes: Vec<u8>, len: u64) -> Change {
    let is_there = cluster.source().len(path).is_ok();
    Change::Write {
        path: path.to_owned(),
        bytes,
        len,
        kept: is_there.then(|| kept_name(path)),
    }
}

pub(super) fn remove(path: &str) -> Change {
    Change::Remove {
        path: path.to_owned(),
        kept: kept_name(path),
    }
}

/// A plain file name in the journal's directory.
pub(super) fn kept_name(path: &str) -> String {
    format!("kept.{}", path.replace('/', "."))
}
