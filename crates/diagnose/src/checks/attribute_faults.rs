//! The walk over a row's attributes comes to a place that cannot be.

use pgclinic_format::attribute::AttributeFaultKind;
use pgclinic_format::varlena::{VARTAG_ONDISK, VarlenaFault};
use pgclinic_format::{AttributeFault, Page};
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::tuples::{StoredTuple, columns_apply, tuples};

/// The rule.
pub static ATTRIBUTE_BEYOND_TUPLE: Rule = Rule {
    name: "attribute-beyond-tuple",
    severity: Severity::Damage,
    summary: "a value begins or ends behind the end of its row",
    explain: "\
Values stand in a row one after the other, by the types of the columns. Walking over this row, a value of \
fixed width ends behind the last byte of the row, or a C string has no end.

The server does not test where a row ends while it takes it apart, so it reads on into the next row: the \
answer has values from elsewhere, or the server stops with `invalid memory alloc request size`, or \
crashes. `amcheck` says `attribute with length … ends at offset … beyond total tuple length`.

The value that is told here is often innocent: what is wrong may be a length further to the left, the \
number of attributes, a bit in the bitmap of nulls, or the length in the line pointer. If every row of the \
page has it, the page belongs to another table.

Columns to the left of this one can mostly be rescued. Copy the cluster first, then take the page from a \
backup or a standby whose copy is sound; or dump the table without the row, by its `ctid`.",
};

/// The rule.
pub static VARLENA_LENGTH: Rule = Rule {
    name: "varlena-length",
    severity: Severity::Damage,
    summary: "the length in front of a value is impossible",
    explain: "\
Values of variable length, such as `text`, `numeric` and `jsonb`, carry their length in front, in one byte \
or in four. The length here is more than the row has bytes left, or less than the length field itself \
needs.

The server believes it. It tries to allocate that much and stops with `ERROR:  invalid memory alloc \
request size …`, or copies that much and shows other rows' bytes, or crashes. Every query and dump that \
touches this column of the row fails; those that do not need the column pass.

The length was overwritten, or something to the left of it shifted all that follows: a wrong bitmap of \
nulls, a wrong `t_hoff`, a page of another table. Text is often still readable behind the wrong length.

Copy the cluster first. Columns to the left can be selected by `ctid`. Take the page from a backup or a \
standby whose copy is sound; if there is none, set the column of this row to a value known from elsewhere.",
};

/// The rule.
pub static VARLENA_TAG: Rule = Rule {
    name: "varlena-tag",
    severity: Severity::Damage,
    summary: "a value begins like a pointer, of a kind that is never stored",
    explain: "\
A value whose first byte is 1 is a pointer, and the byte behind it says to what. On disk only one kind \
exists, tag 18: the value is in the TOAST relation. The other kinds point into the memory of a running \
server and never reach a file. This value has one of those, or a tag that does not exist at all.

The server does not expect it. It may take bytes of the row for an address in memory and crash, which \
takes all sessions with it and sends the cluster into recovery, each time the row is read. `amcheck` says \
`toasted attribute has unexpected TOAST tag …`.

The two bytes were overwritten, or what stands to the left (the bitmap of nulls, `t_hoff`, a length) \
shifted the walk, so that it looks into the middle of another value.

Keep queries, and autovacuum with ANALYZE, away from the table. Copy the cluster, then take the page from a \
backup or a standby whose copy is sound.",
};

/// See [`ATTRIBUTE_BEYOND_TUPLE`], [`VARLENA_LENGTH`] and [`VARLENA_TAG`].
pub struct AttributeFaults;

impl PageCheck for AttributeFaults {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&ATTRIBUTE_BEYOND_TUPLE, &VARLENA_LENGTH, &VARLENA_TAG] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        for stored in tuples(page) {
            let walk = stored.attributes(cx).into_iter().flatten();
            let fault = walk.filter_map(Result::err).next();
            if let Some(fault) = fault.filter(|_| columns_apply(stored.tuple, cx.fork)) {
                out.add(tell(stored, fault));
            }
        }
    }
}

