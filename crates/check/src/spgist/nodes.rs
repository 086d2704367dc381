//! What the nodes of built-in SP-GiST operator classes promise of the values below them.
//!
//! Truth: `src/backend/access/spgist/{spgquadtreeproc,spgkdtreeproc,spgtextproc}.c`,
//! `src/backend/utils/adt/geo_spgist.c`.

use pgclinic_cluster::OpClass;
use pgclinic_format::spgist::{InnerTuple, LeafTuple};
use pgclinic_format::varlena;

use crate::gist::keys::box_sides;

/// Points are compared with a tolerance of 1e-6; twice that is clear of it in every version.
const TOLERANCE: f64 = 2.0e-6;

/// How values are stored and divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueKind {
    /// Points in quadrants around a centroid.
    Quadrants,
    /// Points on two sides of a line, upright and level in turn.
    Sides,
    /// Boxes in sixteen parts around a centroid, also for polygons.
    Boxes,
    /// Texts, a byte a level.
    Text,
}

/// What is promised of all values below a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Promise {
    /// Nothing that is known here.
    Nothing,
    /// The text ended above.
    Ended,
    /// Each of up to four coordinates lies between the two numbers.
    Within([f64; 4], [f64; 4]),
}

/// Bytes of a stored promise.
const PROMISE_BYTES: usize = 64;

impl ValueKind {
    /// Of a built-in operator class.
    pub(crate) fn of(class: &OpClass) -> Option<ValueKind> {
        (class.oid < 16384).then_some(())?;
        Some(match class.name.as_str() {
            "quad_point_ops" => ValueKind::Quadrants,
            "kd_point_ops" => ValueKind::Sides,
            "box_ops" | "poly_ops" => ValueKind::Boxes,
            "text_ops" => ValueKind::Text,
            _ => return None,
        })
    }

    /// What is promised at the root.
    pub(crate) fn at_root(self) -> Promise {
        match self {
            ValueKind::Text => Promise::Nothing,
            _ => Promise::Within([f64::NEG_INFINITY; 4], [f64::INFINITY; 4]),
        }
    }

    /// What an inner tuple on `level` (0 at the root) promises for its node `number` (from 0),
    /// given what was promised of the tuple itself.
    pub(crate) fn narrow(
        self,
        above: Promise,
        inner: InnerTuple<'_>,
        number: u16,
        level: u32,
    ) -> Promise {
        let limits = match (above, self) {
            (Promise::Ended, _) => return Promise::Ended,
            (Promise::Nothing, ValueKind::Text) => {
                let node = inner.nodes().nth(usize::from(number));
                let ends = node.and_then(|node| node.label_number()) == Some(-1);
                return if ends {
                    Promise::Ended
                } else {
                    Promise::Nothing
                };
            }
            (Promise::Nothing, _) => return Promise::Nothing,
            (Promise::Within(least, most), _) => Limits { least, most },
        };
        if inner.all_the_same() {
            return match self {
                ValueKind::Sides => Promise::Nothing,
                _ => above,
            };
        }
        let narrower = match self {
            ValueKind::Quadrants => quadrant(limits, inner, number),
            ValueKind::Sides => side(limits, inner, number, level),
            ValueKind::Boxes => part(limits, inner, number),
            ValueKind::Text => None,
        };
        narrower.map_or(Promise::Nothing, |limits| {
            Promise::Within(limits.least, limits.most)
        })
    }

    /// Whether the value of a leaf tuple keeps the promise; nothing where that cannot be decided.
    pub(crate) fn keeps(self, promise: Promise, leaf: LeafTuple<'_>) -> Option<bool> {
        let data = leaf.data();
        match (promise, self) {
            (Promise::Nothing, _) => None,
            (Promise::Ended, _) => Some(varlena::parse(data).ok()?.0.as_it_is()?.is_empty()),
            (Promise::Within(least, most), ValueKind::Boxes) => {
                let [high_x, high_y, low_x, low_y] = box_sides(data.get(..32)?)?;
                within(&[low_x, high_x, low_y, high_y], &least, &most)
            }
            (Promise::Within(least, most), _) => within(&point(data)?, &least, &most),
        }
    }
}

