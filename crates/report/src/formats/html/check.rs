//! The findings document as a page.

use std::collections::HashMap;
use std::io;

use pgclinic_model::document::{CheckDocument, Coverage, Evidence, Verdict};

use super::escape::Esc;
use super::{details, dump, finding, map, plan, shell};
use crate::groups::{self, Cures, Group};
use crate::headline::{self, Headline};
use crate::words::{self, count, count_of, plural};
use crate::{Options, block_map};

/// Damaged pages shown with their bytes.
const PAGES_MAX: usize = 100;
/// Characters of base64 in all shown pages: about 1 MiB of pages, which browsers still scroll well.
const BASE64_MAX: usize = 1_400_000;

/// Where a page of evidence belongs.
type PagePlace<'a> = (&'a str, u32);

pub(super) fn render(
    document: &CheckDocument,
    options: &Options<'_>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let groups = groups::groups(document);
    let headline = headline::of_groups(document, &groups);
    shell::open(&format!("{}: {}", headline.word, document.target.spec), out)?;
    shell::kicker("pgclinic check", &document.target, out)?;
    banner(document, &headline, out)?;
    facts(document, out)?;
    details::not_checked(&document.coverage.not_checked, out)?;
    plan::write(&document.plan, out)?;
    details::beyond_level(&document.coverage.beyond_level, out)?;
    overview(document, &groups, out)?;
    let evidence = evidence_by_group(document, &groups);
    for (number, group) in groups.iter().enumerate() {
        let pages = evidence.get(&number).map(Vec::as_slice).unwrap_or_default();
        relation(number, group, Cures::of(document), pages, out)?;
    }
    let shown = evidence.values().map(Vec::len).sum();
    more_evidence(document, shown, out)?;
    let rules = document
        .findings
        .iter()
        .map(|finding| finding.rule.as_str());
    details::manuals(rules, options, out)?;
    shell::close(&document.tool, out)
}

fn banner(
    document: &CheckDocument,
    headline: &Headline,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let class = match document.verdict {
        Verdict::Healthy => "good",
        Verdict::Damaged => "bad",
        Verdict::Incomplete => "warn",
    };
    write!(
        out,
        "<section class=\"banner {class}\">\n<h1>{}",
        headline.word
    )?;
    if !headline.beside.is_empty() {
        write!(out, " <small>{}</small>", Esc(headline.beside.join(", ")))?;
    }
    writeln!(out, "</h1>\n<p class=extent>{}</p>", Esc(&headline.extent))?;
    coverage_bar(&document.coverage, out)?;
    write!(out, "<p>{}", Esc(&headline.coverage))?;
    let coverage = &document.coverage;
    for (number, what) in [
        (coverage.bytes_skipped, "skipped"),
        (coverage.bytes_unreadable, "unreadable"),
    ] {
        if number > 0 {
            write!(out, "; <strong>{} {what}</strong>", words::bytes(number))?;
        }
    }
    out.write_all(b"</p>\n</section>\n")
}

/// Checked, skipped, unreadable: a part that exists is never thinner than can be seen.
fn coverage_bar(coverage: &Coverage, out: &mut dyn io::Write) -> io::Result<()> {
    const WIDTH: u64 = 1000;
    const THIN: u64 = 8;
    let part = |number: u64| match (number, coverage.bytes_seen) {
        (0, _) | (_, 0) => 0,
        (number, seen) => {
            let share = u128::from(number.min(seen)) * u128::from(WIDTH) / u128::from(seen);
            u64::try_from(share).unwrap_or(WIDTH).max(THIN)
        }
    };
    let (skipped, unreadable) = (
        part(coverage.bytes_skipped),
        part(coverage.bytes_unreadable),
    );
    let checked = part(coverage.bytes_checked).min(WIDTH.saturating_sub(skipped + unreadable));
    let percent = words::percent(coverage.bytes_checked, coverage.bytes_seen);
    write!(
        out,
        "<svg class=bar viewBox=\"0 0 {WIDTH} 10\" preserveAspectRatio=none role=img \
         aria-label=\"{percent} percent checked\"><rect class=rest width={WIDTH} height=10 />"
    )?;
    let parts = [("checked", 0, checked), ("skipped", checked, skipped)];
    for (class, x, width) in parts
        .into_iter()
        .chain([("unread", checked + skipped, unreadable)])
    {
        if width > 0 {
            write!(out, "<rect class={class} x={x} width={width} height=10 />")?;
        }
    }
    out.write_all(b"</svg>\n")
}

fn facts(document: &CheckDocument, out: &mut dyn io::Write) -> io::Result<()> {
    let coverage = &document.coverage;
    let mut facts = shell::target_facts(&document.target);
    facts.push(("level", document.level.name().into()));
    facts.push(("relations", count(coverage.relations)));
    let zeroed = match coverage.zeroed_pages {
        0 => String::new(),
        pages => format!(", {} of them only zeros", count(pages)),
    };
    facts.push(("pages", format!("{}{zeroed}", count(coverage.pages))));
    facts.push(("findings", count(document.findings_total)));
    if let Some(since) = &document.since {
        facts.push(("since", words::since(since)));
    }
    shell::facts(&facts, out)
}

