//! How many rows stand on the blocks that a message names.

use pgclinic_cluster::{Cluster, ForkFiles, RelKind, Relation};
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{Fork, LpFlags, Page};

/// Blocks that are read for one message.
const BLOCKS_MAX: u64 = 4096;
/// Blocks on either side that an estimate looks at.
const NEIGHBOURS: u64 = 4;

/// Rows on a page, or what its neighbours let expect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowsAtRisk {
    /// Row versions.
    pub rows: u64,
    /// The page itself does not tell: this is what its neighbours hold.
    pub estimated: bool,
    /// How it was counted, for people.
    pub how: String,
}

/// Counts the rows on the blocks of `range`, half-open. Nothing for forks and indexes: they hold no
/// rows.
pub(super) fn rows_at_risk(
    cluster: &Cluster,
    files: &ForkFiles,
    relation: &Relation,
    range: [u64; 2],
) -> Option<RowsAtRisk> {
    let rows_stand_here = matches!(
        relation.kind,
        RelKind::Table | RelKind::Toast | RelKind::MaterializedView | RelKind::Sequence
    );
    (rows_stand_here && files.fork == Fork::Main).then_some(())?;
    let blocks = files.blocks(cluster.build.block_size, cluster.build.segment_bytes);
    let end = range[1]
        .min(blocks)
        .min(range[0].saturating_add(BLOCKS_MAX));
    let mut total = RowsAtRisk {
        rows: 0,
        estimated: false,
        how: String::new(),
    };
    for block in range[0]..end {
        match rows_on(cluster, files, block) {
            Some(rows) => total.rows += rows,
            None => {
                total.rows += estimate(cluster, files, block, blocks)?;
                total.estimated = true;
            }
        }
    }
    total.how = if total.estimated {
        "an estimate from the pages beside it, since the page's own header makes no sense".into()
    } else {
        "counted on the page: line pointers that name a row version".into()
    };
    (range[0] < end).then_some(total)
}

/// Line pointers in use on a page whose header makes sense.
fn rows_on(cluster: &Cluster, files: &ForkFiles, block: u64) -> Option<u64> {
    let build = cluster.build;
    let mut bytes = vec![0; usize::try_from(build.block_size).ok()?];
    let per_segment = build.segment_blocks().max(1);
    let segment = u32::try_from(block / per_segment).ok()?;
    let offset = block % per_segment * u64::from(build.block_size);
    let read = cluster
        .source()
        .read_at(&files.path(segment), offset, &mut bytes)
        .ok()?;
    let page = Page::parse(bytes.get(..read)?)?;
    if page.is_zeroed() {
        return Some(0);
    }
    (page.header_is_sane_to_the_server() && !page.is_new()).then_some(())?;
    if usize::from(page.pd_lower()) < HEADER_BYTES {
        return page.rows_despite_lower();
    }
    let normal = page
        .line_pointers()
        .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
    u64::try_from(normal.count()).ok()
}

fn estimate(cluster: &Cluster, files: &ForkFiles, block: u64, blocks: u64) -> Option<u64> {
    let near = block.saturating_sub(NEIGHBOURS)..block.saturating_add(NEIGHBOURS + 1).min(blocks);
    let known: Vec<u64> = near
        .filter(|other| *other != block)
        .filter_map(|other| rows_on(cluster, files, other))
        .collect();
    let count = u64::try_from(known.len()).ok()?;
    known.iter().sum::<u64>().checked_div(count)
}
