//! Whether a session leaks: what it still holds at its lowest in each hundred queries, against what
//! the first hundred made it keep.
//!
//! ```text
//! without the fix   /          with it    _ _ _ _
//!                  /                     /
//!                 /  each hundred adds  /  only the first hundred does
//!                    what the first did
//! ```

use pgclinic_model::document::DecisionWord;

use crate::cell::RunResult;
use crate::decision::Withheld;
use crate::decision::words::figure;
use crate::statistics::theil_sen;

/// Queries after which a server with the fix drops what LLVM has gathered
/// (`LLVMJIT_LLVM_CONTEXT_REUSE_MAX` in `llvmjit.c`).
const QUERIES_A_CONTEXT: f64 = 100.0;

/// Queries between two readings; a context has many readings.
pub(super) const QUERIES_A_READING: u32 = 10;

/// Lowest points after the first context that a slope needs.
const CONTEXTS_MIN: usize = 3;

/// A leak adds each hundred queries what the first hundred added; half of it is told from the few
/// percent that the allocator does not give back.
const SHARE_OF_A_LEAK: f64 = 0.5;

/// Less than this in a hundred queries, in kB, is what any session gathers.
const KB_OF_A_LEAK_MIN: f64 = 100.0;

/// The first minor of each major that has the fix; later majors were born with it.
const FIXED_SINCE: [(u16, u16); 5] = [(12, 18), (13, 14), (14, 11), (15, 6), (16, 2)];

/// What the first hundred queries made the session keep beyond what its first ones did, in kB, of
/// (queries so far, bytes).
pub(super) fn kb_first_hundred(points: &[[f64; 2]]) -> f64 {
    let after = |queries: f64| points.iter().find(|[done, _]| *done >= queries);
    let first = after(f64::from(QUERIES_A_READING));
    let last = after(QUERIES_A_CONTEXT).or(points.last());
    match (first, last) {
        (Some([_, first]), Some([_, last])) => ((last - first) / 1024.0).max(0.0),
        _ => 0.0,
    }
}

/// The slope of the lowest points of all contexts but the first, in kB for 1,000 queries; `None`
/// where there are too few of them.
pub(super) fn kb_per_1000(points: &[[f64; 2]]) -> Option<f64> {
    let lowest = lowest_by_context(points);
    let settled = lowest.get(1..).filter(|rest| rest.len() >= CONTEXTS_MIN)?;
    theil_sen::slope(settled).map(|bytes| bytes * 1_000.0 / 1024.0)
}

/// The lowest reading of every hundred queries that was run to its end, placed at that end.
fn lowest_by_context(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let mut lowest: Vec<[f64; 2]> = Vec::new();
    for [queries, bytes] in points.iter().filter(|[queries, _]| *queries > 0.0) {
        let end = (queries / QUERIES_A_CONTEXT).ceil() * QUERIES_A_CONTEXT;
        match lowest.last_mut().filter(|[known, _]| *known == end) {
            Some([_, least]) => *least = least.min(*bytes),
            None => lowest.push([end, *bytes]),
        }
    }
    let done = points.last().map_or(0.0, |[queries, _]| *queries);
    lowest.retain(|[end, _]| *end <= done);
    lowest
}

/// What a run says of the leak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leak {
    /// Too few queries.
    TooShort,
    /// It stays where the first hundred queries brought it.
    NotShown,
    /// Each hundred queries add about what the first hundred did.
    Shown,
}

impl Leak {
    fn of(run: &RunResult) -> Self {
        let Some(slope) = run.metrics.get("private_kb_per_1000") else {
            return Self::TooShort;
        };
        let each_hundred = slope * QUERIES_A_CONTEXT / 1_000.0;
        let least = SHARE_OF_A_LEAK * first_hundred(run);
        if each_hundred >= least.max(KB_OF_A_LEAK_MIN) {
            Self::Shown
        } else {
            Self::NotShown
        }
    }
}

fn first_hundred(run: &RunResult) -> f64 {
    let found = run.metrics.get("private_kb_first_100");
    found.copied().unwrap_or_default()
}

fn queries(run: &RunResult) -> f64 {
    let readings = run.series.get("private_bytes");
    let last = readings.and_then(|readings| readings.last());
    last.map_or(0.0, |[queries, _]| *queries)
}

fn version(run: &RunResult) -> &str {
    let found = run.environment.get("server_version");
    found.map_or("unknown", String::as_str)
}

