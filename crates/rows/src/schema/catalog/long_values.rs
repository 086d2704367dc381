//! Values of catalogs that stand in a TOAST relation, or compressed in their row.
//!
//! The chunks of one catalog are read once, when the first such value is met: they are small beside its rows.

use std::collections::{BTreeMap, HashMap};

use pgclinic_cluster::{Cluster, ForkFiles, HeapRows, Visibility};
use pgclinic_format::datum::decompress;
use pgclinic_format::toast::ToastPointer;
use pgclinic_format::{ColumnLayout, Oid, Varlena, varlena};

/// The longest value of a catalog that is read.
const VALUE_BYTES_MAX: usize = 64 << 20;
/// All chunks of one catalog that are held.
const CHUNK_BYTES_MAX: usize = 512 << 20;

const INTEGER: ColumnLayout = ColumnLayout {
    attlen: 4,
    attalign: 4,
};
const BYTEA: ColumnLayout = ColumnLayout {
    attlen: -1,
    attalign: 4,
};
const COLUMNS: [ColumnLayout; 3] = [INTEGER, INTEGER, BYTEA];

/// The long values of one catalog.
pub(super) struct LongValues<'a> {
    cluster: &'a Cluster,
    files: Option<&'a ForkFiles>,
    chunks: Option<HashMap<Oid, BTreeMap<u32, Vec<u8>>>>,
}

impl<'a> LongValues<'a> {
    pub(super) fn new(cluster: &'a Cluster, files: Option<&'a ForkFiles>) -> Self {
        LongValues {
            cluster,
            files,
            chunks: None,
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
        let (cluster, files) = (self.cluster, self.files);
        let chunks = self.chunks.get_or_insert_with(|| read(cluster, files));
        let value = chunks
            .get(&pointer.va_valueid)
            .ok_or_else(|| format!("value {} is not in its TOAST relation", pointer.va_valueid))?;
        let stored: Vec<u8> = value.values().flatten().copied().collect();
        let expected = usize::try_from(pointer.va_extsize).unwrap_or(usize::MAX);
        if stored.len() != expected {
            return Err(format!(
                "value {} has {} of {expected} bytes in its TOAST relation",
                pointer.va_valueid,
                stored.len()
            ));
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

fn read(cluster: &Cluster, files: Option<&ForkFiles>) -> HashMap<Oid, BTreeMap<u32, Vec<u8>>> {
    let mut chunks: HashMap<Oid, BTreeMap<u32, Vec<u8>>> = HashMap::new();
    let Some(files) = files else {
        return chunks;
    };
    let build = cluster.build;
    let mut rows = HeapRows::new(cluster.source().as_ref(), files, &COLUMNS, build.block_size);
    let visibility = Visibility::new(cluster);
    let mut held = 0usize;
    rows.for_each(build.segment_bytes, |row| {
        let (Some(id), Some(number), Some(data)) = (row.u32(0), row.u32(1), row.payload(2)) else {
            return;
        };
        held = held.saturating_add(data.len());
        if held > CHUNK_BYTES_MAX || !visibility.state(row.tuple).may_count() {
            return;
        }
        chunks.entry(id).or_default().insert(number, data.to_vec());
    });
    chunks
}
