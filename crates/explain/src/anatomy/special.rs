//! The special space of each access method, and the fields of meta pages.
//!
//! Truth: `src/include/access/{nbtree,hash,gist,spgist_private,ginblock,brin_page}.h`.

use pgclinic_format::flags::FlagName;
use pgclinic_format::index_page::{AccessMethod, has_line_pointers, page_kind_fault};
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::sequence::SEQUENCE_MAGIC;
use pgclinic_format::{Page, sequence};
use pgclinic_model::document::Field;

use super::AnatomyCx;
use super::bytes::{hex, u16_at};
use super::cover::{Cover, Part};
use super::field::{Entry, Show, field, named, paint, read};

/// Bytes shown of a special space that nothing explains.
const RAW_SHOWN: usize = 64;

const BTREE_FLAGS: &[FlagName] = &[
    (1, "BTP_LEAF"),
    (2, "BTP_ROOT"),
    (4, "BTP_DELETED"),
    (8, "BTP_META"),
    (16, "BTP_HALF_DEAD"),
    (32, "BTP_SPLIT_END"),
    (64, "BTP_HAS_GARBAGE"),
    (128, "BTP_INCOMPLETE_SPLIT"),
    (256, "BTP_HAS_FULLXID"),
];
const HASH_FLAGS: &[FlagName] = &[
    (1, "LH_OVERFLOW_PAGE"),
    (2, "LH_BUCKET_PAGE"),
    (4, "LH_BITMAP_PAGE"),
    (8, "LH_META_PAGE"),
    (16, "LH_BUCKET_BEING_POPULATED"),
    (32, "LH_BUCKET_BEING_SPLIT"),
    (64, "LH_BUCKET_NEEDS_SPLIT_CLEANUP"),
    (128, "LH_PAGE_HAS_DEAD_TUPLES"),
];
const GIST_FLAGS: &[FlagName] = &[
    (1, "F_LEAF"),
    (2, "F_DELETED"),
    (4, "F_TUPLES_DELETED"),
    (8, "F_FOLLOW_RIGHT"),
    (16, "F_HAS_GARBAGE"),
];
const SPGIST_FLAGS: &[FlagName] = &[
    (1, "SPGIST_META"),
    (2, "SPGIST_DELETED"),
    (4, "SPGIST_LEAF"),
    (8, "SPGIST_NULLS"),
];
const GIN_FLAGS: &[FlagName] = &[
    (1, "GIN_DATA"),
    (2, "GIN_LEAF"),
    (4, "GIN_DELETED"),
    (8, "GIN_META"),
    (16, "GIN_LIST"),
    (32, "GIN_LIST_FULLROW"),
    (64, "GIN_INCOMPLETE_SPLIT"),
    (128, "GIN_COMPRESSED"),
];
const BRIN_FLAGS: &[FlagName] = &[(1, "BRIN_EVACUATE_PAGE")];

const BTREE: &[Entry] = &[
    ("btpo_prev", 0, Show::U32),
    ("btpo_next", 4, Show::U32),
    ("btpo_level", 8, Show::U32),
    ("btpo_flags", 12, Show::Flags(BTREE_FLAGS)),
    ("btpo_cycleid", 14, Show::U16),
];
const HASH: &[Entry] = &[
    ("hasho_prevblkno", 0, Show::Block),
    ("hasho_nextblkno", 4, Show::Block),
    ("hasho_bucket", 8, Show::Block),
    ("hasho_flag", 12, Show::Flags(HASH_FLAGS)),
    ("hasho_page_id", 14, Show::Hex16),
];
const GIST: &[Entry] = &[
    ("nsn", 0, Show::Lsn),
    ("rightlink", 8, Show::Block),
    ("flags", 12, Show::Flags(GIST_FLAGS)),
    ("gist_page_id", 14, Show::Hex16),
];
const SPGIST: &[Entry] = &[
    ("flags", 0, Show::Flags(SPGIST_FLAGS)),
    ("nRedirection", 2, Show::U16),
    ("nPlaceholder", 4, Show::U16),
    ("spgist_page_id", 6, Show::Hex16),
];
const GIN: &[Entry] = &[
    ("rightlink", 0, Show::Block),
    ("maxoff", 4, Show::U16),
    ("flags", 6, Show::Flags(GIN_FLAGS)),
];
const BRIN: &[Entry] = &[
    ("unused", 0, Show::Hex32),
    ("flags", 4, Show::Flags(BRIN_FLAGS)),
    ("type", 6, Show::Hex16),
];
const SEQUENCE: &[Entry] = &[("magic", 0, Show::Hex32)];

