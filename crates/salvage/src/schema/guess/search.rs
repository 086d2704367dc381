//! Layouts that fit all rows, found column by column. Those that end alike in every row share what
//! comes next, so that only different ends are gone on with; of these the likelier ones are kept.

use std::collections::BTreeMap;

use pgclinic_format::HeapTuple;

use super::kinds::{GuessedType, Kinds};

/// Different ends that are kept, and beginnings for each.
const ENDS_KEPT: usize = 60;
const ALIKE_KEPT: usize = 24;
/// Of so many rows one may contradict: it may be damaged.
const ROWS_PER_MISFIT: usize = 50;
/// So many values are held to a type before it is given up, and what they then come to on average.
const VALUES_TRIED: usize = 16;
const HOPELESS: f64 = -6.0;

/// Kinds of all columns up to some number.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) kinds: Vec<GuessedType>,
    /// Higher is likelier.
    pub(super) score: f64,
}

/// Where the next column begins in each row; `None` in rows that contradict.
type Ends = Vec<Option<usize>>;

/// All layouts that fit, the likeliest first.
pub(super) fn ways(rows: &[HeapTuple<'_>], columns: usize, kinds: &mut Kinds) -> Vec<Way> {
    let all = kinds.all().to_vec();
    let begin: Ends = rows
        .iter()
        .map(|row| Some(usize::from(row.t_hoff())))
        .collect();
    let nothing = Way {
        kinds: Vec::new(),
        score: 0.0,
    };
    let mut open = BTreeMap::from([(begin, vec![nothing])]);
    for column in 0..columns {
        let mut next: BTreeMap<Ends, Vec<Way>> = BTreeMap::new();
        for (ends, ways) in &open {
            for kind in &all {
                let Some((ends, score)) = step(rows, ends, *kind, kinds, column, columns) else {
                    continue;
                };
                let longer = ways.iter().map(|way| way.with(*kind, score));
                next.entry(ends).or_default().extend(longer);
            }
        }
        open = kept(next);
    }
    let mut all: Vec<Way> = open.into_values().flatten().collect();
    sort(&mut all);
    all
}

fn sort(ways: &mut [Way]) {
    ways.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.kinds.cmp(&b.kinds))
    });
}

/// The best beginnings of the best ends.
fn kept(mut open: BTreeMap<Ends, Vec<Way>>) -> BTreeMap<Ends, Vec<Way>> {
    for ways in open.values_mut() {
        sort(ways);
        ways.truncate(ALIKE_KEPT);
    }
    let mut groups: Vec<(Ends, Vec<Way>)> = open.into_iter().collect();
    let best = |ways: &[Way]| ways.first().map_or(f64::NEG_INFINITY, |way| way.score);
    groups.sort_by(|a, b| best(&b.1).total_cmp(&best(&a.1)));
    groups.truncate(ENDS_KEPT);
    groups.into_iter().collect()
}

impl Way {
    fn with(&self, kind: GuessedType, score: f64) -> Way {
        let mut kinds = self.kinds.clone();
        kinds.push(kind);
        Way {
            kinds,
            score: self.score + score,
        }
    }
}

/// Where a column of this kind would end in each row, and how plausible its values are; nothing
/// where too many rows contradict.
fn step(
    rows: &[HeapTuple<'_>],
    ends: &[Option<usize>],
    kind: GuessedType,
    kinds: &mut Kinds,
    column: usize,
    columns: usize,
) -> Option<(Ends, f64)> {
    let is_last = column + 1 == columns;
    let mut next = Ends::with_capacity(rows.len());
    let (mut misfits, mut score, mut values) = (0usize, 0.0, 0usize);
    for (row, at) in rows.iter().zip(ends) {
        let mut end = *at;
        if let Some(at) = at.filter(|_| !is_null(*row, column)) {
            let place = kinds.place(kind, row.bytes(), at);
            if let Some(value) = place.clone().and_then(|place| row.bytes().get(place)) {
                score += kinds.plausible(kind, value);
                values += 1;
            }
            end = place.map(|place| place.end);
        }
        let end = end.filter(|end| !is_last || *end == row.bytes().len());
        misfits += usize::from(end.is_none());
        next.push(end);
        let is_hopeless = values >= VALUES_TRIED && mean(score, values) < HOPELESS;
        if misfits > rows.len() / ROWS_PER_MISFIT || is_hopeless {
            return None;
        }
    }
    // Of a column that is null everywhere nothing can be told: it stands for one kind.
    if values == 0 && kind != GuessedType::Text {
        return None;
    }
    // A column counts the same however many of its values are null, or nearly.
    Some((next, mean(score, values) * 4.0 + kinds.prior(kind)))
}

fn mean(score: f64, values: usize) -> f64 {
    score / f64::from(u32::try_from(values.max(1)).unwrap_or(u32::MAX))
}

pub(super) fn is_null(row: HeapTuple<'_>, column: usize) -> bool {
    let byte = row.null_bitmap().and_then(|bitmap| bitmap.get(column / 8));
    byte.is_some_and(|byte| byte >> (column % 8) & 1 == 0)
}
