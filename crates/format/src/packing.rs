//! Values packed as a server packs them, for trials on real values.

use crate::datum::decompress;
use crate::pglz_pack;

/// A way to pack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packer {
    /// The server's own: byte for byte what it writes.
    Pglz,
    /// A block of LZ4. The server's library may find a match more or less.
    Lz4,
    /// zstd at its usual level 3, which no server packs values with yet.
    Zstd,
}

/// What `zstd` calls usual.
const ZSTD_LEVEL: i32 = 3;

impl Packer {
    /// The packed bytes without a header; nothing where the server keeps the value as it is.
    pub fn pack(self, raw: &[u8]) -> Option<Vec<u8>> {
        let packed = match self {
            Packer::Pglz => pglz_pack::pack(raw)?,
            Packer::Lz4 => lz4_flex::block::compress(raw),
            Packer::Zstd => zstd::bulk::compress(raw, ZSTD_LEVEL).ok()?,
        };
        (packed.len() + 4 < raw.len()).then_some(packed)
    }

    /// The value again; nothing for bytes that are not packed like this.
    pub fn unpack(self, packed: &[u8], raw_size: usize) -> Option<Vec<u8>> {
        let method = match self {
            Packer::Pglz => 0,
            Packer::Lz4 => 1,
            Packer::Zstd => return zstd::bulk::decompress(packed, raw_size).ok(),
        };
        decompress(method, packed, raw_size).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_gives_the_value_back() {
        let raw = "a value that repeats itself, ".repeat(50).into_bytes();
        for packer in [Packer::Pglz, Packer::Lz4, Packer::Zstd] {
            let packed = packer.pack(&raw).expect("it packs");
            assert_eq!(
                packer.unpack(&packed, raw.len()),
                Some(raw.clone()),
                "{packer:?}"
            );
        }
        assert_eq!(Packer::Lz4.pack(b"too short"), None);
    }
}
