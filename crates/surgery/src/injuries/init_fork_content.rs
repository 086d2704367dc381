//! The init fork of an unlogged index has a root.

use pgclinic_format::build::{put_u32, seal_page};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::plan::Change;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INIT_FILE, Site};
use crate::way_out;

/// See the module.
pub struct InitForkContent;

impl Injury for InitForkContent {
    fn name(&self) -> &'static str {
        "init-fork-content"
    }

    fn summary(&self) -> &'static str {
        "the init fork of an unlogged index has a root"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(INIT_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let btree = site.method() == Some(AccessMethod::Btree);
        let before = site.other_block(0).filter(|_| btree)?;
        let mut after = before.clone();
        put_u32(&mut after, 32, 1);
        if site.has_checksums() {
            seal_page(&mut after, 0);
        }
        let change = Change::Bytes {
            path: site.path.clone(),
            offset: 0,
            before,
            after,
        };
        Some(
            Wound::of(change, "the root set to block 1, with a right checksum")
                .must(&["init-fork-content"]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
