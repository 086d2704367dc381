//! The pass over tables and their TOAST relations, as a consumer of the scan: what a worker takes
//! at once is a piece of a file of rows.

use pgclinic_cluster::RunGatherer;
use pgclinic_format::page::is_never_begun;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::Progress;
use pgclinic_model::document::{LossPlace, Tally};
use pgclinic_model::{plural, verb_of};
use pgclinic_scan::{
    Consumer, Cursor, Fault, FaultKind, ForkTask, InternalFault, Leg, LegOf, Scan, Unit, UnitEnd,
    UnitSize, Window, Writes, lease_of_windows,
};

use super::database_job::{DatabaseJob, TableWork};
use super::error::SalvageError;
use super::ordered_files::Piece;
use super::row_sink::RowSink;
use super::worker::{Printing, Worker};
use crate::carve::PageState;

/// Bytes of a piece, but for the end of its file. What is gathered into columns is written by
/// pieces, too.
const PIECE_BYTES: u64 = 1 << 20;

/// Prints all tables of a crew.
pub(super) fn run(crew: &DatabaseJob<'_>) {
    let progress = UntilStopped {
        progress: crew.progress,
        outlet: &crew.outlet,
    };
    let source = crew.cluster.source();
    let scan = Scan {
        source: source.as_ref(),
        forks: forks_of(crew),
        threads: crew.options.threads,
        progress: &progress,
        // What a running server took away is a loss until a newer view finds the table without it.
        writes: Writes::Nobody,
    };
    let _windows = lease_of_windows(&crew.options.memory, crew.options.threads);
    scan.run(&TablesPass { crew });
}

/// The TOAST relation of a table before its own pages, whose values ask for it.
fn forks_of<'a>(crew: &'a DatabaseJob<'_>) -> Vec<ForkTask<'a>> {
    let build = crew.cluster.build;
    let mut forks = Vec::new();
    for (table, work) in crew.tables.iter().enumerate() {
        let toast = work.table.toast.as_ref().filter(|_| work.toast.is_some());
        if let Some((_, files)) = toast {
            let task = ForkTask::whole(number(table, Role::Toast), files, build);
            forks.push(task.within_segments());
        }
        let task = ForkTask::whole(number(table, Role::Rows), &work.table.files, build);
        forks.push(task.within_segments().with_empty_unit());
    }
    forks
}

/// What a fork is to its table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Toast,
    Rows,
}

fn number(table: usize, role: Role) -> usize {
    2 * table + usize::from(role == Role::Rows)
}

fn role_of(number: usize) -> (usize, Role) {
    let role = if number.is_multiple_of(2) {
        Role::Toast
    } else {
        Role::Rows
    };
    (number / 2, role)
}

/// Where the destination takes nothing any more, nothing more is read.
struct UntilStopped<'a> {
    progress: &'a dyn Progress,
    outlet: &'a RowSink<'a>,
}

impl Progress for UntilStopped<'_> {
    fn expect(&self, bytes: u64) {
        self.progress.expect(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.progress.advance(bytes);
    }

    fn is_interrupted(&self) -> bool {
        if self.progress.is_interrupted() {
            self.outlet.stop(None);
        }
        self.outlet.is_stopped()
    }
}

struct TablesPass<'c> {
    crew: &'c DatabaseJob<'c>,
}

/// What one worker has of one fork.
enum InHand<'c> {
    Toast(Gathering<'c>),
    Rows(Printing<'c>),
    Nothing,
}

/// A piece of a TOAST relation whose chunks are being found.
pub(super) struct Gathering<'c> {
    work: &'c TableWork,
    pub(super) gatherer: RunGatherer,
    pub(super) tally: Tally,
}

impl<'c> Consumer for TablesPass<'c> {
    type Worker = Worker<'c>;
    type Share = InHand<'c>;

    fn unit(&self) -> UnitSize {
        let block = u64::from(self.crew.cluster.build.block_size).max(1);
        UnitSize::Bytes(PIECE_BYTES / block * block)
    }

