//! How much of what stands where: the register of measures. Each is one file here and one line
//! below.
//!
//! A measure sees the pages of a relation in any order and on any thread, adds up, and makes
//! figures of the sums. Where PostgreSQL's own extensions give the same quantity, name and value
//! are theirs.

#[macro_use]
mod sums;

mod advice;
mod catalog_rows;
mod catalogs;
mod columns;
mod compression_trial;
mod growth;
mod index_hints;
mod job;
mod key_order;
mod large_objects;
mod leaf_look;
mod losses;
mod page_rows;
mod pass;
mod percent;
mod places;
mod run;
mod running;
mod sample;
mod server_facts;
mod tally;
mod toasted;

use pgclinic_cluster::Column;
use pgclinic_format::line_pointer::LinePointer;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::toast::ToastPointer;
use pgclinic_format::varlena::Compressed;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::document::{Figure, Sections};
use pgclinic_model::{FigureKind, FigureKinds, Unit};

use pgclinic_cluster::ForkContext;

pub use growth::{GrowthError, growth};
pub use leaf_look::LeafLook;
pub use page_rows::HeapLook;
pub use run::{MeasureCompanion, MeasureOptions, measure_cluster};
pub use server_facts::ServerFacts;
pub use sums::Sums;

/// A measure of a relation's main fork: what it adds up of pages.
pub trait PageMeasure: Sums + Default {
    /// Where its figures stand: `table` or `index`.
    const SECTION: &'static str;
    /// What it gives, in the order in which people read it.
    const FIGURES: &'static [FigureKind];
    /// Relations of this kind are measured.
    fn fits(fork: &ForkContext<'_>) -> bool;
    /// Adds a page up. `false`: no server writes such a page, and nothing of it was added.
    fn add(&mut self, page: &PageAt<'_>) -> bool;
    /// The figures, in the order of [`Self::FIGURES`]; nothing for what cannot be computed.
    fn figures(&self, whole: &Whole<'_>) -> Vec<Option<Figure>>;
}

/// A measure of the values of one column, in live rows: what it adds up of them.
pub trait ColumnMeasure: Sums + Default {
    /// Where its figures stand: `toast` or `uuid`.
    const SECTION: &'static str;
    /// What it gives, in the order in which people read it.
    const FIGURES: &'static [FigureKind];
    /// Columns of this kind are measured.
    fn fits(column: &ColumnAt<'_>) -> bool;
    /// Adds a value up; nulls are never handed out. `false`: the column has no such values.
    fn add(&mut self, value: &ValueAt<'_>) -> bool;
    /// The figures, in the order of [`Self::FIGURES`]; nothing for what cannot be computed.
    fn figures(&self, column: &ColumnAt<'_>) -> Vec<Option<Figure>>;
}

/// A relation whose pages have all been added up.
pub struct Whole<'a> {
    /// The relation.
    pub fork: &'a ForkContext<'a>,
    /// Pages of zeros: added to the file, never used.
    pub empty_pages: u64,
    /// Pages that could not be measured.
    pub broken_pages: u64,
}

impl Whole<'_> {
    /// Bytes of so many pages.
    fn bytes(&self, pages: u64) -> u64 {
        pages.saturating_mul(u64::from(self.fork.build.block_size))
    }
}

/// A page, where it stands, and what may be known of it.
pub struct PageAt<'a> {
    /// The page.
    pub page: Page<'a>,
    /// Its relation.
    pub fork: &'a ForkContext<'a>,
    /// Its number in the fork.
    pub block: BlockNo,
    /// What its rows come to, if it is a heap's.
    pub heap: Option<&'a HeapLook>,
    /// What its items come to, if it is a leaf of a btree.
    pub leaf: Option<&'a LeafLook<'a>>,
}

impl PageAt<'_> {
    /// From 18 on `pgstattuple` counts the hole as it is (`PageGetExactFreeSpace`); before, a line
    /// pointer less, and nothing where no line pointer is left (`PageGetHeapFreeSpace`).
    fn counts_whole_holes(&self) -> bool {
        self.fork.major() >= 18
    }
}

/// A column and its table.
#[derive(Clone, Copy)]
pub struct ColumnAt<'a> {
    /// The column.
    pub column: &'a Column,
    /// `pg_type.typname`.
    pub type_name: &'a str,
    /// The table.
    pub fork: &'a ForkContext<'a>,
}

/// A value that occurs so often in a column.
#[derive(Clone, Copy)]
pub struct ValueAt<'a> {
    /// The value.
    pub value: StoredValue<'a>,
    /// How often.
    pub often: u64,
    /// Its column.
    pub at: ColumnAt<'a>,
}

