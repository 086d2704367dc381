//! What decides how a salvage ended.

use super::{CountAccount, Outcome, SalvageReport, TableAccount};

/// What speaks against a whole salvage.
#[derive(Clone, Copy, Default, Debug)]
struct Evidence {
    /// Rows, values or pages of tables are lost or doubtful, or a table's file is missing though
    /// nobody stopped the run.
    tables: bool,
    /// Large objects, catalogs or databases are lost, or sequences doubtful.
    beside_tables: bool,
    /// Keys do not hold, or rows are not as many as an index leads to.
    keys: bool,
    /// The rows are of different moments, so that keys tell nothing for sure.
    moments: bool,
    /// Something could not be looked at, and its reason does not lie in its nature.
    gaps: bool,
    /// Somebody stopped the run.
    interrupted: bool,
}

impl Evidence {
    fn of(account: &SalvageReport) -> Self {
        let is_missing = |table: &TableAccount| table.file.is_none() && !account.interrupted;
        let is_out_of_reach = account.tables.iter().any(|table| table.out_of_reach)
            || account.large_objects.iter().any(|file| file.out_of_reach);
        let is_hurt = |table: &TableAccount| {
            let is_settled = !table.unsettled && !table.out_of_reach;
            table.is_hurt() || (is_settled && is_missing(table))
        };
        let mut objects = account.large_objects.iter();
        let objects_lost = objects.any(|file| !file.places.is_empty() && !file.out_of_reach);
        let differs = |count: &CountAccount| count.missing() + count.unknown() > 0;
        Evidence {
            tables: account.tables.iter().any(is_hurt),
            beside_tables: objects_lost
                || !account.lost_databases.is_empty()
                || !account.lost_catalogs.is_empty()
                || account.sequences.iter().any(|one| one.doubt.is_some()),
            keys: account.checks.iter().any(|check| check.broken > 0)
                || account.counts.iter().any(differs),
            moments: account.source.is_some(),
            gaps: is_out_of_reach || account.not_salvaged.iter().any(|reason| !reason.inherent),
            interrupted: account.interrupted,
        }
    }

    fn outcome(self) -> Outcome {
        let keys_break = self.keys && !self.moments;
        if self.tables || self.beside_tables || keys_break {
            Outcome::Damaged
        } else if self.gaps || self.interrupted || self.keys {
            Outcome::Incomplete
        } else {
            Outcome::Whole
        }
    }
}

/// Whole only when nothing at all speaks against it.
pub(super) fn outcome_of(account: &SalvageReport) -> Outcome {
    Evidence::of(account).outcome()
}

#[cfg(test)]
mod tests {
    use super::Outcome::{Damaged, Incomplete, Whole};
    use super::*;

    #[test]
    fn whole_is_what_nothing_speaks_against() {
        // tables, beside tables, keys, moments, gaps, interrupted
        let cases = [
            ([0, 0, 0, 0, 0, 0], Whole),
            ([1, 0, 0, 0, 0, 0], Damaged),
            ([0, 1, 0, 0, 0, 0], Damaged),
            ([0, 0, 1, 0, 0, 0], Damaged),
            ([0, 0, 0, 1, 0, 0], Whole),
            ([0, 0, 0, 0, 1, 0], Incomplete),
            ([0, 0, 0, 0, 0, 1], Incomplete),
            // Damage stays damage whatever else was not seen.
            ([1, 0, 0, 0, 1, 1], Damaged),
            ([0, 1, 0, 1, 1, 0], Damaged),
            // Beside a running server a key alone proves nothing.
            ([0, 0, 1, 1, 0, 0], Incomplete),
            ([1, 0, 1, 1, 0, 0], Damaged),
        ];
        for (bits, expected) in cases {
            let [tables, beside_tables, keys, moments, gaps, interrupted] =
                bits.map(|bit| bit == 1);
            let evidence = Evidence {
                tables,
                beside_tables,
                keys,
                moments,
                gaps,
                interrupted,
            };
            assert_eq!(evidence.outcome(), expected, "{evidence:?}");
        }
    }
}
