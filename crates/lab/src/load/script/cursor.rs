//! A place in a script that knows its line and column.

use super::SyntaxError;

/// Reads a text character by character.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            line: 1,
            column: 1,
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn starts_with(&self, what: &str) -> bool {
        self.rest.starts_with(what)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        if character == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(character)
    }

    /// The text from here to a later place of the same script.
    pub(super) fn until(&self, later: &Cursor<'a>) -> &'a str {
        let length = self.rest.len().saturating_sub(later.rest.len());
        self.rest.get(..length).unwrap_or_default()
    }

    /// The same line and column over another text of the same shape.
    pub(super) fn over<'b>(&self, text: &'b str) -> Cursor<'b> {
        Cursor {
            rest: text,
            line: self.line,
            column: self.column,
        }
    }

    /// Steps over `count` characters.
    pub(super) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.next();
        }
    }

    /// Steps over the longest run of characters that fit, and gives it.
    pub(super) fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let begin = *self;
        while self.peek().is_some_and(&fits) {
            self.next();
        }
        begin.until(self)
    }

    /// A name of letters, digits and `_`, as variables of pgbench are; empty when there is none.
    pub(super) fn name(&mut self) -> &'a str {
        match self.peek() {
            Some(first) if first.is_alphabetic() || first == '_' => {
                self.take_while(|c| c.is_alphanumeric() || c == '_')
            }
            _ => "",
        }
    }

    pub(super) fn error(&self, why: impl Into<String>) -> SyntaxError {
        SyntaxError {
            line: self.line,
            column: self.column,
            why: why.into(),
        }
    }
}
