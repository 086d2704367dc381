//! The points of the axes, and what a person chose of arms and values.

use crate::cell::{Axis, Point};
use crate::error::{Error, Result};
use crate::experiment::Matrix;
use crate::plan::PlanOptions;

/// More cells than this in one block are a mistake in a file.
const CELLS_MAX: usize = 10_000;

/// More runs than this in all blocks are a mistake too: at a second each they take more than a day.
const RUNS_MAX: u64 = 100_000;

/// Every combination of the axes' values, the first axis changing slowest.
pub(super) fn all(axes: &[Axis]) -> Vec<Point> {
    axes.iter().fold(vec![Point::new()], |points, axis| {
        let with = |point: &Point, value: &String| {
            let mut point = point.clone();
            point.insert(axis.name.clone(), value.clone());
            point
        };
        points
            .iter()
            .flat_map(|point| axis.values.iter().map(move |value| with(point, value)))
            .collect()
    })
}

/// The matrix with only the arms and values that were asked for.
pub(super) fn chosen(mut matrix: Matrix, options: &PlanOptions) -> Result<Matrix> {
    for wanted in &options.arms {
        if matrix.arms.iter().all(|arm| arm.name != *wanted) {
            let names: Vec<&str> = matrix.arms.iter().map(|arm| arm.name.as_str()).collect();
            return Err(unknown("arm", wanted, &names));
        }
    }
    if !options.arms.is_empty() {
        matrix.arms.retain(|arm| options.arms.contains(&arm.name));
    }
    for (name, values) in &options.only {
        let names: Vec<String> = matrix.axes.iter().map(|axis| axis.name.clone()).collect();
        let axis = matrix.axes.iter_mut().find(|axis| axis.name == *name);
        let Some(axis) = axis else {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(unknown("axis", name, &names));
        };
        if let Some(wrong) = values.iter().find(|value| !axis.values.contains(value)) {
            let known: Vec<&str> = axis.values.iter().map(String::as_str).collect();
            return Err(unknown(&format!("value of {name}"), wrong, &known));
        }
        axis.values.retain(|value| values.contains(value));
    }
    if let Some(blocks) = options.blocks {
        matrix.blocks = blocks;
    }
    Ok(matrix)
}

fn unknown(what: &str, wanted: &str, known: &[&str]) -> Error {
    Error::Refused(format!(
        "there is no {what} \"{wanted}\"; there is {}",
        known.join(", ")
    ))
}

/// Refuses what cannot be planned: no arms, no blocks, empty axes, doubled names, names that no
/// folder can have, more runs than anybody makes.
pub(super) fn check_names(matrix: &Matrix) -> Result<()> {
    let refuse = |why: String| Err(Error::Refused(why));
    if matrix.arms.is_empty() || matrix.blocks == 0 {
        return refuse("a plan needs at least one arm and one block".to_owned());
    }
    let arms = matrix.arms.iter().map(|arm| arm.name.as_str());
    let axes = matrix.axes.iter().map(|axis| axis.name.as_str());
    let mut names: Vec<&str> = arms.chain(axes).collect();
    if let Some(wrong) = names.iter().find(|name| !is_plain(name)) {
        return refuse(format!(
            "\"{wrong}\" cannot name an arm or an axis: use small letters, digits and -"
        ));
    }
    names.sort_unstable();
    if let Some([doubled, _]) = names.array_windows().find(|[one, next]| one == next) {
        return refuse(format!(
            "the name \"{doubled}\" stands for two arms or axes"
        ));
    }
    for axis in &matrix.axes {
        let mut values = axis.values.clone();
        values.sort_unstable();
        values.dedup();
        if values.is_empty() || values.len() != axis.values.len() {
            return refuse(format!("the axis {} has no value, or one twice", axis.name));
        }
    }
    let points: usize = matrix
        .axes
        .iter()
        .fold(1, |product, axis| product.saturating_mul(axis.values.len()));
    let cells = points.saturating_mul(matrix.arms.len());
    if cells > CELLS_MAX {
        return refuse(format!(
            "the matrix has more than {CELLS_MAX} cells; give fewer values"
        ));
    }
    let blocks = matrix.blocks;
    let runs = u64::from(blocks).saturating_mul(cells as u64);
    if runs > RUNS_MAX {
        return refuse(format!(
            "{blocks} blocks of {cells} cells are {runs} runs, and a plan has {RUNS_MAX} at most; give fewer blocks, arms or values"
        ));
    }
    Ok(())
}

/// Whether a name can stand in the name of a folder as it is: small letters, digits, and `-._`
/// behind the first.
pub(crate) fn is_plain(name: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
    (1..=60).contains(&name.len())
        && name.bytes().all(plain)
        && name
            .as_bytes()
            .first()
            .is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Arm;

    fn matrix() -> Matrix {
        Matrix {
            arms: vec![Arm::new("off", ""), Arm::new("on", "")],
            axes: vec![
                Axis::new("rows", "rows", &[1, 10]),
                Axis::new("where", "", &["disk"]),
            ],
            blocks: 3,
        }
    }

    #[test]
    fn no_axis_is_one_point_and_two_multiply() {
        assert_eq!(all(&[]).len(), 1);
        let points = all(&matrix().axes);
        let rows: Vec<&str> = points.iter().map(|point| point["rows"].as_str()).collect();
        assert_eq!(rows, ["1", "10"]);
    }

    #[test]
    fn a_choice_that_does_not_exist_is_answered_with_what_does() {
        let options = PlanOptions {
            only: vec![("rows".to_owned(), vec!["7".to_owned()])],
            ..PlanOptions::default()
        };
        let error = chosen(matrix(), &options).unwrap_err().to_string();
        assert_eq!(error, "there is no value of rows \"7\"; there is 1, 10");
    }

    #[test]
    fn more_runs_than_anybody_makes_are_refused_before_they_are_counted_out() {
        let mut many = matrix();
        many.blocks = 25_000;
        assert!(
            check_names(&many).is_ok(),
            "4 cells: just as many as may be"
        );
        many.blocks = u32::MAX;
        let why = check_names(&many).unwrap_err().to_string();
        assert!(
            why.starts_with("4294967295 blocks of 4 cells are 17179869180 runs"),
            "{why}"
        );
    }

    #[test]
    fn names_must_fit_a_folder_and_differ() {
        let mut doubled = matrix();
        doubled.axes[0].name = "on".to_owned();
        assert!(check_names(&doubled).is_err());
        let mut outside = matrix();
        outside.arms[0].name = "../off".to_owned();
        assert!(check_names(&outside).is_err());
        assert!(check_names(&matrix()).is_ok());
    }
}
