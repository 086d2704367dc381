//! The order of the runs: randomised complete blocks, so that a machine that gets slower over the
//! hour is no effect.
//!
//! ```text
//! three arms and more   each block holds every cell once, shuffled
//! two arms              points shuffled, the pair side by side, and every second block runs backwards:
//!                         block 1  A B   B A   A B         block 2  B A   A B   B A      ABBA at every point
//! ```
//!
//! Where bases are made anew in each block, a block takes the bases in shuffled order and the runs
//! of each base side by side.
//!
//! Some cells run twice in a block ([`super::controls`]). The second run is the control.

use fastrand::Rng;
use pgclinic_model::document::Side;

use crate::cell::{Arm, Cell, Point};
use crate::experiment::Matrix;

/// Whether an arm is run at a point.
pub(super) type Asks<'a> = &'a dyn Fn(&Arm, &Point) -> bool;

/// Which base a cell runs on, by name.
pub(super) type BaseOf<'a> = &'a dyn Fn(&Cell) -> String;

/// What is run where.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// All points of the axes.
    pub(super) points: &'a [Point],
    /// Whether an arm is run at a point.
    pub(super) asks: Asks<'a>,
    /// Cells that are run twice in a block.
    pub(super) repeated: &'a [Side],
}

/// All cells of all blocks, in the order in which they run; those of one base side by side where
/// bases are told.
pub(super) fn cells(
    matrix: &Matrix,
    wanted: Wanted<'_>,
    seed: u64,
    base_of: Option<BaseOf<'_>>,
) -> Vec<Cell> {
    let mut order = Vec::new();
    let mut last: Vec<Cell> = Vec::new();
    for block in 1..=matrix.blocks {
        let backwards = matrix.arms.len() == 2 && block % 2 == 0;
        let mut runs = if backwards {
            last.iter().rev().cloned().collect()
        } else {
            let runs = shuffled(matrix, wanted, block_seed(seed, block));
            base_of.map_or_else(|| runs.clone(), |base_of| side_by_side(&runs, base_of))
        };
        for cell in &mut runs {
            cell.block = block;
            cell.id = id_of(matrix, cell);
        }
        order.extend(runs.iter().cloned());
        last = runs;
    }
    order
}

/// Runs of one base together, bases in the order in which they first come.
fn side_by_side(runs: &[Cell], base_of: BaseOf<'_>) -> Vec<Cell> {
    let mut bases: Vec<String> = Vec::new();
    for base in runs.iter().map(base_of) {
        if !bases.contains(&base) {
            bases.push(base);
        }
    }
    let of_base = |base: &String| {
        let own = runs.iter().filter(|cell| base_of(cell) == *base);
        own.cloned().collect::<Vec<_>>()
    };
    bases.iter().flat_map(of_base).collect()
}

/// The seed of a block's data: its runs work on the same data, other blocks on other data.
pub fn block_seed(seed: u64, block: u32) -> u64 {
    Rng::with_seed(seed ^ (u64::from(block) << 32)).u64(..)
}

fn shuffled(matrix: &Matrix, wanted: Wanted<'_>, seed: u64) -> Vec<Cell> {
    let mut rng = Rng::with_seed(seed);
    let mut groups: Vec<Vec<Cell>> = Vec::new();
    for point in wanted.points {
        let asked = matrix.arms.iter().filter(|arm| (wanted.asks)(arm, point));
        let mut group: Vec<Cell> = asked.map(|arm| cell(&arm.name, point, false)).collect();
        let repeated = wanted.repeated.iter().filter(|side| side.point == *point);
        group.extend(repeated.map(|side| cell(&side.arm, point, true)));
        rng.shuffle(&mut group);
        groups.push(group);
    }
    if matrix.arms.len() == 2 {
        rng.shuffle(&mut groups);
        return groups.into_iter().flatten().collect();
    }
    let mut runs: Vec<Cell> = groups.into_iter().flatten().collect();
    rng.shuffle(&mut runs);
    runs
}

fn cell(arm: &str, point: &Point, is_control: bool) -> Cell {
    Cell {
        id: String::new(),
        arm: arm.to_owned(),
        point: point.clone(),
        block: 0,
        repeat: u32::from(is_control),
        is_control,
    }
}

/// `b02-lz4-sessions_4`, with `-again` for a control: it names a folder, so other characters become
/// `_`. Where values differ only in such characters, their place on the axis makes them differ.
pub(crate) fn id_of(matrix: &Matrix, cell: &Cell) -> String {
    let mut id = format!("b{:02}-{}", cell.block, cell.arm);
    for axis in &matrix.axes {
        let value = cell.at(&axis.name);
        let plain = plain(value);
        id.push_str(&format!("-{}_{plain}", axis.name));
        if axis
            .values
            .iter()
            .filter(|other| self::plain(other) == plain)
            .count()
            > 1
        {
            let place = axis.values.iter().position(|other| other == value);
            id.push_str(&format!(".{}", place.unwrap_or_default()));
        }
    }
    match (cell.is_control, cell.repeat) {
        (true, 1) => id.push_str("-again"),
        (true, repeat) => id.push_str(&format!("-again{repeat}")),
        (false, 0) => {}
        (false, repeat) => id.push_str(&format!("-r{repeat}")),
    }
    id
}

