//! What the one page of a sequence says; truth: `src/include/commands/sequence.h`.

use pgclinic_cluster::{Cluster, ForkFiles};
use pgclinic_format::Page;
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::sequence::last_value;

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
    let (last_value, is_called) = last_value(page).ok_or("its page holds no sequence")?;
    let is_hurt =
        cluster.checksums() == Some(true) && page.pd_checksum() != page_checksum(page.bytes(), 0);
    Ok(SequenceValue {
        last_value,
        is_called,
        doubt: is_hurt
            .then(|| "the checksum of its page is wrong: the value was taken as it is".into()),
    })
}
