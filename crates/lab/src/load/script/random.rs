//! Random numbers of one client: the same seed and client, the same numbers.

/// A generator of its own for each client.
#[derive(Debug, Clone)]
pub(crate) struct Random(fastrand::Rng);

impl Random {
    pub(crate) fn new(seed: u64, client: u32) -> Self {
        // Neighbouring seeds of neighbouring clients must not meet: an odd factor spreads them over
        // 64 bits.
        let spread = u64::from(client).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(fastrand::Rng::with_seed(seed ^ spread))
    }

    /// A whole number, both bounds included; `low` must not be above `high`.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.i64(low..=high)
    }

    /// A waiting time of a Poisson process, with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        // 1 - x is in (0, 1], so that the logarithm is finite.
        -(1.0 - self.0.f64()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_differ_and_runs_agree() {
        let first = |client| Random::new(42, client).between(0, i64::MAX);
        assert_ne!(first(0), first(1));
        assert_eq!(first(1), first(1));
    }

    #[test]
    fn waiting_times_have_mean_one() {
        let mut random = Random::new(1, 0);
        let mean = (0..20_000).map(|_| random.exponential()).sum::<f64>() / 20_000.0;
        assert!((0.97..1.03).contains(&mean), "{mean}");
    }
}
