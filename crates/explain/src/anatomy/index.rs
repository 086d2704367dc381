//! Index tuples: `IndexTupleData` of btree, hash, GiST and GIN, and the forms of SP-GiST and BRIN.
//!
//! ```text
//! 0       6        8
//! | t_tid | t_info | bitmap of nulls, key …
//! ```
//!
//! Truth: `src/include/access/{itup,nbtree,spgist_private,brin_tuple}.h`.

use pgclinic_format::Page;
use pgclinic_format::btree::BtreePage;
use pgclinic_format::flags::FlagName;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::document::{Field, ItemAnatomy};
use pgclinic_model::plural;

use super::bytes::{hex, tid_at, u16_at, u32_at};
use super::cover::{Cover, Part};
use super::field::{Entry, Show, field, named, paint, read};
use super::items::Item;

/// Bytes of a key that are shown.
const KEY_SHOWN: usize = 64;
/// Row numbers of a posting list that are shown.
const POSTING_SHOWN: usize = 8;
const INDEX_SIZE_MASK: u16 = 0x1FFF;
const INDEX_NULL_MASK: u16 = 0x8000;
/// `INDEX_ALT_TID_MASK` of btree.
const ALT_TID: u16 = 0x2000;
/// In the offset of `t_tid`, with [`ALT_TID`]: a posting list follows.
const BT_IS_POSTING: u16 = 0x2000;
const BT_PIVOT_HEAP_TID_ATTR: u16 = 0x1000;
const BT_OFFSET_MASK: u16 = 0x0FFF;

const T_INFO: &[FlagName] = &[
    (0x2000, "INDEX_AM_RESERVED_BIT"),
    (0x4000, "INDEX_VAR_MASK"),
    (0x8000, "INDEX_NULL_MASK"),
];
const BT_INFO: &[FlagName] = &[
    (0x2000, "INDEX_ALT_TID_MASK"),
    (0x4000, "INDEX_VAR_MASK"),
    (0x8000, "INDEX_NULL_MASK"),
];
const GENERIC: &[Entry] = &[("t_tid", 0, Show::Tid), ("t_info", 6, Show::Flags(T_INFO))];
const BTREE: &[Entry] = &[("t_tid", 0, Show::Tid), ("t_info", 6, Show::Flags(BT_INFO))];
const SPGIST: &[Entry] = &[
    ("tupstate", 0, Show::Hex32),
    ("size or nextOffset", 4, Show::U16),
];
const BRIN: &[Entry] = &[("bt_blkno", 0, Show::Block), ("bt_info", 4, Show::U8)];

/// What an entry of a btree page stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Upper bound of the other entries.
    HighKey,
    /// On a leaf page.
    Row,
    /// On any other page.
    PageBelow,
    /// The special space is none of a btree, or the entries mean nothing any more.
    Unknown,
}

impl Role {
    fn of(page: Page<'_>, number: u16) -> Self {
        match BtreePage::parse(page).filter(|own| !own.is_ignored()) {
            None => Role::Unknown,
            Some(own) if number < own.first_data() => Role::HighKey,
            Some(own) if own.is_leaf() => Role::Row,
            Some(_) => Role::PageBelow,
        }
    }

    /// An entry with one place, which neither says that it is a pivot nor has a list of rows.
    fn of_one_place(self, block: u32) -> String {
        match self {
            Role::HighKey => "the high key".into(),
            Role::Row => format!("the row in block {block} of the table"),
            Role::PageBelow => format!("the page below is {block}"),
            Role::Unknown => {
                format!("on a leaf page the row in block {block} of the table, else the page below")
            }
        }
    }

    /// Of a high key the block is that of no page that anybody reads.
    fn of_pivot(self, block: u32, key: &str) -> String {
        match self {
            Role::HighKey => format!("the high key, a pivot tuple with {key}"),
            Role::Row => format!("a pivot tuple with {key}, where a leaf page has rows"),
            Role::PageBelow => format!("a pivot tuple with {key}; the page below is {block}"),
            Role::Unknown => format!("a pivot tuple with {key}"),
        }
    }
}

/// Header and key of one index tuple.
pub(super) fn fill(
    item: Item<'_>,
    method: AccessMethod,
    page: Page<'_>,
    anatomy: &mut ItemAnatomy,
    cover: &mut Cover,
) {
    let number = item.number;
    let end = item.at.saturating_add(item.bytes.len());
    cover.paint(
        item.at..end,
        Part::TupleData,
        format!("tuple {number}: key"),
    );
    let entries = match method {
        AccessMethod::Btree => BTREE,
        AccessMethod::Spgist => SPGIST,
        AccessMethod::Brin => BRIN,
        _ => GENERIC,
    };
    let mut fields = read(item.bytes, 0, entries);
    if fields.len() < entries.len() {
        let words = format!(
            "{} bytes are too few for the header of an index tuple",
            item.bytes.len()
        );
        anatomy.fault.get_or_insert(words);
    }
    match method {
        AccessMethod::Spgist => spgist(item.bytes, &mut fields, anatomy),
        AccessMethod::Brin => brin(item.bytes, &mut fields, anatomy),
        AccessMethod::Btree => generic(
            item.bytes,
            Some(Role::of(page, number)),
            &mut fields,
            anatomy,
        ),
        _ => generic(item.bytes, None, &mut fields, anatomy),
    }
    let base = u64::try_from(item.at).unwrap_or(u64::MAX);
    for field in &mut fields {
        field.bytes = field.bytes.map(|at| at.saturating_add(base));
    }
    paint(
        &fields,
        Part::TupleHeader,
        &format!("tuple {number}: "),
        cover,
    );
    if let Some(key) = fields.iter().find(|field| field.name == "key") {
        let [start, end] = key
            .bytes
            .map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        cover.paint(start..end, Part::TupleData, format!("tuple {number}: key"));
    }
    anatomy.header = fields;
}

