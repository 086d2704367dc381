//! All large objects of a database in one tar file, a member each, named by its number.
//!
//! The member `restore.sql` puts them back under their numbers: unpack the file, and run
//! `psql -v directory=DIR -f DIR/restore.sql`. psql sends the bytes, so that the server need not
//! see the files, and an object that is there already stays as it is. An object without a page is
//! empty; a gap between pages reads as zeros. Truth of the format: `pax` in POSIX, format `ustar`.

use std::collections::BTreeMap;

use pgclinic_format::Oid;

use super::super::error::SalvageError;
use super::super::folder::{Folder, PartFile};
use super::Pages;

const TAR_BLOCK: usize = 512;
/// Bytes that are gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// Writes the objects; says how many bytes the file has.
pub(super) fn write(
    sizes: &BTreeMap<Oid, u64>,
    pages: &mut Pages,
    folder: &Folder,
    name: &str,
) -> Result<u64, SalvageError> {
    let mut tar = Tar {
        file: folder.begin(name)?,
        buffer: Vec::new(),
    };
    let script = restore_script(sizes);
    tar.head("restore.sql", script.len() as u64)?;
    tar.add(script.as_bytes())?;
    tar.pad(script.len() as u64)?;
    for (oid, size) in sizes {
        tar.head(&oid.to_string(), *size)?;
        let mut at = 0u64;
        while let Some(page) = pages.next_of(*oid)? {
            // A page that is there twice is written once.
            if page.start < at {
                continue;
            }
            tar.zeros(page.start - at)?;
            tar.add(&page.data)?;
            at = page.start + page.data.len() as u64;
        }
        tar.zeros(size.saturating_sub(at))?;
        tar.pad(*size)?;
    }
    tar.finish()
}

/// psql imports an object under a number of the server's choice; a function takes its bytes over
/// to the number that it had, a part at a time.
const TAKE_OVER: &str = "\
\\if :{?directory}
\\else
\\set directory '.'
\\endif
CREATE FUNCTION pg_temp.take_over(made oid, number oid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  at bigint := 0;
  part bytea;
BEGIN
  PERFORM pg_catalog.lo_create(number);
  LOOP
    part := pg_catalog.lo_get(made, at, 16777216);
    EXIT WHEN pg_catalog.length(part) = 0;
    PERFORM pg_catalog.lo_put(number, at, part);
    at := at + pg_catalog.length(part);
  END LOOP;
  PERFORM pg_catalog.lo_unlink(made);
END $$;
";

fn restore_script(sizes: &BTreeMap<Oid, u64>) -> String {
    let mut script = String::from(TAKE_OVER);
    for oid in sizes.keys() {
        script.push_str(&format!(
            "\\set file :directory '/{oid}'\nBEGIN;\n\\lo_import :file\n\
             SELECT pg_temp.take_over(:LASTOID, {oid}) AS taken \\gset\nCOMMIT;\n"
        ));
    }
    script.push_str("DROP FUNCTION pg_temp.take_over(oid, oid);\n");
    script
}

/// A tar file, written from its beginning to its end.
struct Tar {
    file: PartFile,
    buffer: Vec<u8>,
}

impl Tar {
    fn head(&mut self, name: &str, size: u64) -> Result<(), SalvageError> {
        let mut block = [0u8; TAR_BLOCK];
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(slot) = block.get_mut(at..at + bytes.len()) {
                slot.copy_from_slice(bytes);
            }
        };
        put(0, name.as_bytes());
        put(100, b"0000600\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, &tar_size(size));
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, b"0");
        put(257, b"ustar\x0000");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        let sum = format!("{sum:06o}\0 ");
        if let Some(slot) = block.get_mut(148..156) {
            slot.copy_from_slice(sum.as_bytes());
        }
        self.add(&block)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), SalvageError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES {
            self.file.write(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn zeros(&mut self, count: u64) -> Result<(), SalvageError> {
        let mut left = count;
        while left > 0 {
            let step = left.min(TAR_BLOCK as u64);
            let zeros = [0u8; TAR_BLOCK];
            let step_bytes = usize::try_from(step).unwrap_or(TAR_BLOCK);
            self.add(zeros.get(..step_bytes).unwrap_or_default())?;
            left -= step;
        }
        Ok(())
    }

    /// Fills the last block of a member.
    fn pad(&mut self, size: u64) -> Result<(), SalvageError> {
        self.zeros(size.next_multiple_of(TAR_BLOCK as u64) - size)
    }

    fn finish(mut self) -> Result<u64, SalvageError> {
        self.zeros(2 * TAR_BLOCK as u64)?;
        self.file.write(&self.buffer)?;
        self.file.finish()
    }
}

/// Eleven octal digits, or eight bytes behind a mark where they do not hold it.
fn tar_size(size: u64) -> [u8; 12] {
    let mut field = [0u8; 12];
    let octal = format!("{size:011o}\0");
    if octal.len() == field.len() {
        field.copy_from_slice(octal.as_bytes())
    } else {
        field[0] = 0x80;
        if let Some(slot) = field.get_mut(4..) {
            slot.copy_from_slice(&size.to_be_bytes());
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_octal_while_they_fit() {
        assert_eq!(&tar_size(2048), b"00000004000\0");
        assert_eq!(tar_size(1 << 33), [0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
    }
}
