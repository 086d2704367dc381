//! The file of pg_class is empty.

use pgclinic_diagnose::plan::Change;
use pgclinic_format::oid::{PG_CLASS};
use pgclinic_format::RelationMap;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{RELATION_MAP, Site};
use crate::way_out;


/// See the module.
pub struct EmptiedCatalog;

impl Injury for EmptiedCatalog {
    fn name(&self) -> &'static str {
        "emptied-catalog"
    }

    fn summary(&self) -> &'static str {
        "the file of pg_class is empty"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(RELATION_MAP)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let map = RelationMap::parse(&site.bytes)
            .ok()
            .filter(RelationMap::is_right)?;
        let filenode = map.filenode(PG_CLASS)?;
        let (folder, _) = site.path.rsplit_once('/')?;
        let change = Change::Cut {
            path: format!("{folder}/{filenode}"),
            len: 0,
            kept: "cut".into(),
        };
        let wound = Wound::of(change, "the file of pg_class cut to nothing");
        Some(
            wound
                .must(&["empty-catalog"])
                .may(&[followers::LOST_CATALOGS, &["relation-lost"]]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::FILE
    }
}
