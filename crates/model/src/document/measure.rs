//! What a measurement found: figures of each relation, `pgclinic.measure/1`.

use std::collections::BTreeMap;

use pgclinic_format::types::FIRST_NORMAL_OID;
use serde::{Deserialize, Serialize};

use super::{Coverage, FileKind, Level, Target, Tool};

/// Schema of the document.
pub const MEASURE_SCHEMA: &str = "pgclinic.measure/1";

/// The figures of a cluster's relations.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeasureDocument {
    /// `pgclinic.measure/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// What was measured.
    pub target: Target,
    /// Always `structure`: a measurement looks into every page.
    pub level: Level,
    /// Bytes seen, read and left out.
    pub coverage: Coverage,
    /// In the order of database, schema and name.
    pub relations: Vec<MeasuredRelation>,
    /// Figures of whole databases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<MeasuredDatabase>,
    /// What could be done with less.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<MeasureHint>,
    /// What articles and experiments advise where figures, catalogs or settings are as these are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// What has changed since an older measurement of the same cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// Numbers of the cluster as a whole, for measurements to come.
    #[serde(default)]
    pub counters: Counters,
    /// The share of each large relation that was read; absent when all was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_percent: Option<f64>,
    /// What a person should know of all figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The run was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Seconds.
    pub elapsed_s: f64,
}

/// One relation's main fork.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeasuredRelation {
    /// Its database; absent for shared relations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Its schema, if the catalogs tell.
    pub schema: Option<String>,
    /// Its name, if the catalogs tell.
    pub relation: Option<String>,
    /// 0 for shared relations.
    pub database_oid: u32,
    /// `pg_class.oid`.
    pub relation_oid: Option<u32>,
    /// The number in its file's name.
    pub filenode: u32,
    /// The first segment, below the data directory.
    pub path: String,
    /// Table, index and so on.
    pub kind: FileKind,
    /// `pg_am.amname`, where it is a built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_method: Option<String>,
    /// Pages.
    pub blocks: u64,
    /// Bytes of the main fork.
    pub bytes: u64,
    /// Pages that could not be measured: unreadable, or of a shape that no server writes.
    pub pages_not_measured: u64,
    /// Pages that were read, where not all were: figures are estimates then, with intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_pages: Option<u64>,
    /// Where a figure of a sample lies with a confidence of 95 %, by section and name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<String, BTreeMap<String, [f64; 2]>>,
    /// Figures of single columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<MeasuredColumn>,
    /// The figures, by section (`table`, `index`) and name.
    #[serde(flatten)]
    pub sections: Sections,
}

/// Figures by section and name.
pub type Sections = BTreeMap<String, BTreeMap<String, Option<Figure>>>;

/// One column of a table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeasuredColumn {
    /// `attnum`.
    pub number: u16,
    /// Its name.
    pub name: String,
    /// `pg_type.typname`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The figures, by section (`toast`, `uuid`) and name.
    #[serde(flatten)]
    pub sections: Sections,
}

/// One database.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeasuredDatabase {
    /// Its name.
    pub database: String,
    /// Its OID.
    pub database_oid: u32,
    /// The figures, by section (`catalogs`, `large_objects`) and name.
    #[serde(flatten)]
    pub sections: Sections,
}

/// Something that could be done with less.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeasureHint {
    /// `duplicate-index` or `prefix-index`.
    pub hint: String,
    /// Its database.
    pub database: String,
    /// The index that could be done without.
    pub relation: String,
    /// The index that does its work too.
    pub other: String,
    /// Bytes of the index.
    pub bytes: u64,
    /// A sentence.
    pub message: String,
}

/// A piece of advice that applies: nothing is wrong, and no verdict and no exit code knows of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Advice {
    /// Its name in the register, such as `analyze-after-upgrade`.
    pub advice: String,
    /// The database; absent where it is of the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// What was seen, and why that matters.
    pub message: String,
    /// The single things that it is about: tables, releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// What to type, in this order.
    pub commands: Vec<String>,
    /// The command whose answer settles whether it is worth it here.
    pub settled_by: String,
}

/// Numbers that only rise.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Seconds since 1970 at the last checkpoint.
    pub time: i64,
    /// The next transaction, with its epoch.
    pub next_xid: u64,
    /// The next multixact.
    pub next_multixact: u32,
    /// Transactions from the oldest that is not frozen to the next.
    pub xid_age: u64,
    /// Multixacts from the oldest to the next.
    pub multixact_age: u64,
    /// The position in the WAL.
    pub wal_bytes: u64,
}

