//! A box on a leaf of a GiST index is enlarged beyond the key above.

use pgclinic_format::gist::GistItem;
use pgclinic_format::index_tuple::INDEX_NULL_MASK;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::trees::{gist, item_at};
use crate::way_out;

/// See the module.
pub struct GistKeyOutside;

impl Injury for GistKeyOutside {
    fn name(&self) -> &'static str {
        "gist-key-outside"
    }

    fn summary(&self) -> &'static str {
        "a box on a leaf of a GiST index is enlarged beyond the key above"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        gist(site).filter(|page| page.is_leaf() && site.block != 0)?;
        let index = site.relation?.index.as_ref()?;
        let boxes = ["box_ops", "poly_ops", "circle_ops", "point_ops"];
        boxes
            .contains(&index.classes.first()?.name.as_str())
            .then_some(())?;
        let items: Vec<_> = gist(site)?.items().collect();
        let whole = |item: &&GistItem<'_>| !item.tuple.has(INDEX_NULL_MASK);
        let fitting: Vec<_> = items.iter().filter(whole).collect();
        let item = choose(&fitting, seed)?.number;
        let at = item_at(site, item)? + 8;
        let words = format!("the right side of the box in entry {item} set to 1e300");
        let wound = Wound::edit(site, words, |bytes| {
            if let Some(side) = bytes.get_mut(at..at + 8) {
                side.copy_from_slice(&1.0e300_f64.to_le_bytes());
            }
        })?;
        Some(wound.item(item).must(&["gist-key-not-covered"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
