//! Which experiment: one of the register.

use pgclinic_lab::{EXPERIMENTS, Experiment, experiment_named};

use crate::exit::Failure;

/// The experiment that was named.
pub(super) fn find(name: &str) -> Result<&'static dyn Experiment, Failure> {
    experiment_named(name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|known| known.name()).collect();
        Failure::new(format!(
            "there is no experiment \"{name}\"; there is {}",
            names.join(", ")
        ))
    })
}
