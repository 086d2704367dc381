//! Verdicts on made-up values, word for word.

use pgclinic_model::document::Side;

use super::*;
use crate::statistics::noise::Origin;

fn side(arm: &str) -> Side {
    Side {
        arm: arm.into(),
        ..Side::default()
    }
}

fn prefetch() -> Comparison {
    Comparison {
        metric: "wall time".into(),
        baseline: side("10"),
        candidate: side("50"),
        action: "raise maintenance_io_concurrency from 10 to 50".into(),
        voice: CardTone::Choice,
        subject: "ANALYZE".into(),
        conditions: " on this disk, cold".into(),
        apply: vec!["ALTER SYSTEM SET maintenance_io_concurrency = 50;".into()],
    }
}

fn metric(unit: &str, better: Better, timing: bool) -> MetricSummary {
    MetricSummary {
        name: "m".into(),
        words: String::new(),
        unit: unit.into(),
        better,
        timing,
    }
}

/// Blocks from 1.
fn blocks(values: &[f64]) -> Vec<(u32, f64)> {
    (1..).zip(values.iter().copied()).collect()
}

fn ask(metric: &MetricSummary, baseline: &[f64], candidate: &[f64]) -> DecisionCard {
    decide(&Question {
        metric,
        comparison: &prefetch(),
        baseline: blocks(baseline),
        candidate: blocks(candidate),
        controls: Vec::new(),
        noise: Noise::of(
            vec![0.01, -0.012, 0.011, 0.009, -0.013, 0.012],
            Origin::Here,
        ),
        blocks: 6,
        spending: Spending::Late,
        are_paired: true,
        alpha: 0.025,
        margin: 0.02,
        minutes_a_block: 2.0,
    })
}

const SIX: [f64; 6] = [5.7, 5.9, 5.8, 6.2, 5.6, 5.8];

#[test]
fn a_clear_difference_is_said_with_its_interval_and_the_setting() {
    let card = ask(
        &metric("s", Better::Lower, true),
        &SIX,
        &[3.3, 3.5, 3.4, 3.7, 3.3, 3.4],
    );
    assert_eq!(card.word, DecisionWord::Better);
    assert_eq!(
        card.headline,
        "raise maintenance_io_concurrency from 10 to 50: ANALYZE 1.70 times faster [1.68, 1.72] on this disk, cold"
    );
    assert_eq!(
        card.apply,
        ["ALTER SYSTEM SET maintenance_io_concurrency = 50;"]
    );
    assert_eq!(
        card.basis,
        "ratios inside 6 blocks, mean by Student, its spread from them and 6 control pairs together; \
         errs in 2.5 % of cases at most, shared by looks after 3, 5, 6 blocks; \
         the median by bootstrap: 1.70 times faster [1.68, 1.73] in 9 of 10 cases"
    );
}

#[test]
fn the_wrong_way_round_is_worse_and_nothing_is_applied() {
    let card = ask(
        &metric("tps", Better::Higher, true),
        &SIX,
        &[3.3, 3.5, 3.4, 3.7, 3.3, 3.4],
    );
    assert_eq!(card.word, DecisionWord::Worse);
    assert!(
        card.headline.starts_with("do not raise"),
        "{}",
        card.headline
    );
    assert!(
        card.headline.contains("1.70 times slower"),
        "{}",
        card.headline
    );
    assert!(card.apply.is_empty());
}

#[test]
fn within_the_margin_is_equivalent() {
    let twelve: Vec<f64> = SIX.iter().chain(&SIX).copied().collect();
    let close: Vec<f64> = twelve.iter().map(|value| value * 1.001).collect();
    let card = decide(&Question {
        blocks: 12,
        ..question(&metric("s", Better::Lower, true), &twelve, &close)
    });
    assert_eq!(card.word, DecisionWord::Equivalent);
    assert_eq!(
        card.headline,
        "no need to raise maintenance_io_concurrency from 10 to 50: \
         ANALYZE the same within 2 % on this disk, cold"
    );
}

#[test]
fn a_price_is_told_and_is_no_advice_against_what_has_it() {
    let wal = metric("bytes", Better::Lower, false);
    let checksums = Comparison {
        action: "data checksums".into(),
        voice: CardTone::Price,
        subject: "WAL a transaction".into(),
        conditions: " (data-in buffers)".into(),
        apply: vec!["pg_checksums --enable".into()],
        ..prefetch()
    };
    let ask = |candidate: f64| {
        let mut question = question(&wal, &[100.0, 100.0], &[candidate, candidate]);
        question.comparison = &checksums;
        decide(&question)
    };
    let dear = ask(150.0);
    assert_eq!(dear.word, DecisionWord::Worse);
    assert_eq!(
        dear.headline,
        "the price of data checksums: WAL a transaction 1.5 times larger (data-in buffers)"
    );
    assert!(dear.apply.is_empty());
    let free = ask(100.0);
    assert_eq!(
        free.headline,
        "no price of data checksums that matters: WAL a transaction the same (data-in buffers)"
    );
    assert_eq!(free.apply, ["pg_checksums --enable"]);
}

