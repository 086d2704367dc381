//! Frames of zstd, one behind the other, each held against its checksum where it has one.
//!
//! The library gives nothing of what it unpacked in a call that meets a wrong checksum. So it is
//! given as many bytes as it asks for and no more, which is a block, or a checksum alone:
//! everything that came before an error counts.

use std::io::{self, BufRead, Read};

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::DParameter;

/// The first bytes of a frame.
pub(super) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Bytes that are given where a frame begins: its magic and what says how long its head is.
const BEGIN_BYTES: usize = 5;

/// The longest window of `zstd --long` that is followed, as a power of 2.
const WINDOW_LOG_MAX: u32 = if cfg!(target_pointer_width = "64") {
    31
} else {
    30
};

/// A reader of frames of zstd that compares each with its checksum.
pub(super) struct Zstd<R> {
    packed: R,
    decoder: Decoder<'static>,
    /// Bytes that the library asks for.
    wanted: usize,
    is_between_frames: bool,
}

impl<R: BufRead> Zstd<R> {
    /// Follows windows of up to 2 GiB, as `zstd --long=31` makes them.
    ///
    /// The library reserves the window that a frame asks for at once, but neither fills nor touches
    /// it: memory is taken as bytes are unpacked, up to the window's length. A frame that asks for
    /// 2 GiB and holds little takes little.
    pub(super) fn of(packed: R) -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
        Ok(Zstd {
            packed,
            decoder,
            wanted: BEGIN_BYTES,
            is_between_frames: true,
        })
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            let packed = self.packed.fill_buf()?;
            let is_end = packed.is_empty();
            if self.is_between_frames {
                if is_end {
                    return Ok(0);
                }
                self.decoder.reinit()?;
                self.wanted = BEGIN_BYTES;
            }
            let piece = packed.len().min(self.wanted.max(1));
            let mut from = InBuffer::around(packed.get(..piece).unwrap_or_default());
            let mut to = OutBuffer::around(&mut *buf);
            self.wanted = self.decoder.run(&mut from, &mut to)?;
            let (taken, given) = (from.pos(), to.pos());
            self.packed.consume(taken);
            self.is_between_frames = self.wanted == 0;
            if given > 0 {
                return Ok(given);
            }
            if is_end {
                let why = "it was truncated in a frame of zstd";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut packed = zstd::Encoder::new(Vec::new(), 1).expect("memory");
        packed.include_checksum(true).expect("a choice");
        packed.write_all(bytes).expect("memory");
        packed.finish().expect("memory")
    }

    fn read(packed: &[u8], room: usize) -> (Vec<u8>, Option<String>) {
        let (mut all, mut buf) = (Vec::new(), vec![0; room]);
        let mut reader = Zstd::of(packed).expect("memory");
        loop {
            match reader.read(&mut buf) {
                Ok(0) => return (all, None),
                Ok(count) => all.extend_from_slice(&buf[..count]),
                Err(error) => return (all, Some(error.to_string())),
            }
        }
    }

    fn sample() -> Vec<u8> {
        let byte = |at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8;
        (0..400_000).map(byte).collect()
    }

    #[test]
    fn frames_follow_each_other_into_any_room() {
        let skipped = [&[0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let sample = sample();
        let parts = [
            &skipped,
            &frame(&sample),
            &frame(b""),
            &skipped,
            &frame(b"two"),
        ];
        let packed = parts.map(Vec::as_slice).concat();
        let expected = [&sample[..], b"two"].concat();
        for room in [777, 100_000, 1 << 20] {
            let (all, error) = read(&packed, room);
            assert_eq!(error, None);
            assert!(all == expected, "{room}");
        }
    }

    #[test]
    fn all_that_comes_before_a_wrong_checksum_counts() {
        let sample = sample();
        for bytes in [&b"few"[..], &sample[..]] {
            let mut packed = frame(bytes);
            if let Some(last) = packed.last_mut() {
                *last ^= 1;
            }
            let (all, error) = read(&packed, 1 << 20);
            assert!(all == bytes);
            assert!(error.is_some_and(|error| error.contains("checksum")));
        }
    }

    #[test]
    fn a_cut_and_rubbish_are_told() {
        let packed = frame(&[7; 3000]);
        for len in 1..packed.len() {
            assert!(read(&packed[..len], 8192).1.is_some(), "{len}");
        }
        for behind in [&[0; 100][..], b"rubbish"] {
            let (all, error) = read(&[&packed[..], behind].concat(), 8192);
            assert_eq!(all, [7; 3000]);
            assert!(error.is_some(), "{behind:?}");
        }
    }
}
