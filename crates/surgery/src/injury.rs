//! What an injury is: a name, the places it fits, and the damage it does there.

use pgclinic_model::plan::{Change, Patch};

use crate::followers::Rules;
use crate::injury_target::{InjuryTarget, InjuryTargetKind, Row};

/// A way to hurt a cluster: a `const` in the file of its family, above the small function that does
/// it.
#[derive(Clone, Copy)]
pub struct Injury {
    /// Kebab-case; names the hurt.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Which targets it is offered.
    pub wants: Wants,
    /// What a user without the journal can do.
    pub recovery_advice: &'static str,
    /// The damage for this target and seed, or `None` when it cannot be hurt this way. Same target
    /// and seed, same damage.
    pub damage: fn(&InjuryTarget<'_>, u64) -> Option<Damage>,
}

/// Targets that an injury is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wants {
    /// Kinds of targets.
    pub kinds: &'static [InjuryTargetKind],
    /// Only the large filling has such a place: a relation of more than one segment, a prepared
    /// transaction.
    pub needs_large: bool,
    /// It changes one page, and can be done raw or with the page's checksum made true again.
    pub page_injury: bool,
}

impl Wants {
    /// One page of these kinds, raw or sealed.
    pub const fn page(kinds: &'static [InjuryTargetKind]) -> Self {
        Wants {
            kinds,
            needs_large: false,
            page_injury: true,
        }
    }

    /// Something of these kinds, in one way only.
    pub const fn once(kinds: &'static [InjuryTargetKind]) -> Self {
        Wants {
            kinds,
            needs_large: false,
            page_injury: false,
        }
    }

    /// The file of a relation of more than one segment, or what else only the large filling has.
    pub const fn large(kinds: &'static [InjuryTargetKind]) -> Self {
        Wants {
            kinds,
            needs_large: true,
            page_injury: false,
        }
    }
}

/// What is done to one target, and what the checks must make of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Damage {
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

impl Damage {
    /// Replaces what differs between the target's bytes and `after`; `None` when nothing does.
    pub fn bytes(
        target: &InjuryTarget<'_>,
        after: &[u8],
        words: impl Into<String>,
    ) -> Option<Damage> {
        let before = target.bytes.as_slice();
        assert!(
            before.len() == after.len(),
            "an edit keeps the length of what it edits"
        );
        let differs = |(old, new): (&u8, &u8)| old != new;
        let start = before.iter().zip(after).position(differs)?;
        let end = before.iter().zip(after).rposition(differs)? + 1;
        let change = Change::Bytes {
            path: target.path.clone(),
            offset: target.offset + start as u64,
            before: before.get(start..end)?.to_vec(),
            after: after.get(start..end)?.to_vec(),
        };
        let mut damage = Damage::change(change, words);
        damage.bytes = Some([start as u64, end as u64]);
        Some(damage)
    }

    /// Edits a copy of the target's bytes.
    pub fn edit(
        target: &InjuryTarget<'_>,
        words: impl Into<String>,
        edit: impl FnOnce(&mut [u8]),
    ) -> Option<Damage> {
        let mut after = target.bytes.clone();
        edit(&mut after);
        Damage::bytes(target, &after, words)
    }

    /// Edits one row of the target's page; the edit is given the bytes from the tuple to the end of
    /// the page.
    pub fn edit_row(
        target: &InjuryTarget<'_>,
        row: &Row<'_>,
        words: impl Into<String>,
        edit: impl FnOnce(&mut [u8]),
    ) -> Option<Damage> {
        let mut after = target.bytes.clone();
        edit(after.get_mut(row.at..)?);
        Some(Damage::bytes(target, &after, words)?.item(row.item))
    }

    /// Cuts the target's file.
    pub fn cut(target: &InjuryTarget<'_>, len: u64, words: impl Into<String>) -> Damage {
        Damage::change(cut(target.path.clone(), len), words)
    }

    /// Removes a file.
    pub fn remove(path: String, words: impl Into<String>) -> Damage {
        let kept = "removed".into();
        Damage::change(Change::Remove { path, kept }, words)
    }

    /// Makes these changes, of which there must be some.
    pub(crate) fn changes(changes: Vec<Change>, words: impl Into<String>) -> Option<Damage> {
        let mut changes = changes.into_iter();
        let mut damage = Damage::change(changes.next()?, words);
        damage.patch.changes.extend(changes);
        Some(damage)
    }

    /// Makes this change.
    pub(crate) fn change(change: Change, words: impl Into<String>) -> Damage {
        Damage {
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

/// The change that cuts a file.
pub(crate) fn cut(path: String, len: u64) -> Change {
    let kept = "cut".into();
    Change::Cut { path, len, kept }
}
