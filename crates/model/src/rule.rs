//! A rule: one way in which bytes can be wrong, with its name and its page of the manual.

use serde::{Deserialize, Serialize};

/// How bad a finding is. The order is from worst to mildest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Bytes contradict the format or each other: data is or may be lost.
    Damage,
    /// Legal, but somebody should know before it hurts.
    Warning,
    /// Worth saying, needs nothing done.
    Note,
}

impl Severity {
    /// `damage`, `warning` or `note`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Damage => "damage",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// What a check can say. The name is kebab-case, names the defect and never changes.
#[derive(Debug)]
pub struct Rule {
    /// `lower-beyond-upper`.
    pub name: &'static str,
    /// Severity of its findings.
    pub severity: Severity,
    /// One line for lists.
    pub summary: &'static str,
    /// The manual, in Markdown: what was seen, what usually causes it, what is at risk, what to do.
    pub explain: &'static str,
}
