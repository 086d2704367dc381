//! Sorted records of one size in a file, looked up by what they begin with.
//!
//! Of each block of records only the first one's key stays in memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::folder;

/// Records that are read at once.
const BLOCK_RECORDS: usize = 512;

/// Takes records in order.
pub struct LookupWriter {
    out: BufWriter<File>,
    lookup: Lookup,
}

/// Records in a temporary file without a name.
#[derive(Debug)]
pub struct Lookup {
    file: File,
    record_bytes: usize,
    key_bytes: usize,
    records: u64,
    /// The keys of the first records of all blocks.
    firsts: Vec<u8>,
}

/// A block that was read last, for one reader.
#[derive(Debug, Default)]
pub struct LookupBlock {
    number: Option<usize>,
    bytes: Vec<u8>,
}

impl LookupWriter {
    /// For records of so many bytes, whose first `key_bytes` they are sorted and found by.
    pub fn create(folder: &Path, record_bytes: usize, key_bytes: usize) -> io::Result<Self> {
        assert!(
            key_bytes > 0 && key_bytes <= record_bytes,
            "a key is a part of its record"
        );
        folder::check(folder)?;
        let file = tempfile::tempfile_in(folder)?;
        Ok(LookupWriter {
            out: BufWriter::with_capacity(1 << 16, file.try_clone()?),
            lookup: Lookup {
                file,
                record_bytes,
                key_bytes,
                records: 0,
                firsts: Vec::new(),
            },
        })
    }

    /// Adds a record that does not come before the last one.
    pub fn push(&mut self, record: &[u8]) -> io::Result<()> {
        assert_eq!(
            record.len(),
            self.lookup.record_bytes,
            "records have one size"
        );
        if self.lookup.records.is_multiple_of(BLOCK_RECORDS as u64) {
            let key = record.get(..self.lookup.key_bytes).unwrap_or_default();
            self.lookup.firsts.extend_from_slice(key);
        }
        self.out.write_all(record)?;
        self.lookup.records += 1;
        Ok(())
    }

    /// All records are there.
    pub fn finish(mut self) -> io::Result<Lookup> {
        self.out.flush()?;
        Ok(self.lookup)
    }
}

impl Lookup {
    /// Gives every record with this key, in order.
    pub fn find(
        &self,
        key: &[u8],
        kept: &mut LookupBlock,
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let blocks = self.firsts.len() / self.key_bytes;
        for block in self.first_block(key)..blocks {
            self.load(block, kept)?;
            let records = kept.bytes.chunks_exact(self.record_bytes);
            let mut is_past = false;
            for record in records {
                match record.get(..self.key_bytes).unwrap_or_default().cmp(key) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => each(record),
                    std::cmp::Ordering::Greater => is_past = true,
                }
            }
            if is_past {
                break;
            }
        }
        Ok(())
    }

    /// The first block that can hold the key: equal keys may begin at the end of the one before.
    fn first_block(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.firsts.len() / self.key_bytes);
        while low < high {
            let middle = low.midpoint(high);
            let at = middle * self.key_bytes;
            let first = self.firsts.get(at..at + self.key_bytes).unwrap_or_default();
            if first < key {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low.saturating_sub(1)
    }

    fn load(&self, block: usize, kept: &mut LookupBlock) -> io::Result<()> {
        if kept.number == Some(block) {
            return Ok(());
        }
        kept.number = None;
        let first = block as u64 * BLOCK_RECORDS as u64;
        let count = (self.records - first).min(BLOCK_RECORDS as u64);
        let bytes = usize::try_from(count).unwrap_or(0) * self.record_bytes;
        kept.bytes.resize(bytes, 0);
        self.file
            .read_exact_at(&mut kept.bytes, first * self.record_bytes as u64)?;
        kept.number = Some(block);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        reason = "a test that panics has failed"
    )]

    use super::*;

    #[test]
    fn every_key_is_found_with_all_its_records() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let mut writer = LookupWriter::create(folder.path(), 6, 4)?;
        // Key n has n % 7 records; keys 700 times over a block's end.
        let many = |key: u32| if key == 50 { 1300 } else { key % 7 };
        for key in 0..2000u32 {
            for number in 0..many(key) {
                let [high, low] = (number as u16).to_be_bytes();
                writer.push(&[&key.to_be_bytes()[..], &[high, low]].concat())?;
            }
        }
        let lookup = writer.finish()?;
        let mut kept = LookupBlock::default();
        for key in (0..2010u32).rev().chain([50, 0, 1999]) {
            let mut count = 0;
            lookup.find(&key.to_be_bytes(), &mut kept, |_| count += 1)?;
            assert_eq!(count, if key < 2000 { many(key) } else { 0 }, "{key}");
        }
        let empty = LookupWriter::create(folder.path(), 6, 4)?.finish()?;
        empty.find(&[0; 4], &mut LookupBlock::default(), |_| {
            panic!("nothing is there")
        })
    }
}
