//! What is there and cannot be read by nature: tables whose access method is an extension's, and
//! encrypted ones.
//!
//! The evidence stands in `pg_am`. Bytes only support it: pages that make no sense are damage
//! anywhere else.

use pgclinic_format::{Fork, Page};
use pgclinic_model::document::NotChecked;

use crate::cluster::Cluster;
use crate::context::DatabaseContext;
use crate::files::ForkFiles;
use crate::relation::Relation;

/// Pages of a fork that are looked at.
const PAGES_TRIED: u64 = 16;

/// Why nothing is asked of the pages of a fork, if they are not known here.
pub fn why(
    view: &DatabaseContext<'_>,
    files: &ForkFiles,
    relation: &Relation,
) -> Option<NotChecked> {
    let what = || format!("{} ({})", relation.qualified_name(), files.path(0));
    if let Some(name) = relation.unknown_storage() {
        return Some(NotChecked {
            what: what(),
            why: format!("stored by the access method {name}, whose pages are not known here"),
            inherent: true,
        });
    }
    let may_be_encrypted = view.catalog.encrypts && files.fork == Fork::Main;
    (may_be_encrypted && makes_no_sense(view.cluster, files)).then(|| NotChecked {
        what: what(),
        why: "none of its pages makes sense, and pg_tde encrypts relations of this database: they may be encrypted".into(),
        inherent: false,
    })
}

/// The pages with content that were tried have headers which no server wrote, and there are some.
fn makes_no_sense(cluster: &Cluster, files: &ForkFiles) -> bool {
    let blocks = files.blocks(cluster.build.block_size, cluster.build.segment_bytes);
    let step = (blocks / PAGES_TRIED).max(1);
    let per_segment = cluster.build.segment_blocks().max(1);
    let page_bytes = u64::from(cluster.build.block_size);
    let mut bytes = vec![0; usize::try_from(page_bytes).unwrap_or(8192)];
    let mut tried = 0;
    let mut block = 0;
    while block < blocks {
        let segment = u32::try_from(block / per_segment).unwrap_or(u32::MAX);
        let offset = (block % per_segment) * page_bytes;
        let read = cluster
            .source()
            .read_at(&files.path(segment), offset, &mut bytes);
        if read != Ok(bytes.len()) {
            return false;
        }
        let page = Page::parse(&bytes).filter(|page| !page.is_zeroed());
        if page.is_some_and(|page| page.header_is_sane_to_the_server()) {
            return false;
        }
        tried += u64::from(page.is_some());
        block = block.saturating_add(step);
    }
    tried > 0
}
