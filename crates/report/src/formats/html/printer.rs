//! A view as the body of a page.

use std::io;

use super::escape::Esc;
use super::{dump, markdown, picture, spans, table};
use crate::RuleText;
use crate::view::{
    Block, Entries, Fold, FoldState, Frame, List, Medium, ParagraphStyle, Part, Steps, Tone,
    Verdict, Words,
};

/// Headings are smaller from here on.
const INNER: usize = 1;

pub(super) fn blocks(blocks: &[Block], depth: usize, out: &mut dyn io::Write) -> io::Result<()> {
    blocks.iter().try_for_each(|own| block(own, depth, out))
}

fn block(block: &Block, depth: usize, out: &mut dyn io::Write) -> io::Result<()> {
    match block {
        Block::Verdict(own) => verdict(own, out),
        Block::Text(voice, words) => paragraph(*voice, words, out),
        Block::Part(own) => part(own, depth, out),
        Block::Facts(own) => facts(own, out),
        Block::Entries(own) => entries(own, out),
        Block::Reasons(own) => {
            let rows = own.iter().map(|(what, why)| (spans::html(what), why));
            definitions(" class=reasons", rows, out)
        }
        Block::List(own) => list(own, out),
        Block::Steps(own) => steps(own, depth, out),
        Block::Table(own) => table::table(own, out),
        Block::Command(code) => command(code, out),
        Block::Rules(own) => rules(own, out),
        Block::Dump(own) => dump::write(own, out),
        Block::Picture(own) => picture::picture(own, out),
        Block::Filter(rows, marks) => writeln!(
            out,
            "<div class=tools data-filter=\"{rows}\" data-marks=\"{marks}\"></div>"
        ),
        Block::Only(medium, own) => {
            if medium.is_in(Medium::Page) {
                blocks(own, depth, out)
            } else {
                Ok(())
            }
        }
    }
}

/// A narrow screen breaks a command between its words, and not after the dashes of an option.
fn command(code: &str, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(b"<pre class=command><code>")?;
    for word in code.split_inclusive(' ') {
        match (word.starts_with('-'), word.trim_end()) {
            (true, option) => {
                let rest = word.get(option.len()..).unwrap_or_default();
                write!(out, "<i>{}</i>{rest}", Esc(option))?;
            }
            (false, _) => write!(out, "{}", Esc(word))?,
        }
    }
    out.write_all(b"</code></pre>\n")
}

pub(super) fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Warn => "warn",
        Tone::Bad => "bad",
        Tone::Plain => "plain",
    }
}

/// The answer of a page.
pub(super) fn verdict_of(blocks: &[Block]) -> Option<&Verdict> {
    blocks.iter().find_map(|block| match block {
        Block::Verdict(own) => Some(own),
        Block::Only(medium, own) if medium.is_in(Medium::Page) => verdict_of(own),
        _ => None,
    })
}

/// Places and titles of what stands under a heading of its own, but for relations and findings:
/// they are many, and a table leads to them.
pub(super) fn parts<'a>(all: &'a [Block], parts: &mut Vec<(&'a str, String)>) {
    for block in all {
        match block {
            Block::Part(own)
                if matches!(
                    own.frame,
                    Frame::Section | Frame::PageSection | Frame::Card(_)
                ) =>
            {
                parts.push((&own.id, Esc(own.title.on_a_page()).to_string()));
            }
            Block::Rules(rules) if !rules.is_empty() => {
                parts.push(("rules", "The rules".to_owned()));
            }
            Block::Only(medium, own) if medium.is_in(Medium::Page) => self::parts(own, parts),
            _ => {}
        }
    }
}

fn verdict(own: &Verdict, out: &mut dyn io::Write) -> io::Result<()> {
    let class = tone_class(own.tone);
    write!(
        out,
        "<section class=\"banner {class}\">\n<h1>{}",
        Esc(&own.word)
    )?;
    if !own.beside.is_empty() {
        write!(out, " <small>{}</small>", Esc(&own.beside))?;
    }
    writeln!(
        out,
        "</h1>\n<p class=extent>{}</p>",
        spans::html(&own.extent)
    )?;
    if let Some(bar) = &own.bar {
        picture::parts_bar(bar, out)?;
    }
    for more in &own.more {
        writeln!(out, "<p>{}</p>", spans::html(more))?;
    }
    paragraph(ParagraphStyle::Quiet, &own.about, out)?;
    let meaning = &own.meaning;
    if !meaning.sentence.is_empty() {
        writeln!(out, "<p class=meaning>{}</p>", Esc(&meaning.sentence))?;
    }
    if let Some(next) = meaning.next.steps() {
        steps(&next, INNER, out)?;
    }
    out.write_all(b"</section>\n")
}

fn paragraph(voice: ParagraphStyle, words: &Words, out: &mut dyn io::Write) -> io::Result<()> {
    let class = match voice {
        ParagraphStyle::Plain => "",
        ParagraphStyle::Quiet => " class=about",
        ParagraphStyle::Loud => " class=loud",
        ParagraphStyle::Message => " class=message",
    };
    match spans::html(words) {
        html if html.is_empty() => Ok(()),
        html => writeln!(out, "<p{class}>{html}</p>"),
    }
}

