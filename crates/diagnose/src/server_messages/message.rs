//! What one message of the server is, and a match of it in a text.

use super::facts::Facts;
use super::names::Names;
use super::pasted::Pasted;
use super::pattern;

/// One family of messages: the wordings of all majors, what they mean, what to do.
pub trait ServerMessage: Sync {
    /// Kebab-case, never changes.
    fn name(&self) -> &'static str;
    /// SQLSTATEs it comes with.
    fn sqlstates(&self) -> &'static [&'static str];
    /// Its wordings as templates, see [`pattern`].
    fn patterns(&self) -> &'static [&'static str];
    /// The manual page, in Markdown.
    fn meaning(&self) -> &'static str;
    /// What to do next, safest first, with the real names where they are known.
    fn next_steps(&self, names: &Names<'_>) -> Vec<String>;

    /// The first place of the text where one of the wordings stands, with what it names.
    fn find(&self, text: &Pasted) -> Option<Facts> {
        self.patterns()
            .iter()
            .find_map(|template| pattern::find(template, text))
    }
}

/// A message that was recognised.
#[derive(Clone)]
pub struct Match {
    /// Which one.
    pub message: &'static dyn ServerMessage,
    /// What the text names.
    pub facts: Facts,
}

impl std::fmt::Debug for Match {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Match")
            .field("message", &self.message.name())
            .field("facts", &self.facts)
            .finish()
    }
}
