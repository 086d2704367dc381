//! Many sorted sequences into one; of equal keys the earlier sequence comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use crate::record::Record;
use crate::run_file::RunReader;

/// Key, number of the run, value.
type Waiting = (Vec<u8>, usize, Vec<u8>);

/// The smallest record of each run waits in a heap. The number of the run stands behind the key and
/// decides ties.
pub(crate) struct Merge {
    readers: Vec<RunReader>,
    heap: BinaryHeap<Reverse<Waiting>>,
}

impl Merge {
    pub(crate) fn new(readers: Vec<RunReader>) -> io::Result<Self> {
        let mut merge = Self {
            heap: BinaryHeap::with_capacity(readers.len()),
            readers,
        };
        for number in 0..merge.readers.len() {
            merge.refill(number)?;
        }
        Ok(merge)
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Record>> {
        let Some(Reverse((key, number, value))) = self.heap.pop() else {
            return Ok(None);
        };
        self.refill(number)?;
        Ok(Some((key, value)))
    }

    fn refill(&mut self, number: usize) -> io::Result<()> {
        if let Some(reader) = self.readers.get_mut(number)
            && let Some((key, value)) = reader.next()?
        {
            self.heap.push(Reverse((key, number, value)));
        }
        Ok(())
    }
}
