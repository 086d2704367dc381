//! Members of gzip, one behind the other, each held against its checksum and its length.
//!
//! What stands behind the last one and begins none is passed over, as `gzip` does: tapes fill their
//! last block.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

use super::peek_reader::PeekReader;

/// The first bytes of a member: its magic, and the only method there is.
pub(super) const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// A reader of members of gzip that compares each with its checksum and length.
pub(super) struct Gzip<R>(Option<GzDecoder<PeekReader<R>>>);

impl<R: BufRead> Gzip<R> {
    pub(super) fn of(packed: R) -> Self {
        Gzip(Some(GzDecoder::new(PeekReader::of(packed))))
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.0 {
            match member.read(buf)? {
                0 => {}
                count => return Ok(count),
            }
            let Some(mut rest) = self.0.take().map(GzDecoder::into_inner) else {
                break;
            };
            if rest.look()?.starts_with(&MAGIC) {
                self.0 = Some(GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn member(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).expect("memory");
        packed.finish().expect("memory")
    }

    fn read(packed: &[u8]) -> (Vec<u8>, Option<String>) {
        let mut all = Vec::new();
        let read = Gzip::of(packed).read_to_end(&mut all);
        (all, read.err().map(|error| error.to_string()))
    }

    #[test]
    fn members_follow_each_other_and_anything_follows_the_last() {
        let two = [member(b"one "), member(b""), member(b"two")].concat();
        for behind in [&b""[..], &[0; 700], b"rubbish", &MAGIC[..2]] {
            let (all, error) = read(&[&two[..], behind].concat());
            assert_eq!((&*all, error), (&b"one two"[..], None), "{behind:?}");
        }
    }

    #[test]
    fn a_checksum_a_length_and_a_cut_are_told() {
        let whole = member(&[7; 5000]);
        for at in [whole.len() - 8, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            let (all, error) = read(&changed);
            assert_eq!(all, [7; 5000]);
            assert!(error.is_some_and(|error| error.contains("checksum")));
        }
        for cut in 1..whole.len() - 1 {
            assert!(read(&whole[..whole.len() - cut]).1.is_some(), "{cut}");
        }
        let second = [member(b"one"), whole[..whole.len() - 4].to_vec()].concat();
        assert!(read(&second).1.is_some(), "of any member");
    }
}
