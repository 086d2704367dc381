//! Whether rows stand in the order of an index: what a range scan costs, and what another kind of
//! key would.
//!
//! The correlation is that of `pg_stats` (`compute_scalar_stats` in
//! `src/backend/commands/analyze.c`), over all rows instead of a sample: between a row's rank by
//! key and its rank in the table, ties by the place in the table.

use pgclinic_cluster::ForkContext;
use pgclinic_format::btree::BtreePage;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, LpFlags};
use pgclinic_model::document::{Figure, Sections};
use pgclinic_model::{FigureKind, Unit};
use pgclinic_scan::PageReader;

use super::btree_packing::built_pages;
use super::places::{PagePlaces, Places};
use super::sums::Items;
use super::{bytes, number, of, share};

/// The section of these figures.
pub(super) const SECTION: &str = "key";

/// What is said of a btree's order.
pub(super) const FIGURES: &[FigureKind] = &[
    number(
        "rows_compared",
        "rows whose place was compared with that of their key",
    ),
    of(
        "correlation",
        Unit::Number,
        "of the order of keys with the order of rows: 1 the same, 0 none, -1 backwards",
    ),
    share(
        "page_change_percent",
        "steps from a key to the next that lead to another page of the table",
    ),
    number(
        "pages_per_100_rows",
        "pages of the table that 100 rows in the order of keys touch",
    ),
    of(
        "scatter",
        Unit::Place,
        "rank of the key against the page of its row",
    ),
    bytes(
        "size_if_bigint",
        "length of the index with bigint keys in rising order",
    ),
    bytes("size_if_uuid_v7", "length with UUIDs of version 7"),
    bytes("size_if_uuid_v4", "length with UUIDs of version 4, about"),
    number("splits_if_bigint", "splits on the way there"),
    number("splits_if_uuid_v7", "splits with UUIDs of version 7"),
    number("splits_if_uuid_v4", "splits with UUIDs of version 4, about"),
];

/// More rows than these are not ranked one by one: runs of leaves are taken from all of the index.
const RANKED_MAX: u64 = 2_000_000;
/// Memory that ranking a row takes: its place, and that with its rank, sorted.
const RANKED_BYTES: u64 = 24;
/// About so many rows are taken then.
const SAMPLED: u64 = 250_000;
/// Leaves of a run.
const RUN: u64 = 8;
/// Rows of a range scan.
const RANGE: usize = 100;
/// Points of the picture.
const POINTS: usize = 2_000;
/// How full pages are after splits in the middle, in the long run: the logarithm of 2.
const RANDOM_FILL: f64 = std::f64::consts::LN_2;

/// What is known of an index and of its table.
pub(super) struct KeyOrder<'a> {
    /// Its leaves.
    pub(super) own: &'a Places,
    /// The table's rows; nothing where they are taken as they lie.
    pub(super) table: Option<&'a Places>,
    /// Other kinds of keys are of interest.
    pub(super) forecast: bool,
    /// Memory for ranking rows.
    pub(super) memory_bytes: u64,
}

/// The order of one index against its table.
pub(super) fn measure(fork: &ForkContext<'_>, order: &KeyOrder<'_>) -> Option<Sections> {
    let source = fork.source?;
    let leaves = chain(order.own);
    let rows: u64 = leaves.iter().map(|(_, rows)| u64::from(*rows)).sum();
    let most = RANKED_MAX.min(order.memory_bytes / RANKED_BYTES);
    let wanted = if rows > most { SAMPLED.min(most) } else { rows };
    let every = rows.div_ceil(wanted.max(1)).max(1);
    let mut walk = Walk {
        pages: PageReader::new(source, fork),
        table: order.table,
        table_page: None,
        places: Vec::with_capacity(usize::try_from(wanted).unwrap_or(0)),
        ends: Vec::new(),
    };
    for (at, (block, _)) in (0u64..).zip(&leaves) {
        if (at / RUN).is_multiple_of(every) {
            walk.leaf(*block);
        }
        if every > 1 && (at + 1).is_multiple_of(RUN) {
            walk.ends.push(walk.places.len());
        }
    }
    let figures = figures(&walk, if order.forecast { rows } else { 0 });
    let named = FIGURES.iter().zip(figures);
    let named = named.map(|(kind, figure)| (kind.name.to_owned(), figure));
    Some(Sections::from([(SECTION.to_owned(), named.collect())]))
}

