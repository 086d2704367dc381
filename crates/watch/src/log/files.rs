//! Which parts of which log files were added since the sample before: a server may take several
//! new files within an interval, a file may be used again, and somebody may empty or remove one.

use std::collections::BTreeMap;

/// Files that are remembered, those written last.
const FILES_MAX: usize = 1000;
/// Moments of files and of listings are not exact to the second.
const SLACK_S: f64 = 2.0;

/// A file of the directory of logs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ListedFile {
    /// Without its directory.
    pub(super) name: String,
    pub(super) size: u64,
    /// When it was written last, in seconds since 1970.
    pub(super) modified: f64,
}

/// What happens to the file that is begun, as `log_truncate_on_rotation` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    /// A file of the same name goes on.
    Appends,
    /// It is made empty.
    StartsAgain,
}

/// Bytes to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) first: u64,
    pub(super) length: u64,
}

/// What was added.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Added {
    /// In the order in which it was written.
    pub(super) parts: Vec<Part>,
    /// Passed over, since it was too much.
    pub(super) unread_bytes: u64,
    /// What cannot be known any more, each as a sentence.
    pub(super) gaps: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    /// Read up to here.
    position: u64,
    size: u64,
}

/// The files as they were at the sample before.
#[derive(Debug, Default)]
pub(super) struct LogFiles {
    current: String,
    known: BTreeMap<String, Known>,
    /// When the newest of them was written.
    newest: f64,
}

/// stderr, csvlog and jsonlog have files of their own beside each other.
fn format_of(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((_, format @ ("csv" | "json"))) => format,
        _ => "",
    }
}

impl LogFiles {
    /// All that is there counts as read; gives the size of the present file.
    pub(super) fn begin(current: &str, listed: &[ListedFile]) -> (Self, u64) {
        let mut own = Self {
            current: current.to_owned(),
            ..Self::default()
        };
        own.remember(listed);
        let size = own.known.get(current).map_or(0, |known| known.size);
        (own, size)
    }

    /// A file is read up to here.
    pub(super) fn read_to(&mut self, name: &str, position: u64) {
        if let Some(known) = self.known.get_mut(name) {
            known.position = position;
        }
    }

    /// What was added, at most so many bytes of it, the last ones.
    pub(super) fn added(
        &mut self,
        current: &str,
        listed: &[ListedFile],
        reuse: Reuse,
        bytes_max: u64,
    ) -> Added {
        let mut added = Added::default();
        let format = format_of(current);
        let mut files: Vec<&ListedFile> = listed.iter().collect();
        files.retain(|own| format_of(&own.name) == format);
        files.sort_by(|a, b| a.modified.total_cmp(&b.modified));
        // What is written now is the last, whatever the moments say.
        files.sort_by_key(|own| own.name == current);
        for file in &files {
            added.gaps.extend(self.gap_of(file));
            let first = self.first_of(file, reuse);
            if file.size > first {
                added.parts.push(Part {
                    name: file.name.clone(),
                    first,
                    length: file.size - first,
                });
            }
        }
        if !self.current.is_empty() && files.iter().all(|own| own.name != self.current) {
            let gone = format!("{} was removed before its end was read", self.current);
            added.gaps.push(gone);
        }
        added.limit(bytes_max);
        current.clone_into(&mut self.current);
        self.remember(listed);
        added
    }

    fn gap_of(&self, file: &ListedFile) -> Option<String> {
        let known = self.known.get(&file.name)?;
        let is_emptied = file.size < known.position && file.name == self.current;
        is_emptied.then(|| format!("{} was truncated before its end was read", file.name))
    }

    /// Where what was added to a file begins.
    fn first_of(&self, file: &ListedFile, reuse: Reuse) -> u64 {
        let Some(known) = self.known.get(&file.name) else {
            // One that was not listed before, since there were too many, was read long ago.
            let is_new = file.modified >= self.newest - SLACK_S;
            return if is_new { 0 } else { file.size };
        };
        let was_left = file.name != self.current;
        match () {
            () if file.size < known.position => 0,
            () if was_left && file.size == known.size => file.size,
            () if was_left && reuse == Reuse::StartsAgain => 0,
            () => known.position,
        }
    }

