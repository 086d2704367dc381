//! Pages of a file that are asked for in runs, here and there: each run has a window that grows
//! while it goes on, so that a page asked for by itself costs little.

/// Runs that are followed at the same time.
const WINDOWS: usize = 4;
/// Bytes read for a page that continues no run, and the most for one that does.
const FIRST_BYTES: usize = 16 << 10;
const BYTES_MAX: usize = 256 << 10;

#[derive(Default)]
struct Window {
    start: u64,
    len: usize,
    bytes: Vec<u8>,
    /// When it was asked last.
    used: u64,
}

impl Window {
    fn end(&self) -> u64 {
        self.start + self.len as u64
    }

    fn holds(&self, at: u64) -> bool {
        (self.start..self.end()).contains(&at)
    }
}

/// Windows over one file.
#[derive(Default)]
pub(crate) struct ReadWindows {
    windows: [Window; WINDOWS],
    clock: u64,
}

impl ReadWindows {
    /// The page that begins at this byte; `read` fills a buffer from there on, and says how much
    /// there was. Nothing where there is no whole page.
    pub(crate) fn page(
        &mut self,
        at: u64,
        page_bytes: usize,
        read: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<&[u8]> {
        self.clock += 1;
        let held = self.windows.iter().position(|window| window.holds(at));
        let index = match held {
            Some(index) => index,
            None => self.load(at, page_bytes, read)?,
        };
        let window = self.windows.get_mut(index)?;
        window.used = self.clock;
        let start = usize::try_from(at.checked_sub(window.start)?).ok()?;
        let end = start.checked_add(page_bytes)?;
        (end <= window.len).then_some(())?;
        window.bytes.get(start..end)
    }

    /// The window that ends here goes on, twice as long; else the one that was not asked for
    /// longest begins anew.
    fn load(
        &mut self,
        at: u64,
        page_bytes: usize,
        read: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<usize> {
        let mut windows = self.windows.iter();
        let continued = windows.position(|window| window.len > 0 && window.end() == at);
        let oldest = || {
            let windows = self.windows.iter().enumerate();
            windows.min_by_key(|(_, window)| window.used)
        };
        let index = continued.or_else(|| Some(oldest()?.0))?;
        let window = self.windows.get_mut(index)?;
        let bytes = match continued {
            Some(_) => window.bytes.len().saturating_mul(2).min(BYTES_MAX),
            None => FIRST_BYTES,
        };
        window.bytes.resize(bytes.max(page_bytes), 0);
        window.len = 0;
        window.len = read(&mut window.bytes)?;
        window.start = at;
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 8192;

    /// Asks for pages in this order; how many bytes were read for them.
    fn bytes_read(pages: impl Iterator<Item = u64>) -> usize {
        let (mut windows, mut sum) = (ReadWindows::default(), 0);
        for page in pages {
            let at = page * PAGE as u64;
            let found = windows.page(at, PAGE, |buffer| {
                sum += buffer.len();
                for (number, own) in (page..).zip(buffer.chunks_exact_mut(PAGE)) {
                    own.fill(number.to_le_bytes()[0]);
                }
                Some(buffer.len())
            });
            assert_eq!(
                found.and_then(|page| page.first()),
                page.to_le_bytes().first()
            );
        }
        sum
    }

    #[test]
    fn a_page_by_itself_does_not_end_a_run() {
        let run = || 1000..3000u64;
        assert!(bytes_read(run()) < 2100 * PAGE);
        // Every other page of the run is followed by one far behind it.
        let both = run().flat_map(|page| [page, page / 2]);
        assert!(bytes_read(both) < 3300 * PAGE);
        let chance = (0..1000u64).map(|step| step * 7919 % 100_003);
        assert!(bytes_read(chance) <= 2000 * PAGE);
    }

    #[test]
    fn where_the_file_ends_there_is_no_page() {
        let mut windows = ReadWindows::default();
        assert_eq!(windows.page(0, PAGE, |_| Some(100)), None);
        assert_eq!(windows.page(0, PAGE, |_| None), None);
        assert!(windows.page(8192, PAGE, |_| Some(PAGE)).is_some());
    }
}
