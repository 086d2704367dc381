//! From places and values to pixels of the plot, whose corner is at the top left.

use super::Height;

/// Numbers that span more than this are spaced by their logarithms.
const LOG_FROM: f64 = 20.0;

/// How places are spaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spacing {
    /// Words: one beside the other, not joined.
    Words,
    /// Numbers that neither scale shows well, such as 0, 1, 5, 500: one beside the other, joined.
    Even,
    /// By value.
    Linear,
    /// By logarithm.
    Log,
}

impl Spacing {
    /// What suits these places.
    pub(super) fn of(places: &[String]) -> Self {
        let numbers: Option<Vec<f64>> = places.iter().map(|place| number(place)).collect();
        let Some(numbers) = numbers.filter(|numbers| numbers.len() > 1) else {
            return Spacing::Words;
        };
        let rises = numbers.is_sorted_by(|own, next| own < next);
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let high = numbers.iter().copied().fold(0.0, f64::max);
        let least = numbers
            .iter()
            .copied()
            .filter(|number| *number > 0.0)
            .fold(f64::INFINITY, f64::min);
        match high / least > LOG_FROM {
            _ if !rises => Spacing::Even,
            true if low > 0.0 => Spacing::Log,
            true => Spacing::Even,
            false => Spacing::Linear,
        }
    }
}

fn number(place: &str) -> Option<f64> {
    place.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The places on the x axis.
pub(super) struct Places {
    at: Vec<f64>,
    /// How they are spaced.
    pub(super) spacing: Spacing,
}

impl Places {
    pub(super) fn new(places: &[String], spacing: Spacing, width: f64) -> Self {
        let numbers = places.iter().enumerate().map(|(index, place)| {
            let number = number(place).unwrap_or_default();
            match spacing {
                Spacing::Words | Spacing::Even => index_as_number(index),
                Spacing::Linear => number,
                Spacing::Log => number.ln(),
            }
        });
        let numbers: Vec<f64> = numbers.collect();
        let first = numbers.first().copied().unwrap_or_default();
        let last = numbers.last().copied().unwrap_or_default();
        let slots = index_as_number(places.len().max(1));
        let margin = match spacing {
            Spacing::Words => width / slots / 2.0,
            _ => (width / slots / 3.0).min(24.0),
        };
        let room = width - 2.0 * margin;
        let span = if last > first { last - first } else { 1.0 };
        let at = |number: &f64| match places.len() {
            1 => width / 2.0,
            _ => margin + (number - first) / span * room,
        };
        Places {
            at: numbers.iter().map(at).collect(),
            spacing,
        }
    }

    /// Pixels from the left; `None` for a place that is not there.
    pub(super) fn at(&self, place: usize) -> Option<f64> {
        self.at.get(place).copied()
    }

    /// Pixels of all places.
    pub(super) fn all(&self) -> &[f64] {
        &self.at
    }
}

fn index_as_number(index: usize) -> f64 {
    f64::from(u32::try_from(index).unwrap_or(u32::MAX))
}

/// The y axis.
pub(super) struct Scale {
    /// Lowest and highest value shown.
    pub(super) values: [f64; 2],
    /// By logarithm.
    pub(super) is_log: bool,
    height: f64,
}

impl Scale {
    pub(super) fn of(height: Height, values: &[f64], pixels: f64) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_log = low > 0.0 && (height == Height::Ratio || high / low > LOG_FROM);
        let values = match height {
            _ if !low.is_finite() => [0.0, 1.0],
            Height::Ratio if is_log => around(low.min(1.0 / 1.02), high.max(1.02)),
            _ if is_log => around(low, high),
            _ => linear(low, high),
        };
        Scale {
            values,
            is_log,
            height: pixels,
        }
    }

    /// Pixels from the top; values that cannot be shown are at the bottom.
    pub(super) fn at(&self, value: f64) -> f64 {
        let [low, high] = self.values.map(|end| self.plain(end));
        let value = self.plain(value);
        let share = if value.is_finite() {
            (value - low) / (high - low)
        } else {
            0.0
        };
        self.height * (1.0 - share)
    }

    fn plain(&self, value: f64) -> f64 {
        if self.is_log { value.ln() } else { value }
    }
}

/// A little room around numbers above zero, on a logarithmic scale.
fn around(low: f64, high: f64) -> [f64; 2] {
    let room = (high / low).max(1.05).powf(0.06);
    [low / room, high * room]
}

/// From zero, unless that would press all values together at the top.
fn linear(low: f64, high: f64) -> [f64; 2] {
    let span = high - low;
    let size = high.abs().max(low.abs());
    if span == 0.0 {
        let room = if size > 0.0 { size } else { 1.0 };
        return [low.min(0.0), high.max(0.0) + room * 0.2];
    }
    if low >= 0.0 && span > 0.2 * size {
        return [0.0, high + span * 0.06];
    }
    [low - span * 0.08, high + span * 0.08]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spacing(places: &[&str]) -> Spacing {
        let places: Vec<String> = places.iter().map(|place| (*place).to_owned()).collect();
        Spacing::of(&places)
    }

    #[test]
    fn places_are_spaced_as_suits_them() {
        assert_eq!(spacing(&["1", "2", "4"]), Spacing::Linear);
        assert_eq!(spacing(&["1", "8", "64", "1536"]), Spacing::Log);
        assert_eq!(spacing(&["0", "1", "5", "500"]), Spacing::Even);
        assert_eq!(spacing(&["pglz", "lz4"]), Spacing::Words);
        assert_eq!(spacing(&["50"]), Spacing::Words);
    }

    #[test]
    fn scales_begin_at_zero_unless_that_hides_everything() {
        let of = |values: &[f64]| Scale::of(Height::ByRange, values, 100.0);
        assert_eq!(of(&[1.0, 3.0]).values[0], 0.0);
        assert!(of(&[100.0, 101.0]).values[0] > 90.0);
        assert!(of(&[1.0, 1000.0]).is_log);
        assert!(!of(&[0.0, 1000.0]).is_log);
        assert_eq!(of(&[]).values, [0.0, 1.0]);
        assert_eq!(of(&[0.0]).at(0.0), 100.0);
    }
}
