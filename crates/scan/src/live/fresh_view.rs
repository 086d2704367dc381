//! A newer view of a cluster whose server runs.

use pgclinic_cluster::wal::Replayed;
use pgclinic_cluster::{Cluster, LIVE_LIMITS, OpenError};
use pgclinic_format::Lsn;

/// The cluster as its files had it at one moment, and the same with WAL applied in memory.
pub struct FreshView<'a> {
    files: Files<'a>,
    is_replayed: bool,
    replayed: Option<(Cluster, Replayed)>,
}

enum Files<'a> {
    Given(&'a Cluster),
    Opened(Box<Cluster>),
}

/// Where in the WAL a view stands.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ViewPosition {
    /// The redo position of the last checkpoint: a change that has its record before it is in the
    /// files.
    pub redo: Option<Lsn>,
    /// Where the WAL on disk ended when the view was taken.
    pub wal_end: Option<Lsn>,
}

impl ViewPosition {
    /// The WAL of the newer view begins before that of this one ends: no checkpoint between them
    /// hides a change of what this one read.
    pub fn overlaps(self, newer: ViewPosition) -> bool {
        let positions = self.wal_end.zip(newer.redo);
        positions.is_some_and(|(end, redo)| redo <= end)
    }
}

/// What a view makes of the WAL, if there is any to apply.
type Replay<'r> = &'r dyn Fn(&Cluster) -> Option<(Cluster, Replayed)>;

impl<'a> FreshView<'a> {
    /// Opens the cluster again, at most [`LIVE_LIMITS`]`.views` times with a `pause` between, until
    /// its control file and WAL are of one moment and all that WAL could be applied: what commits
    /// while a server removes WAL would be known, and its changes would not. The last that could be
    /// opened is taken as it is.
    ///
    /// # Errors
    /// Where it could not be opened a single time.
    pub fn take(
        cluster: &Cluster,
        pause: &dyn Fn(),
        replay: Replay<'_>,
    ) -> Result<Self, OpenError> {
        let open = || {
            let opened = Box::new(cluster.refresh()?);
            Ok(FreshView::unread(Files::Opened(opened)))
        };
        let is_settled = |view: &mut Self, is_last| view.is_settled(replay, is_last);
        settled(pause, open, is_settled)
    }

    /// The cluster as it was opened.
    pub fn of(cluster: &'a Cluster, replay: Replay<'_>) -> Self {
        let mut view = FreshView::unread(Files::Given(cluster));
        view.apply(replay);
        view
    }

    fn unread(files: Files<'a>) -> Self {
        FreshView {
            files,
            is_replayed: false,
            replayed: None,
        }
    }

    fn apply(&mut self, replay: Replay<'_>) {
        if !self.is_replayed {
            self.is_replayed = true;
            self.replayed = replay(self.cluster());
        }
    }

    /// Nothing of it was on its way. WAL is applied where that is so, or nothing else comes.
    fn is_settled(&mut self, replay: Replay<'_>, is_last: bool) -> bool {
        let is_steady = self.cluster().is_steady();
        if is_steady || is_last {
            self.apply(replay);
        }
        is_steady && self.replayed().is_none_or(|replayed| replayed.reached_end)
    }

    /// The files as they are.
    pub fn cluster(&self) -> &Cluster {
        match &self.files {
            Files::Given(cluster) => cluster,
            Files::Opened(cluster) => cluster,
        }
    }

    /// The same with WAL applied, where there was any to apply.
    pub fn replayed_cluster(&self) -> &Cluster {
        let replayed = self.replayed.as_ref();
        replayed.map_or_else(|| self.cluster(), |(cluster, _)| cluster)
    }

    /// What became of WAL.
    pub fn replayed(&self) -> Option<&Replayed> {
        self.replayed.as_ref().map(|(_, replayed)| replayed)
    }

    /// Where in the WAL it stands.
    pub fn position(&self) -> ViewPosition {
        let cluster = self.cluster();
        ViewPosition {
            redo: cluster.recovery().map(|recovery| recovery.start.redo),
            wal_end: cluster.replay().map(|replay| replay.end.record),
        }
    }
}

/// The first view that is settled, or the newest one. `is_settled` is told whether no other comes,
/// and is asked again of the newest where none that is newer could be opened.
fn settled<V, E>(
    pause: &dyn Fn(),
    mut open: impl FnMut() -> Result<V, E>,
    mut is_settled: impl FnMut(&mut V, bool) -> bool,
) -> Result<V, E> {
    let mut newest = open();
    for next in 1..=LIVE_LIMITS.views {
        let is_last = next == LIVE_LIMITS.views;
        if let Ok(view) = &mut newest
            && is_settled(view, is_last)
        {
            break;
        }
        if is_last {
            break;
        }
        pause();
        match open() {
            Err(_) if newest.is_ok() => {}
            view => newest = view,
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// What the server shows at each opening: nothing, where it cannot be opened, or a number of
    /// files; the last one from then on. A view is settled when it has as many as are awaited.
    /// Given: the view, and pauses.
    fn taken(shown: &[Option<u32>], awaited: u32) -> (Result<u32, &'static str>, u32, u32) {
        let (opened, pauses) = (Cell::new(0), Cell::new(0));
        let open = || {
            let number = opened.replace(opened.get() + 1);
            let at = usize::try_from(number).expect("few");
            shown[at.min(shown.len() - 1)].ok_or("there is no such directory")
        };
        let view = settled(&|| pauses.set(pauses.get() + 1), open, |files, _| {
            *files == awaited
        });
        (view, opened.get(), pauses.get())
    }

    #[test]
    fn a_view_settles_at_once_or_later() {
        assert_eq!(taken(&[Some(7)], 7), (Ok(7), 1, 0));
        let growing = [Some(5), Some(6), Some(7), Some(8)];
        assert_eq!(taken(&growing, 7), (Ok(7), 3, 2));
        let shrinking = [Some(9), Some(7)];
        assert_eq!(taken(&shrinking, 7), (Ok(7), 2, 1));
    }

    #[test]
    fn one_that_never_settles_is_taken_as_it_is() {
        let growing = [1, 2, 3, 4, 5, 6].map(Some);
        assert_eq!(taken(&growing, 7), (Ok(4), LIVE_LIMITS.views, 3));
    }

    #[test]
    fn a_cluster_that_vanishes_leaves_the_newest_that_was_there() {
        assert_eq!(taken(&[Some(5), None], 7), (Ok(5), 4, 3));
        assert_eq!(taken(&[None, None, Some(7)], 7), (Ok(7), 3, 2));
        let why = Err("there is no such directory");
        assert_eq!(taken(&[None], 7), (why, 4, 3));
    }

    #[test]
    fn the_newest_is_told_that_no_other_comes() {
        for shown in [&[Some(5)][..], &[Some(5), None]] {
            let told = Cell::new(false);
            let open = {
                let mut shown = shown
                    .iter()
                    .copied()
                    .chain(std::iter::repeat(shown[shown.len() - 1]));
                move || shown.next().flatten().ok_or(())
            };
            let view = settled(&|| {}, open, |_, is_last| {
                told.set(is_last);
                false
            });
            assert_eq!((view, told.get()), (Ok(5), true));
        }
    }
}
