//! The undo record of a cluster's checksums: for each page that gets another one, the old and the
//! new. A change of a page each would take sixty times the room in a journal of text.
//!
//! ```text
//! section:  path bytes u16 | path | fields u16 | (block of the fork u32 | before u16 | after u16) …
//! ```
//!
//! All numbers are little-endian. A section is about pages of one file.

use std::io::{self, Read, Write};

/// Longest path of a section in bytes.
const PATH_MAX: usize = 4096;
const FIELD_BYTES: usize = 8;

/// The checksum field of one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChecksumField {
    /// Through all segments of the fork.
    pub(super) block: u32,
    /// What stands there.
    pub(super) before: u16,
    /// What will stand there.
    pub(super) after: u16,
}

impl ChecksumField {
    fn bytes(self) -> [u8; FIELD_BYTES] {
        let [a, b, c, d] = self.block.to_le_bytes();
        let ([e, f], [g, h]) = (self.before.to_le_bytes(), self.after.to_le_bytes());
        [a, b, c, d, e, f, g, h]
    }

    fn of([a, b, c, d, e, f, g, h]: [u8; FIELD_BYTES]) -> Self {
        ChecksumField {
            block: u32::from_le_bytes([a, b, c, d]),
            before: u16::from_le_bytes([e, f]),
            after: u16::from_le_bytes([g, h]),
        }
    }
}

/// Neighbouring pages of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Section {
    /// The file, from the root of the data directory.
    pub(super) path: String,
    /// Its pages.
    pub(super) fields: Vec<ChecksumField>,
}

/// Writes sections one after the other and sums them.
pub(super) struct RecordWriter<W> {
    out: W,
    hasher: blake3::Hasher,
    len: u64,
}

impl<W: Write> RecordWriter<W> {
    pub(super) fn new(out: W) -> Self {
        RecordWriter {
            out,
            hasher: blake3::Hasher::new(),
            len: 0,
        }
    }

    /// # Errors
    /// Of the writer; and a path or a section that is longer than any can be.
    pub(super) fn section(&mut self, path: &str, fields: &[ChecksumField]) -> io::Result<()> {
        let too_long = |_| io::Error::other("a section of checksums is too long");
        let path_bytes = u16::try_from(path.len()).map_err(too_long)?;
        let count = u16::try_from(fields.len()).map_err(too_long)?;
        self.put(&path_bytes.to_le_bytes())?;
        self.put(path.as_bytes())?;
        self.put(&count.to_le_bytes())?;
        let fields: Vec<u8> = fields.iter().flat_map(|field| field.bytes()).collect();
        self.put(&fields)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// The writer, the length of the record, and its hash in hexadecimal.
    pub(super) fn finish(mut self) -> io::Result<(W, u64, String)> {
        self.out.flush()?;
        let hash = self.hasher.finalize().to_hex().to_string();
        Ok((self.out, self.len, hash))
    }
}

/// Reads sections up to the end; one that is cut short is an error.
pub(super) struct RecordReader<R> {
    input: R,
}

impl<R: Read> RecordReader<R> {
    pub(super) fn new(input: R) -> Self {
        RecordReader { input }
    }

    /// # Errors
    /// Of the reader; and bytes that are no section.
    pub(super) fn next(&mut self) -> io::Result<Option<Section>> {
        let Some(path_bytes) = self.first_u16()? else {
            return Ok(None);
        };
        let mut path = vec![0; usize::from(path_bytes)];
        if path.len() > PATH_MAX {
            return Err(io::Error::other("a path in the record is too long"));
        }
        self.input.read_exact(&mut path)?;
        let path = String::from_utf8(path).map_err(io::Error::other)?;
        let mut count = [0; 2];
        self.input.read_exact(&mut count)?;
        let mut bytes = vec![0; usize::from(u16::from_le_bytes(count)) * FIELD_BYTES];
        self.input.read_exact(&mut bytes)?;
        let (fields, _) = bytes.as_chunks::<FIELD_BYTES>();
        let fields = fields.iter().copied().map(ChecksumField::of).collect();
        Ok(Some(Section { path, fields }))
    }

    /// The first number of a section; nothing where the record ends before it.
    fn first_u16(&mut self) -> io::Result<Option<u16>> {
        let mut low = [0; 1];
        if self.input.read(&mut low)? == 0 {
            return Ok(None);
        }
        let mut high = [0; 1];
        self.input.read_exact(&mut high)?;
        let ([low], [high]) = (low, high);
        Ok(Some(u16::from_le_bytes([low, high])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(block: u32) -> ChecksumField {
        ChecksumField {
            block,
            before: 7,
            after: 0xFFFE,
        }
    }

    fn record(sections: &[Section]) -> Vec<u8> {
        let mut writer = RecordWriter::new(Vec::new());
        for section in sections {
            writer
                .section(&section.path, &section.fields)
                .expect("a section");
        }
        let (bytes, len, hash) = writer.finish().expect("a record");
        assert_eq!(len, bytes.len() as u64);
        assert_eq!(hash, blake3::hash(&bytes).to_hex().as_str());
        bytes
    }

    #[test]
    fn what_was_written_is_read() {
        let sections = [
            Section {
                path: "base/5/16384".into(),
                fields: vec![field(0), field(u32::MAX)],
            },
            Section {
                path: "global/1262_fsm".into(),
                fields: vec![field(2)],
            },
        ];
        let bytes = record(&sections);
        let mut reader = RecordReader::new(bytes.as_slice());
        for section in sections {
            assert_eq!(reader.next().expect("a section"), Some(section));
        }
        assert_eq!(reader.next().expect("an end"), None);
    }

    #[test]
    fn a_record_that_is_cut_short_anywhere_is_an_error() {
        let bytes = record(&[Section {
            path: "base/5/16384".into(),
            fields: vec![field(0), field(1)],
        }]);
        for len in 1..bytes.len() {
            let cut = bytes.get(..len).expect("a part");
            assert!(RecordReader::new(cut).next().is_err(), "{len} bytes");
        }
    }
}
