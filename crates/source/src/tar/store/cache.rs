//! Blocks that were unpacked last, a bounded number of them.
//!
//! Each block has one slot, which it shares with others, so that nothing is searched for. A lock is
//! held for a copy, never while something is unpacked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// With blocks of 64 KiB that is 8 MiB.
const SLOTS: usize = 128;

/// A block's number and its bytes.
type Kept = Option<(u64, Vec<u8>)>;

/// A bounded number of unpacked blocks, each in the one slot that it may use.
pub(super) struct Cache {
    slots: Vec<Mutex<Kept>>,
}

impl Cache {
    /// Nothing is kept yet, and no memory taken.
    pub(super) fn new() -> Self {
        let slots = (0..SLOTS).map(|_| Mutex::default());
        Cache {
            slots: slots.collect(),
        }
    }

    /// Fills `room` from byte `skip` of a block; says whether that was there.
    pub(super) fn copy(&self, block: u64, skip: usize, room: &mut [u8]) -> bool {
        let Some(slot) = self.slot(block) else {
            return false;
        };
        let Some((_, bytes)) = slot.as_ref().filter(|(number, _)| *number == block) else {
            return false;
        };
        copy_from(bytes, skip, room)
    }

    /// Keeps a block in the place of another.
    pub(super) fn keep(&self, block: u64, bytes: Vec<u8>) {
        if let Some(mut slot) = self.slot(block) {
            *slot = Some((block, bytes));
        }
    }

    fn slot(&self, block: u64) -> Option<MutexGuard<'_, Kept>> {
        let number = usize::try_from(block % SLOTS as u64).ok()?;
        let slot = self.slots.get(number)?;
        Some(slot.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Fills `room` from byte `skip`; says whether there was enough.
pub(super) fn copy_from(bytes: &[u8], skip: usize, room: &mut [u8]) -> bool {
    let end = skip.saturating_add(room.len());
    match bytes.get(skip..end) {
        Some(bytes) => {
            room.copy_from_slice(bytes);
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_stays_until_another_takes_its_slot() {
        let cache = Cache::new();
        let mut room = [0; 2];
        assert!(!cache.copy(5, 0, &mut room));
        cache.keep(5, vec![1, 2, 3]);
        assert!(cache.copy(5, 1, &mut room));
        assert_eq!(room, [2, 3]);
        let other = 5 + SLOTS as u64;
        assert!(!cache.copy(other, 0, &mut room), "it is not that one");
        cache.keep(other, vec![4, 5, 6]);
        assert!(cache.copy(other, 0, &mut room) && !cache.copy(5, 0, &mut room));
        assert!(!cache.copy(other, 2, &mut room), "it has no such bytes");
    }

    #[test]
    fn memory_is_bounded() {
        let cache = Cache::new();
        for block in 0..10 * SLOTS as u64 {
            cache.keep(block, vec![0; 8]);
        }
        let kept = cache.slots.iter().map(|slot| slot.lock().expect("a slot"));
        assert_eq!(kept.filter(|slot| slot.is_some()).count(), SLOTS);
    }
}
