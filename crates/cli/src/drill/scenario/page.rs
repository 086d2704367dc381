//! A page of the guide from what scenarios gave: Markdown that is the same for each run.

use super::Run;
use super::answer::{Answer, Ending, Rows};
use super::asks::Ask;
use super::gallery::{PAGES, Page};
use super::masks::masked;
use super::ways_out::{Saved, Tried};

/// The page of one message.
pub(super) fn page(page: &Page, runs: &[Run]) -> String {
    let head = format!(
        "# {}\n\n{}\n\n`pgclinic explain {}` is the page of the textbook. What follows was made by \
         `cargo xtask docs --messages` on PostgreSQL {}: \
         the damage was done to a fresh copy for each thing that was asked, and a test repeats some of it. \
         Numbers that vary stand as `N`.\n",
        page.title,
        page.about,
        page.name,
        runs.first().map_or(0, |run| run.major),
    );
    let sections = runs.iter().map(section);
    std::iter::once(head).chain(sections).collect()
}

/// The list of all pages.
pub(crate) fn index() -> String {
    let rows = PAGES
        .iter()
        .map(|page| format!("| [{}]({}.md) | {} |\n", page.title, page.name, page.about));
    let head = "# What a server says, and the way out\n\n\
        A page for each message with which damage shows itself. Each page shows damage that brings the message about, what everything that one may ask answers, what it \
        costs in rows, and which way out gives how many rows back. All of it comes from runs: `cargo xtask docs --messages` makes the pages, a test makes some of \
        the runs again, and `pgclinic drill --scenario NAME` makes one for you (`--scenarios` lists them).\n\n| message | where it comes from |\n|---|---|\n";
    std::iter::once(head.to_owned()).chain(rows).collect()
}

/// One scenario.
pub(super) fn section(run: &Run) -> String {
    let asked = run
        .asked
        .iter()
        .map(|(ask, answer)| asked_row(run, *ask, answer));
    let asked: String = asked.collect();
    let ways: String = run.tried.iter().map(way_row).collect();
    format!(
        "\n## {}, {}: {}\n\n{}. `pgclinic injure PGDATA --injury {}{}`\n\n\
         | asked | answer | rows |\n|---|---|---|\n{asked}{}\n\
         | way out | what became of it | rows |\n|---|---|---|\n{ways}\n{}\n",
        run.object.words(),
        run.sums.words(),
        run.injury,
        masked(&run.wound),
        run.injury,
        masked(&run.place),
        pgclinic_rows(run),
        verdict(run),
    )
}

fn asked_row(run: &Run, ask: Ask, answer: &Answer) -> String {
    format!(
        "| {} | {} | {} |\n",
        ask.words(run.object),
        said(ask, answer),
        rows(answer)
    )
}

/// What was said, a line each; how it ended where the words do not tell.
fn said(ask: Ask, answer: &Answer) -> String {
    let mut lines: Vec<String> = answer.said.iter().map(|words| code(words)).collect();
    if answer.more > 0 {
        lines.push(format!("and {} more", grouped(answer.more)));
    }
    match answer.ending {
        Ending::Crashed => lines.push("**the server crashed**".into()),
        Ending::TimedOut if ask == Ask::Autovacuum => lines.push("no worker came to it".into()),
        Ending::TimedOut => lines.push("**no end in sight: it was cancelled**".into()),
        Ending::Done if lines.is_empty() => lines.push("nothing".into()),
        Ending::Done | Ending::Refused => {}
    }
    lines.join("<br>")
}

fn rows(answer: &Answer) -> String {
    let Some(rows) = answer.rows else {
        return String::new();
    };
    match answer.ending {
        Ending::Done => of(rows),
        _ => format!("{}, then it stopped", of(rows)),
    }
}

fn of(rows: Rows) -> String {
    let right = format!("{} of {}", grouped(rows.right), grouped(rows.of));
    match rows.wrong {
        0 => right,
        wrong => format!("{right}, **{} wrong**", grouped(wrong)),
    }
}

/// `1 of 1 row`, `17 of 20 rows`.
fn of_rows(rows: Rows) -> String {
    let right = format!("{} of {}", grouped(rows.right), counted(rows.of));
    match rows.wrong {
        0 => right,
        wrong => format!("{right}, **{} wrong**", grouped(wrong)),
    }
}

/// What the program says of it.
fn pgclinic_rows(run: &Run) -> String {
    let found = match run.found.as_slice() {
        [] => "nothing".to_owned(),
        rules => rules
            .iter()
            .map(|rule| rule_link(rule))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let explained = match run.explained.as_slice() {
        [] => "no page".to_owned(),
        names => {
            let names = names.iter().map(|name| format!("`{name}`"));
            names.collect::<Vec<_>>().join(", ")
        }
    };
    format!(
        "| `pgclinic check` | {found} | |\n| `pgclinic explain` | {explained} | |\n| `pgclinic salvage` | {} | {} |\n",
        saved_words(&run.saved),
        run.saved.rows.map(of).unwrap_or_default(),
    )
}

fn rule_link(rule: &str) -> String {
    format!("[{rule}](../../../crates/check/rules/{rule}.md)")
}

fn saved_words(saved: &Saved) -> String {
    let mut words = vec![saved.outcome.clone()];
    if saved.suspect > 0 {
        words.push(format!("{} apart as suspect", counted(saved.suspect)));
    }
    if saved.lost > 0 {
        words.push(format!("{} lost", counted(saved.lost)));
    }
    if let Some(value) = saved.sequence {
        words.push(format!("the sequence at {value}"));
    }
    words.join(", ")
}

fn way_row(tried: &Tried) -> String {
    let became = match (&tried.refused, tried.said.as_slice(), &tried.still) {
        (Some(why), ..) => format!("not done: {}", code(why)),
        (None, [], Some(still)) if still.is_empty() => "healed, nothing is found any more".into(),
        (None, [], None) => "what could be saved is in a new database".into(),
        (None, [], Some(still)) => {
            format!("it can be read; check still finds {}", still.join(", "))
        }
        (None, [first, ..], _) => format!("it cannot be read: {}", code(first)),
    };
    let rows = tried.rows.map(of).unwrap_or_default();
    format!("| {} | {became} | {rows} |\n", code(&tried.typed))
}

/// The first way that gives everything back, else the one that gives most.
fn verdict(run: &Run) -> String {
    let right = |tried: &&Tried| tried.rows.map_or(0, |rows| rows.right);
    let working = || run.tried.iter().filter(|tried| tried.works());
    let best = working().find(|tried| tried.is_whole());
    // The first of those that give as much.
    let best = best.or_else(|| working().rev().max_by_key(right));
    match best {
        Some(tried) => format!(
            "**The way out:** {}, which gives {}.",
            code(&tried.typed),
            tried.rows.map(of_rows).unwrap_or_default()
        ),
        None => "**The way out:** none of these; a backup.".into(),
    }
}

/// In backticks, masked, on one line, and harmless in a table.
fn code(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines =
        lines.map(|line| format!("`{}`", masked(line).replace('`', "'").replace('|', "\\|")));
    lines.collect::<Vec<_>>().join("<br>")
}

fn counted(rows: u64) -> String {
    match rows {
        1 => "1 row".into(),
        rows => format!("{} rows", grouped(rows)),
    }
}

/// Digits in threes.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
