//! One statement that gives the figures of several signs, and what came of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pgclinic_servers::{Session, SqlError, TextRow};

use crate::facts::ServerFacts;
use crate::need::Need;

/// Between two looks of a burst: looks that follow at once see the same requests.
const PAUSE: Duration = Duration::from_millis(5);

/// Rows of one reading that are kept; a server with more databases or kinds than that is cut off
/// aloud.
const ROWS_MAX: usize = 2000;

/// A statement.
#[derive(Debug)]
pub struct Probe {
    /// Unique.
    pub name: &'static str,
    /// What the first columns say: of what the figures are.
    pub labels: &'static [&'static str],
    /// What the columns after them hold: numbers.
    pub columns: &'static [&'static str],
    /// After them comes when these figures began at 0.
    pub has_reset: bool,
    /// Without these it is not asked.
    pub needs: &'static [Need],
    /// Its text for this server: version differences are here.
    pub sql: fn(&ServerFacts) -> String,
    /// How many seconds have to pass until it is asked again; 0 for each sample.
    pub every_s: u64,
    /// How often it is asked for one reading, of which the mean counts; after the columns come as
    /// many with the largest figure of the looks.
    pub looks: u32,
    /// What it costs the server, as a sentence.
    pub cost: &'static str,
}

impl Probe {
    /// What most have: read each sample, once, always there.
    pub(crate) const PLAIN: Probe = Probe {
        name: "",
        labels: &[],
        columns: &[],
        has_reset: false,
        needs: &[],
        sql: |_| String::new(),
        every_s: 0,
        looks: 1,
        cost: "A few rows of statistics from shared memory.",
    };

    /// The position of a column among the cells of a row.
    pub(crate) fn cell_of(&self, column: &str) -> Option<usize> {
        if let Some(name) = column.strip_suffix(" at most") {
            let at = self.columns.iter().position(|own| *own == name)?;
            return (self.looks > 1).then_some(self.columns.len() + at);
        }
        self.columns.iter().position(|own| *own == column)
    }

    /// Asks the server. `Err` is for what ended the session; everything else is a reason.
    pub(crate) fn read(
        &self,
        session: &mut Session,
        facts: &ServerFacts,
    ) -> Result<Reading, SqlError> {
        if let Some(why) = self.needs.iter().find_map(|need| need.missing(facts)) {
            return Ok(Reading::Missing(why));
        }
        let sql = (self.sql)(facts);
        let mut looks = Vec::new();
        for look in 0..self.looks {
            if look > 0 {
                std::thread::sleep(PAUSE);
            }
            match session.query(&sql) {
                Ok(rows) => looks.push(self.parsed(&rows)),
                Err(error) if session.is_over() => return Err(error),
                Err(error) => return Ok(Reading::Refused(why_refused(&error))),
            }
        }
        let table = if self.looks == 1 {
            looks.pop().unwrap_or_default()
        } else {
            mean(&looks)
        };
        Ok(Reading::Table(Arc::new(table)))
    }

    fn parsed(&self, rows: &[TextRow]) -> Table {
        let labels = self.labels.len();
        let cells = labels + self.columns.len();
        let row = |row: &TextRow| Row {
            labels: row
                .iter()
                .take(labels)
                .map(|own| own.clone().unwrap_or_default())
                .collect(),
            cells: (labels..cells)
                .map(|at| row.get(at)?.as_deref()?.parse().ok())
                .map(|own: Option<f64>| own.filter(|own| own.is_finite()))
                .collect(),
            reset: row.get(cells).filter(|_| self.has_reset).cloned().flatten(),
        };
        Table {
            taken: Instant::now(),
            rows_omitted: rows.len().saturating_sub(ROWS_MAX),
            rows: rows.iter().take(ROWS_MAX).map(row).collect(),
        }
    }
}

/// The server's own words, in one line.
fn why_refused(error: &SqlError) -> String {
    match error.message() {
        Some(message) => format!("the server refused: {}", message.message),
        None => error.to_string(),
    }
}

