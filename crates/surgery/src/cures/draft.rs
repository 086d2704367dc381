//! What a cure makes of a page, before map, checksum and preview follow from it.

use pgclinic_model::plan::Safety;

use super::dangling::Gone;

/// What becomes of `PD_ALL_VISIBLE` and the visibility map's bits of the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MapBits {
    /// They stay: what they say is still right.
    Kept,
    /// They are cleared with the page: the server must look at its rows again.
    Cleared,
}

/// A row that the cure is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ConcernedRow {
    /// Line pointer number.
    pub(super) item: u16,
    /// Somebody may see it today, and nobody will.
    pub(super) lost: bool,
}

/// A cure of one page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Draft {
    /// What is done, in a sentence.
    pub(super) summary: String,
    /// How sure it is.
    pub(super) safety: Safety,
    /// Why.
    pub(super) evidence: Vec<String>,
    /// What to know before.
    pub(super) warnings: Vec<String>,
    /// Nothing of the page stays, whatever was wrong with it.
    pub(super) replaces_page: bool,
    /// The stored checksum is that of the page afterwards, so that it hides nothing.
    pub(super) is_confirmed_by_checksum: bool,
    /// The page afterwards; its checksum is made true later.
    pub(super) page: Vec<u8>,
    /// The map.
    pub(super) map: MapBits,
    /// Rows that go, come back, or are read differently.
    pub(super) rows: Vec<ConcernedRow>,
    /// Rows are lost that nobody can count.
    pub(super) rows_unknown: bool,
    /// What no index entry may lead to any more.
    pub(super) gone: Option<Gone>,
    /// Nothing is lost by it, unless an index entry leads there.
    pub(super) is_exact_without_entries: bool,
}

impl Draft {
    /// Of a page.
    pub(super) fn new(page: Vec<u8>, summary: impl Into<String>, safety: Safety) -> Self {
        Draft {
            summary: summary.into(),
            safety,
            evidence: Vec::new(),
            warnings: Vec::new(),
            replaces_page: false,
            is_confirmed_by_checksum: false,
            page,
            map: MapBits::Kept,
            rows: Vec::new(),
            rows_unknown: false,
            gone: None,
            is_exact_without_entries: false,
        }
    }

    /// With a reason for its safety.
    pub(super) fn because(mut self, why: impl Into<String>) -> Self {
        self.evidence.push(why.into());
        self
    }

    /// With something to know before.
    pub(super) fn warn(mut self, what: impl Into<String>) -> Self {
        self.warnings.push(what.into());
        self
    }

    /// With the map's bits cleared.
    pub(super) fn clears_map(mut self) -> Self {
        self.map = MapBits::Cleared;
        self
    }

    /// About this row.
    pub(super) fn row(mut self, item: u16, lost: bool) -> Self {
        self.rows.push(ConcernedRow { item, lost });
        self
    }
}
