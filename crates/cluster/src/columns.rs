//! Where the columns of a catalog are, by name.

use pgclinic_format::ColumnLayout;
use pgclinic_format::layout::CatalogColumn;

/// The columns of one catalog, for finding a column's index once and reading many rows.
#[derive(Clone, Debug)]
pub(crate) struct ColumnNames {
    names: Vec<String>,
    /// The walk.
    pub(crate) layouts: Vec<ColumnLayout>,
}

impl ColumnNames {
    /// From a built-in layout.
    pub(crate) fn built_in(columns: &[CatalogColumn]) -> Self {
        ColumnNames {
            names: columns
                .iter()
                .map(|column| column.name.to_owned())
                .collect(),
            layouts: columns.iter().map(|column| column.layout).collect(),
        }
    }

    /// From `pg_attribute`.
    pub(crate) fn read(columns: &[crate::relation::Column]) -> Self {
        ColumnNames {
            names: columns.iter().map(|column| column.name.clone()).collect(),
            layouts: columns.iter().map(|column| column.layout).collect(),
        }
    }

    /// The index of a column; `usize::MAX`, which no row has, when there is none of that name.
    pub(crate) fn index(&self, name: &str) -> usize {
        self.names
            .iter()
            .position(|known| known == name)
            .unwrap_or(usize::MAX)
    }
}