const BTREE_META: &[Entry] = &[
    ("btm_magic", 0, Show::Hex32),
    ("btm_version", 4, Show::U32),
    ("btm_root", 8, Show::U32),
    ("btm_level", 12, Show::U32),
    ("btm_fastroot", 16, Show::U32),
    ("btm_fastlevel", 20, Show::U32),
    ("btm_last_cleanup_num_delpages", 24, Show::U32),
    ("btm_last_cleanup_num_heap_tuples", 32, Show::F64),
    ("btm_allequalimage", 40, Show::U8),
];
const HASH_META: &[Entry] = &[
    ("hashm_magic", 0, Show::Hex32),
    ("hashm_version", 4, Show::U32),
    ("hashm_ntuples", 8, Show::F64),
    ("hashm_ffactor", 16, Show::U16),
    ("hashm_bsize", 18, Show::U16),
    ("hashm_bmsize", 20, Show::U16),
    ("hashm_bmshift", 22, Show::U16),
    ("hashm_maxbucket", 24, Show::U32),
    ("hashm_highmask", 28, Show::Hex32),
    ("hashm_lowmask", 32, Show::Hex32),
    ("hashm_ovflpoint", 36, Show::U32),
    ("hashm_firstfree", 40, Show::U32),
    ("hashm_nmaps", 44, Show::U32),
    ("hashm_procid", 48, Show::U32),
];
const GIN_META: &[Entry] = &[
    ("head", 0, Show::Block),
    ("tail", 4, Show::Block),
    ("tailFreeSize", 8, Show::U32),
    ("nPendingPages", 12, Show::U32),
    ("nPendingHeapTuples", 16, Show::I64),
    ("nTotalPages", 24, Show::U32),
    ("nEntryPages", 28, Show::U32),
    ("nDataPages", 32, Show::U32),
    ("nEntries", 40, Show::I64),
    ("ginVersion", 48, Show::U32),
];
const SPGIST_META: &[Entry] = &[("magicNumber", 0, Show::Hex32)];
const BRIN_META: &[Entry] = &[
    ("brinMagic", 0, Show::Hex32),
    ("brinVersion", 4, Show::U32),
    ("pagesPerRange", 8, Show::U32),
    ("lastRevmapPage", 12, Show::Block),
];

fn entries(method: AccessMethod) -> &'static [Entry] {
    match method {
        AccessMethod::Heap => &[],
        AccessMethod::Btree => BTREE,
        AccessMethod::Hash => HASH,
        AccessMethod::Gist => GIST,
        AccessMethod::Gin => GIN,
        AccessMethod::Spgist => SPGIST,
        AccessMethod::Brin => BRIN,
        AccessMethod::Sequence => SEQUENCE,
    }
}

/// The fields of a meta page, if the special space says that this is one.
fn meta_entries(method: AccessMethod, special: &[u8]) -> Option<&'static [Entry]> {
    let flag = |at: usize, bit: u16| u16_at(special, at).is_some_and(|flags| flags & bit != 0);
    match method {
        AccessMethod::Btree if flag(12, 8) => Some(BTREE_META),
        AccessMethod::Hash if flag(12, 8) => Some(HASH_META),
        AccessMethod::Gin if flag(6, 8) => Some(GIN_META),
        AccessMethod::Spgist if flag(0, 1) => Some(SPGIST_META),
        AccessMethod::Brin if u16_at(special, 6) == Some(0xF091) => Some(BRIN_META),
        _ => None,
    }
}