/// The leaves from left to right with their rows, as far as links lead.
fn chain(own: &Places) -> Vec<(BlockNo, u32)> {
    let mut leaves = Vec::new();
    let first = own.faces.iter().find(|(_, face)| face.is_first);
    let mut at = first.map(|(block, _)| *block);
    // Links that run in a circle end after all leaves.
    while let Some((block, face)) = at.and_then(|block| Some((block, own.faces.get(block)?))) {
        leaves.push((block, face.rows));
        let goes_on = face.next != 0 && leaves.len() < own.faces.len();
        at = goes_on.then_some(face.next);
    }
    leaves
}

/// Rows in the order of their keys.
struct Walk<'a> {
    pages: PageReader<'a>,
    table: Option<&'a Places>,
    /// The page of the table that was asked last: often the next key is on it, too.
    table_page: Option<(BlockNo, Option<PagePlaces<'a>>)>,
    /// Where each stands.
    places: Vec<u64>,
    /// Where a run of leaves ends.
    ends: Vec<usize>,
}

impl Walk<'_> {
    fn leaf(&mut self, block: BlockNo) {
        let Some(page) = self.pages.page(block) else {
            return;
        };
        let Some(tree) = BtreePage::parse(page).filter(BtreePage::is_leaf) else {
            return;
        };
        for (item, tuple) in tree.data() {
            let is_dead =
                page.line_pointer(item).map(|pointer| pointer.flags()) == Some(LpFlags::Dead);
            // pg_stats knows no nulls: only the first key counts here.
            let is_null = tuple
                .0
                .null_bitmap()
                .is_some_and(|bits| bits.first().is_none_or(|byte| byte & 1 == 0));
            if is_dead || is_null {
                continue;
            }
            for tid in tuple.rows() {
                let live = match self.table {
                    Some(table) => live(table, &mut self.table_page, tid),
                    None => Some(tid),
                };
                self.places.extend(live.map(place));
            }
        }
    }
}

/// The live row that an entry leads to; nothing where it leads to a dead one.
#[inline]
fn live<'a>(
    table: &'a Places,
    known: &mut Option<(BlockNo, Option<PagePlaces<'a>>)>,
    tid: Tid,
) -> Option<Tid> {
    let page = match *known {
        Some((block, page)) if block == tid.block => page,
        _ => {
            let page = table.on_page(tid.block);
            *known = Some((tid.block, page));
            page
        }
    };
    let offset = page?.live(tid.offset)?;
    Some(Tid { offset, ..tid })
}

fn place(tid: Tid) -> u64 {
    u64::from(tid.block) << 16 | u64::from(tid.offset)
}

fn figures(walk: &Walk<'_>, forecast_rows: u64) -> Vec<Option<Figure>> {
    let places = &walk.places;
    let changes = places
        .iter()
        .zip(places.iter().skip(1))
        .filter(|(own, next)| *own >> 16 != *next >> 16)
        .count();
    let steps = places.len().saturating_sub(1);
    let mut figures = vec![
        Some(Figure::Count(places.len() as u64)),
        correlation(places).map(Figure::Real),
        super::percent::percent(changes as f64, steps as f64),
        pages_per_range(walk).map(Figure::Real),
        scatter(places),
    ];
    let forecasts = Forecast::all(forecast_rows).map(|forecasts| {
        let [bigint, v7, v4] = forecasts;
        let sizes = [bigint, v7, v4].map(|forecast| Some(Figure::Count(forecast.bytes)));
        let splits = [bigint, v7, v4].map(|forecast| Some(Figure::Count(forecast.splits)));
        [sizes, splits].concat()
    });
    figures.extend(forecasts.unwrap_or_else(|| vec![None; 6]));
    figures
}

