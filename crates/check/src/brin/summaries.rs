//! A summary of a BRIN index does not cover a live row of its range.
//!
//! Truth: `bringetbitmap` in `src/backend/access/brin/brin.c`.

use std::ops::Range;

use pgclinic_cluster::{Index, Visibility};
use pgclinic_format::brin::{BrinTuple, NullBits, PAGE_REGULAR, page_type};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::Tid;
use pgclinic_format::{
    Attribute, Attributes, BlockNo, ColumnLayout, HeapTuple, Page, Varlena, varlena,
};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_model::{plural, verb_of};
use pgclinic_scan::PageReader;

use crate::brin::{Cover, Map, Stored, payload};
use crate::check::ForkCx;
use crate::findings::Findings;
use crate::heap::tuples::tuples;
use crate::relation_check::{RelationCheck, RelationCx};

/// The rule.
pub static BRIN_SUMMARY_MISSES_ROW: Rule =
    Rule::from_page(include_str!("../../rules/brin-summary-misses-row.md"));

/// See [`BRIN_SUMMARY_MISSES_ROW`].
pub struct BrinCover;

impl RelationCheck for BrinCover {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BRIN_SUMMARY_MISSES_ROW] }
    }

    fn level(&self) -> Level {
        Level::Full
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Brin
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let index = relation.fork.relation.and_then(|own| own.index.as_ref());
        let Some(index) = index.filter(|index| index.valid && index.ready) else {
            return;
        };
        // Before recovery rows and summaries are of different moments.
        if !relation.settled() {
            return;
        }
        if index.has_predicate {
            let why = "whether a row fulfils the index's condition is not known";
            relation.not_checked(out, "rows in the summaries", why, true);
            return;
        }
        let Some(table) = relation.main_fork_of(index.table) else {
            let why = "the table is not part of this run";
            relation.not_checked(out, "rows in the summaries", why, true);
            return;
        };
        if let Some(mut hold) = Hold::new(relation, index, table, out) {
            hold.all(out);
        }
    }
}

/// A column of the index.
struct Column {
    /// Column of the table, from 0; nothing for an expression.
    of_table: Option<usize>,
    /// Of the index's own values.
    layout: ColumnLayout,
    /// Nothing when only nulls can be held against the summary.
    cover: Option<Cover>,
    /// What rows from before the column have.
    added: Added,
}

/// What rows have that are older than a column.
#[derive(Clone)]
enum Added {
    /// A null.
    Null,
    /// The value of the column's default at that time, with its header.
    Value(Vec<u8>),
    /// A value that the catalogs do not tell.
    Unknown,
}

impl Added {
    fn of(table: &ForkCx<'_>, column: Option<usize>) -> Self {
        let columns = table.relation.and_then(|own| own.columns.as_ref());
        let Some((columns, column)) = columns.zip(column) else {
            return Added::Unknown;
        };
        match columns.get(column) {
            Some(column) if !column.has_missing => Added::Null,
            Some(column) => column.missing.clone().map_or(Added::Unknown, Added::Value),
            None => Added::Unknown,
        }
    }
}

/// The first row that a summary misses in a column, and how many it does.
#[derive(Clone)]
struct Missed {
    tid: Tid,
    rows: u64,
    what: String,
}

/// An index against its table.
struct Hold<'r, 'a> {
    relation: &'r RelationCx<'a>,
    table: &'a ForkCx<'a>,
    layouts: &'a [ColumnLayout],
    map: Map<'a>,
    summaries: PageReader<'a>,
    rows: PageReader<'a>,
    stored: Vec<Vec<ColumnLayout>>,
    columns: Vec<Column>,
    /// Values that were not compared.
    elsewhere: Elsewhere,
}

/// Values that do not stand in their rows.
#[derive(Clone, Copy, Default)]
struct Elsewhere {
    /// In TOAST.
    toast: u64,
    /// In the catalogs, which do not tell them.
    catalogs: u64,
}

/// The summary of one range.
struct Summary {
    tid: Tid,
    bytes: Vec<u8>,
    /// No row was there.
    empty: bool,
    columns: Vec<(NullBits, Option<Vec<Range<usize>>>)>,
}

