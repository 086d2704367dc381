//! Whether this machine shows what was published.

use pgclinic_model::document::{DecisionCard, DecisionWord, MetricSummary, PublishedAnswer, Side};

use super::{Series, bound, of};
use crate::decision::{times_better, words};

/// Effects this close are called the same, whatever the interval: machines differ.
const ALIKE: f64 = 1.25;

/// What was published about the two sides of a card, held against it. `None` where nothing was.
pub fn answer(
    experiment: &str,
    metric: &MetricSummary,
    card: &DecisionCard,
) -> Option<PublishedAnswer> {
    if let Some(bound) = bound::of(experiment, &metric.name) {
        return bound::answer(bound, metric, card);
    }
    let (place, baseline, source) = value(experiment, metric, &card.baseline)?;
    let (_, candidate, _) = value(experiment, metric, &card.candidate)?;
    let published = Published {
        baseline,
        candidate,
        times: times_better(metric.better, baseline, candidate),
        elsewhere: elsewhere(source, place, &card.baseline),
    };
    let word = word(&published, metric, card);
    Some(PublishedAnswer {
        word: word.to_owned(),
        sentence: sentence(word, &published, metric, card),
        source: source.source.words(),
    })
}

struct Published {
    baseline: f64,
    candidate: f64,
    times: Option<f64>,
    /// The place that it was published of, where that is another one.
    elsewhere: Option<String>,
}

/// `rows 1,000,000`, where the side is at other rows.
fn elsewhere(series: &Series, place: &str, side: &Side) -> Option<String> {
    let own = side.point.get(series.axis)?;
    let differs = !super::is_same(own, place);
    let number = place.parse().map_or(place.to_owned(), words::figure);
    differs.then(|| format!("{} {number}", series.axis))
}

/// The value of a side with the place it was published of: along an axis of the side, or without
/// one.
fn value(
    experiment: &str,
    metric: &MetricSummary,
    side: &Side,
) -> Option<(&'static str, f64, &'static Series)> {
    let along = side
        .point
        .iter()
        .map(|(axis, at)| (axis.as_str(), at.as_str()));
    along.chain([("", "")]).find_map(|(axis, at)| {
        let mut series = of(experiment, &metric.name, axis)
            .filter(|series| series.arm == side.arm && series.fits(&side.point));
        series.find_map(|series| {
            let (place, value) = series.near(at)?;
            Some((place, value, series))
        })
    })
}

fn word(published: &Published, metric: &MetricSummary, card: &DecisionCard) -> &'static str {
    let gained = match metric.better {
        pgclinic_model::document::Better::Lower => published.baseline - published.candidate,
        pgclinic_model::document::Better::Higher => published.candidate - published.baseline,
    };
    let is_even = published
        .times
        .is_some_and(|times| (1.0 / 1.05..=1.05).contains(&times))
        || gained == 0.0;
    match card.word {
        DecisionWord::Undecided => "unknown",
        DecisionWord::Equivalent if is_even => "same",
        DecisionWord::Equivalent => "absent",
        DecisionWord::Better | DecisionWord::Worse if is_even => "stronger",
        DecisionWord::Better if gained < 0.0 => "opposite",
        DecisionWord::Worse if gained > 0.0 => "opposite",
        DecisionWord::Better | DecisionWord::Worse => strength(published, card),
    }
}

fn strength(published: &Published, card: &DecisionCard) -> &'static str {
    let effect = card.effect.as_ref();
    let Some((there, here)) = published.times.zip(effect.and_then(|effect| effect.times)) else {
        return "same";
    };
    let (there, size) = (there.ln().abs(), here.ln().abs());
    let interval = effect.and_then(|effect| effect.times_interval);
    let inside = interval.is_some_and(|[low, high]| {
        let ends = [low.ln().abs(), high.ln().abs()];
        ends[0].min(ends[1]) <= there && there <= ends[0].max(ends[1])
    });
    match there - size {
        _ if inside => "same",
        gap if gap.abs() <= ALIKE.ln() => "same",
        gap if gap > 0.0 => "weaker",
        _ => "stronger",
    }
}

fn sentence(
    word: &str,
    published: &Published,
    metric: &MetricSummary,
    card: &DecisionCard,
) -> String {
    let (who, shows) = witness(metric);
    let begin = match word {
        "same" => format!("{who} {shows} the same effect"),
        "weaker" => format!("{who} {shows} the effect, weaker"),
        "stronger" => format!("{who} {shows} the effect, stronger"),
        "opposite" => format!("{who} {shows} the opposite"),
        "absent" if metric.timing => format!("{who} does not show the effect"),
        "absent" => format!("{who} do not show the effect"),
        _ => format!("whether {who} {shows} the effect is open"),
    };
    let comparatives = words::comparatives(metric);
    let there = match published.times {
        Some(times) if (times - 1.0).abs() < 0.005 => "no difference".to_owned(),
        Some(times) => words::difference(times, None, comparatives),
        None => both(published.baseline, published.candidate, &metric.unit),
    };
    let here = card.effect.as_ref().map(|effect| match effect.times {
        Some(times) if (times - 1.0).abs() < 0.005 => "no difference".to_owned(),
        Some(times) => words::difference(times, None, comparatives),
        None => both(effect.baseline, effect.candidate, &metric.unit),
    });
    let of = published.elsewhere.as_ref();
    let of = of.map_or(String::new(), |place| format!(" (of {place})"));
    match here {
        Some(here) => format!("{begin}: published {there}{of}, here {here}"),
        None => format!("{begin}: published {there}{of}"),
    }
}

