//! `jsonb`: null, strings, numbers, booleans, arrays, objects. Of two containers the one with fewer
//! entries is the lesser one (so that an empty array is below every scalar), then entry by entry.
//! Strings have the order of the database, which must be that of bytes here.
//!
//! Truth: `compareJsonbContainers` in `jsonb_util.c`.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::numeric;
use crate::datum::element::{Unpacking, varlena};
use crate::datum::jsonb::{Container, DEPTH_MAX, Entry, Shape};
use crate::datum::reader::Reader;

/// What to do after two entries were looked at.
enum Met<'a> {
    Ordered(Ordering),
    Containers(&'a [u8], &'a [u8]),
}

pub(super) fn compare(unpacking: &mut Unpacking, a: &[u8], b: &[u8]) -> Option<Ordering> {
    let mut open = Vec::new();
    let mut entered = Some((a, b));
    loop {
        if let Some((a, b)) = entered.take() {
            let pair = (Container::open(a).ok()?, Container::open(b).ok()?);
            let order = compare_headers(&pair.0, &pair.1);
            if order.is_ne() || open.len() >= DEPTH_MAX {
                return order.is_ne().then_some(order);
            }
            open.push(pair);
        }
        let Some((a, b)) = open.last_mut() else {
            return Some(Ordering::Equal);
        };
        if a.done == a.count {
            open.pop();
            continue;
        }
        match meet_next(unpacking, a, b)? {
            Met::Ordered(Ordering::Equal) => {}
            Met::Ordered(order) => return Some(order),
            Met::Containers(a, b) => entered = Some((a, b)),
        }
    }
}

fn compare_headers(a: &Container<'_>, b: &Container<'_>) -> Ordering {
    let is_object = |container: &Container<'_>| container.shape == Shape::Object;
    let is_nested = |container: &Container<'_>| container.shape != Shape::Scalar;
    is_object(a)
        .cmp(&is_object(b))
        .then(a.count.cmp(&b.count))
        .then(is_nested(a).cmp(&is_nested(b)))
}

/// Both have an entry left, and the same shape and count.
fn meet_next<'a>(
    unpacking: &mut Unpacking,
    a: &mut Container<'a>,
    b: &mut Container<'a>,
) -> Option<Met<'a>> {
    a.done += 1;
    b.done += 1;
    if a.shape == Shape::Object {
        let (left, right) = (a.keys.next().ok()?, b.keys.next().ok()?);
        if left.kind != 0 || right.kind != 0 {
            return None;
        }
        let order = left.bytes.cmp(right.bytes);
        if order.is_ne() {
            return Some(Met::Ordered(order));
        }
    }
    let (left, right) = (a.values.next().ok()?, b.values.next().ok()?);
    if left.kind == 5 && right.kind == 5 {
        return Some(Met::Containers(left.bytes, right.bytes));
    }
    compare_scalars(unpacking, &left, &right).map(Met::Ordered)
}

/// At most one of them is a container, which is above all scalars.
fn compare_scalars(unpacking: &mut Unpacking, a: &Entry<'_>, b: &Entry<'_>) -> Option<Ordering> {
    match (a.kind, b.kind) {
        (0, 0) => Some(a.bytes.cmp(b.bytes)),
        (1, 1) => numeric::compare(&number(unpacking, a)?, &number(unpacking, b)?),
        (a, b) => Some(rank(a)?.cmp(&rank(b)?)),
    }
}

fn number<'a>(unpacking: &mut Unpacking, entry: &Entry<'a>) -> Option<Cow<'a, [u8]>> {
    varlena(unpacking, &mut Reader::new(entry.bytes)).ok()
}

/// Null, string, number, false, true, container.
fn rank(kind: u32) -> Option<u8> {
    match kind {
        4 => Some(0),
        0 => Some(1),
        1 => Some(2),
        2 => Some(3),
        3 => Some(4),
        5 => Some(5),
        _ => None,
    }
}
