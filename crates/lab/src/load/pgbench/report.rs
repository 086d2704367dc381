//! What pgbench prints, read back (`printResults` and `printProgressReport` of
//! `src/bin/pgbench/pgbench.c`).
//!
//! ```text
//! number of transactions actually processed: 94852          stdout
//! latency average = 0.021 ms
//! tps = 47427.352170 (without initial connection time)
//! progress: 1.0 s, 47101.7 tps, lat 0.021 ms stddev 0.006   stderr, one a second
//! ```

use pgclinic_model::whole;
use std::collections::BTreeMap;

use crate::load::measured::{Latency, SecondOfLoad, SqlErrors};

/// The figures of one run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    pub(super) rounds: u64,
    pub(super) failed: u64,
    pub(super) tps: f64,
    pub(super) connect_s: f64,
    pub(super) latency: Latency,
    pub(super) lag: Option<Latency>,
    pub(super) seconds: Vec<SecondOfLoad>,
    pub(super) aborted_clients: u32,
    pub(super) errors: BTreeMap<String, SqlErrors>,
}

impl Report {
    /// `None` when there is no rate in it.
    pub(super) fn read(stdout: &str, stderr: &str) -> Option<Self> {
        let mut report = Self::default();
        let mut has_rate = false;
        for line in stdout.lines() {
            has_rate |= report.read_line(line);
        }
        for line in stderr.lines() {
            report.seconds.extend(second(line));
            report.count_aborted(line);
        }
        has_rate.then_some(report)
    }

    /// Takes what a line says; true for the line with the rate.
    fn read_line(&mut self, line: &str) -> bool {
        let Some((name, value)) = line.split_once([':', '=']) else {
            return false;
        };
        let number: f64 = first_number(value);
        match name.trim() {
            // "100/100" where rounds were asked for.
            "number of transactions actually processed" => self.rounds = whole(number),
            "number of failed transactions" => self.failed = whole(number),
            "latency average" => self.latency.mean_ms = number,
            "initial connection time" => self.connect_s = number / 1e3,
            "rate limit schedule lag" => {
                let largest = value.split_once("max").map(|(_, rest)| first_number(rest));
                self.lag = Some(Latency {
                    mean_ms: number,
                    max_ms: largest,
                    ..Latency::default()
                });
            }
            // 13 gives two rates; the second one leaves connecting out, as later versions do.
            "tps" => {
                self.tps = number;
                return true;
            }
            _ => {}
        }
        false
    }

    /// An error ends a client of pgbench.
    fn count_aborted(&mut self, line: &str) {
        if line.contains(" aborted") && line.contains("client") {
            self.aborted_clients += 1;
        } else if let Some((_, message)) = line.split_once("ERROR:  ") {
            let first = || SqlErrors {
                count: 0,
                first: message.to_owned(),
            };
            let unknown = self.errors.entry("unknown".to_owned());
            unknown.or_insert_with(first).count += 1;
        }
    }
}

/// `progress: 1.0 s, 47101.7 tps, lat 0.021 ms stddev 0.006, 0 failed`
fn second(line: &str) -> Option<SecondOfLoad> {
    let words = line.strip_prefix("progress: ")?;
    let mut parts = words.split(',').map(str::trim);
    parts.next()?;
    let rounds = first_number(parts.next()?.strip_suffix("tps")?);
    let mean_ms = first_number(parts.next()?.strip_prefix("lat")?);
    let failed = parts.find_map(|part| part.strip_suffix("failed"));
    Some(SecondOfLoad {
        rounds: whole(rounds.round()),
        failed: failed.map_or(0, |failed| whole(first_number(failed))),
        latency_sum_ns: whole(rounds * mean_ms * 1e6),
        latency_max_ns: 0,
    })
}

/// The first number in a text; 0 for `nan` and for nothing.
fn first_number(text: &str) -> f64 {
    let begin = text
        .find(|c: char| c.is_ascii_digit())
        .unwrap_or(text.len());
    let rest = text.get(begin..).unwrap_or_default();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    rest.get(..end)
        .and_then(|number| number.parse().ok())
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a test that panics has failed"
    )]

    use super::*;

    #[test]
    fn the_report_of_15_is_read() {
        let stdout = "pgbench (15.18 (Debian 15.18-0+deb12u1))\ntransaction type: -\nscaling factor: 1\n\
            query mode: prepared\nnumber of clients: 2\nduration: 2 s\n\
            number of transactions actually processed: 94852\nnumber of failed transactions: 3 (0.003%)\n\
            latency average = 0.042 ms\nlatency stddev = 0.011 ms\ninitial connection time = 4.500 ms\n\
            tps = 47427.352170 (without initial connection time)\n";
        let stderr = "progress: 1.0 s, 47101.7 tps, lat 0.042 ms stddev 0.006, 2 failed\n\
            progress: 2.0 s, 47753.0 tps, lat 0.042 ms stddev 0.006, 1 failed\n";
        let report = Report::read(stdout, stderr).expect("a report");
        assert_eq!((report.rounds, report.failed), (94852, 3));
        assert!((report.tps - 47_427.352_17).abs() < 1e-6);
        assert!((report.connect_s - 0.0045).abs() < 1e-9);
        let seconds: Vec<(u64, u64)> = report
            .seconds
            .iter()
            .map(|s| (s.rounds, s.failed))
            .collect();
        assert_eq!(seconds, [(47102, 2), (47753, 1)]);
    }

    #[test]
    fn thirteen_leaves_connecting_out_of_its_second_rate() {
        let stdout = "number of transactions actually processed: 100/100\nlatency average = 0.5 ms\n\
            rate limit schedule lag: avg 1.250 (max 8.500) ms\n\
            tps = 900.0 (including connections establishing)\ntps = 1000.0 (excluding connections establishing)\n";
        let report = Report::read(stdout, "").expect("a report");
        assert_eq!((report.rounds, report.tps as u64), (100, 1000));
        assert_eq!(report.lag.and_then(|lag| lag.max_ms), Some(8.5));
    }

    #[test]
    fn a_run_without_a_rate_has_no_result() {
        let stderr = "pgbench: error: connection to server failed: FATAL:  sorry, too many clients already\n";
        assert_eq!(Report::read("", stderr), None);
    }
}
