//! The entries of one page of a hash index: each whole, and in the order of their hash codes.
//!
//! Truth: `_hash_pgaddtup` and `_hash_binsearch` in `src/backend/access/hash/`.

use pgclinic_format::Page;
use pgclinic_format::hash::{self, ENTRY_BYTES, EntryFault, LH_SPLIT_FLAGS, Opaque};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// An entry that is none.
pub static HASH_ENTRY_DAMAGED: Rule =
    Rule::from_page(include_str!("../../rules/hash-entry-damaged.md"));

/// Codes that fall.
pub static HASH_CODE_ORDER: Rule = Rule::from_page(include_str!("../../rules/hash-code-order.md"));

/// Flags that no page of its type has.
pub static HASH_PAGE_FLAGS: Rule = Rule::from_page(include_str!("../../rules/hash-page-flags.md"));

/// See [`HASH_ENTRY_DAMAGED`], [`HASH_CODE_ORDER`] and [`HASH_PAGE_FLAGS`].
pub struct HashEntries;

impl PageCheck for HashEntries {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&HASH_PAGE_FLAGS, &HASH_ENTRY_DAMAGED, &HASH_CODE_ORDER] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        if cx.fork.method != Some(AccessMethod::Hash) || page.is_new() {
            return;
        }
        let Some(opaque) = hash::opaque(page) else {
            return;
        };
        if let Some(words) = flags_fault(opaque) {
            let at = usize::from(page.pd_special()) + 12;
            let draft = Draft::new(&HASH_PAGE_FLAGS, words).fact("flags", opaque.flags);
            return out.add(draft.bytes(at, at + 2));
        }
        if opaque.holds_entries() {
            tell_entries(page, out);
        }
    }
}

fn flags_fault(opaque: Opaque) -> Option<String> {
    let Opaque { flags, .. } = opaque;
    if opaque.page_type().count_ones() > 1 {
        return Some(format!("hasho_flag {flags:#06x} sets more than one type"));
    }
    let split = flags & LH_SPLIT_FLAGS;
    if split != 0 && opaque.page_type() != hash::LH_BUCKET_PAGE {
        let name = hash::type_name(opaque.page_type());
        return Some(format!(
            "hasho_flag {flags:#06x} notes a split on {name} page"
        ));
    }
    let both = hash::LH_BUCKET_BEING_SPLIT | hash::LH_BUCKET_BEING_POPULATED;
    (split & both == both).then(|| format!("hasho_flag {flags:#06x} says both ends of a split"))
}

fn tell_entries(page: Page<'_>, out: &mut Findings) {
    let mut before = 0;
    let mut ordered = true;
    for (item, entry) in hash::entries(page) {
        match entry {
            Err(fault) => {
                let draft = Draft::new(&HASH_ENTRY_DAMAGED, fault_words(fault));
                out.add(draft.item(item));
            }
            // One finding a page: what follows a wrong code is out of order as well.
            Ok(entry) if entry.code < before && ordered => {
                let words = format!(
                    "hash code {:#010x} is smaller than {before:#010x} before it",
                    entry.code
                );
                out.add(Draft::new(&HASH_CODE_ORDER, words).item(item));
                ordered = false;
            }
            Ok(entry) => before = entry.code,
        }
    }
}

fn fault_words(fault: EntryFault) -> String {
    match fault {
        EntryFault::NoItem => "the line pointer names no entry".into(),
        EntryFault::Length { pointer, tuple } => format!(
            "an entry of {pointer} bytes that calls itself {tuple} bytes long, not {ENTRY_BYTES}"
        ),
        EntryFault::Info { found } => {
            format!("t_info {found:#06x} tells of nulls or varying lengths")
        }
        EntryFault::Target => "the entry names line pointer 0 or no block".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};

    fn entry(code: u32, offset: u16) -> Vec<u8> {
        let mut entry = vec![0; 16];
        put_u16(&mut entry, 4, offset);
        put_u16(&mut entry, 6, 16);
        put_u32(&mut entry, 8, code);
        entry
    }

    fn said(flags: u16, entries: &[Vec<u8>]) -> Vec<String> {
        let mut special = [0; 16];
        put_u16(&mut special, 12, flags);
        put_u16(&mut special, 14, 0xFF80);
        let page = entries
            .iter()
            .fold(PageBuilder::new(8192, &special), |page, entry| {
                page.item(entry)
            });
        let pages = [vec![0; 8192], page.finish(1)];
        ForkTrial::new(AccessMethod::Hash, &pages).messages(&HashEntries, 1)
    }

    #[test]
    fn codes_rise_and_may_repeat() {
        assert!(said(2, &[entry(1, 1), entry(1, 2), entry(0xFFFF_0000, 3)]).is_empty());
        assert_eq!(
            said(1, &[entry(5, 1), entry(3, 2), entry(2, 3)]),
            ["hash code 0x00000003 is smaller than 0x00000005 before it"]
        );
    }

    #[test]
    fn an_entry_has_one_shape() {
        let told = said(2, &[entry(1, 0), entry(1, 1)[..8].to_vec()]);
        assert_eq!(
            told,
            [
                "the entry names line pointer 0 or no block",
                "an entry of 8 bytes that calls itself 16 bytes long, not 16"
            ]
        );
    }

    #[test]
    fn flags_are_those_of_one_type() {
        assert!(said(0x0002 | 0x00C0, &[]).is_empty());
        assert_eq!(said(3, &[]), ["hasho_flag 0x0003 sets more than one type"]);
        assert_eq!(
            said(0x0021, &[]),
            ["hasho_flag 0x0021 notes a split on overflow page"]
        );
        assert_eq!(
            said(0x0032, &[]),
            ["hasho_flag 0x0032 says both ends of a split"]
        );
    }
}
