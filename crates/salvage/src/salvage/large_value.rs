//! A value that is larger than memory allows, chunk by chunk and unpacked on the way: in a file of
//! its own beside the table's.
//!
//! ```text
//! <schema>.<table>.large_value.<block>.<item>.<column>   the bytes of the value, without a header
//! ```

use pgclinic_cluster::{FoundChunks, ToastReader};
use pgclinic_format::datum::{DecompressError, Unpacker};
use pgclinic_format::toast::ToastPointer;
use pgclinic_format::types::Tid;

use super::database_job::DatabaseJob;
use super::error::SalvageError;
use super::folder::Folder;
use crate::file_names::{FileNames, beside as name_beside};
use crate::shape::{Origin, Table};
use crate::values::Partial;

/// Bytes of a part, about.
const PART_BYTES: usize = 1 << 20;
/// Stored compressed data begins with the word of raw size and method.
const WORD_BYTES: usize = 4;

/// Writes the value, if it can; what is to be said of it behind why it does not stand in its row.
pub(super) fn beside(
    crew: &DatabaseJob<'_>,
    table: usize,
    place: Tid,
    column: usize,
    pointer: ToastPointer,
    chunks: Option<&mut ToastReader<'_>>,
) -> String {
    let (Some((folder, file)), Some(chunks)) = (crew.outlet.file(table), chunks) else {
        return String::new();
    };
    let Some(table) = crew.tables.get(table).map(|work| &work.table) else {
        return String::new();
    };
    let extension = format!(".{}", crew.options.form.extension());
    let file_of_table = file.strip_suffix(&extension).unwrap_or(file);
    let name = file_name(file_of_table, table, place, column);
    match write(folder, &name, pointer, chunks, crew.options.partial) {
        Ok(Written::Whole) => format!("; its bytes stand in {name}"),
        Ok(Written::Beginning(bytes)) => {
            format!("; the first {bytes} of its bytes stand in {name}, the others are missing")
        }
        Ok(Written::Nothing(why)) => format!("; {why}"),
        Err(failure) => {
            crew.outlet.stop(Some(failure));
            String::new()
        }
    }
}

/// Columns of a table that are equal but for case carry their numbers.
fn file_name(file: &str, table: &Table, place: Tid, column: usize) -> String {
    let parts: Vec<[&str; 1]> = table
        .columns
        .iter()
        .map(|one| [one.name.as_str()])
        .collect();
    let names = FileNames::of(parts.iter().map(|parts| parts.as_slice()));
    let column = table.columns.get(column);
    let number = match column.map(|column| column.origin) {
        Some(Origin::Attribute(index)) => u32::try_from(index).map_or(0, |index| index + 1),
        _ => 0,
    };
    let column = column.map_or("", |column| column.name.as_str());
    let column = names.name(&[column], number);
    let what = format!("large_value.{}.{}", place.block, place.offset);
    name_beside((file, table.oid), &what, (&column, number))
}

enum Written {
    Whole,
    Beginning(u64),
    Nothing(String),
}

fn write(
    folder: &Folder,
    name: &str,
    pointer: ToastPointer,
    chunks: &mut ToastReader<'_>,
    partial: Partial,
) -> Result<Written, SalvageError> {
    let mut file = folder.begin(name)?;
    let ending = in_parts(pointer, chunks, &mut |bytes| file.write(bytes))?;
    let bytes = file.bytes();
    match ending {
        Ending::Whole => file.finish().map(|_| Written::Whole),
        Ending::Broken(_) if partial == Partial::Kept && bytes > 0 => {
            file.finish().map(|_| Written::Beginning(bytes))
        }
        Ending::Broken(why) => Ok(Written::Nothing(why)),
    }
}

/// How a value ended that came in parts.
pub(super) enum Ending {
    /// All of it came.
    Whole,
    /// What came is its beginning; why there is no more.
    Broken(String),
}

/// Gives the bytes of a value, a mebibyte or so at a time; the first error of the taker ends it.
pub(super) fn in_parts<E>(
    pointer: ToastPointer,
    chunks: &mut ToastReader<'_>,
    give: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<Ending, E> {
    let raw_size = u64::from(pointer.va_rawsize.saturating_sub(4));
    let mut unpacker = if !pointer.is_compressed() {
        None
    } else {
        match Unpacker::new(pointer.method, raw_size) {
            Ok(unpacker) => Some(unpacker),
            Err(error) => return Ok(Ending::Broken(error.to_string())),
        }
    };
    let (mut raw, mut skipped, mut bytes) = (Vec::new(), 0, 0);
    let (mut failure, mut broken) = (None, None::<DecompressError>);
    let found = chunks.fetch_each(pointer, &mut |data| {
        if failure.is_some() || broken.is_some() {
            return;
        }
        match &mut unpacker {
            None => raw.extend_from_slice(data),
            Some(unpacker) => {
                let skip = data.len().min(WORD_BYTES - skipped);
                skipped += skip;
                let data = data.get(skip..).unwrap_or_default();
                let fed = unpacker.feed(data, &mut |bytes| raw.extend_from_slice(bytes));
                broken = fed.err();
            }
        }
        if raw.len() >= PART_BYTES {
            bytes += raw.len() as u64;
            failure = give(&raw).err();
            raw.clear();
        }
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    bytes += raw.len() as u64;
    give(&raw)?;
    Ok(match (broken, found) {
        (Some(error), _) => Ending::Broken(error.to_string()),
        (None, FoundChunks::UpTo { missing, expected }) => Ending::Broken(format!(
            "chunk {missing} of its {expected} is missing in TOAST"
        )),
        (None, FoundChunks::Whole) if bytes == raw_size => Ending::Whole,
        (None, FoundChunks::Whole) => Ending::Broken(format!(
            "it has {bytes} bytes, not the {raw_size} of its pointer"
        )),
    })
}
