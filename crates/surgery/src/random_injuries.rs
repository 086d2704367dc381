//! Several injuries in one patch: those that were named, each at a place of its own, or random ones
//! by a seed within a budget of pages and segments.
//!
//! ```text
//! budget ─► segments that are lost ─► pages of what is left ─► for each page one injury that fits it ─► Patch
//! ```

use std::collections::BTreeSet;

use pgclinic_format::BlockNo;
use pgclinic_model::plan::{Change, Patch};

use crate::error::{Error, Result};
use crate::followers::SHORT_FILES;
use crate::injuries::{INJURIES, LOST_SEGMENT};
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{HEAP_FILE, HEAP_PAGE, INDEX_PAGE, SEQUENCE_PAGE, TOAST_PAGE};
use crate::injury_targets::{InjuryTargetRef, InjuryTargets, Within};
use crate::plan_injury::{InjuryOptions, PlannedInjury, described, planned};

/// Kinds of pages that random injuries choose from.
const KINDS: [&[crate::InjuryTargetKind]; 4] = [HEAP_PAGE, TOAST_PAGE, INDEX_PAGE, SEQUENCE_PAGE];
/// A patch lies in memory, and each page of it takes two of 8 kB at most.
const PAGES_MAX: u64 = 10_000;
/// Up to so many pages are listed and shuffled; of more, numbers are drawn.
const LISTED_MAX: u64 = 1 << 20;

/// A share of all, in millionths.
const ALL: u64 = 1_000_000;

/// How many pages are to be hurt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageBudget {
    /// So many.
    Count(u64),
    /// So many millionths of all, at least one page.
    Share(u64),
}

impl PageBudget {
    /// `2%`, `0.5%` or `40`.
    ///
    /// # Errors
    /// In words, where it is neither.
    pub fn parse(words: &str) -> std::result::Result<Self, String> {
        let plain = || format!("{words} is neither a number of pages nor a percentage such as 2%");
        let Some(percent) = words.trim().strip_suffix('%') else {
            return words.parse().map(PageBudget::Count).map_err(|_| plain());
        };
        let share = millionths(percent.trim()).ok_or_else(plain)?;
        match share {
            1..=ALL => Ok(PageBudget::Share(share)),
            _ => Err(format!("{words} is not more than 0% and at most 100%")),
        }
    }

    /// How many these are of `all`.
    pub fn pages(self, all: u64) -> u64 {
        match self {
            PageBudget::Count(count) => count.min(all),
            PageBudget::Share(share) => {
                let pages = (u128::from(all) * u128::from(share)).div_ceil(u128::from(ALL));
                u64::try_from(pages).unwrap_or(all).min(all)
            }
        }
    }
}

/// A percentage with four digits after its point at most.
fn millionths(percent: &str) -> Option<u64> {
    let (whole, part) = percent.split_once('.').unwrap_or((percent, "0"));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(whole) && is_number(part) && part.len() <= 4).then_some(())?;
    let part = format!("{part:0<4}").parse::<u64>().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(10_000)?
        .checked_add(part)
}

/// What random injuries may hurt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DamageBudget {
    /// Pages of the relations that were asked for, TOAST tables of theirs included.
    pub pages: PageBudget,
    /// Files of at most one segment, of tables.
    pub lost_segments: u64,
}

