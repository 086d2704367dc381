//! `pg_multixact`: who shares a row's lock, and which of them changed it.
//!
//! Offsets are 4 bytes a multixact; members come in groups of four flag bytes and four
//! transaction numbers. Truth: `src/backend/access/transam/multixact.c`.

use std::sync::Arc;

use pgclinic_format::{MultiXactId, Xid};
use pgclinic_source::Source;

use crate::transaction_log::{PAGES_PER_FILE, SlruPages};

const GROUP_BYTES: u64 = 20;
const GROUP_MEMBERS: u64 = 4;
/// More members than any multixact can have in practice; beyond it the offsets are damaged.
const MEMBERS_MAX: u32 = 100_000;

/// What a member did to the row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberStatus {
    /// One of the four row locks.
    Lock,
    /// Updated without touching key columns.
    NoKeyUpdate,
    /// Updated key columns or deleted.
    Update,
}

/// One member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its transaction.
    pub xid: Xid,
    /// What it did.
    pub status: MemberStatus,
}

/// The multixacts of a cluster.
pub struct MultiXacts {
    offsets: SlruPages,
    members: SlruPages,
    page_bytes: u64,
    next: Option<(MultiXactId, u32)>,
}

impl MultiXacts {
    /// Reads as it is asked; `next` is the next multixact and the next member offset.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        page_bytes: usize,
        next: Option<(MultiXactId, u32)>,
    ) -> Self {
        MultiXacts {
            offsets: SlruPages::new(Arc::clone(&source), "pg_multixact/offsets", page_bytes),
            members: SlruPages::new(source, "pg_multixact/members", page_bytes),
            page_bytes: page_bytes as u64,
            next,
        }
    }

    /// The members of `multi`; nothing when the files do not tell.
    pub fn members(&self, multi: MultiXactId) -> Option<Vec<Member>> {
        let start = self.offset(multi)?;
        let end = self.end(multi)?;
        let count = end.wrapping_sub(start);
        (start != 0 && count <= MEMBERS_MAX).then_some(())?;
        let numbers = (0..count).map(|index| start.wrapping_add(index));
        numbers
            .filter(|number| *number != 0)
            .map(|number| self.member(number))
            .collect()
    }

    /// The number has not been given out, as far as the limits are known.
    pub fn is_future(&self, multi: MultiXactId) -> bool {
        let next = self.next.map(|(next, _)| next);
        next.is_some_and(|next| !multi.precedes(next))
    }

    /// The transaction that changed the row, if a member did.
    pub fn updater(&self, multi: MultiXactId) -> Option<Option<Xid>> {
        let members = self.members(multi)?;
        Some(
            members
                .into_iter()
                .find(|member| member.status != MemberStatus::Lock)
                .map(|member| member.xid),
        )
    }

    /// File and offset of the transaction of the member that changed the row.
    pub fn updater_place(&self, multi: MultiXactId) -> Option<(String, u64)> {
        let (start, end) = (self.offset(multi)?, self.end(multi)?);
        let count = end.wrapping_sub(start);
        (start != 0 && count <= MEMBERS_MAX).then_some(())?;
        let numbers = (0..count).map(|index| start.wrapping_add(index));
        let changed = |number: &u32| {
            let member = self.member(*number);
            member.is_some_and(|member| member.status != MemberStatus::Lock)
        };
        let number = u64::from(numbers.filter(|number| *number != 0).find(changed)?);
        let groups_per_page = self.page_bytes / GROUP_BYTES;
        let group = number / GROUP_MEMBERS;
        let page = group / groups_per_page;
        let within = group % groups_per_page * GROUP_BYTES + 4 + number % GROUP_MEMBERS * 4;
        let path = format!("pg_multixact/members/{:04X}", page / PAGES_PER_FILE);
        Some((path, page % PAGES_PER_FILE * self.page_bytes + within))
    }

    fn end(&self, multi: MultiXactId) -> Option<u32> {
        let following = match multi.0.wrapping_add(1) {
            0 => MultiXactId(1),
            number => MultiXactId(number),
        };
        match self.next {
            Some((next, offset)) if next == following => Some(offset),
            _ => self.offset(following),
        }
    }

    fn offset(&self, multi: MultiXactId) -> Option<u32> {
        let per_page = self.page_bytes / 4;
        let page = self.offsets.page(u64::from(multi.0) / per_page)?;
        let at = usize::try_from(u64::from(multi.0) % per_page * 4).ok()?;
        Some(u32::from_le_bytes(*page.get(at..)?.first_chunk()?))
    }

    fn member(&self, number: u32) -> Option<Member> {
        let groups_per_page = self.page_bytes / GROUP_BYTES;
        let group = u64::from(number) / GROUP_MEMBERS;
        let page = self.members.page(group / groups_per_page)?;
        let start = usize::try_from(group % groups_per_page * GROUP_BYTES).ok()?;
        let index = usize::try_from(u64::from(number) % GROUP_MEMBERS).ok()?;
        let flags = *page.get(start + index)?;
        let xid = u32::from_le_bytes(*page.get(start + 4 + index * 4..)?.first_chunk()?);
        let status = match flags {
            0..=3 => MemberStatus::Lock,
            4 => MemberStatus::NoKeyUpdate,
            5 => MemberStatus::Update,
            _ => return None,
        };
        Some(Member {
            xid: Xid(xid),
            status,
        })
    }
}
