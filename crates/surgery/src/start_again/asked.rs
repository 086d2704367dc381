//! Transactions whose status is lost, of which rows are asked.

use pgclinic_format::Xid;

/// Runs of transactions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Asked {
    /// Half-open, in order, none touching the next: a gap may be of thousands of pages, and each
    /// row asks.
    runs: Vec<[u64; 2]>,
}

impl Asked {
    /// Runs by their first number and their length.
    pub(super) fn of(runs: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let runs = runs.into_iter();
        let mut all: Vec<[u64; 2]> = runs
            .map(|(first, count)| [first.into(), u64::from(first) + u64::from(count)])
            .collect();
        all.sort_unstable();
        let mut asked = Asked::default();
        for [start, end] in all {
            match asked.runs.last_mut() {
                Some(last) if start <= last[1] => last[1] = last[1].max(end),
                _ => asked.runs.push([start, end]),
            }
        }
        asked
    }

    pub(super) fn has(&self, xid: Xid) -> bool {
        let number = u64::from(xid.0);
        let after = self.runs.partition_point(|[start, _]| *start <= number);
        let run = after.checked_sub(1).and_then(|at| self.runs.get(at));
        xid.is_normal() && run.is_some_and(|[_, end]| number < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::Asked;
    use pgclinic_format::Xid;

    #[test]
    fn runs_that_touch_are_one_and_the_numbers_between_others_are_not_asked_of() {
        let asked = Asked::of([(300, 100), (100, 100), (200, 50), (u32::MAX, 1), (0, 10)]);
        assert_eq!(asked.runs.len(), 4);
        let has = |xid: u32| asked.has(Xid(xid));
        assert!(has(3) && has(100) && has(249) && has(399) && has(u32::MAX));
        assert!(!has(2) && !has(10) && !has(250) && !has(299) && !has(400));
        assert!(!Asked::default().has(Xid(7)));
    }
}