fn question<'a>(metric: &'a MetricSummary, baseline: &[f64], candidate: &[f64]) -> Question<'a> {
    static COMPARISON: std::sync::LazyLock<Comparison> = std::sync::LazyLock::new(prefetch);
    Question {
        metric,
        comparison: &COMPARISON,
        baseline: blocks(baseline),
        candidate: blocks(candidate),
        controls: Vec::new(),
        noise: None,
        blocks: 6,
        spending: Spending::Early,
        are_paired: true,
        alpha: 0.05,
        margin: 0.02,
        minutes_a_block: 2.0,
    }
}

#[test]
fn noise_stays_undecided_and_says_what_it_takes() {
    let card = ask(
        &metric("s", Better::Lower, true),
        &[5.0, 6.0, 5.5, 5.2, 6.1, 5.0],
        &[5.6, 5.0, 5.6, 5.9, 4.9, 5.7],
    );
    assert_eq!(card.word, DecisionWord::Undecided);
    assert!(
        card.headline
            .starts_with("whether to raise maintenance_io_concurrency from 10 to 50 is open: "),
        "{}",
        card.headline
    );
    assert!(
        card.headline.contains("slower and") && card.headline.ends_with("may tell"),
        "{}",
        card.headline
    );
    assert!(card.more_minutes.is_some_and(|minutes| minutes > 10.0));
}

#[test]
fn runs_that_say_nothing_are_told_by_their_values() {
    let seconds = metric("s", Better::Lower, true);
    let card = decide(&Question {
        blocks: 2,
        ..question(&seconds, &[5.0, 6.0], &[3.0, 9.5])
    });
    assert_eq!(card.word, DecisionWord::Undecided);
    assert!(
        card.headline.contains(
            "is open: ANALYZE 5 to 6 s now, 3 to 9.5 s instead on this disk, cold: too far apart, or too few runs, to tell"
        ),
        "{}",
        card.headline
    );
}

#[test]
fn dead_rows_are_counted_and_need_no_six_blocks() {
    let bytes = metric("bytes", Better::Lower, false);
    let card = ask(&bytes, &[1_080_000.0, 1_080_000.0], &[0.0, 0.0]);
    assert_eq!(card.word, DecisionWord::Better);
    assert!(
        card.headline
            .ends_with("ANALYZE none instead of 1,080,000 bytes on this disk, cold")
    );
    assert_eq!(
        card.basis,
        "counted: runs of the same side differ by 0 bytes at most"
    );
    let card = ask(&bytes, &[7.0, 7.0], &[7.0, 7.0]);
    assert_eq!(card.word, DecisionWord::Equivalent);
    assert!(
        card.headline.contains("ANALYZE the same on this disk"),
        "{}",
        card.headline
    );
}

#[test]
fn nothing_measured_is_no_zero() {
    let card = ask(&metric("s", Better::Lower, true), &SIX, &[]);
    assert_eq!((card.word, card.effect), (DecisionWord::Undecided, None));
    assert!(
        card.headline.contains("50 has no run with a result"),
        "{}",
        card.headline
    );
}

#[test]
fn times_that_are_zero_everywhere_are_the_same() {
    let card = ask(&metric("s", Better::Lower, true), &[0.0; 6], &[0.0; 6]);
    assert_eq!(card.word, DecisionWord::Equivalent);
    assert_eq!(card.more_minutes, None);
    assert_eq!(card.basis, "counted: every run gave the same");
}

/// Where one side has values of zero there is no ratio: differences are judged, and no margin fits
/// them.
#[test]
fn times_some_of_which_are_zero_are_judged_by_their_differences() {
    let lower = metric("s", Better::Lower, true);
    let card = ask(
        &lower,
        &[0.0, 0.2, 0.0, 0.1, 0.0, 0.1],
        &[0.1, 0.0, 0.0, 0.2, 0.1, 0.1],
    );
    assert_eq!(card.word, DecisionWord::Undecided);
    assert!(
        card.basis.starts_with("differences inside 6 blocks"),
        "{}",
        card.basis
    );
    assert!(!card.basis.contains("bootstrap"), "{}", card.basis);

    let clear = ask(&lower, &[1.0, 1.1, 1.0, 1.2, 1.0, 1.1], &[0.0; 6]);
    assert_eq!(clear.word, DecisionWord::Better, "{}", clear.basis);
}

#[test]
fn before_the_first_look_nothing_is_said() {
    let card = ask(&metric("s", Better::Lower, true), &SIX[..2], &[1.0, 1.1]);
    assert_eq!(card.word, DecisionWord::Undecided);
    assert!(
        card.basis.contains("the first look is after 3"),
        "{}",
        card.basis
    );
    assert_eq!(card.more_minutes, Some(2.0));
}

#[test]
fn sides_without_blocks_in_common_are_compared_all_with_all() {
    let metric = metric("s", Better::Lower, true);
    let card = decide(&Question {
        are_paired: false,
        ..question(&metric, &SIX, &[3.3, 3.5, 3.4, 3.7, 3.3, 3.4])
    });
    assert_eq!(card.word, DecisionWord::Better);
    assert!(
        card.basis
            .starts_with("runs: 6 against 6, measured at different times"),
        "{}",
        card.basis
    );
}
