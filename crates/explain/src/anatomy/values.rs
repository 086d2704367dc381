//! The values of a tuple by column, as the server would print them.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use pgclinic_cluster::Column;
use pgclinic_format::attribute::AttributeFaultKind;
use pgclinic_format::datum::{self, Limits, TypeInfo, Value};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::toast::ToastPointer;
use pgclinic_format::varlena::{self, Compressed, VarlenaFault};
use pgclinic_format::{Attribute, Attributes, ColumnLayout, HeapTuple, Varlena, sequence};
use pgclinic_model::document::ValueAnatomy;

use super::bytes::hex;
use super::cover::{Cover, Part};
use super::field::offsets;
use super::items::Item;
use super::{AnatomyCx, PageKind};

/// What a compressed value may unpack to, in bytes.
const UNPACKED_BYTES_MAX: usize = 1 << 20;
/// What all compressed values of a page may unpack to, in bytes.
const PAGE_UNPACKED_BYTES_MAX: usize = 64 << 20;
/// Values shown of a page.
const VALUES_MAX: usize = 1 << 16;
/// Bytes shown of a value that has no text.
const RAW_SHOWN: usize = 64;
/// Encoding 6 of a database.
const UTF8: i32 = 6;
/// `last_value`, `log_cnt`, `is_called`, with the OIDs of their types.
const SEQUENCE_COLUMNS: [(&str, u32); 3] = [("last_value", 20), ("log_cnt", 20), ("is_called", 16)];

/// What is known of one column.
struct KnownColumn {
    number: u16,
    name: String,
    layout: ColumnLayout,
    dropped: bool,
    type_info: Arc<TypeInfo>,
}

/// The columns of a page's relation, and how much may still be spent on the page's values: a
/// damaged page can have thousands of line pointers to one tuple.
pub(super) struct Columns {
    known: Vec<KnownColumn>,
    layouts: Vec<ColumnLayout>,
    values_left: Cell<usize>,
    unpack_left: Cell<usize>,
}

impl Columns {
    pub(super) fn new(cx: &AnatomyCx<'_>) -> Self {
        let known = known_columns(cx);
        Columns {
            layouts: known.iter().map(|column| column.layout).collect(),
            known,
            values_left: Cell::new(VALUES_MAX),
            unpack_left: Cell::new(PAGE_UNPACKED_BYTES_MAX),
        }
    }

    fn spend(&self, values: usize) -> bool {
        let left = self.values_left.get().checked_sub(values);
        self.values_left.set(left.unwrap_or(0));
        left.is_some()
    }

    fn unpack(&self, bytes: usize) -> bool {
        let left = self.unpack_left.get();
        let rest = left
            .checked_sub(bytes)
            .filter(|_| bytes <= UNPACKED_BYTES_MAX);
        self.unpack_left.set(rest.unwrap_or(left));
        rest.is_some()
    }
}

/// Values of all columns; none when the columns are unknown.
pub(super) fn anatomies(
    item: Item<'_>,
    tuple: HeapTuple<'_>,
    columns: &Columns,
    cx: &AnatomyCx<'_>,
    cover: &mut Cover,
) -> Vec<ValueAnatomy> {
    let mut values = Vec::new();
    if columns.known.is_empty() || !columns.spend(columns.known.len()) {
        return values;
    }
    paint_padding(item, tuple, columns, cover);
    let mut rest = columns.known.iter();
    for attribute in Attributes::new(tuple, &columns.layouts) {
        let Some(column) = rest.next() else { break };
        let mut value = blank(column);
        match attribute {
            Ok(Attribute::Null) => value.state = "null".into(),
            Ok(Attribute::Missing) => missing(&mut value),
            Ok(Attribute::Value(range)) => {
                paint_value(&mut value, item, &range, column, cover);
                let bytes = item.bytes.get(range).unwrap_or_default();
                Decoder {
                    column,
                    columns,
                    cx,
                }
                .fill(&mut value, bytes);
            }
            Err(fault) => {
                value.state = "undecodable".into();
                value.note = Some(format!(
                    "at byte {} of the tuple: {}",
                    fault.at,
                    fault_words(fault.kind)
                ));
            }
        }
        values.push(value);
    }
    values.extend(rest.map(|column| ValueAnatomy {
        state: "undecodable".into(),
        note: Some("a column before it does not end".into()),
        ..blank(column)
    }));
    values
}

