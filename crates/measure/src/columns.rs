//! The columns of a table that are measured: each row is walked once, and every value told to the
//! measures of its column.

use pgclinic_cluster::{Catalog, ForkContext, RelKind};
use pgclinic_format::front_bits::FixedFront;
use pgclinic_format::heap_tuple::HEAP_HASVARWIDTH;
use pgclinic_format::{
    Attribute, Attributes, ColumnLayout, HeapTuple, PlainAttributes, Varlena, varlena,
};
use pgclinic_model::document::MeasuredColumn;

use super::compression_trial::Picked;
use super::{ColumnAt, ColumnSums, StoredValue, ValueAt};

/// Bytes of the header of a value that is as it is, below so many bytes and from them on.
const SHORT_HEADER: usize = 1;
const LONG_HEADER: usize = 4;
/// Values of a short header have fewer bytes than this.
const SHORT: usize = 127;

/// The columns of one table.
pub(super) struct Columns {
    jobs: Vec<ColumnJob>,
    /// By the column's place in a row, up to the last that is measured: its number among the jobs.
    wanted: Vec<Option<usize>>,
    /// Those in front of the first that is measured.
    front: FixedFront,
    only_varlena: bool,
}

struct ColumnJob {
    index: usize,
    type_name: String,
    nothing: ColumnSums,
}

impl Columns {
    pub(super) fn of(fork: &ForkContext<'_>, catalog: &Catalog) -> Self {
        let jobs = jobs(fork, catalog);
        let layouts = fork.columns.unwrap_or_default();
        let mut wanted = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            wanted.resize(job.index, None);
            wanted.push(Some(number));
        }
        let first = jobs.first().map_or(0, |job| job.index);
        let is_varlena = |job: &ColumnJob| {
            let layout = layouts.get(job.index);
            layout.is_some_and(|layout| layout.attlen == -1)
        };
        Columns {
            front: FixedFront::of(layouts.get(..first).unwrap_or_default()),
            only_varlena: jobs.iter().all(is_varlena),
            wanted,
            jobs,
        }
    }

    /// A walk over rows of the table; nothing where nothing of them is measured.
    pub(super) fn walk<'w>(
        &'w self,
        fork: &'w ForkContext<'w>,
        picks: bool,
    ) -> Option<RowWalk<'w>> {
        let layouts = fork.columns.filter(|_| !self.jobs.is_empty())?;
        let books = self.jobs.iter().map(|job| {
            Some(Book {
                at: job.at(fork)?,
                sums: job.nothing.clone(),
                short: [0; SHORT],
                picked: picks.then(Picked::default),
            })
        });
        Some(RowWalk {
            columns: self,
            layouts,
            books: books.collect::<Option<_>>()?,
        })
    }

    /// What nothing adds up to, by column.
    pub(super) fn nothing(&self) -> Vec<ColumnSums> {
        self.jobs.iter().map(|job| job.nothing.clone()).collect()
    }

    /// The figures of each column, from what was added up by column.
    pub(super) fn figures(
        &self,
        fork: &ForkContext<'_>,
        sums: &[ColumnSums],
    ) -> Vec<MeasuredColumn> {
        let measured = self.jobs.iter().zip(sums).filter_map(|(job, sums)| {
            let at = job.at(fork)?;
            Some(MeasuredColumn {
                number: at.column.attnum,
                name: at.column.name.clone(),
                type_name: job.type_name.clone(),
                sections: sums.sections(&at),
            })
        });
        measured.collect()
    }
}

impl ColumnJob {
    fn at<'b>(&'b self, fork: &'b ForkContext<'b>) -> Option<ColumnAt<'b>> {
        let columns = fork.relation?.columns.as_ref()?;
        Some(ColumnAt {
            column: columns.get(self.index)?,
            type_name: &self.type_name,
            fork,
        })
    }
}

fn jobs(fork: &ForkContext<'_>, catalog: &Catalog) -> Vec<ColumnJob> {
    let relation = fork
        .relation
        .filter(|relation| matches!(relation.kind, RelKind::Table | RelKind::MaterializedView));
    let columns = relation.and_then(|relation| relation.columns.as_deref());
    let live = columns
        .unwrap_or_default()
        .iter()
        .enumerate()
        .filter(|(_, column)| !column.dropped);
    let jobs = live.filter_map(|(index, column)| {
        let type_name = catalog.type_info(column.type_oid).name.clone();
        let at = ColumnAt {
            column,
            type_name: &type_name,
            fork,
        };
        let nothing = ColumnSums::of(&at)?;
        Some(ColumnJob {
            index,
            nothing,
            type_name,
        })
    });
    jobs.collect()
}

/// Walks rows and books their values, on one thread.
pub(super) struct RowWalk<'w> {
    columns: &'w Columns,
    layouts: &'w [ColumnLayout],
    books: Vec<Book<'w>>,
}

/// A row, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct PlacedRow<'p> {
    pub(super) tuple: HeapTuple<'p>,
    /// A number that no other row of the table has.
    pub(super) place: u64,
}

