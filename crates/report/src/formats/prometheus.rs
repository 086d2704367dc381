//! `--format prometheus`: the figures of a measurement, the outcome of a check or live signs as
//! metrics, for a textfile collector or a push.
//!
//! One gauge a figure, named `pgclinic_SECTION_FIGURE`, with the place as labels. Truth: the text
//! exposition format 0.0.4.

mod watch;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

use pgclinic_model::document::{
    Figure, MEASURE_SCHEMA, MeasureDocument, MeasuredRelation, Sections, Verdict, WATCH_SCHEMA,
};
use pgclinic_model::{CheckDocument, FigureKinds, FigureList, Severity, Unit};

use crate::format::only_checks;
use crate::{CHECK, Document, Format, Options};

pub use watch::{Exposition, watch_metrics};

/// Relations with metrics of their own. A collector keeps a series for each of their figures.
const RELATIONS_MAX: usize = 100;

/// `--format prometheus`.
pub struct Prometheus;

impl Format for Prometheus {
    fn name(&self) -> &'static str {
        "prometheus"
    }

    fn renders(&self, schema: &str) -> bool {
        [MEASURE_SCHEMA, CHECK, WATCH_SCHEMA].contains(&schema)
    }

    fn render(
        &self,
        document: &Document,
        options: &Options<'_>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        if let Some(contains) = document.tool().contains {
            writeln!(out, "# holds {}", contains.words())?;
        }
        match document {
            Document::Measure(document) => {
                out.write_all(metrics(document, options.figures).as_bytes())
            }
            Document::Watch(document) => {
                out.write_all(watch_metrics(document, Exposition::Prometheus).as_bytes())
            }
            other => out.write_all(of_check(only_checks(other)?).as_bytes()),
        }
    }
}

/// What stands above the samples of a metric.
fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let help = help
        .replace('\\', "\\\\")
        .replace('\n', " ")
        .replace('"', "'");
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Samples by the name of their metric, which stand together.
#[derive(Default)]
struct Metrics(BTreeMap<String, (String, Vec<String>)>);

impl Metrics {
    fn add(&mut self, name: &str, help: &str, labels: &str, value: f64) {
        let entry = self.0.entry(name.to_owned());
        let (_, samples) = entry.or_insert_with(|| (help.to_owned(), Vec::new()));
        samples.push(format!("{name}{labels} {value}"));
    }

    fn text(self) -> String {
        let mut text = String::new();
        for (name, (help, samples)) in self.0 {
            head(&mut text, &name, &help, "gauge");
            for sample in samples {
                text.push_str(&sample);
                text.push('\n');
            }
        }
        text
    }

    fn add_all(&mut self, kinds: &FigureList, sections: &Sections, labels: &[(&str, &str)]) {
        let labels = labelled(labels);
        for (section, kind) in kinds {
            let figure = sections
                .get(*section)
                .and_then(|own| own.get(kind.name)?.as_ref());
            let Some(value) = figure.and_then(number) else {
                continue;
            };
            let value = if kind.unit == Unit::Time {
                value / 1000.0
            } else {
                value
            };
            let name = format!("pgclinic_{section}_{}", kind.name);
            self.add(&name, kind.summary, &labels, value);
        }
    }
}

fn number(figure: &Figure) -> Option<f64> {
    match figure {
        Figure::Spread(spread) => Some(spread.mean),
        _ => figure.as_real(),
    }
}

fn metrics(document: &MeasureDocument, kinds: &FigureKinds) -> String {
    let mut metrics = Metrics::default();
    let relations = relations(document, &mut metrics);
    for own in relations {
        let name = own.name();
        let database = own.database.as_deref().unwrap_or("");
        let labels = [("database", database), ("relation", &name)];
        metrics.add(
            "pgclinic_relation_bytes",
            "length of the relation",
            &labelled(&labels),
            own.bytes as f64,
        );
        metrics.add_all(&kinds.of_relations, &own.sections, &labels);
        for column in &own.columns {
            let [database, relation] = labels;
            let labels = [database, relation, ("column", column.name.as_str())];
            metrics.add_all(&kinds.of_columns, &column.sections, &labels);
        }
    }
    for own in &document.databases {
        metrics.add_all(
            &kinds.of_databases,
            &own.sections,
            &[("database", &own.database)],
        );
    }
    metrics.text()
}