/// What has changed between two measurements.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Growth {
    /// Seconds between the two checkpoints.
    pub seconds: i64,
    /// Bytes of all relations a day.
    pub bytes_per_day: f64,
    /// Dead row versions a day.
    pub dead_rows_per_day: f64,
    /// Transactions a day.
    pub xids_per_day: f64,
    /// Multixacts a day.
    pub multixacts_per_day: f64,
    /// Bytes of WAL a day.
    pub wal_bytes_per_day: f64,
    /// Limits that will be reached when all goes on like this, the soonest first.
    pub limits: Vec<LimitAhead>,
    /// Relations that grew most, the fastest first.
    pub relations: Vec<RelationGrowth>,
}

/// A limit that will be reached.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LimitAhead {
    /// What has it, in words.
    pub what: String,
    /// What it counts, in words.
    pub of: String,
    /// Where it stands.
    pub limit: u64,
    /// How much is there now.
    pub now: u64,
    /// Seconds since 1970 when it is reached.
    pub reached: i64,
}

/// How a relation grew.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RelationGrowth {
    /// Its database; absent for shared relations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Its name.
    pub relation: String,
    /// Bytes now.
    pub bytes: u64,
    /// Bytes a day.
    pub bytes_per_day: f64,
    /// Dead row versions a day, of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_rows_per_day: Option<f64>,
}

/// A figure's value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Figure {
    /// A number of things or bytes.
    Count(u64),
    /// A share, a mean.
    Real(f64),
    /// A statement.
    Text(String),
    /// Points of a picture.
    Points(Vec<[u64; 2]>),
    /// How often each value occurs.
    Spread(Spread),
}

/// How often each value occurs, in the order of the values.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Spread {
    /// The lowest.
    pub minimum: u64,
    /// The highest.
    pub maximum: u64,
    /// The mean.
    pub mean: f64,
    /// The commonest, the lowest of them where several are.
    pub mode: u64,
    /// Value and how often.
    pub histogram: Vec<[u64; 2]>,
}

impl Spread {
    /// From how often each value occurs; nothing of nothing.
    pub fn of(counts: &BTreeMap<u64, u64>) -> Option<Self> {
        let (minimum, maximum) = (*counts.first_key_value()?.0, *counts.last_key_value()?.0);
        let total: u64 = counts.values().sum();
        let sum: f64 = counts
            .iter()
            .map(|(value, often)| *value as f64 * *often as f64)
            .sum();
        let commonest = counts.iter().rev().max_by_key(|(_, often)| **often)?;
        Some(Spread {
            minimum,
            maximum,
            mean: sum / total as f64,
            mode: *commonest.0,
            histogram: counts
                .iter()
                .map(|(value, often)| [*value, *often])
                .collect(),
        })
    }
}

impl Figure {
    /// A count or a share.
    pub fn as_real(&self) -> Option<f64> {
        match self {
            Figure::Count(number) => Some(*number as f64),
            Figure::Real(number) => Some(*number),
            Figure::Text(_) | Figure::Points(_) | Figure::Spread(_) => None,
        }
    }
}

impl MeasuredRelation {
    /// A relation of the server itself, of any database.
    pub fn is_servers(&self) -> bool {
        self.relation_oid.is_some_and(|oid| oid < FIRST_NORMAL_OID)
    }

    /// `schema.name`, or the file where no name is known.
    pub fn name(&self) -> String {
        match (&self.schema, &self.relation) {
            (Some(schema), Some(name)) => format!("{schema}.{name}"),
            _ => self.path.clone(),
        }
    }

    /// A figure of a section.
    pub fn figure(&self, section: &str, name: &str) -> Option<&Figure> {
        self.sections.get(section)?.get(name)?.as_ref()
    }

    /// A count of a section.
    pub fn count(&self, section: &str, name: &str) -> Option<u64> {
        match self.figure(section, name)? {
            Figure::Count(number) => Some(*number),
            _ => None,
        }
    }

    /// A count or a share of a section.
    pub fn real(&self, section: &str, name: &str) -> Option<f64> {
        self.figure(section, name)?.as_real()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_of_the_commonest_is_the_mode() {
        let counts = BTreeMap::from([(3, 2), (5, 4), (9, 4)]);
        let spread = Spread::of(&counts).expect("values");
        assert_eq!((spread.minimum, spread.maximum, spread.mode), (3, 9, 5));
        assert_eq!(spread.mean, 6.2);
        assert_eq!(Spread::of(&BTreeMap::new()), None);
    }
}
