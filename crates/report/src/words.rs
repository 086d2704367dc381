//! Numbers and names as a person reads them.

use std::fmt::Write;

use pgclinic_model::document::{
    AtRisk, Coverage, DrillDocument, Place, PlanStep, ServerAnswer, SinceSummary, Target, Tool,
    Witness, WitnessCount,
};
use pgclinic_model::plan::Safety;
pub(crate) use pgclinic_model::{count, plural};
use serde_json::{Map, Value};

/// What a run that only looks at changes did with the rest.
pub(crate) fn since(since: &SinceSummary) -> String {
    let mut parts = vec![match since.pages_unchanged {
        0 => "no page was passed over as unchanged".to_owned(),
        pages => format!("{} passed over as unchanged", plural(pages, "page")),
    }];
    if since.pages_again > 0 {
        let pages = plural(since.pages_again, "unchanged page");
        parts.push(format!("{pages} with known findings examined again"));
    }
    if since.findings_carried > 0 {
        let findings = plural(since.findings_carried, "known finding");
        parts.push(format!("{findings} reported again and not looked for"));
    }
    format!("since {}: {}", clean(&since.lsn), parts.join(", "))
}

/// Relations that were looked at, and what became of the others.
pub(crate) fn relations(coverage: &Coverage) -> String {
    let others = [
        (coverage.relations_missing, "missing"),
        (coverage.relations_unreadable, "unreadable"),
        (coverage.relations_skipped, "left out"),
    ];
    let others = others.iter().filter(|(number, _)| *number > 0);
    let others = others.map(|(number, what)| format!("{} {what}", count(*number)));
    let others = others.collect::<Vec<_>>().join(", ");
    match others.as_str() {
        "" => count(coverage.relations),
        others => format!(
            "{} of {}: {others}",
            count(coverage.relations),
            count(coverage.relations_selected)
        ),
    }
}

/// Who was asked whether something is missing.
pub(crate) fn witnesses(witnesses: &[WitnessCount]) -> String {
    let words = |own: &WitnessCount| {
        let asked = match own.witness {
            Witness::IndexEntries => format!("entries of {}", plural(own.asked, "index")),
            Witness::VisibilityMaps => plural(own.asked, "visibility map"),
            Witness::PageCounts => format!("page counts of {}", plural(own.asked, "table")),
            Witness::WalRecords => plural(own.asked, "WAL record"),
        };
        match own.out_of_reach {
            0 => asked,
            more => format!("{asked} ({} out of reach)", count(more)),
        }
    };
    let all: Vec<_> = witnesses.iter().map(words).collect();
    all.join(", ")
}

/// Of a finding that this run did not look for.
pub(crate) fn known_from(lsn: &str) -> String {
    format!(
        "from the run that began at {}; this one did not look for it",
        clean(lsn)
    )
}

/// A length as a count.
pub(crate) fn count_of(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Findings of a relation that are told where they come from.
pub(crate) fn elsewhere(findings: u64) -> String {
    let verb = if findings == 1 { "stands" } else { "stand" };
    let findings = plural(findings, "finding");
    format!("{findings} {verb} under the cause in another relation")
}

/// `41.7 GiB`, cut and not rounded, so that a part never looks like the whole.
pub fn bytes(number: u64) -> String {
    const UNITS: [(&str, u32); 5] = [
        ("PiB", 50),
        ("TiB", 40),
        ("GiB", 30),
        ("MiB", 20),
        ("KiB", 10),
    ];
    for (unit, shift) in UNITS {
        let whole = number >> shift;
        if whole > 0 {
            let rest = number - (whole << shift);
            return format!("{whole}.{} {unit}", (u128::from(rest) * 10) >> shift);
        }
    }
    plural(number, "byte")
}

/// `97.3`; `100` only when nothing is missing, `0` only when nothing is there.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if part >= whole {
        return "100".into();
    }
    let thousandths = u128::from(part) * 1000 / u128::from(whole);
    match thousandths {
        0 if part > 0 => "under 0.1".into(),
        0 => "0".into(),
        _ => format!("{}.{}", thousandths / 10, thousandths % 10),
    }
}

/// `0.04 s`, `12.3 s`, `3 min 5 s`.
pub(crate) fn seconds(number: f64) -> String {
    if !number.is_finite() || number < 0.0 {
        "unknown time".into()
    } else if number < 1.0 {
        format!("{number:.2} s")
    } else if number < 120.0 {
        format!("{number:.1} s")
    } else {
        format!(
            "{:.0} min {:.0} s",
            (number / 60.0).floor(),
            (number % 60.0).floor()
        )
    }
}

/// How sure a cause is: `80 % sure`.
pub(crate) fn sureness(confidence: f64) -> String {
    if confidence.is_nan() {
        return "sureness unknown".into();
    }
    let percent = (confidence.clamp(0.0, 1.0) * 100.0).floor();
    format!("{percent:.0} % sure")
}