/// As `compute_scalar_stats` computes it; nothing for fewer than two rows.
fn correlation(places: &[u64]) -> Option<f64> {
    let count = places.len() as i128;
    (count > 1).then_some(())?;
    let sum = (count - 1) * count / 2;
    let squares = (count - 1) * count * (2 * count - 1) / 6;
    let products = if places.is_sorted() {
        // Each rank is its own.
        squares
    } else {
        let mut sorted: Vec<(u64, u32)> = places.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let ranked = (0i128..).zip(&sorted);
        ranked.map(|(rank, (_, at))| rank * i128::from(*at)).sum()
    };
    let [together, alone] = [products, squares].map(|own| (count * own - sum * sum) as f64);
    Some(together / alone)
}

/// Distinct pages of so many rows side by side, on average; of all where there are fewer.
fn pages_per_range(walk: &Walk<'_>) -> Option<f64> {
    let mut pages = Vec::with_capacity(RANGE);
    let (mut ranges, mut touched) = (0u64, 0u64);
    let mut start = 0;
    let ends = walk.ends.iter().copied().chain([walk.places.len()]);
    for end in ends {
        let run = walk.places.get(start..end).unwrap_or_default();
        for range in run.chunks_exact(RANGE.min(run.len().max(1))) {
            pages.clear();
            pages.extend(range.iter().map(|place| place >> 16));
            if !pages.is_sorted() {
                pages.sort_unstable();
            }
            pages.dedup();
            ranges += 1;
            touched += pages.len() as u64;
        }
        start = end;
    }
    (ranges > 0).then(|| touched as f64 / ranges as f64)
}

fn scatter(places: &[u64]) -> Option<Figure> {
    let every = places.len().div_ceil(POINTS).max(1);
    let points = (0u64..).zip(places).step_by(every);
    let points: Vec<_> = points.map(|(rank, place)| [rank, place >> 16]).collect();
    (!points.is_empty()).then_some(Figure::Points(points))
}

/// An index that does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Forecast {
    bytes: u64,
    splits: u64,
}

impl Forecast {
    /// With so many rows, on pages of 8 kB: bigint, v7, v4.
    fn all(rows: u64) -> Option<[Forecast; 3]> {
        (rows > 0).then(|| {
            [
                Forecast::rising(rows, 16),
                Forecast::rising(rows, 24),
                Forecast::random(rows, 24),
            ]
        })
    }

    /// Keys that only rise fill each leaf as a build does.
    fn rising(rows: u64, tuple: u64) -> Forecast {
        Forecast::of(built_pages(
            Items {
                count: rows,
                bytes: rows * tuple,
            },
            8192,
        ))
    }

    fn random(rows: u64, tuple: u64) -> Forecast {
        let per_leaf = (8152.0 / (tuple + 4) as f64 * RANDOM_FILL).max(1.0);
        let mut level = rows as f64 / per_leaf;
        let mut pages = 1.0 + level.ceil();
        while level > 1.0 {
            level /= per_leaf;
            pages += level.ceil();
        }
        Forecast::of(pgclinic_model::whole(pages))
    }

    /// Every page but the meta page and the first leaf came about by a split, or as a root above
    /// one.
    fn of(pages: u64) -> Forecast {
        Forecast {
            bytes: pages * 8192,
            splits: pages.saturating_sub(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_told_from_disorder() {
        assert_eq!(correlation(&[5, 9, 70_000, 70_001]), Some(1.0));
        assert_eq!(correlation(&[9, 8, 7]), Some(-1.0));
        assert_eq!(correlation(&[2, 4, 1, 3]), Some(0.0));
        assert_eq!(correlation(&[7]), None);
    }

    #[test]
    fn a_million_rows_come_close_to_the_published_sizes() {
        let [bigint, v7, v4] = Forecast::all(1_000_000).expect("rows");
        assert_eq!((bigint.bytes, v7.bytes), (22_487_040, 31_563_776));
        // Published: 40,026,112 bytes at a density of 71 %.
        assert!((39_000_000..42_000_000).contains(&v4.bytes), "{v4:?}");
    }
}