fn tell(stored: StoredTuple<'_>, fault: AttributeFault) -> Draft {
    let (rule, message): (_, String) = match fault.kind {
        AttributeFaultKind::BeyondTuple { end, len } => (
            &ATTRIBUTE_BEYOND_TUPLE,
            format!("value ends at {end}, beyond the {len} bytes of the tuple"),
        ),
        AttributeFaultKind::Unterminated => (
            &ATTRIBUTE_BEYOND_TUPLE,
            format!("string from {} has no end in the tuple", fault.at),
        ),
        AttributeFaultKind::Varlena(VarlenaFault::Empty) => (
            &ATTRIBUTE_BEYOND_TUPLE,
            format!("value begins at {}, the end of the tuple", fault.at),
        ),
        AttributeFaultKind::Varlena(VarlenaFault::Beyond { claimed, available }) => (
            &VARLENA_LENGTH,
            format!("value claims {claimed} bytes where the tuple has {available} left"),
        ),
        AttributeFaultKind::Varlena(VarlenaFault::Short { claimed }) => (
            &VARLENA_LENGTH,
            format!("value claims {claimed} bytes, less than its own header"),
        ),
        AttributeFaultKind::Varlena(VarlenaFault::Tag { tag }) => (
            &VARLENA_TAG,
            format!("pointer has tag {tag}, and only {VARTAG_ONDISK} is ever stored"),
        ),
    };
    let at = fault.at.min(stored.tuple.bytes().len());
    stored
        .draft(rule, message, at..stored.tuple.bytes().len())
        .attribute(fault.attribute)
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};
    use pgclinic_format::heap_tuple::HEAP_XMIN_INVALID;

    use super::*;
    use crate::trial::Trial;

    fn told(columns: &[(i16, u8)], tuples: &[TupleBuilder]) -> Vec<String> {
        let page = tuples
            .iter()
            .fold(PageBuilder::new(8192, &[]), |page, tuple| {
                page.item(&tuple.clone().finish())
            });
        Trial::with_columns(columns).told(&AttributeFaults, &page.finish(0))
    }

    #[test]
    fn each_fault_has_its_rule() {
        let text = [(-1, 4), (4, 4)];
        let tuple = |data: &[u8]| TupleBuilder::new(2).data(data);
        let expected = [
            "2 attribute-beyond-tuple: value ends at 32, beyond the 30 bytes of the tuple",
            "3 varlena-length: value claims 120 bytes where the tuple has 2 left",
            "4 varlena-length: value claims 2 bytes, less than its own header",
            "5 varlena-tag: pointer has tag 3, and only 18 is ever stored",
            "6 attribute-beyond-tuple: value ends at 25, beyond the 24 bytes of the tuple",
        ];
        let tuples = [
            tuple(&[7, b'a', b'b', 0, 1, 0, 0, 0]),
            tuple(&[7, b'a', b'b', 0, 1, 0]),
            tuple(&[0xF1, b'a']),
            tuple(&[8, 0, 0, 0, 1, 0, 0, 0]),
            tuple(&[1, 3, 0, 0, 1, 0, 0, 0]),
            tuple(&[]),
        ];
        assert_eq!(told(&text, &tuples), expected);
    }

    #[test]
    fn a_string_needs_its_end() {
        let tuples = [TupleBuilder::new(1).data(b"abc")];
        let expected = "1 attribute-beyond-tuple: string from 24 has no end in the tuple";
        assert_eq!(told(&[(-2, 1)], &tuples), [expected]);
    }

    #[test]
    fn rows_of_a_rolled_back_transaction_may_have_had_other_columns() {
        let aborted = TupleBuilder::new(1).infomask(HEAP_XMIN_INVALID);
        let other_shape = TupleBuilder::new(2).data(&[1; 8]);
        assert!(told(&[(8, 8)], &[aborted.data(&[1; 2]), other_shape]).is_empty());
    }
}
