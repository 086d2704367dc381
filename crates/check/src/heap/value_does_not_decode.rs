//! Values of live rows that nobody can read.

use std::borrow::Cow;
use std::ops::Range;

use pgclinic_cluster::Visibility;
use pgclinic_format::datum::Prober;
use pgclinic_format::{Attribute, HeapTuple, Page, Varlena, varlena};
use pgclinic_model::Rule;
use pgclinic_model::document::{Level, NotChecked};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::stored_values::{Fault, StoredValues};
use crate::heap::tuples::{StoredTuple, is_surely_live, tuples};

/// The most that a value may unpack to; more is not tried.
const UNPACKED_MAX: u32 = 64 << 20;

/// The rule.
pub static VALUE_DOES_NOT_DECODE: Rule =
    Rule::from_page(include_str!("../../rules/value-does-not-decode.md"));

/// The rule.
pub static TEXT_NOT_IN_ENCODING: Rule =
    Rule::from_page(include_str!("../../rules/text-not-in-encoding.md"));

/// See [`VALUE_DOES_NOT_DECODE`] and [`TEXT_NOT_IN_ENCODING`].
pub struct ValueDoesNotDecode;

impl PageCheck for ValueDoesNotDecode {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&VALUE_DOES_NOT_DECODE, &TEXT_NOT_IN_ENCODING] }
    }

    fn wants(&self) -> Wants {
        Wants {
            level: Level::Full,
            screened: false,
            ..Wants::HEAP
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let values = cx
            .fork
            .heap
            .values(|| StoredValues::of(cx.fork, cx.fork.heap.catalog()));
        if values.is_idle() {
            return;
        }
        if values.leaves_text_out() {
            let database = cx.fork.database.unwrap_or("a database without a name");
            out.not_checked(NotChecked {
                what: format!("text of {database}"),
                why: "its encoding is not one that is known here".into(),
                inherent: true,
            });
        }
        let columns = cx.fork.columns.unwrap_or_default();
        let odd = |stored: &StoredTuple<'_>| {
            !values.are_plainly_right(stored.tuple, columns) && is_live(stored.tuple, cx)
        };
        let mut rows = tuples(page).filter(odd).peekable();
        if rows.peek().is_none() {
            return;
        }
        let mut prober = values.prober();
        for stored in rows {
            try_row(stored, values, cx, &mut prober, out);
        }
    }
}

fn is_live(tuple: HeapTuple<'_>, cx: &PageCx<'_>) -> bool {
    is_surely_live(tuple, cx.fork)
        || cx
            .fork
            .cluster
            .is_some_and(|cluster| Visibility::new(cluster).is_visible(tuple))
}

fn try_row(
    stored: StoredTuple<'_>,
    values: &StoredValues,
    cx: &PageCx<'_>,
    prober: &mut Prober,
    out: &mut Findings,
) {
    let columns = cx.fork.columns.unwrap_or_default();
    let bytes = stored.tuple.bytes();
    let walk = stored.attributes(cx).into_iter().flatten().zip(columns);
    for (index, (attribute, column)) in walk.enumerate() {
        // A fault of the walk itself has rules of its own.
        let range = match attribute {
            Ok(Attribute::Value(range)) => range,
            Ok(_) => continue,
            Err(_) => break,
        };
        if values.is_anything(index) {
            continue;
        }
        let raw = bytes.get(range.clone()).unwrap_or_default();
        let value = match column.attlen {
            -1 => payload(raw),
            -2 => raw.split_last().map(|(_, text)| Ok(Cow::Borrowed(text))),
            _ => Some(Ok(Cow::Borrowed(raw))),
        };
        let Some(value) = value else { continue };
        let fault = match &value {
            Ok(value) => values.fault(index, value, prober),
            Err(what) => {
                tell(stored, index, range, &format!("the value {what}"), out);
                continue;
            }
        };
        if let Some(fault) = fault {
            told(stored, (index, range), fault, (values, cx), out);
        }
    }
}

/// The value without its header; nothing for one in TOAST, and for one too large to unpack here.
fn payload(raw: &[u8]) -> Option<Result<Cow<'_, [u8]>, &'static str>> {
    match varlena::parse(raw).ok()?.0 {
        Varlena::Compressed(packed) if packed.raw_size <= UNPACKED_MAX => Some(
            packed
                .unpack()
                .map(Cow::Owned)
                .map_err(|_| "does not decompress to the length that it promises"),
        ),
        value => value.as_it_is().map(|payload| Ok(Cow::Borrowed(payload))),
    }
}

fn tell(
    stored: StoredTuple<'_>,
    index: usize,
    range: Range<usize>,
    message: &str,
    out: &mut Findings,
) {
    let number = u16::try_from(index + 1).unwrap_or(u16::MAX);
    let draft = stored.draft(&VALUE_DOES_NOT_DECODE, message.into(), range);
    out.add(draft.attribute(number));
}

fn told(
    stored: StoredTuple<'_>,
    (index, range): (usize, Range<usize>),
    fault: Fault,
    (values, cx): (&StoredValues, &PageCx<'_>),
    out: &mut Findings,
) {
    let name = values.type_name(index);
    match fault {
        Fault::Undecodable(error) => {
            let message = format!("the bytes are no {name}: {error}");
            tell(stored, index, range, &message, out);
        }
        Fault::Encoding(at) => {
            let number = u16::try_from(index + 1).unwrap_or(u16::MAX);
            let message = format!("text is not valid UTF-8 from byte {at} on");
            let draft = stored.draft(&TEXT_NOT_IN_ENCODING, message, range);
            out.add(draft.attribute(number).fact("text_byte", at));
        }
        Fault::NotTried(why) => {
            let relation = cx.fork.relation.map(|relation| relation.qualified_name());
            out.not_checked(NotChecked {
                what: format!(
                    "values of type {name} in {}",
                    relation.unwrap_or_else(|| cx.fork.files.path(0))
                ),
                why: why.into(),
                inherent: true,
            });
        }
    }
}
