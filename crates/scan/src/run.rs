//! The pass: workers claim units in order until none is left.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pgclinic_format::BlockNo;
use pgclinic_model::Progress;
use pgclinic_source::{Range, Source, SourceErrorKind};

use crate::aligned::AlignedBuffer;
use crate::companion::{Companion, CompanionShare};
use crate::consumer::{
    Consumer, Cursor, Fault, FaultKind, InternalFault, Leg, LegOf, UnitEnd, message_of,
};
use crate::ledger::Ledger;
use crate::pool::guarded;
use crate::settling::Settling;
use crate::task::ForkTask;
use crate::units::{Unit, Units};
use crate::window::{WINDOW_BYTES, Window};

/// Bytes asked for at once, ahead of their use.
const AHEAD_BYTES: u64 = 8 << 20;
/// Failures of ours in one fork after which the rest of it is left out: a bug that every page meets
/// would only repeat itself.
pub(crate) const INTERNAL_MAX: usize = 16;

/// Whether a server may write to the files while they are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writes {
    /// Nobody writes: bytes that were listed and do not come are lost.
    Nobody,
    /// A server writes: files that were truncated or removed are its doing, and are booked nowhere.
    Server,
}

/// A pass over forks.
pub struct Scan<'a> {
    /// Where the bytes come from.
    pub source: &'a dyn Source,
    /// What is read, in this order.
    pub forks: Vec<ForkTask<'a>>,
    /// Workers.
    pub threads: NonZeroUsize,
    /// Who is told of bytes, and says when to stop. The bytes are announced by the caller.
    pub progress: &'a dyn Progress,
    /// Who writes meanwhile.
    pub writes: Writes,
}

/// What became of a pass.
#[derive(Debug)]
pub struct ScanReport {
    /// Every byte of it.
    pub ledger: Ledger,
    /// Failures of ours, in the order of their places.
    pub internal: Vec<InternalFault>,
    /// It was interrupted.
    pub interrupted: bool,
}

impl Scan<'_> {
    /// Bytes that will be read.
    pub fn bytes(&self) -> u64 {
        self.forks.iter().map(ForkTask::bytes).sum()
    }

    /// Hands every page to the consumer.
    ///
    /// # Panics
    /// When the ledger does not balance, which is a bug of this crate.
    pub fn run<C: Consumer>(&self, consumer: &C) -> ScanReport {
        self.run_with(consumer, None)
    }

    /// The same, and hands them to a companion as well. What becomes of the companion is nothing to
    /// the report.
    ///
    /// # Panics
    /// When the ledger does not balance, which is a bug of this crate.
    pub fn run_with<C: Consumer>(
        &self,
        consumer: &C,
        companion: Option<&dyn Companion>,
    ) -> ScanReport {
        let units = Units::new(&self.forks, consumer.unit());
        let failures: Vec<Failures> = self.forks.iter().map(|_| Failures::default()).collect();
        let settling = Settling::new(&self.forks, &units);
        let pass = Pass {
            scan: self,
            consumer,
            companion,
            units: &units,
            failures: &failures,
            settling: &settling,
        };
        let wanted = usize::try_from(units.count()).unwrap_or(usize::MAX);
        let threads = self.threads.get().min(wanted.max(1));
        let ends = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| pass.work())).collect();
            let mut ends = vec![pass.work()];
            for other in others {
                ends.push(other.join().expect("what a consumer does is caught"));
            }
            ends
        });
        let of_merges = settling.finish(consumer);
        self.report(ends, of_merges)
    }

    /// Adds up what the workers have, in the order of places.
    fn report(&self, ends: Vec<WorkerEnd>, of_merges: Vec<InternalFault>) -> ScanReport {
        let mut ledger = Ledger::default();
        let mut internal = Vec::new();
        for end in ends {
            ledger.add(&end.ledger);
            internal.extend(end.internal);
        }
        internal.sort();
        assert!(
            ledger.is_balanced(),
            "the ledger of the scan does not balance: {ledger:?}"
        );
        let internal = internal.into_iter().map(|(_, fault)| fault);
        ScanReport {
            ledger,
            internal: internal.chain(of_merges).collect(),
            interrupted: self.progress.is_interrupted(),
        }
    }
}

/// How often the consumer failed in a fork.
#[derive(Default)]
struct Failures {
    count: AtomicUsize,
    is_given_up: AtomicBool,
}

struct Pass<'p, C: Consumer> {
    scan: &'p Scan<'p>,
    consumer: &'p C,
    companion: Option<&'p dyn Companion>,
    units: &'p Units<'p>,
    failures: &'p [Failures],
    settling: &'p Settling<'p, C::Share>,
}

