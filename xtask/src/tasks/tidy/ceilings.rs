//! What is being given up becomes rarer and never more frequent: `ceilings.txt` says how often each
//! habit may still occur. Absent there means never.

use super::{COUNTS, Complaint, Rule};
use crate::repository::{self, Tree};
use crate::shell::at;
use crate::task::Outcome;

pub(super) const RULE: Rule = Rule {
    name: "ceilings",
    why: "what is given up becomes rarer",
    check,
};

const FILE: &str = "xtask/src/tasks/tidy/ceilings.txt";

fn check(tree: &Tree) -> Vec<Complaint> {
    let counts = COUNTS.iter().flat_map(|count| {
        let places = (count.places)(tree).into_iter();
        places.map(|(name, places)| (count.why, name, places))
    });
    counts
        .flat_map(|(why, name, places)| beyond(tree, why, &name, places))
        .collect()
}

/// Complaints about a habit that occurs more often than it may.
fn beyond(tree: &Tree, why: &str, name: &str, places: Vec<Complaint>) -> Vec<Complaint> {
    let (line, most) = ceiling(tree, name);
    if places.len() <= most {
        return Vec::new();
    }
    if most == 0 {
        return places;
    }
    let count = places.len();
    let what = format!(
        "{name}: {count} places, at most {most} may be left ({why}); \
         `cargo xtask tidy --list '{name}'` shows them"
    );
    vec![Complaint::line(FILE, line, what)]
}

/// The line of a habit, 0 where it has none, and how often it may occur.
fn ceiling(tree: &Tree, name: &str) -> (usize, usize) {
    let lines = tree.text(FILE).unwrap_or_default().lines().enumerate();
    let mut known = lines.filter_map(|(at, line)| Some((at + 1, parsed(line)?)));
    let own = known.find(|(_, (own, _))| *own == name);
    own.map_or((0, 0), |(line, (_, most))| (line, most))
}

/// `name = number`; nothing of a comment or an empty line.
fn parsed(line: &str) -> Option<(&str, usize)> {
    let (name, most) = line.split_once('=')?;
    Some((name.trim(), most.trim().parse().ok()?))
}

fn counted(tree: &Tree) -> impl Iterator<Item = (String, Vec<Complaint>)> {
    COUNTS.iter().flat_map(|count| (count.places)(tree))
}

/// Every place of a habit, one a line.
pub(super) fn listed(tree: &Tree, name: &str) -> Result<String, String> {
    let (_, places) = counted(tree)
        .find(|(own, _)| own == name)
        .ok_or_else(|| format!("nothing is counted as {name:?}; {FILE} has the names"))?;
    let line = |c: &Complaint| format!("{}:{}: {}\n", c.path, c.line, c.what);
    Ok(places.iter().map(line).collect())
}

/// Writes the ceilings that fell. None is ever raised.
pub(super) fn lower(tree: &Tree) -> Outcome {
    let counts: Vec<(String, usize)> = counted(tree)
        .map(|(name, places)| (name, places.len()))
        .collect();
    let path = repository::root().join(FILE);
    let text = lowered(tree.text(FILE).unwrap_or_default(), &counts);
    std::fs::write(&path, text).map_err(at(&path))
}

/// The file with each number that is too high replaced, and without the lines of what is gone.
fn lowered(text: &str, counts: &[(String, usize)]) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let Some((name, most)) = parsed(line) else {
            lines.push_str(&format!("{line}\n"));
            continue;
        };
        let own = counts.iter().find(|(own, _)| own == name);
        let now = own.map_or(0, |(_, count)| *count).min(most);
        if now > 0 {
            lines.push_str(&format!("{name} = {now}\n"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(count: usize) -> Vec<Complaint> {
        (1..=count)
            .map(|line| Complaint::line("a.md", line, "a place"))
            .collect()
    }

    #[test]
    fn at_the_ceiling_is_silence_and_beyond_it_one_complaint() {
        let tree = Tree::of(&[(FILE, "# why\nold habit = 2\n")]);
        assert_eq!(beyond(&tree, "why", "old habit", places(2)), []);
        let found = beyond(&tree, "why", "old habit", places(3));
        let lines: Vec<usize> = found.iter().map(|complaint| complaint.line).collect();
        assert_eq!(lines, [2]);
        assert!(found[0].what.contains("3 places, at most 2"));
    }

    #[test]
    fn without_a_ceiling_every_place_is_named() {
        let tree = Tree::of(&[(FILE, "")]);
        assert_eq!(beyond(&tree, "why", "old habit", places(2)), places(2));
    }

    #[test]
    fn ceilings_fall_and_never_rise() {
        let counts = [
            ("a".to_owned(), 3),
            ("b".to_owned(), 1),
            ("c".to_owned(), 0),
        ];
        assert_eq!(
            lowered("# why\n\na = 2\nb = 5\nc = 4\ngone = 1\n", &counts),
            "# why\n\na = 2\nb = 1\n"
        );
    }
}
