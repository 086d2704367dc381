//! Two documents of the same servers, a mark before and a mark after: what each figure grew by
//! between them, whatever happened meanwhile.

use pgclinic_model::document::{SignKind, SignValue, WatchDocument, WatchedSign, WatchedTarget};

/// The later document, with the growth of each figure since the earlier one.
///
/// # Errors
/// They have no server in common.
pub fn grown(before: &WatchDocument, after: WatchDocument) -> Result<WatchDocument, String> {
    let mut document = after;
    let mut common = 0;
    for target in &mut document.targets {
        let old = before
            .targets
            .iter()
            .find(|own| own.target.spec == target.target.spec);
        common += usize::from(old.is_some());
        target_grown(old, target);
    }
    if common == 0 {
        return Err("the two documents have no server in common".to_owned());
    }
    Ok(document)
}

/// Why nothing can be said of all signs of a server.
fn why_nothing(before: Option<&WatchedTarget>, after: &WatchedTarget) -> Option<String> {
    let Some(before) = before else {
        return Some("the first document does not have this server".to_owned());
    };
    let is_other = |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
    if before.unreachable.is_some() {
        return Some("it gave no answer at the first mark".to_owned());
    }
    if is_other(
        &before.target.system_identifier,
        &after.target.system_identifier,
    ) {
        return Some("another cluster answers at this address now".to_owned());
    }
    // Statistics are kept over a restart in order, and are gone after a crash.
    let started = before.server_started_at.zip(after.server_started_at);
    let was_restarted = started.is_some_and(|(a, b)| (a - b).abs() > 1e-3);
    was_restarted.then(|| "the server was restarted between the two marks".to_owned())
}

fn target_grown(before: Option<&WatchedTarget>, after: &mut WatchedTarget) {
    let why = why_nothing(before, after);
    let moments = before
        .and_then(|own| own.complete_at)
        .zip(after.complete_at);
    let seconds = moments
        .map(|(first, last)| last - first)
        .filter(|own| *own > 0.0);
    for sign in &mut after.signs {
        sign.history.clear();
        if sign.kind != SignKind::Counter || sign.not_available.is_some() {
            continue;
        }
        let old = before.and_then(|own| own.signs.iter().find(|own| own.name == sign.name));
        sign.no_rates = match (&why, old) {
            (Some(why), _) => Some(why.clone()),
            (None, Some(old)) => sign_grown(old, sign, seconds),
            (None, None) => Some("the first document does not have it".to_owned()),
        };
        if sign.no_rates.is_some() && sign.values.iter().all(|own| own.growth.is_none()) {
            sign.headline = None;
        }
    }
}

/// Gives a word where statistics were reset between the marks.
fn sign_grown(
    before: &WatchedSign,
    after: &mut WatchedSign,
    seconds: Option<f64>,
) -> Option<String> {
    let mut was_reset = false;
    for value in &mut after.values {
        let old = before.values.iter().find(|own| own.labels == value.labels);
        let is_reset = old.is_some_and(|old| is_reset_between(old, value));
        was_reset |= is_reset;
        let begin = match old {
            Some(old) if !is_reset => old.value,
            // It was not there, or began at 0 again.
            _ => 0.0,
        };
        let growth = value.value - begin;
        value.growth = Some(growth);
        value.per_second = seconds.map(|seconds| growth / seconds);
    }
    let rates: Option<Vec<f64>> = after.values.iter().map(|own| own.per_second).collect();
    after.headline = rates
        .filter(|own| !own.is_empty())
        .map(|own| own.iter().sum());
    was_reset
        .then(|| "statistics were reset between the two marks: growth is since then".to_owned())
}

fn is_reset_between(before: &SignValue, after: &SignValue) -> bool {
    before.reset_at != after.reset_at || after.value < before.value
}

#[cfg(test)]
mod tests {
    use pgclinic_model::document::{SignState, SignUnit, Target, Tool, WATCH_SCHEMA};

    use super::*;

    fn document(value: f64, reset_at: &str, started: f64, complete_at: f64) -> WatchDocument {
        let sign = WatchedSign {
            name: "io-reads".into(),
            family: "io".into(),
            metric: "pgclinic_io_reads_total".into(),
            summary: String::new(),
            kind: SignKind::Counter,
            unit: SignUnit::Count,
            state: SignState::Ok,
            finding: None,
            headline: None,
            not_available: None,
            no_rates: None,
            values: vec![SignValue {
                value,
                reset_at: Some(reset_at.into()),
                ..SignValue::default()
            }],
            values_omitted: 0,
            normal: String::new(),
            meaning: String::new(),
            settled_by: String::new(),
            history: Vec::new(),
        };
        let target = WatchedTarget {
            target: Target {
                spec: "postgres://a".into(),
                ..Target::default()
            },
            server_version: None,
            is_standby: None,
            complete_at: Some(complete_at),
            server_started_at: Some(started),
            sample_s: 0.0,
            unreachable: None,
            state: SignState::Ok,
            signs: vec![sign],
            advice: Vec::new(),
            damaged_pages: Vec::new(),
            damaged_pages_omitted: 0,
            logged: Vec::new(),
        };
        WatchDocument {
            schema: WATCH_SCHEMA.to_owned(),
            tool: Tool::this(),
            interval_s: 1.0,
            targets: vec![target],
            deliveries: Vec::new(),
            elapsed_s: 0.0,
        }
    }

    fn growth(after: WatchDocument) -> (Option<f64>, Option<f64>, String) {
        let before = document(100.0, "monday", 1.0, 1000.0);
        let document = grown(&before, after).expect("a difference");
        let sign = &document.targets[0].signs[0];
        let value = &sign.values[0];
        let why = sign.no_rates.clone().unwrap_or_default();
        (value.growth, value.per_second, why)
    }

    #[test]
    fn growth_is_that_between_the_marks() {
        let (growth_, rate, why) = growth(document(150.0, "monday", 1.0, 1010.0));
        assert_eq!((growth_, rate, why.as_str()), (Some(50.0), Some(5.0), ""));
    }

    #[test]
    fn what_was_reset_at_the_first_mark_begins_at_zero() {
        // The figure is larger than before, and yet it began again.
        let (growth, _, why) = growth(document(150.0, "tuesday", 1.0, 1010.0));
        assert_eq!(growth, Some(150.0));
        assert!(why.contains("since then"), "{why}");
    }

    #[test]
    fn after_a_restart_nothing_is_said() {
        let (growth, _, why) = growth(document(150.0, "monday", 500.0, 1010.0));
        assert_eq!(growth, None);
        assert!(why.contains("restarted"), "{why}");
    }
}
