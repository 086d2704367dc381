//! A fork as cells: one a block, or as many blocks a cell as it takes to stay readable.

/// Cells of a map at most.
pub(crate) const CELLS_MAX: u64 = 2000;

/// A fork as cells.
pub(crate) struct BlockMap {
    /// Blocks in each cell, the last one aside.
    pub(crate) blocks_per_cell: u64,
    /// Cells.
    pub(crate) cells: u64,
    /// Cells with damage, in order.
    pub(crate) damaged: Vec<Cell>,
    /// Damaged blocks beyond the last one.
    pub(crate) beyond: u64,
}

/// A cell with damage.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    /// From 0.
    pub(crate) index: u64,
    /// Half-open blocks it stands for.
    pub(crate) blocks: [u64; 2],
    /// How many of them are damaged.
    pub(crate) damaged: u64,
}

/// The map of `blocks` blocks with half-open ranges of damage.
pub(crate) fn block_map(blocks: u64, damaged: &[[u64; 2]]) -> BlockMap {
    let blocks_per_cell = blocks.div_ceil(CELLS_MAX).max(1);
    let cells = blocks.div_ceil(blocks_per_cell);
    let mut counts = vec![0_u64; usize::try_from(cells).unwrap_or_default()];
    let mut beyond = 0_u64;
    for [start, end] in damaged {
        beyond = beyond.saturating_add(end.saturating_sub(blocks.max(*start)));
        let end = (*end).min(blocks);
        for cell in start / blocks_per_cell..end.div_ceil(blocks_per_cell) {
            let [first, last] = [
                cell * blocks_per_cell,
                (cell + 1).saturating_mul(blocks_per_cell),
            ];
            let overlap = end.min(last).saturating_sub(first.max(*start));
            let count = usize::try_from(cell)
                .ok()
                .and_then(|cell| counts.get_mut(cell));
            if let Some(count) = count {
                *count = count.saturating_add(overlap);
            }
        }
    }
    let cell = |(index, damaged): (u64, u64)| {
        let first = index * blocks_per_cell;
        let last = first.saturating_add(blocks_per_cell).min(blocks);
        Cell {
            index,
            blocks: [first, last],
            damaged: damaged.min(last - first),
        }
    };
    let damaged = (0..)
        .zip(counts)
        .filter(|(_, damaged)| *damaged > 0)
        .map(cell)
        .collect();
    BlockMap {
        blocks_per_cell,
        cells,
        damaged,
        beyond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_relation_has_a_cell_for_each_block() {
        let map = block_map(10, &[[3, 5], [9, 12]]);
        assert_eq!((map.blocks_per_cell, map.cells, map.beyond), (1, 10, 2));
        let indexes: Vec<_> = map.damaged.iter().map(|cell| cell.index).collect();
        assert_eq!(indexes, [3, 4, 9]);
    }

    #[test]
    fn a_big_relation_has_few_cells_and_says_how_many_blocks_each() {
        let map = block_map(200_000, &[[131_073, 131_074], [199_950, u64::MAX]]);
        assert_eq!((map.blocks_per_cell, map.cells), (100, 2000));
        assert_eq!(
            map.damaged[0],
            Cell {
                index: 1310,
                blocks: [131_000, 131_100],
                damaged: 1
            }
        );
        assert_eq!(map.damaged[1].damaged, 50);
    }

    #[test]
    fn extreme_numbers_do_no_harm() {
        assert!(block_map(u64::MAX, &[[0, u64::MAX]]).damaged.len() <= 2000);
        assert_eq!(block_map(0, &[[5, 2], [7, 9]]).beyond, 2);
    }
}