/// A rate is the machine's; what is counted is that of the data and the program.
fn witness(metric: &MetricSummary) -> (&'static str, &'static str) {
    if metric.timing {
        ("this machine", "shows")
    } else {
        ("these data", "show")
    }
}

fn both(baseline: f64, candidate: f64, unit: &str) -> String {
    let (was, now) = (words::value(baseline, unit), words::value(candidate, unit));
    format!("{now} instead of {was}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pgclinic_model::document::{Better, Effect};

    use super::*;

    fn side(place: &str) -> Side {
        Side {
            arm: "14".into(),
            point: BTreeMap::from([("maintenance_io_concurrency".into(), place.into())]),
        }
    }

    fn card(word: DecisionWord, times: f64) -> DecisionCard {
        DecisionCard {
            word,
            headline: String::new(),
            metric: "analyze_s".into(),
            baseline: side("10"),
            candidate: side("50"),
            effect: Some(Effect {
                times: Some(times),
                times_interval: Some([times * 0.9, times * 1.1]),
                baseline: times,
                candidate: 1.0,
                confidence: Some(0.95),
            }),
            basis: String::new(),
            apply: Vec::new(),
            more_minutes: None,
            published: None,
            runs: Vec::new(),
        }
    }

    fn said(word: DecisionWord, times: f64) -> (String, String) {
        let metric = MetricSummary {
            name: "analyze_s".into(),
            words: String::new(),
            unit: "s".into(),
            better: Better::Lower,
            timing: true,
        };
        let answer = answer("analyze-prefetch", &metric, &card(word, times));
        answer.map_or_else(Default::default, |answer| (answer.word, answer.sentence))
    }

    #[test]
    fn this_machine_is_held_against_the_article() {
        let (word, sentence) = said(DecisionWord::Better, 1.6);
        assert_eq!(word, "same");
        assert_eq!(
            sentence,
            "this machine shows the same effect: published 1.7 times faster, here 1.6 times faster"
        );
        assert_eq!(said(DecisionWord::Better, 6.0).0, "stronger");
        assert_eq!(said(DecisionWord::Worse, 0.5).0, "opposite");
        assert_eq!(said(DecisionWord::Equivalent, 1.0).0, "absent");
        assert_eq!(said(DecisionWord::Undecided, 1.1).0, "unknown");
    }

    fn uuid_card(rows: &str, times: f64) -> DecisionCard {
        let side = |arm: &str| Side {
            arm: arm.into(),
            point: [("rows", rows), ("table", "empty")]
                .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
                .into(),
        };
        DecisionCard {
            metric: "index_bytes_row".into(),
            baseline: side("v4"),
            candidate: side("v7"),
            ..card(DecisionWord::Better, times)
        }
    }

    /// Bytes a row do not depend on the rows, so that the published ones stand beside any number of
    /// them; and of a size the data speak, not the machine.
    #[test]
    fn what_is_free_of_scale_is_held_against_the_article_at_any_scale() {
        let metric = MetricSummary {
            name: "index_bytes_row".into(),
            words: String::new(),
            unit: "bytes".into(),
            better: Better::Lower,
            timing: false,
        };
        let said = |rows: &str| {
            let answer = answer("uuid-keys", &metric, &uuid_card(rows, 1.27));
            answer.expect("it is published").sentence
        };
        assert_eq!(
            said("40000"),
            "these data show the same effect: published 1.3 times smaller (of rows 1,000,000), here 1.3 times smaller"
        );
        assert!(!said("1000000").contains("(of"));
        let timed = MetricSummary {
            name: "insert_s".into(),
            timing: true,
            ..metric
        };
        assert_eq!(answer("uuid-keys", &timed, &uuid_card("40000", 2.0)), None);
    }

    #[test]
    fn nothing_published_is_no_answer() {
        let metric = MetricSummary {
            name: "unheard of".into(),
            words: String::new(),
            unit: String::new(),
            better: Better::Lower,
            timing: true,
        };
        assert_eq!(
            answer(
                "analyze-prefetch",
                &metric,
                &card(DecisionWord::Better, 2.0)
            ),
            None
        );
    }
}
