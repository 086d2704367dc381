//! Buffers that are used again, so many and no more: what bounds the memory of reading.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A bounded set of buffers of one size. Clones share it.
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<Shared>,
}

struct Shared {
    size: usize,
    count: usize,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    free: Vec<Vec<u8>>,
    made: usize,
}

impl BufferPool {
    /// At most `count` buffers of `size` bytes, each made when it is first needed.
    ///
    /// # Panics
    /// When either is zero, as nobody could read then.
    pub fn new(size: usize, count: usize) -> Self {
        assert!(
            size > 0 && count > 0,
            "a pool needs buffers, not {count} of {size} bytes"
        );
        let shared = Shared {
            size,
            count,
            state: Mutex::default(),
            returned: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Bytes in each buffer.
    pub fn buffer_size(&self) -> usize {
        self.shared.size
    }

    /// A buffer; waits while all are out. Who holds one and takes another can wait for itself.
    pub fn take(&self) -> PooledBuffer {
        let mut state = self.shared.lock();
        loop {
            match self.free(&mut state) {
                Some(bytes) => return self.lend(bytes),
                None => {
                    state = self
                        .shared
                        .returned
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }

    /// A buffer, or `None` when all are out.
    pub fn try_take(&self) -> Option<PooledBuffer> {
        let bytes = self.free(&mut self.shared.lock())?;
        Some(self.lend(bytes))
    }

    fn free(&self, state: &mut State) -> Option<Vec<u8>> {
        if let Some(bytes) = state.free.pop() {
            return Some(bytes);
        }
        if state.made >= self.shared.count {
            return None;
        }
        state.made = state.made.saturating_add(1);
        Some(vec![0; self.shared.size])
    }

    fn lend(&self, bytes: Vec<u8>) -> PooledBuffer {
        PooledBuffer {
            bytes,
            filled: 0,
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer on loan: as a slice it is what was filled. Dropped, it goes back to its pool.
pub struct PooledBuffer {
    bytes: Vec<u8>,
    filled: usize,
    shared: Arc<Shared>,
}

impl PooledBuffer {
    /// The whole buffer for filling; it may still hold what an earlier user left.
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Says how many bytes from the start are filled.
    ///
    /// # Panics
    /// When the buffer is smaller than that.
    pub fn set_filled(&mut self, filled: usize) {
        let size = self.bytes.len();
        assert!(
            filled <= size,
            "{filled} bytes cannot be filled in a buffer of {size}"
        );
        self.filled = filled;
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.filled).unwrap_or_default()
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.shared
            .lock()
            .free
            .push(std::mem::take(&mut self.bytes));
        self.shared.returned.notify_one();
    }
}

impl fmt::Debug for PooledBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "PooledBuffer({} of {} bytes filled)",
            self.filled,
            self.bytes.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_buffers_than_said_and_the_same_ones_again() {
        let pool = BufferPool::new(8, 2);
        let mut first = pool.take();
        let second = pool.take();
        assert!(pool.try_take().is_none());
        first.space().fill(7);
        first.set_filled(3);
        assert_eq!(&*first, [7, 7, 7]);
        drop(first);
        let again = pool
            .try_take()
            .map(|buffer| (buffer.len(), buffer.bytes.clone()));
        assert_eq!(again, Some((0, vec![7; 8])));
        drop(second);
    }

    #[test]
    fn taking_waits_for_a_return() {
        let pool = BufferPool::new(1, 1);
        let held = pool.take();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.take().space().len());
            drop(held);
            assert_eq!(waiting.join().ok(), Some(1));
        });
    }
}
