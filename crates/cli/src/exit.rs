//! How a run ends.

use std::fmt;

use clap::{Args, ValueEnum};
use pgclinic_model::document::{Finding, Verdict};
use pgclinic_model::{CheckDocument, Severity};

use crate::status_line::StatusCode;

/// Exit codes, as scripts rely on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// 0: healthy, or done.
    Healthy,
    /// 1: at least one finding of severity damage, or a drill that failed.
    Damaged,
    /// 2: could not work, or wrong usage.
    Failed,
    /// 3: not everything could be examined.
    Incomplete,
    /// 130: interrupted.
    Interrupted,
    /// 0 to 3, as plugins of monitoring systems have them.
    Status(StatusCode),
}

impl Exit {
    /// The number for the shell.
    pub fn code(self) -> u8 {
        match self {
            Exit::Healthy => 0,
            Exit::Damaged => 1,
            Exit::Failed => 2,
            Exit::Incomplete => 3,
            Exit::Interrupted => 130,
            Exit::Status(state) => state.code(),
        }
    }
}

/// A class of results that may decide the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ResultClass {
    /// At least one finding of severity damage, rows lost, copies that contradict each other: 1
    Damage,
    /// Something could not be read, named or compared: 3
    Incomplete,
    /// The cluster needs recovery: 3
    Recovery,
    /// At least one finding of severity warning: 1
    Warning,
}

impl ResultClass {
    /// The exit code of a run in which nothing is worse.
    fn exit(self) -> Exit {
        match self {
            ResultClass::Damage | ResultClass::Warning => Exit::Damaged,
            ResultClass::Incomplete | ResultClass::Recovery => Exit::Incomplete,
        }
    }

    /// The classes that hold for a findings document.
    pub(crate) fn of_check(document: &CheckDocument) -> Vec<Self> {
        let counts = |own: &&Finding| own.ignored.is_none();
        let counted = document.findings.iter().filter(counts);
        let has = |severity| counted.clone().any(|own| own.severity == severity);
        // One that was left out may be a new one.
        let is_cut = document.findings_omitted > 0 && document.verdict == Verdict::Damaged;
        let classes = [
            (has(Severity::Damage) || is_cut, ResultClass::Damage),
            (document.has_gaps_beyond_recovery(), ResultClass::Incomplete),
            (document.needs_recovery, ResultClass::Recovery),
            (has(Severity::Warning), ResultClass::Warning),
        ];
        let held = classes.into_iter().filter(|(holds, _)| *holds);
        held.map(|(_, class)| class).collect()
    }
}

/// Which results fail a run. Every command that comes to a verdict has it, and none has a rule of
/// its own.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FailOnArgs {
    /// Results that keep their exit code
    ///
    /// With any other result the run exits with 0. The words of the report and its JSON stay as
    /// they are.
    #[arg(
        long,
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "damage,incomplete,recovery",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub fail_on: Vec<ResultClass>,
}

impl FailOnArgs {
    /// Those of the classes that keep their exit code.
    pub(crate) fn failing(&self, classes: &[ResultClass]) -> Vec<ResultClass> {
        let failing = classes.iter().filter(|class| self.fail_on.contains(class));
        failing.copied().collect()
    }

    /// The exit code of a run for which these classes hold. An interrupted run did not come to its
    /// end, whatever it was asked for.
    pub(crate) fn exit(&self, classes: &[ResultClass], interrupted: bool) -> Exit {
        if interrupted {
            return Exit::Interrupted;
        }
        let exits = self.failing(classes).into_iter().map(ResultClass::exit);
        exits
            .min_by_key(|exit| exit.code())
            .unwrap_or(Exit::Healthy)
    }
}

/// Why a command could not work: one clear sentence with what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure(pub String);

impl Failure {
    /// From anything that can be said.
    pub fn new(why: impl fmt::Display) -> Self {
        Failure(why.to_string())
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(fail_on: &[ResultClass], classes: &[ResultClass]) -> u8 {
        let arguments = FailOnArgs {
            fail_on: fail_on.to_vec(),
        };
        arguments.exit(classes, false).code()
    }

    #[test]
    fn only_listed_classes_keep_their_code() {
        use ResultClass::{Damage, Incomplete, Recovery, Warning};
        let usual = [Damage, Incomplete, Recovery];
        assert_eq!(exit(&usual, &[]), 0);
        assert_eq!(exit(&usual, &[Warning]), 0);
        assert_eq!(exit(&usual, &[Incomplete, Recovery]), 3);
        assert_eq!(exit(&usual, &[Recovery, Damage]), 1);
        assert_eq!(exit(&[Damage], &[Incomplete, Recovery, Warning]), 0);
        assert_eq!(exit(&[Damage, Incomplete], &[Recovery]), 0);
        assert_eq!(exit(&[Incomplete], &[Damage, Incomplete]), 3);
        assert_eq!(exit(&[Damage, Warning], &[Warning]), 1);
    }

    #[test]
    fn an_interrupted_run_says_so_whatever_fails() {
        let arguments = FailOnArgs {
            fail_on: vec![ResultClass::Damage],
        };
        assert_eq!(arguments.exit(&[], true), Exit::Interrupted);
    }
}
