//! Pages that a running server may have half written when they were read.
//!
//! The server writes a page in one call, but the system gives no promise that a reader sees all of
//! it or nothing. What was half written a moment ago is whole a moment later.

use std::sync::atomic::{AtomicU32, Ordering};

use pgclinic_source::{Clock, Result};

use crate::live_limits::LIVE_LIMITS;

/// What one more read of a page came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reread {
    /// It is sound now.
    Sound,
    /// It is as unsound as before, with the same bytes: it was so before anybody wrote.
    Same,
    /// It is not sound, and has other bytes than before.
    Moving,
    /// The file ends before it: it was truncated meanwhile.
    Gone,
}

/// Reads a page once more: `page` holds the bytes of the read before and then those of this one, as
/// long as there are any. `fresh` is room for one page.
///
/// # Errors
/// Those of `read`.
pub fn reread_page(
    page: &mut [u8],
    fresh: &mut [u8],
    read: impl FnOnce(&mut [u8]) -> Result<usize>,
    is_sound: impl FnOnce(&[u8]) -> bool,
) -> Result<Reread> {
    if read(fresh)? < page.len() {
        return Ok(Reread::Gone);
    }
    if *page == *fresh {
        return Ok(Reread::Same);
    }
    page.copy_from_slice(fresh);
    Ok(if is_sound(page) {
        Reread::Sound
    } else {
        Reread::Moving
    })
}

/// The waits of one run for pages to be whole.
pub struct PageWaits {
    left: AtomicU32,
}

impl Default for PageWaits {
    fn default() -> Self {
        PageWaits {
            left: AtomicU32::new(LIVE_LIMITS.page_waits),
        }
    }
}

impl PageWaits {
    /// Reads pages again, all that are open after each wait, as long as `is_open` says of a page
    /// that one more read may settle it; gives those that never settled.
    ///
    /// # Errors
    /// The first of `is_open`.
    pub fn settle_pages<P>(
        &self,
        mut open: Vec<P>,
        clock: &dyn Clock,
        mut is_open: impl FnMut(&mut P) -> Result<bool>,
    ) -> Result<Vec<P>> {
        for _ in 0..LIVE_LIMITS.page_reads {
            if open.is_empty() {
                break;
            }
            if self.may_wait() {
                clock.sleep(LIVE_LIMITS.page_wait);
            }
            let mut moving = Vec::new();
            for mut page in open {
                if is_open(&mut page)? {
                    moving.push(page);
                }
            }
            open = moving;
        }
        Ok(open)
    }

    fn may_wait(&self) -> bool {
        let step = |left: u32| left.checked_sub(1);
        let (order, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.left.fetch_update(order, fetch, step).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use pgclinic_source::{SourceError, SourceErrorKind};

    use super::*;

    /// A page is sound when its bytes are alike.
    fn is_sound(page: &[u8]) -> bool {
        page.iter().all(|byte| page.first() == Some(byte))
    }

    #[derive(Default)]
    struct Waits(Mutex<Vec<Duration>>);

    impl Clock for Waits {
        fn now(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep(&self, time: Duration) {
            self.0.lock().expect("one thread").push(time);
        }
    }

    /// The server's file at each read, the last one from then on; and what a reader is left with:
    /// what the reads came to, the page, pages that never settled, and waits.
    fn settled(reads: &[&[u8]]) -> (Vec<Reread>, Vec<u8>, usize, usize) {
        let clock = Waits::default();
        let (mut came, mut number) = (Vec::new(), 0);
        let mut page = b"torN".to_vec();
        let mut fresh = vec![0; page.len()];
        let left = PageWaits::default().settle_pages(vec![()], &clock, |()| {
            let now = reads[number.min(reads.len() - 1)];
            number += 1;
            let read = |room: &mut [u8]| {
                let count = room.len().min(now.len());
                room[..count].copy_from_slice(&now[..count]);
                Ok(count)
            };
            let reread = reread_page(&mut page, &mut fresh, read, is_sound)?;
            came.push(reread);
            Ok(reread == Reread::Moving)
        });
        let left = left.expect("every read works").len();
        let waits = clock.0.lock().expect("one thread").len();
        (came, page, left, waits)
    }

    #[test]
    fn a_page_settles_at_once_or_later() {
        use Reread::{Moving, Sound};
        assert_eq!(settled(&[b"aaaa"]), (vec![Sound], b"aaaa".into(), 0, 1));
        let later = settled(&[b"aabb", b"aaab", b"aaaa"]);
        assert_eq!(later, (vec![Moving, Moving, Sound], b"aaaa".into(), 0, 3));
        // A file that grows is as good as any: the page is all that is read of it.
        assert_eq!(settled(&[b"aaaaa"]), (vec![Sound], b"aaaa".into(), 0, 1));
    }

    #[test]
    fn what_has_the_same_bytes_again_was_not_on_its_way() {
        assert_eq!(
            settled(&[b"torN"]),
            (vec![Reread::Same], b"torN".into(), 0, 1)
        );
    }

    #[test]
    fn a_page_that_never_settles_is_given_up_and_the_last_bytes_stand() {
        let reads: [&[u8]; 6] = [b"aab1", b"aab2", b"aab3", b"aab4", b"aab5", b"aaaa"];
        let expected = (vec![Reread::Moving; 5], b"aab5".to_vec(), 1, 5);
        assert_eq!(settled(&reads), expected);
    }

    #[test]
    fn what_a_file_lost_stands_as_it_was_read() {
        for shorter in [&b""[..], b"aa"] {
            assert_eq!(
                settled(&[shorter]),
                (vec![Reread::Gone], b"torN".into(), 0, 1)
            );
        }
    }

    #[test]
    fn a_file_that_vanished_is_an_error() {
        let gone = || SourceError::new("base/5/16384", SourceErrorKind::NotFound, "no such file");
        let waits = PageWaits::default();
        let left = waits.settle_pages(vec![()], &Waits::default(), |()| Err(gone()));
        assert_eq!(left, Err(gone()));
    }

    #[test]
    fn a_run_waits_only_so_often() {
        let (waits, clock) = (PageWaits::default(), Waits::default());
        for _ in 0..1000 {
            let left = waits.settle_pages(vec![(), ()], &clock, |()| Ok(true));
            assert_eq!(left, Ok(vec![(), ()]));
        }
        let told = clock.0.lock().expect("one thread");
        assert_eq!(told.len(), LIVE_LIMITS.page_waits as usize);
        assert!(told.iter().all(|time| *time == LIVE_LIMITS.page_wait));
    }
}