impl<'r, 'a> Hold<'r, 'a> {
    fn new(
        relation: &'r RelationCx<'a>,
        index: &Index,
        table: &'a ForkCx<'a>,
        out: &mut Findings,
    ) -> Option<Self> {
        let own = relation.fork.relation?;
        let families = Stored::columns(relation.fork)?.ok()?;
        let mut columns = Vec::with_capacity(families.len());
        for (number, stored) in families.iter().enumerate() {
            let key = index.keys.get(number).copied()?;
            let of_table = usize::try_from(key).ok()?.checked_sub(1);
            let cover = match of_table {
                Some(_) => Cover::of(relation.catalog, own, index, number, stored.family),
                None => Err("it is an expression".into()),
            };
            if let Err(why) = &cover {
                let what = format!("values of column {} in the summaries", number + 1);
                relation.not_checked(out, &what, why, true);
            }
            let layout = *relation.fork.columns?.get(number)?;
            columns.push(Column {
                of_table,
                layout,
                cover: cover.ok(),
                added: Added::of(table, of_table),
            });
        }
        Some(Hold {
            relation,
            table,
            layouts: table.columns?,
            map: Map::of(relation)?,
            summaries: relation.pages(),
            rows: relation.pages_of(table),
            stored: families.into_iter().map(|column| column.layouts).collect(),
            columns,
            elsewhere: Elsewhere::default(),
        })
    }

    fn all(&mut self, out: &mut Findings) {
        let blocks = BlockNo::try_from(self.table.blocks).unwrap_or(BlockNo::MAX);
        let mut range = 0u32;
        while range < blocks {
            if self.relation.is_interrupted() {
                return;
            }
            let end = range.saturating_add(self.map.pages_per_range).min(blocks);
            if let Some(summary) = self.summary_of(range) {
                self.range(range, end, &summary, out);
            }
            range = end;
        }
        let Elsewhere { toast, catalogs } = self.elsewhere;
        if toast > 0 {
            let why = format!(
                "{toast} {stand} in TOAST",
                toast = plural(toast, "value"),
                stand = verb_of(toast, "stand")
            );
            self.relation
                .not_checked(out, "TOASTed values in the summaries", &why, true);
        }
        if catalogs > 0 {
            let why = format!(
                "{catalogs} {are} older than their column, whose first default cannot be read",
                catalogs = plural(catalogs, "row"),
                are = verb_of(catalogs, "are")
            );
            self.relation
                .not_checked(out, "default values in the summaries", &why, false);
        }
    }

    /// Nothing when the range matches every query, or the summary cannot be read.
    fn summary_of(&mut self, range: BlockNo) -> Option<Summary> {
        let tid = self.map.summary_of(range)?;
        let page = self.summaries.page(tid.block)?;
        (page_type(page) == Some(PAGE_REGULAR)).then_some(())?;
        let bytes = page.item(page.line_pointer(tid.offset)?)?;
        let tuple = BrinTuple::parse(bytes)?;
        let counts = tuple.bt_blkno() == range && !tuple.is_placeholder();
        counts.then_some(())?;
        let values = tuple.values(&self.stored).ok()?;
        let bits = (0..values.len()).map(|column| tuple.null_bits(column, self.stored.len()));
        Some(Summary {
            tid,
            bytes: bytes.to_vec(),
            empty: tuple.is_empty_range(),
            columns: bits.zip(values).collect(),
        })
    }

    fn range(&mut self, start: BlockNo, end: BlockNo, summary: &Summary, out: &mut Findings) {
        let mut missed: Vec<Option<Missed>> = vec![None; self.columns.len()];
        for block in start..end {
            let Some(page) = self.rows.page(block) else {
                continue;
            };
            let on_page = OnPage {
                page,
                block,
                table: self.table,
                layouts: self.layouts,
            };
            look(
                on_page,
                &self.columns,
                summary,
                &mut missed,
                &mut self.elsewhere,
            );
        }
        let found = missed.into_iter().zip(1u16..);
        for (missed, number) in found.filter_map(|(missed, number)| Some((missed?, number))) {
            let Missed { tid, rows, what } = missed;
            let more = match rows {
                1 => String::new(),
                rows => format!(", and {}", plural(rows - 1, "more row")),
            };
            let message = format!("the range from block {start} holds row {tid} with {what}{more}");
            let draft = self
                .relation
                .draft(&BRIN_SUMMARY_MISSES_ROW, summary.tid.block, message);
            let draft = draft.item(summary.tid.offset).attribute(number).rows(rows);
            out.add(draft.follows(self.table, tid.block).fact("range", start));
        }
    }
}