/// How sure a cure is.
pub(crate) fn safety(safety: Safety) -> &'static str {
    match safety {
        Safety::Exact => "exact",
        Safety::Lossy => "may lose rows",
        Safety::ShowOnly => "by hand",
    }
}

/// The colour of a safety on a page.
pub(crate) fn safety_class(safety: Safety) -> &'static str {
    match safety {
        Safety::Exact => "good",
        Safety::Lossy => "warn",
        Safety::ShowOnly => "plain",
    }
}

/// Relations of a step that are named; the rest is a number.
const PLAN_RELATIONS_SHOWN: usize = 12;

/// `public.docs, public.tags and 3 more in shop; pg_class in postgres`.
pub(crate) fn plan_relations(step: &PlanStep) -> String {
    let mut databases: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
    for relation in step.relations.iter().take(PLAN_RELATIONS_SHOWN) {
        let database = relation.database.as_deref();
        match databases.last_mut() {
            Some((last, names)) if *last == database => names.push(&relation.name),
            _ => databases.push((database, vec![&relation.name])),
        }
    }
    let named = databases.iter().map(|(database, names)| {
        let names = names.join(", ");
        database.map_or(names.clone(), |database| {
            format!("{names} in database {database}")
        })
    });
    let mut text = named.collect::<Vec<_>>().join("; ");
    let rest = count_of(step.relations.len().saturating_sub(PLAN_RELATIONS_SHOWN));
    match rest.saturating_add(step.relations_omitted) {
        0 => {}
        more => text.push_str(&format!(" and {} more", count(more))),
    }
    text
}

/// Rows at risk of a finding.
pub(crate) fn at_risk(at_risk: &AtRisk) -> Option<String> {
    let rows = at_risk.rows?;
    let refused = match rows {
        1 => "; the server refuses the whole table because of it",
        _ => "; the server refuses the whole table because of them",
    };
    let refused = if at_risk.whole_table { refused } else { "" };
    Some(format!("{}{refused}", plural(rows, "row")))
}

/// The text with everything escaped that could move a cursor, start an escape sequence, break a
/// line or turn the direction of writing.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => cleaned.push_str("\\n"),
            '\r' => cleaned.push_str("\\r"),
            '\t' => cleaned.push_str("\\t"),
            _ if is_treacherous(letter) => {
                let _ = write!(cleaned, "\\u{{{:x}}}", u32::from(letter));
            }
            _ => cleaned.push(letter),
        }
    }
    cleaned
}

fn is_treacherous(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{061C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(letter, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
}

/// `block 131073, item 7, column body, bytes 12-13`: the place without its relation.
pub(crate) fn place_inside(place: &Place) -> String {
    let mut parts = Vec::new();
    if let Some(fork) = place.fork.filter(|fork| fork.name() != "main") {
        parts.push(format!("fork {fork}"));
    }
    if let Some(block) = place.block {
        parts.push(format!("block {block}"));
    }
    if let Some(item) = place.item {
        parts.push(format!("item {item}"));
    }
    if let Some(attribute) = &place.attribute {
        let name = attribute.name.clone();
        parts.push(format!(
            "column {}",
            name.unwrap_or_else(|| attribute.number.to_string())
        ));
    }
    if let Some(range) = place.bytes {
        parts.push(byte_range(range));
    }
    parts.join(", ")
}

/// `bytes 12-13` for `[12, 14]`, `byte 12` for `[12, 13]`.
pub(crate) fn byte_range([start, end]: [u64; 2]) -> String {
    match end.saturating_sub(1) {
        last if last <= start => format!("byte {start}"),
        last => format!("bytes {start}-{last}"),
    }
}

/// `7, 9-12` for half-open ranges, cut after `limit` of them with a count of the rest.
pub(crate) fn block_ranges(ranges: &[[u64; 2]], limit: usize) -> String {
    let shown = ranges
        .iter()
        .take(limit)
        .map(|[start, end]| match end.saturating_sub(1) {
            last if last <= *start => start.to_string(),
            last => format!("{start}-{last}"),
        });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if let Some(rest) = ranges.get(limit..).filter(|rest| !rest.is_empty()) {
        let blocks = rest.iter().map(|[start, end]| end.saturating_sub(*start));
        let _ = write!(
            text,
            " and {} more",
            count(blocks.fold(0, u64::saturating_add))
        );
    }
    text
}

/// Sorted numbers as half-open ranges.
pub(crate) fn to_ranges(numbers: impl IntoIterator<Item = u64>) -> Vec<[u64; 2]> {
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some([_, end]) if *end == number => *end = number.saturating_add(1),
            Some([_, end]) if *end > number => {}
            _ => ranges.push([number, number.saturating_add(1)]),
        }
    }
    ranges
}

