//! What tells the major beside `PG_VERSION` of the cluster, which may be the file that is wrong:
//! `PG_VERSION` of each database, the catalog version in the control file, and the number with
//! which each page of WAL begins.

use pgclinic_format::Layout;
use pgclinic_format::layout::LAYOUTS;
use pgclinic_source::{EntryKind, Source, read_all};

use crate::control_state::ControlState;
use crate::wal::is_segment_name;

/// Files of WAL that are asked for their major.
const SEGMENTS_TRIED: usize = 16;

/// The major that all of the server's own files have, and more databases than any other; nothing
/// where they disagree, or where neither control file nor WAL tells it.
pub(crate) fn major_of_others(source: &dyn Source, control: &ControlState) -> Option<u16> {
    let by_control = control.trusted();
    let by_control = by_control.and_then(|own| Layout::of_catalog_version(own.catalog_version_no));
    let by_wal = layout_of_wal(source);
    let mut own = by_control.into_iter().chain(by_wal).map(|own| own.major);
    let major = own.next()?;
    let of_databases = majors_of_databases(source);
    let agree = of_databases.iter().filter(|own| **own == major).count();
    let is_most = agree.saturating_mul(2) > of_databases.len();
    (is_most && own.all(|other| other == major)).then_some(major)
}

/// The major that the files of all databases name, and that WAL does not contradict: what is left
/// where the cluster has neither its own file nor a control file.
pub(crate) fn major_of_databases(source: &dyn Source) -> Option<u16> {
    let majors = majors_of_databases(source);
    let major = *majors.first()?;
    let is_same = majors.iter().all(|own| *own == major);
    let by_wal = layout_of_wal(source);
    (is_same && by_wal.is_none_or(|own| own.major == major)).then_some(major)
}

/// Of the databases whose files name one that is known.
pub(crate) fn majors_of_databases(source: &dyn Source) -> Vec<u16> {
    let folders = source.list("base").unwrap_or_default().into_iter();
    let folders = folders.filter(|entry| entry.kind == EntryKind::Folder);
    let majors = folders.filter_map(|folder| {
        let path = format!("base/{}/PG_VERSION", folder.name);
        let bytes = read_all(source, &path, 64).ok()?;
        // One that was cut itself has no end of the line.
        let text = std::str::from_utf8(&bytes).ok()?.strip_suffix('\n')?;
        Some(Layout::of_major(text.parse().ok()?)?.major)
    });
    majors.collect()
}

/// By the number with which each page of WAL begins.
pub(crate) fn layout_of_wal(source: &dyn Source) -> Option<&'static Layout> {
    let files = source.list("pg_wal").unwrap_or_default().into_iter();
    let segments =
        files.filter(|entry| entry.kind == EntryKind::File && is_segment_name(&entry.name));
    let mut magics = segments.take(SEGMENTS_TRIED).filter_map(|segment| {
        let mut magic = [0; 2];
        let path = format!("pg_wal/{}", segment.name);
        let read = source.read_at(&path, 0, &mut magic).ok()?;
        let magic = (read == magic.len()).then(|| u16::from_le_bytes(magic))?;
        LAYOUTS.iter().find(|layout| layout.wal_magic == magic)
    });
    magics.next()
}
