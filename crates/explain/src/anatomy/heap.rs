//! The header of a heap tuple, field by field, and what became of the row.

use pgclinic_cluster::{Cluster, MemberStatus, RowState, Visibility, XactStatus};
use pgclinic_format::flags::{T_INFOMASK, T_INFOMASK2};
use pgclinic_format::heap_tuple::{
    HEADER_BYTES, HEAP_HASNULL, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI,
    HEAP_XMIN_COMMITTED, HEAP_XMIN_INVALID, INFOMASK2_UNUSED, MOVED_PARTITIONS_OFFSET,
    SPEC_TOKEN_OFFSET,
};
use pgclinic_format::{HeapTuple, MultiXactId, Xid};
use pgclinic_model::document::{Field, ItemAnatomy};
use pgclinic_model::plural;

use super::bytes::hex;
use super::cover::{Cover, Part};
use super::field::{Entry, Show, field, named, paint, read};
use super::items::Item;
use super::values::Columns;
use super::{AnatomyCx, values};

/// Members of a multixact that are listed.
const MEMBERS_SHOWN: usize = 16;
/// Bytes of the bitmap that are shown; 1600 columns need 200.
const BITMAP_SHOWN: usize = 256;

const ENTRIES: &[Entry] = &[
    ("t_xmin", 0, Show::U32),
    ("t_xmax", 4, Show::U32),
    ("t_field3", 8, Show::U32),
    ("t_ctid", 12, Show::Tid),
    ("t_infomask2", 18, Show::Flags(T_INFOMASK2)),
    ("t_infomask", 20, Show::Flags(T_INFOMASK)),
    ("t_hoff", 22, Show::U8),
];

/// Header, state and values of one tuple.
pub(super) fn fill(
    item: Item<'_>,
    columns: &Columns,
    cx: &AnatomyCx<'_>,
    anatomy: &mut ItemAnatomy,
    cover: &mut Cover,
) {
    let number = item.number;
    let end = item.at.saturating_add(item.bytes.len());
    cover.paint(
        item.at..end,
        Part::TupleData,
        format!("tuple {number}: data"),
    );
    let Some(tuple) = HeapTuple::parse(item.bytes) else {
        let words = format!(
            "{} bytes are too few for a tuple header of {HEADER_BYTES}",
            item.bytes.len()
        );
        anatomy.fault.get_or_insert(words);
        return;
    };
    let data = item.at.saturating_add(usize::from(tuple.t_hoff())).min(end);
    cover.paint(
        item.at..data,
        Part::TupleHeader,
        format!("tuple {number}: padding"),
    );
    anatomy.header = header(item, tuple, cx);
    paint(
        &anatomy.header,
        Part::TupleHeader,
        &format!("tuple {number}: "),
        cover,
    );
    anatomy.state = Some(state(tuple, cx.cluster));
    anatomy.values = values::anatomies(item, tuple, columns, cx, cover);
}

/// Without a cluster only what stands on the page counts.
fn state(tuple: HeapTuple<'_>, cluster: Option<&Cluster>) -> String {
    let visibility = cluster.map_or_else(Visibility::by_hint_bits, Visibility::new);
    let state = visibility.state(tuple);
    match (cluster, state) {
        (Some(_), _) | (None, RowState::Undecided(_)) => state.words().to_owned(),
        (None, _) => format!("{} by its hint bits", state.words()),
    }
}

fn header(item: Item<'_>, tuple: HeapTuple<'_>, cx: &AnatomyCx<'_>) -> Vec<Field> {
    let mut fields = read(item.bytes, 0, ENTRIES);
    let own = format!("({},{})", cx.block, item.number);
    mean(&mut fields, "t_xmin", xmin_meaning(tuple, cx));
    mean(&mut fields, "t_xmax", xmax_meaning(tuple, cx));
    mean(&mut fields, "t_ctid", vec![ctid_meaning(tuple, &own)]);
    if let Some(field) = named(&mut fields, "t_infomask2") {
        field
            .meaning
            .insert(0, format!("{} attributes", tuple.attribute_count()));
        let unused = tuple.t_infomask2() & INFOMASK2_UNUSED;
        field.fault = (unused != 0).then(|| format!("bits 0x{unused:04x} mean nothing"));
        let columns = cx.columns.map_or(usize::MAX, <[_]>::len);
        if usize::from(tuple.attribute_count()) > columns {
            field.fault = Some(format!(
                "the relation has {columns}",
                columns = plural(columns, "column")
            ));
        }
    }
    if let Some(field) = named(&mut fields, "t_hoff") {
        let (found, expected) = (usize::from(tuple.t_hoff()), tuple.expected_hoff());
        field.fault =
            (found != expected).then(|| format!("attribute count and bitmap ask for {expected}"));
    }
    if tuple.has(HEAP_HASNULL) {
        fields.push(bitmap(item, tuple));
    }
    for field in &mut fields {
        let base = u64::try_from(item.at).unwrap_or(u64::MAX);
        field.bytes = field.bytes.map(|at| at.saturating_add(base));
    }
    fields
}