/// A value as it stands in its row.
#[derive(Clone, Copy, Debug)]
pub enum StoredValue<'a> {
    /// Of fixed length.
    Fixed(&'a [u8]),
    /// Of variable length, as it is: only its length is told.
    Plain {
        /// Its bytes.
        raw: u64,
        /// Its bytes with their header.
        stored: u64,
    },
    /// Packed, with the bytes that it takes in the row.
    Packed(Compressed<'a>, u64),
    /// In the TOAST table.
    External(ToastPointer),
}

/// Figures with their names.
fn named(
    kinds: &[FigureKind],
    values: Vec<Option<Figure>>,
) -> impl Iterator<Item = (String, Option<Figure>)> {
    assert_eq!(values.len(), kinds.len(), "a value for each figure");
    let named = kinds.iter().zip(values);
    named.map(|(kind, value)| (kind.name.to_owned(), value))
}

/// Two digits are kept: spreads of sizes and ages stay short.
fn round_down(value: u64) -> u64 {
    let mut unit = 1;
    while value / unit >= 100 {
        unit *= 10;
    }
    value / unit * unit
}

/// The free middle of a page.
fn hole(page: Page<'_>) -> u64 {
    page.pd_upper().saturating_sub(page.pd_lower()).into()
}

/// What a page has for line pointers and items.
fn room(page: Page<'_>) -> u64 {
    u64::from(page.pd_special()).saturating_sub(HEADER_BYTES as u64)
}

/// The free middle of a page as `pgstattuple` counts it.
#[expect(clippy::cast_possible_truncation, reason = "four bytes")]
fn free_space(at: &PageAt<'_>) -> u16 {
    let hole = at.page.pd_upper().saturating_sub(at.page.pd_lower());
    if at.counts_whole_holes() {
        hole
    } else {
        hole.saturating_sub(LinePointer::SIZE as u16)
    }
}

fn count(number: u64) -> Option<Figure> {
    Some(Figure::Count(number))
}

const fn bytes(name: &'static str, summary: &'static str) -> FigureKind {
    let unit = Unit::Bytes;
    FigureKind {
        name,
        unit,
        summary,
    }
}

const fn number(name: &'static str, summary: &'static str) -> FigureKind {
    let unit = Unit::Number;
    FigureKind {
        name,
        unit,
        summary,
    }
}

const fn share(name: &'static str, summary: &'static str) -> FigureKind {
    let unit = Unit::Percent;
    FigureKind {
        name,
        unit,
        summary,
    }
}

const fn of(name: &'static str, unit: Unit, summary: &'static str) -> FigureKind {
    FigureKind {
        name,
        unit,
        summary,
    }
}

/// A register: the module of each measure, and a struct with the sums of each that fits.
macro_rules! measures {
    (
        $(#[$meta:meta])*
        $Sums:ident: $Trait:ident of $Subject:ident, $Item:ident, $Whole:ident = [
            $($module:ident :: $Type:ident),* $(,)?
        ];
    ) => {
        $(pub mod $module;)*

        sums! {
            $(#[$meta])*
            pub struct $Sums {
                $($module: Option<$module::$Type>,)*
            }
        }

        impl $Sums {
            /// Nothing yet, by those that fit; nothing at all where none does.
            fn of(subject: &$Subject<'_>) -> Option<Self> {
                let own = $Sums {
                    $($module: $module::$Type::fits(subject).then($module::$Type::default),)*
                };
                let is_empty = true $(&& own.$module.is_none())*;
                (!is_empty).then_some(own)
            }

            /// By all of them. `false`: one of them could not add it.
            #[inline]
            fn add(&mut self, item: &$Item<'_>) -> bool {
                let mut whole = true;
                $(if let Some(own) = &mut self.$module {
                    whole &= own.add(item);
                })*
                whole
            }

            fn sections(&self, whole: &$Whole<'_>) -> Sections {
                let mut sections = Sections::new();
                $(if let Some(own) = &self.$module {
                    let named = named($module::$Type::FIGURES, own.figures(whole));
                    let section = sections.entry($module::$Type::SECTION.into()).or_default();
                    section.extend(named);
                })*
                sections
            }

            fn kinds() -> Vec<(&'static str, &'static FigureKind)> {
                let mut kinds = Vec::new();
                $(kinds.extend(in_section($module::$Type::SECTION, $module::$Type::FIGURES));)*
                kinds
            }
        }
    };
}

measures! {
    /// Every measure of pages, in the order of the figures on a page.
    PageSums: PageMeasure of ForkContext, PageAt, Whole = [
        table_space::TableSpace,
        table_ledger::TableLedger,
        row_ages::RowAges,
        btree_layout::BtreeLayout,
        btree_packing::BtreePacking,
        index_space::IndexSpace,
        hash_layout::HashLayout,
        gin_layout::GinLayout,
        gist_layout::GistLayout,
        spgist_layout::SpgistLayout,
        brin_layout::BrinLayout,
    ];
}

measures! {
    /// Every measure of columns.
    ColumnSums: ColumnMeasure of ColumnAt, ValueAt, ColumnAt = [
        toast_make_up::ToastMakeUp,
        uuid_versions::UuidVersions,
    ];
}

/// Every figure with its section, in the order in which people read them.
pub fn figure_kinds() -> FigureKinds {
    let of_order = in_section(key_order::SECTION, key_order::FIGURES);
    let of_trial = in_section(compression_trial::SECTION, compression_trial::FIGURES);
    let of_catalogs = in_section(catalogs::SECTION, catalogs::FIGURES);
    let of_objects = in_section(large_objects::SECTION, large_objects::FIGURES);
    FigureKinds {
        of_relations: PageSums::kinds().into_iter().chain(of_order).collect(),
        of_columns: ColumnSums::kinds().into_iter().chain(of_trial).collect(),
        of_databases: of_catalogs.chain(of_objects).collect(),
    }
}

fn in_section(
    section: &'static str,
    kinds: &'static [FigureKind],
) -> impl Iterator<Item = (&'static str, &'static FigureKind)> {
    kinds.iter().map(move |kind| (section, kind))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_figure_has_a_name_of_its_own_and_words() {
        let mut seen = BTreeSet::new();
        let kinds = figure_kinds();
        let all = [kinds.of_relations, kinds.of_columns, kinds.of_databases];
        for (section, figure) in all.into_iter().flatten() {
            assert!(seen.insert((section, figure.name)), "{} twice", figure.name);
            assert!(
                figure.summary.contains(' '),
                "{} says too little",
                figure.name
            );
        }
    }

    #[test]
    fn two_digits_are_kept() {
        assert_eq!(
            [0, 99, 100, 129, 12_999].map(round_down),
            [0, 99, 100, 120, 12_000]
        );
    }
}
