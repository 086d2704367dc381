//! A pointer to TOAST that contradicts the catalog, its row or itself.

use pgclinic_format::heap_tuple::HEAP_HASEXTERNAL;
use pgclinic_format::toast::{MAX_VALUE_BYTES, ToastPointer};
use pgclinic_format::{Page, Varlena};
use pgclinic_model::Rule;
use pgclinic_model::document::FileKind;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::heap::tuples::{LongValue, StoredTuple, columns_apply, tuples};

/// The rule.
pub static TOAST_POINTER: Rule = Rule::from_page(include_str!("../../rules/toast-pointer.md"));

/// See [`TOAST_POINTER`].
pub struct ToastPointerCheck;

impl PageCheck for ToastPointerCheck {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&TOAST_POINTER] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    /// In a TOAST relation any pointer is wrong, and has a rule of its own.
    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        if cx.fork.kind == FileKind::Toast {
            return;
        }
        for stored in tuples(page) {
            for long in stored.long_values(cx) {
                if let Varlena::External(pointer) = long.value
                    && let Some(message) = trouble(stored, pointer, cx)
                    && columns_apply(stored.tuple, cx.fork)
                {
                    out.add(tell(stored, &long, pointer, message));
                }
            }
        }
    }
}

fn trouble(stored: StoredTuple<'_>, pointer: ToastPointer, cx: &PageCx<'_>) -> Option<String> {
    home_trouble(pointer, cx)
        .or_else(|| size_trouble(pointer))
        .or_else(|| method_trouble(pointer, cx.fork.major()))
        .or_else(|| {
            let missing = !stored.tuple.has(HEAP_HASEXTERNAL);
            missing.then(|| "pointer to TOAST in a row without HEAP_HASEXTERNAL".into())
        })
}

fn home_trouble(pointer: ToastPointer, cx: &PageCx<'_>) -> Option<String> {
    let (found, own) = (pointer.va_toastrelid, cx.fork.relation?.toast);
    match own {
        _ if found == own && own != 0 => None,
        0 => Some(format!(
            "va_toastrelid {found} in a relation that has no TOAST relation"
        )),
        _ => Some(format!(
            "va_toastrelid {found} is not the TOAST relation {own}"
        )),
    }
}

fn size_trouble(pointer: ToastPointer) -> Option<String> {
    let (raw, stored) = (pointer.va_rawsize, pointer.va_extsize);
    if raw > MAX_VALUE_BYTES {
        return Some(format!("va_rawsize {raw} is more than any value has"));
    }
    let payload = raw.saturating_sub(4);
    let fits = (1..=payload).contains(&stored);
    (!fits).then(|| format!("va_extsize {stored} contradicts va_rawsize {raw}"))
}

fn method_trouble(pointer: ToastPointer, major: u16) -> Option<String> {
    let method = pointer.method;
    let known = if major >= 14 { 1 } else { 0 };
    if pointer.is_compressed() {
        (method > known).then(|| format!("compression method {method} does not exist"))
    } else {
        (method != 0).then(|| format!("compression method {method} of a value stored as it is"))
    }
}

fn tell(
    stored: StoredTuple<'_>,
    long: &LongValue<'_>,
    pointer: ToastPointer,
    message: String,
) -> Draft {
    stored
        .draft(&TOAST_POINTER, message, long.range.clone())
        .attribute(long.number)
        .fact("va_rawsize", pointer.va_rawsize)
        .fact("va_extsize", pointer.va_extsize)
        .fact("va_valueid", pointer.va_valueid)
        .fact("va_toastrelid", pointer.va_toastrelid)
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::{TOAST_OID, Trial};

    const RIGHT: ToastPointer = ToastPointer {
        va_rawsize: 10_004,
        va_extsize: 10_000,
        method: 0,
        va_valueid: 16400,
        va_toastrelid: TOAST_OID,
    };

    fn page(pointers: &[(ToastPointer, u16)]) -> Vec<u8> {
        let tuple = |pointer: ToastPointer, infomask| {
            let tuple = TupleBuilder::new(1).infomask(infomask);
            tuple.data(&[1, 18]).data(&pointer.to_bytes()).finish()
        };
        let page = PageBuilder::new(8192, &[]);
        let filled = pointers.iter().fold(page, |page, (pointer, infomask)| {
            page.item(&tuple(*pointer, *infomask))
        });
        filled.finish(0)
    }

    #[test]
    fn a_pointer_agrees_with_catalog_row_and_itself() {
        let flags = 0x0B06;
        let compressed = ToastPointer {
            va_extsize: 9_999,
            method: 1,
            ..RIGHT
        };
        let page = page(&[
            (RIGHT, flags),
            (compressed, flags),
            (
                ToastPointer {
                    va_toastrelid: 17,
                    ..RIGHT
                },
                flags,
            ),
            (
                ToastPointer {
                    va_extsize: 10_001,
                    ..RIGHT
                },
                flags,
            ),
            (
                ToastPointer {
                    va_rawsize: 1 << 30,
                    ..RIGHT
                },
                flags,
            ),
            (ToastPointer { method: 1, ..RIGHT }, flags),
            (
                ToastPointer {
                    method: 2,
                    ..compressed
                },
                flags,
            ),
            (RIGHT, 0x0B02),
        ]);
        let expected = [
            "3 toast-pointer: va_toastrelid 17 is not the TOAST relation 16390",
            "4 toast-pointer: va_extsize 10001 contradicts va_rawsize 10004",
            "5 toast-pointer: va_rawsize 1073741824 is more than any value has",
            "6 toast-pointer: compression method 1 of a value stored as it is",
            "7 toast-pointer: compression method 2 does not exist",
            "8 toast-pointer: pointer to TOAST in a row without HEAP_HASEXTERNAL",
        ];
        let trial = Trial::with_columns(&[(-1, 4)]);
        assert_eq!(trial.told(&ToastPointerCheck, &page), expected);
    }

    #[test]
    fn a_relation_without_toast_has_no_pointers() {
        let mut trial = Trial::with_columns(&[(-1, 4)]);
        trial.relation.toast = 0;
        let expected =
            "1 toast-pointer: va_toastrelid 16390 in a relation that has no TOAST relation";
        let told = trial.told(&ToastPointerCheck, &page(&[(RIGHT, 0x0B06)]));
        assert_eq!(told, [expected]);
    }
}