fn overview(
    document: &CheckDocument,
    groups: &[Group<'_>],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if groups.is_empty() {
        return out.write_all(b"<p class=none>No findings.</p>\n");
    }
    out.write_all(
        b"<section>\n<h2>Findings by relation</h2>\n<div class=tools data-filter=\".relation\"></div>\n\
          <div class=wide><table>\n<thead><tr><th>Relation</th><th>Kind</th><th>Worst</th>\
          <th class=n>Findings</th><th class=n>Damaged pages</th><th class=n>Rows at risk</th></tr></thead>\n<tbody>\n",
    )?;
    for (number, group) in groups.iter().enumerate() {
        let severity = group.worst().map_or("note", |severity| severity.name());
        writeln!(
            out,
            "<tr><td><a href=\"#r{number}\">{}</a></td><td>{}</td><td>{}</td><td class=n>{}</td>\
             <td class=n>{}</td><td class=n>{}</td></tr>",
            Esc(&group.name),
            group.kind.words(),
            finding::badge(severity),
            count(count_of(group.own.len())),
            count(group.damaged_blocks()),
            Esc(group.rows.number()),
        )?;
    }
    out.write_all(b"</tbody></table></div>\n")?;
    if document.findings_omitted > 0 {
        writeln!(
            out,
            "<p class=loud>{} of {} were counted and not kept, as they repeat a rule and relation \
             below.</p>",
            count(document.findings_omitted),
            plural(document.findings_total, "finding")
        )?;
    }
    out.write_all(b"</section>\n")
}

fn relation(
    number: usize,
    group: &Group<'_>,
    cures: Cures,
    pages: &[&Evidence],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write!(
        out,
        "<section class=relation id=r{number}>\n<h2>{}</h2>\n",
        Esc(&group.name)
    )?;
    write!(out, "<p class=about>{}", group.kind.words())?;
    if let Some(database) = group.database {
        write!(out, " in database {}", Esc(database))?;
    }
    writeln!(out, ", <code>{}</code></p>", Esc(group.path))?;
    let anchors = finding::anchors(group);
    for fork in &group.forks {
        let map = block_map::block_map(fork.blocks, &fork.damaged);
        map::write(fork, &map, &anchors, out)?;
    }
    for run in group.runs() {
        finding::run(&run, group, cures, out)?;
    }
    if group.following_elsewhere > 0 {
        let words = words::elsewhere(group.following_elsewhere);
        writeln!(out, "<p class=about>{words}.</p>")?;
    }
    evidence(pages, group, out)?;
    out.write_all(b"</section>\n")
}

fn evidence(pages: &[&Evidence], group: &Group<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    if pages.is_empty() {
        return Ok(());
    }
    let total = plural(count_of(pages.len()), "page");
    writeln!(out, "<h3>Bytes as they were found: {total}</h3>")?;
    for page in pages {
        let here = |place: &pgclinic_model::document::Place| {
            place.path == page.path && place.block == Some(page.block)
        };
        let findings: Vec<_> = group
            .own
            .iter()
            .copied()
            .filter(|finding| here(&finding.place))
            .collect();
        dump::evidence(page, group.kind, &findings, out)?;
    }
    Ok(())
}

/// The pages of each group, so many in all as are shown.
fn evidence_by_group<'a>(
    document: &'a CheckDocument,
    groups: &[Group<'a>],
) -> HashMap<usize, Vec<&'a Evidence>> {
    let mut group_of: HashMap<PagePlace<'_>, usize> = HashMap::new();
    for (number, group) in groups.iter().enumerate() {
        for finding in &group.own {
            if let Some(block) = finding.place.block {
                group_of
                    .entry((&finding.place.path, block))
                    .or_insert(number);
            }
        }
    }
    let mut pages: HashMap<usize, Vec<&Evidence>> = HashMap::new();
    for page in shown_evidence(document) {
        if let Some(number) = group_of.get(&(page.path.as_str(), page.block)) {
            pages.entry(*number).or_default().push(page);
        }
    }
    pages
}

fn shown_evidence(document: &CheckDocument) -> &[Evidence] {
    let mut base64 = 0_usize;
    let fitting = document.evidence.iter().take(PAGES_MAX).take_while(|page| {
        base64 = base64.saturating_add(page.page.len());
        base64 <= BASE64_MAX
    });
    document.evidence.get(..fitting.count()).unwrap_or_default()
}

fn more_evidence(
    document: &CheckDocument,
    shown: usize,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    match document.evidence.len().saturating_sub(shown) {
        0 => Ok(()),
        more => writeln!(
            out,
            "<p class=loud>The bytes of {} more stand in the JSON document.</p>",
            plural(count_of(more), "page")
        ),
    }
}