/// Fields of the special space, then those of a meta page; with labels.
pub(super) fn fields(
    page: Page<'_>,
    method: AccessMethod,
    cx: &AnatomyCx<'_>,
    cover: &mut Cover,
) -> Vec<Field> {
    let Some(special) = page.special() else {
        return Vec::new();
    };
    let base = page.len() - special.len();
    if special.len() != method.special_bytes() {
        return wrong_size(special, base, method, cover);
    }
    let mut fields = read(page.bytes(), base, entries(method));
    explain(page, method, cx, &mut fields);
    cover.paint(base..page.len(), Part::Special, "special space");
    paint(&fields, Part::Special, "", cover);
    if let Some(entries) = meta_entries(method, special) {
        let meta = read(page.bytes(), HEADER_BYTES, entries);
        paint(&meta, Part::TupleData, "", cover);
        fields.extend(meta);
    } else if !has_line_pointers(method, page) {
        let end = usize::from(page.pd_lower()).min(base);
        cover.paint(HEADER_BYTES..end, Part::TupleData, body_name(method));
    }
    fields
}

/// What stands where other pages have line pointers.
fn body_name(method: AccessMethod) -> &'static str {
    match method {
        AccessMethod::Hash => "bitmap of overflow pages",
        AccessMethod::Gin => "TIDs",
        AccessMethod::Brin => "range map",
        _ => "contents of a deleted page",
    }
}

fn wrong_size(special: &[u8], base: usize, method: AccessMethod, cover: &mut Cover) -> Vec<Field> {
    if special.is_empty() && method == AccessMethod::Heap {
        return Vec::new();
    }
    let end = base + special.len();
    cover.paint(base..end, Part::Special, "special space");
    let mut field = field("special space", base..end, hex(special, RAW_SHOWN));
    let (found, expected) = (special.len(), method.special_bytes());
    field.fault = Some(format!(
        "{found} bytes, where {} pages have {expected}",
        method.name()
    ));
    vec![field]
}

fn explain(page: Page<'_>, method: AccessMethod, cx: &AnatomyCx<'_>, fields: &mut [Field]) {
    if let Some(field) = named(fields, "btpo_next").filter(|field| field.value == "0") {
        field.meaning.push("the rightmost page".into());
    }
    if let Some(field) = named(fields, "btpo_prev").filter(|field| field.value == "0") {
        field.meaning.push("the leftmost page".into());
    }
    if let Some(field) = named(fields, "type") {
        let kind = match field.value.as_str() {
            "0xf091" => "BRIN_PAGETYPE_META",
            "0xf092" => "BRIN_PAGETYPE_REVMAP",
            "0xf093" => "BRIN_PAGETYPE_REGULAR",
            _ => "no BRIN page",
        };
        field.meaning.push(kind.into());
    }
    if let Some(field) = named(fields, "magic") {
        let magic = sequence::magic(page);
        field.fault = (magic != Some(SEQUENCE_MAGIC))
            .then(|| format!("a sequence has 0x{SEQUENCE_MAGIC:08x}"));
    }
    if let Some(fault) = page_kind_fault(method, page, cx.block)
        && let Some(last) = fields.last_mut()
    {
        last.fault = Some(fault.to_string());
    }
}

/// The special space of a page of unknown kind.
pub(super) fn unknown(page: Page<'_>, cover: &mut Cover) -> Vec<Field> {
    let Some(special) = page.special().filter(|special| !special.is_empty()) else {
        return Vec::new();
    };
    let base = page.len() - special.len();
    cover.paint(base..page.len(), Part::Special, "special space");
    vec![field(
        "special space",
        base..page.len(),
        hex(special, RAW_SHOWN),
    )]
}
