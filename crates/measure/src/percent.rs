//! Shares as PostgreSQL's extensions print them.

use pgclinic_model::document::Figure;

/// Rounded to two digits behind the point, as `%.2f` does; nothing of nothing.
pub(super) fn percent(part: f64, whole: f64) -> Option<Figure> {
    (whole != 0.0).then(|| Figure::Real(rounded(100.0 * part / whole)))
}

/// What is left of a hundred.
pub(super) fn rest_percent(part: f64, whole: f64) -> Option<Figure> {
    (whole != 0.0).then(|| Figure::Real(rounded(100.0 - part / whole * 100.0)))
}

fn rounded(number: f64) -> f64 {
    format!("{number:.2}").parse().unwrap_or(number)
}
