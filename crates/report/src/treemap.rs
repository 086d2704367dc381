//! Sizes as tiles of one rectangle, as near to squares as they come (Bruls, Huizing, van Wijk).

/// A tile: left, top, width, height.
pub(crate) type Tile = [f64; 4];

/// A tile for each size, in their order; sizes go from the largest down.
pub(crate) fn tiles(sizes: &[u64], width: f64, height: f64) -> Vec<Tile> {
    let total: f64 = sizes.iter().map(|size| *size as f64).sum();
    if total <= 0.0 {
        return Vec::new();
    }
    let scale = width * height / total;
    let areas: Vec<f64> = sizes.iter().map(|size| *size as f64 * scale).collect();
    let mut room = [0.0, 0.0, width, height];
    let mut tiles = Vec::with_capacity(areas.len());
    let mut rest = areas.as_slice();
    while !rest.is_empty() {
        let [_, _, width, height] = room;
        let (row, after) = rest.split_at(row_of(rest, width.min(height)));
        room = lay(row, room, &mut tiles);
        rest = after;
    }
    tiles
}

/// How many areas make the next row: as many as make its longest tile shorter.
fn row_of(areas: &[f64], side: f64) -> usize {
    let rows = (1..=areas.len()).map(|len| areas.get(..len).unwrap_or_default());
    let mut best = (f64::INFINITY, 1);
    for row in rows {
        let worst = worst(row, side);
        if worst > best.0 {
            break;
        }
        best = (worst, row.len());
    }
    best.1
}

/// How much longer than wide the longest tile of a row is.
fn worst(row: &[f64], side: f64) -> f64 {
    let sum: f64 = row.iter().sum();
    let depth = sum / side.max(f64::MIN_POSITIVE);
    let ratios = row.iter().map(|area| {
        let length = area / depth.max(f64::MIN_POSITIVE);
        (length / depth).max(depth / length)
    });
    ratios.fold(0.0, f64::max)
}

/// Lays a row along the shorter side, and gives the room that is left.
fn lay(row: &[f64], [x, y, width, height]: Tile, tiles: &mut Vec<Tile>) -> Tile {
    let sum: f64 = row.iter().sum();
    let is_wide = width >= height;
    let side = if is_wide { height } else { width };
    let depth = sum / side.max(f64::MIN_POSITIVE);
    let mut along = 0.0;
    for area in row {
        let length = area / depth.max(f64::MIN_POSITIVE);
        tiles.push(if is_wide {
            [x, y + along, depth, length]
        } else {
            [x + along, y, length, depth]
        });
        along += length;
    }
    if is_wide {
        [x + depth, y, (width - depth).max(0.0), height]
    } else {
        [x, y + depth, width, (height - depth).max(0.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fill_the_room_and_keep_their_shares() {
        let sizes = [6_000, 6_000, 4_000, 3_000, 2_000, 2_000, 1_000];
        let tiles = tiles(&sizes, 600.0, 400.0);
        assert_eq!(tiles.len(), sizes.len());
        for (size, [x, y, width, height]) in sizes.iter().zip(&tiles) {
            assert!((width * height - *size as f64 * 10.0).abs() < 1e-6);
            assert!(x + width < 600.1 && y + height < 400.1 && *x >= 0.0 && *y >= 0.0);
            assert!((width / height).max(height / width) < 4.0, "a strip");
        }
    }

    #[test]
    fn nothing_has_no_tiles() {
        assert!(tiles(&[], 10.0, 10.0).is_empty());
        assert!(tiles(&[0, 0], 10.0, 10.0).is_empty());
    }
}
