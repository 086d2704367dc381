//! What was published as a bound instead of a figure: data checksums usually cost under 2 %.

use pgclinic_model::document::{Better, DecisionCard, MetricSummary, PublishedAnswer};

use crate::decision::words;

/// A rule of thumb.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Bound {
    experiment: &'static str,
    metric: &'static str,
    /// The candidate is worse by no more than this share.
    share: f64,
    /// The rule, and what makes our load another one than it speaks of.
    words: &'static str,
    source: &'static str,
}

const CHECKSUMS: Bound = Bound {
    experiment: "checksum-cost",
    metric: "tps",
    share: 0.02,
    words: "published: usually under 2 % for normal loads, while this load is the worst case",
    source: "credativ, article on data checksums in PostgreSQL 18, 2025; it names no machine",
};

static BOUNDS: [Bound; 2] = [
    CHECKSUMS,
    Bound {
        metric: "cpu_us",
        ..CHECKSUMS
    },
];

/// The bound of a metric.
pub(super) fn of(experiment: &str, metric: &str) -> Option<&'static Bound> {
    let fits = |bound: &&Bound| bound.experiment == experiment && bound.metric == metric;
    BOUNDS.iter().find(fits)
}

/// Whether the cost that a card found lies within the bound.
pub(super) fn answer(
    bound: &Bound,
    metric: &MetricSummary,
    card: &DecisionCard,
) -> Option<PublishedAnswer> {
    let effect = card.effect.as_ref()?;
    // Times better of what is worse by a share, whichever end is wanted.
    let limit = match metric.better {
        Better::Lower => 1.0 / (1.0 + bound.share),
        Better::Higher => 1.0 - bound.share,
    };
    let (word, begin) = match effect.times_interval {
        Some([low, _]) if low >= limit => ("same", "the cost stays within the published bound"),
        Some([_, high]) if high < limit => ("stronger", "the cost is beyond the published bound"),
        _ => (
            "unknown",
            "whether the cost stays within the published bound is open",
        ),
    };
    let here = effect.times.map(|times| {
        let comparatives = words::comparatives(metric);
        format!("; here {}", words::difference(times, None, comparatives))
    });
    Some(PublishedAnswer {
        word: word.to_owned(),
        sentence: format!("{begin}: {}{}", bound.words, here.unwrap_or_default()),
        source: bound.source.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use pgclinic_model::document::{DecisionWord, Effect};

    use super::*;

    fn said(times: f64, interval: [f64; 2]) -> PublishedAnswer {
        let metric = MetricSummary {
            name: "tps".into(),
            words: String::new(),
            unit: "1/s".into(),
            better: Better::Higher,
            timing: true,
        };
        let card = DecisionCard {
            word: DecisionWord::Worse,
            headline: String::new(),
            metric: "tps".into(),
            baseline: Default::default(),
            candidate: Default::default(),
            effect: Some(Effect {
                times: Some(times),
                times_interval: Some(interval),
                baseline: 1.0,
                candidate: times,
                confidence: Some(0.95),
            }),
            basis: String::new(),
            apply: Vec::new(),
            more_minutes: None,
            published: None,
            runs: Vec::new(),
        };
        answer(&CHECKSUMS, &metric, &card).expect("it is published")
    }

    /// The article on checksums: "usually less than 2 % for normal workloads".
    #[test]
    fn the_published_two_percent_stand_against_the_cost_of_checksums() {
        assert_eq!(said(0.99, [0.985, 0.995]).word, "same");
        let beyond = said(0.95, [0.93, 0.97]);
        assert_eq!(beyond.word, "stronger");
        assert_eq!(
            beyond.sentence,
            "the cost is beyond the published bound: published: usually under 2 % for normal loads, while this load is the worst case; here 5.3 % slower"
        );
        assert_eq!(said(0.98, [0.95, 1.01]).word, "unknown");
        assert_eq!(of("checksum-cost", "wal_bytes"), None);
    }
}
