//! What a task is.

/// Success, or a sentence that says what was wrong and where.
pub(crate) type Outcome = Result<(), String>;

/// One chore: a row of the table in `tasks/mod.rs`.
pub(crate) struct Task {
    /// The word on the command line.
    pub(crate) name: &'static str,
    /// One line for the overview.
    pub(crate) summary: &'static str,
    /// The arguments with which `cargo xtask ci` runs it; `None` keeps it out of there.
    pub(crate) in_ci: Option<&'static [&'static str]>,
    /// The work, given the words after the task's name.
    pub(crate) run: fn(&[String]) -> Outcome,
}
