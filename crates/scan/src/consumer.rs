//! What is done with pages.

use std::any::Any;
use std::cell::Cell;

use pgclinic_format::BlockNo;
use pgclinic_model::document::NotChecked;
use pgclinic_source::SourceError;

use crate::task::ForkTask;
use crate::units::{Unit, UnitSize};
use crate::window::{WINDOW_BYTES, Window};

/// A consumer of the one scan. Pages come in any order and on any thread; within a unit they come
/// in order.
pub trait Consumer: Sync {
    /// What a worker keeps from fork to fork: buffers, a limit on costly searches.
    type Worker: Send;
    /// What one worker has gathered of one fork.
    type Share: Send;

    /// How much a worker takes at once.
    fn unit(&self) -> UnitSize {
        UnitSize::Bytes(WINDOW_BYTES)
    }

    /// Once a thread, before its first unit.
    fn begin_worker(&self) -> Self::Worker;

    /// Before a worker's first unit of a fork.
    fn begin_fork(&self, fork: &ForkTask<'_>, worker: &mut Self::Worker) -> Self::Share;

    /// `false`: none of the unit is wanted and nothing of it is read or booked; `end_unit` comes
    /// all the same.
    fn begin_unit(&self, _unit: &Unit<'_>, _leg: &mut LegOf<Self>) -> bool {
        true
    }

    /// Examines a window, and says how many of its bytes were not asked for. Before each page it
    /// tells the cursor where it is.
    fn window(&self, window: &Window<'_>, cursor: &Cursor, leg: &mut LegOf<Self>) -> u64;

    /// Bytes that did not come: once a unit and reason, in the order of their places.
    fn fault(&self, fault: &Fault<'_>, leg: &mut LegOf<Self>);

    /// Exactly once for every unit that was begun, whatever became of it.
    fn end_unit(&self, _unit: &Unit<'_>, _end: UnitEnd, _leg: &mut LegOf<Self>) {}

    /// In the place of `end_unit` for a unit that was not begun, or whose end failed: the consumer
    /// failed in its fork.
    fn abandon(&self, _unit: &Unit<'_>, _fault: &InternalFault) {}

    /// The consumer itself failed on a page. It puts in order what it was in the middle of; `false`
    /// gives up the rest of the fork.
    fn after_panic(&self, _fault: &InternalFault, _leg: &mut LegOf<Self>) -> bool {
        false
    }

    /// All shares of a fork, in the order of their first units; one fork after the other, in their
    /// order, as soon as they are done. The result must not depend on how units were dealt.
    fn merge(&self, fork: &ForkTask<'_>, shares: Vec<Self::Share>);
}

/// What is at hand while a worker is in a fork.
pub struct Leg<W, S> {
    /// The worker's own.
    pub worker: W,
    /// What it gathers of this fork.
    pub share: S,
}

/// The leg of a consumer.
pub type LegOf<C> = Leg<<C as Consumer>::Worker, <C as Consumer>::Share>;

/// The page that a consumer has in hand, so that a failure of ours has a place.
#[derive(Default)]
pub struct Cursor {
    block: Cell<Option<BlockNo>>,
}

impl Cursor {
    /// The next page is this one.
    pub fn at(&self, block: BlockNo) {
        self.block.set(Some(block));
    }

    pub(crate) fn take(&self) -> Option<BlockNo> {
        self.block.take()
    }
}

/// How a unit ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitEnd {
    /// All of its bytes were examined.
    Whole,
    /// Some of its bytes did not come.
    Faulty,
    /// The run was interrupted.
    Interrupted,
    /// The consumer did not want it.
    PassedOver,
    /// The consumer failed on it.
    Internal,
}

/// Bytes of a unit that did not come.
#[derive(Clone, Debug)]
pub struct Fault<'a> {
    /// Counted through the whole scan.
    pub unit: u64,
    /// Their file.
    pub path: &'a str,
    /// The block at their begin.
    pub first_block: u64,
    /// Their place in the file.
    pub offset: u64,
    /// How many.
    pub len: u64,
    /// Why.
    pub kind: FaultKind,
}

/// Why bytes did not come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The file ends before them, though it was longer when it was listed; or it is not there any
    /// more. Beside a running server they are booked nowhere: a newer view of the relation says
    /// what became of them.
    Shrunk,
    /// They cannot be read.
    Unreadable(SourceError),
}

impl FaultKind {
    /// For people.
    pub fn why(&self) -> String {
        match self {
            FaultKind::Shrunk => "the file shrank while it was read".into(),
            FaultKind::Unreadable(error) => error.to_string(),
        }
    }
}

/// A failure of our own on a page: a bug, which ends neither the run nor the report.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct InternalFault {
    /// The file.
    pub path: String,
    /// The page, counted through the fork; unknown between pages.
    pub block: Option<BlockNo>,
    /// What the failing code said.
    pub message: String,
}

impl InternalFault {
    /// The entry for a report.
    pub fn not_checked(&self) -> NotChecked {
        let what = match self.block {
            Some(block) => format!("block {block} of {}", self.path),
            None => self.path.clone(),
        };
        let message = self.message.lines().next().unwrap_or_default();
        NotChecked {
            what: format!("internal: {what}"),
            why: format!(
                "pgclinic itself failed there: {message}; please report this line, and the page if you may"
            ),
            inherent: false,
        }
    }
}

/// The words of a panic.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".into())
}
