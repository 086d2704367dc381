//! Pages of GiST and SP-GiST indexes as sites of injuries.

use pgclinic_format::gist::{GistItem, GistPage};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::spgist::{SpgistPage, State, Tuple};

use crate::site::Site;

/// The site as a page of GiST that was not deleted.
pub(crate) fn gist<'a>(site: &'a Site<'_>) -> Option<GistPage<'a>> {
    site.method()
        .filter(|method| *method == AccessMethod::Gist)?;
    GistPage::parse(site.page()?).filter(|page| !page.is_deleted())
}

/// The entries of an inner page of GiST that has several.
pub(crate) fn gist_downlinks<'a>(site: &'a Site<'_>) -> Option<Vec<GistItem<'a>>> {
    let page = gist(site).filter(|page| !page.is_leaf())?;
    let items: Vec<_> = page.items().collect();
    (items.len() > 1).then_some(items)
}

/// The site as a page of SP-GiST, the meta page left out.
pub(crate) fn spgist<'a>(site: &'a Site<'_>) -> Option<SpgistPage<'a>> {
    site.method()
        .filter(|method| *method == AccessMethod::Spgist)?;
    SpgistPage::parse(site.page()?).filter(|page| !page.is_meta())
}

/// Live rows of a leaf page that is no root.
pub(crate) fn spgist_rows<'a>(site: &'a Site<'_>) -> Option<Vec<(u16, Tuple<'a>)>> {
    let page = spgist(site).filter(|page| page.is_leaf() && site.block > 2)?;
    Some(live(page))
}

/// Where the nodes of live inner tuples that lead somewhere stand: item, offset on the page, target.
pub(crate) fn spgist_nodes(site: &Site<'_>) -> Option<Vec<(u16, usize)>> {
    let page = spgist(site).filter(|page| !page.is_leaf())?;
    let mut found = Vec::new();
    for (number, tuple) in live(page) {
        let inner = tuple.inner();
        let mut at = item_at(site, number)? + 8 + usize::from(inner.prefix_size());
        let mut nodes = inner.nodes();
        let mut left = nodes.rest().len();
        while let Some(node) = nodes.next() {
            if node.downlink().is_some() {
                found.push((number, at));
            }
            at += left - nodes.rest().len();
            left = nodes.rest().len();
        }
    }
    Some(found)
}

fn live(page: SpgistPage<'_>) -> Vec<(u16, Tuple<'_>)> {
    let tuples = page.tuples();
    tuples
        .filter(|(_, tuple)| tuple.state() == State::Live)
        .collect()
}

/// Offset of an item on the site's page.
pub(crate) fn item_at(site: &Site<'_>, number: u16) -> Option<usize> {
    let range = site.page()?.line_pointer(number)?.range()?;
    Some(range.start)
}
