//! What a salvage makes of a row version: the answer of [`Visibility`], and where that is open what
//! the row says of a newer version.

use pgclinic_cluster::{Death, Doubt, RowState, Visibility};
use pgclinic_format::HeapTuple;
use pgclinic_format::heap_tuple::HEAP_HOT_UPDATED;
use pgclinic_format::types::Tid;

/// What became of a row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionFate {
    /// Every new transaction sees it.
    Live,
    /// A committed transaction deleted or replaced it.
    Deleted,
    /// The transaction that wrote it did not commit.
    Aborted,
    /// The status of the transaction that wrote it is lost; nothing says that it was deleted.
    PerhapsLive,
    /// The status of the transaction that deleted it is lost. Nothing replaced it, so it may still
    /// count.
    PerhapsDeleted,
    /// The status of the transaction that replaced it is lost; the newer version is to be
    /// preferred.
    PerhapsReplaced,
    /// Found by its structure on a page that no longer names it.
    Carved,
}

impl VersionFate {
    /// On the version that stands at `place`.
    #[inline]
    pub(crate) fn of(visibility: &Visibility<'_>, tuple: HeapTuple<'_>, place: Tid) -> Self {
        VersionFate::of_state(visibility.state(tuple), tuple, place)
    }

    /// The same where the answer is known.
    #[inline]
    pub(crate) fn of_state(state: RowState, tuple: HeapTuple<'_>, place: Tid) -> Self {
        match state {
            RowState::Visible => VersionFate::Live,
            RowState::Dead(Death::Deleted) => VersionFate::Deleted,
            RowState::Dead(Death::Aborted | Death::InProgress | Death::Future) => {
                VersionFate::Aborted
            }
            RowState::Undecided(Doubt::Insertion) => VersionFate::PerhapsLive,
            RowState::Undecided(Doubt::Deletion) if was_replaced(tuple, place) => {
                VersionFate::PerhapsReplaced
            }
            RowState::Undecided(Doubt::Deletion) => VersionFate::PerhapsDeleted,
        }
    }

    /// For the account and for `--rows all`.
    pub fn word(self) -> &'static str {
        match self {
            VersionFate::Live => "live",
            VersionFate::Deleted => "deleted",
            VersionFate::Aborted => "aborted",
            VersionFate::PerhapsLive => "perhaps-live",
            VersionFate::PerhapsDeleted => "perhaps-deleted",
            VersionFate::PerhapsReplaced => "perhaps-replaced",
            VersionFate::Carved => "carved",
        }
    }

    /// It belongs to what the table holds, as far as can be known.
    pub fn counts(self) -> bool {
        match self {
            VersionFate::Live
            | VersionFate::PerhapsLive
            | VersionFate::PerhapsDeleted
            | VersionFate::Carved => true,
            VersionFate::Deleted | VersionFate::Aborted | VersionFate::PerhapsReplaced => false,
        }
    }
}

/// The row says where its newer version is; one that was only deleted points to itself.
fn was_replaced(tuple: HeapTuple<'_>, place: Tid) -> bool {
    tuple.t_infomask2() & HEAP_HOT_UPDATED != 0 || tuple.t_ctid() != place
}
