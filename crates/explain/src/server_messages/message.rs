//! One family of messages of the server, read from its Markdown file, and a match of it in a text.
//!
//! ```text
//! ---
//! name: short-read
//! sqlstates: XX001
//! stands for: XX001
//! terms: relation size, RELSEG_SIZE
//! patterns: |
//!   could not read block {block} in file {path}: read only {n} of {n} bytes
//! ---
//!
//! What it means, in Markdown, one line a paragraph.
//!
//! ## Next steps
//!
//! 1. {look}
//! ```
//!
//! `stands for` is written where a page answers for every message of an SQLSTATE whose words no
//! page knows, such as a translated one; `terms` are names of settings, tools and files by which it
//! is asked for. Braces in patterns catch what the message names (`pattern`); braces in steps are
//! filled in by `Names`.

use super::facts::Facts;
use super::names::Names;
use super::pasted::Pasted;
use super::pattern;

/// Ends what a message means and begins what to do.
const NEXT_STEPS: &str = "\n\n## Next steps\n\n";

/// One family of messages: the wordings of all majors, what they mean, what to do.
#[derive(Debug)]
pub struct ServerMessage {
    /// Kebab-case, never changes; its file is called so.
    pub name: &'static str,
    /// SQLSTATEs it comes with.
    pub sqlstates: Vec<&'static str>,
    /// SQLSTATEs whose messages it explains when no page knows their words.
    pub stands_for: Vec<&'static str>,
    /// Settings, tools, files and counters that it is about.
    pub terms: Vec<&'static str>,
    /// Its wordings as templates, see [`pattern`].
    pub patterns: Vec<&'static str>,
    /// The manual page, in Markdown.
    pub meaning: &'static str,
    /// What to do next, safest first, as templates.
    steps: Vec<&'static str>,
}

impl ServerMessage {
    /// Reads the page of a message. A page that is not written as the module says is a bug, and a
    /// test reads all.
    pub(super) fn parse(page: &'static str) -> ServerMessage {
        let parts = page.strip_prefix("---\nname: ").and_then(|page| {
            let (head, body) = page.split_once("---\n\n")?;
            let (head, patterns) = head.split_once("patterns: |\n")?;
            let (name, head) = head.split_once('\n')?;
            let (meaning, steps) = body.split_once(NEXT_STEPS)?;
            Some((name, head, patterns, meaning, steps))
        });
        let Some((name, head, patterns, meaning, steps)) = parts else {
            panic!("a page of a server message is not written as its module says: {page}");
        };
        let values = |key: &str| {
            let lines = head.lines().filter_map(|line| line.strip_prefix(key));
            lines.flat_map(|values| values.split(", ")).collect()
        };
        let step = |line: &'static str| line.split_once(". ").map(|(_number, step)| step);
        ServerMessage {
            name,
            sqlstates: values("sqlstates: "),
            stands_for: values("stands for: "),
            terms: values("terms: "),
            patterns: patterns.lines().map(str::trim).collect(),
            meaning,
            steps: steps.lines().filter_map(step).collect(),
        }
    }

    /// What to do next, safest first, with the real names where they are known.
    pub fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        self.steps
            .iter()
            .flat_map(|step| names.fill_in(step))
            .collect()
    }

    /// The first place of the text where one of the wordings stands, with what it names.
    pub(super) fn find(&self, text: &Pasted) -> Option<Facts> {
        self.patterns
            .iter()
            .find_map(|template| pattern::find(template, text))
    }
}

/// A message that was recognised.
#[derive(Clone, Debug)]
pub struct Match {
    /// Which one.
    pub message: &'static ServerMessage,
    /// What the text names.
    pub facts: Facts,
}