/// Whether a server of this version (`15.6`) drops what LLVM has gathered now and then.
fn has_the_fix(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u16>().ok());
    let (Some(Some(major)), minor) = (numbers.next(), numbers.next().flatten()) else {
        return false;
    };
    let since = FIXED_SINCE.iter().find(|(fixed, _)| *fixed == major);
    match since {
        Some((_, first)) => minor.is_some_and(|minor| minor >= *first),
        None => major > 16,
    }
}

/// Why nothing is advised from these runs of a baseline, which must show the leak first.
pub(super) fn withheld(runs: &[&RunResult]) -> Option<Withheld> {
    let first = runs.first()?;
    let leaks: Vec<Leak> = runs.iter().map(|run| Leak::of(run)).collect();
    let all = |leak: Leak| leaks.iter().all(|one| *one == leak);
    let open = |why: String| {
        Some(Withheld {
            word: DecisionWord::Undecided,
            why,
        })
    };
    if leaks.contains(&Leak::TooShort) {
        return open(too_short(queries(first)));
    }
    if all(Leak::Shown) {
        return None;
    }
    if !all(Leak::NotShown) {
        return open("only some of its runs go on growing".to_owned());
    }
    let version = version(first);
    if has_the_fix(version) {
        return Some(Withheld {
            word: DecisionWord::Equivalent,
            why: format!(
                "PostgreSQL {version} has the fix, and the session does not leak: {}",
                held(first)
            ),
        });
    }
    open(format!(
        "the leak of PostgreSQL {version} does not show here: {}",
        held(first)
    ))
}

/// What a session kept, and what it went on to add.
fn held(run: &RunResult) -> String {
    let slope = run.metrics.get("private_kb_per_1000");
    let each_hundred = slope.copied().unwrap_or_default() * QUERIES_A_CONTEXT / 1_000.0;
    format!(
        "the first 100 queries made it keep {} kB, each further 100 add {} kB, over {} queries",
        figure(first_hundred(run).round()),
        figure(each_hundred.max(0.0).round()),
        figure(queries(run))
    )
}

fn too_short(queries: f64) -> String {
    let needed = QUERIES_A_CONTEXT * (CONTEXTS_MIN as f64 + 1.0);
    format!(
        "runs of {} queries are too short to distinguish a leak from what the server keeps until it drops LLVM's memory, every 100 queries; {} are enough (--scale quick)",
        figure(queries),
        figure(needed)
    )
}

