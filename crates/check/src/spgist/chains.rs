//! The chains of leaf tuples on one SP-GiST page.

use pgclinic_format::spgist::{SpgistPage, State};

/// What is wrong with the link of a tuple.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChainFault {
    /// The next tuple is not on the page.
    NotThere {
        /// Its line pointer number.
        next: u16,
    },
    /// The next tuple is no row.
    NotLive {
        /// Its line pointer number.
        next: u16,
        /// What it is.
        state: State,
    },
    /// Two tuples have the same next one.
    Shared {
        /// Its line pointer number.
        next: u16,
        /// The other one that names it.
        other: u16,
    },
    /// The tuple follows itself.
    Circle,
    /// The tuples of a root are not chained.
    OnRoot {
        /// What is named.
        next: u16,
    },
}

/// State and links of the tuples of a page.
pub(crate) struct Chains {
    /// By line pointer number less one.
    states: Vec<Option<State>>,
    next: Vec<u16>,
    previous: Vec<u16>,
    shared: Vec<(u16, u16, u16)>,
}

impl Chains {
    /// Of a leaf page.
    pub(crate) fn of(page: SpgistPage<'_>) -> Chains {
        let count = usize::from(page.page().line_pointer_count());
        let mut chains = Chains {
            states: vec![None; count],
            next: vec![0; count],
            previous: vec![0; count],
            shared: Vec::new(),
        };
        for (number, tuple) in page.tuples() {
            let live = tuple.state() == State::Live;
            put(&mut chains.states, number, Some(tuple.state()));
            put(
                &mut chains.next,
                number,
                if live { tuple.leaf().next() } else { 0 },
            );
        }
        for (number, next) in (1..).zip(chains.next.clone()) {
            match get(&chains.previous, next) {
                Some(0) => put(&mut chains.previous, next, number),
                Some(other) => chains.shared.push((number, next, other)),
                None => {}
            }
        }
        chains
    }

    /// State of a tuple; nothing when it is not there.
    pub(crate) fn state(&self, number: u16) -> Option<State> {
        get(&self.states, number).flatten()
    }

    /// A row that no other row leads to.
    pub(crate) fn is_head(&self, number: u16) -> bool {
        self.state(number) == Some(State::Live) && get(&self.previous, number) == Some(0)
    }

    /// Rows that no other row leads to.
    pub(crate) fn heads(&self) -> impl Iterator<Item = u16> + '_ {
        let numbers = (1..).take(self.states.len());
        numbers.filter(|number| self.is_head(*number))
    }

    /// The rows of a chain, each once.
    pub(crate) fn rows(&self, head: u16) -> Vec<u16> {
        let mut rows = Vec::new();
        let mut at = head;
        while self.state(at) == Some(State::Live) && rows.len() <= self.states.len() {
            rows.push(at);
            at = get(&self.next, at).unwrap_or(0);
        }
        rows
    }

    /// Links that cannot be right, with the tuple that holds them.
    pub(crate) fn faults(&self, is_root: bool) -> Vec<(u16, ChainFault)> {
        let mut faults = Vec::new();
        for (number, next) in (1..).zip(self.next.iter().copied()) {
            if next == 0 {
                continue;
            }
            let fault = match self.state(next) {
                _ if is_root => ChainFault::OnRoot { next },
                Some(State::Live) => continue,
                Some(state) => ChainFault::NotLive { next, state },
                None => ChainFault::NotThere { next },
            };
            faults.push((number, fault));
        }
        if is_root {
            return faults;
        }
        let shared = self.shared.iter();
        faults.extend(shared.map(|(number, next, other)| {
            (
                *number,
                ChainFault::Shared {
                    next: *next,
                    other: *other,
                },
            )
        }));
        faults.extend(self.circle().map(|number| (number, ChainFault::Circle)));
        faults
    }

    /// The first row that no head leads to.
    fn circle(&self) -> Option<u16> {
        let mut seen = vec![false; self.states.len()];
        for row in self.heads().flat_map(|head| self.rows(head)) {
            put(&mut seen, row, true);
        }
        let mut numbers = (1..).take(self.states.len());
        numbers.find(|number| {
            self.state(*number) == Some(State::Live) && get(&seen, *number) == Some(false)
        })
    }
}

fn get<T: Copy>(list: &[T], number: u16) -> Option<T> {
    list.get(usize::from(number).checked_sub(1)?).copied()
}

fn put<T>(list: &mut [T], number: u16, value: T) {
    let index = usize::from(number).checked_sub(1);
    if let Some(slot) = index.and_then(|index| list.get_mut(index)) {
        *slot = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_format::Page;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};
    use pgclinic_format::spgist::{PAGE_ID, SPGIST_LEAF};

    /// A leaf page whose tuples have these states and next ones.
    fn faults(tuples: &[(u32, u16)], is_root: bool) -> Vec<(u16, ChainFault)> {
        let mut special = [0; 8];
        put_u16(&mut special, 0, SPGIST_LEAF);
        put_u16(&mut special, 6, PAGE_ID);
        let mut builder = PageBuilder::new(8192, &special);
        for (state, next) in tuples {
            let mut tuple = [0; 16];
            put_u32(&mut tuple, 0, 16 << 2 | state);
            put_u16(&mut tuple, 4, *next);
            builder = builder.item(&tuple);
        }
        let bytes = builder.finish(3);
        let page = Page::parse(&bytes).and_then(SpgistPage::parse);
        Chains::of(page.expect("a page")).faults(is_root)
    }

    #[test]
    fn chains_end_and_do_not_meet() {
        assert_eq!(faults(&[(0, 2), (0, 3), (0, 0), (2, 0)], false), []);
        assert_eq!(
            faults(&[(0, 9)], false),
            [(1, ChainFault::NotThere { next: 9 })]
        );
        let placeholder = State::Placeholder;
        assert_eq!(
            faults(&[(0, 2), (3, 0)], false),
            [(
                1,
                ChainFault::NotLive {
                    next: 2,
                    state: placeholder
                }
            )]
        );
        assert_eq!(
            faults(&[(0, 3), (0, 3), (0, 0)], false),
            [(2, ChainFault::Shared { next: 3, other: 1 })]
        );
    }

    #[test]
    fn circles_are_found() {
        assert_eq!(
            faults(&[(0, 0), (0, 3), (0, 2)], false),
            [(2, ChainFault::Circle)]
        );
        assert_eq!(faults(&[(0, 1)], false), [(1, ChainFault::Circle)]);
    }

    #[test]
    fn a_root_has_no_chains() {
        assert_eq!(faults(&[(0, 0), (0, 0)], true), []);
        assert_eq!(
            faults(&[(0, 2), (0, 0)], true),
            [(1, ChainFault::OnRoot { next: 2 })]
        );
    }
}