/// The role is that of an entry of a btree.
fn generic(bytes: &[u8], role: Option<Role>, fields: &mut Vec<Field>, anatomy: &mut ItemAnatomy) {
    let Some(info) = u16_at(bytes, 6) else { return };
    let size = usize::from(info & INDEX_SIZE_MASK);
    if let Some(field) = named(fields, "t_info") {
        field.meaning.insert(0, format!("{size} bytes"));
        // Line pointers are as long as their tuple, rounded up where an access method does so.
        let fits = size <= bytes.len() && bytes.len() < size.saturating_add(8);
        field.fault = (!fits).then(|| format!("the line pointer says {} bytes", bytes.len()));
    }
    let mut end = size.clamp(8, bytes.len().max(8));
    if let Some(role) = role {
        if info & ALT_TID != 0 {
            end = btree_alternative(bytes, role, fields, anatomy)
                .unwrap_or(end)
                .clamp(8, end);
        } else if let Some((block, _)) = tid_at(bytes, 0) {
            anatomy.state = Some(role.of_one_place(block));
        }
    }
    let start = if info & INDEX_NULL_MASK != 0 { 16 } else { 8 };
    push_key(bytes, start, end, fields);
}

fn push_key(bytes: &[u8], start: usize, end: usize, fields: &mut Vec<Field>) {
    let end = end.min(bytes.len());
    if let Some(key) = bytes.get(start..end).filter(|key| !key.is_empty()) {
        fields.push(field("key", start..end, hex(key, KEY_SHOWN)));
    }
}

/// Pivot tuples and posting lists use `t_tid` for something else; the answer is where the key ends.
fn btree_alternative(
    bytes: &[u8],
    role: Role,
    fields: &mut Vec<Field>,
    anatomy: &mut ItemAnatomy,
) -> Option<usize> {
    let (block, offset) = tid_at(bytes, 0)?;
    let count = offset & BT_OFFSET_MASK;
    if offset & BT_IS_POSTING == 0 {
        let heap_tid = offset & BT_PIVOT_HEAP_TID_ATTR != 0;
        let tail = if heap_tid {
            " and a TID at its end"
        } else {
            ""
        };
        let key = format!("{}{tail}", plural(count, "key attribute"));
        anatomy.state = Some(role.of_pivot(block, &key));
        return None;
    }
    let start = usize::try_from(block).ok()?;
    let tids: Vec<String> = (0..usize::from(count))
        .take(POSTING_SHOWN)
        .map_while(|index| tid_at(bytes, start.checked_add(index * 6)?))
        .map(|(block, offset)| format!("({block},{offset})"))
        .collect();
    let more = if usize::from(count) > tids.len() {
        " …"
    } else {
        ""
    };
    anatomy.state = Some(format!("a posting list of {}", plural(count, "row")));
    let end = start.saturating_add(usize::from(count) * 6);
    let fault = end > bytes.len();
    let mut list = field(
        "posting list",
        start.min(bytes.len())..end.min(bytes.len()),
        format!("{}{more}", tids.join(" ")),
    );
    list.fault = fault.then(|| {
        format!(
            "it ends at {end}, beyond the tuple of {} bytes",
            bytes.len()
        )
    });
    fields.push(list);
    Some(start)
}

fn spgist(bytes: &[u8], fields: &mut Vec<Field>, anatomy: &mut ItemAnatomy) {
    let Some(word) = u32_at(bytes, 0) else { return };
    let state = ["live", "redirect", "dead", "placeholder"];
    let state = usize::try_from(word & 3)
        .ok()
        .and_then(|index| state.get(index))
        .copied()
        .unwrap_or_default();
    if let Some(field) = named(fields, "tupstate") {
        field
            .meaning
            .push(format!("{state}; in a leaf tuple {} bytes", word >> 2));
    }
    anatomy.state = Some(state.into());
    push_key(bytes, 6, bytes.len(), fields);
}

fn brin(bytes: &[u8], fields: &mut Vec<Field>, anatomy: &mut ItemAnatomy) {
    let (Some(block), Some(info)) = (u32_at(bytes, 0), bytes.get(4)) else {
        return;
    };
    let start = usize::from(info & 0x1F);
    if let Some(field) = named(fields, "bt_info") {
        field.meaning.push(format!("data at byte {start}"));
        for (bit, name) in [
            (0x20, "BRIN_EMPTY_RANGE_MASK"),
            (0x40, "BRIN_PLACEHOLDER_MASK"),
            (0x80, "BRIN_NULLS_MASK"),
        ] {
            field
                .meaning
                .extend((info & bit != 0).then(|| name.to_owned()));
        }
    }
    anatomy.state = Some(format!("summary of the range that begins at block {block}"));
    push_key(bytes, start.max(5), bytes.len(), fields);
}