/// A page of the table.
#[derive(Clone, Copy)]
struct OnPage<'p, 'a> {
    page: Page<'p>,
    block: BlockNo,
    table: &'p ForkCx<'a>,
    layouts: &'p [ColumnLayout],
}

/// Holds the live rows of a page against a summary.
fn look(
    on_page: OnPage<'_, '_>,
    columns: &[Column],
    summary: &Summary,
    missed: &mut [Option<Missed>],
    elsewhere: &mut Elsewhere,
) {
    let OnPage {
        page,
        block,
        table,
        layouts,
    } = on_page;
    let Some(cluster) = table.cluster else {
        return;
    };
    let visibility = Visibility::new(cluster);
    for stored in tuples(page) {
        let fits = usize::from(stored.tuple.attribute_count()) <= layouts.len();
        if !fits || !visibility.is_visible(stored.tuple) {
            continue;
        }
        let Ok(attributes) = Attributes::new(stored.tuple, layouts).collect::<Result<Vec<_>, _>>()
        else {
            continue;
        };
        let tid = Tid {
            block,
            offset: stored.number,
        };
        for ((column, (bits, places)), missed) in
            columns.iter().zip(&summary.columns).zip(missed.iter_mut())
        {
            let attribute = column
                .of_table
                .and_then(|of_table| attributes.get(of_table));
            let seen = ColumnSummary {
                column,
                bits: *bits,
                places: places.as_deref(),
                summary,
            };
            match seen.misses(stored.tuple, attribute, elsewhere) {
                None => {}
                Some(what) => {
                    let first = Missed {
                        tid,
                        rows: 0,
                        what: what.into(),
                    };
                    missed.get_or_insert(first).rows += 1;
                }
            }
        }
    }
}

/// One column of one summary.
struct ColumnSummary<'s> {
    column: &'s Column,
    bits: NullBits,
    places: Option<&'s [Range<usize>]>,
    summary: &'s Summary,
}

impl ColumnSummary<'_> {
    /// What of the row the summary leaves out.
    fn misses(
        &self,
        tuple: HeapTuple<'_>,
        attribute: Option<&Attribute>,
        elsewhere: &mut Elsewhere,
    ) -> Option<&'static str> {
        let attribute = attribute?;
        if self.summary.empty {
            return Some("anything, and its summary says that it is empty");
        }
        match (attribute, &self.column.added) {
            (Attribute::Null, _) | (Attribute::Missing, Added::Null) => {
                let marked = self.bits.all || self.bits.some;
                (!marked).then_some("a null, and its summary says that there is none")
            }
            (Attribute::Missing, Added::Value(value)) => self.misses_value(value, elsewhere),
            (Attribute::Missing, Added::Unknown) => {
                elsewhere.catalogs += 1;
                None
            }
            (Attribute::Value(range), _) => {
                self.misses_value(tuple.bytes().get(range.clone())?, elsewhere)
            }
        }
    }

    fn misses_value(&self, bytes: &[u8], elsewhere: &mut Elsewhere) -> Option<&'static str> {
        if self.bits.all {
            return Some("a value, and its summary says that there are only nulls");
        }
        let layout = self.column.layout;
        if layout.attlen == -1 && matches!(varlena::parse(bytes), Ok((Varlena::External(_), _))) {
            elsewhere.toast += 1;
            return None;
        }
        let value = payload(layout, bytes)?;
        let stored: Option<Vec<&[u8]>> = self
            .places?
            .iter()
            .map(|place| self.summary.bytes.get(place.clone()))
            .collect();
        let covered = self
            .column
            .cover
            .as_ref()?
            .covers(&stored?, &value, layout)?;
        (!covered).then_some("a value that its summary leaves out")
    }
}
