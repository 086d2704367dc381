//! SQL taken apart into words, quotes, comments and signs, and into commands: for scripts and for a
//! person's statements.
//!
//! The rules are those of `src/fe_utils/psqlscan.l`, which psql and pgbench share: `;` ends a
//! command outside of quotes, comments, parentheses, and of the body of a function in SQL (`BEGIN
//! ATOMIC … END`).

use super::SyntaxError;
use super::cursor::Cursor;

/// The smallest part of an SQL text that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Blank,
    /// From `--` to the end of the line.
    LineComment,
    /// `/* … */`, nested.
    BlockComment,
    /// A text, a name in quotes, or what stands between dollars.
    Quoted,
    /// A name, a key word or a number.
    Word(&'a str),
    Semicolon,
    Open,
    Close,
    Other,
}

/// Reads the next piece; `None` at the end of the text. A quote or a comment that is never closed
/// is an error.
pub(super) fn piece<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Piece<'a>>, SyntaxError> {
    let Some(first) = cursor.peek() else {
        return Ok(None);
    };
    let piece = match first {
        '-' if cursor.starts_with("--") => {
            cursor.take_while(|c| c != '\n');
            Piece::LineComment
        }
        '/' if cursor.starts_with("/*") => block_comment(cursor)?,
        '\'' | '"' => quoted(cursor, Backslash::IsPlain)?,
        '$' => dollar_quoted(cursor)?,
        letter if letter.is_alphanumeric() || letter == '_' => word(cursor)?,
        blank if blank.is_whitespace() => {
            cursor.take_while(char::is_whitespace);
            Piece::Blank
        }
        sign => {
            cursor.next();
            match sign {
                ';' => Piece::Semicolon,
                '(' => Piece::Open,
                ')' => Piece::Close,
                _ => Piece::Other,
            }
        }
    };
    Ok(Some(piece))
}

/// A word, or a text that begins with `E` and in which `\` escapes.
fn word<'a>(cursor: &mut Cursor<'a>) -> Result<Piece<'a>, SyntaxError> {
    let word = cursor.take_while(|c| c.is_alphanumeric() || c == '_' || c == '$');
    if word.eq_ignore_ascii_case("e") && cursor.peek() == Some('\'') {
        quoted(cursor, Backslash::Escapes)
    } else {
        Ok(Piece::Word(word))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslash {
    Escapes,
    IsPlain,
}

/// A quoted text or name, with doubled quotes inside.
fn quoted<'a>(cursor: &mut Cursor<'a>, backslash: Backslash) -> Result<Piece<'a>, SyntaxError> {
    let opened = *cursor;
    let quote = cursor.next();
    while let Some(character) = cursor.next() {
        if character == '\\' && backslash == Backslash::Escapes {
            cursor.next();
        } else if Some(character) == quote {
            if cursor.peek() != quote {
                return Ok(Piece::Quoted);
            }
            cursor.next();
        }
    }
    Err(opened.error("this quote is never closed"))
}

/// `$tag$ … $tag$`; a `$` that opens nothing stands for itself.
fn dollar_quoted<'a>(cursor: &mut Cursor<'a>) -> Result<Piece<'a>, SyntaxError> {
    let opened = *cursor;
    cursor.next();
    cursor.name();
    if cursor.next() != Some('$') {
        *cursor = opened;
        cursor.next();
        return Ok(Piece::Other);
    }
    let tag = opened.until(cursor);
    let Some(length) = cursor.rest().find(tag) else {
        return Err(opened.error("this quote is never closed"));
    };
    let inside = cursor.rest().get(..length).unwrap_or_default();
    cursor.skip(inside.chars().count() + tag.chars().count());
    Ok(Piece::Quoted)
}

/// `/* … */`, nested as in SQL.
fn block_comment<'a>(cursor: &mut Cursor<'a>) -> Result<Piece<'a>, SyntaxError> {
    let opened = *cursor;
    let mut depth = 0_u32;
    while cursor.peek().is_some() {
        if cursor.starts_with("/*") {
            depth += 1;
            cursor.skip(2);
        } else if cursor.starts_with("*/") {
            depth -= 1;
            cursor.skip(2);
            if depth == 0 {
                return Ok(Piece::BlockComment);
            }
        } else {
            cursor.next();
        }
    }
    Err(opened.error("this comment is never closed"))
}

/// Where in a command a place is: `;` ends the command only outside of everything.
#[derive(Debug, Default)]
pub(super) struct Nesting<'a> {
    parentheses: u32,
    /// `BEGIN` and, within, `CASE` without their `END`.
    blocks: u32,
    /// As many words as tell whether the command makes a function.
    first: Vec<&'a str>,
}

impl<'a> Nesting<'a> {
    /// Goes on over the next piece; whether the command ends with it.
    pub(super) fn ends_with(&mut self, piece: Piece<'a>) -> bool {
        match piece {
            Piece::Open => self.parentheses += 1,
            Piece::Close => self.parentheses = self.parentheses.saturating_sub(1),
            Piece::Word(word) => self.go_over(word),
            Piece::Semicolon => return self.parentheses == 0 && self.blocks == 0,
            _ => {}
        }
        false
    }

    fn go_over(&mut self, word: &'a str) {
        if self.first.len() < 4 {
            self.first.push(word);
        }
        if self.parentheses > 0 || !self.makes_a_routine() {
            return;
        }
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        if is("begin") || (self.blocks > 0 && is("case")) {
            self.blocks += 1;
        } else if is("end") {
            self.blocks = self.blocks.saturating_sub(1);
        }
    }

