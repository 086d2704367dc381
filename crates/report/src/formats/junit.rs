//! `--format junit`: a check as a suite of tests, which every build server shows: a test for each
//! relation with findings, and one that everything could be checked.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

use pgclinic_model::document::{Finding, NotChecked};
use pgclinic_model::{CheckDocument, Severity};

use crate::format::only_checks;
use crate::{CHECK, Document, Format, Options, headline};

/// `--format junit`.
pub struct JUnit;

impl Format for JUnit {
    fn name(&self) -> &'static str {
        "junit"
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
        out.write_all(suite(only_checks(document)?).as_bytes())
    }
}

fn suite(document: &CheckDocument) -> String {
    let mut relations: BTreeMap<String, Vec<&Finding>> = BTreeMap::new();
    for finding in &document.findings {
        let name = finding.place.relation_name();
        relations.entry(name).or_default().push(finding);
    }
    let is_hurt = |own: &[&Finding]| own.iter().any(|own| own.severity == Severity::Damage);
    let failed = relations.values().filter(|own| is_hurt(own)).count();
    let gaps = document.coverage.not_checked.iter();
    let gaps: Vec<&NotChecked> = gaps.filter(|gap| !gap.inherent).collect();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuite name=\"pgclinic check {}\" tests=\"{}\" failures=\"{failed}\" errors=\"{}\" time=\"{:.3}\">",
        escaped(&document.target.spec),
        relations.len() + 1,
        usize::from(!gaps.is_empty()),
        document.elapsed_s,
    );
    if let Some(contains) = document.tool.contains {
        let words = contains.words();
        let _ = writeln!(
            text,
            "  <properties><property name=\"contains\" value=\"{words}\"/></properties>"
        );
    }
    for (name, findings) in &relations {
        text.push_str(&relation(name, findings));
    }
    text.push_str(&whole(document, &gaps));
    text.push_str("</testsuite>\n");
    text
}

fn relation(name: &str, findings: &[&Finding]) -> String {
    let mut text = format!(
        "  <testcase classname=\"relations\" name=\"{}\">\n",
        escaped(name)
    );
    for own in findings {
        let words = escaped(&format!("{}: {}", own.place, own.message));
        let rule = escaped(&own.rule);
        let _ = match own.severity {
            Severity::Damage => {
                writeln!(text, "    <failure type=\"{rule}\" message=\"{words}\"/>")
            }
            Severity::Warning | Severity::Note => {
                let severity = own.severity.name();
                writeln!(
                    text,
                    "    <system-out>{severity} {rule}: {words}</system-out>"
                )
            }
        };
    }
    text.push_str("  </testcase>\n");
    text
}

fn whole(document: &CheckDocument, gaps: &[&NotChecked]) -> String {
    let name = "everything could be checked";
    let mut text = format!("  <testcase classname=\"check\" name=\"{name}\">\n");
    let words = escaped(&headline(document).to_string());
    if !gaps.is_empty() {
        let _ = writeln!(text, "    <error message=\"{words}\">");
        for gap in gaps {
            let _ = writeln!(text, "{}: {}", escaped(&gap.what), escaped(&gap.why));
        }
        text.push_str("</error>\n");
    } else {
        let _ = writeln!(text, "    <system-out>{words}</system-out>");
    }
    text.push_str("  </testcase>\n");
    text
}

/// Text of an attribute or an element. XML has no way to write most control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\u{FFFE}' | '\u{FFFF}' => escaped.push('\u{FFFD}'),
            other if other.is_control() => escaped.push('\u{FFFD}'),
            other => escaped.push(other),
        }
    }
    escaped
}