    fn begin_worker(&self) -> Worker<'c> {
        Worker::new(self.crew)
    }

    fn begin_fork(&self, _: &ForkTask<'_>, _: &mut Worker<'c>) -> InHand<'c> {
        InHand::Nothing
    }

    fn begin_unit(&self, unit: &Unit<'_>, leg: &mut LegOf<Self>) -> bool {
        let crew = self.crew;
        let (table, role) = self.role(unit);
        let Some(work) = crew.tables.get(table) else {
            return false;
        };
        if role == Role::Toast {
            leg.share = InHand::Toast(Gathering {
                work,
                gatherer: RunGatherer::default(),
                tally: Tally::default(),
            });
            return true;
        }
        leg.worker.set_up(table, work);
        let mut printing = Printing {
            table,
            work,
            piece: unit.of_fork,
            out: crew.outlet.piece(),
            row_start: 0,
            tally: Tally::default(),
        };
        if unit.of_fork == 0 && !crew.is_partial() {
            crew.options.form.head(&work.table, &mut printing.out.rows);
        }
        printing.row_start = printing.out.rows.len();
        leg.share = InHand::Rows(printing);
        let first = block_of(unit.first_block());
        let blocks = unit.len.div_ceil(crew.block_bytes());
        crew.takes_some(first..first.saturating_add(block_of(blocks)))
    }

    fn window(&self, window: &Window<'_>, cursor: &Cursor, leg: &mut LegOf<Self>) -> u64 {
        let Leg { worker, share } = leg;
        for (block, bytes) in window.pages() {
            cursor.at(block);
            self.page(bytes, block, worker, share);
        }
        let half = window.half_page();
        if !half.is_empty() {
            // What is missing of a page that is cut short by the end of the file is taken for
            // zeros.
            let block = block_of(window.first_block + window.pages().count() as u64);
            cursor.at(block);
            let mut padded = half.to_vec();
            padded.resize(usize::try_from(self.crew.block_bytes()).unwrap_or(8192), 0);
            // A page that nobody began is one of zeros, which indexes and maps may deny.
            if !is_never_begun(half) {
                share.lose(block, 1, "the file ends within this block".into());
            }
            if is_counted(half, &padded) {
                share.tally(|tally| tally.pages.unread = tally.pages.unread.saturating_sub(1));
            }
            self.page(&padded, block, worker, share);
        }
        0
    }

    fn fault(&self, fault: &Fault<'_>, leg: &mut LegOf<Self>) {
        let pages = fault.len.div_ceil(self.crew.block_bytes());
        let block = block_of(fault.first_block);
        let why = match &fault.kind {
            FaultKind::Unreadable(error) if error.is_out_of_reach() => {
                let blocks = plural(pages, "block");
                let why = format!("{blocks} from here cannot be read: {error}");
                return leg.share.leave(block, pages, why);
            }
            FaultKind::Unreadable(error) => {
                format!(
                    "{pages} from here cannot be read: {error}",
                    pages = plural(pages, "block")
                )
            }
            FaultKind::Shrunk => {
                format!(
                    "{pages} from here {are} gone: the file became shorter",
                    pages = plural(pages, "block"),
                    are = verb_of(pages, "are")
                )
            }
        };
        leg.share.lose(block, pages, why);
    }

    fn end_unit(&self, unit: &Unit<'_>, end: UnitEnd, leg: &mut LegOf<Self>) {
        match std::mem::replace(&mut leg.share, InHand::Nothing) {
            InHand::Toast(own) => {
                // The account is whole before the last rows are.
                own.work.add(own.tally);
                self.gathered(own.work, own.gatherer);
            }
            // Half a piece is none: its table has no file, and nothing is told of its rows.
            InHand::Rows(_) if end == UnitEnd::Interrupted => {}
            InHand::Rows(mut own) => {
                if unit.is_last && !self.crew.is_partial() {
                    self.crew.options.form.tail(&mut own.out.rows);
                }
                own.work.add(own.tally);
                self.handed_in(own.work, own.table, own.piece, own.out);
            }
            // The run was interrupted before the unit was begun; others may wait for what it would
            // have given.
            InHand::Nothing if end != UnitEnd::Interrupted => self.give_nothing(unit),
            InHand::Nothing => self.gather_nothing(unit),
        }
    }

    /// What is lost of a page on which we fail may be whole: the table is incomplete, not damaged.
    fn after_panic(&self, fault: &InternalFault, leg: &mut LegOf<Self>) -> bool {
        let Some(block) = fault.block else {
            return false;
        };
        if let InHand::Rows(own) = &mut leg.share {
            own.out.rows.truncate(own.row_start);
            let rows = &mut own.tally.rows;
            rows.found = rows.written + rows.skipped;
        }
        leg.share.leave(block, 1, fault.not_checked().why);
        true
    }

    fn abandon(&self, unit: &Unit<'_>, fault: &InternalFault) {
        let (table, role) = self.role(unit);
        if let Some(work) = self.crew.tables.get(table) {
            let mut share = match role {
                Role::Toast => InHand::Toast(Gathering {
                    work,
                    gatherer: RunGatherer::default(),
                    tally: Tally::default(),
                }),
                Role::Rows => InHand::Rows(Printing {
                    table,
                    work,
                    piece: unit.of_fork,
                    out: Piece::default(),
                    row_start: 0,
                    tally: Tally::default(),
                }),
            };
            let pages = unit.len.div_ceil(self.crew.block_bytes());
            let why = fault.not_checked().why;
            share.leave(block_of(unit.first_block()), pages, why);
            share.tally(|tally| work.add(std::mem::take(tally)));
        }
        self.give_nothing(unit);
    }

    /// Pieces went out one by one.
    fn merge(&self, _: &ForkTask<'_>, _: Vec<InHand<'c>>) {}
}

