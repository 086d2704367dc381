//! Any document that can be rendered, told apart by its `schema`.

use std::fmt;

use pgclinic_model::document::{
    BlindDocument, CATALOG_COST_SCHEMA, CHECKSUMS_SCHEMA, CatalogCostDocument, CheckDocument,
    ChecksumsDocument, DIFF_SCHEMA, DiffDocument, DrillDocument, ExperimentDocument, HEAL_SCHEMA,
    HealDocument, InspectDocument, LossDocument, MEASURE_SCHEMA, MeasureDocument, REHEARSAL_SCHEMA,
    RehearsalDocument, START_DRILL_SCHEMA, SalvageReport, StartDrillDocument, Tool, WATCH_SCHEMA,
    WatchDocument,
};
use serde::{Deserialize, Serialize};

/// Schema of a findings document.
pub const CHECK: &str = "pgclinic.check/1";
/// Schema of a page taken apart.
pub const INSPECT: &str = "pgclinic.inspect/1";
/// Schema of a drill's scoreboard.
pub const DRILL: &str = "pgclinic.drill/1";
/// Schema of a blind drill's scoreboard.
pub const BLIND: &str = "pgclinic.drill-blind/1";
/// Schema of a drill's matrix of losses.
pub const LOSS: &str = "pgclinic.drill-loss/1";

/// Schema of the account of a salvage.
pub const SALVAGE: &str = "pgclinic.salvage/1";

/// Schema of an experiment's results.
pub const LAB: &str = "pgclinic.lab/1";

/// A document of one of the schemas that this version knows.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Document {
    /// `pgclinic.check/1`.
    Check(CheckDocument),
    /// `pgclinic.inspect/1`.
    Inspect(InspectDocument),
    /// `pgclinic.drill/1`.
    Drill(DrillDocument),
    /// `pgclinic.drill-blind/1`.
    Blind(BlindDocument),
    /// `pgclinic.drill-loss/1`.
    Loss(LossDocument),
    /// `pgclinic.drill-start/1`.
    StartDrill(StartDrillDocument),
    /// `pgclinic.rehearsal/1`.
    Rehearsal(RehearsalDocument),
    /// `pgclinic.measure/1`.
    Measure(MeasureDocument),
    /// `pgclinic.catalog-cost/1`.
    CatalogCost(CatalogCostDocument),
    /// `pgclinic.diff/1`.
    Diff(DiffDocument),
    /// `pgclinic.checksums/1`.
    Checksums(ChecksumsDocument),
    /// `pgclinic.salvage/1`.
    Salvage(SalvageReport),
    /// `pgclinic.heal/1`.
    Heal(HealDocument),
    /// `pgclinic.lab/1`.
    Experiment(ExperimentDocument),
    /// `pgclinic.watch/1`.
    Watch(WatchDocument),
}

