//! Where the rows that index entries lead to stand: for each root of a chain of versions, the live
//! one.

use pgclinic_format::heap_tuple::{HEAP_HOT_UPDATED, HEAP_ONLY_TUPLE};
use pgclinic_format::{BlockNo, LpFlags, Page};

use super::LeafLook;
use super::page_rows::PageRow;

/// What a btree's leaf says to a walk along the leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlaceSummary {
    pub(super) next: BlockNo,
    pub(super) is_first: bool,
    pub(super) rows: u32,
}

/// The line pointers of a heap page that indexes name, and the live row that each leads to.
enum Roots {
    /// Each of the first so many line pointers leads to its own row.
    All(u16),
    /// In their order.
    Each(Vec<[u16; 2]>),
}

impl Roots {
    fn len(&self) -> usize {
        match self {
            Roots::All(count) => usize::from(*count),
            Roots::Each(roots) => roots.len(),
        }
    }
}

/// What is known of one heap page.
#[derive(Clone, Copy)]
pub(super) struct PagePlaces<'a>(&'a Roots);

impl PagePlaces<'_> {
    /// The live row that an entry leads to; nothing where it leads to a dead one.
    #[inline]
    pub(super) fn live(self, offset: u16) -> Option<u16> {
        match self.0 {
            Roots::All(count) => (1..=*count).contains(&offset).then_some(offset),
            Roots::Each(roots) => {
                let at = roots.binary_search_by_key(&offset, |root| root[0]).ok()?;
                roots.get(at).map(|[_, live]| *live)
            }
        }
    }
}

/// Live rows of a heap, by the line pointer that indexes name; or the leaves of a btree.
#[derive(Default)]
pub(super) struct Places {
    roots: ByBlock<Roots>,
    pub(super) faces: ByBlock<PlaceSummary>,
}

/// What is kept of blocks, in their order once it is sorted. Threads come by blocks in long runs of
/// rising numbers, which are side by side cheaply, and nobody asks before all are there.
pub(super) struct ByBlock<T>(Vec<(BlockNo, T)>);

impl<T> Default for ByBlock<T> {
    fn default() -> Self {
        ByBlock(Vec::new())
    }
}

impl<T> ByBlock<T> {
    /// What is kept of a block.
    pub(super) fn get(&self, block: BlockNo) -> Option<&T> {
        // Of most relations there is something of every block, or of all but the first.
        let own = usize::try_from(block).ok()?;
        let near = [own, own.wrapping_sub(1)]
            .into_iter()
            .filter_map(|at| self.0.get(at));
        let mut near = near.filter(|(known, _)| *known == block);
        if let Some((_, kept)) = near.next() {
            return Some(kept);
        }
        let at = self
            .0
            .binary_search_by_key(&block, |(known, _)| *known)
            .ok()?;
        self.0.get(at).map(|(_, kept)| kept)
    }

    /// All of it in the order of blocks.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(BlockNo, T)> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Places {
    pub(super) fn absorb(&mut self, mut other: Places) {
        self.roots.0.append(&mut other.roots.0);
        self.faces.0.append(&mut other.faces.0);
    }

    /// Nothing more comes: what is there can be asked for.
    pub(super) fn sort(&mut self) {
        self.roots.0.sort_by_key(|(block, _)| *block);
        self.faces.0.sort_by_key(|(block, _)| *block);
    }

    /// Memory that it takes at most, about.
    pub(super) fn bytes(&self) -> usize {
        let rows: usize = self
            .roots
            .iter()
            .map(|(_, roots)| 48 + roots.len() * 4)
            .sum();
        rows + self.faces.len() * 32
    }

    /// Adds a leaf of a btree.
    pub(super) fn add_leaf(&mut self, block: BlockNo, look: &LeafLook<'_>) {
        let face = PlaceSummary {
            next: look.tree.next,
            is_first: look.tree.prev == 0,
            rows: u32::try_from(look.rows).unwrap_or(u32::MAX),
        };
        self.faces.0.push((block, face));
    }

    /// Adds a heap page.
    pub(super) fn add_heap(&mut self, page: Page<'_>, block: BlockNo, rows: &[PageRow<'_>]) {
        let is_chained = |row: &PageRow<'_>| {
            row.tuple
                .is_some_and(|tuple| tuple.t_infomask2() & HEAP_ONLY_TUPLE != 0)
        };
        let live = || rows.iter().filter(|row| row.is_live());
        let is_chained = live().any(is_chained);
        // Most pages of most tables: nothing is kept of their rows but how many they are.
        let is_own = |(row, number): (&PageRow<'_>, u16)| row.is_live() && row.number == number;
        let roots = match (is_chained, u16::try_from(rows.len())) {
            (true, _) => Roots::Each(chained(page, rows)),
            (false, Ok(count)) if rows.iter().zip(1..).all(is_own) => Roots::All(count),
            (false, _) => Roots::Each(live().map(|row| [row.number, row.number]).collect()),
        };
        self.roots.0.push((block, roots));
    }

    /// What is known of a heap page.
    pub(super) fn on_page(&self, block: BlockNo) -> Option<PagePlaces<'_>> {
        self.roots.get(block).map(PagePlaces)
    }
}

/// Follows every chain of versions of a page from its root.
fn chained(page: Page<'_>, rows: &[PageRow<'_>]) -> Vec<[u16; 2]> {
    let row = |number: u16| {
        let at = rows.binary_search_by_key(&number, |row| row.number).ok()?;
        rows.get(at)
    };
    let flags = |number: u16| {
        row(number)
            .and_then(|row| row.tuple)
            .map(|tuple| tuple.t_infomask2())
    };
    let mut roots = Vec::new();
    for (root, pointer) in page.line_pointers() {
        let mut at = match pointer.flags() {
            LpFlags::Redirect => pointer.lp_off(),
            LpFlags::Normal if flags(root).is_some_and(|flags| flags & HEAP_ONLY_TUPLE == 0) => {
                root
            }
            _ => continue,
        };
        // A chain has no more versions than the page has line pointers.
        for _ in 0..=rows.len() {
            let Some(version) = row(at) else { break };
            if version.is_live() {
                roots.push([root, at]);
                break;
            }
            let Some(tuple) = version
                .tuple
                .filter(|tuple| tuple.t_infomask2() & HEAP_HOT_UPDATED != 0)
            else {
                break;
            };
            at = tuple.t_ctid().offset;
        }
    }
    roots
}
