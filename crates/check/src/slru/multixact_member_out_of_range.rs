//! Members of a multixact that no server writes.

use std::collections::BTreeMap;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::status::{
    Membership, StatusLimits, StatusPages, for_each_membership, status_limits,
};
use pgclinic_format::slru::member;
use pgclinic_format::{StatusLog, Xid};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// `MultiXactStatusUpdate`, the last one.
const LAST_STATUS: u8 = 5;
/// `MultiXactStatusNoKeyUpdate`, the first one that changes the row.
const FIRST_UPDATE: u8 = 4;
/// More multixacts than one crash leaves without members on a page that holds no others.
const UNWRITTEN_MAX: u32 = 3;

/// The rule.
pub static MULTIXACT_MEMBER_OUT_OF_RANGE: Rule =
    Rule::from_page(include_str!("../../rules/multixact-member-out-of-range.md"));

/// See [`MULTIXACT_MEMBER_OUT_OF_RANGE`].
pub struct MultixactMemberOutOfRange;

impl ClusterCheck for MultixactMemberOutOfRange {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MULTIXACT_MEMBER_OUT_OF_RANGE] }
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
        let opened = [StatusLog::MultiOffsets, StatusLog::MultiMembers]
            .map(|log| StatusPages::open(cluster, log));
        let [Ok(mut offsets), Ok(members)] = opened else {
            return;
        };
        let mut ward = Ward {
            limits,
            members,
            wrong: BTreeMap::new(),
            page: PageOfMembers::default(),
        };
        for_each_membership(&mut offsets, &limits, &mut |multi| ward.look(multi));
        ward.leave_page();
        for draft in ward.told() {
            out.add(draft);
        }
    }
}

/// What was seen of the page at hand.
#[derive(Clone, Copy, Default)]
struct PageOfMembers {
    number: u64,
    multis: u32,
    first: u32,
    written: bool,
}

struct Wrong {
    example: String,
    bytes: Option<(usize, usize)>,
    multi: u32,
    count: u64,
}

struct Ward<'a> {
    limits: StatusLimits,
    members: StatusPages<'a>,
    wrong: BTreeMap<u64, Wrong>,
    page: PageOfMembers,
}

/// What has been read of one multixact.
#[derive(Default)]
struct Read {
    members: u32,
    unwritten: u32,
    updates: u32,
    fault: Option<(String, u64, usize)>,
}

impl Ward<'_> {
    fn look(&mut self, multi: Membership) {
        let first_page = self.members.page_of(multi.start);
        let last_page = self.members.page_of(multi.end.wrapping_sub(1));
        let Some(read) = self.read(multi) else {
            return;
        };
        if first_page == last_page {
            self.note(multi.multi, first_page, read.unwritten < read.members);
        }
        // A crash can leave all of its members unwritten, or those of its second page.
        if read.unwritten == read.members {
            return;
        }
        let number = multi.multi;
        let fault = if read.unwritten > 0 && first_page == last_page {
            let message = format!(
                "{} of the {} members of multixact {number} are 0",
                read.unwritten, read.members
            );
            Some((message, first_page, None))
        } else if let Some((words, page, entry)) = read.fault {
            let at = entry / 4 * 20 + entry % 4;
            Some((
                format!("multixact {number}: {words}"),
                page,
                Some((at, at + 1)),
            ))
        } else if read.updates > 1 {
            let message = format!(
                "{} members of multixact {number} change the row",
                read.updates
            );
            Some((message, first_page, None))
        } else {
            None
        };
        if let Some((message, page, bytes)) = fault {
            self.tell(page, number, message, bytes);
        }
    }

    /// Nothing when a page is not there.
    fn read(&mut self, multi: Membership) -> Option<Read> {
        let mut read = Read::default();
        let count = multi.end.wrapping_sub(multi.start);
        let numbers = (0..count).map(|index| multi.start.wrapping_add(index));
        // Number 0 is left out after a wrap-around.
        for number in numbers.filter(|number| *number != 0) {
            let (page, entry) = (self.members.page_of(number), self.members.entry_of(number));
            let (flags, xid) = member(self.members.page(page)?, entry)?;
            read.members += 1;
            if xid == Xid::INVALID {
                read.unwritten += 1;
                continue;
            }
            read.updates += u32::from((FIRST_UPDATE..=LAST_STATUS).contains(&flags));
            if read.fault.is_none() {
                read.fault = self.fault(flags, xid).map(|words| (words, page, entry));
            }
        }
        Some(read)
    }

    fn fault(&self, flags: u8, xid: Xid) -> Option<String> {
        // Later on old multixacts may hold transactions of an earlier turn of the circle.
        let next = self.limits.xids.next;
        let unborn = self.limits.epoch == 0 && xid.0 >= next;
        if flags > LAST_STATUS {
            Some(format!("the status {flags} of member {xid} does not exist"))
        } else if !xid.is_normal() {
            Some(format!("member {xid} is a reserved number"))
        } else if unborn {
            Some(format!(
                "member {xid} is not older than the next transaction {next}"
            ))
        } else {
            None
        }
    }

    /// Notes a multixact that lies on one page as a whole.
    fn note(&mut self, multi: u32, page: u64, written: bool) {
        if self.page.number != page || self.page.multis == 0 {
            self.leave_page();
            self.page = PageOfMembers {
                number: page,
                multis: 0,
                first: multi,
                written: false,
            };
        }
        self.page.multis += 1;
        self.page.written |= written;
    }

    fn leave_page(&mut self) {
        let page = std::mem::take(&mut self.page);
        if page.multis > UNWRITTEN_MAX && !page.written {
            let message = format!(
                "the members of {} multixacts from {} on are all 0",
                page.multis, page.first
            );
            self.tell(page.number, page.first, message, None);
        }
    }

    fn tell(&mut self, page: u64, multi: u32, message: String, bytes: Option<(usize, usize)>) {
        let wrong = self.wrong.entry(page).or_insert_with(|| Wrong {
            example: message,
            bytes,
            multi,
            count: 0,
        });
        wrong.count += 1;
    }

    fn told(self) -> Vec<Draft> {
        let one = |(page, wrong): (u64, Wrong)| {
            let message = match wrong.count {
                1 => wrong.example,
                count => format!("{}; and {} more on this page", wrong.example, count - 1),
            };
            let draft = Draft::new(&MULTIXACT_MEMBER_OUT_OF_RANGE, message)
                .fact("multixact", wrong.multi)
                .fact("count", wrong.count)
                .place(self.members.place(page));
            match wrong.bytes {
                Some((start, end)) => draft.bytes(start, end),
                None => draft,
            }
        };
        self.wrong.into_iter().map(one).collect()
    }
}
