//! The documents that the program gives out, as plain data: one file a document.
//!
//! Absent fields do not apply, `null` is unknown. Keys are stable; new ones may be added.

mod catalog_cost;
mod check;
mod checksums;
mod contents;
mod diff;
mod drill;
mod experiment;
mod heal;
mod heal_statement;
mod inspect;
mod loss;
mod measure;
mod plan_step;
mod rehearsal;
mod salvage;
mod start_drill;
mod watch;

pub use catalog_cost::{
    CATALOG_COST_SCHEMA, CatalogCost, CatalogCostDocument, ProjectedCatalog, ProjectedTraffic,
    StatementCost,
};
pub use check::{
    AtRisk, AttributePlace, Cause, CauseLinks, CheckDocument, Coverage, Evidence, FileKind,
    Finding, Ignored, NotChecked, OmittedFindings, Origin, Owner, Place, RECOVERY_IS_DUE,
    ROWS_MAY_BE_LOST, RelationFate, RelationSummary, Remedy, SHOWN_TEXT, SHOWN_VALUES,
    SinceSummary, Verdict, Witness, WitnessCount,
};
pub use checksums::{
    CHECKSUMS_SCHEMA, ChecksumsAction, ChecksumsDocument, ChecksumsNode, ChecksumsOutcome,
    DamagedPage, DamagedPageChoice,
};
pub use contents::Contents;
pub use diff::{
    Copy, CopyPosition, DIFF_SCHEMA, DiffBlock, DiffCoverage, DiffDocument, DiffFile, DiffFork,
    DiffVerdict, Difference, Soundness,
};
pub use drill::{
    BlindDocument, BlindKind, BlindTrial, DrillDocument, DrillRow, NotRun, OutcomeCounts,
    RowOutcome, ServerAnswer,
};
pub use experiment::{
    ArmSummary, AxisSummary, Better, DecisionCard, DecisionWord, Dot, Effect, EffectLine,
    EffectPoint, ExperimentDocument, MachineSummary, MeasuredLine, MeasuredPoint, MetricFigure,
    MetricSummary, NoiseFloor, PlanSummary, PublishedAnswer, PublishedLine, RunSummary, RunWord,
    Side, Slope,
};
pub use heal::{
    AppliedHeal, Cure, CureOutcome, CureRequest, DanglingEntries, FieldChange, HEAL_SCHEMA,
    HealBasis, HealDocument, HealEvidence, HealFile, HealOutcome, HealProof, HealReach, HealRow,
    HealScope, NotHealed, PageChange, RowCount, SavedRows, StartCure, TableFates,
};
pub use heal_statement::{HealStatement, StatementAnswer};
pub use inspect::{Field, HexRange, InspectDocument, ItemAnatomy, PageAnatomy, ValueAnatomy};
pub use loss::{LossCell, LossDocument};
pub use measure::{
    Advice, Counters, Figure, Growth, LimitAhead, MEASURE_SCHEMA, MeasureDocument, MeasureHint,
    MeasuredColumn, MeasuredDatabase, MeasuredRelation, RelationGrowth, Sections, Spread,
};
pub use plan_step::{PlanRelation, PlanStep};
pub use rehearsal::{
    FalseAlarm, InjuryState, REHEARSAL_SCHEMA, RehearsalDocument, RehearsalInjury, RehearsalKind,
    RehearsalScore, RehearsalServer, RehearsalTable,
};
pub use salvage::{
    CheckAccount, ColumnAs, CountAccount, DoubtfulObject, Estimate, FOREIGN_KEYS, INDEX_ENTRIES,
    INDEX_KEYS, IndexCount, KEYS_MAX, LargeObjectsAccount, LossPlace, LostBy, LostDatabase,
    LostKeys, Outcome, PLACES_MAX, PageNotes, REFUSED_ROW, ROOT_BLOCKS, ReplayAccount, RowCounts,
    SalvageDestination, SalvageReport, SequenceAccount, SnapshotAccount, TOAST_VALUES,
    TableAccount, Tally,
};
pub use start_drill::{
    START_DRILL_SCHEMA, StartDrillCell, StartDrillCure, StartDrillDocument, StartDrillTable,
};
pub use watch::{
    AlertDelivery, DamagedPlace, LoggedMessage, SettingAdvice, SignKind, SignState, SignUnit,
    SignValue, WATCH_SCHEMA, WatchDocument, WatchedSign, WatchedTarget,
};

use serde::{Deserialize, Serialize};

use crate::shell::shell_word;

/// Who wrote the document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tool {
    /// `pgclinic`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// When the run began, as `2026-11-26T20:39:09Z`; absent in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// The machine that it ran on, by its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What stands in it of the data of those whose cluster it is; absent in documents of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<Contents>,
}

impl Tool {
    /// This program; when and where it runs, whoever starts it has to say.
    pub fn this() -> Self {
        Tool {
            name: "pgclinic".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            started: None,
            host: None,
            contains: None,
        }
    }
}

/// How deep a check looks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Checksums, page headers, file names and lengths.
    Pages,
    /// All that a page, its own fork and its maps decide, status files, control file, catalogs
    /// against files.
    Structure,
    /// TOAST both ways, rows against index entries, values that do not decode, references of
    /// catalogs, write-ahead log.
    Full,
}

impl Level {
    /// `pages`, `structure` or `full`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Pages => "pages",
            Level::Structure => "structure",
            Level::Full => "full",
        }
    }
}

/// What was looked at.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Target {
    /// As the person named it.
    pub spec: String,
    /// `data-directory`, `base-backup`, `backup-chain`, `tar-backup` or `relation-file`.
    pub kind: String,
    /// 13 to 18; null where nothing tells.
    pub major: Option<u16>,
    /// As text, since it does not fit a JSON number.
    pub system_identifier: Option<String>,
    /// Bytes in a page.
    pub block_size: Option<u32>,
    /// Bytes in a segment.
    pub segment_size: Option<u64>,
    /// Data checksums are on.
    pub checksums: Option<bool>,
    /// The state in the control file, in the words of `pg_controldata`.
    pub state: Option<String>,
}

impl Target {
    /// As a command line names it: a chain of backups is its parts.
    pub fn as_arguments(&self) -> String {
        if self.kind != "backup-chain" {
            return shell_word(&self.spec);
        }
        let parts: Vec<String> = self.spec.split(" + ").map(shell_word).collect();
        parts.join(" --incremental ")
    }

    /// A server was at work on the files.
    pub fn is_running(&self) -> bool {
        let state = self.state.as_deref();
        state.is_some_and(|state| state.starts_with("running"))
    }
}

pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}
