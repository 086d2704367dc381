//! How old the rows of a table are, in transactions and multixacts, by page: what an
//! anti-wraparound VACUUM will rewrite.
//!
//! Truth: `heap_tuple_should_freeze` in `src/backend/access/heap/heapam.c`; the age is that of
//! `age()` and `mxid_age()`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::heap_tuple::{HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMIN_INVALID};
use pgclinic_format::{HeapTuple, Xid, index_page::AccessMethod};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::sums::{Counts, Highest};
use super::{PageAt, PageMeasure, Sums, Whole, count, number, round_down};

sums! {
    /// Measures the ages of rows by page.
    pub struct RowAges {
        frozen_pages: u64,
        xid: Highest,
        multi: Highest,
        xid_by_page: Counts,
        multi_by_page: Counts,
    }
}

impl PageMeasure for RowAges {
    const SECTION: &'static str = "table";
    const FIGURES: &'static [FigureKind] = &[
        number("frozen_pages", "pages on which nothing is left to freeze"),
        number(
            "xid_age",
            "transactions since the oldest one that a row names",
        ),
        number(
            "multixact_age",
            "multixacts since the oldest one that a row names",
        ),
        number(
            "xid_age_by_page",
            "pages by the age of their oldest transaction",
        ),
        number(
            "multixact_age_by_page",
            "pages by the age of their oldest multixact",
        ),
        number(
            "relfrozenxid_age",
            "transactions since pg_class.relfrozenxid",
        ),
        number("relminmxid_age", "multixacts since pg_class.relminmxid"),
    ];

    fn fits(fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Heap)
    }

    fn add(&mut self, at: &PageAt<'_>) -> bool {
        let Some(look) = at.heap else {
            return true;
        };
        let (xid, multi) = (look.xid_age, look.multixact_age);
        self.frozen_pages += u64::from(xid.is_none() && multi.is_none());
        for (age, highest, by_page) in [
            (xid, &mut self.xid, &mut self.xid_by_page),
            (multi, &mut self.multi, &mut self.multi_by_page),
        ] {
            if let Some(age) = age {
                highest.note(age);
                by_page.note(round_down(age));
            }
        }
        true
    }

    fn figures(&self, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let now = Now::of(whole.fork);
        let relation = whole.fork.relation;
        let of_class = now.zip(relation).map(|(now, relation)| {
            let xid = Some(relation.relfrozenxid).filter(|xid| xid.is_normal());
            let multi = Some(relation.relminmxid.0).filter(|multi| *multi != 0);
            [
                xid.map(|xid| now.xid_age(xid)),
                multi.map(|multi| now.multi_age(multi)),
            ]
        });
        let [frozen, minimum] = of_class.unwrap_or([None, None]);
        vec![
            now.and(count(self.frozen_pages)),
            now.and(count(self.xid.0.unwrap_or(0))),
            now.and(count(self.multi.0.unwrap_or(0))),
            self.xid_by_page.figure(),
            self.multi_by_page.figure(),
            frozen.map(Figure::Count),
            minimum.map(Figure::Count),
        ]
    }
}

/// The numbers that come next.
#[derive(Clone, Copy)]
pub(super) struct Now {
    xid: u32,
    multi: u32,
}

impl Now {
    pub(super) fn of(fork: &ForkContext<'_>) -> Option<Now> {
        let checkpoint = &fork.cluster?.control.trusted()?.checkpoint;
        Some(Now {
            xid: checkpoint.next_xid().0,
            multi: checkpoint.next_multi.0,
        })
    }

    fn xid_age(self, xid: Xid) -> u64 {
        u64::from(self.xid.wrapping_sub(xid.0))
    }

    fn multi_age(self, multi: u32) -> u64 {
        u64::from(self.multi.wrapping_sub(multi))
    }

    /// Of the oldest transaction and of the multixact that a row names, where it does.
    pub(super) fn ages(self, tuple: HeapTuple<'_>) -> (Option<u64>, Option<u64>) {
        let inserted = Some(tuple.t_xmin())
            .filter(|xmin| {
                xmin.is_normal() && !tuple.xmin_is_frozen() && !tuple.has(HEAP_XMIN_INVALID)
            })
            .map(|xmin| self.xid_age(xmin));
        let xmax = Some(tuple.t_xmax())
            .filter(|xmax| *xmax != Xid::INVALID && !tuple.has(HEAP_XMAX_INVALID));
        match xmax {
            Some(xmax) if tuple.has(HEAP_XMAX_IS_MULTI) => (inserted, Some(self.multi_age(xmax.0))),
            Some(xmax) if xmax.is_normal() => (inserted.max(Some(self.xid_age(xmax))), None),
            _ => (inserted, None),
        }
    }
}
