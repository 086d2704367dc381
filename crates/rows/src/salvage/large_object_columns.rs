//! All large objects of a database as rows of a file of columns.
//!
//! ```text
//! oid     the object's number
//! offset  where in the object the bytes begin; between two rows of an object there may be a gap, which reads as zeros
//! data    at most a quarter of a block; an object without a page has one row without bytes
//! ```

use std::io;

use pgclinic_columnar::{Field, Kind, Layout, Packer, PackerPlan, cells};

use super::error::SalvageError;
use super::folder::Folder;
use super::large_objects::{ObjectPage, Objects};
use super::lines::unpacked;

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
        objects: Objects,
        spill: &dyn Fn(io::Error) -> SalvageError,
    ) -> Result<u64, SalvageError> {
        let failed = |error| unpacked(self.name, error);
        let mut packer = Packer::new(&self.plan()).map_err(failed)?;
        let mut file = self.folder.begin(self.name)?;
        let (mut rows, mut packed) = (Vec::new(), Vec::new());
        let mut pages = objects.pages.finish().map_err(spill)?.peekable();
        for oid in objects.sizes.keys() {
            let mut at = None;
            while let Some(page) = pages.next_if(|page| match page {
                Ok((key, _)) => key.get(..4) == Some(oid.to_be_bytes().as_slice()),
                Err(_) => true,
            }) {
                let page = ObjectPage::of(page.map_err(spill)?, objects.page_bytes);
                // A page that is there twice is written once.
                if at.is_none_or(|at| page.start >= at) {
                    at = Some(page.start + page.data.len() as u64);
                    row(&page, &mut rows);
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
                    oid: *oid,
                    start: 0,
                    data: Vec::new(),
                };
                row(&empty, &mut rows);
            }
        }
        packer.add(&rows, &mut packed).map_err(failed)?;
        packer.finish(&mut packed).map_err(failed)?;
        file.write(&packed)?;
        file.finish()
    }

    fn plan(&self) -> PackerPlan {
        let columns = [
            ("oid", Kind::UInt32),
            ("offset", Kind::Int64),
            ("data", Kind::Binary),
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

fn row(page: &ObjectPage, out: &mut Vec<u8>) {
    cells::put(&page.oid.to_le_bytes(), out);
    cells::put(&page.start.to_le_bytes(), out);
    cells::put(&page.data, out);
}
