//! What a walk keeps of a page: its neighbour, its ends, and what it links to.

use pgclinic_format::gin::{
    Category, GIN_INCOMPLETE_SPLIT, Key, Opaque, PageKind, Posting, Segments, posting_items,
    right_bound,
};
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, Page};

use super::keys::KeyOrders;
use super::pages::entries;

/// A key or a row number at the end of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    /// Of a tree of keys.
    Key {
        column: u16,
        category: Category,
        bytes: Box<[u8]>,
    },
    /// Of a tree of row numbers.
    Row(Tid),
}

impl Bound {
    pub(super) fn of(key: &Key<'_>) -> Bound {
        Bound::Key {
            column: key.column,
            category: key.category,
            bytes: key.bytes.into(),
        }
    }

    /// Nothing when it cannot be told.
    pub(super) fn compare(
        &self,
        other: &Bound,
        keys: Option<&KeyOrders<'_>>,
    ) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Bound::Row(a), Bound::Row(b)) => Some(a.cmp(b)),
            (Bound::Key { .. }, Bound::Key { .. }) => keys?.compare(&self.key()?, &other.key()?),
            _ => None,
        }
    }

    fn key(&self) -> Option<Key<'_>> {
        match self {
            Bound::Key {
                column,
                category,
                bytes,
            } => Some(Key {
                column: *column,
                category: *category,
                bytes,
            }),
            Bound::Row(_) => None,
        }
    }
}

/// A link to the level below.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Downlink {
    /// The page that names it.
    pub(super) parent: BlockNo,
    /// The page below.
    pub(super) child: BlockNo,
    /// Highest key or row of the page below, where that is said.
    pub(super) highest: Option<Bound>,
}

/// A page, read once.
#[derive(Clone, Debug)]
pub(super) struct PageBounds {
    pub(super) kind: PageKind,
    pub(super) right: Option<BlockNo>,
    /// The page above may not name the right neighbour yet.
    pub(super) split: bool,
    /// Lowest key or row.
    pub(super) first: Option<Bound>,
    /// Highest key or row that counts.
    pub(super) last: Option<Bound>,
    /// The right bound of a page of row numbers with a right neighbour.
    pub(super) bound: Option<Tid>,
    pub(super) downlinks: Vec<Downlink>,
    /// Roots of trees of row numbers.
    pub(super) trees: Vec<BlockNo>,
    /// An entry whose key is not above the one before.
    pub(super) disorder: Option<u16>,
}

impl PageBounds {
    pub(super) fn of(
        page: Page<'_>,
        block: BlockNo,
        keys: Option<&KeyOrders<'_>>,
    ) -> Option<PageBounds> {
        let opaque = Opaque::of(page)?;
        let mut bounds = PageBounds {
            kind: opaque.kind()?,
            right: opaque.right(),
            split: opaque.has(GIN_INCOMPLETE_SPLIT),
            first: None,
            last: None,
            bound: None,
            downlinks: Vec::new(),
            trees: Vec::new(),
            disorder: None,
        };
        match bounds.kind {
            PageKind::EntryLeaf | PageKind::EntryInner => bounds.look_at_entries(page, block, keys),
            PageKind::PostingInner => bounds.look_at_items(page, block),
            PageKind::PostingLeaf => bounds.look_at_rows(page),
            _ => {}
        }
        Some(bounds)
    }

    fn look_at_entries(&mut self, page: Page<'_>, block: BlockNo, keys: Option<&KeyOrders<'_>>) {
        let leaf = self.kind == PageKind::EntryLeaf;
        let count = entries(page).count();
        let mut before: Option<Key<'_>> = None;
        for (index, (item, entry)) in entries(page).enumerate() {
            // The last key of the last page of a level says nothing.
            let counts = leaf || index + 1 < count || self.right.is_some();
            let key = keys.and_then(|keys| Some(entry.key(keys.shape()).ok()?.0));
            let key = key.filter(|_| counts);
            if let (Some(orders), Some(before), Some(key)) = (keys, before, key) {
                let rises = orders
                    .compare(&before, &key)
                    .is_none_or(std::cmp::Ordering::is_lt);
                if !rises && self.disorder.is_none() {
                    self.disorder = Some(item);
                }
            }
            if index == 0 {
                self.first = key.as_ref().map(Bound::of);
            }
            before = key;
            if !leaf {
                self.downlinks.push(Downlink {
                    parent: block,
                    child: entry.downlink(),
                    highest: key.as_ref().map(Bound::of),
                });
            } else if let Some(Posting::Tree(root)) = entry.posting() {
                self.trees.push(root);
            }
        }
        self.last = before.as_ref().map(Bound::of);
    }

    fn look_at_items(&mut self, page: Page<'_>, block: BlockNo) {
        self.bound = right_bound(page).filter(|_| self.right.is_some());
        self.downlinks = posting_items(page)
            .map(|item| Downlink {
                parent: block,
                child: item.child,
                highest: Some(Bound::Row(item.key)),
            })
            .collect();
        if let Some(last) = self.downlinks.last_mut().filter(|_| self.right.is_none()) {
            last.highest = None;
        }
        let mut known = self
            .downlinks
            .iter()
            .filter_map(|link| link.highest.clone());
        self.first = known.next();
        self.last = known.next_back().or_else(|| self.first.clone());
    }

    fn look_at_rows(&mut self, page: Page<'_>) {
        self.bound = right_bound(page).filter(|_| self.right.is_some());
        for segment in Segments::of(page) {
            let mut rows = segment.rows.map_while(Result::ok);
            let first = rows.next();
            let last = rows.last().or(first);
            self.first = self.first.take().or(first.map(Bound::Row));
            self.last = last.map(Bound::Row).or(self.last.take());
        }
    }
}