impl<'c> TablesPass<'c> {
    fn role(&self, unit: &Unit<'_>) -> (usize, Role) {
        role_of(unit.fork_number)
    }

    fn page(&self, bytes: &[u8], block: BlockNo, worker: &mut Worker<'c>, share: &mut InHand<'c>) {
        let Some(page) = Page::parse(bytes) else {
            return;
        };
        match share {
            InHand::Toast(own) => {
                worker.gather_page(page, block, own);
            }
            InHand::Rows(own) => {
                if self.crew.takes_block(block) {
                    worker.print_page(page, block, own);
                }
            }
            InHand::Nothing => {}
        }
    }

    /// A piece that gives no row: those who wait for it go on.
    fn give_nothing(&self, unit: &Unit<'_>) {
        let (table, role) = self.role(unit);
        let Some(work) = self.crew.tables.get(table) else {
            return;
        };
        match role {
            Role::Toast => self.gathered(work, RunGatherer::default()),
            Role::Rows => self.handed_in(work, table, unit.of_fork, Piece::default()),
        }
    }

    /// The same where the run was interrupted: no table gets a file any more.
    fn gather_nothing(&self, unit: &Unit<'_>) {
        let (table, role) = self.role(unit);
        if let (Some(work), Role::Toast) = (self.crew.tables.get(table), role) {
            self.gathered(work, RunGatherer::default());
        }
    }

    fn gathered(&self, work: &TableWork, gatherer: RunGatherer) {
        let Some(toast) = &work.toast else { return };
        if let Err(source) = toast.gather(gatherer.finish()) {
            let folder = &self.crew.options.spill_folder;
            let failure = SalvageError::destination(folder, "sort in", source);
            self.crew.outlet.stop(Some(failure));
        }
    }

    fn handed_in(&self, work: &TableWork, table: usize, piece: u64, out: Piece) {
        self.crew.outlet.hand_in(table, piece, out);
        work.piece_is_done();
        self.crew.note_finished();
    }
}

impl Gathering<'_> {
    /// Values with chunks of this page may not be what they say.
    pub(super) fn doubt(&self, block: BlockNo) {
        if let Some(toast) = &self.work.toast {
            toast.doubt(block);
        }
    }
}

impl InHand<'_> {
    fn tally(&mut self, work: impl FnOnce(&mut Tally)) {
        match self {
            InHand::Toast(own) => work(&mut own.tally),
            InHand::Rows(own) => work(&mut own.tally),
            InHand::Nothing => {}
        }
    }

    /// So many pages from this one on are lost.
    fn lose(&mut self, block: BlockNo, pages: u64, why: String) {
        self.tally(|tally| tally.damaged_pages += pages);
        self.give_nothing(block, pages, why);
    }

    /// So many pages from this one on may be whole, and could not be read.
    fn leave(&mut self, block: BlockNo, pages: u64, why: String) {
        self.tally(|tally| {
            tally.pages_not_read += pages;
            tally.out_of_reach = true;
        });
        self.give_nothing(block, pages, why);
    }

    /// So many pages from this one on give nothing.
    fn give_nothing(&mut self, block: BlockNo, pages: u64, why: String) {
        let in_toast = matches!(self, InHand::Toast(_));
        self.tally(|tally| {
            if !in_toast {
                let end = block.saturating_add(block_of(pages));
                (block..end).for_each(|block| tally.doubt_block(block));
                tally.pages.unread += pages;
            }
            tally.lose(LossPlace {
                in_toast,
                ..LossPlace::page(block, why)
            });
        });
    }
}

/// Blocks beyond the largest number do not exist.
/// A page within which the file ends is counted by what is left of it: by all of its line pointers,
/// those of missing rows too, or as one that makes no sense.
fn is_counted(half: &[u8], padded: &[u8]) -> bool {
    Page::parse(padded).is_some_and(|page| match PageState::of(page) {
        PageState::Sound => usize::from(page.pd_lower()) <= half.len(),
        PageState::Broken => true,
        PageState::Empty | PageState::Emptied => false,
    })
}

fn block_of(number: u64) -> BlockNo {
    BlockNo::try_from(number).unwrap_or(BlockNo::MAX)
}
