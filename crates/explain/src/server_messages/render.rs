//! What `pgclinic explain` prints. The first line is always to take a copy.

use pgclinic_model::Rule;
use pgclinic_model::document::FileKind;
use pgclinic_model::plural;

use super::message::{Match, ServerMessage};
use super::names::Names;
use super::resolved::Resolved;

/// The first line of every answer.
pub const FIRST_LINE: &str = "First of all take a copy: stop the server and copy the whole data directory, tablespaces and WAL \
included, to another disk. Before anything else.";

/// The page for a recognised message.
pub fn render(found: &Match, resolved: Option<&Resolved>) -> String {
    let message = found.message;
    let names = Names {
        facts: &found.facts,
        resolved,
    };
    let mut lines = vec![FIRST_LINE.to_owned(), String::new(), title(found)];
    let place = place(&names);
    if !place.is_empty() {
        lines.push(String::new());
        lines.extend(place);
    }
    lines.extend([
        String::new(),
        message.meaning.to_owned(),
        String::new(),
        "Next steps:".into(),
        String::new(),
    ]);
    let steps = message.next_steps(&names);
    lines.extend(
        steps
            .iter()
            .zip(1..)
            .map(|(step, number): (_, u32)| format!("{number}. {}.", visible(step))),
    );
    lines.join("\n") + "\n"
}

fn title(found: &Match) -> String {
    let ServerMessage {
        name, sqlstates, ..
    } = found.message;
    if sqlstates.is_empty() {
        format!("# {name}")
    } else {
        format!("# {name} (SQLSTATE {})", sqlstates.join(", "))
    }
}

/// What the message is about in this cluster, or in the text's own words.
pub(super) fn place(names: &Names<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let facts = names.facts;
    if let (Some(computed), Some(expected)) = (facts.computed_checksum, facts.expected_checksum) {
        lines.push(format!("- the page's header holds checksum {expected} (0x{expected:04x}); the computed checksum is {computed} (0x{computed:04x})"));
    }
    let Some(resolved) = names.resolved else {
        return lines;
    };
    if let Some(relation) = &resolved.relation {
        let database = resolved.database.as_ref().map_or_else(
            || " (shared)".to_owned(),
            |name| format!(" of database {}", visible(name)),
        );
        lines.insert(
            0,
            format!(
                "- {} {}{database}",
                relation.kind.words(),
                visible(&relation.name)
            ),
        );
    }
    if let (Some(owner), Some(relation)) = (&resolved.owner, &resolved.relation) {
        lines.push(match relation.kind {
            FileKind::Toast => format!(
                "- it keeps the TOASTed values of {} {}",
                owner.kind.words(),
                visible(&owner.name)
            ),
            _ => format!(
                "- an index of {} {}: the rows stand there, not here",
                owner.kind.words(),
                visible(&owner.name)
            ),
        });
    }
    lines.extend(file_line(resolved));
    if let Some(rows) = &resolved.rows {
        let about = if rows.estimated { "about " } else { "" };
        lines.push(format!(
            "- at risk: {about}{} ({})",
            plural(rows.rows, "row"),
            rows.how
        ));
    }
    lines.extend(
        resolved
            .notes
            .iter()
            .map(|note| format!("- {}", visible(note))),
    );
    lines
}

fn file_line(resolved: &Resolved) -> Option<String> {
    let path = resolved.path.as_ref()?;
    let fork = resolved
        .fork
        .map(|fork| format!(", fork {fork}"))
        .unwrap_or_default();
    let of = resolved
        .blocks
        .map(|blocks| format!(" of {blocks}"))
        .unwrap_or_default();
    let block = resolved
        .block
        .map(|block| format!(", block {block}{of}"))
        .unwrap_or_default();
    let bytes = resolved
        .bytes
        .map(|[start, end]| format!(", bytes {start}-{}", end.saturating_sub(1)))
        .unwrap_or_default();
    Some(format!("- file {path}{fork}{block}{bytes}"))
}

/// Names come from hostile bytes: control characters are not sent to a terminal.
pub(super) fn visible(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() { '\u{FFFD}' } else { char })
        .collect()
}

/// The page for a text that no message fits.
pub fn render_unknown() -> String {
    format!(
        "{FIRST_LINE}\n\n\
         This message is not known here: that says nothing about how bad it is.\n\n\
         Please collect, before the log rotates away:\n\n\
         - the message with its DETAIL, HINT, CONTEXT and STATEMENT lines, and what the server's log says in the minute before\n\
         - its SQLSTATE (`\\set VERBOSITY verbose` in psql, or %e in log_line_prefix); XX001 and XX002 mean damaged data and a damaged index\n\
         - the server's version (`SELECT version();`) and `SHOW data_checksums;`\n\
         - what the kernel says of the disks (dmesg), and what was done to the machine lately\n\n\
         Messages in other languages are not matched: set lc_messages to C and provoke it again.\n\n\
         Next steps:\n\n\
         1. Look at all files of the stopped copy: `pgclinic check PGDATA`.\n"
    )
}

/// The manual page of a rule.
pub fn explain_rule(rule: &Rule) -> String {
    let Rule {
        name,
        formerly,
        severity,
        summary,
        explain,
    } = rule;
    let severity = severity.name();
    let formerly = formerly.map_or_else(String::new, |name| format!("Formerly {name}.\n\n"));
    format!("# {name} ({severity})\n\n{summary}\n\n{formerly}{explain}\n")
}
