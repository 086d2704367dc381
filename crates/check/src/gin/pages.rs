//! Small looks at one GIN page.

use pgclinic_format::gin::{EntryTuple, Opaque, PageKind};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{LpFlags, Page};

use crate::check::PageCx;

/// The special space and the kind of a page of a GIN index, if it can be one.
pub(crate) fn gin_page(page: Page<'_>, cx: &PageCx<'_>) -> Option<(Opaque, PageKind)> {
    (cx.fork.method == Some(AccessMethod::Gin) && !page.is_new()).then_some(())?;
    let opaque = Opaque::of(page)?;
    Some((opaque, opaque.kind()?))
}

/// The entries of a page of keys or of waiting entries, with their line pointer numbers.
pub(crate) fn entries<'a>(page: Page<'a>) -> impl Iterator<Item = (u16, EntryTuple<'a>)> {
    page.line_pointers().filter_map(move |(item, pointer)| {
        (pointer.flags() == LpFlags::Normal).then_some(())?;
        Some((item, EntryTuple::parse(page.item(pointer)?)?))
    })
}
