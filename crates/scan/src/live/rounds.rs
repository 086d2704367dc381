//! Rounds: what was made, grew or moved while it was read is read again with a newer view.

use pgclinic_cluster::{LIVE_LIMITS, OpenError};
use pgclinic_model::Progress;

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Round {
    number: u32,
}

impl Round {
    /// The first one, to which everything is new.
    pub const FIRST: Round = Round { number: 1 };

    /// Nothing was read before.
    pub fn is_first(self) -> bool {
        self == Round::FIRST
    }

    /// What it leaves open stays so.
    pub fn is_last(self) -> bool {
        self.number >= LIVE_LIMITS.rounds
    }
}

/// What a round leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// All of it is settled.
    Nothing,
    /// Some of it may be settled by a newer view.
    Something,
}

/// How they ended.
#[derive(Debug)]
pub enum RoundsEnd {
    /// All of it is settled.
    Settled,
    /// The last round left something.
    Unsettled,
    /// The run was interrupted before the next one.
    Interrupted,
    /// No newer view could be had.
    Lost(OpenError),
}

/// Work in rounds.
pub trait Rounds {
    /// What a round sees of the cluster.
    type View;
    /// Why the work cannot go on at all.
    type Failure;

    /// The view of this round; nothing where there is nothing left to do.
    ///
    /// # Errors
    /// Where the cluster cannot be opened any more.
    fn view(&mut self, round: Round) -> Result<Option<Self::View>, OpenError>;

    /// Works on what is open.
    ///
    /// # Errors
    /// Those of the work.
    fn round(&mut self, view: &Self::View, round: Round) -> Result<Left, Self::Failure>;
}

/// Works in rounds until nothing is left, or the limit is reached.
///
/// # Errors
/// Those of the work.
pub fn rounds<W: Rounds>(work: &mut W, progress: &dyn Progress) -> Result<RoundsEnd, W::Failure> {
    let mut round = Round::FIRST;
    loop {
        let view = match work.view(round) {
            Ok(Some(view)) => view,
            Ok(None) => return Ok(RoundsEnd::Settled),
            Err(why) => return Ok(RoundsEnd::Lost(why)),
        };
        if work.round(&view, round)? == Left::Nothing {
            return Ok(RoundsEnd::Settled);
        }
        if progress.is_interrupted() {
            return Ok(RoundsEnd::Interrupted);
        }
        if round.is_last() {
            return Ok(RoundsEnd::Unsettled);
        }
        round.number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that changes a file between rounds: its length at each view, nothing where the
    /// cluster is gone. A file is settled when it has the length of the round before.
    struct File {
        lens: Vec<Option<u64>>,
        seen: Vec<u64>,
        stops_after: usize,
    }

    impl Rounds for File {
        type View = u64;
        type Failure = &'static str;

        fn view(&mut self, _: Round) -> Result<Option<u64>, OpenError> {
            let at = self.seen.len().min(self.lens.len() - 1);
            self.lens[at].map(Some).ok_or(OpenError::Incremental)
        }

        fn round(&mut self, len: &u64, round: Round) -> Result<Left, &'static str> {
            assert_eq!(round.is_first(), self.seen.is_empty());
            assert_eq!(
                round.is_last(),
                self.seen.len() + 1 == LIVE_LIMITS.rounds as usize
            );
            let is_same = self.seen.last() == Some(len);
            self.seen.push(*len);
            match (self.seen.len() > self.stops_after, is_same) {
                (true, _) => Err("the disk is full"),
                (_, true) => Ok(Left::Nothing),
                (_, false) => Ok(Left::Something),
            }
        }
    }

    struct Stops(bool);

    impl Progress for Stops {
        fn expect(&self, _: u64) {}

        fn advance(&self, _: u64) {}

        fn is_interrupted(&self) -> bool {
            self.0
        }
    }

    fn run(lens: &[Option<u64>]) -> (String, Vec<u64>) {
        let mut file = File {
            lens: lens.to_vec(),
            seen: Vec::new(),
            stops_after: usize::MAX,
        };
        let end = rounds(&mut file, &Stops(false));
        (format!("{end:?}"), file.seen)
    }

    #[test]
    fn they_end_when_nothing_is_left() {
        assert_eq!(run(&[Some(8)]), ("Ok(Settled)".into(), vec![8, 8]));
        let grows = [Some(8), Some(16), Some(24), Some(24)];
        let expected = ("Ok(Settled)".into(), vec![8, 16, 24, 24]);
        assert_eq!(run(&grows), expected);
        let shrinks = [Some(8), Some(0)];
        assert_eq!(run(&shrinks), ("Ok(Settled)".into(), vec![8, 0, 0]));
    }

    #[test]
    fn what_never_settles_stays_open_after_the_last() {
        let grows: Vec<_> = (0..20).map(Some).collect();
        let expected = (
            "Ok(Unsettled)".into(),
            (0..LIVE_LIMITS.rounds.into()).collect(),
        );
        assert_eq!(run(&grows), expected);
    }

    #[test]
    fn a_cluster_that_vanishes_ends_them() {
        let lost = || "Ok(Lost(Incremental))".to_owned();
        assert_eq!(run(&[Some(8), None]), (lost(), vec![8]));
        assert_eq!(run(&[None]), (lost(), vec![]));
    }

    #[test]
    fn an_interruption_and_a_failure_end_them_after_a_round() {
        let mut file = File {
            lens: (0..20).map(Some).collect(),
            seen: Vec::new(),
            stops_after: 1,
        };
        let end = rounds(&mut file, &Stops(true));
        assert!(matches!(end, Ok(RoundsEnd::Interrupted)), "{end:?}");
        assert_eq!(file.seen.len(), 1);
        let end = rounds(
            &mut File {
                seen: vec![],
                ..file
            },
            &Stops(false),
        );
        assert_eq!(end.err(), Some("the disk is full"));
    }
}
