//! What a person brings to an experiment: the shape of a table of theirs, statements of their own,
//! a table of traffic, or rules of OAuth. It is part of the plan, so that a folder can be resumed
//! without the table and without the file.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::experiments::oauth_login::OauthSetUp;
use crate::table_profile::TableShape;

/// What is taken from outside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UserInput {
    /// The shape of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<TableShape>,
    /// Statements, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ddl: Option<String>,
    /// How often what is measured happens, as (label, times): `("Black Friday", 60000)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<(String, u64)>,
    /// An issuer and rules of OAuth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthSetUp>,
}

impl UserInput {
    /// Nothing was brought.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The experiment with what was brought; `None` when nothing was.
    ///
    /// # Errors
    /// When the experiment has no place for it.
    pub fn tailor(&self, experiment: &dyn Experiment) -> Result<Option<Box<dyn Experiment>>> {
        let mut tailored: Option<Box<dyn Experiment>> = None;
        if let Some(shape) = &self.shape {
            tailored = Some(experiment.with_shape(shape)?);
        }
        if let Some(sql) = &self.ddl {
            let so_far = tailored.as_deref().unwrap_or(experiment);
            tailored = Some(so_far.with_ddl(sql)?);
        }
        if !self.traffic.is_empty() {
            let so_far = tailored.as_deref().unwrap_or(experiment);
            tailored = Some(so_far.with_traffic(&self.traffic)?);
        }
        if let Some(own) = &self.oauth {
            let so_far = tailored.as_deref().unwrap_or(experiment);
            tailored = Some(so_far.with_oauth(own)?);
        }
        Ok(tailored)
    }
}

/// Says that an experiment has no place for what was brought, and which have.
pub(crate) fn no_place(experiment: &str, option: &str, others: &str) -> Error {
    Error::Refused(format!(
        "{experiment} has no use for {option}; {others} has"
    ))
}
