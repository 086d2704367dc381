//! `--format jsonl`: one JSON value a line, for log collectors: the check as a whole, then each of
//! its findings, relations and steps, with their kind as `type`.

use std::io;

use pgclinic_model::CheckDocument;

use serde::Serialize;
use serde_json::Value;

use crate::format::only_checks;
use crate::{CHECK, Document, Format, Options};

/// `--format jsonl`.
pub struct JsonLines;

impl Format for JsonLines {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn renders(&self, schema: &str) -> bool {
        schema == CHECK
    }

    fn render(
        &self,
        document: &Document,
        _options: &Options<'_>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let document = only_checks(document)?;
        let whole = CheckDocument {
            findings: Vec::new(),
            relations: Vec::new(),
            evidence: Vec::new(),
            plan: Vec::new(),
            ..document.clone()
        };
        line("check", &whole, out)?;
        for finding in &document.findings {
            line("finding", finding, out)?;
        }
        for relation in &document.relations {
            line("relation", relation, out)?;
        }
        for step in &document.plan {
            line("step", step, out)?;
        }
        Ok(())
    }
}

fn line(kind: &str, own: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    let mut value = serde_json::to_value(own)?;
    if let Value::Object(fields) = &mut value {
        fields.insert("type".into(), kind.into());
    }
    serde_json::to_writer(&mut *out, &value)?;
    out.write_all(b"\n")
}
