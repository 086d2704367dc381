//! A point of an SP-GiST index is moved to where it does not belong.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::trees::{item_at, spgist, spgist_rows};
use crate::way_out;

/// See the module.
pub struct SpgistValueOutside;

impl Injury for SpgistValueOutside {
    fn name(&self) -> &'static str {
        "spgist-value-outside"
    }

    fn summary(&self) -> &'static str {
        "a point of an SP-GiST index is moved to where it does not belong"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let index = site.relation?.index.as_ref()?;
        let points = ["quad_point_ops", "kd_point_ops"];
        points
            .contains(&index.classes.first()?.name.as_str())
            .then_some(())?;
        spgist(site).filter(|page| !page.holds_nulls())?;
        let rows = spgist_rows(site)?;
        let (item, _) = *choose(&rows, seed)?;
        let at = item_at(site, item)? + 16;
        let (x, y): ([u8; 8], [u8; 8]) = (
            *site.bytes.get(at..)?.first_chunk()?,
            *site.bytes.get(at + 8..)?.first_chunk()?,
        );
        let [x, y] = [x, y].map(f64::from_le_bytes);
        // To the far side of every line but one at infinity, in both directions.
        let far = |value: f64| -> f64 { if value > 400.0 { -1.0e300 } else { 1.0e300 } };
        let words = format!("the point in tuple {item} moved from ({x},{y})");
        let wound = Wound::edit(site, words, |bytes| {
            for (start, value) in [(at, far(x)), (at + 8, far(y))] {
                if let Some(side) = bytes.get_mut(start..start + 8) {
                    side.copy_from_slice(&value.to_le_bytes());
                }
            }
        })?;
        Some(wound.item(item).must(&["spgist-value-outside-node"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