/// Runs that are too short, and servers that grow although they have the fix.
pub(super) fn remarks(runs: &[&RunResult]) -> Vec<String> {
    let mut words = Vec::new();
    let short = runs.iter().find(|run| Leak::of(run) == Leak::TooShort);
    words.extend(short.map(|run| too_short(queries(run))));
    let grows = |run: &&&RunResult| Leak::of(run) == Leak::Shown && has_the_fix(version(run));
    words.extend(runs.iter().find(grows).map(|run| {
        format!(
            "PostgreSQL {} has the fix of 2024Q1 and goes on growing all the same, which is another leak than the published one: {}",
            version(run),
            held(run)
        )
    }));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Cell, Outcome};

    /// Readings after every ten queries, in kB.
    fn points(kilobytes: impl Fn(f64) -> f64, queries: u32) -> Vec<[f64; 2]> {
        let readings = 0..=queries / QUERIES_A_READING;
        let at = |reading: u32| f64::from(reading * QUERIES_A_READING);
        readings
            .map(|reading| [at(reading), kilobytes(at(reading)) * 1024.0])
            .collect()
    }

    /// 80 kB a query for ever, as published of 15.5.
    fn unfixed(queries: f64) -> f64 {
        70_000.0 + 80.0 * queries
    }

    /// The same within a hundred queries; then most of it is dropped, and a little stays.
    fn fixed(queries: f64) -> f64 {
        70_000.0 + 80.0 * queries.min(100.0) + 8.0 * (queries - 100.0).max(0.0) + queries % 100.0
    }

    fn run(version: &str, points: &[[f64; 2]]) -> RunResult {
        let slope = kb_per_1000(points).map(|slope| ("private_kb_per_1000".to_owned(), slope));
        let kept = ("private_kb_first_100".to_owned(), kb_first_hundred(points));
        RunResult {
            cell: Cell {
                id: "b01-jit-on".to_owned(),
                arm: "jit-on".to_owned(),
                point: Default::default(),
                block: 1,
                repeat: 0,
                is_control: false,
            },
            outcome: Outcome::Done,
            metrics: std::iter::once(kept).chain(slope).collect(),
            series: [("private_bytes".to_owned(), points.to_vec())].into(),
            environment: [("server_version".to_owned(), version.to_owned())].into(),
            overlaps: Vec::new(),
            files: Vec::new(),
            started: 0,
            elapsed_s: 1.0,
        }
    }

    fn said(version: &str, points: &[[f64; 2]]) -> Option<(DecisionWord, String)> {
        let run = run(version, points);
        withheld(&[&run]).map(|withheld| (withheld.word, withheld.why))
    }

    #[test]
    fn the_leak_of_15_5_is_told_from_what_15_6_keeps() {
        let leaks = kb_per_1000(&points(unfixed, 400)).expect("long enough");
        assert_eq!(leaks.round(), 80_000.0);
        assert_eq!(said("15.5", &points(unfixed, 400)), None);
        let (word, why) = said("15.6", &points(fixed, 400)).expect("no advice");
        assert_eq!(word, DecisionWord::Equivalent);
        assert!(why.starts_with("PostgreSQL 15.6 has the fix"), "{why}");
        assert!(why.contains("each further 100 add 8"), "{why}");
    }

    #[test]
    fn a_run_within_one_context_gives_no_slope_and_no_advice() {
        let short = points(unfixed, 120);
        assert_eq!(kb_per_1000(&short), None);
        let (word, why) = said("15.5", &short).expect("no advice");
        assert_eq!(word, DecisionWord::Undecided);
        assert!(
            why.starts_with("runs of 120 queries are too short"),
            "{why}"
        );
        let run = run("15.5", &short);
        assert_eq!(remarks(&[&run]).len(), 1);
    }

    #[test]
    fn a_session_that_compiles_nothing_keeps_and_adds_nothing() {
        let idle = points(|queries| 4_924.0 + queries / 50.0, 400);
        let (word, why) = said("15.5", &idle).expect("no advice");
        assert_eq!(word, DecisionWord::Undecided);
        assert!(why.contains("does not show here"), "{why}");
    }

    #[test]
    fn growth_on_a_server_with_the_fix_is_another_leak() {
        let run = run("17.2", &points(unfixed, 400));
        assert_eq!(withheld(&[&run]), None);
        let words = remarks(&[&run]);
        assert!(words[0].contains("another leak"), "{words:?}");
    }

    #[test]
    fn the_fix_came_to_all_majors_with_the_releases_of_2024q1() {
        let has = [
            "12.18", "13.14", "14.11", "15.6", "15.18", "16.2", "17.0", "18.6",
        ];
        assert!(has.iter().all(|version| has_the_fix(version)));
        let lacks = ["12.17", "13.13", "14.10", "15.5", "16.1", "unknown"];
        assert!(!lacks.iter().any(|version| has_the_fix(version)));
    }

    /// Read off 15.18 of Debian, which has the fix: the session keeps 10 MB of the first hundred
    /// queries and then hardly grows.
    #[test]
    fn a_real_session_of_15_18_does_not_leak() {
        let kilobytes = [
            73_780, 79_380, 80_700, 81_640, 83_168, 84_032, 84_908, 85_828, 88_772, 88_860, 89_704,
            87_664, 87_664, 87_664, 87_664, 87_664, 87_664, 87_664, 89_328, 89_328, 89_676, 89_880,
            89_880, 89_880, 89_880, 89_880, 89_880, 89_880, 89_880, 89_880, 89_880, 89_880, 89_880,
            89_880, 89_880, 89_880, 89_880, 89_880, 89_880, 89_880, 89_880, 89_880, 89_880, 89_880,
            89_880, 89_880, 89_880, 89_880, 89_880, 91_148, 91_148, 91_148, 91_148, 91_148, 91_148,
            91_148, 91_148, 91_148, 91_148, 91_148, 91_148_u32,
        ];
        let at = |reading: u32| reading * QUERIES_A_READING;
        let points: Vec<[f64; 2]> = (0..)
            .zip(kilobytes)
            .map(|(reading, kilobytes)| [f64::from(at(reading)), f64::from(kilobytes) * 1024.0])
            .collect();
        let (word, why) = said("15.18", &points).expect("no advice");
        assert_eq!(word, DecisionWord::Equivalent, "{why}");
    }
}
