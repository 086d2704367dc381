//! How the leaves of a B-tree lie in its file, by `bt_page_stats` of pageinspect, which every major
//! has (`bt_multi_page_stats`, which the article uses, came with 16).

use pgclinic_servers::Session;

use crate::error::{Error, Result};

/// Leaves, the blocks from the first to the last, and leaves whose next one is the next block.
const SQL: &str = "SELECT count(*), max(blkno) - min(blkno) + 1, \
    count(*) FILTER (WHERE btpo_next = blkno + 1), count(*) FILTER (WHERE btpo_next <> 0) \
    FROM generate_series(1, pg_relation_size('%INDEX%') / current_setting('block_size')::bigint - 1) AS block, \
    LATERAL bt_page_stats('%INDEX%', block::integer) WHERE type = 'l'";

/// Counts over the leaves of one index.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Leaves {
    leaves: f64,
    span: f64,
    contiguous: f64,
    with_a_next: f64,
}

impl Leaves {
    /// Leaves, of the blocks from the first of them to the last; no number where nothing is known.
    pub(super) fn span_density(self) -> f64 {
        self.leaves / self.span
    }

    /// In percent of the leaves that have a next one.
    pub(super) fn contiguous_percent(self) -> f64 {
        100.0 * self.contiguous / self.with_a_next
    }
}

/// Asks for the leaves of an index.
///
/// # Errors
/// When the session may not use pageinspect, which belongs to superusers.
pub(super) fn of(session: &mut Session, index: &str) -> Result<Leaves> {
    let asked = || Error::sql("looking at the leaves");
    session
        .execute("CREATE EXTENSION IF NOT EXISTS pageinspect")
        .map_err(asked())?;
    let rows = session
        .query(&SQL.replace("%INDEX%", index))
        .map_err(asked())?;
    let mut numbers = rows.into_iter().flatten();
    let numbers: Vec<f64> = numbers
        .by_ref()
        .filter_map(|text| text?.parse().ok())
        .collect();
    let [leaves, span, contiguous, with_a_next] = numbers.as_slice() else {
        return Err(Error::Empty(format!("{index} has no leaves")));
    };
    Ok(Leaves {
        leaves: *leaves,
        span: *span,
        contiguous: *contiguous,
        with_a_next: *with_a_next,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the article on UUIDs, out of its own counts.
    #[test]
    fn published_counts_give_the_published_density_by_span() {
        let v4 = Leaves {
            leaves: 4_861.0,
            span: 4_885.0,
            contiguous: 0.0,
            with_a_next: 4_860.0,
        };
        assert_eq!((v4.span_density() * 1e3).round(), 995.0);
        assert_eq!(v4.contiguous_percent(), 0.0);
        assert!(Leaves::default().span_density().is_nan());
    }
}