/// The mean of all looks, and after it the largest figure of any look.
fn mean(looks: &[Table]) -> Table {
    let mut sums: Vec<(Vec<String>, Vec<f64>, Vec<f64>)> = Vec::new();
    for row in looks.iter().flat_map(|look| &look.rows) {
        let cells: Vec<f64> = row.cells.iter().map(|own| own.unwrap_or(0.0)).collect();
        match sums.iter_mut().find(|(labels, ..)| *labels == row.labels) {
            Some((_, sum, most)) => {
                for ((sum, most), cell) in sum.iter_mut().zip(most).zip(cells) {
                    *sum += cell;
                    *most = most.max(cell);
                }
            }
            None => sums.push((row.labels.clone(), cells.clone(), cells)),
        }
    }
    let count = looks.len().max(1) as f64;
    let rows = sums.into_iter().map(|(labels, sum, most)| Row {
        labels,
        cells: sum
            .into_iter()
            .map(|own| own / count)
            .chain(most)
            .map(Some)
            .collect(),
        reset: None,
    });
    Table {
        rows: rows.collect(),
        ..Table::default()
    }
}

/// What came of a statement.
#[derive(Debug, Clone)]
pub(crate) enum Reading {
    /// Figures.
    Table(Arc<Table>),
    /// None, as the server or the role is, and why.
    Missing(String),
    /// None this time, and why.
    Refused(String),
}

/// The figures of one reading.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// When.
    pub(crate) taken: Instant,
    /// Rows beyond those that are kept.
    pub(crate) rows_omitted: usize,
    pub(crate) rows: Vec<Row>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            taken: Instant::now(),
            rows_omitted: 0,
            rows: Vec::new(),
        }
    }
}

impl Table {
    /// The first row that the labels pick.
    pub(crate) fn row(&self, labels: &[&str]) -> Option<&Row> {
        self.rows.iter().find(|own| own.labels == labels)
    }

    /// A cell of that row.
    pub(crate) fn cell(&self, labels: &[&str], at: usize) -> Option<f64> {
        self.row(labels)?.cells.get(at).copied().flatten()
    }

    /// Whether something was reset since.
    pub(crate) fn is_reset_in(&self, now: &Table) -> bool {
        let mut pairs = self.rows.iter().zip(&now.rows);
        let is_alike =
            |(own, row): (&Row, &Row)| own.labels == row.labels && own.reset == row.reset;
        self.rows.len() != now.rows.len() || !pairs.all(is_alike)
    }

    /// What was reset since begins again: with what it is now.
    pub(crate) fn begin_again(&mut self, now: &Table) {
        for own in &mut self.rows {
            let same = now.rows.iter().find(|row| row.labels == own.labels);
            if let Some(row) = same.filter(|row| row.reset != own.reset) {
                own.clone_from(row);
            }
        }
    }
}

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) labels: Vec<String>,
    /// `None` where the server has no figure.
    pub(crate) cells: Vec<Option<f64>>,
    /// Since when the server counts, as it prints it.
    pub(crate) reset: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(requests: f64) -> Table {
        Table {
            rows: vec![Row {
                labels: vec!["read".into()],
                cells: vec![Some(requests)],
                reset: None,
            }],
            ..Table::default()
        }
    }

    #[test]
    fn a_burst_gives_the_mean_and_the_most() {
        let table = mean(&[look(2.0), look(6.0), Table::default(), Table::default()]);
        assert_eq!(table.rows[0].cells, [Some(2.0), Some(6.0)]);
    }

    #[test]
    fn a_null_and_a_nan_are_no_figures() {
        let probe = Probe {
            labels: &["database"],
            columns: &["a", "b"],
            ..Probe::PLAIN
        };
        let row = vec![Some("x".to_owned()), None, Some("NaN".to_owned())];
        assert_eq!(probe.parsed(&[row]).rows[0].cells, [None, None]);
    }
}
