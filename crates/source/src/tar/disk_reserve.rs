//! How much of its disk a nameless file may take: an archive may grow without end when it is
//! unpacked, and must not fill it.
//!
//! What shrinks to nothing takes nothing of the disk, and would never end by its being full. So
//! bytes may count that are not written.

use std::fs::File;

use rustix::fs::fstatvfs;

/// The disk is asked for its free space after so many bytes.
const ASK_AFTER: u64 = 64 << 20;

/// The part of a disk that is left to others: a 32nd.
const LEFT_TO_OTHERS: u64 = 32;

/// Bytes that may count without being written where the disk does not tell its size.
const UNTOLD_MAX: u64 = 1 << 40;

/// The account of one nameless file.
#[derive(Default, Debug)]
pub(crate) struct DiskReserve {
    /// Bytes that counted since the disk was asked.
    unasked: u64,
    /// Bytes that counted and were not written.
    unwritten: u64,
}

impl DiskReserve {
    /// So many bytes were written into the file, and so many count, which are no fewer. Why it must
    /// not go on, in words.
    pub(crate) fn take(&mut self, file: &File, written: u64, counted: u64) -> Result<(), String> {
        let unwritten = counted.saturating_sub(written);
        self.unwritten = self.unwritten.saturating_add(unwritten);
        self.unasked = self.unasked.saturating_add(counted);
        if self.unasked < ASK_AFTER {
            return Ok(());
        }
        self.unasked = 0;
        let disk = fstatvfs(file).ok().filter(|disk| disk.f_blocks > 0);
        match disk {
            Some(disk) => self.leave_room(
                disk.f_bavail.saturating_mul(disk.f_frsize),
                disk.f_blocks.saturating_mul(disk.f_frsize),
            ),
            None if self.unwritten <= UNTOLD_MAX => Ok(()),
            None => Err("that disk does not tell its size, and what comes does not end".into()),
        }
    }

    fn leave_room(&self, free_bytes: u64, disk_bytes: u64) -> Result<(), String> {
        let free = free_bytes.saturating_sub(self.unwritten);
        let left_to_others = disk_bytes / LEFT_TO_OTHERS;
        if free >= left_to_others {
            return Ok(());
        }
        let counting = match mebibytes(self.unwritten) {
            0 => String::new(),
            unwritten => format!(
                ", counting {unwritten} MiB that shrink to next to nothing as if they were written"
            ),
        };
        let free = mebibytes(free);
        Err(format!("only {free} MiB are left on that disk{counting}"))
    }
}

fn mebibytes(bytes: u64) -> u64 {
    bytes.saturating_add(1 << 19) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const DISK: u64 = 65 * MIB;

    #[test]
    fn a_thirty_second_is_left_to_others() {
        let room = DiskReserve::default();
        assert_eq!(room.leave_room(3 * MIB, DISK), Ok(()));
        let why = room.leave_room(2 * MIB, DISK).expect_err("too little");
        assert_eq!(why, "only 2 MiB are left on that disk");
    }

    #[test]
    fn what_shrinks_to_nothing_counts_as_well() {
        let room = DiskReserve {
            unasked: 0,
            unwritten: 60 * MIB,
        };
        assert_eq!(room.leave_room(64 * MIB, DISK), Ok(()));
        let why = room.leave_room(61 * MIB, DISK).expect_err("too little");
        let counting = "counting 60 MiB that shrink to next to nothing as if they were written";
        assert_eq!(why, format!("only 1 MiB are left on that disk, {counting}"));
    }

    #[test]
    fn zeros_without_end_come_to_an_end() {
        let file = tempfile::tempfile().expect("a file");
        let mut room = DiskReserve::default();
        assert_eq!(room.take(&file, 0, 1), Ok(()));
        // All together more than any disk has.
        let ends = (0..1024).any(|_| room.take(&file, 0, 1 << 52).is_err());
        assert!(ends, "nothing stopped it");
    }
}
