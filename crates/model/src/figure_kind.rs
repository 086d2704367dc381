//! What the figures of a measure are called and what they count.

/// What a figure is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FigureKind {
    /// Its key in JSON.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// One line for people.
    pub summary: &'static str,
}

/// What a figure counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things.
    Number,
    /// Of a hundred.
    Percent,
    /// Milliseconds since 1970.
    Time,
    /// Days since 1970.
    Day,
    /// Places in a picture.
    Place,
    /// A statement.
    Statement,
}

/// Figures with the section of the document that holds them, in the order in which people read
/// them.
pub type FigureList = Vec<(&'static str, &'static FigureKind)>;

/// Every figure that a measure gives.
#[derive(Clone, Default, Debug)]
pub struct FigureKinds {
    /// Those of a relation.
    pub of_relations: FigureList,
    /// Those of a column.
    pub of_columns: FigureList,
    /// Those of a database.
    pub of_databases: FigureList,
}
