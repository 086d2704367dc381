//! Lines of text: indented, wrapped, coloured when asked.

use std::io;

use pgclinic_model::Severity;
use unicode_width::UnicodeWidthChar;

use crate::Options;

/// Narrower terminals get lines of this many columns.
const WIDTH_MIN: u16 = 40;

/// How words look.
#[derive(Clone, Copy)]
pub(crate) enum Ink {
    /// Damage, failure.
    Bad,
    /// Warnings, what was not checked.
    Warn,
    /// Health, success.
    Good,
    /// Headings and names.
    Strong,
    /// Labels, asides.
    Faint,
}

impl Ink {
    fn escape(self) -> &'static str {
        match self {
            Ink::Bad => "\x1b[1;31m",
            Ink::Warn => "\x1b[1;33m",
            Ink::Good => "\x1b[1;32m",
            Ink::Strong => "\x1b[1m",
            Ink::Faint => "\x1b[2m",
        }
    }

    /// The ink of a severity.
    pub(crate) fn of(severity: Severity) -> Self {
        match severity {
            Severity::Damage => Ink::Bad,
            Severity::Warning => Ink::Warn,
            Severity::Note => Ink::Strong,
        }
    }
}

/// Where lines go. What is written must have gone through `clean` before it is inked.
pub(crate) struct Sheet<'a> {
    out: &'a mut dyn io::Write,
    width: usize,
    color: bool,
    /// Something was written: what stands first has no gap over it.
    is_begun: bool,
    /// The last line is an empty one.
    is_after_gap: bool,
    /// What comes next has a gap over it.
    is_owed_gap: bool,
    /// Somebody reads it on a screen, and no script does.
    is_screen: bool,
    /// Rows of a screen that were written.
    rows: usize,
    /// Of them, those before the last verdict.
    rows_before_verdict: Option<usize>,
}

impl<'a> Sheet<'a> {
    /// A blank at which no line is broken; it is written as any blank. No name holds it: control
    /// characters are escaped before.
    pub(crate) const BLANK_IN_CODE: &'static str = "\u{1}";

    pub(crate) fn new(out: &'a mut dyn io::Write, options: &Options<'_>) -> Self {
        let width = usize::from(options.width.max(WIDTH_MIN));
        Sheet {
            out,
            width,
            color: options.color,
            is_begun: false,
            is_after_gap: false,
            is_owed_gap: false,
            is_screen: options.screen_rows.is_some(),
            rows: 0,
            rows_before_verdict: None,
        }
    }

    /// A verdict begins here.
    pub(crate) fn mark_verdict(&mut self) {
        self.rows_before_verdict = Some(self.rows);
    }

    /// Rows of the last verdict and all that follows it; nothing where none was written.
    pub(crate) fn rows_since_verdict(&self) -> Option<usize> {
        let before = self.rows_before_verdict?;
        Some(self.rows.saturating_sub(before))
    }

    /// Somebody reads it on a screen, and no script does.
    pub(crate) fn is_screen(&self) -> bool {
        self.is_screen
    }

    /// Words may have colours.
    pub(crate) fn is_coloured(&self) -> bool {
        self.color
    }

    /// Columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The words in their ink, or as they are.
    pub(crate) fn ink(&self, ink: Ink, words: &str) -> String {
        if self.color {
            format!("{}{words}\x1b[0m", ink.escape())
        } else {
            words.to_owned()
        }
    }

    /// An empty line, unless nothing stands above it.
    pub(crate) fn gap(&mut self) -> io::Result<()> {
        if self.is_begun {
            self.rows += 1;
            self.is_after_gap = true;
            self.is_owed_gap = false;
            self.out.write_all(b"\n")
        } else {
            Ok(())
        }
    }

    /// What comes next stands apart from what was written last.
    pub(crate) fn set_apart(&mut self) {
        self.is_owed_gap = true;
    }

    /// An empty line, unless one stands above it.
    pub(crate) fn gap_once(&mut self) -> io::Result<()> {
        if self.is_after_gap {
            Ok(())
        } else {
            self.gap()
        }
    }