fn part(own: &Part, depth: usize, out: &mut dyn io::Write) -> io::Result<()> {
    let (id, link) = place(&own.id);
    let (title, about) = (spans::html(&own.title), spans::html(&own.about));
    match own.frame {
        Frame::Section | Frame::PageSection if depth >= INNER => {
            let about = match about.as_str() {
                "" => String::new(),
                about => format!(" <span class=q>{about}</span>"),
            };
            writeln!(out, "<h3{id}>{title}{about}{link}</h3>")?;
            blocks(&own.blocks, depth + 1, out)
        }
        Frame::Fold(fold, opened) => {
            let open = if opened == FoldState::Yes {
                " open"
            } else {
                ""
            };
            write!(
                out,
                "<details{}{id}{open}><summary>{title}",
                fold_class(fold)
            )?;
            if !about.is_empty() {
                write!(out, " <span class=q>{about}</span>")?;
            }
            writeln!(out, "{link}</summary>")?;
            blocks(&own.blocks, depth + 1, out)?;
            out.write_all(b"</details>\n")
        }
        Frame::Finding(class) => {
            writeln!(
                out,
                "<article class=\"finding {class}\"{id}>\n<p class=where>{title}{link}</p>"
            )?;
            paragraph(ParagraphStyle::Message, &own.about, out)?;
            blocks(&own.blocks, depth + 1, out)?;
            out.write_all(b"</article>\n")
        }
        frame => {
            let class = match frame {
                Frame::Card(tone) => format!(" class=\"card {}\"", tone_class(tone)),
                Frame::Relation => " class=relation".to_owned(),
                _ => String::new(),
            };
            writeln!(out, "<section{class}{id}>\n<h2>{title}{link}</h2>")?;
            paragraph(ParagraphStyle::Quiet, &own.about, out)?;
            blocks(&own.blocks, depth + 1, out)?;
            out.write_all(b"</section>\n")
        }
    }
}

/// The attribute of a place, and the link that shows where it is.
fn place(id: &str) -> (String, String) {
    if id.is_empty() {
        return Default::default();
    }
    let id = Esc(id);
    let link = format!(" <a class=here href=\"#{id}\" aria-label=\"link to this part\"></a>");
    (format!(" id=\"{id}\""), link)
}

fn fold_class(fold: Fold) -> &'static str {
    match fold {
        Fold::Item => " class=item",
        Fold::Fault => " class=\"item fault\"",
        Fold::Card => " class=card",
        Fold::More => " class=folded",
        Fold::Plain => "",
        Fold::Page => " class=page",
    }
}

fn facts(facts: &[(&str, Words)], out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(b"<dl class=facts>\n")?;
    for (name, words) in facts.iter().filter(|(_, words)| !words.is_empty()) {
        let (name, words) = (Esc(name), spans::html(words));
        writeln!(out, "<div><dt>{name}</dt><dd>{words}</dd></div>")?;
    }
    out.write_all(b"</dl>\n")
}

/// Entries without a label of their own stand under the one before them.
fn entries(own: &Entries, out: &mut dyn io::Write) -> io::Result<()> {
    let rows = own.rows.iter();
    definitions(
        "",
        rows.map(|(label, words)| (Esc(label).to_string(), words)),
        out,
    )
}

/// `name` is HTML.
fn definitions<'a>(
    class: &str,
    rows: impl Iterator<Item = (String, &'a Words)>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "<dl{class}>")?;
    while let Some((name, words)) = rows.next() {
        write!(out, "<dt>{name}</dt><dd>{}", spans::html(words))?;
        while let Some((_, more)) = rows.next_if(|(name, _)| name.is_empty()) {
            write!(out, "<br>{}", spans::html(more))?;
        }
        out.write_all(b"</dd>\n")?;
    }
    out.write_all(b"</dl>\n")
}

fn list(own: &List, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(b"<ul class=brief>\n")?;
    for item in &own.items {
        writeln!(out, "<li>{}</li>", spans::html(item))?;
    }
    out.write_all(b"</ul>\n")
}

fn steps(own: &Steps, depth: usize, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(b"<div class=remedies>")?;
    if !own.title.is_empty() {
        write!(out, "<p class=title>{}</p>", Esc(own.title))?;
    }
    out.write_all(b"\n<ol>\n")?;
    for step in &own.steps {
        writeln!(out, "<li>{}", spans::html(&step.words))?;
        blocks(&step.blocks, depth + 1, out)?;
        out.write_all(b"</li>\n")?;
    }
    out.write_all(b"</ol></div>\n")
}

/// The manual of each rule, closed.
fn rules(rules: &[(String, Option<RuleText>)], out: &mut dyn io::Write) -> io::Result<()> {
    if rules.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section id=rules>\n<h2>The rules</h2>\n")?;
    for (rule, text) in rules {
        let rule = Esc(rule);
        match text {
            Some(text) => {
                writeln!(
                    out,
                    "<details class=manual><summary><code>{rule}</code> {}</summary><div id=\"rule-{rule}\">",
                    Esc(text.summary)
                )?;
                markdown::write(text.explain, out)?;
                out.write_all(b"</div></details>\n")?;
            }
            None => writeln!(
                out,
                "<p id=\"rule-{rule}\"><code>{rule}</code>: this version has no manual for it</p>"
            )?,
        }
    }
    out.write_all(b"</section>\n")
}
