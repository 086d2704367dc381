//! An estimate and what it may as well be.

/// From `low` to `high`, both inside.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end, not below `low`.
    pub high: f64,
}

impl Interval {
    /// The interval between two numbers, in whatever order.
    pub fn between(one: f64, other: f64) -> Self {
        Interval {
            low: one.min(other),
            high: one.max(other),
        }
    }

    /// The number is inside.
    pub fn contains(self, number: f64) -> bool {
        self.low <= number && number <= self.high
    }

    /// All of it lies in the other one.
    pub fn is_within(self, other: Interval) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// What both hold; `None` when they do not touch.
    pub fn and(self, other: Interval) -> Option<Interval> {
        let both = Interval {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        };
        (both.low <= both.high).then_some(both)
    }

    /// Both ends through a rising or falling function.
    pub fn map(self, function: impl Fn(f64) -> f64) -> Interval {
        Interval::between(function(self.low), function(self.high))
    }
}

/// The most likely value and its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Most likely.
    pub value: f64,
    /// May as well be.
    pub interval: Interval,
}

impl Estimate {
    /// Value and interval through a rising or falling function.
    pub fn map(self, function: impl Fn(f64) -> f64) -> Estimate {
        Estimate {
            value: function(self.value),
            interval: self.interval.map(function),
        }
    }
}
