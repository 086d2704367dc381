//! A node of an SP-GiST index leads nowhere any more.

use pgclinic_format::Page;
use pgclinic_format::build::put_u16;
use pgclinic_format::spgist::{SpgistPage, State};
use pgclinic_format::types::Tid;

use crate::followers::INDEX_TREES;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::trees::spgist_nodes;
use crate::way_out;

/// See the module.
pub struct SpgistNodeCleared;

impl Injury for SpgistNodeCleared {
    fn name(&self) -> &'static str {
        "spgist-node-cleared"
    }

    fn summary(&self) -> &'static str {
        "a node of an SP-GiST index leads nowhere any more"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let nodes = spgist_nodes(site)?;
        let (item, at) = *choose(&nodes, seed)?;
        let target = Tid {
            block: u32::from(u16_of(site, at)?) << 16 | u32::from(u16_of(site, at + 2)?),
            offset: u16_of(site, at + 4)?,
        };
        let bytes = site.other_block(target.block)?;
        let page = SpgistPage::parse(Page::parse(&bytes)?)?;
        // A dead tuple that nothing leads to harms nobody.
        page.tuple(target.offset)
            .filter(|tuple| tuple.state() == State::Live)?;
        let words = format!("a node of tuple {item} set to lead nowhere");
        let wound = Wound::edit(site, words, |bytes| {
            put_u16(bytes, at, 0xFFFF);
            put_u16(bytes, at + 2, 0xFFFF);
            put_u16(bytes, at + 4, 0);
        })?;
        Some(
            wound
                .item(item)
                .must(&["spgist-unreachable"])
                .may(&[INDEX_TREES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}

fn u16_of(site: &Site<'_>, at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*site.bytes.get(at..)?.first_chunk()?))
}
