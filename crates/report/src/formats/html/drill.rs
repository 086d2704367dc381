//! The scoreboard of a drill as a page.

use std::io;

use pgclinic_model::document::{DrillDocument, DrillRow, ServerAnswer};

use super::escape::Esc;
use super::{details, shell};
use crate::Options;
use crate::words::{self, count, count_of};

pub(super) fn render(
    document: &DrillDocument,
    options: &Options<'_>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let passed = count_of(document.rows.iter().filter(|row| row.passed).count());
    let word = match (document.interrupted, document.passed) {
        (true, _) => "INTERRUPTED",
        (false, true) => "PASSED",
        (false, false) => "FAILED",
    };
    shell::open(&format!("Drill {word}"), out)?;
    shell::kicker("pgclinic drill", &document.target, out)?;
    banner(document, word, passed, out)?;
    counts(document, passed, out)?;
    details::not_checked(&document.coverage.not_checked, out)?;
    scoreboard(&document.rows, out)?;
    not_run(document, out)?;
    out.write_all(b"<section>\n<h2>Injury by injury</h2>\n")?;
    for (number, row) in document.rows.iter().enumerate() {
        injury(number, row, out)?;
    }
    out.write_all(b"</section>\n")?;
    let rules = document
        .rows
        .iter()
        .flat_map(|row| row.found_by.iter().chain(&row.missing));
    details::manuals(rules.map(String::as_str), options, out)?;
    shell::close(&document.tool, out)
}

fn banner(
    document: &DrillDocument,
    word: &str,
    passed: u64,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let class = match (document.interrupted, document.passed) {
        (true, _) => "warn",
        (false, true) => "good",
        (false, false) => "bad",
    };
    writeln!(
        out,
        "<section class=\"banner {class}\">\n<h1>{word}</h1>\n<p class=extent>{} of {} injuries met \
         every expectation in {}{}</p>\n<p>{}, seed {}</p>\n</section>",
        count(passed),
        count(count_of(document.rows.len())),
        words::seconds(document.elapsed_s),
        Esc(words::left_out(document)),
        Esc(&document.server),
        document.seed
    )
}

fn counts(document: &DrillDocument, passed: u64, out: &mut dyn io::Write) -> io::Result<()> {
    let number = |test: &dyn Fn(&DrillRow) -> bool| {
        count(count_of(
            document.rows.iter().filter(|row| test(row)).count(),
        ))
    };
    let silent = |said: &Option<ServerAnswer>| {
        words::answer(said.as_ref()) == "silent" || words::answer(said.as_ref()) == "wrong rows"
    };
    let facts = [
        ("injuries", count(count_of(document.rows.len()))),
        ("passed", count(passed)),
        ("found", number(&|row| !row.found_by.is_empty())),
        ("blind, as declared", number(&|row| row.blind.is_some())),
        ("undone", number(&|row| row.undone)),
        (
            "no error from the server, checksums on",
            number(&|row| silent(&row.with_checksums)),
        ),
        (
            "no error, checksums off",
            number(&|row| silent(&row.without_checksums)),
        ),
        ("not run", count(count_of(document.not_run.len()))),
    ];
    shell::facts(&facts, out)
}

