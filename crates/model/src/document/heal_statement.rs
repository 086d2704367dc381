//! SQL with which a running server heals itself.

use serde::{Deserialize, Serialize};

use crate::plan::Safety;

/// One statement of a plan for a running server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HealStatement {
    /// From 1: what `--run` names.
    pub number: u32,
    /// Follows from the cluster and the statement: what a user types to consent to a lossy one.
    pub id: String,
    /// How sure it is.
    pub safety: Safety,
    /// The database in which it runs.
    pub database: String,
    /// The statement.
    pub sql: String,
    /// What it locks, and who waits meanwhile.
    pub locks: String,
    /// What it is for, and what has to be known before.
    pub why: String,
    /// What the server answered; absent where it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<StatementAnswer>,
}

/// What came of a statement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StatementAnswer {
    /// It was carried out.
    pub done: bool,
    /// The server's error, or its notices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}
