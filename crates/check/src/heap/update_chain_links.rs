//! Steps of update chains that cannot stand beside each other: two to one row, a circle, flags
//! that disagree about what kind of update it was.

use pgclinic_format::Page;
use pgclinic_format::heap_tuple::{HEAP_HOT_UPDATED, HEAP_ONLY_TUPLE};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::heap::tuples::{CTID, INFOMASK2};
use crate::heap::update_chains::{Chains, Step};
use crate::heap::xact_lookup::XactLookup;
use crate::page::line_pointers::pointer_bytes;

/// The rule.
pub static UPDATE_CHAINS_MEET: Rule =
    Rule::from_page(include_str!("../../rules/update-chains-meet.md"));

/// The rule.
pub static UPDATE_CHAIN_CYCLE: Rule =
    Rule::from_page(include_str!("../../rules/update-chain-cycle.md"));

/// The rule.
pub static HOT_FLAGS_DISAGREE: Rule =
    Rule::from_page(include_str!("../../rules/hot-flags-disagree.md"));

/// See [`UPDATE_CHAINS_MEET`], [`UPDATE_CHAIN_CYCLE`] and [`HOT_FLAGS_DISAGREE`].
pub struct UpdateChainLinks;

impl PageCheck for UpdateChainLinks {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &UPDATE_CHAINS_MEET,
                &UPDATE_CHAIN_CYCLE,
                &HOT_FLAGS_DISAGREE,
            ]
        }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn passes_plain_rows_only(&self) -> bool {
        true
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let fates = XactLookup::of(cx.fork);
        let chains = Chains::of(page, cx.block, fates.as_ref());
        if chains.steps.is_empty() {
            return;
        }
        meetings(&chains, out);
        circles(&chains, out);
        flags(&chains, out);
    }
}

fn meetings(chains: &Chains<'_>, out: &mut Findings) {
    let mut steps = chains.steps.clone();
    steps.sort_by_key(|step| (step.to, step.from));
    for (first, second) in steps.iter().zip(steps.iter().skip(1)) {
        if first.to == second.to {
            out.add(meeting(chains, *first, *second));
        }
    }
}

fn meeting(chains: &Chains<'_>, first: Step, second: Step) -> Draft {
    let what = |step: Step| {
        if step.is_redirect {
            format!("redirect {}", step.from)
        } else {
            format!("row {}", step.from)
        }
    };
    let message = format!(
        "{} leads to line pointer {}, and {} does too",
        what(second),
        second.to,
        what(first)
    );
    let draft = match chains.tuple(second.from).filter(|_| !second.is_redirect) {
        Some(stored) => stored.draft(&UPDATE_CHAINS_MEET, message, CTID),
        None => {
            let bytes = pointer_bytes(second.from);
            let draft = Draft::new(&UPDATE_CHAINS_MEET, message).item(second.from);
            draft.bytes(bytes.start, bytes.end).rows(1)
        }
    };
    draft
        .fact("target_item", second.to)
        .fact("other_item", first.from)
}

/// Steps on which no walk from a beginning comes by.
fn circles(chains: &Chains<'_>, out: &mut Findings) {
    let places = chains.is_led_to().len();
    let mut next = vec![0u16; places];
    // Certain steps only: a row that something unknown may lead to can still begin a walk.
    let mut led = vec![false; places];
    for step in &chains.steps {
        if let Some(place) = next.get_mut(usize::from(step.from)) {
            *place = step.to;
        }
        if let Some(place) = led.get_mut(usize::from(step.to)) {
            *place = true;
        }
    }
    let mut passed = vec![false; led.len()];
    for (number, _) in led.iter().enumerate().filter(|(_, led)| !**led) {
        walk(number, &next, &mut passed);
    }
    for start in 1..led.len() {
        let is_in_circle = passed.get(start) == Some(&false) && next.get(start) != Some(&0);
        let length = if is_in_circle {
            walk(start, &next, &mut passed)
        } else {
            0
        };
        let stored = u16::try_from(start).ok().and_then(|at| chains.tuple(at));
        if let Some(stored) = stored.filter(|_| length > 0) {
            let message = format!("{length} versions of a row lead to each other in a circle");
            let draft = stored.draft(&UPDATE_CHAIN_CYCLE, message, CTID);
            out.add(draft.fact("versions", length));
        }
    }
}

