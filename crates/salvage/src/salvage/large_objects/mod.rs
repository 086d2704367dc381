//! The large objects of a database: their pages are gathered from wherever they can be had, sorted
//! by object and number, and go into one file, a tar file or one of columns, or into a server. An
//! object without a page is empty; a gap between pages reads as zeros.

mod from_files;
mod tar;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::iter::Peekable;
use std::path::PathBuf;

use pgclinic_format::Oid;
use pgclinic_format::oid::PG_LARGEOBJECT;
use pgclinic_model::document::{
    DoubtfulObject, LargeObjectsAccount, LossPlace, PLACES_MAX, TableAccount,
};
use pgclinic_model::{plural, verb_of};
use pgclinic_spill::Part;
use pgclinic_spill::{SortedRecords, SortedRuns};

use super::SalvageOptions;
use super::error::SalvageError;
use super::folder::Folder;
use super::large_object_columns::Columns;
use crate::formats::Form;

pub(in crate::salvage) use from_files::of_database;
pub(crate) use from_files::{FoundObjects, of_numbers};

/// The file that the objects go into; `name` has no extension.
pub(crate) fn file_of(form: &dyn Form, name: &str) -> String {
    let extension = match form.layout() {
        None => "tar",
        Some(_) => form.extension(),
    };
    format!("{name}.{extension}")
}

/// Writes the objects of a database: as columns, where the form of the tables is one of columns,
/// else as a tar file. `name` has no extension.
pub(crate) fn write(
    objects: Objects,
    database: String,
    options: &SalvageOptions,
    folder: &Folder,
    name: &str,
) -> Result<LargeObjectsAccount, SalvageError> {
    let file = file_of(options.form, name);
    let mut account = objects.account(database);
    let InOrder { sizes, mut pages } = objects.in_order()?;
    account.file_bytes = match options.form.layout() {
        None => tar::write(&sizes, &mut pages, folder, &file)?,
        Some(layout) => {
            let to = Columns {
                layout,
                folder,
                name: &file,
                memory_bytes: usize::try_from(options.memory.part_bytes(Part::LargeObjects))
                    .unwrap_or(usize::MAX),
            };
            to.write(&sizes, &mut pages)?
        }
    };
    account.file = file;
    account.objects = sizes.len() as u64;
    account.bytes = sizes.values().sum();
    account.doubtful = pages.into_doubtful();
    Ok(account)
}

/// Sizes of all objects, and their pages.
pub(crate) struct Objects {
    sizes: BTreeMap<Oid, u64>,
    pages: SortedRuns,
    /// Bytes of a page of an object, a quarter of a block.
    page_bytes: u64,
    spill_folder: PathBuf,
    places: Vec<LossPlace>,
    losses: ObjectLosses,
}

/// What indexes name of objects and the two relations do not have.
#[derive(Default)]
pub(crate) struct ObjectLosses {
    /// Pages, by object.
    pages: BTreeMap<Oid, u64>,
    /// Objects without their row in `pg_largeobject_metadata`.
    rows: BTreeSet<Oid>,
    /// Pages of which it is not known whose they are.
    nameless_pages: u64,
    /// A file of them could not be read.
    out_of_reach: bool,
}

impl ObjectLosses {
    /// Objects of which something is lost.
    fn objects(&self) -> u64 {
        let others = self.rows.iter().filter(|oid| !self.pages.contains_key(oid));
        (self.pages.len() + others.count()) as u64
    }

    /// The first of them, with what is lost.
    fn doubtful(&self) -> Vec<DoubtfulObject> {
        let pages = self.pages.iter().map(|(object, pages)| DoubtfulObject {
            object: *object,
            why: format!(
                "{pages} of it that an index names {are} lost",
                pages = plural(*pages, "page"),
                are = verb_of(*pages, "are")
            ),
        });
        let rows = self.rows.iter().filter(|oid| !self.pages.contains_key(oid));
        let rows = rows.map(|object| DoubtfulObject {
            object: *object,
            why: "its row in pg_largeobject_metadata is lost, which an index names".into(),
        });
        pages.chain(rows).take(PLACES_MAX).collect()
    }
}

impl Objects {
    /// None yet, of a cluster with blocks of this size.
    pub(crate) fn new(options: &SalvageOptions, block_size: u32) -> Result<Self, SalvageError> {
        let memory = options.memory.part(Part::LargeObjects);
        let pages = SortedRuns::within(&memory, &options.spill_folder);
        let pages = pages.map_err(|source| cannot_sort(&options.spill_folder, source))?;
        Ok(Objects {
            sizes: BTreeMap::new(),
            pages,
            page_bytes: u64::from(block_size / 4),
            spill_folder: options.spill_folder.clone(),
            places: Vec::new(),
            losses: ObjectLosses::default(),
        })
    }

    /// There is such an object.
    pub(crate) fn add(&mut self, oid: Oid) {
        self.sizes.entry(oid).or_default();
    }

    /// A page of an object, its number from 0.
    pub(crate) fn add_page(
        &mut self,
        oid: Oid,
        number: u32,
        data: &[u8],
    ) -> Result<(), SalvageError> {
        let [a, b, c, d] = oid.to_be_bytes();
        let [e, f, g, h] = number.to_be_bytes();
        let pushed = self.pages.push(&[a, b, c, d, e, f, g, h], data);
        pushed.map_err(|source| cannot_sort(&self.spill_folder, source))?;
        let end = u64::from(number) * self.page_bytes + data.len() as u64;
        let size = self.sizes.entry(oid).or_default();
        *size = (*size).max(end);
        Ok(())
    }

