//! What kind of page this is, when nothing but the page tells.

use crate::bytes::{u16_at, u32_at};
use crate::index_page::AccessMethod;
use crate::page::Page;
use crate::sequence::SEQUENCE_MAGIC;

impl AccessMethod {
    /// By the size of the special space and the marks in it; nothing for a header that makes no
    /// sense. A free space or visibility map page looks like a heap page without rows.
    pub fn guess(page: Page<'_>) -> Option<AccessMethod> {
        if page.is_new() || !page.header_is_sane_to_the_server() {
            return None;
        }
        let special = page.special()?;
        match special.len() {
            0 => Some(AccessMethod::Heap),
            8 if u32_at(special, 0) == Some(SEQUENCE_MAGIC) => Some(AccessMethod::Sequence),
            8 => Some(match u16_at(special, 6)? {
                0xFF82 => AccessMethod::Spgist,
                0xF091..=0xF093 => AccessMethod::Brin,
                _ => AccessMethod::Gin,
            }),
            16 => match u16_at(special, 14)? {
                0xFF80 => Some(AccessMethod::Hash),
                0xFF81 => Some(AccessMethod::Gist),
                0..=0xFF7F => Some(AccessMethod::Btree),
                _ => None,
            },
            _ => None,
        }
    }
}