/// What one worker has at its end.
#[derive(Default)]
struct WorkerEnd {
    ledger: Ledger,
    internal: Vec<(u64, InternalFault)>,
}

impl<C: Consumer> Pass<'_, C> {
    fn work(&self) -> WorkerEnd {
        let mut worker = Worker {
            pass: self,
            cursor: Cursor::default(),
            at_hand: AtHand::Nothing,
            beside: None,
            end: WorkerEnd::default(),
        };
        let mut buffer = AlignedBuffer::new(usize::try_from(WINDOW_BYTES).unwrap_or(0));
        while let Some(unit) = self.units.claim() {
            worker.unit(&unit, &mut buffer);
            self.settling.unit_ended(unit.fork);
        }
        worker.leave_fork();
        worker.end
    }
}

/// What a worker has at hand between two units.
enum AtHand<W, S> {
    /// It has not begun, or lost what it had by a failure of ours.
    Nothing,
    /// It is between two forks.
    Idle(W),
    /// It is in this fork, since this unit.
    InFork(usize, u64, Leg<W, S>),
}

struct Worker<'w, C: Consumer> {
    pass: &'w Pass<'w, C>,
    cursor: Cursor,
    at_hand: AtHand<C::Worker, C::Share>,
    /// What the companion gathers of the fork, as long as it has not failed on it.
    beside: Option<Box<dyn CompanionShare + 'w>>,
    end: WorkerEnd,
}

/// A stretch of bytes of one unit that did not come, as long as the reason stays the same.
struct OpenFault {
    offset: u64,
    len: u64,
    kind: FaultKind,
}

impl<'w, C: Consumer> Worker<'w, C> {
    fn unit(&mut self, unit: &Unit<'_>, buffer: &mut AlignedBuffer) {
        let scan = self.pass.scan;
        let is_given_up = self.failures(unit).is_given_up.load(Ordering::Relaxed);
        let Some(fork) = scan.forks.get(unit.fork) else {
            return;
        };
        if is_given_up || !self.enter_fork(unit, fork) {
            self.end.ledger.skip(unit.len);
            scan.progress.advance(unit.len);
            self.abandon(unit);
            return;
        }
        if scan.progress.is_interrupted() {
            self.end.ledger.skip(unit.len);
            self.end_unit(unit, UnitEnd::Interrupted);
            return;
        }
        match self.guarded(unit, |pass, leg, _| pass.consumer.begin_unit(unit, leg)) {
            Some(true) => {
                let end = self.windows(unit, fork, buffer);
                self.end_unit(unit, end);
            }
            Some(false) => {
                scan.progress.advance(unit.len);
                self.end_unit(unit, UnitEnd::PassedOver);
            }
            None => {
                self.end.ledger.skip(unit.len);
                scan.progress.advance(unit.len);
                self.end_unit(unit, UnitEnd::Internal);
            }
        }
    }

