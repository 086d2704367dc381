//! One thread: reads a piece, finds its rows, prints those that are wanted.

use pgclinic_format::checksum::page_checksum;
use pgclinic_format::datum::Limits;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, HeapTuple, Page};

use super::Rows;
use super::account::{LossPlace, Tally};
use super::crew::{Crew, Job, TableWork};
use super::page_rows::{PageState, each_row};
use super::pieces::Piece;
use crate::texts::Texts;
use crate::values::chunk_index::{Chunk, RunGatherer, tuples};
use crate::values::{Cells, ChunkReader, Taking};
use crate::visible::{Judge, Verdict};

/// Bytes of text that a thread gathers before it writes them, if its turn has come.
const AHEAD_BYTES: usize = 4 << 20;

pub(super) struct Worker<'c> {
    crew: &'c Crew<'c>,
    judge: Judge<'c>,
    buffer: Vec<u8>,
    cells: Cells,
    bench: Option<Bench<'c>>,
}

/// What is made for a table and used for all its pieces.
struct Bench<'c> {
    table: usize,
    texts: Texts,
    chunks: Option<ChunkReader<'c>>,
}

/// A piece of a table that is being printed.
struct Printing {
    table: usize,
    piece: u64,
    out: Vec<u8>,
    tally: Tally,
}

impl<'c> Worker<'c> {
    pub(super) fn new(crew: &'c Crew<'c>) -> Self {
        Worker {
            judge: Judge::new(crew.cluster),
            crew,
            buffer: Vec::new(),
            cells: Cells::default(),
            bench: None,
        }
    }

    pub(super) fn work(&mut self) {
        while let Some(job) = self.crew.next() {
            match job {
                Job::Chunks { table, piece } => self.gather(table, piece),
                Job::Rows { table, piece } => self.print(table, piece),
            }
        }
    }

    /// Reads a piece into the buffer; what could not be read is a loss.
    fn read(&mut self, piece: &Piece, in_toast: bool, tally: &mut Tally) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(usize::try_from(piece.len).unwrap_or(0), 0);
        let source = self.crew.cluster.source();
        let read = source.read_at(&piece.path, piece.offset, &mut buffer);
        let page_bytes = usize::try_from(self.crew.cluster.build.block_size).unwrap_or(8192);
        let mut lose = |pages: usize, why: String| {
            tally.damaged_pages += pages as u64;
            tally.lose(LossPlace {
                in_toast,
                ..LossPlace::page(piece.first_block, why)
            });
        };
        match read {
            Err(error) => {
                let pages = buffer.len().div_ceil(page_bytes);
                lose(
                    pages,
                    format!("{pages} blocks from here cannot be read: {error}"),
                );
                buffer.clear();
            }
            Ok(count) if count < buffer.len() => {
                let pages = (buffer.len() - count).div_ceil(page_bytes);
                lose(
                    pages,
                    format!("{pages} of the blocks from here are gone: the file became shorter"),
                );
                buffer.truncate(count);
            }
            Ok(_) => {}
        }
        self.crew.progress.advance(piece.len);
        buffer
    }

    /// Finds the chunks of a piece of a TOAST relation.
    fn gather(&mut self, table: usize, number: u64) {
        let crew = self.crew;
        let Some(work) = crew.tables.get(table) else {
            return;
        };
        let Some(toast) = &work.toast else { return };
        let mut gatherer = RunGatherer::default();
        let mut tally = Tally::default();
        if let Some(piece) = toast.pieces.get(number) {
            let buffer = self.read(&piece, true, &mut tally);
            for (block, page) in pages(&buffer, &piece, crew) {
                self.gather_page(page, block, &mut gatherer, &mut tally);
            }
            self.buffer = buffer;
        }
        toast.gather(gatherer.finish());
        work.add(tally);
    }

    fn gather_page(
        &self,
        page: Page<'_>,
        block: BlockNo,
        gatherer: &mut RunGatherer,
        tally: &mut Tally,
    ) {
        match self.look(page, block) {
            Ok(PageState::Empty) => return,
            Ok(_) => {}
            Err(why) => {
                tally.damaged_pages += 1;
                tally.lose(LossPlace {
                    in_toast: true,
                    ..LossPlace::page(block, why)
                });
            }
        }
        for (item, tuple) in tuples(page, 1) {
            if let Some(chunk) = Chunk::of(tuple) {
                let place = Tid {
                    block,
                    offset: item,
                };
                let verdict = self.judge.verdict(tuple, place);
                gatherer.push(chunk, block, item, verdict);
            }
        }
    }

    /// What a page is, or what is wrong with it.
    fn look(&self, page: Page<'_>, block: BlockNo) -> Result<PageState, &'static str> {
        match PageState::of(page) {
            PageState::Empty => return Ok(PageState::Empty),
            PageState::Broken => return Err("the header of the page makes no sense"),
            PageState::Sound => {}
        }
        let checked = self.crew.cluster.checksums() == Some(true);
        if checked && page.pd_checksum() != page_checksum(page.bytes(), block) {
            return Err("the checksum of the page is wrong: its rows were taken as they are");
        }
        Ok(PageState::Sound)
    }

    fn print(&mut self, table: usize, number: u64) {
        let crew = self.crew;
        let Some(work) = crew.tables.get(table) else {
            return;
        };
        self.set_up(table, work);
        let mut printing = Printing {
            table,
            piece: number,
            out: Vec::new(),
            tally: Tally::default(),
        };
        let form = crew.options.form;
        if number == 0 {
            form.head(&work.table.columns, &mut printing.out);
        }
        if let Some(piece) = work.pieces.get(number) {
            let buffer = self.read(&piece, false, &mut printing.tally);
            for (block, page) in pages(&buffer, &piece, crew) {
                if crew.options.selection.takes_block(block.into()) {
                    self.print_page(work, page, block, &mut printing);
                }
            }
            self.buffer = buffer;
        }
        if number + 1 == work.piece_count() {
            form.tail(&mut printing.out);
        }
        work.add(printing.tally);
        crew.lines.hand_in(table, number, printing.out);
    }

    fn set_up(&mut self, table: usize, work: &'c TableWork) {
        if self
            .bench
            .as_ref()
            .is_some_and(|bench| bench.table == table)
        {
            return;
        }
        let crew = self.crew;
        let limits = Limits {
            major: crew.cluster.layout.major,
            output_bytes: usize::try_from(crew.value_bytes_max()).unwrap_or(usize::MAX),
            ..Limits::default()
        };
        let chunks = work.toast.as_ref().and_then(|toast| {
            let (_, files) = work.table.toast.as_ref()?;
            let (source, build) = (crew.cluster.source().as_ref(), crew.cluster.build);
            Some(ChunkReader::new(source, files, build, toast.index()))
        });
        self.bench = Some(Bench {
            table,
            texts: Texts::new(&work.table.columns, limits, crew.charset),
            chunks,
        });
    }

    fn print_page(
        &mut self,
        work: &TableWork,
        page: Page<'_>,
        block: BlockNo,
        printing: &mut Printing,
    ) {
        match self.look(page, block) {
            Ok(PageState::Empty) => return,
            Ok(_) => {}
            Err(why) => {
                printing.tally.damaged_pages += 1;
                printing.tally.lose(LossPlace::page(block, why));
                if PageState::of(page) == PageState::Broken {
                    return;
                }
            }
        }
        let mut tally = std::mem::take(&mut printing.tally);
        each_row(
            page,
            block,
            &self.judge,
            &mut tally,
            |tuple, place, verdict, tally| {
                let wanted = self.crew.options.rows == Rows::All || verdict.counts();
                count(verdict, tally);
                if wanted {
                    print_row(
                        self.crew,
                        &mut self.cells,
                        self.bench.as_mut(),
                        work,
                        (tuple, place, verdict),
                        &mut printing.out,
                        tally,
                    );
                }
            },
        );
        printing.tally = tally;
        if printing.out.len() > AHEAD_BYTES {
            self.crew
                .lines
                .write_ahead(printing.table, printing.piece, &mut printing.out);
        }
    }
}

