//! A tuple of an SP-GiST page that does not fit its size, its parts or its columns.
//!
//! Truth: `spgFormLeafTuple`, `spgFormInnerTuple` and `spgFormNodeTuple` in
//! `src/backend/access/spgist/spgutils.c`; labels of texts: `spgtextproc.c`.

use pgclinic_format::attribute::Attributes;
use pgclinic_format::spgist::{
    DEAD_TUPLE_BYTES, InnerTuple, LeafTuple, NULL_ROOT, ROOT, SpgistPage, State, Tuple,
};
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_format::{ColumnLayout, Page};
use pgclinic_model::Rule;
use pgclinic_model::plural;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::spgist::nodes::ValueKind;

/// The rule.
pub static SPGIST_TUPLE: Rule = Rule::from_page(include_str!("../../rules/spgist-tuple.md"));

/// See [`SPGIST_TUPLE`].
pub struct SpgistTuple;

impl PageCheck for SpgistTuple {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SPGIST_TUPLE] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let spgist = SpgistPage::parse(page).filter(|_| !page.is_new());
        let Some(spgist) = spgist.filter(|page| !page.is_meta()) else {
            return;
        };
        let known = IndexShape::of(cx);
        for (number, pointer) in page.line_pointers() {
            let Some(item) = page.item(pointer) else {
                continue;
            };
            let fault = match Tuple::parse(item) {
                None => Some(format!(
                    "an item of {} bytes is shorter than any tuple",
                    item.len()
                )),
                Some(tuple) => tuple_fault(spgist, tuple, &known),
            };
            if let Some(message) = fault {
                out.add(Draft::new(&SPGIST_TUPLE, message).item(number));
            }
        }
        if let Some(message) = root_fault(spgist, cx) {
            out.add(Draft::new(&SPGIST_TUPLE, message));
        }
    }
}

/// What is known of the operator class and the columns.
struct IndexShape<'a> {
    values: Option<ValueKind>,
    columns: Option<&'a [ColumnLayout]>,
    major: u16,
}

