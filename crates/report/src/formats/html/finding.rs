//! One finding, its followers, and what is folded.

use std::collections::BTreeMap;
use std::io;

use pgclinic_model::document::{Finding, Remedy};

use super::escape::Esc;
use super::plan;
use crate::groups::{Cures, Group, Root, Run, count_by_rule};
use crate::words::{self, count, count_of};

/// The severity as a word in its colour.
pub(super) fn badge(severity: &str) -> String {
    format!("<span class=\"badge {severity}\">{severity}</span>")
}

/// Where each block's first finding stands in the page.
pub(super) fn anchors(group: &Group<'_>) -> BTreeMap<u64, String> {
    let mut anchors = BTreeMap::new();
    for root in &group.roots {
        if let Some(block) = root.finding.place.block {
            anchors
                .entry(u64::from(block))
                .or_insert_with(|| identity(root.finding));
        }
    }
    anchors
}

/// Ids are hashes; of anything else only letters and digits are taken over.
fn identity(finding: &Finding) -> String {
    let safe = finding.id.chars().filter(char::is_ascii_alphanumeric);
    format!("f-{}", safe.collect::<String>())
}

pub(super) fn run(
    run: &Run<'_, '_>,
    group: &Group<'_>,
    cures: Cures,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    for root in run.shown {
        one(root, group.path, cures, out)?;
    }
    if run.folded.is_empty() {
        return Ok(());
    }
    let total = count(count_of(run.folded.len()));
    writeln!(
        out,
        "<details class=folded><summary>and {total} more of <code>{}</code></summary>",
        Esc(run.rule)
    )?;
    list(
        run.folded
            .iter()
            .map(|root| (root.finding, root.followers.len())),
        out,
    )?;
    out.write_all(b"</details>\n")
}

pub(super) fn alone(finding: &Finding, out: &mut dyn io::Write) -> io::Result<()> {
    one(
        &Root {
            finding,
            followers: Vec::new(),
        },
        &finding.place.path,
        Cures::Each,
        out,
    )
}

fn one(root: &Root<'_>, path: &str, cures: Cures, out: &mut dyn io::Write) -> io::Result<()> {
    let finding = root.finding;
    let severity = finding.severity.name();
    write!(
        out,
        "<article class=\"finding {severity}\" id={}>\n<p class=where>{} <a class=rule href=\"#rule-{}\">{}</a> <span>{}</span></p>\n",
        identity(finding),
        badge(severity),
        Esc(&finding.rule),
        Esc(&finding.rule),
        Esc(words::place_inside(&finding.place)),
    )?;
    writeln!(out, "<p class=message>{}</p>\n<dl>", Esc(&finding.message))?;
    if finding.place.path != path {
        row(
            "file",
            &format!("<code>{}</code>", Esc(&finding.place.path)),
            out,
        )?;
    }
    cause(finding, out)?;
    if let Some(says) = &finding.server_says {
        row(
            "the server says",
            &format!("<code class=server>{}</code>", Esc(says)),
            out,
        )?;
    }
    if let Some(words) = words::at_risk(&finding.at_risk) {
        row("at risk", &words, out)?;
    }
    if let Some(lsn) = &finding.known_from {
        row("known", &Esc(words::known_from(lsn)).to_string(), out)?;
    }
    out.write_all(b"</dl>\n")?;
    if cures == Cures::Each {
        remedies(&finding.remedies, out)?;
    }
    followers(&root.followers, out)?;
    out.write_all(b"</article>\n")
}

/// `value` is HTML.
fn row(name: &str, value: &str, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "<dt>{name}</dt><dd>{value}</dd>")
}

fn cause(finding: &Finding, out: &mut dyn io::Write) -> io::Result<()> {
    let Some(cause) = &finding.cause else {
        return Ok(());
    };
    let facts = words::facts(&cause.facts);
    let facts = if facts.is_empty() {
        facts
    } else {
        format!("; {facts}")
    };
    let sure = words::sureness(cause.confidence);
    let value = format!(
        "<strong>{}</strong>, {sure}{}",
        Esc(&cause.name),
        Esc(facts)
    );
    row("likely cause", &value, out)
}

fn remedies(remedies: &[Remedy], out: &mut dyn io::Write) -> io::Result<()> {
    if remedies.is_empty() {
        return Ok(());
    }
    out.write_all(b"<div class=remedies><h4>What to do</h4>\n<ol>\n")?;
    for remedy in remedies {
        let (class, safety) = (plan::class_of(remedy.safety), words::safety(remedy.safety));
        writeln!(
            out,
            "<li>{} <span class=\"safety {class}\">{safety}</span>\n<pre class=command><code>{}</code></pre></li>",
            Esc(&remedy.name),
            Esc(&remedy.command)
        )?;
    }
    out.write_all(b"</ol></div>\n")
}

fn followers(followers: &[&Finding], out: &mut dyn io::Write) -> io::Result<()> {
    if followers.is_empty() {
        return Ok(());
    }
    let rules = count_by_rule(followers);
    let rules = rules
        .iter()
        .map(|(rule, number)| format!("{rule} × {}", count(*number)));
    writeln!(
        out,
        "<details><summary>{} more that follow from it: {}</summary>",
        count(count_of(followers.len())),
        Esc(rules.collect::<Vec<_>>().join(", "))
    )?;
    list(followers.iter().map(|follower| (*follower, 0)), out)?;
    out.write_all(b"</details>\n")
}

fn list<'a>(
    findings: impl Iterator<Item = (&'a Finding, usize)>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    out.write_all(b"<ul class=brief>\n")?;
    for (finding, followers) in findings {
        let more = match count_of(followers) {
            0 => String::new(),
            more => format!(" ({} follow from it)", count(more)),
        };
        writeln!(
            out,
            "<li id={}><code>{}</code> {}: {}{more}</li>",
            identity(finding),
            Esc(&finding.rule),
            Esc(finding.place.to_string()),
            Esc(&finding.message)
        )?;
    }
    out.write_all(b"</ul>\n")
}
