//! An offset in `pg_multixact/offsets` that does not rise from one multixact to the next.

use std::collections::BTreeMap;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::{StatusLimits, StatusPages, for_each_offset, status_limits};
use pgclinic_format::StatusLog;
use pgclinic_format::slru::member;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// Multixacts of one sector of a disk: so many cannot have been under way in one crash.
const SECTOR_MULTIS: u32 = 128;

/// The rule.
pub static MULTIXACT_OFFSET_OUT_OF_RANGE: Rule =
    Rule::from_page(include_str!("../../rules/multixact-offset-out-of-range.md"));

/// See [`MULTIXACT_OFFSET_OUT_OF_RANGE`].
pub struct MultixactOffsetOutOfRange;

impl ClusterCheck for MultixactOffsetOutOfRange {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MULTIXACT_OFFSET_OUT_OF_RANGE] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let Some(limits) = status_limits(cluster).filter(|limits| limits.settled) else {
            return;
        };
        let Ok(mut offsets) = StatusPages::open(cluster, StatusLog::MultiOffsets) else {
            return;
        };
        let mut order = Order::default();
        for_each_offset(&mut offsets, &limits, &mut |multi, offset| {
            order.take(multi, offset);
        });
        let any = order.current.is_some();
        order.end(limits.multis.next, limits.next_member);
        for told in order.told(&offsets) {
            out.add(told);
        }
        if !any {
            out_of_nothing(cluster, &limits, &mut offsets, out);
        }
    }
}

/// No multixact has an offset, but the last member was written: its multixact was lost.
fn out_of_nothing(
    cluster: &Cluster,
    limits: &StatusLimits,
    offsets: &mut StatusPages<'_>,
    out: &mut Findings,
) {
    let next = limits.multis.next;
    let Some(first) = limits.multis.first.filter(|first| *first != next) else {
        return;
    };
    let page = offsets.page_of(next.wrapping_sub(1).max(1));
    let last = limits.next_member.wrapping_sub(1);
    let Ok(mut members) = StatusPages::open(cluster, StatusLog::MultiMembers) else {
        return;
    };
    let entry = members.entry_of(last);
    let written = members
        .page(members.page_of(last))
        .and_then(|bytes| member(bytes, entry))
        .is_some_and(|(_, xid)| xid.is_normal());
    // A page that is there and could not be read proves nothing.
    if !written || offsets.page(page).is_none() {
        return;
    }
    let message = format!(
        "the offsets of multixacts {first} to {} are all 0, yet there are members up to number {last}",
        next.wrapping_sub(1)
    );
    let draft = Draft::new(&MULTIXACT_OFFSET_OUT_OF_RANGE, message)
        .fact("first_multixact", first)
        .fact("last_member", last);
    out.add(draft.place(offsets.place(page)));
}

/// A multixact and its offset.
type Entry = (u32, u32);

/// What is wrong on one page.
struct OnPage {
    example: String,
    multi: u32,
    count: u64,
}

/// Judges each offset by the one before and the one after it that are not 0.
#[derive(Default)]
struct Order {
    before: Option<Entry>,
    current: Option<Entry>,
    /// Zeros since the current one: the first, and how many.
    zeros: Option<(u32, u32)>,
    wrong: BTreeMap<u32, OnPage>,
}

/// Multixacts on the smallest page there is: findings are kept by so many.
const GROUP: u32 = 256;

impl Order {
    fn take(&mut self, multi: u32, offset: u32) {
        if offset == 0 {
            self.zeros = match self.zeros {
                Some((first, count)) => Some((first, count.saturating_add(1))),
                None => Some((multi, 1)),
            };
            return;
        }
        self.judge_zeros(multi);
        self.judge((multi, offset));
        self.current = Some((multi, offset));
    }

    fn end(&mut self, next: u32, next_member: u32) {
        self.judge((next, next_member));
    }

