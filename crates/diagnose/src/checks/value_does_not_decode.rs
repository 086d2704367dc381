//! Values of live rows that nobody can read.

use std::borrow::Cow;
use std::ops::Range;

use pgclinic_cluster::Visibility;
use pgclinic_format::datum::Prober;
use pgclinic_format::{Attribute, HeapTuple, Page, Varlena, varlena};

use crate::check::{PageCheck, PageCx, Wants};
use crate::document::{Level, NotChecked};
use crate::findings::Findings;
use crate::rule::{Rule, Severity};
use crate::stored_values::{Fault, StoredValues};
use crate::tuples::{StoredTuple, is_surely_live, tuples};

/// The most that a value may unpack to; more is not tried.
const UNPACKED_MAX: u32 = 64 << 20;

/// The rule.
pub static VALUE_DOES_NOT_DECODE: Rule = Rule {
    name: "value-does-not-decode",
    severity: Severity::Damage,
    summary: "the bytes of a value are no value of its type",
    explain: "\
Each type has a form in which its values are stored: a numeric has digits below 10000, an array a count of \
dimensions that fits its elements, a `jsonb` offsets that stay inside it. The row and the lengths in it are \
sound, but the bytes of this value are not a value of the column's type.

What the server does depends on the type. It shows nonsense, stops with an error such as `timestamp out of \
range`, `cache lookup failed for type …` or `invalid memory alloc request size …`, or reads beyond the value \
and crashes. A dump fails at this row or carries the nonsense along, and then fails to load.

These bytes were overwritten. Data checksums tell of it only if they are on and the bytes changed below the \
server; a value that was wrong already when it was written comes from faulty memory or from an extension.

Copy the cluster first. The other columns of the row can be read. Take the page from a backup or a standby \
whose copy is sound, or set the column of this row to a value that is known from elsewhere.",
};

/// The rule.
pub static TEXT_NOT_IN_ENCODING: Rule = Rule {
    name: "text-not-in-encoding",
    severity: Severity::Damage,
    summary: "text is not valid in the encoding of its database",
    explain: "\
A database has one encoding, and the server tests all text that comes in. This value holds bytes that are \
no characters in it.

A client that uses the same encoding gets the bytes as they are. Whoever needs characters stops with `ERROR:  \
invalid byte sequence for encoding \"UTF8\": …`: a client with another encoding, functions that cut or fold \
text, `jsonb` and `xml`. A dump is written without complaint and cannot be loaded.

If the bytes look random they were overwritten, and data checksums that are off did not tell. If they look \
like text in another encoding (single bytes above 0x7F, as in LATIN1), the data was brought in past the \
tests: by an old version, by a function in C, or by a change of `pg_database.encoding`.

Copy the cluster first. If the value was overwritten take the page from a backup or a standby; if it is text \
of another encoding, `convert_from(convert_to(…), 'LATIN1')` on the bytes sets it right.",
};

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
        let values = cx.fork.heap.values(|| StoredValues::of(cx.fork));
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