impl Promise {
    /// Bytes for sorting aside; nothing for a promise of nothing.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        match self {
            Promise::Nothing => Vec::new(),
            Promise::Ended => vec![1],
            Promise::Within(least, most) => {
                let sides = least.into_iter().chain(most);
                sides.flat_map(f64::to_le_bytes).collect()
            }
        }
    }

    /// The same promise again.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Promise {
        let (sides, _) = bytes.as_chunks::<8>();
        match (bytes.len(), sides) {
            (PROMISE_BYTES, [a, b, c, d, e, f, g, h]) => Promise::Within(
                [*a, *b, *c, *d].map(f64::from_le_bytes),
                [*e, *f, *g, *h].map(f64::from_le_bytes),
            ),
            (1, _) => Promise::Ended,
            _ => Promise::Nothing,
        }
    }
}

#[derive(Clone, Copy)]
struct Limits {
    least: [f64; 4],
    most: [f64; 4],
}

impl Limits {
    /// Coordinates with and without the line; a line that is no finite number divides nothing.
    fn cut(mut self, coordinate: usize, line: f64, above: bool) -> Limits {
        let sides = if above {
            &mut self.least
        } else {
            &mut self.most
        };
        if let Some(side) = sides.get_mut(coordinate).filter(|_| line.is_finite()) {
            *side = if above {
                side.max(line)
            } else {
                side.min(line)
            };
        }
        self
    }
}

fn within(values: &[f64], least: &[f64; 4], most: &[f64; 4]) -> Option<bool> {
    let numbers = values.iter().all(|value| !value.is_nan());
    numbers.then(|| {
        let mut sides = values.iter().zip(least).zip(most);
        sides.all(|((value, least), most)| {
            *value >= least - tolerance(*least) && *value <= most + tolerance(*most)
        })
    })
}

/// Sums of large numbers are rounded, and were rounded in other ways by old versions.
fn tolerance(line: f64) -> f64 {
    if line.is_finite() {
        TOLERANCE + line.abs() * 4.0 * f64::EPSILON
    } else {
        0.0
    }
}

fn point(bytes: &[u8]) -> Option<[f64; 2]> {
    let (sides, _) = bytes.as_chunks::<8>();
    let [x, y, ..] = sides else { return None };
    Some([f64::from_le_bytes(*x), f64::from_le_bytes(*y)])
}

fn quadrant(limits: Limits, inner: InnerTuple<'_>, number: u16) -> Option<Limits> {
    let [x, y] = point(inner.prefix()?)?;
    (inner.node_count() == 4).then_some(())?;
    let (right, above) = match number {
        0 => (true, true),
        1 => (true, false),
        2 => (false, false),
        _ => (false, true),
    };
    Some(limits.cut(0, x, right).cut(1, y, above))
}

/// Odd levels divide by x, even ones by y.
fn side(limits: Limits, inner: InnerTuple<'_>, number: u16, level: u32) -> Option<Limits> {
    let line = f64::from_le_bytes(*inner.prefix()?.first_chunk()?);
    (inner.node_count() == 2).then_some(())?;
    let coordinate = usize::from(level.is_multiple_of(2));
    Some(limits.cut(coordinate, line, number == 1))
}

