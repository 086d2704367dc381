//! What the one page of a sequence says; truth: `src/include/commands/sequence.h`.

use pgclinic_cluster::{Cluster, ForkFiles};
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::sequence::{COLUMNS, SEQUENCE_MAGIC, magic};
use pgclinic_format::{Attributes, HeapTuple, LpFlags, Page, attribute::Attribute};

/// How far a sequence is.
pub(crate) struct SequenceValue {
    pub(crate) last_value: i64,
    pub(crate) is_called: bool,
    /// Why it may be wrong.
    pub(crate) doubt: Option<String>,
}

/// The same from its file; why that says nothing, otherwise.
pub(crate) fn value_of_file(cluster: &Cluster, files: &ForkFiles) -> Result<SequenceValue, String> {
    let path = files.path(0);
    let mut bytes = vec![0; usize::try_from(cluster.build.block_size).unwrap_or(8192)];
    let read = cluster.source().read_at(&path, 0, &mut bytes);
    let read = read.map_err(|error| error.to_string())?;
    let page = Page::parse(bytes.get(..read).unwrap_or_default());
    let page = page.ok_or("its file is empty")?;
    let (last_value, is_called) = value(page).ok_or("its page holds no sequence")?;
    let is_hurt =
        cluster.checksums() == Some(true) && page.pd_checksum() != page_checksum(page.bytes(), 0);
    Ok(SequenceValue {
        last_value,
        is_called,
        doubt: is_hurt
            .then(|| "the checksum of its page is wrong: the value was taken as it is".into()),
    })
}

fn value(page: Page<'_>) -> Option<(i64, bool)> {
    (magic(page) == Some(SEQUENCE_MAGIC)).then_some(())?;
    let mut pointers = page.line_pointers();
    let (_, pointer) = pointers.find(|(_, pointer)| pointer.flags() == LpFlags::Normal)?;
    let tuple = HeapTuple::parse(page.item(pointer)?)?;
    let mut values = Attributes::new(tuple, &COLUMNS).filter_map(|attribute| match attribute {
        Ok(Attribute::Value(range)) => tuple.bytes().get(range),
        _ => None,
    });
    let last_value = i64::from_le_bytes(*values.next()?.first_chunk()?);
    let is_called = *values.nth(1)?.first()?;
    (is_called <= 1).then_some((last_value, is_called == 1))
}
