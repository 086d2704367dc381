//! Which experiment: one of the register, or a person's own file.

use std::path::Path;

use pgclinic_lab::{EXPERIMENTS, Experiment, OwnExperiment, Plan, UserInput, experiment_named};

use crate::exit::Failure;

/// An experiment that was found.
pub(super) enum FoundExperiment {
    /// One of the register.
    Listed(&'static dyn Experiment),
    /// Out of a file, with the file's text.
    Own(Box<OwnExperiment>, String),
    /// One of them with what a user brought, with the text of its file.
    Tailored(Box<dyn Experiment>, Option<String>),
}

impl FoundExperiment {
    /// The experiment.
    pub(super) fn experiment(&self) -> &dyn Experiment {
        match self {
            FoundExperiment::Listed(experiment) => *experiment,
            FoundExperiment::Own(own, _) => own.as_ref(),
            FoundExperiment::Tailored(experiment, _) => experiment.as_ref(),
        }
    }

    /// The text of the file, for the plan.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            FoundExperiment::Listed(_) => None,
            FoundExperiment::Own(_, text) => Some(text.clone()),
            FoundExperiment::Tailored(_, text) => text.clone(),
        }
    }

    /// The same with what a user brings.
    pub(super) fn with(self, yours: &UserInput) -> Result<Self, Failure> {
        let text = self.text();
        match yours.tailor(self.experiment())? {
            Some(tailored) => Ok(FoundExperiment::Tailored(tailored, text)),
            None => Ok(self),
        }
    }
}

/// The experiment that was named, or that stands in the file of this name.
pub(super) fn find(name: &str) -> Result<FoundExperiment, Failure> {
    if let Some(listed) = experiment_named(name) {
        return Ok(FoundExperiment::Listed(listed));
    }
    if name.ends_with(".toml") || Path::new(name).is_file() {
        let text = std::fs::read_to_string(name)
            .map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
        let own = OwnExperiment::parse(&text)
            .map_err(|error| Failure::new(format!("{name}: {error}")))?;
        return Ok(FoundExperiment::Own(Box::new(own), text));
    }
    let names: Vec<&str> = EXPERIMENTS.iter().map(|known| known.name()).collect();
    Err(Failure::new(format!(
        "there is no experiment \"{name}\"; there is {}, or a file that `pgclinic lab new FILE.toml` writes",
        names.join(", ")
    )))
}

/// The experiment of a directory's plan.
pub(super) fn of_plan(plan: &Plan) -> Result<FoundExperiment, Failure> {
    let known = match &plan.own {
        None => find(&plan.experiment)?,
        Some(text) => FoundExperiment::Own(Box::new(OwnExperiment::parse(text)?), text.clone()),
    };
    known.with(&plan.yours)
}
