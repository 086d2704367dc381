//! One file of a source, decompressed as it is read.

use std::io::{self, Read};
use std::sync::Arc;

use crate::tar::ArchiveCompression;
use crate::{Result, Source, SourceError};

/// Bytes that tell the compression.
const HEAD_BYTES: usize = 512;

/// What a file holds that may be compressed with gzip, LZ4 or zstd, which its first bytes tell; any
/// other file comes as it is. Checksums that the compression has are compared.
///
/// # Errors
///
/// The file cannot be read.
pub fn decompressed(source: &Arc<dyn Source>, path: &str) -> Result<Box<dyn Read + Send>> {
    let mut head = [0; HEAD_BYTES];
    let read = source.read_at(path, 0, &mut head)?;
    let compression = ArchiveCompression::of_compressed(head.get(..read).unwrap_or_default());
    let file = FileOfSource {
        source: Arc::clone(source),
        path: path.to_owned(),
        at: 0,
    };
    let reader = compression.unpack(file);
    reader.map_err(|error| SourceError::from_io(path, &error))
}

/// Reads a file of a source from its start to its end.
struct FileOfSource {
    source: Arc<dyn Source>,
    path: String,
    at: u64,
}

impl Read for FileOfSource {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_at(&self.path, self.at, buf);
        let count = read.map_err(io::Error::other)?;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    fn read(file: Vec<u8>) -> (Vec<u8>, bool) {
        let source: Arc<dyn Source> = Arc::new(Memory::new("files").with("a", file));
        let mut bytes = Vec::new();
        let read = decompressed(&source, "a").expect("a file");
        let is_whole = { read }.read_to_end(&mut bytes).is_ok();
        (bytes, is_whole)
    }

    #[test]
    fn the_first_bytes_tell_the_compression() {
        let raw: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
        let zstd = zstd::encode_all(&raw[..], 1).expect("memory");
        let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
        io::copy(&mut &raw[..], &mut lz4).expect("memory");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::copy(&mut &raw[..], &mut gzip).expect("memory");
        let files = [
            raw.clone(),
            zstd.clone(),
            lz4.finish().expect("memory"),
            gzip.finish().expect("memory"),
        ];
        for file in files {
            assert!(read(file) == (raw.clone(), true));
        }
        assert!(!read(zstd[..zstd.len() - 9].to_vec()).1, "it is truncated");
        assert!(read(Vec::new()) == (Vec::new(), true));
    }
}