fn scoreboard(rows: &[DrillRow], out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(
        b"<section>\n<h2>Scoreboard</h2>\n<div class=tools data-filter=\"tbody tr\" data-marks=\"all passed failed blind\"></div>\n\
          <div class=wide><table class=board>\n<thead><tr><th>Injury</th><th>Variant</th><th>Where</th><th>Found by</th>\
          <th>Server, checksums on</th><th>Server, off</th><th>Undone</th><th>Passed</th></tr></thead>\n<tbody>\n",
    )?;
    for (number, row) in rows.iter().enumerate() {
        let mut marks = vec![if row.passed { "passed" } else { "failed" }];
        marks.extend(row.blind.as_ref().map(|_| "blind"));
        write!(
            out,
            "<tr data-mark=\"{}\"><td><a href=\"#i{number}\">{}</a></td><td>{}</td><td>{}</td><td>",
            marks.join(" "),
            Esc(&row.injury),
            Esc(&row.variant),
            Esc(place(row))
        )?;
        found_by(row, out)?;
        writeln!(
            out,
            "</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            server_cell(row.with_checksums.as_ref()),
            server_cell(row.without_checksums.as_ref()),
            yes(row.undone),
            yes(row.passed)
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
}

fn place(row: &DrillRow) -> String {
    let block = row.place.block.map(|block| format!(", block {block}"));
    format!("{}{}", row.place.relation_name(), block.unwrap_or_default())
}

fn found_by(row: &DrillRow, out: &mut dyn io::Write) -> io::Result<()> {
    match (row.found_by.first(), &row.blind) {
        (Some(rule), _) => {
            write!(out, "<a class=rule href=\"#rule-{0}\">{0}</a>", Esc(rule))?;
            match row.found_by.len() - 1 {
                0 => Ok(()),
                more => write!(out, " <span class=q>+{more}</span>"),
            }
        }
        (None, Some(_)) => out.write_all(b"<span class=state>blind</span>"),
        (None, None) => out.write_all(b"<strong class=wrong>nothing</strong>"),
    }
}

fn server_cell(said: Option<&ServerAnswer>) -> String {
    let word = words::answer(said);
    let class = match word {
        "error" | "not asked" => "q",
        _ => "state",
    };
    let first = said.and_then(|said| said.messages.first().or(said.silent.first()));
    match first {
        Some(words) => format!("<span class={class} title=\"{}\">{word}</span>", Esc(words)),
        None => format!("<span class={class}>{word}</span>"),
    }
}

fn yes(held: bool) -> &'static str {
    if held {
        "<span class=yes>yes</span>"
    } else {
        "<strong class=wrong>no</strong>"
    }
}

fn not_run(document: &DrillDocument, out: &mut dyn io::Write) -> io::Result<()> {
    if document.not_run.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section class=\"card warn\">\n<h2>Not run</h2>\n<dl class=reasons>\n")?;
    for entry in &document.not_run {
        writeln!(
            out,
            "<dt>{}</dt><dd>{}</dd>",
            Esc(&entry.injury),
            Esc(&entry.why)
        )?;
    }
    out.write_all(b"</dl>\n</section>\n")
}

fn injury(number: usize, row: &DrillRow, out: &mut dyn io::Write) -> io::Result<()> {
    let class = if row.passed { "item" } else { "item fault" };
    let open = if row.passed { "" } else { " open" };
    write!(
        out,
        "<details class=\"{class}\"{open}><summary><strong>{}</strong> {} <span>{}</span></summary>\n<dl id=i{number}>\n",
        Esc(&row.injury),
        Esc(&row.variant),
        Esc(place(row))
    )?;
    let place = row.place.to_string();
    let rows = [
        ("place", Some(place)),
        ("wound", Some(row.wound.clone())),
        ("found by", list(&row.found_by)),
        ("message", row.message.clone()),
        ("likely cause", row.cause.clone()),
        ("blind because", row.blind.clone()),
        ("failed because", list(&row.failures)),
        ("rules missing", list(&row.missing)),
        ("rules unexpected", list(&row.unexpected)),
        ("way out without the journal", row.way_out.clone()),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            writeln!(out, "<dt>{name}</dt><dd>{}</dd>", Esc(value))?;
        }
    }
    foretold(row, out)?;
    server("server, checksums on", row.with_checksums.as_ref(), out)?;
    server("server, checksums off", row.without_checksums.as_ref(), out)?;
    out.write_all(b"</dl></details>\n")
}

fn list(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(", "))
}

fn foretold(row: &DrillRow, out: &mut dyn io::Write) -> io::Result<()> {
    let Some(words) = &row.server_says else {
        return Ok(());
    };
    let held = match row.server_says_true {
        Some(true) => "the server said so",
        Some(false) => "the server did not say so",
        None => "not compared",
    };
    let words = Esc(words);
    writeln!(
        out,
        "<dt>foretold</dt><dd><code class=server>{words}</code> {held}</dd>"
    )
}

fn server(name: &str, said: Option<&ServerAnswer>, out: &mut dyn io::Write) -> io::Result<()> {
    let Some(said) = said else { return Ok(()) };
    write!(out, "<dt>{name}</dt><dd>{}", words::answer(Some(said)))?;
    for message in &said.messages {
        write!(out, "<br><code class=server>{}</code>", Esc(message))?;
    }
    for relation in &said.silent {
        write!(out, "<br>other rows without a message: {}", Esc(relation))?;
    }
    out.write_all(b"</dd>\n")
}
