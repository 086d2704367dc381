//! Where the rows of a heap stand, as one pass over its pages saw it: whether what an index entry
//! leads to can be there.

use pgclinic_format::BlockNo;
use pgclinic_format::types::Tid;

/// What stands at a TID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum PlaceState {
    /// A row version, live or dead, or a line pointer to one.
    Row,
    /// The same on a page of which something cannot be read, or whose checksum denies it.
    Doubtful,
    /// The page is there, and no row is: no index entry may lead to such a line pointer.
    NoRow,
    /// The page could not be read.
    Unread,
    /// The page is all zero, makes no sense, or lies past the end of the file.
    PageLost,
}

impl PlaceState {
    /// Nothing of the page could be used.
    pub(crate) fn is_without_page(self) -> bool {
        matches!(self, PlaceState::Unread | PlaceState::PageLost)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PageState {
    Lost,
    Unread,
    /// So many line pointers.
    Doubtful(u16),
    Sound(u16),
}

/// For each line pointer of a heap, whether a row stands there: four bytes a page, and eight for
/// each line pointer that is not in use.
#[derive(Default, Debug)]
pub(crate) struct RowPlaces {
    pages: Vec<PageState>,
    /// Line pointers without a row that can be read, in order.
    unused: Vec<Tid>,
    /// Pages that cannot be used, all-zero ones left out: those are legal where no entry leads to
    /// them.
    bad_pages: u64,
    zeroed_pages: u64,
    unread_pages: u64,
    denied_pages: u64,
    /// A server writes meanwhile.
    beside_a_server: Option<Truncation>,
}

/// From which block on a running server truncated the heap since its last checkpoint, if it did:
/// entries of its indexes may still lead there.
#[derive(Clone, Copy, Debug)]
struct Truncation(Option<BlockNo>);

impl RowPlaces {
    /// While a server writes, entries of indexes are of another moment than the rows: they tell
    /// nothing but that the page they lead to must be there.
    pub(crate) fn beside_a_server(truncated_to: Option<BlockNo>) -> Self {
        RowPlaces {
            beside_a_server: Some(Truncation(truncated_to)),
            ..RowPlaces::default()
        }
    }

    /// A row without an entry that leads to it, or the other way round, is on its way.
    pub(crate) fn are_on_their_way(&self) -> bool {
        self.beside_a_server.is_some()
    }

    /// The pages between the last one and this one were not seen.
    fn put(&mut self, block: BlockNo, state: PageState) {
        let index = usize::try_from(block).unwrap_or(usize::MAX);
        // A segment may lie far past the others; memory stays bounded by what was read.
        if index < self.pages.len() || index > PAGES_MAX {
            return;
        }
        self.pages.resize(index, PageState::Lost);
        self.pages.push(state);
    }

    /// A page of zeros.
    pub(crate) fn zeroed(&mut self, block: BlockNo) {
        self.zeroed_pages += 1;
        self.put(block, PageState::Lost);
    }

    /// A page whose header makes no sense.
    pub(crate) fn senseless(&mut self, block: BlockNo) {
        self.bad_pages += 1;
        self.put(block, PageState::Lost);
    }

    /// A page that could not be read.
    pub(crate) fn unread(&mut self, block: BlockNo) {
        self.bad_pages += 1;
        self.unread_pages += 1;
        self.put(block, PageState::Unread);
    }

    /// A page with so many line pointers, those of `unused` without a row.
    pub(crate) fn page(&mut self, block: BlockNo, count: u16, unused: &[u16], is_doubtful: bool) {
        self.bad_pages += u64::from(is_doubtful);
        self.put(
            block,
            if is_doubtful {
                PageState::Doubtful(count)
            } else {
                PageState::Sound(count)
            },
        );
        let tids = unused.iter().map(|offset| Tid {
            block,
            offset: *offset,
        });
        self.unused.extend(tids);
    }

    /// What an index entry with this TID leads to.
    pub(crate) fn state(&self, tid: Tid) -> PlaceState {
        let state = self.state_as_read(tid);
        match self.beside_a_server {
            Some(Truncation(Some(blocks))) if tid.block >= blocks => PlaceState::Row,
            Some(_) if state == PlaceState::NoRow => PlaceState::Row,
            _ => state,
        }
    }

    fn state_as_read(&self, tid: Tid) -> PlaceState {
        let index = usize::try_from(tid.block).unwrap_or(usize::MAX);
        let (count, known) = match self.pages.get(index) {
            // Reading ends with the page that fails: those behind it may be there.
            None if self.has_unread() => return PlaceState::Unread,
            None | Some(PageState::Lost) => return PlaceState::PageLost,
            Some(PageState::Unread) => return PlaceState::Unread,
            Some(PageState::Doubtful(count)) => (*count, PlaceState::Doubtful),
            Some(PageState::Sound(count)) => (*count, PlaceState::Row),
        };
        let is_there = (1..=count).contains(&tid.offset);
        if is_there && self.unused.binary_search(&tid).is_err() {
            known
        } else {
            PlaceState::NoRow
        }
    }

    /// Every page could be read and is what its header and checksum say, or all zero.
    pub(crate) fn is_sound(&self) -> bool {
        self.bad_pages == 0
    }

    /// The checksum of a page denies it.
    pub(crate) fn denied(&mut self) {
        self.denied_pages += 1;
    }

    /// Pages whose checksums deny them.
    pub(crate) fn denied_pages(&self) -> u64 {
        self.denied_pages
    }

    /// Some page could not be read.
    pub(crate) fn has_unread(&self) -> bool {
        self.unread_pages > 0
    }

    /// Some page is all zero.
    pub(crate) fn has_zeroed(&self) -> bool {
        self.zeroed_pages > 0
    }
}

/// 1 TiB of pages of 8 kB: no catalog is larger.
const PAGES_MAX: usize = 1 << 27;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(block: BlockNo, offset: u16) -> Tid {
        Tid { block, offset }
    }

    #[test]
    fn an_entry_leads_to_a_row_or_to_where_none_can_be() {
        let mut places = RowPlaces::default();
        places.page(0, 3, &[2], false);
        places.zeroed(1);
        places.page(3, 2, &[], true);
        places.unread(4);
        let expected = [
            (at(0, 1), PlaceState::Row),
            (at(0, 2), PlaceState::NoRow),
            (at(0, 4), PlaceState::NoRow),
            (at(0, 0), PlaceState::NoRow),
            (at(1, 1), PlaceState::PageLost),
            (at(2, 1), PlaceState::PageLost),
            (at(3, 2), PlaceState::Doubtful),
            (at(4, 1), PlaceState::Unread),
            (at(5, 1), PlaceState::Unread),
        ];
        for (tid, state) in expected {
            assert_eq!(places.state(tid), state, "{tid}");
        }
        assert!(!places.is_sound());
    }

    #[test]
    fn beside_a_server_an_entry_tells_of_its_page_alone() {
        let mut places = RowPlaces::beside_a_server(Some(3));
        places.page(0, 3, &[2], false);
        places.zeroed(1);
        let expected = [
            (at(0, 2), PlaceState::Row),
            (at(0, 4), PlaceState::Row),
            (at(1, 1), PlaceState::PageLost),
            (at(2, 1), PlaceState::PageLost),
            (at(3, 1), PlaceState::Row),
        ];
        for (tid, state) in expected {
            assert_eq!(places.state(tid), state, "{tid}");
        }
    }
}
