//! One page taken apart: every byte with its name, every field with its meaning.
//!
//! On a damaged page whatever can be read is shown, and what is wrong stands beside it. Nothing
//! here panics on any bytes, and what is shown is bounded.

mod bytes;
mod cover;
mod field;
mod header;
mod heap;
mod index;
mod items;
mod maps;
mod special;
mod values;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cover::Cover;
use pgclinic_cluster::{Cluster, Column};
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::datum::TypeInfo;
use pgclinic_format::index_page::{AccessMethod, has_line_pointers};
use pgclinic_format::{BlockNo, Oid, Page};
use pgclinic_model::document::{Field, ItemAnatomy, PageAnatomy};
use pgclinic_model::plural;

/// Line pointers that are shown with their items.
const ITEMS_MAX: usize = 2048;

/// How a page is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageKind {
    /// Main or init fork of a relation of this access method.
    Method(AccessMethod),
    /// Free space map.
    FreeSpaceMap,
    /// Visibility map.
    VisibilityMap,
    /// Nothing tells.
    Unknown,
}

impl PageKind {
    /// `heap`, `btree`, `fsm`, `vm` and so on.
    pub fn name(self) -> &'static str {
        match self {
            PageKind::Method(method) => method.name(),
            PageKind::FreeSpaceMap => "fsm",
            PageKind::VisibilityMap => "vm",
            PageKind::Unknown => "unknown",
        }
    }
}

/// What is known of the page that is taken apart.
pub struct AnatomyCx<'a> {
    /// PostgreSQL's major.
    pub major: u16,
    /// Block through all segments of the fork.
    pub block: BlockNo,
    /// How the page is laid out.
    pub kind: PageKind,
    /// Data checksums are on; unknown for a bare file.
    pub checksums: Option<bool>,
    /// Columns of the relation in order of `attnum`, dropped ones too.
    pub columns: Option<&'a [Column]>,
    /// A type by its OID, as `Catalog::type_info` gives it.
    pub types: &'a dyn Fn(Oid) -> Arc<TypeInfo>,
    /// For what became of rows; without it only hint bits tell.
    pub cluster: Option<&'a Cluster>,
    /// Encoding of the database, as the server numbers it; 6 is UTF8.
    pub encoding: Option<i32>,
    /// Longest text of a value that is shown, in bytes.
    pub value_bytes_max: usize,
}

/// Takes a page apart.
pub fn page_anatomy(page: Page<'_>, cx: &AnatomyCx<'_>) -> PageAnatomy {
    let mut cover = Cover::new(page.len());
    let computed = page_checksum(page.bytes(), cx.block);
    let checksum = checksum_word(page, computed, cx);
    let zeroed = page.is_zeroed();
    let mut items = Vec::new();
    let mut special = Vec::new();
    if !zeroed {
        header::paint_space(page, &mut cover);
        special = body(page, cx, &mut items, &mut cover);
    }
    let mut header = header::fields(page, checksum, computed);
    if !zeroed {
        cut_note(page, cx, &mut header);
    }
    header::paint(&mut cover);
    PageAnatomy {
        page_kind: if zeroed {
            "new".into()
        } else {
            cx.kind.name().into()
        },
        header,
        checksum: checksum.into(),
        checksum_computed: computed,
        items,
        special,
        ranges: cover.into_ranges(),
        page: STANDARD.encode(page.bytes()),
    }
}

/// What stands between the header and the end: items and special space, or a map's bits.
fn body(
    page: Page<'_>,
    cx: &AnatomyCx<'_>,
    items: &mut Vec<ItemAnatomy>,
    cover: &mut Cover,
) -> Vec<Field> {
    match cx.kind {
        PageKind::FreeSpaceMap => maps::free_space(page, cover),
        PageKind::VisibilityMap => maps::visibility(page, cx.block, cover),
        PageKind::Unknown => {
            *items = items::anatomies(page, cx, cover);
            special::unknown(page, cover)
        }
        PageKind::Method(method) => {
            if has_line_pointers(method, page) {
                *items = items::anatomies(page, cx, cover);
            }
            special::fields(page, method, cx, cover)
        }
    }
}

fn checksum_word(page: Page<'_>, computed: u16, cx: &AnatomyCx<'_>) -> &'static str {
    let stored = page.pd_checksum();
    match cx.checksums {
        _ if page.is_zeroed() => "none",
        Some(false) => "off",
        None if stored == 0 => "off",
        _ if stored == computed => "right",
        _ => "wrong",
    }
}

/// Says when there are more line pointers than are shown.
fn cut_note(page: Page<'_>, cx: &AnatomyCx<'_>, header: &mut [Field]) {
    let count = usize::from(page.line_pointer_count());
    let shown = match cx.kind {
        PageKind::Method(method) => has_line_pointers(method, page),
        PageKind::Unknown => true,
        PageKind::FreeSpaceMap | PageKind::VisibilityMap => false,
    };
    if let Some(lower) = header
        .iter_mut()
        .find(|field| field.name == "pd_lower" && shown)
    {
        let words = if count > ITEMS_MAX {
            format!("{count} line pointers, the first {ITEMS_MAX} are shown")
        } else {
            plural(count, "line pointer")
        };
        lower.meaning.push(words);
    }
}
