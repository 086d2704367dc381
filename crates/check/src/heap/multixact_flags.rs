//! A row's flags and the members of its multixact disagree.

use pgclinic_cluster::{Member, MemberStatus};
use pgclinic_format::heap_tuple::{HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};
use pgclinic_format::{MultiXactId, Page, Xid};
use pgclinic_model::Rule;

use crate::check::{Limits, PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::heap::tuples::{INFOMASK, StoredTuple, XMAX, tuples};
use crate::heap::xact_lookup::XactLookup;

/// The rule.
pub static MULTIXACT_FLAGS: Rule = Rule::from_page(include_str!("../../rules/multixact-flags.md"));

/// The rule.
pub static MULTIXACT_UPDATER: Rule =
    Rule::from_page(include_str!("../../rules/multixact-updater.md"));

/// See [`MULTIXACT_FLAGS`] and [`MULTIXACT_UPDATER`].
pub struct MultixactFlags;

impl PageCheck for MultixactFlags {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MULTIXACT_FLAGS, &MULTIXACT_UPDATER] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn passes_plain_rows_only(&self) -> bool {
        true
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let (Some(fates), Some(limits)) = (XactLookup::of(cx.fork), cx.fork.limits) else {
            return;
        };
        let minimum = cx.fork.relation.map(|relation| relation.relminmxid);
        let frozen = cx.fork.relation.map(|relation| relation.relfrozenxid);
        for stored in tuples(page) {
            let multi = MultiXactId(stored.tuple.t_xmax().0);
            let counts = stored.tuple.has(HEAP_XMAX_IS_MULTI)
                && !stored.tuple.has(HEAP_XMAX_INVALID)
                && !stored.tuple.xmax_is_from_before_93()
                && minimum.is_none_or(|minimum| !multi.precedes(minimum));
            let members = counts.then(|| fates.members(multi)).flatten();
            if let Some(members) = members {
                let bounds = Bounds { limits, frozen };
                out_of(stored, multi, &members, bounds)
                    .into_iter()
                    .for_each(|draft| out.add(draft));
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Bounds {
    limits: Limits,
    frozen: Option<Xid>,
}

fn out_of(
    stored: StoredTuple<'_>,
    multi: MultiXactId,
    members: &[Member],
    bounds: Bounds,
) -> Option<Draft> {
    let changer = members
        .iter()
        .find(|member| member.status != MemberStatus::Lock)
        .map(|member| member.xid);
    let flags = |message: String| {
        let draft = stored.draft(&MULTIXACT_FLAGS, message, INFOMASK);
        Some(draft.fact("multixact", multi.0))
    };
    match (stored.tuple.xmax_is_locked_only(), changer) {
        (true, None) => None,
        (true, Some(xid)) => flags(format!(
            "HEAP_XMAX_LOCK_ONLY, but member {xid} of multixact {multi} changed the row"
        )),
        (false, None) => flags(format!(
            "HEAP_XMAX_LOCK_ONLY is not set, but all {} members of multixact {multi} only lock",
            members.len()
        )),
        (false, Some(xid)) => {
            let why = beyond(xid, bounds)?;
            let message =
                format!("member {xid} of multixact {multi}, which changed the row, {why}");
            let draft = stored.draft(&MULTIXACT_UPDATER, message, XMAX);
            Some(draft.fact("multixact", multi.0).fact("xid", xid.0))
        }
    }
}

fn beyond(xid: Xid, bounds: Bounds) -> Option<String> {
    let next = bounds.limits.next_xid;
    if !xid.is_normal() {
        return Some("is no transaction".into());
    }
    if !xid.precedes(next) {
        return Some(format!("is not before the next transaction {next}"));
    }
    let frozen = bounds.frozen.filter(|frozen| frozen.is_normal())?;
    xid.precedes(frozen)
        .then(|| format!("is before relfrozenxid {frozen}"))
}

#[cfg(test)]
mod tests {
    use pgclinic_format::HeapTuple;
    use pgclinic_format::Lsn;
    use pgclinic_format::build::TupleBuilder;

    use super::*;

    fn said(infomask: u16, members: &[(u32, MemberStatus)]) -> Option<String> {
        let bytes = TupleBuilder::new(0).infomask(infomask).finish();
        let tuple = HeapTuple::parse(&bytes).expect("a header");
        let stored = StoredTuple {
            number: 1,
            start: 8000,
            tuple,
        };
        let member = |(xid, status): &(u32, MemberStatus)| Member {
            xid: Xid(*xid),
            status: *status,
        };
        let members: Vec<Member> = members.iter().map(member).collect();
        let limits = Limits {
            next_xid: Xid(1000),
            oldest_xid: Xid(700),
            next_multi: MultiXactId(20),
            oldest_multi: MultiXactId(5),
            wal_end: Lsn(0),
        };
        let bounds = Bounds {
            limits,
            frozen: Some(Xid(750)),
        };
        out_of(stored, MultiXactId(7), &members, bounds).map(|draft| draft.message)
    }

    #[test]
    fn the_flag_repeats_what_the_members_did() {
        use MemberStatus::{Lock, NoKeyUpdate, Update};
        assert_eq!(said(0x1180, &[(800, Lock), (801, Lock)]), None);
        assert_eq!(said(0x1110, &[(800, Lock), (801, Update)]), None);
        let locked = "HEAP_XMAX_LOCK_ONLY, but member 801 of multixact 7 changed the row";
        let changed = [(800, Lock), (801, NoKeyUpdate)];
        assert_eq!(said(0x1190, &changed).as_deref(), Some(locked));
        let only = "HEAP_XMAX_LOCK_ONLY is not set, but all 1 members of multixact 7 only lock";
        assert_eq!(said(0x1110, &[(800, Lock)]).as_deref(), Some(only));
    }

    #[test]
    fn whoever_changed_the_row_is_a_transaction_of_its_time() {
        let said = |xid| said(0x1100, &[(xid, MemberStatus::Update)]).expect("a finding");
        assert!(said(0).ends_with("is no transaction"));
        assert!(said(1000).ends_with("is not before the next transaction 1000"));
        assert!(said(749).ends_with("is before relfrozenxid 750"));
    }
}
