//! Shares as PostgreSQL's extensions print them.

use pgclinic_model::document::Figure;

/// Rounded to two digits behind the point, as `%.2f` does; nothing of nothing.
pub(super) fn percent(part: f64, whole: f64) -> Option<Figure> {
    (whole != 0.0).then(|| Figure::Real(rounded(100.0 * part / whole)))
}

/// The same of a relation's bytes, of which an empty one has none.
pub(super) fn percent_of(part: u64, length: u64) -> Option<Figure> {
    percent(part as f64, length as f64).or(Some(Figure::Real(0.0)))
}

/// How full something is whose room has so many bytes left.
pub(super) fn density(free: u64, room: u64) -> Option<Figure> {
    percent(room.saturating_sub(free) as f64, room as f64)
}

/// What is left of a hundred.
pub(super) fn rest_percent(part: f64, whole: f64) -> Option<Figure> {
    (whole != 0.0).then(|| Figure::Real(rounded(100.0 - part / whole * 100.0)))
}

fn rounded(number: f64) -> f64 {
    format!("{number:.2}").parse().unwrap_or(number)
}
