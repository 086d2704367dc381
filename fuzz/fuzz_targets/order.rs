//! Any bytes as two values of every operator class: one byte chooses the class, two say where the
//! first value ends. Turned round, two values compare the other way; a value is equal to itself.
#![no_main]

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use pgclinic_format::datum::{Field, TypeInfo, TypeKind, builtin};
use pgclinic_format::order::{Facts, Order, OrderKey, RangeFacts, TextOrder, order_of};

/// Family, input type and type of the column.
const CLASSES: [(u32, u32, u32); 40] = [
    (424, 16, 16),
    (429, 18, 18),
    (1976, 21, 21),
    (1976, 23, 23),
    (1976, 20, 20),
    (434, 1082, 1082),
    (1989, 26, 26),
    (5067, 5069, 5069),
    (1970, 700, 700),
    (1970, 701, 701),
    (2968, 2950, 2950),
    (1984, 829, 829),
    (3371, 774, 774),
    (2789, 27, 27),
    (1982, 1186, 1186),
    (2000, 1266, 1266),
    (428, 17, 17),
    (2097, 1042, 1042),
    (1994, 19, 19),
    (1988, 1700, 1700),
    (1974, 869, 869),
    (423, 1560, 1560),
    (2002, 1562, 1562),
    (1991, 30, 30),
    (4033, 3802, 3802),
    (3626, 3614, 3614),
    (3683, 3615, 3615),
    (397, 2277, 1007),
    (397, 2277, 1009),
    (397, 2277, 1231),
    (397, 2277, 3907),
    (397, 2277, 22),
    (3901, 3831, 3904),
    (3901, 3831, 3906),
    (4199, 4537, 4451),
    (4199, 4537, 4532),
    (2994, 2249, 0),
    (3194, 2249, 0),
    (3522, 3500, 1),
    (1994, 25, 25),
];

struct Bytewise;

impl Facts for Bytewise {
    fn collation(&self, _collation: u32) -> TextOrder {
        TextOrder::Bytes
    }

    fn range(&self, _range: u32) -> Option<RangeFacts> {
        None
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [class, low, high, values @ ..] = bytes else {
        return;
    };
    let orders = orders();
    let order = &orders[usize::from(*class) % orders.len()];
    let end = usize::from(u16::from_le_bytes([*low, *high])).min(values.len());
    let (a, b) = values.split_at(end);
    let there = order.compare(a, b);
    assert_eq!(there.map(Ordering::reverse), order.compare(b, a));
    assert!(order.compare(a, a).is_none_or(Ordering::is_eq));
});

fn orders() -> &'static [Order] {
    static ORDERS: OnceLock<Vec<Order>> = OnceLock::new();
    ORDERS.get_or_init(|| CLASSES.iter().map(order).collect())
}

fn order(&(family, input_type, ty): &(u32, u32, u32)) -> Order {
    let ty = match ty {
        0 => row(),
        1 => kind(TypeKind::Enum(vec![
            (3, "a".into()),
            (2, "b".into()),
            (8, "c".into()),
        ])),
        oid => builtin(oid).expect("a built-in type"),
    };
    let key = OrderKey {
        family,
        input_type,
        ty: &ty,
        collation: 950,
        facts: &Bytewise,
    };
    order_of(&key).expect("a built-in operator class")
}

fn row() -> TypeInfo {
    let fields = [25, 23, 1009, 3802, 3908, 2950].map(|oid| Field {
        name: "f".to_owned(),
        ty: Arc::new(builtin(oid).expect("a built-in type")),
        collation: 950,
        dropped: false,
    });
    kind(TypeKind::Composite(fields.to_vec()))
}

fn kind(kind: TypeKind) -> TypeInfo {
    TypeInfo {
        oid: 20_000,
        name: "own".to_owned(),
        len: -1,
        byval: false,
        align: 8,
        kind,
    }
}