    /// One line as it is, never wrapped: for what people copy and scripts read.
    pub(crate) fn raw(&mut self, line: &str) -> io::Result<()> {
        if self.is_owed_gap {
            self.gap()?;
        }
        self.is_begun = true;
        self.is_after_gap = false;
        // A longer line goes on in the next row.
        self.rows += visible(line).div_ceil(self.width).max(1);
        let line = line.trim_end().replace(Self::BLANK_IN_CODE, " ");
        self.out.write_all(line.as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// Words behind an indent, wrapped.
    pub(crate) fn text(&mut self, indent: usize, words: &str) -> io::Result<()> {
        self.entry(indent, "", 0, words)
    }

    /// A label and wrapped words beside it; `column` is where the words begin after the indent.
    pub(crate) fn entry(
        &mut self,
        indent: usize,
        label: &str,
        column: usize,
        words: &str,
    ) -> io::Result<()> {
        // A label that is too long for its column has a line of its own.
        let is_wide = !label.is_empty() && visible(label) >= column.max(1);
        if is_wide {
            let label = self.ink(Ink::Faint, label);
            self.raw(&format!("{:indent$}{label}", ""))?;
        }
        let label = if is_wide { "" } else { label };
        let room = self.width.saturating_sub(indent + column);
        let mut lines = wrap(words, room).into_iter();
        let first = lines.next().unwrap_or_default();
        let label = self.pad(label, column);
        self.raw(&format!("{:indent$}{label}{first}", ""))?;
        for line in lines {
            self.raw(&format!("{:1$}{line}", "", indent + column))?;
        }
        Ok(())
    }

    /// A line and words beside it, which wrap in their own column.
    pub(crate) fn aside(&mut self, line: &str, column: usize, words: &str) -> io::Result<()> {
        let mut lines = wrap(words, self.width.saturating_sub(column)).into_iter();
        let first = lines.next().unwrap_or_default();
        self.raw(&format!("{line:<column$}{first}"))?;
        for more in lines {
            self.raw(&format!("{:column$}{more}", ""))?;
        }
        Ok(())
    }

    fn pad(&self, label: &str, column: usize) -> String {
        if label.is_empty() {
            return " ".repeat(column);
        }
        let gap = column.saturating_sub(visible(label)).max(1);
        format!("{}{:gap$}", self.ink(Ink::Faint, label), "")
    }
}

/// Columns that a text takes, escape sequences for colours aside.
pub(crate) fn visible(text: &str) -> usize {
    let mut columns = 0;
    let mut in_escape = false;
    for letter in text.chars() {
        match letter {
            '\x1b' => in_escape = true,
            'm' if in_escape => in_escape = false,
            _ if in_escape => {}
            // The blank of code, which is written as any blank.
            '\u{1}' => columns += 1,
            _ => columns += letter.width().unwrap_or(0),
        }
    }
    columns
}

/// Lines of at most `room` columns, cut at blanks; a longer word stays whole, so that it can be
/// copied, and a number keeps its unit.
fn wrap(words: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut taken = 0;
    let mut words = words.split(' ').peekable();
    while let Some(word) = words.next() {
        let len = visible(word);
        let unit = words.peek().filter(|next| is_unit_of(word, next));
        let whole = len + unit.map_or(0, |unit| 1 + visible(unit));
        let is_after_number = line
            .rsplit(' ')
            .next()
            .is_some_and(|last| is_unit_of(last, word));
        if taken > 0 && !is_after_number && taken + 1 + whole > room {
            lines.push(std::mem::take(&mut line));
            taken = 0;
        } else if taken > 0 {
            line.push(' ');
            taken += 1;
        }
        line.push_str(word);
        taken += len;
    }
    lines.push(line);
    lines
}

/// Units that mean little on a line without their number.
const UNITS: [&str; 13] = [
    "s", "ms", "us", "min", "h", "d", "%", "B", "KiB", "MiB", "GiB", "TiB", "PiB",
];

/// `0.33`, then `s`, or `s;`.
fn is_unit_of(number: &str, word: &str) -> bool {
    let number = number.trim_start_matches(['(', '~', '<', '>', '-', '+']);
    let is_part = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',' | '-');
    let is_number =
        number.ends_with(|last: char| last.is_ascii_digit()) && number.chars().all(is_part);
    let word = word.trim_end_matches(['.', ',', ';', ':', ')']);
    is_number && UNITS.contains(&word)
}

/// The text in lines of at most so many columns. What a line goes on with stands under the words
/// that it began with; a command is never broken, so that it can be copied.
pub fn in_columns(text: &str, columns: u16) -> String {
    let columns = usize::from(columns.max(WIDTH_MIN));
    let line = |line: &str| hanging(line, columns);
    text.split_inclusive('\n').map(line).collect()
}

fn hanging(line: &str, columns: usize) -> String {
    let (own, end) = match line.strip_suffix('\n') {
        Some(own) => (own, "\n"),
        None => (line, ""),
    };
    let (label, words) = label_and_words(own, columns / 2);
    let indent = visible(label);
    // Who writes so far to the right wants it there.
    let is_far = indent >= columns;
    if visible(own) <= columns || is_command(own) || is_far {
        return line.to_owned();
    }
    let lines = wrap(&with_codes_whole(words), columns - indent);
    let between = format!("\n{:indent$}", "");
    let lines = lines.join(&between).replace(Sheet::BLANK_IN_CODE, " ");
    format!("{label}{lines}{end}")
}

/// Nothing stands on the line but what is typed, and what it is for before a colon.
fn is_command(line: &str) -> bool {
    let typed = line.rsplit_once(": ").map_or(line, |(_, typed)| typed);
    typed.trim_start().starts_with("pgclinic ")
}

/// The first column of a line of two, with the blanks after it; else the blanks before the words.
fn label_and_words(line: &str, columns_max: usize) -> (&str, &str) {
    let is_blank = |letter: char| letter == ' ';
    let words = line.trim_start_matches(is_blank);
    let indent = line.len() - words.len();
    let second = words.find("  ").map(|at| {
        let rest = words.get(at..).unwrap_or_default();
        line.len() - rest.trim_start_matches(is_blank).len()
    });
    let second = second.filter(|at| *at <= columns_max);
    line.split_at(second.unwrap_or(indent))
}

/// Blanks between backticks are no place to break a line.
fn with_codes_whole(words: &str) -> String {
    let part = |(at, part): (usize, &str)| match at % 2 {
        1 => part.replace(' ', Sheet::BLANK_IN_CODE),
        _ => part.to_owned(),
    };
    let parts: Vec<String> = words.split('`').enumerate().map(part).collect();
    parts.join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on_under_their_words_and_commands_stay_whole() {
        let text = "zeroed-page  every byte of a page is zero as after a lost write\n";
        assert_eq!(
            in_columns(text, 40),
            "zeroed-page  every byte of a page is\n             zero as after a lost write\n"
        );
        let far = format!("{:90}no room is left for words", "");
        assert_eq!(in_columns(&far, 40), far);
        let typed = "undo: pgclinic injure --undo /var/lib/postgresql/15/main.journal\n";
        assert_eq!(in_columns(typed, 40), typed);
        assert_eq!(
            in_columns("then run once more `pgclinic lab list` to see it", 40),
            "then run once more `pgclinic lab list`\nto see it"
        );
    }

    #[test]
    fn words_wrap_and_long_ones_stay_whole() {
        assert_eq!(wrap("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrap("x base/5/16384.1 y", 6), ["x", "base/5/16384.1", "y"]);
        assert_eq!(wrap("ERROR:  m", 80), ["ERROR:  m"]);
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(wrap("read in 0.33 s", 12), ["read in", "0.33 s"]);
        assert_eq!(
            wrap("has 15.0 % free space", 10),
            ["has 15.0 %", "free space"]
        );
        assert_eq!(
            wrap("all of (1,024 KiB) is there", 14),
            ["all of", "(1,024 KiB) is", "there"]
        );
        // What is no unit, or stands after no number, is a word as any other.
        assert_eq!(wrap("block 12 here", 8), ["block 12", "here"]);
        assert_eq!(wrap("in plan s of", 8), ["in plan", "s of"]);
    }

    #[test]
    fn colours_take_no_room_and_wide_letters_take_two_columns() {
        assert_eq!(visible("\x1b[1;31mab\x1b[0m"), 2);
        assert_eq!(visible("顧客"), 4);
    }
}