/// Why bytes are no document.
#[derive(Debug)]
pub enum Error {
    /// Not JSON, or JSON without a text `schema`.
    NotADocument(serde_json::Error),
    /// A schema that this version does not know.
    UnknownSchema(String),
    /// A known schema whose fields are not as they should be.
    Malformed(String, serde_json::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotADocument(why) => {
                write!(f, "this is no pgclinic document in JSON: {why}")
            }
            Error::UnknownSchema(schema) => write!(
                f,
                "the document's schema is {schema:?}; this version of pgclinic reads \
                 {CHECK}, {INSPECT}, {DRILL}, {BLIND}, {LOSS}, {REHEARSAL_SCHEMA}, {MEASURE_SCHEMA}, {CATALOG_COST_SCHEMA}, {DIFF_SCHEMA}, {CHECKSUMS_SCHEMA}, {SALVAGE}, {HEAL_SCHEMA}, {LAB} and {WATCH_SCHEMA}"
            ),
            Error::Malformed(schema, why) => {
                write!(f, "the document says {schema} but does not hold it: {why}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::NotADocument(why) | Error::Malformed(_, why) => Some(why),
            Error::UnknownSchema(_) => None,
        }
    }
}

#[derive(Deserialize)]
struct OnlySchema {
    schema: String,
}

impl Document {
    /// Reads a document of any schema.
    ///
    /// # Errors
    /// When the bytes are not JSON, name no known schema, or do not fit the schema they name.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        let OnlySchema { schema } = serde_json::from_slice(bytes).map_err(Error::NotADocument)?;
        let document = match schema.as_str() {
            CHECK => serde_json::from_slice(bytes).map(Document::Check),
            INSPECT => serde_json::from_slice(bytes).map(Document::Inspect),
            DRILL => serde_json::from_slice(bytes).map(Document::Drill),
            BLIND => serde_json::from_slice(bytes).map(Document::Blind),
            LOSS => serde_json::from_slice(bytes).map(Document::Loss),
            START_DRILL_SCHEMA => serde_json::from_slice(bytes).map(Document::StartDrill),
            REHEARSAL_SCHEMA => serde_json::from_slice(bytes).map(Document::Rehearsal),
            MEASURE_SCHEMA => serde_json::from_slice(bytes).map(Document::Measure),
            CATALOG_COST_SCHEMA => serde_json::from_slice(bytes).map(Document::CatalogCost),
            DIFF_SCHEMA => serde_json::from_slice(bytes).map(Document::Diff),
            CHECKSUMS_SCHEMA => serde_json::from_slice(bytes).map(Document::Checksums),
            SALVAGE => serde_json::from_slice(bytes).map(Document::Salvage),
            HEAL_SCHEMA => serde_json::from_slice(bytes).map(Document::Heal),
            LAB => serde_json::from_slice(bytes).map(Document::Experiment),
            WATCH_SCHEMA => serde_json::from_slice(bytes).map(Document::Watch),
            _ => return Err(Error::UnknownSchema(schema)),
        };
        document.map_err(|why| Error::Malformed(schema, why))
    }

    /// The document's `schema`.
    pub fn schema(&self) -> &str {
        match self {
            Document::Check(document) => &document.schema,
            Document::Inspect(document) => &document.schema,
            Document::Drill(document) => &document.schema,
            Document::Blind(document) => &document.schema,
            Document::Loss(document) => &document.schema,
            Document::StartDrill(document) => &document.schema,
            Document::Rehearsal(document) => &document.schema,
            Document::Measure(document) => &document.schema,
            Document::CatalogCost(document) => &document.schema,
            Document::Diff(document) => &document.schema,
            Document::Checksums(document) => &document.schema,
            Document::Salvage(account) => &account.schema,
            Document::Heal(document) => &document.schema,
            Document::Experiment(document) => &document.schema,
            Document::Watch(document) => &document.schema,
        }
    }

    /// Who wrote it.
    pub fn tool(&self) -> &Tool {
        match self {
            Document::Check(document) => &document.tool,
            Document::Inspect(document) => &document.tool,
            Document::Drill(document) => &document.tool,
            Document::Blind(document) => &document.tool,
            Document::Loss(document) => &document.tool,
            Document::StartDrill(document) => &document.tool,
            Document::Rehearsal(document) => &document.tool,
            Document::Measure(document) => &document.tool,
            Document::CatalogCost(document) => &document.tool,
            Document::Diff(document) => &document.tool,
            Document::Checksums(document) => &document.tool,
            Document::Salvage(document) => &document.tool,
            Document::Heal(document) => &document.tool,
            Document::Experiment(document) => &document.tool,
            Document::Watch(document) => &document.tool,
        }
    }

    /// Who wrote it and what stands in it, to be dated.
    pub fn tools_mut(&mut self) -> Vec<&mut Tool> {
        let tool = match self {
            Document::Check(document) => {
                let measured = document.measured.as_deref_mut();
                let measured = measured.map(|own| &mut own.tool);
                return measured.into_iter().chain([&mut document.tool]).collect();
            }
            Document::Inspect(document) => &mut document.tool,
            Document::Drill(document) => &mut document.tool,
            Document::Blind(document) => &mut document.tool,
            Document::Loss(document) => &mut document.tool,
            Document::StartDrill(document) => &mut document.tool,
            Document::Rehearsal(document) => &mut document.tool,
            Document::Measure(document) => &mut document.tool,
            Document::CatalogCost(document) => &mut document.tool,
            Document::Diff(document) => &mut document.tool,
            Document::Checksums(document) => &mut document.tool,
            Document::Salvage(document) => &mut document.tool,
            Document::Heal(document) => &mut document.tool,
            Document::Experiment(document) => &mut document.tool,
            Document::Watch(document) => &mut document.tool,
        };
        vec![tool]
    }
}