    /// A gap as long as a sector that begins where one begins, between two that were written.
    fn judge_zeros(&mut self, after: u32) {
        let Some((first, count)) = self.zeros.take() else {
            return;
        };
        let sector = first.is_multiple_of(SECTOR_MULTIS) && count >= SECTOR_MULTIS;
        let follows = self
            .current
            .is_some_and(|(current, _)| current.wrapping_add(1) == first);
        if sector && follows && after.is_multiple_of(SECTOR_MULTIS) {
            let last = after.wrapping_sub(1);
            self.tell(
                first,
                format!("the offsets of multixacts {first} to {last} are all 0"),
            );
        }
    }

    fn judge(&mut self, after: Entry) {
        let Some(current) = self.current else { return };
        let good = rises(current, after) && self.before.is_none_or(|before| rises(before, current));
        if good {
            self.before = Some(current);
            return;
        }
        // Where the one before and the one after agree, the one between them is wrong.
        let blamed = match self.before {
            Some(before) => rises(before, after) || !rises(before, current),
            None => true,
        };
        if !blamed {
            self.before = Some(current);
            return;
        }
        let (multi, offset) = current;
        let (next, its) = after;
        let behind = match self.before {
            Some((multi, offset)) => format!("after {offset} of multixact {multi}, "),
            None => String::new(),
        };
        self.tell(
            multi,
            format!("the members of multixact {multi} begin at {offset}, {behind}before {its} of multixact {next}"),
        );
    }

    fn tell(&mut self, multi: u32, words: String) {
        let kept = self.wrong.entry(multi / GROUP).or_insert_with(|| OnPage {
            example: words,
            multi,
            count: 0,
        });
        kept.count += 1;
    }

    fn told(self, offsets: &StatusPages<'_>) -> Vec<Draft> {
        let one = |on_page: OnPage| {
            let (multi, count) = (on_page.multi, on_page.count);
            let message = match count {
                1 => on_page.example,
                _ => format!("{}; and {} more nearby", on_page.example, count - 1),
            };
            let entry = offsets.entry_of(multi);
            Draft::new(&MULTIXACT_OFFSET_OUT_OF_RANGE, message)
                .bytes(entry * 4, entry * 4 + 4)
                .fact("multixact", multi)
                .fact("count", count)
                .place(offsets.place(offsets.page_of(multi)))
        };
        self.wrong.into_values().map(one).collect()
    }
}

/// The second offset is behind the first one. With numbers left out between them, which
/// `pg_resetwal -m` does, both may be the same.
fn rises((multi, offset): Entry, (later, further): Entry) -> bool {
    let ahead = further.wrapping_sub(offset);
    let adjacent = later == multi.wrapping_add(1).max(1);
    ahead < 1 << 31 && (ahead > 0 || !adjacent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(offsets: &[u32], next_member: u32) -> Vec<String> {
        let mut order = Order::default();
        for (multi, offset) in (1..).zip(offsets) {
            order.take(multi, *offset);
        }
        order.end(1 + u32::try_from(offsets.len()).expect("few"), next_member);
        order
            .wrong
            .into_values()
            .map(|on_page| on_page.example)
            .collect()
    }

    #[test]
    fn the_one_between_two_that_agree_is_wrong() {
        assert_eq!(told(&[1, 3, 5, 9], 12), [""; 0]);
        assert_eq!(
            told(&[1, 3, 700, 9], 12),
            [
                "the members of multixact 3 begin at 700, after 3 of multixact 2, before 9 of multixact 4"
            ]
        );
        assert_eq!(
            told(&[90, 3, 5], 12),
            ["the members of multixact 1 begin at 90, before 3 of multixact 2"]
        );
        assert_eq!(told(&[1, 3, 3, 9], 12).len(), 1, "a multixact has members");
    }

    #[test]
    fn what_crashes_and_wrap_arounds_leave_is_right() {
        assert_eq!(told(&[1, 0, 0, 9], 12), [""; 0], "never written");
        assert_eq!(
            told(&[u32::MAX - 2, 1, 4], 6),
            [""; 0],
            "offset 0 is left out"
        );
        assert_eq!(
            told(&[1, 5, 0, 5], 7),
            [""; 0],
            "numbers jumped, members did not"
        );
        assert_eq!(told(&[], 0), [""; 0]);
    }
}
