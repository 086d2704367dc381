//! Where each block of a file is: in which link of a chain, and at which place there.

use std::sync::Arc;

use pgclinic_format::incremental::{self, Fault, HEAD_BYTES};

use crate::chain::{ChainShape, part_of};
use crate::{Range, Result, Source, SourceError, SourceErrorKind, read_exact_at};

/// What the newest parts of a file say of its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    head: incremental::Head,
    /// Bytes of the whole file.
    pub(super) len: u64,
}

impl Head {
    pub(super) fn read(link: &dyn Source, part: &str, shape: ChainShape) -> Result<Self> {
        let mut bytes = [0; HEAD_BYTES];
        read_exact_at(link, part, 0, &mut bytes)?;
        let head = incremental::Head::parse(&bytes, shape.segment_blocks);
        let head = head.map_err(|fault| wrong(part, fault))?;
        let mut last = None;
        if let Some(before) = head.blocks.checked_sub(1) {
            let mut word = [0; 4];
            let at = HEAD_BYTES as u64 + u64::from(before) * 4;
            read_exact_at(link, part, at, &mut word)?;
            let block = u32::from_le_bytes(word);
            if block >= shape.segment_blocks {
                return Err(wrong(part, Fault::Number { block }));
            }
            last = Some(block);
        }
        let blocks = head.length_blocks(last);
        let len = u64::from(blocks) * u64::from(shape.block_bytes);
        Ok(Head { head, len })
    }

    fn numbers(&self, link: &dyn Source, part: &str, shape: ChainShape) -> Result<Vec<u32>> {
        let bytes = usize::try_from(self.head.numbers_bytes()).unwrap_or(usize::MAX);
        let mut bytes = vec![0; bytes];
        read_exact_at(link, part, HEAD_BYTES as u64, &mut bytes)?;
        let numbers = self.head.numbers(&bytes, shape.segment_blocks);
        numbers.map_err(|fault| wrong(part, fault))
    }
}

fn wrong(part: &str, fault: Fault) -> SourceError {
    SourceError::new(part, SourceErrorKind::Refused, fault.to_string())
}

/// A file of a link that gives blocks.
#[derive(Debug)]
struct Giver {
    link: usize,
    path: String,
}

/// Blocks that stand one behind the other in one file.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    blocks: u32,
    /// Which giver, and where; nothing for blocks that no link has, which are zeros.
    from: Option<(usize, u64)>,
}

/// For each block of a file, the backup of the chain that has it newest.
#[derive(Debug)]
pub(super) struct Resolved {
    givers: Vec<Giver>,
    runs: Vec<Run>,
    block_bytes: u64,
    len: u64,
}

impl Resolved {
    /// Looks for each block from the newest link to the oldest. `part` is what the last link has of
    /// `path`.
    pub(super) fn find(
        links: &[Arc<dyn Source>],
        path: &str,
        part: &str,
        shape: ChainShape,
    ) -> Result<Self> {
        let mut search = Search::default();
        let mut left = links.iter().enumerate().rev();
        let Some((newest, link)) = left.next() else {
            return Err(SourceError::not_found(path));
        };
        let head = Head::read(link.as_ref(), part, shape)?;
        let blocks = head.len / u64::from(shape.block_bytes.max(1));
        let places = usize::try_from(blocks).unwrap_or(usize::MAX);
        search.places = vec![None; places];
        search.take_parts(newest, link.as_ref(), (part, head), u32::MAX, shape)?;
        for (number, link) in left {
            // What lies behind the newest truncation is in the newest parts, or was never written.
            let below = head.head.truncation_blocks;
            if search.take_from(number, link.as_ref(), path, below, shape)? {
                return Ok(search.finish(shape.block_bytes));
            }
        }
        let why = "no link of the chain holds the whole file that its parts belong to";
        Err(SourceError::new(path, SourceErrorKind::Io, why))
    }

    /// About how much memory it takes, in runs.
    pub(super) fn cost(&self) -> usize {
        self.runs.len().saturating_add(16)
    }

    pub(super) fn read_at(
        &self,
        links: &[Arc<dyn Source>],
        path: &str,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        let rest = self.len.saturating_sub(offset);
        let wanted = usize::try_from(rest).unwrap_or(usize::MAX).min(buf.len());
        let mut done = 0usize;
        while done < wanted {
            let at = offset.saturating_add(done as u64);
            let (from, there) = self.piece(at);
            let count = usize::try_from(there)
                .unwrap_or(usize::MAX)
                .min(wanted - done);
            let Some(room) = buf.get_mut(done..done + count).filter(|_| count > 0) else {
                break;
            };
            match from.and_then(|(giver, place)| Some((self.givers.get(giver)?, place))) {
                None => room.fill(0),
                Some((giver, place)) => read_block(links, giver, path, place, room)?,
            }
            done += count;
        }
        Ok(done)
    }

