//! The findings document as text.

use std::collections::BTreeSet;
use std::io;

use pgclinic_model::document::{CheckDocument, Coverage, Finding, NotChecked, Remedy, Verdict};

use super::plan;
use super::sheet::{Ink, Sheet};
use crate::groups::{self, Cures, Group, Root, Run, blocks_of, count_by_rule};
use crate::words::{self, clean, count, count_of, plural};
use crate::{Options, headline};

/// Where the words of a finding begin, after its indent.
const LABELS: usize = 10;

pub(super) fn render(
    document: &CheckDocument,
    options: &Options<'_>,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    let groups = groups::groups(document);
    first_line(document, &groups, sheet)?;
    target(document, sheet)?;
    not_checked(&document.coverage, sheet)?;
    let cures = Cures::of(document);
    for group in &groups {
        sheet.gap()?;
        relation(group, cures, sheet)?;
    }
    omitted(document, sheet)?;
    plan::plan(&document.plan, sheet)?;
    rules(document, options, sheet)?;
    beyond(&document.coverage, sheet)
}

fn first_line(
    document: &CheckDocument,
    groups: &[Group<'_>],
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    let headline = headline::of_groups(document, groups);
    let ink = match document.verdict {
        Verdict::Healthy => Ink::Good,
        Verdict::Damaged => Ink::Bad,
        Verdict::Incomplete => Ink::Warn,
    };
    let word = sheet.ink(ink, headline.word);
    let line = headline.to_string();
    sheet.raw(&line.replacen(headline.word, &word, 1))
}

fn target(document: &CheckDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let spec = clean(&document.target.spec);
    let about = clean(&words::target(&document.target));
    sheet.text(
        2,
        &format!("{spec}: {about}; level {}", document.level.name()),
    )?;
    match &document.since {
        Some(since) => sheet.text(2, &words::since(since)),
        None => Ok(()),
    }
}

/// What could have been looked at and was not: as loud as what is wrong.
fn not_checked(coverage: &Coverage, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let all = coverage.not_checked.iter();
    let ours: Vec<&NotChecked> = all.filter(|entry| !entry.inherent).collect();
    let missing = [
        (coverage.bytes_skipped, "skipped"),
        (coverage.bytes_unreadable, "unreadable"),
    ];
    let missing: Vec<String> = missing
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", words::bytes(*number)))
        .collect();
    if !ours.is_empty() || !missing.is_empty() {
        sheet.gap()?;
        let word = sheet.ink(Ink::Warn, "NOT CHECKED");
        sheet.raw(&format!("{word}  {}", missing.join(", ")))?;
        not_checked_entries(&ours, sheet)?;
    }
    Ok(())
}

/// What lies beyond any reader of files, and beyond this level: behind what was found.
fn beyond(coverage: &Coverage, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let all = coverage.not_checked.iter();
    let inherent: Vec<&NotChecked> = all.filter(|entry| entry.inherent).collect();
    if !inherent.is_empty() {
        sheet.gap()?;
        sheet.text(
            0,
            "What no reader of files can decide (it does not change the verdict):",
        )?;
        not_checked_entries(&inherent, sheet)?;
    }
    if !coverage.beyond_level.is_empty() {
        sheet.gap()?;
        sheet.text(0, "Beyond this level, not looked at:")?;
        let beyond: Vec<&NotChecked> = coverage.beyond_level.iter().collect();
        not_checked_entries(&beyond, sheet)?;
    }
    Ok(())
}

fn not_checked_entries(entries: &[&NotChecked], sheet: &mut Sheet<'_>) -> io::Result<()> {
    for entry in entries {
        let what = format!("{}: {}", clean(&entry.what), clean(&entry.why));
        sheet.entry(2, "-", 2, &what)?;
    }
    Ok(())
}

fn relation(group: &Group<'_>, cures: Cures, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let mut about = vec![group.kind.words().to_owned()];
    about.extend(
        group
            .database
            .map(|name| format!("database {}", clean(name))),
    );
    if clean(group.path) != clean(&group.name) {
        about.push(clean(group.path));
    }
    about.extend(group.forks.iter().map(|fork| {
        let extent = plural(fork.blocks, "block");
        match fork.fork.name() {
            "main" => extent,
            name => format!("fork {name} {extent}"),
        }
    }));
    match group.damaged_blocks() {
        0 => {}
        blocks => about.push(format!("{} damaged", count(blocks))),
    }
    let name = sheet.ink(Ink::Strong, &clean(&group.name));
    sheet.text(0, &format!("{name}  {}", about.join(", ")))?;
    for run in group.runs() {
        for root in run.shown {
            finding(root, group, cures, sheet)?;
        }
        folded(&run, sheet)?;
    }
    if group.following_elsewhere > 0 {
        sheet.text(2, &words::elsewhere(group.following_elsewhere))?;
    }
    Ok(())
}

fn finding(
    root: &Root<'_>,
    group: &Group<'_>,
    cures: Cures,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    one_finding(root.finding, group.path, sheet)?;
    if cures == Cures::Each {
        remedies(&root.finding.remedies, sheet)?;
    }
    followers(&root.followers, sheet)
}

/// A finding whose relation the reader already knows.
pub(super) fn finding_alone(finding: &Finding, sheet: &mut Sheet<'_>) -> io::Result<()> {
    one_finding(finding, &finding.place.path, sheet)?;
    remedies(&finding.remedies, sheet)
}

fn one_finding(finding: &Finding, path: &str, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let severity = finding.severity.name().to_uppercase();
    let severity = sheet.ink(Ink::of(finding.severity), &severity);
    let rule = sheet.ink(Ink::Strong, &clean(&finding.rule));
    let inside = clean(&words::place_inside(&finding.place));
    sheet.gap()?;
    sheet.text(2, &format!("{severity} {rule}  {inside}"))?;
    sheet.text(4, &clean(&finding.message))?;
    if finding.place.path != path {
        sheet.entry(4, "file", LABELS, &clean(&finding.place.path))?;
    }
    if let Some(cause) = &finding.cause {
        let sure = words::sureness(cause.confidence);
        let facts = words::facts(&cause.facts);
        let facts = if facts.is_empty() {
            facts
        } else {
            format!(": {facts}")
        };
        sheet.entry(
            4,
            "cause",
            LABELS,
            &clean(&format!("{} ({sure}){facts}", cause.name)),
        )?;
    }
    if let Some(words) = &finding.server_says {
        for (number, line) in words.lines().enumerate() {
            let label = if number == 0 { "server" } else { "" };
            sheet.entry(4, label, LABELS, &clean(line))?;
        }
    }
    let is_risky = finding.at_risk.rows.is_some_and(|rows| rows > 0);
    if let Some(words) = words::at_risk(&finding.at_risk).filter(|_| is_risky) {
        sheet.entry(4, "at risk", LABELS, &words)?;
    }
    match &finding.known_from {
        Some(lsn) => sheet.entry(4, "known", LABELS, &words::known_from(lsn)),
        None => Ok(()),
    }
}

fn remedies(remedies: &[Remedy], sheet: &mut Sheet<'_>) -> io::Result<()> {
    for (index, remedy) in remedies.iter().enumerate() {
        let label = if index == 0 { "to do" } else { "or" };
        let safety = words::safety(remedy.safety);
        sheet.entry(
            4,
            label,
            LABELS,
            &format!("{} ({safety})", clean(&remedy.name)),
        )?;
        // Not wrapped: it is there to be copied.
        sheet.raw(&format!("{:1$}{2}", "", 6 + LABELS, clean(&remedy.command)))?;
    }
    Ok(())
}

fn followers(followers: &[&Finding], sheet: &mut Sheet<'_>) -> io::Result<()> {
    if followers.is_empty() {
        return Ok(());
    }
    let total = count(count_of(followers.len()));
    sheet.text(4, &format!("and {total} more that follow from it:"))?;
    for (rule, number) in count_by_rule(followers) {
        let same = followers
            .iter()
            .copied()
            .filter(|follower| follower.rule == rule);
        let relations: BTreeSet<String> = same
            .clone()
            .map(|follower| clean(&follower.place.relation_name()))
            .collect();
        let names: Vec<_> = relations.iter().take(3).map(String::as_str).collect();
        let rest = relations.len().saturating_sub(names.len());
        let rest = if rest > 0 {
            format!(" and {rest} more")
        } else {
            String::new()
        };
        let blocks = words::block_ranges(&blocks_of(same), 6);
        let blocks = if blocks.is_empty() {
            blocks
        } else {
            format!(", block {blocks}")
        };
        let places = format!("{}{rest}{blocks}", names.join(", "));
        sheet.entry(
            6,
            &format!("{} ×", count(number)),
            6,
            &format!("{} in {places}", clean(rule)),
        )?;
    }
    Ok(())
}

fn folded(run: &Run<'_, '_>, sheet: &mut Sheet<'_>) -> io::Result<()> {
    if run.folded.is_empty() {
        return Ok(());
    }
    let blocks = words::block_ranges(&blocks_of(run.folded.iter().map(|root| root.finding)), 12);
    let blocks = if blocks.is_empty() {
        blocks
    } else {
        format!(", block {blocks}")
    };
    let followers: usize = run.folded.iter().map(|root| root.followers.len()).sum();
    let followers = match count_of(followers) {
        0 => String::new(),
        followers => format!(" (with {} that follow)", count(followers)),
    };
    let total = count(count_of(run.folded.len()));
    sheet.gap()?;
    let rule = clean(run.rule);
    sheet.text(
        2,
        &format!("and {total} more of {rule}{followers}{blocks}; they stand in --format json"),
    )
}

fn omitted(document: &CheckDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    if document.findings_omitted == 0 {
        return Ok(());
    }
    let omitted = count(document.findings_omitted);
    let total = plural(document.findings_total, "finding");
    let word = sheet.ink(Ink::Warn, "NOT SHOWN");
    sheet.gap()?;
    sheet.text(
        0,
        &format!("{word}  {omitted} of {total} were counted and not kept, as they repeat a rule and relation above"),
    )
}

fn rules(document: &CheckDocument, options: &Options<'_>, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let names: BTreeSet<&str> = document.findings.iter().map(|f| f.rule.as_str()).collect();
    let known: Vec<_> = names
        .iter()
        .filter_map(|name| (options.explain)(name).map(|text| (name, text)))
        .collect();
    if known.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    sheet.text(0, "The rules (`pgclinic explain RULE` says more):")?;
    let column = known
        .iter()
        .map(|(name, _)| name.chars().count() + 2)
        .max()
        .unwrap_or(0);
    for (name, text) in known {
        sheet.entry(2, name, column, text.summary)?;
    }
    Ok(())
}
