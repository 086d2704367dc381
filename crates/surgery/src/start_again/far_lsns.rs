//! LSNs that lie far ahead of all WAL that is known: damaged ones, or real ones of a cluster whose
//! control file and WAL are of an earlier day.
//!
//! ```text
//! data checksums on   a page whose checksum is right is believed: the checksum covers the LSN
//! off                 many pages of several relations are, which agree: damage is scattered
//! ```

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::Lsn;
use pgclinic_model::{plural, verb_of};

use super::numbers::{Highest, Seen, raise_to};

/// Bytes of WAL within which LSNs agree.
const REGION_BYTES: u64 = 1 << 40;
/// Regions of which pages are kept apart, the lowest ones: real LSNs lie in few.
const REGIONS_MAX: usize = 4096;
/// No server has ever written so much WAL, and little room for names of segments is left after it.
const LSN_MAX: Lsn = Lsn(u64::MAX / 2);
/// Pages that must agree where no checksum speaks for them.
const PAGES_MIN: u64 = 8;
/// Relations that they must be of: the file of one may come from another cluster.
const RELATIONS_MIN: usize = 3;

/// What speaks for the LSN of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PageSum {
    Right,
    None,
    Wrong,
}

/// Pages with such an LSN.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct FarLsns {
    regions: BTreeMap<u64, Region>,
    /// Of regions that are not kept.
    rest: Group,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Region {
    right: Group,
    none: Group,
    wrong: Group,
}

/// Some pages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Group {
    pages: u64,
    /// The first files of their relations, as many as are needed, lowest names first.
    relations: BTreeSet<String>,
    highest: Option<Highest<Lsn>>,
    first: Option<Seen>,
}

/// What is made of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Judged {
    /// The highest LSN that is believed, and how many pages have one.
    pub(super) believed: Option<Highest<Lsn>>,
    pub(super) believed_pages: u64,
    pub(super) doubted_pages: u64,
    /// The first place with one that is not.
    pub(super) doubted: Option<Seen>,
}

impl FarLsns {
    pub(super) fn see(&mut self, lsn: Lsn, sum: PageSum, relation: &str, at: Seen) {
        let region = self.regions.entry(lsn.0 / REGION_BYTES).or_default();
        let group = match sum {
            PageSum::Right => &mut region.right,
            PageSum::None => &mut region.none,
            PageSum::Wrong => &mut region.wrong,
        };
        group.add(Group {
            pages: 1,
            relations: BTreeSet::from([relation.to_owned()]),
            first: Some(at.clone()),
            highest: Some(Highest { value: lsn, at }),
        });
        self.keep_lowest();
    }

    /// Those of both.
    pub(super) fn add(&mut self, other: FarLsns) {
        for (number, region) in other.regions {
            self.regions.entry(number).or_default().add(region);
        }
        self.rest.add(other.rest);
        self.keep_lowest();
    }

    /// A region that some of the pages push out is pushed out by all of them, too.
    fn keep_lowest(&mut self) {
        while self.regions.len() > REGIONS_MAX {
            let Some((_, region)) = self.regions.pop_last() else {
                return;
            };
            for group in region.into_groups() {
                self.rest.add(group);
            }
        }
    }

    /// `has_checksums`: nearly every page of the cluster has a right one.
    pub(super) fn judged(&self, has_checksums: bool) -> Judged {
        let mut judged = Judged::default();
        judged.doubt(self.rest.clone());
        for region in neighbours(&self.regions) {
            let [right, none, wrong] = region.into_groups();
            if has_checksums {
                judged.take(right, |right| right.pages > 0);
                judged.doubt(none);
                judged.doubt(wrong);
                continue;
            }
            let mut all = right;
            all.add(none);
            all.add(wrong);
            judged.take(all, Group::agrees);
        }
        judged
    }
}

/// Regions one after the other are one.
fn neighbours(regions: &BTreeMap<u64, Region>) -> Vec<Region> {
    let mut joined: Vec<(u64, Region)> = Vec::new();
    for (number, region) in regions {
        match joined.last_mut() {
            Some((last, own)) if *last + 1 == *number => {
                own.add(region.clone());
                *last = *number;
            }
            _ => joined.push((*number, region.clone())),
        }
    }
    joined.into_iter().map(|(_, region)| region).collect()
}

impl Region {
    fn add(&mut self, other: Region) {
        let [right, none, wrong] = other.into_groups();
        self.right.add(right);
        self.none.add(none);
        self.wrong.add(wrong);
    }