    /// `CREATE [OR REPLACE] FUNCTION` or `PROCEDURE`: elsewhere `BEGIN` begins a transaction.
    fn makes_a_routine(&self) -> bool {
        let is = |at: usize, other: &str| {
            let word = self.first.get(at);
            word.is_some_and(|word| word.eq_ignore_ascii_case(other))
        };
        let kind = if is(1, "or") && is(2, "replace") {
            3
        } else {
            1
        };
        is(0, "create") && (is(kind, "function") || is(kind, "procedure"))
    }
}

/// The statements of a text, without their `;`. What holds nothing but blanks and comments is none;
/// what is never closed reaches to the end of the text, and the server says what is wrong with it.
pub fn statements(sql: &str) -> Vec<String> {
    let (mut statements, mut rest) = (Vec::new(), Cursor::new(sql));
    while rest.peek().is_some() {
        let begin = rest;
        let (mut nesting, mut is_empty) = (Nesting::default(), true);
        let own = loop {
            let before = rest;
            match piece(&mut rest) {
                Ok(None) => break begin.until(&rest),
                Ok(Some(piece)) if nesting.ends_with(piece) => break begin.until(&before),
                Ok(Some(Piece::Blank | Piece::LineComment | Piece::BlockComment)) => {}
                Ok(Some(_)) => is_empty = false,
                Err(_) => {
                    statements.push(begin.rest().to_owned());
                    return statements;
                }
            }
        };
        if !is_empty {
            statements.push(own.to_owned());
        }
    }
    statements
}

/// The text without what a server passes over: comments go away, and blanks outside of quotes are
/// one blank. Hints stand in comments and stay; so does what follows something that is never
/// closed.
pub(crate) fn without_comments(sql: &str) -> String {
    let (mut plain, mut rest) = (String::new(), Cursor::new(sql));
    loop {
        let before = rest;
        match piece(&mut rest) {
            Ok(None) => break,
            Ok(Some(Piece::BlockComment)) if before.starts_with("/*+") => {
                plain.push_str(before.until(&rest));
            }
            Ok(Some(Piece::Blank | Piece::LineComment | Piece::BlockComment)) => {
                if !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
            Ok(Some(_)) => plain.push_str(before.until(&rest)),
            Err(_) => {
                plain.push_str(before.rest());
                break;
            }
        }
    }
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blanks_are_passed_over_outside_of_quotes_only() {
        let sql = "SELECT  'a  -- b' -- c\n  /* d /* e */ */ , $$ /* f */ $$\n";
        assert_eq!(without_comments(sql), "SELECT 'a  -- b' , $$ /* f */ $$");
        let hint = "/*+ SeqScan(t) */ SELECT 1";
        assert_eq!(without_comments(hint), hint);
        assert_eq!(without_comments("SELECT  'never"), "SELECT 'never");
    }

    fn parted(sql: &str) -> Vec<String> {
        let own = |statement: String| statement.trim().to_owned();
        statements(sql).into_iter().map(own).collect()
    }

    #[test]
    fn semicolons_part_statements_outside_of_quotes_only() {
        let sql = "SELECT 'a;b', \"c;d\"; DO $x$ BEGIN; END $x$; -- a; b\nVACUUM; /* ; */ ;";
        let expected = [
            "SELECT 'a;b', \"c;d\"",
            "DO $x$ BEGIN; END $x$",
            "-- a; b\nVACUUM",
        ];
        assert_eq!(parted(sql), expected);
    }

    #[test]
    fn backslashes_escape_in_texts_that_say_so_only() {
        let sql = r"SELECT E'it\'s; x'; SELECT e'\\'; SELECT 'C:\'; SELECT type'a;b'";
        let expected = [
            r"SELECT E'it\'s; x'",
            r"SELECT e'\\'",
            r"SELECT 'C:\'",
            "SELECT type'a;b'",
        ];
        assert_eq!(parted(sql), expected);
    }

    #[test]
    fn comments_nest_and_dollars_in_names_open_nothing() {
        let sql = "/* /* */ ; */ SELECT a$b; SELECT c$b$d; SELECT $1; SELECT (1;2)";
        let expected = [
            "/* /* */ ; */ SELECT a$b",
            "SELECT c$b$d",
            "SELECT $1",
            "SELECT (1;2)",
        ];
        assert_eq!(parted(sql), expected);
    }

    #[test]
    fn the_body_of_a_function_in_sql_is_one_statement() {
        let body = "BEGIN ATOMIC SELECT CASE x WHEN 1 THEN 2 END; SELECT (CASE WHEN x > 1 THEN 3 END); END";
        let function = format!("CREATE FUNCTION f(x integer) RETURNS integer {body}");
        let procedure = format!("create or replace procedure p(x integer) {body}");
        let sql = format!("{function}; {procedure}; BEGIN; SELECT 1; END;");
        let routines = [function.as_str(), procedure.as_str()];
        let expected = [&routines[..], &["BEGIN", "SELECT 1", "END"]].concat();
        assert_eq!(parted(&sql), expected);
    }

    #[test]
    fn what_is_never_closed_is_left_to_the_server() {
        for open in [
            "SELECT 'never; x",
            "SELECT $a$ x; $b$",
            "/* never; x",
            "SELECT \"x;",
        ] {
            assert_eq!(parted(&format!("SELECT 1; {open}")), ["SELECT 1", open]);
        }
        assert!(statements(" ;; -- nothing\n /* ; */").is_empty());
    }
}
