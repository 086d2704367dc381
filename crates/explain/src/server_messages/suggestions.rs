//! *Did you mean*: the names that are nearest to one that nobody has.

/// Suggestions that are made.
const SUGGESTIONS_MAX: usize = 3;
/// Names that are longer are not compared.
const NAME_CHARS_MAX: usize = 64;

/// The known names nearest to `name`, the nearest first; none when all are far away.
pub fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().take(NAME_CHARS_MAX).collect();
    let mut near: Vec<(usize, &str)> = known
        .filter_map(|known| Some((distance_if_near(&name, known)?, known)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(SUGGESTIONS_MAX);
    near.into_iter().map(|(_, known)| known).collect()
}

/// How far apart the names are, unless more than a third of the letters differ. A name that stands
/// within the other one, such as `checksum`, is nearer than one with other letters.
fn distance_if_near(name: &[char], known: &str) -> Option<usize> {
    let other: Vec<char> = known.to_lowercase().replace('_', "-").chars().collect();
    let name: Vec<char> = name
        .iter()
        .map(|char| if *char == '_' { '-' } else { *char })
        .collect();
    let is_part = name.len() >= 4 && other.windows(name.len()).any(|window| window == name);
    let distance = edits(&name, &other);
    let limit = name.len().max(other.len()) / 3;
    (is_part || distance <= limit).then_some(if is_part { 1 } else { distance })
}

/// Letters to insert, remove, replace or swap with their neighbour to get from one to the other.
fn edits(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let replaced =
                above.get(column).copied().unwrap_or(usize::MAX - 1) + usize::from(letter != other);
            let removed = above.get(column + 1).copied().unwrap_or(usize::MAX - 1) + 1;
            let inserted = line.last().copied().unwrap_or(usize::MAX - 1) + 1;
            let is_swap = row > 0
                && column > 0
                && from.get(row - 1) == Some(other)
                && to.get(column - 1) == Some(letter);
            let swapped = before
                .get(column.wrapping_sub(1))
                .filter(|_| is_swap)
                .map_or(usize::MAX, |cost| cost + 1);
            line.push(replaced.min(removed).min(inserted).min(swapped));
        }
        before = std::mem::replace(&mut above, line);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn the_nearest_names_come_first_and_far_ones_not_at_all() {
        let known = [
            "lower-beyond-upper",
            "zero_damaged_pages",
            "checksum-mismatch",
            "orphan-file",
        ];
        let of = |name| closest(name, known.into_iter());
        assert_eq!(of("lower-beyond-uper"), ["lower-beyond-upper"]);
        assert_eq!(of("zero-damaged-page"), ["zero_damaged_pages"]);
        assert_eq!(of("checksum"), ["checksum-mismatch"]);
        assert_eq!(of("orphna-file"), ["orphan-file"]);
        assert!(of("nothing-of-the-kind").is_empty());
        assert!(of("").is_empty());
    }
}