    /// Something was lost there, in one of the two relations.
    pub(crate) fn lose(&mut self, relation: Oid, places: impl IntoIterator<Item = LossPlace>) {
        let name = match relation {
            PG_LARGEOBJECT => "pg_largeobject",
            _ => "pg_largeobject_metadata",
        };
        let room = PLACES_MAX.saturating_sub(self.places.len());
        let places = places.into_iter().take(room).map(|place| LossPlace {
            why: format!("{name}: {}", place.why),
            ..place
        });
        self.places.extend(places);
    }

    /// What witnesses know of one of the two relations, and a server did not give.
    pub(crate) fn lose_rows(&mut self, account: &TableAccount) {
        if account.oid == PG_LARGEOBJECT {
            self.losses.nameless_pages += account.rows.lost;
        }
        self.losses.out_of_reach |= account.out_of_reach;
        self.lose(account.oid, account.places.iter().cloned());
    }

    /// What is missing of them may be whole: a relation of theirs could not be read.
    pub(crate) fn leave_out_of_reach(&mut self) {
        self.losses.out_of_reach = true;
    }

    /// What is lost of them, in an account of which the rest is open.
    pub(crate) fn account(&self, database: String) -> LargeObjectsAccount {
        LargeObjectsAccount {
            database,
            lost_objects: self.losses.objects(),
            lost_pages: self.losses.pages.values().sum::<u64>() + self.losses.nameless_pages,
            out_of_reach: self.losses.out_of_reach,
            places: self.places.clone(),
            ..LargeObjectsAccount::default()
        }
    }

    /// There is none, and nothing of any was lost.
    pub(crate) fn is_empty(&self) -> bool {
        self.sizes.is_empty() && self.places.is_empty()
    }

    /// The same to be taken one by one.
    pub(crate) fn in_order(self) -> Result<InOrder, SalvageError> {
        let records = self.pages.finish();
        let records = records.map_err(|source| cannot_sort(&self.spill_folder, source))?;
        let doubtful = (!self.places.is_empty()).then(|| {
            let mut doubtful = self.losses.doubtful();
            doubtful.extend(without_pages(&self.sizes, &self.losses));
            doubtful.truncate(PLACES_MAX);
            doubtful
        });
        Ok(InOrder {
            sizes: self.sizes,
            pages: Pages {
                records: records.peekable(),
                page_bytes: self.page_bytes,
                spill_folder: self.spill_folder,
                before: (0, 0),
                doubtful,
            },
        })
    }
}

/// Objects of which nothing was found, where something was lost.
fn without_pages(sizes: &BTreeMap<Oid, u64>, losses: &ObjectLosses) -> Vec<DoubtfulObject> {
    let empty = sizes
        .iter()
        .filter(|(oid, size)| **size == 0 && !losses.pages.contains_key(oid));
    let told = empty.take(PLACES_MAX).map(|(oid, _)| DoubtfulObject {
        object: *oid,
        why: "no page of it was found: it is empty, or lost".into(),
    });
    told.collect()
}

/// All objects, to be taken one by one.
pub(crate) struct InOrder {
    /// Sizes by number.
    pub(crate) sizes: BTreeMap<Oid, u64>,
    /// The pages in order.
    pub(crate) pages: Pages,
}

fn cannot_sort(folder: &std::path::Path, source: io::Error) -> SalvageError {
    SalvageError::destination(folder, "sort in", source)
}

/// The pages of all objects, sorted by object and number.
pub(crate) struct Pages {
    records: Peekable<SortedRecords>,
    page_bytes: u64,
    spill_folder: PathBuf,
    /// The object whose page came last, and where that ended.
    before: (Oid, u64),
    /// Objects that may not be whole; none where nothing was lost, so that a gap is one that
    /// somebody left.
    doubtful: Option<Vec<DoubtfulObject>>,
}

/// A page of an object.
pub(crate) struct ObjectPage {
    /// Its place in the object, in bytes.
    pub(crate) start: u64,
    /// Its bytes.
    pub(crate) data: Vec<u8>,
}

impl Pages {
    /// The next page, if it is of this object. A page that is there twice comes twice.
    pub(crate) fn next_of(&mut self, oid: Oid) -> Result<Option<ObjectPage>, SalvageError> {
        let is_its = |record: &<SortedRecords as Iterator>::Item| match record {
            Ok((key, _)) => key.get(..4) == Some(oid.to_be_bytes().as_slice()),
            Err(_) => true,
        };
        let Some(record) = self.records.next_if(is_its) else {
            return Ok(None);
        };
        let (key, data) = record.map_err(|source| cannot_sort(&self.spill_folder, source))?;
        let number = key.get(4..).and_then(|key| key.first_chunk());
        let number = number.map_or(0, |number| u32::from_be_bytes(*number));
        let start = u64::from(number) * self.page_bytes;
        self.doubt_gap(oid, start);
        Ok(Some(ObjectPage { start, data }))
    }

    /// Notes what is missing between the page before and the one that begins at `start`.
    fn doubt_gap(&mut self, oid: Oid, start: u64) {
        let Some(doubtful) = &mut self.doubtful else {
            return;
        };
        let end = match self.before {
            (before, end) if before == oid => end,
            _ => 0,
        };
        if start > end && doubtful.len() < PLACES_MAX {
            doubtful.push(DoubtfulObject {
                object: oid,
                why: format!("bytes {end} to {start} were not found, and read as zeros"),
            });
        }
        self.before = (oid, start + self.page_bytes);
    }

    /// The objects that may not be whole, by number.
    pub(crate) fn into_doubtful(self) -> Vec<DoubtfulObject> {
        let mut doubtful = self.doubtful.unwrap_or_default();
        doubtful.sort_by_key(|object| object.object);
        doubtful
    }
}
