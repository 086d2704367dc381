//! Multixacts with where their members stand, as far as the files tell it without contradiction.

use super::limits::StatusLimits;
use super::pages::StatusPages;
use pgclinic_format::slru::multi_offset;

/// More members than the transactions of a server can be: beyond it the offsets are wrong.
pub(super) const MEMBERS_MAX: u32 = 1 << 20;

/// Calls `each` with every multixact of the span and its offset, 0 where none was written. Pages
/// that are not there are left out.
pub fn for_each_offset(
    offsets: &mut StatusPages<'_>,
    limits: &StatusLimits,
    each: &mut dyn FnMut(u32, u32),
) {
    let Some(first) = limits.multis.first else {
        return;
    };
    let next = limits.multis.next;
    let mut multi = first.max(1);
    while multi != next {
        let page = offsets.page_of(multi);
        let entry = offsets.entry_of(multi);
        // The first number of the next page, 1 after the last one.
        let after = offsets
            .first_on(page + 1)
            .filter(|_| page + 1 < offsets.pages_on_circle())
            .unwrap_or(1);
        let left = match after.max(multi) {
            after if after > multi => after - multi,
            _ => u32::MAX - multi + 1,
        };
        let count = left.min(next.wrapping_sub(multi));
        if let Some(bytes) = offsets.page(page) {
            for (number, entry) in (multi..=u32::MAX).zip(entry..).take(to_usize(count)) {
                each(number, multi_offset(bytes, entry).unwrap_or(0));
            }
        }
        multi = match count {
            same if same == next.wrapping_sub(multi) => next,
            _ => after,
        };
    }
}

fn to_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A multixact and the numbers of its members, `start` up to but without `end`, on a circle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Membership {
    /// The multixact.
    pub multi: u32,
    /// Its first member.
    pub start: u32,
    /// Past its last member.
    pub end: u32,
}

/// Calls `each` with every multixact whose offset fits those before and after it, each member
/// once.
pub fn for_each_membership(
    offsets: &mut StatusPages<'_>,
    limits: &StatusLimits,
    each: &mut dyn FnMut(Membership),
) {
    let mut sieve = Sieve {
        limits: *limits,
        high: None,
        held: [None; 2],
    };
    for_each_offset(offsets, limits, &mut |multi, offset| {
        sieve.take(multi, offset, each);
    });
    sieve.take(limits.multis.next, limits.next_member, each);
    sieve.take(0, 0, each);
}

/// Holds two offsets back until the one after them is known.
struct Sieve {
    limits: StatusLimits,
    high: Option<u32>,
    held: [Option<(u32, u32)>; 2],
}

impl Sieve {
    fn take(&mut self, multi: u32, offset: u32, each: &mut dyn FnMut(Membership)) {
        let [own, following] = self.held;
        self.held = [following, Some((multi, offset))];
        let (Some((own, start)), Some((following, end))) = (own, following) else {
            return;
        };
        let adjacent = |a: u32, b: u32| b == a.wrapping_add(1).max(1);
        if start == 0 || end == 0 || !adjacent(own, following) {
            return;
        }
        let fits = |from: u32, to: u32| (1..=MEMBERS_MAX).contains(&to.wrapping_sub(from));
        // What comes after must rise as well, where it is known.
        let rises = !adjacent(following, multi) || offset == 0 || fits(end, offset);
        let within = self.limits.next_member.wrapping_sub(end) < 1 << 31;
        let anew = self
            .high
            .is_none_or(|high| start.wrapping_sub(high) < 1 << 31);
        if fits(start, end) && rises && within && anew {
            self.high = Some(end);
            each(Membership {
                multi: own,
                start,
                end,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Span;

    fn sieved(offsets: &[u32], next_member: u32) -> Vec<(u32, u32, u32)> {
        let limits = StatusLimits {
            settled: true,
            xids: Span {
                first: None,
                next: 1000,
            },
            epoch: 0,
            multis: Span {
                first: Some(1),
                next: 1 + u32::try_from(offsets.len()).expect("few"),
            },
            next_member,
            commit_ts: None,
        };
        let mut sieve = Sieve {
            limits,
            high: None,
            held: [None; 2],
        };
        let mut found = Vec::new();
        let mut each = |member: Membership| found.push((member.multi, member.start, member.end));
        for (multi, offset) in (1..).zip(offsets) {
            sieve.take(multi, *offset, &mut each);
        }
        sieve.take(limits.multis.next, next_member, &mut each);
        sieve.take(0, 0, &mut each);
        found
    }

    #[test]
    fn only_what_its_neighbours_agree_with_is_given() {
        assert_eq!(sieved(&[1, 3, 5], 8), [(1, 1, 3), (2, 3, 5), (3, 5, 8)]);
        assert_eq!(sieved(&[1, 3, 0, 7], 8), [(1, 1, 3), (4, 7, 8)]);
        assert_eq!(sieved(&[1, 900, 5], 8), [(3, 5, 8)]);
        assert_eq!(
            sieved(&[u32::MAX - 1, 1], 3),
            [(1, u32::MAX - 1, 1), (2, 1, 3)]
        );
    }
}