    /// Where a byte is, and how many stand behind it in the same place, itself included.
    fn piece(&self, at: u64) -> (Option<(usize, u64)>, u64) {
        let block = at / self.block_bytes;
        let behind = self
            .runs
            .partition_point(|run| u64::from(run.first) <= block);
        let run = behind.checked_sub(1).and_then(|own| self.runs.get(own));
        let Some(run) = run else { return (None, 0) };
        let inside = at - u64::from(run.first) * self.block_bytes;
        let there = (u64::from(run.blocks) * self.block_bytes).saturating_sub(inside);
        let from = run
            .from
            .map(|(giver, place)| (giver, place.saturating_add(inside)));
        (from, there)
    }

    pub(super) fn prefetch(&self, links: &[Arc<dyn Source>], range: &Range) {
        let end = range.offset.saturating_add(range.len).min(self.len);
        let mut at = range.offset;
        while at < end {
            let (from, there) = self.piece(at);
            let len = there.min(end - at);
            if len == 0 {
                return;
            }
            if let Some((giver, offset)) = from
                && let Some(giver) = self.givers.get(giver)
                && let Some(link) = links.get(giver.link)
            {
                let path = giver.path.clone();
                link.prefetch(&[Range { path, offset, len }]);
            }
            at += len;
        }
    }
}

fn read_block(
    links: &[Arc<dyn Source>],
    giver: &Giver,
    path: &str,
    place: u64,
    room: &mut [u8],
) -> Result<()> {
    let Some(link) = links.get(giver.link) else {
        return Err(SourceError::not_found(path));
    };
    read_exact_at(link.as_ref(), &giver.path, place, room)
}

/// What is known so far of each block.
#[derive(Default)]
struct Search {
    givers: Vec<Giver>,
    places: Vec<Option<(usize, u64)>>,
}

impl Search {
    /// Blocks below `below` that an older link has; says whether it holds the whole file.
    fn take_from(
        &mut self,
        number: usize,
        link: &dyn Source,
        path: &str,
        below: u32,
        shape: ChainShape,
    ) -> Result<bool> {
        match link.len(path) {
            Ok(len) => {
                self.take_whole(number, path, len, below, shape.block_bytes);
                return Ok(true);
            }
            Err(error) if error.kind == SourceErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let part = part_of(path).ok_or_else(|| SourceError::not_found(path))?;
        let head = match Head::read(link, &part, shape) {
            Err(error) if error.kind == SourceErrorKind::NotFound => {
                let why = format!("link {} of the chain has no part of the file", number + 1);
                return Err(SourceError::new(path, SourceErrorKind::Io, why));
            }
            head => head?,
        };
        self.take_parts(number, link, (&part, head), below, shape)?;
        Ok(false)
    }

    fn take_parts(
        &mut self,
        number: usize,
        link: &dyn Source,
        (part, head): (&str, Head),
        below: u32,
        shape: ChainShape,
    ) -> Result<()> {
        let giver = self.giver(number, part);
        let mut place = head.head.header_bytes(shape.block_bytes);
        for block in head.numbers(link, part, shape)? {
            self.give(block, below, (giver, place));
            place = place.saturating_add(u64::from(shape.block_bytes));
        }
        Ok(())
    }

    fn take_whole(&mut self, number: usize, path: &str, len: u64, below: u32, block_bytes: u32) {
        let giver = self.giver(number, path);
        let blocks = u32::try_from(len / u64::from(block_bytes.max(1))).unwrap_or(u32::MAX);
        for block in 0..blocks.min(below) {
            let place = u64::from(block) * u64::from(block_bytes);
            self.give(block, below, (giver, place));
        }
    }

    fn giver(&mut self, link: usize, path: &str) -> usize {
        let path = path.to_owned();
        self.givers.push(Giver { link, path });
        self.givers.len() - 1
    }

    /// The first one, of the newest link, stays.
    fn give(&mut self, block: u32, below: u32, from: (usize, u64)) {
        let at = usize::try_from(block).unwrap_or(usize::MAX);
        if let Some(place) = self.places.get_mut(at).filter(|_| block < below) {
            place.get_or_insert(from);
        }
    }

    fn finish(self, block_bytes: u32) -> Resolved {
        let block_bytes = u64::from(block_bytes.max(1));
        let mut runs: Vec<Run> = Vec::new();
        for (block, from) in (0u32..).zip(&self.places) {
            if let Some(run) = runs.last_mut()
                && follows(run, *from, block_bytes)
            {
                run.blocks += 1;
                continue;
            }
            runs.push(Run {
                first: block,
                blocks: 1,
                from: *from,
            });
        }
        Resolved {
            givers: self.givers,
            runs,
            block_bytes,
            len: self.places.len() as u64 * block_bytes,
        }
    }
}

/// A block at this place stands right behind the run.
fn follows(run: &Run, next: Option<(usize, u64)>, block_bytes: u64) -> bool {
    match (run.from, next) {
        (None, None) => true,
        (Some((giver, place)), Some((own, at))) => {
            giver == own && place + u64::from(run.blocks) * block_bytes == at
        }
        _ => false,
    }
}
