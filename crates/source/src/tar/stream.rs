//! Archives that pass by once: their files one after the other, each with its bytes, nothing kept.

use pgclinic_format::tar::{BLOCK, Description, Header, HeaderFault, MemberKind, Run, SparseMap};

use super::described::{
    Content, ISLANDS_TOGETHER, Stored, described_by, described_bytes, describes_the_next, meant,
    stored,
};
use super::members::{clean, is_of_relation};
use super::reader::MEMBERS_MAX;
use super::root_prefix::RootPrefix;
use crate::{EntryKind, Result};

/// What gives archives, one after the other.
pub trait Archives {
    /// Goes to the next archive and says what its names are below, `""` or `pg_tblspc/16385/`;
    /// nothing at the end.
    fn next_archive(&mut self) -> Result<Option<String>>;

    /// An archive without the mark at its end was cut. Servers before 15 send none: their client
    /// adds it.
    fn has_end_marks(&self) -> bool {
        true
    }

    /// Called behind the end mark of the archive at hand: reads it to its own end, where checksums
    /// of what is packed are. What is wrong there, in words.
    fn finish(&mut self) -> Result<Option<String>> {
        Ok(None)
    }

    /// The next bytes of the archive at hand, not unpacked any further; 0 at its end.
    fn read(&mut self, buf: &mut [u8]) -> Result<usize>;
}

/// A name that passes by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamEntry {
    /// Its path in the backup.
    pub path: String,
    /// What it is; links and devices are [`EntryKind::Other`].
    pub kind: EntryKind,
    /// Bytes of its content.
    pub len: u64,
}

/// The files of archives as they pass by.
pub struct TarStream<A> {
    archives: A,
    below: String,
    is_open: bool,
    /// Bytes of the member at hand that were not read, and those that fill its last block.
    left: u64,
    filling: u64,
    /// Of a file with holes, and where in it the reader stands.
    holes: Option<(SparseMap, u64)>,
    top: RootPrefix,
    strays: u64,
    /// Files that cannot be read, and the first of them.
    lost: u64,
    first_lost: String,
    /// Of the archive at hand.
    members: usize,
    members_max: usize,
    islands_left: usize,
    broken: Vec<String>,
}

/// Bytes that fill the last block of a content.
fn filling(header: &Header) -> u64 {
    let padded = header.padded_size();
    padded.map_or(0, |padded| padded - header.size)
}

/// A member's header after the members that describe it.
enum Next {
    Member(Header, Stored),
    End,
    Broken(String),
}

impl<A: Archives> TarStream<A> {
    /// Nothing is read yet.
    pub fn new(archives: A) -> Self {
        TarStream {
            archives,
            below: String::new(),
            is_open: false,
            left: 0,
            filling: 0,
            holes: None,
            top: RootPrefix::default(),
            strays: 0,
            lost: 0,
            first_lost: String::new(),
            members: 0,
            members_max: MEMBERS_MAX,
            islands_left: 0,
            broken: Vec::new(),
        }
    }

    /// What was wrong with the archives so far.
    pub fn troubles(&self) -> Vec<String> {
        let mut troubles = self.broken.clone();
        if self.strays > 0 {
            let strays = self.strays;
            troubles.push(format!(
                "{strays} members have names that lead out of the backup or that no backup has, and are left out"
            ));
        }
        if self.lost > 0 {
            let (lost, first) = (self.lost, &self.first_lost);
            troubles.push(format!(
                "{lost} members are links, or have holes that nothing sound tells of, and cannot be read as they pass by, such as {first:?}"
            ));
        }
        troubles
    }

    /// What gives the archives.
    pub fn into_archives(self) -> A {
        self.archives
    }

    /// The next name; what was not read of the one at hand is passed over.
    pub fn next_file(&mut self) -> Result<Option<StreamEntry>> {
        loop {
            if !self.is_open {
                match self.archives.next_archive()? {
                    Some(below) => {
                        (self.below, self.is_open, self.members) = (below, true, 0);
                        (self.top, self.islands_left) = (RootPrefix::default(), ISLANDS_TOGETHER);
                    }
                    None => return Ok(None),
                }
            }
            match self.next_header()? {
                Next::Member(header, stored) => {
                    if let Some(passing) = self.passing(&header, stored) {
                        return Ok(Some(passing));
                    }
                }
                Next::End => {
                    if let Some(why) = self.top.trouble() {
                        self.book(why);
                    }
                    if let Some(why) = self.archives.finish()? {
                        self.book(&why);
                    }
                    self.is_open = false;
                }
                Next::Broken(why) => {
                    self.book(&why);
                    self.is_open = false;
                }
            }
        }
    }

    /// Something is wrong with the archive at hand.
    fn book(&mut self, why: &str) {
        let below = self.below.trim_end_matches('/');
        let name = if below.is_empty() { "base" } else { below };
        self.broken.push(format!("{name}: {why}"));
    }

