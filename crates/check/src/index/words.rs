//! What the server says of an index page when a scan comes to it, as each major words it.
//!
//! Truth: `_bt_checkpage`, `_hash_checkpage` and `gistcheckpage`; `mdread`, `mdreadv` and
//! `_mdfd_getseg` in `src/backend/storage/smgr/md.c`.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork};

use crate::check::ForkCx;

/// The block that asks for a new one.
const INVALID_BLOCK: BlockNo = BlockNo::MAX;

/// Of a page whose special space has another size than on all pages of its access method.
pub(crate) fn corrupted_page(fork: &ForkCx<'_>, block: BlockNo) -> Option<String> {
    let asks = matches!(
        fork.method?,
        AccessMethod::Btree | AccessMethod::Hash | AccessMethod::Gist
    );
    let name = main_fork_of(fork).filter(|_| asks)?;
    Some(format!(
        "ERROR:  index \"{name}\" contains corrupted page at block {block}"
    ))
}

/// Of a page of zeros to which a link leads.
pub(crate) fn zero_page(fork: &ForkCx<'_>, block: BlockNo) -> Option<String> {
    let name = main_fork_of(fork)?;
    Some(format!(
        "ERROR:  index \"{name}\" contains unexpected zero page at block {block}"
    ))
}

/// Of a link that leads behind the end.
pub(crate) fn no_block(fork: &ForkCx<'_>, block: BlockNo) -> Option<String> {
    main_fork_of(fork)?;
    let build = fork.cluster?.build;
    let segment_blocks = build.segment_blocks();
    let last = fork.blocks.checked_sub(1)?.checked_div(segment_blocks)?;
    let in_last = fork.blocks.checked_rem(segment_blocks)?;
    // A full segment is followed by one that may be empty.
    if block == INVALID_BLOCK || u64::from(block) < fork.blocks || in_last == 0 {
        return None;
    }
    let segment = u32::try_from(last).ok()?;
    if u64::from(block).checked_div(segment_blocks)? > last {
        let path = fork.files.path(segment.checked_add(1)?);
        return Some(format!(
            "ERROR:  could not open file \"{path}\" (target block {block}): previous segment is only {in_last} blocks"
        ));
    }
    let (path, bytes) = (fork.files.path(segment), build.block_size);
    let blocks = match fork.major() {
        ..17 => format!("block {block}"),
        _ => format!("blocks {block}..{block}"),
    };
    Some(format!(
        "ERROR:  could not read {blocks} in file \"{path}\": read only 0 of {bytes} bytes"
    ))
}

/// The name of the index whose main fork this is.
fn main_fork_of<'a>(fork: &ForkCx<'a>) -> Option<&'a str> {
    let relation = fork.relation.filter(|_| fork.fork() == Fork::Main)?;
    Some(relation.name.as_str())
}
