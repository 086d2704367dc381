//! Checksums of whole files, as a backup manifest names them.
//!
//! Truth: `src/common/checksum_helper.c`. CRC-32C is written in the order of the bytes in memory,
//! so the lowest first.

use std::fmt;

use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};

/// How a file is summed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Algorithm {
    /// CRC-32C, the default of `pg_basebackup`.
    Crc32c,
    /// SHA-224.
    Sha224,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 5] = [
        Algorithm::Crc32c,
        Algorithm::Sha224,
        Algorithm::Sha256,
        Algorithm::Sha384,
        Algorithm::Sha512,
    ];

    /// As `--manifest-checksums` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Crc32c => "CRC32C",
            Algorithm::Sha224 => "SHA224",
            Algorithm::Sha256 => "SHA256",
            Algorithm::Sha384 => "SHA384",
            Algorithm::Sha512 => "SHA512",
        }
    }

    /// Of this name, whatever its case.
    pub fn of_name(name: &str) -> Option<Self> {
        Algorithm::ALL
            .into_iter()
            .find(|one| one.name().eq_ignore_ascii_case(name))
    }

    /// Bytes of a sum.
    pub fn bytes(self) -> usize {
        match self {
            Algorithm::Crc32c => 4,
            Algorithm::Sha224 => 28,
            Algorithm::Sha256 => 32,
            Algorithm::Sha384 => 48,
            Algorithm::Sha512 => 64,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A sum in the making.
#[derive(Clone, Debug)]
pub struct Digest(State);

#[derive(Clone, Debug)]
enum State {
    Crc32c(u32),
    Sha224(Sha224),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl Digest {
    /// Of no bytes yet.
    pub fn new(algorithm: Algorithm) -> Self {
        Digest(match algorithm {
            Algorithm::Crc32c => State::Crc32c(0),
            Algorithm::Sha224 => State::Sha224(Sha224::new()),
            Algorithm::Sha256 => State::Sha256(Sha256::new()),
            Algorithm::Sha384 => State::Sha384(Sha384::new()),
            Algorithm::Sha512 => State::Sha512(Sha512::new()),
        })
    }

    /// With these bytes behind those before.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Crc32c(crc) => *crc = crc32c::crc32c_append(*crc, bytes),
            State::Sha224(sum) => sum.update(bytes),
            State::Sha256(sum) => sum.update(bytes),
            State::Sha384(sum) => sum.update(bytes),
            State::Sha512(sum) => sum.update(bytes),
        }
    }

    /// The sum.
    pub fn finish(self) -> Vec<u8> {
        match self.0 {
            State::Crc32c(crc) => crc.to_le_bytes().to_vec(),
            State::Sha224(sum) => sum.finalize().to_vec(),
            State::Sha256(sum) => sum.finalize().to_vec(),
            State::Sha384(sum) => sum.finalize().to_vec(),
            State::Sha512(sum) => sum.finalize().to_vec(),
        }
    }
}

/// Bytes as digits, two each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from pairs of digits; `None` for anything else.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|n| u8::try_from(n).ok())
    };
    let byte = |pair: &[u8; 2]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    rest.is_empty()
        .then(|| pairs.iter().map(byte).collect::<Option<Vec<u8>>>())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(algorithm: Algorithm, bytes: &[u8]) -> String {
        let mut digest = Digest::new(algorithm);
        bytes.chunks(3).for_each(|piece| digest.update(piece));
        hex(&digest.finish())
    }

    #[test]
    fn sums_of_known_bytes() {
        // The check value of CRC-32C is e3069283; its lowest byte comes first.
        assert_eq!(sum(Algorithm::Crc32c, b"123456789"), "839206e3");
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sum(Algorithm::Sha256, b"abc"), of_abc);
        for algorithm in Algorithm::ALL {
            assert_eq!(sum(algorithm, b"abc").len(), algorithm.bytes() * 2);
            assert_eq!(Algorithm::of_name(algorithm.name()), Some(algorithm));
        }
    }

    #[test]
    fn only_pairs_of_digits_are_bytes() {
        assert_eq!(unhex("00fFa1"), Some(vec![0, 255, 0xa1]));
        assert_eq!(unhex(""), Some(vec![]));
        assert_eq!((unhex("0"), unhex("zz"), unhex("é0")), (None, None, None));
    }
}