/// Marks what is reached for the first time; how many that was.
fn walk(start: usize, next: &[u16], passed: &mut [bool]) -> usize {
    let mut at = start;
    let mut length = 0;
    while let Some(place) = passed.get_mut(at).filter(|passed| !**passed) {
        *place = true;
        length += 1;
        at = match next.get(at) {
            Some(to) if *to != 0 => usize::from(*to),
            _ => break,
        };
    }
    length
}

fn flags(chains: &Chains<'_>, out: &mut Findings) {
    for (old, new) in chains.updates() {
        let in_place = old.tuple.t_infomask2() & HEAP_HOT_UPDATED != 0;
        let heap_only = new.tuple.t_infomask2() & HEAP_ONLY_TUPLE != 0;
        let message = match (in_place, heap_only) {
            (true, false) => format!(
                "updated in place to line pointer {}, which is not heap-only",
                new.number
            ),
            (false, true) => format!(
                "updated, not in place, to line pointer {}, which is heap-only",
                new.number
            ),
            _ => continue,
        };
        let draft = old.draft(&HOT_FLAGS_DISAGREE, message, INFOMASK2);
        out.add(draft.fact("next_item", new.number));
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder, put_u16};
    use pgclinic_format::{LinePointer, LpFlags};

    use super::*;
    use crate::trial::Trial;

    fn tuple(xmin: u32, xmax: u32, next: u16, infomask2: u16) -> Vec<u8> {
        let tuple = TupleBuilder::new(1).xids(xmin, xmax).infomask(0x2100);
        let mut bytes = tuple.ctid(0, next).finish();
        put_u16(&mut bytes, 18, infomask2 | 1);
        bytes
    }

    fn redirect(target: u16) -> LinePointer {
        LinePointer::new(target, LpFlags::Redirect, 0)
    }

    fn told(page: PageBuilder) -> Vec<String> {
        Trial::table().told(&UpdateChainLinks, &page.finish(0))
    }

    #[test]
    fn a_healthy_chain_and_a_reused_line_pointer_are_right() {
        let page = PageBuilder::new(8192, &[])
            .line_pointer(redirect(2))
            .item(&tuple(800, 810, 3, 0xC000))
            .item(&tuple(810, 0, 3, 0x8000))
            .item(&tuple(801, 811, 3, 0x4000))
            .item(&tuple(802, 812, 6, 0))
            .item(&tuple(812, 0, 6, 0));
        assert!(told(page).is_empty());
    }

    #[test]
    fn two_ways_to_one_row() {
        let page = PageBuilder::new(8192, &[])
            .line_pointer(redirect(3))
            .line_pointer(redirect(3))
            .item(&tuple(800, 0, 3, 0x8000))
            .item(&tuple(801, 810, 6, 0x4000))
            .item(&tuple(802, 810, 6, 0x4000))
            .item(&tuple(810, 0, 6, 0x8000));
        let expected = [
            "2 update-chains-meet: redirect 2 leads to line pointer 3, and redirect 1 does too",
            "5 update-chains-meet: row 5 leads to line pointer 6, and row 4 does too",
        ];
        assert_eq!(told(page), expected);
    }

    #[test]
    fn a_circle_has_no_beginning() {
        let page = PageBuilder::new(8192, &[])
            .item(&tuple(800, 810, 2, 0xC000))
            .item(&tuple(810, 820, 3, 0xC000))
            .item(&tuple(820, 800, 1, 0xC000))
            .item(&tuple(800, 810, 5, 0x4000))
            .item(&tuple(810, 0, 5, 0x8000));
        let expected = "1 update-chain-cycle: 3 versions of a row lead to each other in a circle";
        assert_eq!(told(page), [expected]);
    }

    #[test]
    fn a_chain_that_begins_behind_an_unknown_updater_is_no_circle() {
        let shared = TupleBuilder::new(1).xids(800, 40).infomask(0x1900);
        let page = PageBuilder::new(8192, &[])
            .item(&shared.ctid(0, 2).finish())
            .item(&tuple(805, 810, 3, 0))
            .item(&tuple(810, 0, 3, 0));
        assert!(told(page).is_empty());
    }

    #[test]
    fn both_ends_say_what_kind_of_update_it_was() {
        let page = PageBuilder::new(8192, &[])
            .item(&tuple(800, 810, 2, 0))
            .item(&tuple(810, 0, 2, 0x8000))
            .item(&tuple(801, 811, 4, 0x4000))
            .item(&tuple(811, 0, 4, 0));
        let expected = [
            "1 hot-flags-disagree: updated, not in place, to line pointer 2, which is heap-only",
            "3 hot-flags-disagree: updated in place to line pointer 4, which is not heap-only",
        ];
        assert_eq!(told(page), expected);
    }
}
