//! `--format sarif`: findings for dashboards that read the Static Analysis Results Interchange
//! Format, 2.1.0.

use std::collections::BTreeSet;
use std::io;

use pgclinic_model::document::{Finding, Ignored, NotChecked};
use pgclinic_model::{CheckDocument, Severity};
use serde_json::{Value, json};

use crate::format::only_checks;
use crate::{CHECK, Document, Format, Options};

/// `--format sarif`.
pub struct Sarif;

impl Format for Sarif {
    fn name(&self) -> &'static str {
        "sarif"
    }

    fn renders(&self, schema: &str) -> bool {
        schema == CHECK
    }

    fn render(
        &self,
        document: &Document,
        options: &Options<'_>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let document = only_checks(document)?;
        let log = json!({
            "version": "2.1.0",
            "runs": [run(document, options)],
        });
        serde_json::to_writer_pretty(&mut *out, &log)?;
        out.write_all(b"\n")
    }
}

fn run(document: &CheckDocument, options: &Options<'_>) -> Value {
    let names: BTreeSet<&str> = document.findings.iter().map(|own| &*own.rule).collect();
    let rules: Vec<Value> = names.iter().map(|name| rule(name, options)).collect();
    let results: Vec<Value> = document.findings.iter().map(result).collect();
    let gaps = document.coverage.not_checked.iter();
    let gaps: Vec<Value> = gaps.filter(|gap| !gap.inherent).map(notification).collect();
    json!({
        "tool": { "driver": {
            "name": document.tool.name,
            "version": document.tool.version,
            "rules": rules,
        }},
        "invocations": [{
            "executionSuccessful": !document.interrupted,
            "toolExecutionNotifications": gaps,
        }],
        "properties": {
            "verdict": document.verdict.name(),
            "target": document.target,
            "findings_omitted": document.findings_omitted,
            "contains": document.tool.contains,
        },
        "results": results,
    })
}

fn rule(name: &str, options: &Options<'_>) -> Value {
    match (options.explain)(name) {
        Some(text) => json!({
            "id": name,
            "shortDescription": { "text": text.summary },
            "help": { "text": text.explain, "markdown": text.explain },
        }),
        None => json!({ "id": name }),
    }
}

fn result(finding: &Finding) -> Value {
    let level = match finding.severity {
        Severity::Damage => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let suppressions: Vec<Value> = finding.ignored.iter().map(suppression).collect();
    json!({
        "ruleId": finding.rule,
        "level": level,
        "suppressions": suppressions,
        "message": { "text": finding.message },
        "partialFingerprints": { "pgclinic/1": finding.id },
        "locations": [{
            "physicalLocation": { "artifactLocation": {
                "uri": finding.place.path,
                "uriBaseId": "PGDATA",
            }},
            "logicalLocations": [{ "fullyQualifiedName": finding.place.to_string() }],
        }],
        "properties": { "rows_at_risk": finding.at_risk.rows },
    })
}

fn suppression(ignored: &Ignored) -> Value {
    json!({
        "kind": "external",
        "status": "accepted",
        "justification": ignored.reason,
    })
}

fn notification(gap: &NotChecked) -> Value {
    json!({
        "level": "warning",
        "message": { "text": format!("{} was not checked: {}", gap.what, gap.why) },
    })
}