/// `found block 12, bytes 5120-5631, candidates byte 182 bit 0`; lists of nothing say nothing, and
/// neither does the length of one that is shown whole.
pub(crate) fn facts(facts: &Map<String, Value>) -> String {
    let is_shown_whole = |name: &str, value: &Value| {
        let list = name.strip_suffix("_total").and_then(|list| facts.get(list));
        let shown = list.and_then(Value::as_array);
        shown.is_some_and(|shown| value.as_u64() == Some(count_of(shown.len())))
    };
    let parts = facts.iter().filter_map(|(name, value)| {
        if is_shown_whole(name, value) {
            return None;
        }
        if let Some(range) = range_of(name, value) {
            return Some(byte_range(range));
        }
        let name = name.replace('_', " ");
        match value {
            Value::String(text) => Some(format!("{name} {text}")),
            Value::Array(all) if all.is_empty() => None,
            Value::Array(all) if all.iter().all(Value::is_string) => {
                let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
                Some(format!("{name} {}", all.join(", ")))
            }
            other => Some(format!("{name} {other}")),
        }
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// Half-open offsets of bytes.
fn range_of(name: &str, value: &Value) -> Option<[u64; 2]> {
    match (name, value.as_array()?.as_slice()) {
        ("bytes", [start, end]) => Some([start.as_u64()?, end.as_u64()?]),
        _ => None,
    }
}

/// `data directory, PostgreSQL 18, 8 KiB blocks, data checksums on, shut down`.
pub(crate) fn target(target: &Target) -> String {
    let mut parts = vec![target.kind.replace('-', " ")];
    parts.extend(target.major.map(|major| format!("PostgreSQL {major}")));
    let size = target.block_size.filter(|size| *size != 8192);
    parts.extend(size.map(|size| format!("blocks of {size} bytes")));
    parts.extend(
        target
            .checksums
            .map(|on| format!("data checksums {}", if on { "on" } else { "off" })),
    );
    parts.extend(target.state.clone());
    parts.join(", ")
}

/// When, where and by what it was written: `2026-11-26 20:39:09 UTC on db7 by pgclinic 0.1.0`.
pub(crate) fn run(tool: &Tool) -> String {
    let mut parts = Vec::new();
    parts.extend(tool.started.as_deref().map(moment));
    parts.extend(tool.host.as_ref().map(|host| format!("on {host}")));
    parts.extend((!parts.is_empty()).then(|| "by".to_owned()));
    parts.push(format!("{} {}", tool.name, tool.version));
    let contains = tool.contains.map(|own| format!("; holds {}", own.words()));
    parts.join(" ") + &contains.unwrap_or_default()
}

/// `2026-11-26 20:39:09 UTC` for `2026-11-26T20:39:09Z`.
fn moment(started: &str) -> String {
    let parts = started
        .strip_suffix('Z')
        .and_then(|own| own.split_once('T'));
    match parts {
        Some((day, time)) => format!("{day} {time} UTC"),
        None => started.to_owned(),
    }
}

/// What stands beside the word of the first line.
pub(crate) fn beside(target: &Target) -> &'static str {
    if target.is_running() { "running" } else { "" }
}

/// What a drill of the default set leaves out, to be put after its score; nothing for any other
/// drill.
pub(crate) fn left_out(document: &DrillDocument) -> String {
    match document.left_out {
        0 => String::new(),
        left => format!(
            "; {} more were left out: pgclinic drill --all runs them",
            count(left)
        ),
    }
}

/// What the server did, in a word.
pub(crate) fn answer(answer: Option<&ServerAnswer>) -> &'static str {
    match answer {
        None => "not asked",
        Some(answer) if answer.crashed => "crash",
        Some(answer) if !answer.started => "no start",
        Some(answer) if !answer.messages.is_empty() => "error",
        Some(answer) if !answer.silent.is_empty() => "wrong rows",
        Some(_) => "silent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_never_the_whole() {
        assert_eq!(percent(u64::MAX - 1, u64::MAX), "99.9");
        assert_eq!(percent(u64::MAX, u64::MAX), "100");
        assert_eq!(percent(1, u64::MAX), "under 0.1");
        assert_eq!(percent(0, 0), "100");
    }

    #[test]
    fn numbers_are_cut_in_thousands() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(1023), "1,023 bytes");
        assert_eq!(bytes(44_774_569_000), "41.6 GiB");
        assert_eq!(bytes(u64::MAX), "16383.9 PiB");
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[2J\nb\u{202e}c"), "a\\u{1b}[2J\\nb\\u{202e}c");
        assert_eq!(clean("häus\u{9b}"), "häus\\u{9b}");
    }

    #[test]
    fn blocks_are_listed_as_ranges() {
        let ranges = to_ranges([1, 2, 2, 3, 7, 9]);
        assert_eq!(block_ranges(&ranges, 9), "1-3, 7, 9");
        assert_eq!(block_ranges(&ranges, 1), "1-3 and 2 more");
    }
}
