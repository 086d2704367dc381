//! The files that the rows of one table go into: its own, and one beside it for rows that may not
//! be what they say, so that the table's file loads.

use crate::salvage::{Folder, PartFile, Piece, SalvageError, SuspectFile};

/// Both files.
pub(super) struct TableRows<'a> {
    file: PartFile,
    beside: Option<SuspectRows<'a>>,
}

/// The file beside a table's; it is made with its first row.
struct SuspectRows<'a> {
    folder: &'a Folder,
    of: SuspectFile,
    file: Option<PartFile>,
}

/// How much was written at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WrittenBytes {
    table: u64,
    beside: u64,
}

impl<'a> TableRows<'a> {
    /// Suspect rows go into the file of the others.
    pub(super) fn together(file: PartFile) -> Self {
        TableRows { file, beside: None }
    }

    /// Suspect rows go into a file of their own in this folder.
    pub(super) fn apart(file: PartFile, folder: &'a Folder, of: SuspectFile) -> Self {
        let beside = SuspectRows {
            folder,
            of,
            file: None,
        };
        TableRows {
            file,
            beside: Some(beside),
        }
    }

    pub(super) fn parts_suspects(&self) -> bool {
        self.beside.is_some()
    }

    pub(super) fn file(&self) -> &PartFile {
        &self.file
    }

    pub(super) fn write(&mut self, rows: &[u8]) -> Result<(), SalvageError> {
        self.file.write(rows)
    }

    /// Rows as CSV with the reason in front.
    pub(super) fn write_suspects(&mut self, rows: &[u8]) -> Result<(), SalvageError> {
        match &mut self.beside {
            Some(beside) if !rows.is_empty() => beside.write(rows),
            _ => Ok(()),
        }
    }

    /// Rows of our own reader.
    pub(super) fn write_printed(&mut self, printed: &Piece) -> Result<(), SalvageError> {
        self.write(&printed.rows)?;
        self.write_suspects(&printed.suspects)
    }

    pub(super) fn written(&self) -> WrittenBytes {
        let beside = self.beside.as_ref().and_then(|own| own.file.as_ref());
        WrittenBytes {
            table: self.file.bytes(),
            beside: beside.map_or(0, PartFile::bytes),
        }
    }

    /// Takes back what was written since.
    pub(super) fn back_to(&mut self, written: WrittenBytes) -> Result<(), SalvageError> {
        if let Some(beside) = &mut self.beside {
            beside.back_to(written.beside)?;
        }
        self.file.back_to(written.table)
    }

    /// Gives the files their names; the bytes of the table's, and the name of the one beside it.
    pub(super) fn finish(self) -> Result<(u64, Option<String>), SalvageError> {
        let name = self.beside.map_or(Ok(None), SuspectRows::finish)?;
        Ok((self.file.finish()?, name))
    }
}

impl SuspectRows<'_> {
    fn write(&mut self, rows: &[u8]) -> Result<(), SalvageError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut file = self.folder.begin(&self.of.name)?;
                file.write(&self.of.head)?;
                none.insert(file)
            }
        };
        file.write(rows)
    }

    /// Back to nothing, there is no file.
    fn back_to(&mut self, bytes: u64) -> Result<(), SalvageError> {
        match &mut self.file {
            Some(file) if bytes > 0 => file.back_to(bytes),
            file => {
                *file = None;
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<Option<String>, SalvageError> {
        let Some(file) = self.file else {
            return Ok(None);
        };
        file.finish()?;
        Ok(Some(self.of.name))
    }
}
