//! The second look at what seemed wrong, since the server may have been writing it.
//!
//! ```text
//! print of what is there ─► wait, newer view ─► examine it again
//!   gone, or nothing is wrong    it was on its way
//!   wrong, and the same bytes    it counts: all that it may speak of was in the WAL by then
//!   wrong, and other bytes       once more; at the last look, what was wrong in the same way before counts
//! ```
//!
//! A place that seems to be lost (a page of zeros, a file that is too short or missing) is not
//! sound again only because it has the same bytes: the server may hold it in memory. That is
//! settled by a checkpoint whose redo position ([`ViewPosition`]) is past `first_look`.

use pgclinic_cluster::LIVE_LIMITS;
use pgclinic_format::Lsn;
use pgclinic_model::Progress;

use crate::live::fresh_view::ViewPosition;
use crate::live::server::LiveServer;

/// A place in which something seemed wrong.
#[derive(Clone, Debug)]
pub struct Suspect<P, R, C> {
    /// Where.
    pub place: P,
    /// Of the bytes before the newer view was taken; nothing where they could not be read.
    pub print: Option<R>,
    /// What was wrong at the look before, from the second one on.
    pub claim: Option<C>,
    /// Where the WAL on disk ended after the place was first seen: no record up to then is later
    /// than that look.
    pub first_look: Option<Lsn>,
}

impl<P, R, C> Suspect<P, R, C> {
    fn new(place: P) -> Self {
        Suspect {
            place,
            print: None,
            claim: None,
            first_look: None,
        }
    }

    /// The same for the next look.
    pub fn still(self, claim: C) -> Self {
        Suspect {
            claim: Some(claim),
            ..self
        }
    }
}

/// The suspect of a second look.
pub type SuspectOf<S> =
    Suspect<<S as SecondLook>::Place, <S as SecondLook>::Print, <S as SecondLook>::Claim>;

/// Who knows how to look.
pub trait SecondLook {
    /// Where something seemed wrong.
    type Place;
    /// Of its bytes.
    type Print: PartialEq;
    /// What is wrong there.
    type Claim;

    /// Reads a place, before anything is read that is to judge it.
    fn print(&self, place: &Self::Place) -> Option<Self::Print>;

    /// A newer view is wanted though no place is left.
    fn awaits_view(&self) -> bool {
        false
    }

    /// Takes a newer view, and says where it stands; nothing where there is none any more.
    fn refresh(&mut self) -> Option<ViewPosition>;

    /// Looks at all places under that view, and gives those that are open still. What is wrong
    /// still is ruled by [`Look::ruling`].
    fn examine(&mut self, suspects: Vec<SuspectOf<Self>>, look: Look) -> Vec<SuspectOf<Self>>;
}

/// A look after the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// There will be no other.
    pub is_last: bool,
    /// Of its view.
    pub position: ViewPosition,
}

/// What becomes of a suspect in which something is wrong still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ruling {
    /// It was so before: it counts.
    Counts,
    /// It was written meanwhile: once more.
    Again,
    /// It was written between any two looks, and nobody knows.
    Unsettled,
}

impl Look {
    /// By the bytes that are there now; `lasts` says of the claim of the look before that it still
    /// holds.
    pub fn ruling<P, R: PartialEq, C>(
        self,
        suspect: &Suspect<P, R, C>,
        now: Option<&R>,
        lasts: impl FnOnce(&C) -> bool,
    ) -> Ruling {
        if suspect.print.as_ref() == now {
            return Ruling::Counts;
        }
        match (self.is_last, &suspect.claim) {
            (false, _) => Ruling::Again,
            (true, Some(before)) if lasts(before) => Ruling::Counts,
            (true, _) => Ruling::Unsettled,
        }
    }
}