    /// Begins the fork of a unit where this worker is not in it yet.
    fn enter_fork(&mut self, unit: &Unit<'_>, fork: &ForkTask<'_>) -> bool {
        if matches!(&self.at_hand, AtHand::InFork(own, _, _) if *own == unit.fork) {
            return true;
        }
        self.leave_fork();
        let idle = std::mem::replace(&mut self.at_hand, AtHand::Nothing);
        let consumer = self.pass.consumer;
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let mut worker = match idle {
                AtHand::Idle(worker) => worker,
                _ => consumer.begin_worker(),
            };
            let share = consumer.begin_fork(fork, &mut worker);
            Leg { worker, share }
        }));
        match begun {
            Ok(leg) => {
                self.pass.settling.enter(unit.fork);
                self.beside = self.begin_beside(fork);
                self.at_hand = AtHand::InFork(unit.fork, unit.number, leg);
                true
            }
            Err(payload) => {
                self.failed(unit, None, message_of(payload.as_ref()));
                self.give_up(unit);
                false
            }
        }
    }

    fn begin_beside(&self, fork: &ForkTask<'_>) -> Option<Box<dyn CompanionShare + 'w>> {
        let companion: &'w dyn Companion = self.pass.companion?;
        guarded(|| companion.begin_fork(fork.files)).ok().flatten()
    }

    fn leave_fork(&mut self) {
        let beside = self.beside.take();
        match std::mem::replace(&mut self.at_hand, AtHand::Nothing) {
            AtHand::InFork(fork, first_unit, leg) => {
                let Leg { worker, share } = leg;
                // Where the companion fails, it reads the fork once more.
                if let Some(beside) = beside {
                    guarded(|| beside.keep(first_unit)).ok();
                }
                let Pass {
                    settling, consumer, ..
                } = self.pass;
                settling.leave(*consumer, fork, first_unit, share);
                self.at_hand = AtHand::Idle(worker);
            }
            other => self.at_hand = other,
        }
    }

    /// Reads a unit window by window.
    fn windows(
        &mut self,
        unit: &Unit<'_>,
        fork: &ForkTask<'_>,
        buffer: &mut AlignedBuffer,
    ) -> UnitEnd {
        let mut end = UnitEnd::Whole;
        let mut open = None;
        let mut done = 0;
        while done < unit.len {
            let len = (unit.len - done).min(WINDOW_BYTES);
            let space = buffer.space(usize::try_from(len).unwrap_or(0));
            if self.pass.scan.progress.is_interrupted() {
                self.end.ledger.skip(unit.len - done);
                end = UnitEnd::Interrupted;
                break;
            }
            self.read_ahead(unit, done);
            if let Some(fault) = self.window(unit, fork, done, space) {
                end = UnitEnd::Faulty;
                self.join_fault(unit, fork, &mut open, fault);
            }
            self.pass.scan.progress.advance(len);
            done += len;
            if self.failures(unit).is_given_up.load(Ordering::Relaxed) {
                self.end.ledger.skip(unit.len - done);
                self.pass.scan.progress.advance(unit.len - done);
                end = UnitEnd::Internal;
                break;
            }
        }
        self.tell_fault(unit, fork, open);
        end
    }

    /// Reads one window and hands it on; gives what did not come of it.
    fn window(
        &mut self,
        unit: &Unit<'_>,
        fork: &ForkTask<'_>,
        done: u64,
        space: &mut [u8],
    ) -> Option<OpenFault> {
        let scan = self.pass.scan;
        let is_running = scan.writes == Writes::Server;
        let offset = unit.offset + done;
        let len = space.len() as u64;
        let (bytes, fault) = match scan.source.read_at(&unit.file.path, offset, space) {
            Ok(read) => (space.get(..read).unwrap_or_default(), None),
            Err(error) if is_running && error.kind == SourceErrorKind::NotFound => {
                (&[][..], Some(FaultKind::Shrunk))
            }
            Err(error) => (&[][..], Some(FaultKind::Unreadable(error))),
        };
        let block = fork.block_bytes();
        let came = bytes.len() as u64;
        let is_short = came < len;
        // Half a page is no page: where the file shrank, what is left of the last one is lost too.
        let kept = if is_short { came - came % block } else { came };
        if kept > 0 {
            self.end.ledger.check(kept, block);
        }
        let is_moved = is_running && !matches!(fault, Some(FaultKind::Unreadable(_)));
        if is_short && !is_moved {
            self.end.ledger.lose(len - kept);
        }
        if !bytes.is_empty() {
            let window = Window {
                fork,
                file: unit.file,
                offset,
                first_block: unit.file.first_block + (offset - unit.file.offset) / block,
                bytes,
            };
            self.examine(unit, window);
        }
        is_short.then(|| OpenFault {
            offset: offset + kept,
            len: len - kept,
            kind: fault.unwrap_or(FaultKind::Shrunk),
        })
    }

    /// Hands a window to the consumer, and what follows a page on which that fails again.
    fn examine(&mut self, unit: &Unit<'_>, window: Window<'_>) {
        self.examine_beside(&window);
        let mut rest = Some(window);
        while let Some(window) = rest.take() {
            let passed = self.guarded(unit, |pass, leg, cursor| {
                pass.consumer.window(&window, cursor, leg)
            });
            match passed {
                Some(bytes) => self.end.ledger.pass_over(bytes, window.fork.block_bytes()),
                None => rest = self.after_failure(unit, &window),
            }
        }
    }

    fn examine_beside(&mut self, window: &Window<'_>) {
        let Some(beside) = &mut self.beside else {
            return;
        };
        if guarded(|| beside.window(window)).is_err() {
            self.beside = None;
        }
    }

    /// What is left of a window after the page on which the consumer failed; the ledger has it as
    /// skipped.
    fn after_failure<'b>(&mut self, unit: &Unit<'_>, window: &Window<'b>) -> Option<Window<'b>> {
        let (_, fault) = self.end.internal.last().cloned()?;
        let block = window.fork.block_bytes();
        let after = fault.block.and_then(|failed| window.after(failed));
        let is_given_up = self.failures(unit).is_given_up.load(Ordering::Relaxed);
        let goes_on = !is_given_up
            && fault.block.is_some()
            && self
                .guarded(unit, |pass, leg, _| pass.consumer.after_panic(&fault, leg))
                .unwrap_or(false);
        let whole_pages = window.bytes.len() as u64 / block;
        let lost = if goes_on { 1 } else { whole_pages };
        self.end.ledger.fail(lost.min(whole_pages), block);
        if !goes_on {
            self.give_up(unit);
            return None;
        }
        after
    }

    /// Calls the consumer; nothing where it fails.
    fn guarded<R>(
        &mut self,
        unit: &Unit<'_>,
        call: impl FnOnce(&Pass<'_, C>, &mut LegOf<C>, &Cursor) -> R,
    ) -> Option<R> {
        let AtHand::InFork(_, _, leg) = &mut self.at_hand else {
            return None;
        };
        self.cursor.take();
        let (pass, cursor) = (self.pass, &self.cursor);
        match catch_unwind(AssertUnwindSafe(|| call(pass, leg, cursor))) {
            Ok(result) => Some(result),
            Err(payload) => {
                let block = self.cursor.take();
                self.failed(unit, block, message_of(payload.as_ref()));
                None
            }
        }
    }

    fn failed(&mut self, unit: &Unit<'_>, block: Option<BlockNo>, message: String) {
        let fault = InternalFault {
            path: unit.file.path.clone(),
            block,
            message,
        };
        self.end.internal.push((unit.number, fault));
        if self.failures(unit).count.fetch_add(1, Ordering::Relaxed) + 1 >= INTERNAL_MAX {
            self.give_up(unit);
        }
    }

    fn give_up(&self, unit: &Unit<'_>) {
        let failures = self.failures(unit);
        failures.is_given_up.store(true, Ordering::Relaxed);
    }

    fn failures(&self, unit: &Unit<'_>) -> &Failures {
        self.pass
            .failures
            .get(unit.fork)
            .expect("every fork has its count of failures")
    }

    fn end_unit(&mut self, unit: &Unit<'_>, end: UnitEnd) {
        let ended = self.guarded(unit, |pass, leg, _| pass.consumer.end_unit(unit, end, leg));
        if ended.is_none() {
            self.give_up(unit);
            self.abandon(unit);
        }
    }

    fn abandon(&mut self, unit: &Unit<'_>) {
        let consumer = self.pass.consumer;
        let fault = InternalFault {
            path: unit.file.path.clone(),
            block: None,
            message: "an earlier failure in this relation".into(),
        };
        let abandoned = guarded(|| consumer.abandon(unit, &fault));
        if let Err(failure) = abandoned {
            self.failed(unit, None, failure.message);
        }
    }

    /// Neighbours that did not come for the same reason are one fault.
    fn join_fault(
        &mut self,
        unit: &Unit<'_>,
        fork: &ForkTask<'_>,
        open: &mut Option<OpenFault>,
        fault: OpenFault,
    ) {
        match open {
            Some(own) if own.kind == fault.kind && own.offset + own.len == fault.offset => {
                own.len += fault.len;
            }
            _ => {
                let before = open.replace(fault);
                self.tell_fault(unit, fork, before);
            }
        }
    }

    fn tell_fault(&mut self, unit: &Unit<'_>, fork: &ForkTask<'_>, fault: Option<OpenFault>) {
        let Some(OpenFault { offset, len, kind }) = fault else {
            return;
        };
        let within = offset.saturating_sub(unit.file.offset) / fork.block_bytes();
        let fault = Fault {
            unit: unit.number,
            path: &unit.file.path,
            first_block: unit.file.first_block + within,
            offset,
            len,
            kind,
        };
        self.guarded(unit, |pass, leg, _| pass.consumer.fault(&fault, leg));
    }

    /// Asks for the bytes after the next ones of the file, once for each stretch of them.
    fn read_ahead(&self, unit: &Unit<'_>, done: u64) {
        let file = unit.file;
        let within = unit.offset + done - file.offset;
        if !within.is_multiple_of(AHEAD_BYTES) {
            return;
        }
        let rest = file.len.saturating_sub(within + AHEAD_BYTES);
        if rest > 0 {
            self.pass.scan.source.prefetch(&[Range {
                path: file.path.clone(),
                offset: file.offset + within + AHEAD_BYTES,
                len: rest.min(AHEAD_BYTES),
            }]);
        }
    }
}
