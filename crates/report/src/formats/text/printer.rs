//! A view in lines.

use std::io;

use super::sheet::{Ink, Sheet};
use super::{dump, table};
use crate::RuleText;
use crate::view::{
    Block, Fold, Frame, Line, List, Look, Medium, ParagraphStyle, Part, Steps, Tone, Verdict, Words,
};
use crate::words::{self, clean};

/// Columns before what stands under nothing.
const MARGIN: usize = 2;
/// What a shell writes below the last line takes so many rows.
const PROMPT_ROWS: usize = 3;

pub(super) fn blocks(blocks: &[Block], indent: usize, sheet: &mut Sheet<'_>) -> io::Result<()> {
    blocks.iter().try_for_each(|own| block(own, indent, sheet))
}

fn block(block: &Block, indent: usize, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let inside = indent.max(MARGIN);
    match block {
        Block::Verdict(own) => verdict(own, sheet),
        Block::Text(ParagraphStyle::Loud, own) => {
            let own = sheet.ink(Ink::Warn, &line(own, None, sheet));
            sheet.text(inside, &own)
        }
        Block::Text(_, own) => labelled("", 0, own, inside, sheet),
        Block::Part(own) => part(own, indent, sheet),
        Block::Facts(facts) => self::facts(facts, inside, sheet),
        Block::Entries(own) => {
            let mut rows = own.rows.iter();
            rows.try_for_each(|(label, words)| labelled(label, own.column, words, inside, sheet))
        }
        Block::Reasons(reasons) => reasons.iter().try_for_each(|(what, why)| {
            let words = format!("{}: {}", line(what, None, sheet), line(why, None, sheet));
            sheet.entry(inside, "-", 2, &words)
        }),
        Block::List(own) => list(own, inside, sheet),
        Block::Steps(own) => steps(own, inside, sheet),
        Block::Table(own) => table::table(own, sheet),
        Block::Command(command) => sheet.raw(&format!("{:1$}{2}", "", inside + 2, clean(command))),
        Block::Rules(own) => rules(own, sheet),
        Block::Dump(own) => dump::dump(own, sheet),
        Block::Picture(_) | Block::Filter(..) => Ok(()),
        Block::Only(medium, own) => {
            if medium.is_in(Medium::Terminal) {
                blocks(own, indent, sheet)
            } else {
                Ok(())
            }
        }
    }
}

/// The verdict of the whole, where it is no longer on a screen of so many rows.
pub(super) fn out_of_sight<'a>(
    blocks: &'a [Block],
    rows: usize,
    sheet: &Sheet<'_>,
) -> Option<&'a Verdict> {
    let is_seen = sheet.rows_since_verdict()? + PROMPT_ROWS <= rows;
    let mut verdicts = blocks.iter().filter_map(|block| match block {
        Block::Verdict(own) => Some(own),
        _ => None,
    });
    verdicts.next().filter(|_| !is_seen)
}

pub(super) fn verdict(own: &Verdict, sheet: &mut Sheet<'_>) -> io::Result<()> {
    // A short last line is for pipes: a screen gets all of the first one again.
    let is_last_line = own.meaning.sentence.is_empty() && sheet.rows_since_verdict().is_some();
    if is_last_line && sheet.is_screen() {
        return Ok(());
    }
    sheet.gap()?;
    sheet.mark_verdict();
    let word = sheet.ink(ink(own.tone), &clean(&own.word));
    let beside = if own.beside.is_empty() {
        String::new()
    } else {
        format!(" ({})", clean(&own.beside))
    };
    let mut said = vec![line(&own.extent, None, sheet)];
    said.extend(own.more.iter().map(|more| line(more, None, sheet)));
    said.retain(|words| !words.is_empty());
    let all = format!("{word}{beside}  {}", said.join("; "));
    match own.line {
        Line::Whole if !sheet.is_screen() => sheet.raw(&all)?,
        Line::Whole | Line::Wrapped => sheet.text(0, &all)?,
    }
    if !own.about.is_empty() {
        labelled("", 0, &own.about, MARGIN, sheet)?;
    }
    if !own.meaning.sentence.is_empty() {
        sheet.text(MARGIN, &clean(&own.meaning.sentence))?;
    }
    next(own, sheet)
}

/// The commands under a verdict.
fn next(own: &Verdict, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let Some(commands) = own.meaning.next.steps() else {
        return Ok(());
    };
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, "NEXT");
    sheet.text(0, &title)?;
    steps(&commands, MARGIN, sheet)?;
    sheet.set_apart();
    Ok(())
}