/// Looks again until all is settled, at most [`LIVE_LIMITS`]`.second_looks` times, and gives what
/// stays open: all of it where no newer view could be had.
pub fn look_again<S: SecondLook>(
    second: &mut S,
    places: Vec<S::Place>,
    server: &dyn LiveServer,
    progress: &dyn Progress,
) -> Vec<SuspectOf<S>> {
    let mut open: Vec<SuspectOf<S>> = places.into_iter().map(Suspect::new).collect();
    for number in 1..=LIVE_LIMITS.second_looks {
        if open.is_empty() && !second.awaits_view() {
            break;
        }
        for suspect in &mut open {
            suspect.print = second.print(&suspect.place);
        }
        server.wait();
        let Some(position) = second.refresh() else {
            break;
        };
        for suspect in &mut open {
            suspect.first_look = suspect.first_look.or(position.wal_end);
        }
        let look = Look {
            is_last: number == LIVE_LIMITS.second_looks || progress.is_interrupted(),
            position,
        };
        open = second.examine(open, look);
        if look.is_last {
            break;
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A page of a server at each moment, the last one from then on: nothing where its file is gone
    /// or too short. A page is wrong when it holds a `!`, in the way that the byte before it says.
    struct Page {
        moments: Vec<Option<&'static str>>,
        /// A second passes with each wait.
        now: AtomicUsize,
        gone_after: usize,
        told: Vec<(&'static str, Option<Lsn>)>,
        looks: Cell<u32>,
    }

    impl Page {
        fn read(&self) -> Option<&'static str> {
            let now = self.now.load(Ordering::Relaxed);
            self.moments[now.min(self.moments.len() - 1)]
        }
    }

    struct Ticking<'a>(&'a AtomicUsize);

    impl LiveServer for Ticking<'_> {
        fn wait(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Quiet(bool);

    impl Progress for Quiet {
        fn expect(&self, _: u64) {}

        fn advance(&self, _: u64) {}

        fn is_interrupted(&self) -> bool {
            self.0
        }
    }

    /// The time is that of the page.
    struct Watch<'a>(&'a mut Page, &'a AtomicUsize);

    impl SecondLook for Watch<'_> {
        type Place = ();
        type Print = &'static str;
        type Claim = char;

        fn print(&self, (): &()) -> Option<&'static str> {
            self.0.read()
        }

        fn refresh(&mut self) -> Option<ViewPosition> {
            let now = self.1.load(Ordering::Relaxed);
            self.0.now.store(now, Ordering::Relaxed);
            let lsn = Lsn(u64::try_from(now).expect("few") * 100);
            (now <= self.0.gone_after).then_some(ViewPosition {
                redo: Some(Lsn(lsn.0 / 2)),
                wal_end: Some(lsn),
            })
        }

        fn examine(&mut self, suspects: Vec<SuspectOf<Self>>, look: Look) -> Vec<SuspectOf<Self>> {
            self.0.looks.set(self.0.looks.get() + 1);
            let mut left = Vec::new();
            for suspect in suspects {
                let now = self.0.read();
                let wrong = now.and_then(|text| text.split_once('!'));
                let Some(claim) = wrong.and_then(|(before, _)| before.chars().last()) else {
                    continue;
                };
                match look.ruling(&suspect, now.as_ref(), |before| *before == claim) {
                    Ruling::Counts => {
                        self.0
                            .told
                            .push((now.unwrap_or_default(), suspect.first_look));
                    }
                    Ruling::Again | Ruling::Unsettled => left.push(suspect.still(claim)),
                }
            }
            left
        }
    }

    /// What counts with the WAL position of its first look, how many stay open, and looks.
    fn looked(
        moments: &[Option<&'static str>],
        gone_after: usize,
        interrupted: bool,
    ) -> (Vec<(&'static str, Option<Lsn>)>, usize, u32) {
        let mut page = Page {
            moments: moments.to_vec(),
            now: AtomicUsize::new(0),
            gone_after,
            told: Vec::new(),
            looks: Cell::new(0),
        };
        let time = AtomicUsize::new(0);
        let mut watch = Watch(&mut page, &time);
        let left = look_again(&mut watch, vec![()], &Ticking(&time), &Quiet(interrupted));
        (page.told, left.len(), page.looks.get())
    }

    const NEVER: usize = usize::MAX;
    const FIRST: Option<Lsn> = Some(Lsn(100));

    #[test]
    fn what_has_the_same_bytes_counts_at_once() {
        assert_eq!(
            looked(&[Some("a!")], NEVER, false),
            (vec![("a!", FIRST)], 0, 1)
        );
    }

    #[test]
    fn what_was_on_its_way_is_forgotten() {
        for sound in [Some("sound"), None] {
            assert_eq!(looked(&[Some("a!"), sound], NEVER, false), (vec![], 0, 1));
            let later = [Some("a!1"), Some("a!2"), sound];
            assert_eq!(looked(&later, NEVER, false), (vec![], 0, 2));
        }
    }

    #[test]
    fn what_is_written_and_wrong_in_the_same_way_counts_at_the_last_look() {
        let same = [Some("a!1"), Some("a!2"), Some("a!3"), Some("a!4")];
        assert_eq!(looked(&same, NEVER, false), (vec![("a!4", FIRST)], 0, 3));
        let later = [Some("a!1"), Some("a!2"), Some("a!2")];
        assert_eq!(looked(&later, NEVER, false), (vec![("a!2", FIRST)], 0, 2));
    }

    #[test]
    fn what_never_settles_stays_open() {
        let moving = [Some("a!1"), Some("b!2"), Some("c!3"), Some("d!4")];
        assert_eq!(looked(&moving, NEVER, false), (vec![], 1, 3));
    }

    #[test]
    fn what_comes_back_is_looked_at_with_other_bytes() {
        let grows = [None, Some("a!1"), Some("a!1")];
        assert_eq!(looked(&grows, NEVER, false), (vec![("a!1", FIRST)], 0, 2));
    }

    #[test]
    fn without_a_newer_view_all_of_it_stays_open() {
        assert_eq!(looked(&[Some("a!")], 0, false), (vec![], 1, 0));
        let moving = [Some("a!1"), Some("b!2"), Some("b!2")];
        assert_eq!(looked(&moving, 1, false), (vec![], 1, 1));
    }

    #[test]
    fn an_interruption_makes_a_look_the_last() {
        let moving = [Some("a!1"), Some("b!2"), Some("b!2")];
        assert_eq!(looked(&moving, NEVER, true), (vec![], 1, 1));
    }
}
