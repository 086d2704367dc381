//! `--format prometheus`: the figures of a measurement as metrics, for a textfile collector or a
//! push.
//!
//! One gauge a figure, named `pgclinic_SECTION_FIGURE`, with the place as labels. Truth: the text
//! exposition format 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

use pgclinic_model::document::{Figure, MEASURE_SCHEMA, MeasureDocument, Sections};
use pgclinic_model::{FigureKinds, FigureList, Unit};

use crate::{Document, Format, Options};

/// `--format prometheus`.
pub struct Prometheus;

impl Format for Prometheus {
    fn name(&self) -> &'static str {
        "prometheus"
    }

    fn renders(&self, schema: &str) -> bool {
        schema == MEASURE_SCHEMA
    }

    fn render(
        &self,
        document: &Document,
        options: &Options<'_>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        match document {
            Document::Measure(document) => {
                out.write_all(metrics(document, options.figures).as_bytes())
            }
            other => {
                let schema = other.schema();
                let why = format!("{schema} has no form of metrics; {MEASURE_SCHEMA} has");
                Err(io::Error::new(io::ErrorKind::Unsupported, why))
            }
        }
    }
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
    for own in &document.relations {
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
    let mut text = String::new();
    for (name, (help, samples)) in metrics.0 {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for sample in samples {
            text.push_str(&sample);
            text.push('\n');
        }
    }
    text
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