impl<'a> IndexShape<'a> {
    fn of(cx: &PageCx<'a>) -> IndexShape<'a> {
        let index = cx.fork.relation.and_then(|own| own.index.as_ref());
        let class = index.and_then(|index| index.classes.first());
        // What an extension keeps in the leaves need not be what the catalogs say.
        let built_in = class.is_some_and(|class| class.oid < 16384);
        IndexShape {
            values: class.and_then(ValueKind::of),
            columns: cx.fork.columns.filter(|_| built_in),
            major: cx.fork.major(),
        }
    }
}

fn root_fault(page: SpgistPage<'_>, cx: &PageCx<'_>) -> Option<String> {
    matches!(cx.block, ROOT | NULL_ROOT).then_some(())?;
    let count = page.page().line_pointer_count();
    if !page.is_leaf() && count != 1 {
        return Some(format!("a root with {count} inner tuples"));
    }
    let other = page
        .tuples()
        .find(|(_, tuple)| tuple.state() != State::Live)?;
    Some(format!(
        "tuple {} of the root is a {} tuple",
        other.0,
        other.1.state().name()
    ))
}

fn tuple_fault(page: SpgistPage<'_>, tuple: Tuple<'_>, known: &IndexShape<'_>) -> Option<String> {
    match (tuple.state(), page.is_leaf()) {
        (State::Live, true) => leaf_fault(page, tuple.leaf(), tuple.bytes(), known),
        (State::Live, false) => inner_fault(page, tuple.inner(), tuple.bytes().len(), known),
        (State::Dead, false) => Some("a dead tuple on an inner page".into()),
        (state, _) => {
            let (size, len) = (tuple.leaf_size(), tuple.bytes().len());
            let right = len == DEAD_TUPLE_BYTES && usize::try_from(size) == Ok(len);
            (!right).then(|| {
                format!(
                    "a {} tuple of {size} bytes in an item of {len}",
                    state.name()
                )
            })
        }
    }
}

fn leaf_fault(
    page: SpgistPage<'_>,
    leaf: LeafTuple<'_>,
    bytes: &[u8],
    known: &IndexShape<'_>,
) -> Option<String> {
    let (size, len) = (leaf.size(), bytes.len());
    if usize::try_from(size) != Ok(len) || !len.is_multiple_of(8) {
        return Some(format!("a leaf tuple of {size} bytes in an item of {len}"));
    }
    let row = leaf.row();
    if !(1..=2048).contains(&row.offset) || row.block == INVALID_BLOCK {
        return Some(format!("{row} is no row"));
    }
    let columns = known.columns?;
    let may_have_nulls = columns.len() > 1 && known.major >= 14;
    if leaf.t_info() & 0x4000 != 0 || leaf.has_null_bitmap() && !may_have_nulls {
        return Some(format!(
            "t_info {:#06x} has a bit that this index does not use",
            leaf.t_info()
        ));
    }
    if columns.len() == 1 && page.holds_nulls() {
        return (len != DEAD_TUPLE_BYTES).then(|| format!("a null of {len} bytes"));
    }
    walk_fault(leaf, bytes, columns)
}

fn walk_fault(leaf: LeafTuple<'_>, bytes: &[u8], columns: &[ColumnLayout]) -> Option<String> {
    let mut walk = Attributes::walk(bytes, leaf.null_bitmap(), DEAD_TUPLE_BYTES, columns);
    for attribute in walk.by_ref() {
        if let Err(fault) = attribute {
            return Some(format!(
                "the value of column {} at byte {} of the tuple cannot be read",
                fault.attribute, fault.at
            ));
        }
    }
    let end = walk.end();
    (end.next_multiple_of(8) != bytes.len()).then(|| {
        format!(
            "the values end at byte {end} of a tuple of {} bytes",
            bytes.len()
        )
    })
}

fn inner_fault(
    page: SpgistPage<'_>,
    inner: InnerTuple<'_>,
    len: usize,
    known: &IndexShape<'_>,
) -> Option<String> {
    let size = inner.size();
    if usize::from(size) != len {
        return Some(format!(
            "an inner tuple of {size} bytes in an item of {len}"
        ));
    }
    let prefix = inner.prefix_size();
    if !prefix.is_multiple_of(8) || prefix != 0 && inner.prefix().is_none() {
        return Some(format!(
            "a prefix of {prefix} bytes in an inner tuple of {len}"
        ));
    }
    let (said, mut nodes) = (usize::from(inner.node_count()), inner.nodes());
    let (mut count, mut labelled) = (0, 0);
    for node in nodes.by_ref() {
        count += 1;
        labelled += usize::from(node.label().is_some());
    }
    if said == 0 || count != said || !nodes.rest().is_empty() {
        let rest = nodes.rest().len();
        return Some(format!(
            "{said} by its header, {count} are there, {rest} bytes are left",
            said = plural(said, "node")
        ));
    }
    if labelled != 0 && labelled != count {
        return Some(format!("{labelled} of {count} nodes have a label"));
    }
    let texts = known.values == Some(ValueKind::Text) && !page.holds_nulls();
    texts.then(|| label_fault(inner)).flatten()
}

/// Labels of texts are bytes, -1 for the end of the text and -2 for a node in between; servers
/// before 9.5 wrote 0 for both.
fn label_fault(inner: InnerTuple<'_>) -> Option<String> {
    let mut before = None;
    for label in inner.nodes().map(|node| node.label_number()) {
        let Some(label) = label else {
            return Some("a node of a text without label".into());
        };
        if !(-2..=255).contains(&label) {
            return Some(format!("label {label} is no byte"));
        }
        let fits = before.is_none_or(|before| {
            if inner.all_the_same() {
                before == label
            } else {
                before < label
            }
        });
        if !fits {
            let before = before.unwrap_or_default();
            return Some(format!("label {label} comes after label {before}"));
        }
        before = Some(label);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Trial;
    use pgclinic_cluster::{Index, OpClass};
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};
    use pgclinic_format::index_page::AccessMethod;
    use pgclinic_format::spgist::{PAGE_ID, SPGIST_LEAF};

    fn said(flags: u16, tuple: &[u8]) -> Vec<String> {
        let mut special = [0; 8];
        put_u16(&mut special, 0, flags);
        put_u16(&mut special, 6, PAGE_ID);
        let page = PageBuilder::new(8192, &special).item(tuple).finish(0);
        let mut trial = Trial::index(AccessMethod::Spgist);
        trial.block = 5;
        trial.columns = Some(vec![ColumnLayout {
            attlen: -1,
            attalign: 4,
        }]);
        let mut index = Index::default();
        index.classes.push(OpClass {
            oid: 4000,
            name: "text_ops".into(),
            family: 0,
            method: 4000,
            input_type: 25,
            key_type: 0,
            equal_image: None,
        });
        trial.relation.index = Some(index);
        trial.told(&SpgistTuple, &page)
    }

    fn leaf(size: u32, first: u8) -> Vec<u8> {
        let mut tuple = vec![0; 24];
        put_u32(&mut tuple, 0, size << 2);
        put_u16(&mut tuple, 10, 1);
        tuple[16] = first;
        tuple
    }

    #[test]
    fn a_leaf_tuple_is_as_long_as_its_value() {
        assert!(said(SPGIST_LEAF, &leaf(24, 5 << 1 | 1)).is_empty());
        assert_eq!(
            said(SPGIST_LEAF, &leaf(16, 5 << 1 | 1)),
            ["1 spgist-tuple: a leaf tuple of 16 bytes in an item of 24"]
        );
        assert_eq!(
            said(SPGIST_LEAF, &leaf(24, 60 << 1 | 1)),
            ["1 spgist-tuple: the value of column 1 at byte 16 of the tuple cannot be read"]
        );
    }

    fn inner(labels: [u32; 2], same: u16) -> Vec<u8> {
        let mut tuple = vec![0; 40];
        put_u16(&mut tuple, 0, 2 << 3 | same);
        put_u16(&mut tuple, 4, 40);
        for (start, label) in [8, 24].into_iter().zip(labels) {
            put_u16(&mut tuple, start + 6, 16);
            put_u32(&mut tuple, start + 8, label);
        }
        tuple
    }

    #[test]
    fn labels_of_texts_rise() {
        assert!(said(0, &inner([0xFFFF, 97], 0)).is_empty());
        assert!(said(0, &inner([97, 97], 4)).is_empty());
        assert_eq!(
            said(0, &inner([98, 97], 0)),
            ["1 spgist-tuple: label 97 comes after label 98"]
        );
        assert_eq!(
            said(0, &inner([97, 300], 0)),
            ["1 spgist-tuple: label 300 is no byte"]
        );
    }

    #[test]
    fn nodes_fill_their_tuple() {
        let mut tuple = inner([97, 98], 0);
        put_u16(&mut tuple, 0, 1 << 3);
        assert_eq!(
            said(0, &tuple),
            ["1 spgist-tuple: 1 node by its header, 1 are there, 16 bytes are left"]
        );
    }
}
