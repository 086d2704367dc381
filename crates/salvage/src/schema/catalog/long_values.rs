//! Values of catalogs that stand in a TOAST relation, or compressed in their row.
//!
//! Where the chunks of one catalog stand is looked up once, when the first such value is met.

use std::io;
use std::mem::take;
use std::sync::Arc;

use pgclinic_cluster::{
    Cluster, ForkFiles, FoundChunks, HeapScan, RowState, RunCollector, RunGatherer, ToastReader,
    named_rows,
};
use pgclinic_format::datum::{DecompressError, Unpacker, decompress};
use pgclinic_format::toast::ToastPointer;
use pgclinic_format::toast_chunk::{CHUNK_COLUMNS, PlainChunk};
use pgclinic_format::{Varlena, varlena};
use pgclinic_spill::Part;

use super::super::long_text::{CatalogRoom, TextStore};
use super::table::Taken;

/// The longest compressed value of a catalog that is read.
const VALUE_BYTES_MAX: usize = 64 << 20;
/// Values that are put together in memory; longer ones go to the store piece by piece.
const SHORT_BYTES: usize = 64 << 10;
/// In front of compressed bytes in TOAST stands the size once more.
const SIZE_BYTES: usize = 4;
/// Chunks after which their runs are handed over.
const CHUNKS_GATHERED: u32 = 1 << 16;
/// The long values of one catalog.
pub(super) struct LongValues<'a> {
    cluster: &'a Cluster,
    files: Option<&'a ForkFiles>,
    room: &'a CatalogRoom,
    store: &'a TextStore,
    reader: Option<ToastReader<'a>>,
}

/// Why a value is lost, in words.
struct Why(String);

impl From<io::Error> for Why {
    fn from(error: io::Error) -> Self {
        Why(error.to_string())
    }
}

impl<'a> LongValues<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        files: Option<&'a ForkFiles>,
        room: &'a CatalogRoom,
        store: &'a TextStore,
    ) -> Self {
        LongValues {
            cluster,
            files,
            room,
            store,
            reader: None,
        }
    }

    /// The payload of a varlena, wherever it stands.
    pub(super) fn payload(&mut self, bytes: &[u8]) -> Result<Taken, String> {
        match varlena::parse(bytes)
            .map_err(|_| "its length makes no sense")?
            .0
        {
            Varlena::Short(payload) | Varlena::Plain(payload) => {
                Ok(Taken::Payload(payload.to_vec()))
            }
            Varlena::Compressed(packed) => {
                let size = usize::try_from(packed.raw_size).unwrap_or(usize::MAX);
                unpack(packed.method, packed.data, size).map(Taken::Payload)
            }
            Varlena::External(pointer) => self.external(pointer),
        }
    }

    fn external(&mut self, pointer: ToastPointer) -> Result<Taken, String> {
        let absent = || format!("value {} is not in its TOAST relation", pointer.va_valueid);
        let files = self.files.ok_or_else(absent)?;
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(reader(self.cluster, files, self.room)?),
        };
        let size = usize::try_from(pointer.va_rawsize.saturating_sub(4)).unwrap_or(usize::MAX);
        if size <= SHORT_BYTES {
            return short(reader, pointer, size).map(Taken::Payload);
        }
        if pointer.is_compressed() && size > VALUE_BYTES_MAX {
            whole(reader.fetch_each(pointer, &mut |_| ()), pointer, 0)?;
            return Err(too_long(size));
        }
        let kept = self.store.keep_pieces(size, &mut |give| {
            long(reader, pointer, size, give).map_err(Why)
        });
        kept.map(Taken::Kept).map_err(|why| why.0)
    }
}

fn short(
    reader: &mut ToastReader<'_>,
    pointer: ToastPointer,
    size: usize,
) -> Result<Vec<u8>, String> {
    let mut stored = Vec::new();
    let found = reader.fetch(pointer, &mut stored);
    whole(found, pointer, stored.len())?;
    if !pointer.is_compressed() {
        Ok(stored)
    } else {
        unpack(
            pointer.method,
            stored.get(SIZE_BYTES..).unwrap_or_default(),
            size,
        )
    }
}

fn long(
    reader: &mut ToastReader<'_>,
    pointer: ToastPointer,
    size: usize,
    give: &mut dyn FnMut(&[u8]),
) -> Result<(), String> {
    let mut stored = 0;
    if !pointer.is_compressed() {
        let found = reader.fetch_each(pointer, &mut |data| {
            stored += data.len();
            give(data);
        });
        return whole(found, pointer, stored);
    }
    let raw_size = u64::try_from(size).unwrap_or(u64::MAX);
    let mut unpacker =
        Unpacker::new(pointer.method, raw_size).map_err(|error| error.to_string())?;
    let mut broken = None;
    let found = reader.fetch_each(pointer, &mut |data| {
        let head = SIZE_BYTES.saturating_sub(stored).min(data.len());
        stored += data.len();
        if broken.is_none() {
            broken = unpacker
                .feed(data.get(head..).unwrap_or_default(), give)
                .err();
        }
    });
    whole(found, pointer, stored)?;
    let broken = broken.or((unpacker.raw_left() > 0).then_some(DecompressError::WrongLength));
    broken.map_or(Ok(()), |error| Err(error.to_string()))
}

/// An error where not all chunks were found.
fn whole(found: FoundChunks, pointer: ToastPointer, bytes: usize) -> Result<(), String> {
    let value = pointer.va_valueid;
    match (found, bytes) {
        (FoundChunks::Whole, _) => Ok(()),
        (_, 0) => Err(format!("value {value} is not in its TOAST relation")),
        _ => Err(format!(
            "value {value} has {bytes} of {} bytes in its TOAST relation",
            pointer.va_extsize
        )),
    }
}

fn unpack(method: u8, data: &[u8], size: usize) -> Result<Vec<u8>, String> {
    if size > VALUE_BYTES_MAX {
        return Err(too_long(size));
    }
    decompress(method, data, size).map_err(|error| error.to_string())
}

fn too_long(size: usize) -> String {
    format!("a value of {size} bytes is too long")
}

/// Of the rows that may count, those which surely do are preferred.
fn reader<'a>(
    cluster: &'a Cluster,
    files: &'a ForkFiles,
    room: &CatalogRoom,
) -> Result<ToastReader<'a>, String> {
    let memory = room.memory.part(Part::ToastRuns);
    let mut collector = RunCollector::new(&memory, &room.folder);
    let mut runs = RunGatherer::default();
    let (mut chunks, mut failure) = (0_u32, None);
    HeapScan::new(cluster, files, &CHUNK_COLUMNS).each_that_may_count(|row| {
        if let Some(chunk) = PlainChunk::parse(row.tuple) {
            let rank = u8::from(row.state != RowState::Visible);
            runs.push(chunk, row.block, row.item, rank);
            chunks = chunks.wrapping_add(1);
        }
        if chunks.is_multiple_of(CHUNKS_GATHERED) {
            failure = failure
                .take()
                .or(collector.add(take(&mut runs).finish()).err());
        }
    });
    let index = collector
        .add(runs.finish())
        .and_then(|()| collector.finish());
    match (failure, index) {
        (None, Ok(index)) => Ok(ToastReader::new(
            cluster,
            files,
            Arc::new(index),
            named_rows,
        )),
        (Some(error), _) | (None, Err(error)) => Err(error.to_string()),
    }
}
