//! An entry of a unique btree has the key of the one before it.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;
use crate::{btree_site, followers};

/// See the module.
pub struct BtreeKeyRepeated;

impl Injury for BtreeKeyRepeated {
    fn name(&self) -> &'static str {
        "btree-key-repeated"
    }

    fn summary(&self) -> &'static str {
        "an entry of a unique btree has the key of the one before it"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let leaf = btree_site::leaf(site)?;
        let relation = site.relation?;
        let index = relation
            .index
            .as_ref()
            .filter(|index| index.unique && index.valid)?;
        let width = match relation.layouts.as_deref()? {
            [layout] if index.key_count == 1 => usize::try_from(layout.attlen).ok()?,
            _ => return None,
        };
        let item = leaf.first_data();
        let (low, high) = (leaf.tuple(item)?, leaf.tuple(item + 1)?);
        let plain = !low.is_posting() && !high.is_posting() && low.0.t_tid() < high.0.t_tid();
        plain.then_some(())?;
        btree_site::names_live_row(site, item)?;
        btree_site::names_live_row(site, item + 1)?;
        let key = low.0.item().get(8..8 + width)?.to_vec();
        let at = btree_site::entry_at(site, item + 1)? + 8;
        let wound = Wound::edit(
            site,
            format!("entry {} has the key of entry {item}", item + 1),
            |page| {
                if let Some(room) = page.get_mut(at..at + width) {
                    room.copy_from_slice(&key);
                }
            },
        )?
        .item(item + 1);
        Some(
            wound
                .must(&["unique-key-doubled", "index-entry-of-other-key"])
                .may(&[followers::BTREE]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