    fn into_groups(self) -> [Group; 3] {
        [self.right, self.none, self.wrong]
    }
}

impl Group {
    fn add(&mut self, other: Group) {
        self.pages = self.pages.saturating_add(other.pages);
        self.relations.extend(other.relations);
        while self.relations.len() > RELATIONS_MIN {
            self.relations.pop_last();
        }
        raise_to(&mut self.highest, other.highest);
        self.first = match (self.first.take(), other.first) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    fn agrees(&self) -> bool {
        self.pages >= PAGES_MIN && self.relations.len() >= RELATIONS_MIN
    }

    fn is_possible(&self) -> bool {
        let highest = self.highest.as_ref();
        highest.is_some_and(|highest| highest.value <= LSN_MAX)
    }
}

impl Judged {
    fn take(&mut self, group: Group, is_believed: impl Fn(&Group) -> bool) {
        if !is_believed(&group) || !group.is_possible() {
            return self.doubt(group);
        }
        self.believed_pages = self.believed_pages.saturating_add(group.pages);
        raise_to(&mut self.believed, group.highest);
    }

    fn doubt(&mut self, group: Group) {
        self.doubted_pages = self.doubted_pages.saturating_add(group.pages);
        self.doubted = match (self.doubted.take(), group.first) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    /// What the plan says of those that are not believed.
    pub(super) fn warning(&self) -> Option<String> {
        let at = self.doubted.as_ref()?;
        Some(format!(
            "{} {} an LSN more than 1 TiB after all WAL that is known, the first at {at}, and nothing proves it: this is taken for damage, and WAL does not begin after it",
            plural(self.doubted_pages, "page"),
            verb_of(self.doubted_pages, "carry")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::{FarLsns, PageSum, REGION_BYTES, REGIONS_MAX};
    use crate::start_again::numbers::Seen;
    use pgclinic_format::Lsn;

    fn seen(path: &str, block: u32) -> Seen {
        Seen {
            path: path.into(),
            block,
            item: 0,
        }
    }

    fn far(pages: &[(u64, PageSum, &str)]) -> FarLsns {
        let mut all = FarLsns::default();
        for (block, (tib, sum, path)) in (0..).zip(pages) {
            let lsn = Lsn(tib * REGION_BYTES + u64::from(block));
            all.see(lsn, *sum, path, seen(path, block));
        }
        all
    }

    #[test]
    fn one_right_checksum_proves_an_lsn_where_all_pages_have_one() {
        let all = far(&[(7, PageSum::Right, "a"), (9, PageSum::Wrong, "b")]);
        let judged = all.judged(true);
        assert_eq!(
            judged.believed.map(|own| own.value.0 / REGION_BYTES),
            Some(7)
        );
        assert_eq!((judged.believed_pages, judged.doubted_pages), (1, 1));
        assert_eq!(judged.doubted, Some(seen("b", 1)));
    }

    #[test]
    fn without_checksums_many_pages_of_several_relations_must_agree() {
        let mut pages = vec![(7, PageSum::None, "a"); 6];
        pages.extend([(8, PageSum::None, "b"), (900, PageSum::None, "c")]);
        let judged = far(&pages).judged(false);
        assert_eq!((judged.believed, judged.doubted_pages), (None, 8));
        pages.push((8, PageSum::None, "c"));
        let judged = far(&pages).judged(false);
        assert_eq!((judged.believed_pages, judged.doubted_pages), (8, 1));
        assert_eq!(
            judged.believed.map(|own| own.value.0 / REGION_BYTES),
            Some(8)
        );
    }

    #[test]
    fn an_lsn_that_no_server_reaches_is_not_believed() {
        let judged = far(&[(1 << 23, PageSum::Right, "a")]).judged(true);
        assert_eq!((judged.believed, judged.doubted_pages), (None, 1));
    }

    #[test]
    fn no_page_is_forgotten_and_shares_meet_in_any_order() {
        let many = u64::try_from(REGIONS_MAX).expect("few") + 5;
        let pages: Vec<_> = (0..many).map(|at| (2 * at, PageSum::Right, "a")).collect();
        let all = far(&pages);
        assert_eq!(all.judged(true).believed_pages, many - 5);
        assert_eq!(all.judged(true).doubted_pages, 5);
        let (mut one, mut other) = (far(&pages), far(&pages));
        one.add(far(&[(1, PageSum::None, "b")]));
        let mut turned = far(&[(1, PageSum::None, "b")]);
        turned.add(std::mem::take(&mut other));
        assert_eq!(one, turned);
    }
}
