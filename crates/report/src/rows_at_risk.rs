//! Rows that damage puts at risk, each counted once.

use std::collections::BTreeMap;

use pgclinic_model::Severity;
use pgclinic_model::document::Finding;

use crate::words;

/// Rows at risk: a sum, and whether there may be more.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Rows {
    /// Rows that are known to be at risk.
    pub(crate) known: u64,
    /// Some findings cannot tell.
    pub(crate) open: bool,
}

impl Rows {
    /// `412 rows at risk`, `412+ rows at risk`, `rows at risk unknown`.
    pub(crate) fn words(self) -> String {
        match (self.known, self.open) {
            (0, true) => "rows at risk unknown".into(),
            (1, false) => "1 row at risk".into(),
            (rows, true) => format!("{}+ rows at risk", words::count(rows)),
            (rows, false) => format!("{} rows at risk", words::count(rows)),
        }
    }
}

impl Rows {
    /// `412`, `412+`, `unknown`.
    pub(crate) fn number(self) -> String {
        match (self.known, self.open) {
            (0, true) => "unknown".into(),
            (rows, true) => format!("{}+", words::count(rows)),
            (rows, false) => words::count(rows),
        }
    }
}

/// Rows at risk by damage. Findings that name the same item, or a page and its items, are about
/// the same rows.
pub(crate) fn rows_at_risk(findings: &[&Finding]) -> Rows {
    #[derive(Default)]
    struct PageRows {
        page: u64,
        items: BTreeMap<u16, u64>,
        open: bool,
    }
    let mut pages: BTreeMap<_, PageRows> = BTreeMap::new();
    for finding in findings.iter().filter(|f| f.severity == Severity::Damage) {
        let page = pages
            .entry((finding.place.fork, finding.place.block))
            .or_default();
        let Some(rows) = finding.at_risk.rows else {
            page.open = true;
            continue;
        };
        match finding.place.item {
            Some(item) => {
                let known = page.items.entry(item).or_default();
                *known = rows.max(*known);
            }
            None => page.page = rows.max(page.page),
        }
    }
    let sum = |page: &PageRows| page.items.values().copied().fold(0, u64::saturating_add);
    let known = |page: &PageRows| page.page.max(sum(page));
    Rows {
        known: pages.values().map(known).fold(0, u64::saturating_add),
        // A finding that puts no row at risk says nothing of what another one cannot count.
        open: pages.values().any(|page| page.open && known(page) == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &str, block: u32, rows: Option<u64>) -> Finding {
        let place = serde_json::json!({"path": "base/5/1", "kind": "table", "block": block});
        let finding = serde_json::json!({
            "id": id, "cause": null, "caused_by": null, "rule": "r", "severity": "damage",
            "place": place, "message": "m", "facts": {}, "server_says": null,
            "at_risk": {"rows": rows}, "remedies": []
        });
        serde_json::from_value(finding).expect("a finding")
    }

    #[test]
    fn no_row_by_one_finding_is_no_answer_to_another() {
        let findings = [finding("a", 0, Some(0)), finding("b", 0, None)];
        let all: Vec<_> = findings.iter().collect();
        assert_eq!(rows_at_risk(&all).words(), "rows at risk unknown");
    }

    #[test]
    fn rows_of_one_page_are_counted_once() {
        let findings = [
            finding("a", 0, Some(12)),
            finding("b", 0, Some(7)),
            finding("c", 1, None),
        ];
        let all: Vec<_> = findings.iter().collect();
        assert_eq!(
            rows_at_risk(&all),
            Rows {
                known: 12,
                open: true
            }
        );
    }
}
