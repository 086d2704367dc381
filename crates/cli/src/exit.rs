//! How a run ends.

use std::fmt;

use pgclinic_diagnose::{CheckDocument, Verdict};

/// Exit codes, as scripts rely on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// 0: healthy, or done.
    Healthy,
    /// 1: at least one finding of severity damage, or a drill that failed.
    Damaged,
    /// 2: could not work, or wrong usage.
    Failed,
    /// 3: not everything could be looked at.
    Incomplete,
    /// 130: interrupted.
    Interrupted,
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
        }
    }

    /// The exit that a findings document asks for.
    pub fn of(document: &CheckDocument) -> Self {
        match document.verdict {
            _ if document.interrupted => Exit::Interrupted,
            Verdict::Damaged => Exit::Damaged,
            Verdict::Incomplete => Exit::Incomplete,
            Verdict::Healthy => Exit::Healthy,
        }
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