/// An injury and what it does.
pub type Chosen = (&'static Injury, PlannedInjury);

/// Several injuries that were planned and not yet made.
#[derive(Clone)]
pub struct PlannedInjuries {
    /// Each, in the order in which they are written.
    pub injuries: Vec<Chosen>,
    /// All changes of all of them.
    pub patch: Patch,
    /// Pages that the budget was counted of; 0 for injuries that were named.
    pub pages: u64,
    /// Pages of the budget that no injury fits.
    pub left_over: u64,
}

/// Plans each of these injuries, no two on one page or file.
///
/// # Errors
/// When one of them finds no place, or none beside the others.
pub fn plan_named(
    targets: &InjuryTargets<'_>,
    injuries: &[&'static Injury],
    options: &InjuryOptions,
) -> Result<PlannedInjuries> {
    let mut chosen: Vec<Chosen> = Vec::new();
    for &injury in injuries {
        let planned = crate::plan_injury::plan_apart(targets, injury, options, &|planned| {
            chosen.iter().all(|(_, own)| are_apart(own, planned))
        })?;
        chosen.push((injury, planned));
    }
    Ok(PlannedInjuries {
        patch: combined(&chosen),
        injuries: chosen,
        pages: 0,
        left_over: 0,
    })
}

/// No page is hurt by both, and no file that one hurts as a whole by the other.
fn are_apart(one: &PlannedInjury, other: &PlannedInjury) -> bool {
    let is_page = |planned: &PlannedInjury| planned.place.block.is_some();
    let meets = |own: &Change, change: &Change| own.path() == change.path();
    let mut pairs = one.patch.changes.iter().flat_map(|own| {
        let others = other.patch.changes.iter();
        others.map(move |change| (own, change))
    });
    let same_page = one.place.block == other.place.block;
    !pairs
        .any(|(own, change)| meets(own, change) && (same_page || !is_page(one) || !is_page(other)))
}

/// Plans random injuries of pages within a budget: those of `injuries`, or of all that hurt a page.
/// The same cluster, options and budget give the same patch.
///
/// # Errors
/// When the budget is too large or nothing can be hurt, or when an injury hurts no page.
pub fn plan_random(
    targets: &InjuryTargets<'_>,
    injuries: &[&'static Injury],
    options: &InjuryOptions,
    budget: DamageBudget,
) -> Result<PlannedInjuries> {
    let injuries = of_pages(injuries)?;
    let within = Within {
        database: options.database.clone(),
        relation: options.relation.clone(),
        block: None,
        item: None,
    };
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut chosen = lost_segments(targets, &within, options, budget, &mut random)?;
    let forks = forks_left(targets, &within, &chosen);
    let pages: u64 = forks.iter().map(|(_, blocks)| u64::from(*blocks)).sum();
    let wanted = budget.pages.pages(pages);
    if wanted > PAGES_MAX {
        return Err(Error::Patch {
            why: format!("it would hurt {wanted} pages of {pages}; the most is {PAGES_MAX}"),
        });
    }
    let mut hurt = 0;
    for number in page_numbers(pages, wanted, &mut random) {
        if hurt == wanted {
            break;
        }
        let Some(at) = page_at(&forks, number) else {
            continue;
        };
        if let Some(own) = injure_page(targets, &injuries, options, &at, &mut random) {
            chosen.push(own);
            hurt += 1;
        }
    }
    if chosen.is_empty() {
        return Err(Error::NoTarget {
            injury: "random injuries".into(),
            within: described(options),
        });
    }
    Ok(PlannedInjuries {
        patch: combined(&chosen),
        injuries: chosen,
        pages,
        left_over: wanted - hurt,
    })
}

/// Those that hurt one page, of all where none is named.
fn of_pages(named: &[&'static Injury]) -> Result<Vec<&'static Injury>> {
    if let Some(other) = named.iter().find(|injury| !injury.wants.page_injury) {
        return Err(Error::Patch {
            why: format!(
                "{} hurts more than one page, or a file: name it without a budget",
                other.name
            ),
        });
    }
    let all = INJURIES.iter().filter(|injury| injury.wants.page_injury);
    Ok(match named {
        [] => all.collect(),
        named => named.to_vec(),
    })
}

/// Segments of tables, by the seed.
fn lost_segments(
    targets: &InjuryTargets<'_>,
    within: &Within,
    options: &InjuryOptions,
    budget: DamageBudget,
    random: &mut fastrand::Rng,
) -> Result<Vec<Chosen>> {
    if budget.lost_segments == 0 {
        return Ok(Vec::new());
    }
    let files = targets.find(Wants::once(HEAP_FILE), within, options.seed);
    let mut segments: Vec<(&InjuryTargetRef, u32)> = Vec::new();
    for at in &files {
        let target = targets.open(at, None);
        let numbers = target.iter().filter_map(|target| target.files);
        let numbers = numbers.flat_map(|files| files.segments.iter());
        let numbers = numbers.filter(|segment| segment.len > 0);
        segments.extend(numbers.map(|segment| (at, segment.number)));
    }
    let there = segments.len() as u64;
    if there < budget.lost_segments {
        return Err(Error::Patch {
            why: format!(
                "{} segments are to be lost, and {} has {there} of tables",
                budget.lost_segments,
                described(options)
            ),
        });
    }
    random.shuffle(&mut segments);
    let count = usize::try_from(budget.lost_segments).unwrap_or(usize::MAX);
    let lost = segments.into_iter().take(count);
    Ok(lost
        .filter_map(|(at, number)| lose_segment(targets, at, number, options))
        .collect())
}

fn lose_segment(
    targets: &InjuryTargets<'_>,
    at: &InjuryTargetRef,
    number: u32,
    options: &InjuryOptions,
) -> Option<Chosen> {
    let target = targets.open(at, None)?;
    let files = target.files?;
    let last = files.segments.last()?.number;
    let words = format!("segment {number} removed");
    let damage = Damage::remove(files.path(number), words).may(&[SHORT_FILES]);
    let damage = match number {
        0 => damage.must(&["missing-file"]),
        _ if number < last => damage.must(&["missing-segment"]),
        _ => damage.blind("a table that ends with a full segment is legal"),
    };
    let damage = damage.may(&[&["missing-file", "missing-segment"]]);
    let own = planned(&target, damage, Wants::once(HEAP_FILE), options);
    Some((&LOST_SEGMENT, own))
}

/// The forks whose pages can be hurt, with their blocks; none of a table that lost a segment.
fn forks_left(
    targets: &InjuryTargets<'_>,
    within: &Within,
    lost: &[Chosen],
) -> Vec<(InjuryTargetRef, BlockNo)> {
    let lost: BTreeSet<_> = lost.iter().map(|(_, own)| own.place.filenode).collect();
    let kinds = KINDS.iter().map(|kind| Wants::page(kind));
    let forks = kinds.flat_map(|wants| targets.forks(wants, within));
    forks
        .filter(|(files, ..)| !lost.contains(&Some(files.filenode)))
        .map(|(_, at, blocks)| (at, blocks))
        .collect()
}

/// Numbers of pages in the order in which they are tried, more than are wanted.
fn page_numbers(pages: u64, wanted: u64, random: &mut fastrand::Rng) -> Vec<u64> {
    if pages <= LISTED_MAX {
        let mut all: Vec<u64> = (0..pages).collect();
        random.shuffle(&mut all);
        return all;
    }
    let mut drawn = BTreeSet::new();
    let draws = (0..wanted * 4).map(|_| random.u64(0..pages));
    draws.filter(|number| drawn.insert(*number)).collect()
}

/// The page of this number through all forks.
fn page_at(forks: &[(InjuryTargetRef, BlockNo)], number: u64) -> Option<InjuryTargetRef> {
    let mut left = number;
    for (at, blocks) in forks {
        match left.checked_sub(u64::from(*blocks)) {
            Some(rest) => left = rest,
            None => return Some(at.at_block(BlockNo::try_from(left).ok()?)),
        }
    }
    None
}

/// The first of the injuries that fits, in a random order.
fn injure_page(
    targets: &InjuryTargets<'_>,
    injuries: &[&'static Injury],
    options: &InjuryOptions,
    at: &InjuryTargetRef,
    random: &mut fastrand::Rng,
) -> Option<Chosen> {
    let seed = random.u64(..);
    let mut fitting: Vec<&'static Injury> = injuries.to_vec();
    fitting.retain(|injury| injury.wants.kinds.contains(&at.kind()));
    random.shuffle(&mut fitting);
    let target = targets.open(at, None)?;
    fitting.into_iter().find_map(|injury| {
        let damage = (injury.damage)(&target, seed)?;
        Some((injury, planned(&target, damage, injury.wants, options)))
    })
}

/// All changes in one patch. What is kept of files has a name for each.
fn combined(chosen: &[Chosen]) -> Patch {
    let mut changes: Vec<Change> = Vec::new();
    for (_, planned) in chosen {
        changes.extend(planned.patch.changes.iter().cloned());
    }
    for (number, change) in changes.iter_mut().enumerate() {
        if let Change::Cut { kept, .. } | Change::Remove { kept, .. } = change {
            *kept = format!("{kept}-of-change-{number}");
        }
    }
    Patch { changes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_number_or_a_percentage() {
        assert_eq!(PageBudget::parse("40"), Ok(PageBudget::Count(40)));
        assert_eq!(PageBudget::parse("2%"), Ok(PageBudget::Share(20_000)));
        assert_eq!(PageBudget::parse("0.5 %"), Ok(PageBudget::Share(5_000)));
        assert_eq!(PageBudget::parse("100%"), Ok(PageBudget::Share(ALL)));
        let zero = PageBudget::parse("0%");
        assert_eq!(zero, Err("0% is not more than 0% and at most 100%".into()));
        for wrong in ["101%", "many", "-3", "", "%", "NaN%", "1.00001%", "+1%"] {
            assert!(PageBudget::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_percentage_is_at_least_one_page_and_never_more_than_all() {
        assert_eq!(PageBudget::Share(20_000).pages(1), 1);
        assert_eq!(PageBudget::Share(20_000).pages(150), 3);
        assert_eq!(PageBudget::Share(20_000).pages(0), 0);
        assert_eq!(PageBudget::Share(ALL).pages(77), 77);
        assert_eq!(PageBudget::Count(9).pages(4), 4);
    }
}
