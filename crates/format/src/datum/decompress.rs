//! The two ways the server compresses a value; truth: `toast_compression.c`, `pg_lzcompress.c`.

use std::fmt;

use crate::pglz;

/// The most raw bytes that one byte of an LZ4 block can stand for.
const LZ4_RATIO: usize = 255;

/// Why compressed bytes do not give the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecompressError {
    /// Neither 0 (pglz) nor 1 (LZ4).
    UnknownMethod(u8),
    /// The stream contradicts itself.
    Corrupt,
    /// The stream gives fewer or more bytes than the value says it has.
    WrongLength,
}

impl fmt::Display for DecompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecompressError::UnknownMethod(method) => {
                write!(f, "compression method {method} is unknown")
            }
            DecompressError::Corrupt => f.write_str("the compressed data is corrupt"),
            DecompressError::WrongLength => {
                f.write_str("the compressed data has another length than it says")
            }
        }
    }
}

impl std::error::Error for DecompressError {}

/// Unpacks a value of exactly `raw_size` bytes. `method` is what the top two bits of the size
/// word say: 0 pglz, 1 LZ4. Never holds more than `raw_size` bytes, which the caller limits.
pub fn decompress(method: u8, data: &[u8], raw_size: usize) -> Result<Vec<u8>, DecompressError> {
    match method {
        0 => pglz::decompress(data, raw_size),
        1 => lz4(data, raw_size),
        other => Err(DecompressError::UnknownMethod(other)),
    }
}

fn lz4(data: &[u8], raw_size: usize) -> Result<Vec<u8>, DecompressError> {
    if raw_size > data.len().saturating_mul(LZ4_RATIO) {
        return Err(DecompressError::WrongLength);
    }
    let mut raw = vec![0; raw_size];
    match lz4_flex::block::decompress_into(data, &mut raw) {
        Ok(length) if length == raw_size => Ok(raw),
        Ok(_) | Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) => {
            Err(DecompressError::WrongLength)
        }
        Err(_) => Err(DecompressError::Corrupt),
    }
}