/// When the walk ends well, what no column covers is padding.
fn paint_padding(item: Item<'_>, tuple: HeapTuple<'_>, columns: &Columns, cover: &mut Cover) {
    let sound = Attributes::new(tuple, &columns.layouts).all(|attribute| attribute.is_ok());
    if sound && usize::from(tuple.attribute_count()) <= columns.known.len() {
        let start = item.at.saturating_add(usize::from(tuple.t_hoff()));
        let end = item.at.saturating_add(item.bytes.len());
        cover.paint(
            start..end,
            Part::TupleData,
            format!("tuple {}: padding", item.number),
        );
    }
}

fn paint_value(
    value: &mut ValueAnatomy,
    item: Item<'_>,
    range: &Range<usize>,
    column: &KnownColumn,
    cover: &mut Cover,
) {
    let on_page = item.at.saturating_add(range.start)..item.at.saturating_add(range.end);
    value.bytes = Some(offsets(&on_page));
    cover.paint(
        on_page,
        Part::TupleData,
        format!("tuple {}: {}", item.number, column.name),
    );
}

fn known_columns(cx: &AnatomyCx<'_>) -> Vec<KnownColumn> {
    if cx.kind == PageKind::Method(AccessMethod::Sequence) {
        let columns = SEQUENCE_COLUMNS.iter().zip(sequence::COLUMNS).zip(1..);
        return columns
            .map(|(((name, oid), layout), number)| KnownColumn {
                number,
                name: (*name).into(),
                layout,
                dropped: false,
                type_info: (cx.types)(*oid),
            })
            .collect();
    }
    let known = |column: &Column| KnownColumn {
        number: column.attnum,
        name: column.name.clone(),
        layout: column.layout,
        dropped: column.dropped,
        type_info: (cx.types)(column.type_oid),
    };
    cx.columns.unwrap_or_default().iter().map(known).collect()
}

fn blank(column: &KnownColumn) -> ValueAnatomy {
    ValueAnatomy {
        number: column.number,
        name: Some(column.name.clone()),
        type_name: (!column.dropped).then(|| column.type_info.name.clone()),
        dropped: column.dropped,
        bytes: None,
        state: String::new(),
        value: None,
        note: None,
    }
}

fn missing(value: &mut ValueAnatomy) {
    value.state = "missing".into();
    value.note =
        Some("the column was added later: its default in the catalog counts, else null".into());
}

/// One value on its way to text.
struct Decoder<'a> {
    column: &'a KnownColumn,
    columns: &'a Columns,
    cx: &'a AnatomyCx<'a>,
}

