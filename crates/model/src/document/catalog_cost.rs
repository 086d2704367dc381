//! What the tables of a script cost the system catalogs, `pgclinic.catalog-cost/1`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Tool;

/// Schema of the document.
pub const CATALOG_COST_SCHEMA: &str = "pgclinic.catalog-cost/1";

/// Rows that a script writes into the catalogs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CatalogCostDocument {
    /// `pgclinic.catalog-cost/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The script, as the person named it.
    pub script: String,
    /// The server that ran it.
    pub server_version: String,
    /// Statement by statement.
    pub statements: Vec<StatementCost>,
    /// What the whole script costs, by catalog; catalogs that it leaves alone are absent.
    pub catalogs: Vec<CatalogCost>,
    /// Where the rows of a page come from: a target, a number that was given, or the server that
    /// ran the script.
    pub rows_per_page_of: String,
    /// The script, as often as the traffic asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projection: Vec<ProjectedTraffic>,
    /// Seconds.
    pub elapsed_s: f64,
}

/// One statement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StatementCost {
    /// Line of the script, from 1.
    pub line: u64,
    /// Its first words.
    pub statement: String,
    /// Rows that it adds, by catalog; negative where it removes some.
    pub rows: BTreeMap<String, i64>,
}

/// One catalog.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CatalogCost {
    /// Its name.
    pub catalog: String,
    /// Rows that the script adds.
    pub rows: i64,
    /// Rows on a page of it.
    pub rows_per_page: f64,
}

/// A line of the traffic, for every catalog that the script writes into.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProjectedTraffic {
    /// What the line is called.
    pub label: String,
    /// How often the script runs.
    pub times: u64,
    /// By catalog.
    pub catalogs: Vec<ProjectedCatalog>,
}

/// What a catalog grows by, if nobody cleans up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProjectedCatalog {
    /// Its name.
    pub catalog: String,
    /// Rows.
    pub rows: u64,
    /// Pages.
    pub pages: u64,
    /// Bytes.
    pub bytes: u64,
}

impl CatalogCostDocument {
    /// What so many runs of the script write.
    pub fn project(&self, label: &str, times: u64, block_bytes: u64) -> ProjectedTraffic {
        let catalogs = self.catalogs.iter().map(|own| {
            let rows = u64::try_from(own.rows).unwrap_or(0).saturating_mul(times);
            let pages = crate::whole((rows as f64 / own.rows_per_page.max(1.0)).ceil());
            ProjectedCatalog {
                catalog: own.catalog.clone(),
                rows,
                pages,
                bytes: pages.saturating_mul(block_bytes),
            }
        });
        ProjectedTraffic {
            label: label.to_owned(),
            times,
            catalogs: catalogs.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 173 rows a login and 23 rows a page, as published.
    #[test]
    fn the_published_projection_comes_out_of_the_published_rows() {
        let attribute = CatalogCost {
            catalog: "pg_attribute".into(),
            rows: 173,
            rows_per_page: 23.0,
        };
        let document = CatalogCostDocument {
            schema: CATALOG_COST_SCHEMA.into(),
            tool: Tool::this(),
            script: "shop.sql".into(),
            server_version: "15.18".into(),
            statements: Vec::new(),
            catalogs: vec![attribute],
            rows_per_page_of: "23".into(),
            projection: Vec::new(),
            elapsed_s: 0.0,
        };
        let said = [1, 1_000, 60_000, 100_000].map(|times| {
            let projected = document.project("", times, 8192);
            let own = projected.catalogs.first().expect("a catalog");
            (
                own.rows,
                own.pages,
                format!("{:.2}", own.bytes as f64 / 1_048_576.0),
            )
        });
        let published = [
            (173, 8, "0.06".to_owned()),
            (173_000, 7_522, "58.77".to_owned()),
            (10_380_000, 451_305, "3525.82".to_owned()),
            (17_300_000, 752_174, "5876.36".to_owned()),
        ];
        assert_eq!(said, published);
    }
}