fn bitmap(item: Item<'_>, tuple: HeapTuple<'_>) -> Field {
    let len = usize::from(tuple.attribute_count()).div_ceil(8);
    let end = (HEADER_BYTES + len).min(item.bytes.len());
    let bits = item.bytes.get(HEADER_BYTES..end).unwrap_or_default();
    let mut field = field("t_bits", HEADER_BYTES..end, hex(bits, BITMAP_SHOWN));
    field
        .meaning
        .push("a set bit is a value, a clear one null".into());
    field.fault = (bits.len() < len).then(|| format!("{len} bytes are beyond the tuple"));
    field
}

fn mean(fields: &mut [Field], name: &str, meaning: Vec<String>) {
    if let Some(field) = named(fields, name) {
        field.meaning = meaning;
    }
}

fn xmin_meaning(tuple: HeapTuple<'_>, cx: &AnatomyCx<'_>) -> Vec<String> {
    let word = match () {
        () if tuple.xmin_is_frozen() => "frozen: visible to all".to_owned(),
        () if tuple.t_xmin() == Xid::INVALID => {
            "no transaction: an insertion that was given up".to_owned()
        }
        () if tuple.has(HEAP_XMIN_COMMITTED) => COMMITTED_BY_HINT.to_owned(),
        () if tuple.has(HEAP_XMIN_INVALID) => "aborted (hint bit)".to_owned(),
        () => status(tuple.t_xmin(), cx).to_owned(),
    };
    vec![word]
}

fn xmax_meaning(tuple: HeapTuple<'_>, cx: &AnatomyCx<'_>) -> Vec<String> {
    if tuple.t_xmax() == Xid::INVALID {
        return vec!["nobody deleted or locked it".into()];
    }
    let mut words = Vec::new();
    if tuple.has(HEAP_XMAX_INVALID) {
        words.push("counts for nothing".into());
    }
    if tuple.xmax_is_locked_only() {
        words.push("only locked the row".into());
    }
    if tuple.has(HEAP_XMAX_IS_MULTI) {
        words.push(members(tuple, cx));
    } else if words.is_empty() {
        let is_committed = tuple.has(HEAP_XMAX_COMMITTED);
        let word = if is_committed {
            COMMITTED_BY_HINT
        } else {
            status(tuple.t_xmax(), cx)
        };
        words.push(word.to_owned());
    }
    words
}

fn members(tuple: HeapTuple<'_>, cx: &AnatomyCx<'_>) -> String {
    if tuple.xmax_is_from_before_93() {
        return "a multixact from before 9.3".into();
    }
    let multi = MultiXactId(tuple.t_xmax().0);
    let Some(members) = cx
        .cluster
        .and_then(|cluster| cluster.multixacts.members(multi))
    else {
        return "a multixact whose members are unknown".into();
    };
    let words = members.iter().take(MEMBERS_SHOWN).map(|member| {
        let what = match member.status {
            MemberStatus::Lock => "locked",
            MemberStatus::NoKeyUpdate => "updated",
            MemberStatus::Update => "updated a key or deleted",
        };
        format!("{} {what}", member.xid)
    });
    let more = if members.len() > MEMBERS_SHOWN {
        ", …"
    } else {
        ""
    };
    format!(
        "a multixact of {}: {}{more}",
        members.len(),
        words.collect::<Vec<_>>().join(", ")
    )
}

const COMMITTED_BY_HINT: &str = "committed (hint bit)";

/// What `pg_xact` says.
fn status(xid: Xid, cx: &AnatomyCx<'_>) -> &'static str {
    match cx
        .cluster
        .and_then(|cluster| cluster.transactions.status(xid))
    {
        Some(XactStatus::Committed) => "committed",
        Some(XactStatus::Aborted) => "aborted",
        Some(XactStatus::InProgress) => "never committed",
        Some(XactStatus::SubCommitted) => "a subtransaction whose parent never committed",
        None => "unknown",
    }
}

fn ctid_meaning(tuple: HeapTuple<'_>, own: &str) -> String {
    let ctid = tuple.t_ctid();
    match ctid.offset {
        SPEC_TOKEN_OFFSET => format!("token {} of a speculative insertion", ctid.block),
        MOVED_PARTITIONS_OFFSET => "the row moved to another partition".into(),
        0 => "names no line pointer".into(),
        _ if ctid.to_string() == own => "its own place: no newer version".into(),
        _ => format!("the next version stands at {ctid}"),
    }
}
