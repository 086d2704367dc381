//! All large objects of a database as rows of a file of columns.
//!
//! ```text
//! oid     the object's number
//! offset  where in the object the bytes begin; between two rows of an object there may be a gap, which reads as zeros
//! data    at most a quarter of a block; an object without a page has one row without bytes
//! ```

use std::collections::BTreeMap;

use pgclinic_columnar::{ColumnKind, Field, Layout, Packer, PackerPlan, cells};
use pgclinic_format::Oid;

use super::error::SalvageError;
use super::folder::Folder;
use super::large_objects::{ObjectPage, Pages};
use super::ordered_files::unpacked;

/// Bytes of cells that are gathered before they are packed.
const CELLS_BYTES: usize = 1 << 20;

/// Where the rows go.
pub(super) struct Columns<'a> {
    pub(super) layout: Layout,
    pub(super) folder: &'a Folder,
    pub(super) name: &'a str,
    pub(super) memory_bytes: usize,
}

impl Columns<'_> {
    /// Writes all pages; says how many bytes the file has.
    pub(super) fn write(
        &self,
        sizes: &BTreeMap<Oid, u64>,
        pages: &mut Pages,
    ) -> Result<u64, SalvageError> {
        let failed = |error| unpacked(self.name, error);
        let mut packer = Packer::new(&self.plan()).map_err(failed)?;
        let mut file = self.folder.begin(self.name)?;
        let (mut rows, mut packed) = (Vec::new(), Vec::new());
        for oid in sizes.keys() {
            let mut at = None;
            while let Some(page) = pages.next_of(*oid)? {
                // A page that is there twice is written once.
                if at.is_none_or(|at| page.start >= at) {
                    at = Some(page.start + page.data.len() as u64);
                    row(*oid, &page, &mut rows);
                }
                if rows.len() >= CELLS_BYTES {
                    packer.add(&rows, &mut packed).map_err(failed)?;
                    file.write(&packed)?;
                    rows.clear();
                    packed.clear();
                }
            }
            if at.is_none() {
                let empty = ObjectPage {
                    start: 0,
                    data: Vec::new(),
                };
                row(*oid, &empty, &mut rows);
            }
        }
        packer.add(&rows, &mut packed).map_err(failed)?;
        packer.finish(&mut packed).map_err(failed)?;
        file.write(&packed)?;
        file.finish()
    }

    fn plan(&self) -> PackerPlan {
        let columns = [
            ("oid", ColumnKind::UInt32),
            ("offset", ColumnKind::Int64),
            ("data", ColumnKind::Binary),
        ];
        PackerPlan {
            layout: self.layout,
            fields: columns
                .map(|(name, kind)| Field {
                    name: name.into(),
                    kind,
                })
                .to_vec(),
            memory_bytes: self.memory_bytes,
        }
    }
}

fn row(oid: Oid, page: &ObjectPage, out: &mut Vec<u8>) {
    cells::put(&oid.to_le_bytes(), out);
    cells::put(&page.start.to_le_bytes(), out);
    cells::put(&page.data, out);
}
