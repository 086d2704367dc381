//! What to do about all findings together, in order.

use serde::{Deserialize, Serialize};

use crate::plan::Safety;

/// One step; those before it come first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlanStep {
    /// Kebab-case name of what is done.
    pub name: String,
    /// Whether it restores what was there, loses rows, or is only advice.
    pub safety: Safety,
    /// Why, and what has to be known before.
    pub why: String,
    /// What it is done to; empty where it is about the cluster as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<PlanRelation>,
    /// Further ones, counted and not kept.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub relations_omitted: u64,
    /// What to type, or a sentence where no command does it.
    pub commands: Vec<String>,
    /// Further ones, counted and not kept.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub commands_omitted: u64,
}

/// A relation or file in a step.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct PlanRelation {
    /// Its database; absent for shared relations and files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// `schema.name`, or the path where no name is known.
    pub name: String,
}