impl RowWalk<'_> {
    /// Books the values of a row.
    pub(super) fn row(&mut self, row: PlacedRow<'_>) {
        let tuple = row.tuple;
        if self.columns.only_varlena && !tuple.has(HEAP_HASVARWIDTH) {
            return;
        }
        let stored = usize::from(tuple.attribute_count());
        let header_is_right =
            usize::from(tuple.t_hoff()) == tuple.expected_hoff() && stored <= self.layouts.len();
        if header_is_right {
            let seen = self.short_walk(row, stored);
            if seen < self.columns.wanted.len() {
                self.long_walk(row, seen);
            }
        }
    }

    /// As far as values stand as they are, or are null. Gives how many columns were seen: all that
    /// are wanted, or those before one that has to be looked at closely.
    fn short_walk(&mut self, row: PlacedRow<'_>, stored: usize) -> usize {
        let (bytes, nulls) = (row.tuple.bytes(), row.tuple.null_bitmap());
        let wanted = &self.columns.wanted;
        let (skip, offset) = self.columns.front.skip(nulls, stored);
        let mut walk = PlainAttributes::new(bytes, usize::from(row.tuple.t_hoff()) + offset);
        let layouts = self.layouts.get(skip..stored).unwrap_or_default();
        let columns = layouts.iter().zip(wanted.get(skip..).unwrap_or_default());
        for (index, (layout, wanted)) in (skip..).zip(columns) {
            if nulls.is_some_and(|nulls| is_null(nulls, index)) {
                continue;
            }
            let start = walk.end();
            let Some(payload) = walk.payload(*layout) else {
                return index;
            };
            let Some(book) = wanted.and_then(|number| self.books.get_mut(number)) else {
                continue;
            };
            if layout.attlen != -1 {
                book.tell(StoredValue::Fixed(payload), 1);
            } else if walk.end() - start == payload.len() + SHORT_HEADER {
                book.short(payload.len());
            } else {
                let stored = bytes.get(walk.end() - payload.len() - LONG_HEADER..walk.end());
                book.long(payload.len(), stored.unwrap_or_default(), row);
            }
        }
        wanted.len()
    }

    /// Any row's values, from column `seen` on, up to the first that does not make sense.
    fn long_walk(&mut self, row: PlacedRow<'_>, seen: usize) {
        let walk = Attributes::new(row.tuple, self.layouts);
        for ((index, attribute), wanted) in walk.enumerate().zip(&self.columns.wanted) {
            let Ok(attribute) = attribute else { return };
            let book = wanted.and_then(|number| self.books.get_mut(number));
            let (Some(book), Attribute::Value(range)) = (book, attribute) else {
                continue;
            };
            if let Some(bytes) = row.tuple.bytes().get(range).filter(|_| index >= seen) {
                book.value(bytes, row);
            }
        }
    }

    /// What was added up and the values that were picked, by column.
    pub(super) fn finish(self) -> (Vec<ColumnSums>, Vec<Picked>) {
        let (mut sums, mut picked) = (Vec::new(), Vec::new());
        for mut book in self.books {
            book.tell_of_short();
            sums.push(book.sums);
            picked.extend(book.picked);
        }
        (sums, picked)
    }
}

#[inline]
fn is_null(bitmap: &[u8], index: usize) -> bool {
    let byte = bitmap.get(index / 8);
    byte.is_none_or(|byte| byte & (1 << (index % 8)) == 0)
}

/// What one thread adds up of one column.
struct Book<'w> {
    at: ColumnAt<'w>,
    sums: ColumnSums,
    /// Values of a short header that are as they are, by their bytes: told to the measures at the
    /// end.
    short: [u64; SHORT],
    picked: Option<Picked>,
}

impl Book<'_> {
    fn tell(&mut self, value: StoredValue<'_>, often: u64) {
        self.sums.add(&ValueAt {
            value,
            often,
            at: self.at,
        });
    }

    #[inline]
    fn short(&mut self, bytes: usize) {
        if let Some(count) = self.short.get_mut(bytes) {
            *count += 1;
        }
    }

    fn tell_of_short(&mut self) {
        let short = std::mem::replace(&mut self.short, [0; SHORT]);
        for (raw, often) in (0u64..).zip(short).filter(|(_, often)| *often > 0) {
            let stored = raw + SHORT_HEADER as u64;
            self.tell(StoredValue::Plain { raw, stored }, often);
        }
    }

    fn long(&mut self, raw: usize, stored: &[u8], row: PlacedRow<'_>) {
        self.offer(stored, row);
        let (raw, stored) = (raw as u64, (raw + LONG_HEADER) as u64);
        self.tell(StoredValue::Plain { raw, stored }, 1);
    }

    /// A value with its header, of which nothing is known yet.
    fn value(&mut self, bytes: &[u8], row: PlacedRow<'_>) {
        if self.at.column.layout.attlen != -1 {
            self.tell(StoredValue::Fixed(bytes), 1);
            return;
        }
        let Ok((value, stored)) = varlena::parse(bytes) else {
            return;
        };
        match value {
            Varlena::Short(payload) => self.short(payload.len()),
            Varlena::Plain(payload) => self.long(payload.len(), bytes, row),
            Varlena::Compressed(packed) => {
                self.offer(bytes, row);
                self.tell(StoredValue::Packed(packed, stored as u64), 1);
            }
            Varlena::External(pointer) => {
                self.offer(bytes, row);
                self.tell(StoredValue::External(pointer), 1);
            }
        }
    }

    fn offer(&mut self, stored: &[u8], row: PlacedRow<'_>) {
        if let Some(picked) = &mut self.picked {
            picked.offer(row.place, stored, row.tuple.bytes().len());
        }
    }
}