    /// The next bytes of the file at hand; 0 at its end, or where the archive was cut.
    pub fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        let Some((map, at)) = &self.holes else {
            return self.read_stored(buf);
        };
        let Some(Run { stored_at, len }) = map.run_at(*at) else {
            return Ok(0);
        };
        let wanted = usize::try_from(len).unwrap_or(usize::MAX).min(buf.len());
        let room = buf.get_mut(..wanted).unwrap_or_default();
        let count = match stored_at {
            Some(_) => self.read_stored(room)?,
            None => {
                room.fill(0);
                wanted
            }
        };
        if let Some((_, at)) = &mut self.holes {
            *at = at.saturating_add(count as u64);
        }
        Ok(count)
    }

    /// The next bytes as they are stored.
    fn read_stored(&mut self, buf: &mut [u8]) -> Result<usize> {
        let wanted = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buf.len());
        let count = self
            .archives
            .read(buf.get_mut(..wanted).unwrap_or_default())?;
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }

    fn passing(&mut self, header: &Header, stored: Stored) -> Option<StreamEntry> {
        self.left = header.size.saturating_sub(stored.map_bytes);
        self.filling = filling(header);
        let Some(name) = clean(&header.name) else {
            self.strays += 1;
            return None;
        };
        let name = if self.below.is_empty() {
            self.top.placed(name, header.kind)
        } else {
            name
        };
        if name.is_empty() {
            return None;
        }
        let path = format!("{}{name}", self.below);
        let is_file = matches!(header.kind, MemberKind::File | MemberKind::Sparse);
        let is_lost = match (&stored.content, header.kind) {
            (Content::Lost(_), _) | (_, MemberKind::HardLink) => true,
            (_, kind) => !is_file && kind != MemberKind::Folder && is_of_relation(&path),
        };
        if is_lost {
            self.lost += 1;
            if self.first_lost.is_empty() {
                self.first_lost.clone_from(&path);
            }
        }
        let (mut kind, mut len) = (EntryKind::Other, header.size);
        if header.kind == MemberKind::Folder {
            kind = EntryKind::Folder;
        } else if is_file && !is_lost {
            kind = EntryKind::File;
        }
        if let Content::Holed(map) = stored.content {
            len = map.real_size();
            self.holes = Some((map, 0));
        }
        Some(StreamEntry { path, kind, len })
    }

    fn next_header(&mut self) -> Result<Next> {
        let mut coming = Description::default();
        loop {
            if !self.skip()? {
                return Ok(Next::Broken("the archive was truncated in a member".into()));
            }
            let mut block = [0; BLOCK];
            let read = self.fill(&mut block)?;
            if read == 0 && !self.archives.has_end_marks() {
                return Ok(Next::End);
            }
            if read < BLOCK {
                return Ok(Next::Broken(
                    "the end mark is missing: the archive was truncated".into(),
                ));
            }
            let header = match Header::parse(&block) {
                Ok(header) => header,
                Err(HeaderFault::End) => return Ok(Next::End),
                Err(HeaderFault::Checksum) => {
                    return Ok(Next::Broken("where a header must stand is none".into()));
                }
                Err(HeaderFault::Size) => {
                    return Ok(Next::Broken("the size of a member is not a number".into()));
                }
            };
            self.members += 1;
            if self.members > self.members_max {
                let why = format!("it has more than {} members", self.members_max);
                return Ok(Next::Broken(why));
            }
            if header.padded_size().is_none() {
                return Ok(Next::Broken(format!(
                    "a member claims {} bytes",
                    header.size
                )));
            }
            if describes_the_next(header.kind) {
                coming = described_by(&header, &self.content(&header)?).or(coming);
                continue;
            }
            if header.kind == MemberKind::DescribedAll {
                (self.left, self.filling) = (header.size, filling(&header));
                continue;
            }
            let (header, sparse) = meant(header, coming);
            let mut islands_left = self.islands_left;
            let mut next =
                |room: &mut [u8; BLOCK]| -> Result<bool> { Ok(self.fill(room)? == BLOCK) };
            let stored = stored(&header, &block, sparse, &mut islands_left, &mut next)?;
            self.islands_left = islands_left;
            return Ok(Next::Member(header, stored));
        }
    }

    /// The content of a member that describes another; a long one is cut.
    fn content(&mut self, header: &Header) -> Result<Vec<u8>> {
        (self.left, self.filling) = (header.size, filling(header));
        let len = described_bytes(header);
        let mut content = vec![0; len];
        let read = self.fill(&mut content)?;
        self.left = self.left.saturating_sub(read as u64);
        content.truncate(read);
        Ok(content)
    }

    /// Goes behind the member at hand; says whether all of it was there.
    fn skip(&mut self) -> Result<bool> {
        let mut scratch = [0; 8192];
        let mut left = self.left.saturating_add(self.filling);
        (self.left, self.filling, self.holes) = (0, 0, None);
        while left > 0 {
            let wanted = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(scratch.len());
            let read = self
                .archives
                .read(scratch.get_mut(..wanted).unwrap_or_default())?;
            if read == 0 {
                return Ok(false);
            }
            left = left.saturating_sub(read as u64);
        }
        Ok(true)
    }

    /// Reads until the buffer is full or the archive ends.
    fn fill(&mut self, buf: &mut [u8]) -> Result<usize> {
        let mut filled = 0usize;
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.archives.read(rest)? {
                0 => break,
                count => filled = filled.saturating_add(count),
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_format::tar::build_header;

    /// Archives in memory, given a few bytes at a time.
    struct InMemory {
        archives: Vec<Vec<u8>>,
        next: usize,
        at: usize,
        /// Bytes that were asked for and given.
        read: usize,
    }

    impl Archives for InMemory {
        fn next_archive(&mut self) -> Result<Option<String>> {
            if self.next == self.archives.len() {
                return Ok(None);
            }
            let below = match self.next {
                0 => String::new(),
                number => format!("pg_tblspc/{number}/"),
            };
            (self.next, self.at) = (self.next + 1, 0);
            Ok(Some(below))
        }

        fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
            let bytes = &self.archives[self.next - 1];
            let rest = bytes.get(self.at..).unwrap_or_default();
            let count = rest.len().min(buf.len()).min(700);
            buf[..count].copy_from_slice(&rest[..count]);
            self.at += count;
            self.read += count;
            Ok(count)
        }
    }

    fn member(name: &str, content: &[u8]) -> Vec<u8> {
        let mut bytes = build_header(name.as_bytes(), content.len() as u64, b'0').to_vec();
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    fn stream(archives: Vec<Vec<u8>>) -> TarStream<InMemory> {
        TarStream::new(InMemory {
            archives,
            next: 0,
            at: 0,
            read: 0,
        })
    }

    /// Everything that passes by, with its bytes.
    fn all(stream: &mut TarStream<InMemory>) -> Vec<(StreamEntry, Vec<u8>)> {
        let mut passed = Vec::new();
        while let Some(file) = stream.next_file().expect("readable") {
            let (mut content, mut buf) = (Vec::new(), [0; 300]);
            while let Ok(count @ 1..) = stream.read(&mut buf) {
                content.extend_from_slice(&buf[..count]);
            }
            passed.push((file, content));
        }
        passed
    }

    fn names(passed: &[(StreamEntry, Vec<u8>)]) -> Vec<&str> {
        passed.iter().map(|(file, _)| file.path.as_str()).collect()
    }

    #[test]
    fn files_pass_by_in_order_read_or_not() {
        let bytes = [
            member("./base/5/1", &[7; 1000]),
            member("../escape", &[1; 10]),
            member("base/5/2", &[8; 512]),
            vec![0; 1024],
        ];
        let mut stream = stream(vec![bytes.concat()]);
        let first = stream.next_file().expect("readable").expect("a file");
        assert_eq!((first.path.as_str(), first.len), ("base/5/1", 1000));
        let mut buf = [0; 300];
        assert_eq!(stream.read(&mut buf), Ok(300), "only a part is read");
        let second = stream.next_file().expect("readable").expect("a file");
        assert_eq!(second.path, "base/5/2");
        let mut content = Vec::new();
        while let Ok(count @ 1..) = stream.read(&mut buf) {
            content.extend_from_slice(&buf[..count]);
        }
        assert_eq!(content, [8; 512]);
        assert_eq!(stream.next_file(), Ok(None));
        assert_eq!(stream.troubles().len(), 1, "the stray name");
    }

    #[test]
    fn a_cut_stream_is_told() {
        let mut bytes = member("base/5/1", &[7; 1000]);
        bytes.truncate(900);
        let mut stream = stream(vec![bytes]);
        assert!(stream.next_file().expect("readable").is_some());
        assert_eq!(stream.next_file(), Ok(None));
        assert!(
            stream.troubles()[0].contains("truncated"),
            "{:?}",
            stream.troubles()
        );
    }

    #[test]
    fn names_that_lead_out_are_left_out_and_told() {
        let bytes = [
            member("/etc/passwd", b"x"),
            member("base/../../x", b"x"),
            member("a//b", b"x"),
            member(&"a/".repeat(40), b"x"),
            member("base/5/1", b"y"),
            vec![0; 1024],
        ];
        let mut stream = stream(vec![bytes.concat()]);
        let passed = all(&mut stream);
        assert_eq!(names(&passed), ["base/5/1"]);
        let troubles = stream.troubles();
        assert_eq!(troubles.len(), 1, "{troubles:?}");
        assert!(
            troubles[0].starts_with("4 members have names that lead out"),
            "{troubles:?}"
        );
    }

    #[test]
    fn links_and_devices_are_names_only() {
        let flags = [b'1', b'2', b'3', b'4', b'6'];
        let mut bytes: Vec<u8> = flags
            .iter()
            .flat_map(|flag| build_header(&[b'a' + flag - b'1'], 0, *flag))
            .collect();
        bytes.extend(member("base/5/1", b"y"));
        bytes.extend([0; 1024]);
        let mut stream = stream(vec![bytes]);
        let passed = all(&mut stream);
        let kinds: Vec<EntryKind> = passed.iter().map(|(file, _)| file.kind).collect();
        assert_eq!(kinds[..5], [EntryKind::Other; 5]);
        assert_eq!(kinds[5..], [EntryKind::File]);
        assert!(passed[..5].iter().all(|(_, content)| content.is_empty()));
    }

    #[test]
    fn a_length_that_lies_gives_what_is_there() {
        for size in [1 << 40, u64::MAX, u64::MAX - 600] {
            let mut bytes = member("base/5/1", b"whole");
            bytes.extend(build_header(b"base/5/2", size, b'0'));
            bytes.extend([7; 700]);
            let next = [member("5/3", b"next"), vec![0; 1024]].concat();
            let mut stream = stream(vec![bytes, next]);
            let passed = all(&mut stream);
            assert_eq!(passed[0].1, b"whole");
            let troubles = stream.troubles();
            assert_eq!(troubles.len(), 1, "{size}: {troubles:?}");
            // No room is made for what a header says, and the next archive stands for itself.
            let last = passed.last().expect("a file");
            assert_eq!((&*last.0.path, &*last.1), ("pg_tblspc/1/5/3", &b"next"[..]));
            let lying = passed.iter().find(|(file, _)| file.path == "base/5/2");
            if let Some((file, content)) = lying {
                assert_eq!((file.len, &content[..]), (size, &[7; 700][..]));
            }
        }
    }

    #[test]
    fn a_description_that_lies_about_the_length_is_no_more_believed() {
        let words = b"29 size=18446744073709551615\n";
        let mut bytes = build_header(b"PaxHeader", words.len() as u64, b'x').to_vec();
        bytes.extend(words);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes.extend(member("base/5/1", &[7; 600]));
        bytes.extend([0; 1024]);
        let mut stream = stream(vec![bytes]);
        let passed = all(&mut stream);
        assert_eq!(names(&passed), ["base/5/1"]);
        assert_eq!(passed[0].0.len, u64::MAX);
        // The content, what fills its last block, and the end mark: all that is there.
        assert_eq!(passed[0].1.len(), 2048);
        let troubles = stream.troubles();
        assert!(
            troubles[0].contains("truncated in a member"),
            "{troubles:?}"
        );
    }

    #[test]
    fn a_long_name_is_passed_over_and_not_kept() {
        let mut bytes = build_header(b"././@LongLink", 1 << 20, b'L').to_vec();
        bytes.resize(bytes.len() + (1 << 20), b'y');
        bytes.extend(member("short", b"content"));
        bytes.extend(member("base/5/1", b"y"));
        bytes.extend([0; 1024]);
        let mut stream = stream(vec![bytes]);
        assert_eq!(names(&all(&mut stream)), ["base/5/1"]);
        assert!(stream.troubles()[0].starts_with("1 members have names"));
    }

    #[test]
    fn members_without_end_are_not_read() {
        let some = |count| {
            let members = (0..count).map(|number| member(&format!("base/{number}"), b""));
            members.collect::<Vec<_>>().concat()
        };
        let (endless, next) = (some(50), [some(10), vec![0; 1024]].concat());
        let mut stream = stream(vec![endless, next]);
        stream.members_max = 10;
        let passed = all(&mut stream);
        assert_eq!(passed.len(), 20, "ten of each archive");
        assert_eq!(stream.troubles(), ["base: it has more than 10 members"]);
        let read = stream.into_archives().read;
        assert_eq!(read, (11 + 10 + 1) * BLOCK, "nothing beyond the limit");
    }

    #[test]
    fn what_is_no_header_ends_its_archive_only() {
        let broken = [member("base/5/1", b"x"), vec![b'x'; 2000]].concat();
        let next = [member("5/3", b"next"), vec![0; 1024]].concat();
        let mut stream = stream(vec![broken, next]);
        assert_eq!(names(&all(&mut stream)), ["base/5/1", "pg_tblspc/1/5/3"]);
        let troubles = stream.troubles();
        assert_eq!(troubles.len(), 1, "{troubles:?}");
        assert!(troubles[0].contains("is none"), "{troubles:?}");
    }
}
