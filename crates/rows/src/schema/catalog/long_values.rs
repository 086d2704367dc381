//! Values of catalogs that stand in a TOAST relation, or compressed in their row.
//!
//! Where the chunks of one catalog stand is looked up once, when the first such value is met.

use std::sync::Arc;

use pgclinic_cluster::{
    ChunkIndex, Cluster, ForkFiles, FoundChunks, HeapScan, RowState, RunGatherer, ToastReader,
    named_rows,
};
use pgclinic_format::datum::decompress;
use pgclinic_format::toast::ToastPointer;
use pgclinic_format::toast_chunk::{CHUNK_COLUMNS, PlainChunk};
use pgclinic_format::{Varlena, varlena};

/// The longest value of a catalog that is read.
const VALUE_BYTES_MAX: usize = 64 << 20;
/// The long values of one catalog.
pub(super) struct LongValues<'a> {
    cluster: &'a Cluster,
    files: Option<&'a ForkFiles>,
    reader: Option<ToastReader<'a>>,
}

impl<'a> LongValues<'a> {
    pub(super) fn new(cluster: &'a Cluster, files: Option<&'a ForkFiles>) -> Self {
        LongValues {
            cluster,
            files,
            reader: None,
        }
    }

    /// The payload of a varlena, wherever it stands.
    pub(super) fn payload(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        match varlena::parse(bytes)
            .map_err(|_| "its length makes no sense")?
            .0
        {
            Varlena::Short(payload) | Varlena::Plain(payload) => Ok(payload.to_vec()),
            Varlena::Compressed(packed) => {
                let size = usize::try_from(packed.raw_size).unwrap_or(usize::MAX);
                unpack(packed.method, packed.data, size)
            }
            Varlena::External(pointer) => self.external(pointer),
        }
    }

    fn external(&mut self, pointer: ToastPointer) -> Result<Vec<u8>, String> {
        let value = pointer.va_valueid;
        let absent = || format!("value {value} is not in its TOAST relation");
        let files = self.files.ok_or_else(absent)?;
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(reader(self.cluster, files)),
        };
        let mut stored = Vec::new();
        let found = reader.fetch(pointer, &mut stored);
        if found != FoundChunks::Whole {
            return Err(match stored.len() {
                0 => absent(),
                bytes => format!(
                    "value {value} has {bytes} of {} bytes in its TOAST relation",
                    pointer.va_extsize
                ),
            });
        }
        if !pointer.is_compressed() {
            return Ok(stored);
        }
        let size = usize::try_from(pointer.va_rawsize.saturating_sub(4)).unwrap_or(usize::MAX);
        // In front stands the size once more.
        unpack(pointer.method, stored.get(4..).unwrap_or_default(), size)
    }
}

fn unpack(method: u8, data: &[u8], size: usize) -> Result<Vec<u8>, String> {
    if size > VALUE_BYTES_MAX {
        return Err(format!("a value of {size} bytes is too long"));
    }
    decompress(method, data, size).map_err(|error| error.to_string())
}

/// Of the rows that may count, those which surely do are preferred.
fn reader<'a>(cluster: &'a Cluster, files: &'a ForkFiles) -> ToastReader<'a> {
    let mut runs = RunGatherer::default();
    HeapScan::new(cluster, files, &CHUNK_COLUMNS).each_that_may_count(|row| {
        if let Some(chunk) = PlainChunk::parse(row.tuple) {
            let rank = u8::from(row.state != RowState::Visible);
            runs.push(chunk, row.block, row.item, rank);
        }
    });
    let index = Arc::new(ChunkIndex::new(runs.finish()));
    ToastReader::new(cluster, files, index, named_rows)
}