fn part(own: &Part, indent: usize, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let ink = match own.frame {
        Frame::PageSection => return blocks(&own.blocks, indent, sheet),
        Frame::Card(tone) => Some(ink(tone)),
        Frame::Section | Frame::Relation => Some(Ink::Strong),
        Frame::Finding(_) | Frame::Fold(..) => None,
    };
    let is_apart = match own.frame {
        Frame::Fold(Fold::More, _) => true,
        Frame::Fold(..) => indent == 0,
        _ => true,
    };
    if is_apart {
        sheet.gap()?;
    }
    let mut title = line(&own.title, ink, sheet);
    if matches!(own.frame, Frame::Card(_)) {
        title = line(&capitals(&own.title), ink, sheet);
    }
    let about = line(&own.about, None, sheet);
    if !about.is_empty() {
        title = format!("{title}  {about}");
    }
    sheet.text(indent, &title)?;
    blocks(&own.blocks, indent + MARGIN, sheet)
}

fn capitals(title: &Words) -> Words {
    let mut title = title.clone();
    for span in &mut title.0 {
        span.text = span.text.to_uppercase();
    }
    title
}

/// Side by side, as there is room.
fn facts(facts: &[(&str, Words)], indent: usize, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let facts = facts.iter().filter(|(_, words)| !words.is_empty());
    let facts = facts.map(|(name, words)| format!("{name} {}", line(words, None, sheet)));
    let facts = facts.collect::<Vec<_>>().join("; ");
    sheet.text(indent, &facts)
}

fn list(own: &List, indent: usize, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let shown = own
        .terminal
        .as_ref()
        .map_or(usize::MAX, |(limit, _)| *limit);
    for item in own.items.iter().take(shown) {
        labelled("-", 2, item, indent, sheet)?;
    }
    match &own.terminal {
        Some((_, rest)) => sheet.text(indent + 2, rest),
        None => Ok(()),
    }
}

fn steps(own: &Steps, indent: usize, sheet: &mut Sheet<'_>) -> io::Result<()> {
    for step in &own.steps {
        labelled(&step.label, own.column, &step.words, indent, sheet)?;
        blocks(&step.blocks, indent + own.column, sheet)?;
    }
    Ok(())
}

fn rules(rules: &[(String, Option<RuleText>)], sheet: &mut Sheet<'_>) -> io::Result<()> {
    let known: Vec<(String, &str)> = rules
        .iter()
        .filter_map(|(name, text)| Some((clean(name), text.as_ref()?.summary)))
        .collect();
    if known.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    sheet.text(0, "The rules (`pgclinic explain RULE` says more):")?;
    let longest = known.iter().map(|(name, _)| name.chars().count()).max();
    for (name, summary) in &known {
        sheet.entry(MARGIN, name, longest.unwrap_or(0) + 2, summary)?;
    }
    Ok(())
}

/// A label and words beside it; words of a server keep their lines.
fn labelled(
    label: &str,
    column: usize,
    words: &Words,
    indent: usize,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    let words = line(words, None, sheet);
    for (number, line) in words.lines().enumerate() {
        let label = if number == 0 { label } else { "" };
        sheet.entry(indent, &clean(label), column, line)?;
    }
    Ok(())
}

/// The words escaped and coloured; plain ones in `ink`, where there is one.
fn line(words: &Words, ink: Option<Ink>, sheet: &Sheet<'_>) -> String {
    in_one(words, &|look, text| match ink_of(look).or(ink) {
        Some(ink) if !text.trim().is_empty() => sheet.ink(ink, &text),
        _ => text,
    })
}

/// The words escaped, without colours.
pub(super) fn plain(words: &Words) -> String {
    in_one(words, &|_, text| text)
}

fn in_one(words: &Words, colour: &dyn Fn(&Look, String) -> String) -> String {
    let spans = words.0.iter();
    let spans = spans.filter(|span| span.medium.is_in(Medium::Terminal));
    let texts = spans.map(|span| {
        let text = match &span.look {
            Look::Badge(severity) => severity.name().to_uppercase(),
            Look::Tag(_) => clean(&span.text).to_uppercase(),
            Look::Safety(safety) => format!("({})", words::safety(*safety)),
            Look::Server => Vec::from_iter(span.text.lines().map(clean)).join("\n"),
            _ => clean(&span.text),
        };
        colour(&span.look, text)
    });
    texts.collect()
}

fn ink_of(look: &Look) -> Option<Ink> {
    match look {
        Look::Strong | Look::Rule => Some(Ink::Strong),
        Look::Wrong => Some(Ink::Bad),
        Look::Badge(severity) => Some(Ink::of(*severity)),
        Look::Tag(tone) => Some(ink(*tone)),
        _ => None,
    }
}

fn ink(tone: Tone) -> Ink {
    match tone {
        Tone::Good => Ink::Good,
        Tone::Warn => Ink::Warn,
        Tone::Bad => Ink::Bad,
        Tone::Plain => Ink::Strong,
    }
}
