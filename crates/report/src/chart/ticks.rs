//! Round numbers along an axis.

/// About `count` round numbers from `low` to `high`.
pub(super) fn linear([low, high]: [f64; 2], count: usize) -> Vec<f64> {
    let wanted = f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX));
    let rough = (high - low) / wanted;
    if !(rough.is_finite() && rough > 0.0) {
        return Vec::new();
    }
    let magnitude = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * magnitude);
    let step = steps
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let first = (low / step).ceil();
    let ticks = (0..=count * 3).map(|index| {
        let index = f64::from(u32::try_from(index).unwrap_or(u32::MAX));
        (first + index) * step
    });
    ticks
        .take_while(|tick| *tick <= high + step * 1e-9)
        .collect()
}

/// Powers of ten, with what lies between where there is room.
pub(super) fn log([low, high]: [f64; 2], count: usize) -> Vec<f64> {
    let fine: &[f64] = &[
        1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0,
    ];
    let stages: [&[f64]; 4] = [
        fine,
        &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        &[1.0, 2.0, 5.0],
        &[1.0],
    ];
    for stage in stages {
        let ticks = powers(low, high, stage);
        if ticks.len() <= count {
            return if ticks.len() < 2 {
                linear([low, high], count)
            } else {
                ticks
            };
        }
    }
    let decades = powers(low, high, &[1.0]);
    let step = decades.len().div_ceil(count.max(1)).max(1);
    decades.into_iter().step_by(step).collect()
}

fn powers(low: f64, high: f64, factors: &[f64]) -> Vec<f64> {
    if !(low > 0.0 && high.is_finite()) {
        return Vec::new();
    }
    let first = low.log10().floor();
    let decades = (0..700).map(|decade| first + f64::from(decade));
    decades
        .take_while(|decade| 10_f64.powf(*decade) <= high)
        .flat_map(|decade| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powf(decade))
        })
        .filter(|tick| low <= *tick && *tick <= high)
        .collect()
}

/// A tick as short as it can be said: `0.25`, `1,500`, `65k`, `3M`.
pub(super) fn words(tick: f64) -> String {
    let size = tick.abs();
    let (number, suffix) = match size {
        _ if size >= 1e12 => return format!("{tick:.0e}"),
        _ if size >= 1e9 => (tick / 1e9, "G"),
        _ if size >= 1e6 => (tick / 1e6, "M"),
        _ if size >= 1e4 => (tick / 1e3, "k"),
        _ => (tick, ""),
    };
    if number != 0.0 && number.abs() < 1e-4 {
        return format!("{number:.0e}");
    }
    let text = format!("{number:.5}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            linear([0.0, 31.0], 7),
            [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]
        );
        assert_eq!(log([1.0, 1000.0], 4), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(log([0.9, 2.2], 7), [1.0, 1.5, 2.0]);
        assert!(linear([1.0, 1.0], 5).is_empty());
        assert!(log([1e-300, 1e300], 6).len() <= 6);
    }

    #[test]
    fn ticks_are_short() {
        let said = [0.25, 1500.0, 65_000.0, 3e6, 0.0, 1.1].map(words);
        assert_eq!(said, ["0.25", "1500", "65k", "3M", "0", "1.1"]);
    }
}