fn plain(value: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    value
        .chars()
        .take(40)
        .map(|c| if keep(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cell::Axis;
    use crate::plan::points;

    fn matrix(arms: &[&str], values: &[u32], blocks: u32) -> Matrix {
        Matrix {
            arms: arms.iter().map(|name| Arm::new(name, "")).collect(),
            axes: vec![Axis::new("rows", "", values)],
            blocks,
        }
    }

    /// The first arm at its first three points.
    fn repeated(matrix: &Matrix, points: &[Point]) -> Vec<Side> {
        let side = |point: &Point| Side {
            arm: matrix.arms[0].name.clone(),
            point: point.clone(),
        };
        points.iter().take(3).map(side).collect()
    }

    fn order(matrix: &Matrix, seed: u64) -> Vec<Cell> {
        order_by_base(matrix, seed, None)
    }

    fn order_by_base(matrix: &Matrix, seed: u64, base_of: Option<BaseOf<'_>>) -> Vec<Cell> {
        let points = points::all(&matrix.axes);
        let wanted = Wanted {
            points: &points,
            asks: &|_, _| true,
            repeated: &repeated(matrix, &points),
        };
        cells(matrix, wanted, seed, base_of)
    }

    #[test]
    fn what_is_not_asked_is_not_run_and_what_is_repeated_has_a_control() {
        let matrix = matrix(&["a", "b", "c"], &[1, 2, 3, 4], 1);
        let asks = |arm: &Arm, point: &Point| {
            arm.name != "a" || ["2", "4"].contains(&point["rows"].as_str())
        };
        let points = points::all(&matrix.axes);
        let wanted = Wanted {
            points: &points,
            asks: &asks,
            repeated: &repeated(&matrix, &points[1..2]),
        };
        let cells = cells(&matrix, wanted, 7, None);
        let of = |arm: &str, is_control: bool| -> Vec<&str> {
            let found = cells
                .iter()
                .filter(|cell| cell.arm == arm && cell.is_control == is_control);
            let mut rows: Vec<&str> = found.map(|cell| cell.at("rows")).collect();
            rows.sort_unstable();
            rows
        };
        assert_eq!(of("a", false), ["2", "4"]);
        assert_eq!(of("a", true), ["2"]);
        assert_eq!(of("b", false), ["1", "2", "3", "4"]);
    }

    #[test]
    fn every_block_holds_every_cell_once_and_controls_beside_them() {
        let matrix = matrix(&["a", "b", "c"], &[1, 2, 3, 4], 5);
        let cells = order(&matrix, 7);
        let ids: BTreeSet<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!((cells.len(), ids.len()), (5 * (12 + 3), 5 * (12 + 3)));
        for block in 1..=5 {
            let of_block = cells.iter().filter(|cell| cell.block == block);
            let plain: BTreeSet<String> = of_block
                .filter(|cell| !cell.is_control)
                .map(|cell| format!("{} {}", cell.arm, cell.at("rows")))
                .collect();
            assert_eq!(plain.len(), 12);
        }
    }

    #[test]
    fn the_seed_decides_and_blocks_differ() {
        let matrix = matrix(&["a", "b", "c"], &[1, 2, 3, 4], 2);
        assert_eq!(order(&matrix, 7), order(&matrix, 7));
        assert_ne!(order(&matrix, 7), order(&matrix, 8));
        let arms = |block: u32| -> Vec<String> {
            let cells = order(&matrix, 7).into_iter();
            cells
                .filter(|cell| cell.block == block)
                .map(|cell| format!("{}{}", cell.arm, cell.at("rows")))
                .collect()
        };
        assert_ne!(arms(1), arms(2));
    }

    #[test]
    fn runs_of_one_base_are_side_by_side_where_bases_are_made_anew() {
        let matrix = matrix(&["a", "b", "c"], &[1, 2, 3, 4], 3);
        let base_of = |cell: &Cell| cell.at("rows").to_owned();
        let cells = order_by_base(&matrix, 7, Some(&base_of));
        let mut same = order(&matrix, 7);
        let by_id = |one: &Cell, other: &Cell| one.id.cmp(&other.id);
        let mut sorted = cells.clone();
        same.sort_by(by_id);
        sorted.sort_by(by_id);
        assert_eq!(sorted, same, "the same runs");
        for block in 1..=3 {
            let of_block = cells.iter().filter(|cell| cell.block == block);
            let mut bases: Vec<String> = of_block.map(base_of).collect();
            bases.dedup();
            assert_eq!(bases.len(), 4, "each base once: {bases:?}");
        }
    }

    #[test]
    fn two_arms_go_there_and_back() {
        let matrix = matrix(&["a", "b"], &[1, 2, 3, 4, 5], 2);
        let cells = order(&matrix, 3);
        let (first, second) = cells.split_at(cells.len() / 2);
        let places = |cells: &[Cell]| -> Vec<(String, String, bool)> {
            cells
                .iter()
                .map(|cell| {
                    (
                        cell.arm.clone(),
                        cell.at("rows").to_owned(),
                        cell.is_control,
                    )
                })
                .collect()
        };
        let mut back = places(second);
        back.reverse();
        assert_eq!(places(first), back);
    }

    #[test]
    fn values_that_look_alike_in_a_folder_name_stay_apart() {
        let mut matrix = matrix(&["a"], &[], 1);
        matrix.axes = vec![Axis::new("ddl", "", &["a b", "a/b"])];
        let ids: BTreeSet<String> = order(&matrix, 1).into_iter().map(|cell| cell.id).collect();
        assert!(
            ids.contains("b01-a-ddl_a_b.0") && ids.contains("b01-a-ddl_a_b.1"),
            "{ids:?}"
        );
    }
}