/// The whole pages of a piece, and the last one filled up with zeros if it is cut.
fn pages<'b>(
    buffer: &'b [u8],
    piece: &Piece,
    crew: &Crew<'_>,
) -> impl Iterator<Item = (BlockNo, Page<'b>)> {
    let page_bytes = usize::try_from(crew.cluster.build.block_size).unwrap_or(8192);
    let blocks = piece.first_block..;
    let pages = buffer.chunks_exact(page_bytes).filter_map(Page::parse);
    blocks.zip(pages)
}

fn count(verdict: Verdict, tally: &mut Tally) {
    let rows = &mut tally.rows;
    match verdict {
        Verdict::Live => rows.live += 1,
        Verdict::Deleted | Verdict::Aborted => rows.dead += 1,
        Verdict::PerhapsLive | Verdict::PerhapsDeleted | Verdict::PerhapsReplaced => {
            rows.uncertain += 1;
        }
        Verdict::Carved => rows.carved += 1,
    }
}

fn print_row(
    crew: &Crew<'_>,
    cells: &mut Cells,
    bench: Option<&mut Bench<'_>>,
    work: &TableWork,
    (tuple, place, verdict): (HeapTuple<'_>, Tid, Verdict),
    out: &mut Vec<u8>,
    tally: &mut Tally,
) {
    let Some(bench) = bench else { return };
    let mut taking = Taking {
        table: &work.table,
        chunks: bench.chunks.as_mut(),
        partial: crew.options.partial,
        chunk_bytes: crew.cluster.build.toast_chunk,
        value_bytes_max: crew.value_bytes_max(),
    };
    cells.fill(tuple, place, verdict, &mut taking);
    crew.options
        .form
        .row(&cells.row(tuple), &mut bench.texts, out);
    tally.rows.written += 1;
    let mut is_partial = false;
    for fault in cells
        .faults()
        .iter()
        .cloned()
        .chain(bench.texts.take_faults())
    {
        is_partial = true;
        let column = work.table.columns.get(fault.column);
        tally.lose(LossPlace {
            column: column.map(|column| column.name.clone()),
            ..LossPlace::row(place, fault.kind)
        });
    }
    tally.rows.partial += u64::from(is_partial);
}