/// Those with metrics of their own: the largest, those of users before those of the server. The
/// others are counted.
fn relations<'a>(
    document: &'a MeasureDocument,
    metrics: &mut Metrics,
) -> Vec<&'a MeasuredRelation> {
    let mut relations: Vec<&MeasuredRelation> = document.relations.iter().collect();
    relations.sort_by_key(|own| (own.is_servers(), Reverse(own.bytes)));
    // Nobody watches the server's own beside those of users.
    let own = relations.partition_point(|own| !own.is_servers());
    let shown = if own == 0 { relations.len() } else { own };
    let rest = relations.split_off(shown.min(RELATIONS_MAX));
    let bytes = document.relations.iter().map(|own| own.bytes);
    let totals = [
        (
            "pgclinic_relations",
            "relations that were measured",
            document.relations.len() as f64,
        ),
        (
            "pgclinic_relations_bytes",
            "length of all of them",
            bytes.sum::<u64>() as f64,
        ),
        (
            "pgclinic_relations_left_out",
            "smaller ones and those of the server itself, without metrics of their own, which --relation gives",
            rest.len() as f64,
        ),
    ];
    for (name, help, value) in totals {
        metrics.add(name, help, "", value);
    }
    relations
}

/// A few lines, however many findings there are.
fn of_check(document: &CheckDocument) -> String {
    let mut metrics = Metrics::default();
    let target = document.target.spec.as_str();
    let mut add = |name: &str, help: &str, label: Option<(&str, &str)>, value: f64| {
        let labels: Vec<(&str, &str)> = [("target", target)].into_iter().chain(label).collect();
        metrics.add(
            &format!("pgclinic_check_{name}"),
            help,
            &labelled(&labels),
            value,
        );
    };
    let found = |severity: Severity| {
        let own = document.findings.iter();
        own.filter(|own| own.severity == severity).count() as f64
    };
    for severity in [Severity::Damage, Severity::Warning, Severity::Note] {
        let label = Some(("severity", severity.name()));
        let help = "findings that the report keeps, by severity";
        add("findings", help, label, found(severity));
    }
    let coverage = &document.coverage;
    let bytes = [
        ("checked", coverage.bytes_checked),
        ("skipped", coverage.bytes_skipped),
        ("unreadable", coverage.bytes_unreadable),
    ];
    for (state, bytes) in bytes {
        let label = Some(("state", state));
        add(
            "bytes",
            "bytes of the target, by what became of them",
            label,
            bytes as f64,
        );
    }
    let gaps = coverage.not_checked.iter().filter(|gap| !gap.inherent);
    let hurt = document
        .relations
        .iter()
        .filter(|own| !own.damaged.is_empty());
    let figures = [
        (
            "healthy",
            "1 where all was checked and is right",
            f64::from(document.verdict == Verdict::Healthy),
        ),
        (
            "needs_recovery",
            "1 where the cluster needs recovery",
            f64::from(document.needs_recovery),
        ),
        (
            "interrupted",
            "1 where the check was stopped before its end",
            f64::from(document.interrupted),
        ),
        (
            "findings_omitted",
            "findings that the report does not keep",
            document.findings_omitted as f64,
        ),
        (
            "relations_damaged",
            "relations with damage",
            hurt.count() as f64,
        ),
        (
            "not_checked",
            "things that could not be checked",
            gaps.count() as f64,
        ),
        ("pages", "pages that were read", coverage.pages as f64),
        ("seconds", "how long the check took", document.elapsed_s),
    ];
    for (name, help, value) in figures {
        add(name, help, None, value);
    }
    metrics.text()
}

fn labelled(labels: &[(&str, &str)]) -> String {
    let labels = labels.iter().map(|(name, value)| {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    });
    format!("{{{}}}", labels.collect::<Vec<_>>().join(","))
}