    /// What is not read after this was passed over.
    fn remember(&mut self, listed: &[ListedFile]) {
        let mut newest: Vec<&ListedFile> = listed.iter().collect();
        newest.sort_by(|a, b| b.modified.total_cmp(&a.modified));
        newest.truncate(FILES_MAX);
        let moments = newest.iter().map(|own| own.modified);
        self.newest = moments.fold(self.newest, f64::max);
        let known = newest.into_iter().map(|own| {
            let size = own.size;
            let known = Known {
                position: size,
                size,
            };
            (own.name.clone(), known)
        });
        self.known = known.collect();
    }
}

impl Added {
    /// The last bytes are worth more than the first ones.
    fn limit(&mut self, bytes_max: u64) {
        let mut left = bytes_max;
        for part in self.parts.iter_mut().rev() {
            let kept = part.length.min(left);
            let passed_over = part.length - kept;
            self.unread_bytes += passed_over;
            part.first += passed_over;
            part.length = kept;
            left -= kept;
        }
        self.parts.retain(|part| part.length > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(listed: &[(&str, u64, u32)]) -> Vec<ListedFile> {
        let file = |(name, size, modified): &(&str, u64, u32)| ListedFile {
            name: (*name).to_owned(),
            size: *size,
            modified: f64::from(*modified),
        };
        listed.iter().map(file).collect()
    }

    fn parts(added: &Added) -> Vec<(&str, u64, u64)> {
        let parts = added.parts.iter();
        parts
            .map(|own| (own.name.as_str(), own.first, own.length))
            .collect()
    }

    fn begun() -> LogFiles {
        let there = files(&[("a.log", 100, 10), ("a.csv", 70, 10), ("old.log", 9, 1)]);
        let (own, size) = LogFiles::begin("a.log", &there);
        assert_eq!(size, 100);
        own
    }

    #[test]
    fn two_rotations_within_an_interval_lose_nothing() {
        let mut own = begun();
        let now = files(&[
            ("c.log", 30, 13),
            ("b.log", 20, 12),
            ("a.log", 150, 11),
            ("a.csv", 99, 11),
            ("old.log", 9, 1),
        ]);
        let added = own.added("c.log", &now, Reuse::StartsAgain, 1000);
        let expected = [("a.log", 100, 50), ("b.log", 0, 20), ("c.log", 0, 30)];
        assert_eq!(parts(&added), expected);
        assert_eq!((added.unread_bytes, added.gaps.len()), (0, 0));
        assert_eq!(parts(&own.added("c.log", &now, Reuse::Appends, 1000)), []);
    }

    #[test]
    fn what_is_too_much_is_counted_and_the_end_is_read() {
        let mut own = begun();
        let now = files(&[("b.log", 50, 12), ("a.log", 400, 11)]);
        let added = own.added("b.log", &now, Reuse::Appends, 80);
        assert_eq!(parts(&added), [("a.log", 370, 30), ("b.log", 0, 50)]);
        assert_eq!(added.unread_bytes, 270);
    }

    #[test]
    fn a_file_that_was_emptied_or_removed_is_a_gap() {
        let mut own = begun();
        let now = files(&[("a.log", 40, 11)]);
        let added = own.added("a.log", &now, Reuse::StartsAgain, 1000);
        assert_eq!(parts(&added), [("a.log", 0, 40)]);
        assert_eq!(added.gaps, ["a.log was truncated before its end was read"]);
        let now = files(&[("b.log", 7, 12)]);
        let added = own.added("b.log", &now, Reuse::StartsAgain, 1000);
        assert_eq!(parts(&added), [("b.log", 0, 7)]);
        assert_eq!(added.gaps, ["a.log was removed before its end was read"]);
    }

    #[test]
    fn a_name_that_is_used_again_begins_again_or_goes_on() {
        for (reuse, first) in [(Reuse::StartsAgain, 0), (Reuse::Appends, 9)] {
            let mut own = begun();
            let now = files(&[("old.log", 30, 12), ("a.log", 100, 10)]);
            let added = own.added("old.log", &now, reuse, 1000);
            assert_eq!(parts(&added), [("old.log", first, 30 - first)]);
        }
    }
}
