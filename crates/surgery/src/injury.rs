//! What an injury is: a name, the places it fits, and the wound it makes there.

use pgclinic_model::plan::{Change, Patch};

use crate::followers::Rules;
use crate::site::{Row, Site, SiteKind};

/// One way to hurt a cluster.
pub trait Injury: Sync {
    /// Kebab-case; names the hurt.
    fn name(&self) -> &'static str;
    /// One line for lists.
    fn summary(&self) -> &'static str;
    /// Which sites it is offered.
    fn wants(&self) -> SiteWants;
    /// The wound for this site, or `None` when it cannot be hurt this way. Same site and seed, same wound.
    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound>;
    /// What a person without the journal can do.
    fn way_out(&self) -> &'static str;
}

/// Sites that an injury is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SiteWants {
    /// Kinds of sites.
    pub kinds: &'static [SiteKind],
    /// Only the large filling has such a place: a relation of more than one segment, a prepared transaction.
    pub needs_large: bool,
    /// It changes one page, and can be done raw or with the page's checksum made true again.
    pub page_injury: bool,
}

impl SiteWants {
    /// One page of these kinds, raw or sealed.
    pub const fn page(kinds: &'static [SiteKind]) -> Self {
        SiteWants {
            kinds,
            needs_large: false,
            page_injury: true,
        }
    }

    /// Something of these kinds, in one way only.
    pub const fn once(kinds: &'static [SiteKind]) -> Self {
        SiteWants {
            kinds,
            needs_large: false,
            page_injury: false,
        }
    }

    /// The file of a relation of more than one segment, or what else only the large filling has.
    pub const fn large(kinds: &'static [SiteKind]) -> Self {
        SiteWants {
            kinds,
            needs_large: true,
            page_injury: false,
        }
    }
}

/// What is done to one site, and what the checks must make of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Wound {
    /// What is written.
    pub patch: Patch,
    /// What was done, in words.
    pub words: String,
    /// The line pointer number, where one row is hurt.
    pub item: Option<u16>,
    /// Half-open offsets in the page, or in the file where there is no page.
    pub bytes: Option<[u64; 2]>,
    /// Rules that must fire, with or without a true checksum.
    pub must: Vec<&'static str>,
    /// Rules that may fire; no others do.
    pub may: Vec<&'static str>,
    /// Why no rule is sure to see it once the checksum is true.
    pub blind: Option<&'static str>,
}

impl Wound {
    /// Replaces what differs between the site's bytes and `after`; `None` when nothing does.
    pub fn bytes(site: &Site<'_>, after: &[u8], words: impl Into<String>) -> Option<Wound> {
        let before = site.bytes.as_slice();
        assert!(
            before.len() == after.len(),
            "an edit keeps the length of what it edits"
        );
        let differs = |(old, new): (&u8, &u8)| old != new;
        let start = before.iter().zip(after).position(differs)?;
        let end = before.iter().zip(after).rposition(differs)? + 1;
        let change = Change::Bytes {
            path: site.path.clone(),
            offset: site.offset + start as u64,
            before: before.get(start..end)?.to_vec(),
            after: after.get(start..end)?.to_vec(),
        };
        let mut wound = Wound::of(change, words);
        wound.bytes = Some([start as u64, end as u64]);
        Some(wound)
    }

    /// Edits a copy of the site's bytes.
    pub fn edit(
        site: &Site<'_>,
        words: impl Into<String>,
        edit: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Wound> {
        let mut after = site.bytes.clone();
        edit(&mut after);
        Wound::bytes(site, &after, words)
    }

    /// Inverts the byte of the site that the seed chooses.
    pub fn invert_byte(site: &Site<'_>, seed: u64) -> Option<Wound> {
        let len = u64::try_from(site.bytes.len()).ok()?;
        let at = usize::try_from(seed.checked_rem(len)?).ok()?;
        Wound::edit(site, format!("byte {at} inverted"), |bytes| {
            let byte = bytes.get_mut(at..).and_then(|rest| rest.first_mut());
            byte.into_iter().for_each(|byte| *byte = !*byte);
        })
    }

    /// Edits one row of the site's page; the edit is given the bytes from the tuple to the end of the page.
    pub fn edit_row(
        site: &Site<'_>,
        row: &Row<'_>,
        words: impl Into<String>,
        edit: impl FnOnce(&mut [u8]),
    ) -> Option<Wound> {
        let mut after = site.bytes.clone();
        edit(after.get_mut(row.at..)?);
        Some(Wound::bytes(site, &after, words)?.item(row.item))
    }

    /// Cuts the site's file.
    pub fn cut(site: &Site<'_>, len: u64, words: impl Into<String>) -> Wound {
        let change = Change::Cut {
            path: site.path.clone(),
            len,
            kept: "cut".into(),
        };
        Wound::of(change, words)
    }

    /// Removes a file.
    pub fn remove(path: String, words: impl Into<String>) -> Wound {
        let change = Change::Remove {
            path,
            kept: "removed".into(),
        };
        Wound::of(change, words)
    }

    /// Makes these changes, of which there must be some.
    pub(crate) fn of_all(patch: Patch, words: impl Into<String>) -> Option<Wound> {
        let mut changes = patch.changes.into_iter();
        let mut wound = Wound::of(changes.next()?, words);
        wound.patch.changes.extend(changes);
        Some(wound)
    }

    /// Makes this change.
    pub(crate) fn of(change: Change, words: impl Into<String>) -> Wound {
        Wound {
            patch: Patch {
                changes: vec![change],
            },
            words: words.into(),
            item: None,
            bytes: None,
            must: Vec::new(),
            may: Vec::new(),
            blind: None,
        }
    }

    /// Of this row.
    pub fn item(mut self, item: u16) -> Self {
        self.item = Some(item);
        self
    }

    /// These rules fire.
    pub fn must(mut self, rules: &[&'static str]) -> Self {
        self.must.extend(rules);
        self
    }

    /// These groups of rules may fire.
    pub fn may(mut self, groups: &[Rules]) -> Self {
        self.may
            .extend(groups.iter().flat_map(|group| group.iter()));
        self
    }

    /// No rule is sure to see it, for this reason.
    pub fn blind(mut self, why: &'static str) -> Self {
        self.blind = Some(why);
        self
    }

    /// Seen by `rule` if `seen`, else blind.
    pub fn must_or_blind(self, seen: Option<&'static str>, why: &'static str) -> Self {
        match seen {
            Some(rule) => self.must(&[rule]),
            None => self.blind(why),
        }
    }
}
