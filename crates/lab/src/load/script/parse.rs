//! From text to steps.

use std::collections::BTreeMap;

use super::cursor::Cursor;
use super::scan::{self, Nesting, Piece};
use super::{CLIENT_ID, Expression, Script, Step, SyntaxError, Template};

/// The variables that are set so far, in the order of their slots.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<String>);

impl Names {
    pub(super) fn slot(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|known| known == name)
    }

    /// The slot of a name, a new one if needed.
    pub(super) fn add(&mut self, name: &str) -> usize {
        self.slot(name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        })
    }

    pub(super) fn unset(&self, at: &Cursor<'_>, name: &str) -> SyntaxError {
        let known: Vec<String> = self.0.iter().map(|known| format!(":{known}")).collect();
        let known = known.join(", ");
        at.error(format!(
            "no variable :{name} is set before this (there are {known})"
        ))
    }
}

pub(super) fn script(text: &str, given: &BTreeMap<String, i64>) -> Result<Script, SyntaxError> {
    let mut names = Names::default();
    let mut first_values = Vec::new();
    for (name, value) in given {
        names.add(name);
        first_values.push(*value);
    }
    let client_slot = names.add(CLIENT_ID);
    let mut steps = Vec::new();
    let mut cursor = Cursor::new(text);
    loop {
        skip_between(&mut cursor)?;
        match cursor.peek() {
            None => break,
            Some('\\') => steps.push(set(&mut cursor, &mut names)?),
            Some(_) => steps.push(Step::Sql(sql(&mut cursor, &names)?)),
        }
    }
    if !steps.iter().any(|step| matches!(step, Step::Sql(_))) {
        return Err(cursor.error("the script has no SQL command"));
    }
    first_values.resize(names.0.len(), 0);
    Ok(Script {
        steps,
        slots: first_values,
        client_slot,
        given: given.clone(),
        text: text.to_owned(),
    })
}

/// Steps over blanks, comments and empty commands.
fn skip_between(cursor: &mut Cursor<'_>) -> Result<(), SyntaxError> {
    loop {
        cursor.take_while(|c| c.is_whitespace() || c == ';');
        if cursor.starts_with("--") {
            cursor.take_while(|c| c != '\n');
        } else if cursor.starts_with("/*") {
            scan::piece(cursor)?;
        } else {
            return Ok(());
        }
    }
}

/// `\set name expression` to the end of the line, or of the last line that a `\` at the end
/// continues.
fn set(cursor: &mut Cursor<'_>, names: &mut Names) -> Result<Step, SyntaxError> {
    let at = *cursor;
    cursor.next();
    let command = cursor.take_while(|c| !c.is_whitespace());
    if !command.eq_ignore_ascii_case("set") {
        return Err(at.error(format!("\\{command} is not known here: only \\set is")));
    }
    cursor.take_while(|c| c == ' ' || c == '\t');
    let name = cursor.name();
    if name.is_empty() {
        return Err(cursor.error("a name is missing here"));
    }
    // Blanks keep every character in its line and column while the expression becomes one line.
    let begin = *cursor;
    let text = logical_line(cursor);
    let mut line = begin.over(&text);
    let to = Expression::parse(&mut line, names)?;
    if line.peek().is_some() {
        return Err(line.error("nothing more is understood after this expression"));
    }
    let slot = names.add(name);
    Ok(Step::Set { slot, to })
}

/// The rest of the line, and of those that it continues on; their `\` become blanks.
fn logical_line(cursor: &mut Cursor<'_>) -> String {
    let mut text = String::new();
    loop {
        if cursor.starts_with("\\\n") || cursor.starts_with("\\\r\n") {
            cursor.next();
            text.push(' ');
            text.push_str(cursor.take_while(|c| c == '\r'));
            text.extend(cursor.next());
            continue;
        }
        match cursor.peek() {
            None | Some('\n') => return text,
            Some(character) => text.push(character),
        }
        cursor.next();
    }
}

/// One command up to its `;`, or up to the end of the text. Comments to the end of a line are left
/// out, others stay: some extensions read hints in them.
fn sql(cursor: &mut Cursor<'_>, names: &Names) -> Result<Template, SyntaxError> {
    let mut template = Template::default();
    let mut nesting = Nesting::default();
    let mut after_word = false;
    while let Some(character) = cursor.peek() {
        let at = *cursor;
        if character == '\\' {
            return Err(at.error("\\ within an SQL command: end the command with ; first"));
        }
        if character == ':' {
            if !variable(cursor, names, &mut template, after_word)? {
                template.push_text(at.until(cursor));
            }
            after_word = false;
            continue;
        }
        let Some(piece) = scan::piece(cursor)? else {
            break;
        };
        if nesting.ends_with(piece) {
            break;
        }
        after_word = matches!(piece, Piece::Word(_));
        match piece {
            Piece::LineComment => continue,
            Piece::Quoted => refuse_variables(at, cursor, names)?,
            _ => {}
        }
        template.push_text(at.until(cursor));
    }
    debug_assert!(!template.is_blank(), "skip_between leaves no blank command");
    Ok(template)
}

/// `:name` becomes a place; `::`, `:=` and the colon of a slice such as `x[1:2]` stay text.
fn variable(
    cursor: &mut Cursor<'_>,
    names: &Names,
    template: &mut Template,
    after_word: bool,
) -> Result<bool, SyntaxError> {
    let at = *cursor;
    let colons = cursor.take_while(|c| c == ':');
    if colons.len() != 1 {
        return Ok(false);
    }
    let name = cursor.name();
    if name.is_empty() {
        return Ok(false);
    }
    match names.slot(name) {
        Some(slot) => template.push_slot(slot),
        // `a[low:high]` with columns is SQL; pgbench leaves it alone too.
        None if after_word => template.push_text(at.until(cursor)),
        None => return Err(names.unset(&at, name)),
    }
    Ok(true)
}

/// pgbench replaces a variable in the simple protocol wherever it stands, in texts, names and
/// dollar quotes too, and sends `$1` there in the others, which the server takes as part of the
/// quote.
fn refuse_variables<'a>(
    opened: Cursor<'a>,
    end: &Cursor<'a>,
    names: &Names,
) -> Result<(), SyntaxError> {
    let mut inside = opened.over(opened.until(end));
    while inside.peek().is_some() {
        let at = inside;
        if inside.take_while(|c| c == ':').len() != 1 {
            inside.take_while(|c| c != ':');
            continue;
        }
        let name = inside.name();
        if !name.is_empty() && names.slot(name).is_some() {
            return Err(at.error(format!(
                ":{name} stands inside quotes, where pgbench replaces it in the simple protocol only; \
                 write 'text' || :{name}, or call the variable otherwise"
            )));
        }
    }
    Ok(())
}