fn part(limits: Limits, inner: InnerTuple<'_>, number: u16) -> Option<Limits> {
    let [high_x, high_y, low_x, low_y] = box_sides(inner.prefix()?.get(..32)?)?;
    (inner.node_count() == 16).then_some(())?;
    let has = |bit: u16| number & bit != 0;
    let limits = limits.cut(0, low_x, has(8)).cut(1, high_x, has(4));
    Some(limits.cut(2, low_y, has(2)).cut(3, high_y, has(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_format::build::put_u16;
    use pgclinic_format::spgist::Tuple;

    fn inner(nodes: u16, prefix: &[f64]) -> Vec<u8> {
        let mut tuple = vec![0; 8];
        let bytes = u16::try_from(prefix.len() * 8).expect("short");
        put_u16(&mut tuple, 0, nodes << 3);
        put_u16(&mut tuple, 2, bytes);
        tuple.extend(prefix.iter().flat_map(|side| side.to_le_bytes()));
        for _ in 0..nodes {
            tuple.extend([0, 0, 0, 0, 0, 0, 8, 0x80]);
        }
        tuple
    }

    fn leaf(values: &[f64]) -> Vec<u8> {
        let mut tuple = vec![0; 16];
        tuple.extend(values.iter().flat_map(|side| side.to_le_bytes()));
        tuple
    }

    fn keeps(
        kind: ValueKind,
        inner: &[u8],
        number: u16,
        level: u32,
        value: &[f64],
    ) -> Option<bool> {
        let inner = Tuple::parse(inner).expect("a tuple").inner();
        let promise = kind.narrow(kind.at_root(), inner, number, level);
        assert_eq!(Promise::from_bytes(&promise.to_bytes()), promise);
        kind.keeps(promise, Tuple::parse(&leaf(value)).expect("a tuple").leaf())
    }

    #[test]
    fn points_lie_in_their_quadrant() {
        let quad = inner(4, &[10.0, 10.0]);
        let inside = |number, value: &[f64]| keeps(ValueKind::Quadrants, &quad, number, 0, value);
        assert_eq!(inside(0, &[11.0, 10.0]), Some(true));
        assert_eq!(inside(0, &[9.0, 11.0]), Some(false));
        assert_eq!(inside(1, &[11.0, 9.0]), Some(true));
        assert_eq!(inside(2, &[9.0, 9.0]), Some(true));
        assert_eq!(inside(3, &[9.0, 9.0]), Some(false));
        assert_eq!(inside(3, &[f64::NAN, 9.0]), None);
    }

    #[test]
    fn sides_alternate() {
        let line = inner(2, &[10.0]);
        let inside =
            |number, level, value: &[f64]| keeps(ValueKind::Sides, &line, number, level, value);
        assert_eq!(inside(0, 0, &[99.0, 9.0]), Some(true));
        assert_eq!(inside(1, 0, &[99.0, 9.0]), Some(false));
        assert_eq!(inside(1, 1, &[99.0, 9.0]), Some(true));
    }

    #[test]
    fn boxes_lie_in_their_part() {
        let parts = inner(16, &[20.0, 20.0, 10.0, 10.0]);
        let inside = |number, value: &[f64]| keeps(ValueKind::Boxes, &parts, number, 0, value);
        let high_everywhere = [30.0, 30.0, 15.0, 15.0];
        assert_eq!(inside(15, &high_everywhere), Some(true));
        assert_eq!(inside(7, &high_everywhere), Some(false));
        assert_eq!(inside(0, &[20.0, 20.0, 10.0, 10.0]), Some(true));
    }

    #[test]
    fn a_text_ends_under_the_label_for_its_end() {
        let mut tuple = inner(1, &[]);
        tuple.truncate(8);
        tuple.extend([0, 0, 0, 0, 0, 0, 16, 0]);
        tuple.extend((-1_i64).to_le_bytes());
        let inner = Tuple::parse(&tuple).expect("a tuple").inner();
        let promise = ValueKind::Text.narrow(Promise::Nothing, inner, 0, 0);
        assert_eq!(promise, Promise::Ended);
        let text = |first: u8| {
            let mut leaf = vec![0; 16];
            leaf.extend([first, b'x', 0, 0, 0, 0, 0, 0]);
            ValueKind::Text.keeps(promise, Tuple::parse(&leaf).expect("a tuple").leaf())
        };
        assert_eq!(text(1 << 1 | 1), Some(true));
        assert_eq!(text(2 << 1 | 1), Some(false));
    }
}