impl Decoder<'_> {
    fn fill(&self, value: &mut ValueAnatomy, bytes: &[u8]) {
        let attlen = self.column.layout.attlen;
        if self.column.dropped {
            value.state = "value".into();
            value.value = Some(hex(bytes, RAW_SHOWN));
            value.note = Some("the bytes of a dropped column".into());
        } else if attlen == -1 {
            self.varlena(value, bytes);
        } else {
            // A C string is printed without its closing zero.
            let end = if attlen == -2 {
                bytes.len().saturating_sub(1)
            } else {
                bytes.len()
            };
            self.print(value, bytes.get(..end).unwrap_or_default());
        }
    }

    fn varlena(&self, value: &mut ValueAnatomy, bytes: &[u8]) {
        match varlena::parse(bytes) {
            Ok((Varlena::Short(payload) | Varlena::Plain(payload), _)) => {
                self.print(value, payload)
            }
            Ok((Varlena::Compressed(compressed), _)) => self.compressed(value, compressed),
            Ok((Varlena::External(pointer), _)) => external(value, pointer),
            Err(fault) => undecodable(value, bytes, varlena_words(fault)),
        }
    }

    fn compressed(&self, value: &mut ValueAnatomy, compressed: Compressed<'_>) {
        let Compressed {
            raw_size,
            method,
            data,
        } = compressed;
        let about = format!(
            "{}, {} bytes for {raw_size}",
            method_name(method),
            data.len()
        );
        let raw = usize::try_from(raw_size).unwrap_or(usize::MAX);
        if !self.columns.unpack(raw) {
            value.state = "compressed".into();
            value.note = Some(format!("{about}: too long to unpack here"));
            return;
        }
        match datum::decompress(method, data, raw) {
            Ok(payload) => {
                self.print(value, &payload);
                if value.state == "value" {
                    value.state = "compressed".into();
                }
                value.note = Some(
                    value
                        .note
                        .take()
                        .map_or(about.clone(), |note| format!("{about}; {note}")),
                );
            }
            Err(error) => undecodable(value, data, format!("{about}: {error}")),
        }
    }

    fn print(&self, value: &mut ValueAnatomy, payload: &[u8]) {
        let limits = Limits {
            output_bytes: UNPACKED_BYTES_MAX * 8,
            unpacked_bytes: UNPACKED_BYTES_MAX,
            major: self.cx.major,
            ..Limits::default()
        };
        match datum::to_value(&self.column.type_info, payload, limits) {
            Ok(Value::Text(text)) => {
                value.state = "value".into();
                cut(value, text, self.cx.value_bytes_max);
            }
            Ok(Value::Bytes(bytes)) => self.foreign_text(value, &bytes),
            Err(error) => undecodable(value, payload, error.to_string()),
        }
    }

    /// Text that is not UTF-8 is right in a database of another encoding.
    fn foreign_text(&self, value: &mut ValueAnatomy, bytes: &[u8]) {
        if self.cx.encoding == Some(UTF8) {
            return undecodable(value, bytes, "the text is not valid UTF-8".into());
        }
        value.state = "value".into();
        cut(
            value,
            bytes.escape_ascii().to_string(),
            self.cx.value_bytes_max,
        );
        let note = "shown with escapes: not UTF-8";
        value.note = Some(
            value
                .note
                .take()
                .map_or(note.into(), |cut| format!("{note}; {cut}")),
        );
    }
}

fn external(value: &mut ValueAnatomy, pointer: ToastPointer) {
    value.state = "external".into();
    let packed = if pointer.is_compressed() {
        method_name(pointer.method)
    } else {
        "not compressed"
    };
    value.note = Some(format!(
        "va_rawsize {}, va_extsize {}, {packed}, va_valueid {}, va_toastrelid {}",
        pointer.va_rawsize, pointer.va_extsize, pointer.va_valueid, pointer.va_toastrelid
    ));
}

fn method_name(method: u8) -> &'static str {
    match method {
        0 => "pglz",
        1 => "lz4",
        _ => "an unknown compression method",
    }
}

fn cut(value: &mut ValueAnatomy, mut text: String, limit: usize) {
    if text.len() > limit {
        let full = text.len();
        text.truncate(
            (0..=limit)
                .rev()
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(0),
        );
        value.note = Some(format!("the first {} of {full} bytes", text.len()));
    }
    value.value = Some(text);
}

fn undecodable(value: &mut ValueAnatomy, bytes: &[u8], why: String) {
    value.state = "undecodable".into();
    value.note = Some(format!("{why}; its bytes are {}", hex(bytes, RAW_SHOWN)));
}

fn fault_words(kind: AttributeFaultKind) -> String {
    match kind {
        AttributeFaultKind::BeyondTuple { end, len } => {
            format!("it ends at {end}, beyond the tuple of {len} bytes")
        }
        AttributeFaultKind::Varlena(fault) => varlena_words(fault),
        AttributeFaultKind::Unterminated => "a string without an end".into(),
    }
}

fn varlena_words(fault: VarlenaFault) -> String {
    match fault {
        VarlenaFault::Empty => "nothing is left of the tuple".into(),
        VarlenaFault::Beyond { claimed, available } => {
            format!("its header claims {claimed} bytes, {available} are left")
        }
        VarlenaFault::Short { claimed } => {
            format!("its header claims {claimed} bytes, less than a header has")
        }
        VarlenaFault::Tag { tag } => format!("a pointer with tag {tag}, which is never on disk"),
    }
}
