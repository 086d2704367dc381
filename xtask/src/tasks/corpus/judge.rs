//! `pgclinic check` on one cluster, and what of its answer is a false alarm.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::shell;

/// From the quickest to the deepest.
pub(super) const LEVELS: &[&str] = &["pages", "structure", "full"];

/// A check that takes longer hangs.
const SECONDS: &str = "900";

/// Examples that are shown of each rule and relation.
const EXAMPLES: usize = 3;

/// The answer about one cluster at one level.
pub(super) struct Verdict {
    /// The verdict, the counts and the seconds.
    pub(super) line: String,
    /// Empty when all is well.
    pub(super) complaints: Vec<String>,
}

/// `target` is a cluster, or the words that name one.
pub(super) fn check(program: &Path, target: &[&Path], level: &str) -> Result<Verdict, String> {
    let start = Instant::now();
    let mut command = Command::new("timeout");
    command
        .arg(SECONDS)
        .arg(program)
        .args(["check", "--format", "json"]);
    command
        .args(["--progress", "none", "--level", level])
        .args(target);
    let output = shell::output(&mut command)?;
    let seconds = start.elapsed().as_secs_f64();
    let code = output.status.code();
    let Ok(document) = serde_json::from_slice::<Value>(&output.stdout) else {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Ok(Verdict {
            line: format!("NO ANSWER, {} after {seconds:.1} s", output.status),
            complaints: vec![said],
        });
    };
    let mut complaints = alarms(&document);
    let recovery = document["needs_recovery"].as_bool() == Some(true);
    let expected = if recovery { 3 } else { 0 };
    if complaints.is_empty() && code != Some(expected) {
        complaints = unlooked(&document);
        complaints.push(format!("exit code {code:?}, not {expected}"));
    }
    let notes = document["findings_total"].as_u64().unwrap_or_default();
    let line = format!(
        "{}{}, {} pages, {notes} findings, {seconds:.2} s",
        document["verdict"].as_str().unwrap_or("?"),
        if recovery { " (needs recovery)" } else { "" },
        document["coverage"]["pages"],
    );
    Ok(Verdict { line, complaints })
}

/// Findings above a note, grouped by rule and relation.
fn alarms(document: &Value) -> Vec<String> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for finding in document["findings"].as_array().into_iter().flatten() {
        let severity = finding["severity"].as_str().unwrap_or("?");
        if severity == "note" {
            continue;
        }
        let place = &finding["place"];
        let text = |name: &str| place[name].as_str().unwrap_or_default().to_string();
        let mut what = format!(
            "{severity} {} {}",
            finding["rule"].as_str().unwrap_or("?"),
            text("path")
        );
        for name in ["database", "schema", "relation"] {
            what.push_str(&format!(" {}", text(name)));
        }
        let (block, item) = (&place["block"], &place["item"]);
        let message = finding["message"].as_str().unwrap_or_default();
        groups
            .entry(what)
            .or_default()
            .push(format!("block {block} item {item}: {message}"));
    }
    groups
        .into_iter()
        .map(|(what, examples)| group(&what, &examples))
        .collect()
}

fn group(what: &str, examples: &[String]) -> String {
    let shown = examples
        .get(..EXAMPLES.min(examples.len()))
        .unwrap_or_default();
    format!(
        "{what} ({} times)\n        {}",
        examples.len(),
        shown.join("\n        ")
    )
}

/// What was not looked at though it could have been.
fn unlooked(document: &Value) -> Vec<String> {
    let entries = document["coverage"]["not_checked"]
        .as_array()
        .into_iter()
        .flatten();
    let open = entries.filter(|entry| entry["inherent"].as_bool() != Some(true));
    open.map(|entry| format!("not checked: {} ({})", entry["what"], entry["why"]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_silent_and_the_rest_is_grouped() {
        let finding = |severity: &str| {
            serde_json::json!({"rule": "r", "severity": severity, "message": "m",
                "place": {"path": "base/5/1", "block": 4}})
        };
        let document = serde_json::json!({"findings": [finding("note"), finding("damage"), finding("damage")]});
        let found = alarms(&document);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("damage r base/5/1    (2 times)\n"),
            "{}",
            found[0]
        );
    }
}
