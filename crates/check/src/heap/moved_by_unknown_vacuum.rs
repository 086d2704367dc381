//! A row that a VACUUM FULL before 9.0 moved names a transaction that cannot have done it.

use pgclinic_cluster::XactStatus;
use pgclinic_format::heap_tuple::{
    HEAP_MOVED, HEAP_MOVED_OFF, HEAP_XMIN_COMMITTED, HEAP_XMIN_INVALID,
};
use pgclinic_format::{Page, Xid};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::tuples;
use crate::heap::xact_lookup::XactLookup;

/// The rule.
pub static MOVED_BY_UNKNOWN_VACUUM: Rule =
    Rule::from_page(include_str!("../../rules/moved-by-unknown-vacuum.md"));

/// `t_field3`, where the old VACUUM stands.
const FIELD3: std::ops::Range<usize> = 8..12;

/// See [`MOVED_BY_UNKNOWN_VACUUM`].
pub struct MovedByUnknownVacuum;

impl PageCheck for MovedByUnknownVacuum {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MOVED_BY_UNKNOWN_VACUUM] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn passes_plain_rows_only(&self) -> bool {
        true
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let (Some(limits), Some(relation)) = (cx.fork.limits, cx.fork.relation) else {
            return;
        };
        let frozen = relation.relfrozenxid;
        let mut fates = None;
        for stored in tuples(page) {
            let mask = stored.tuple.t_infomask();
            let asked = mask & HEAP_MOVED != 0
                && mask & (HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID) == 0
                && stored.tuple.t_xmin().is_normal();
            if !asked {
                continue;
            }
            let xid = Xid(stored.tuple.t_field3());
            let why = if !xid.is_normal() {
                "is no transaction".to_owned()
            } else if !xid.precedes(limits.next_xid) {
                format!("is not before the next transaction {}", limits.next_xid)
            } else if frozen.is_normal() && xid.precedes(frozen) {
                format!("is before relfrozenxid {frozen}")
            } else {
                let fates = fates
                    .get_or_insert_with(|| XactLookup::of(cx.fork))
                    .as_ref();
                match fates.and_then(|fates| fates.status(xid)) {
                    Some(XactStatus::InProgress) => "never finished".to_owned(),
                    _ => continue,
                }
            };
            let which = match mask & HEAP_MOVED_OFF {
                0 => "HEAP_MOVED_IN",
                _ => "HEAP_MOVED_OFF",
            };
            let message = format!("{which}, but the old VACUUM FULL's transaction {xid} {why}");
            let draft = stored.draft(&MOVED_BY_UNKNOWN_VACUUM, message, FIELD3);
            out.add(draft.fact("xvac", xid.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder, put_u32};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn the_old_vacuum_is_a_transaction_of_its_time() {
        let tuple = |xvac, infomask| {
            let mut bytes = TupleBuilder::new(1)
                .xids(800, 0)
                .infomask(infomask)
                .finish();
            put_u32(&mut bytes, 8, xvac);
            bytes
        };
        let page = PageBuilder::new(8192, &[])
            .item(&tuple(0, 0x4800))
            .item(&tuple(0, 0x4900))
            .item(&tuple(1000, 0x8800))
            .item(&tuple(699, 0x8800))
            .item(&tuple(900, 0x8800))
            .finish(0);
        let words = "but the old VACUUM FULL's transaction";
        let expected = [
            format!("1 moved-by-unknown-vacuum: HEAP_MOVED_OFF, {words} 0 is no transaction"),
            format!(
                "3 moved-by-unknown-vacuum: HEAP_MOVED_IN, {words} 1000 is not before the next transaction 1000"
            ),
            format!(
                "4 moved-by-unknown-vacuum: HEAP_MOVED_IN, {words} 699 is before relfrozenxid 700"
            ),
        ];
        assert_eq!(Trial::table().told(&MovedByUnknownVacuum, &page), expected);
    }
}
