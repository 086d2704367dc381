//! A dashboard of Grafana, made of the register: a row for each family, a panel for each sign.

use pgclinic_model::document::{SignKind, SignUnit};
use serde_json::{Value, json};

use crate::sign::{Gather, Sign};
use crate::signs::FAMILIES;

/// Columns of Grafana's grid.
const GRID: u64 = 24;
const PANEL_WIDTH: u64 = 8;
const PANEL_HEIGHT: u64 = 7;

/// The dashboard, as JSON for Grafana's import.
pub fn dashboard() -> String {
    let mut panels = Vec::new();
    let mut top = 0;
    for (family, signs) in FAMILIES {
        panels.push(json!({
            "type": "row", "title": family.title(), "collapsed": false, "id": panels.len() + 1,
            "gridPos": {"h": 1, "w": GRID, "x": 0, "y": top}, "panels": [],
        }));
        top += 1;
        let mut left = 0;
        for sign in *signs {
            if left + PANEL_WIDTH > GRID {
                (left, top) = (0, top + PANEL_HEIGHT);
            }
            let place = json!({"h": PANEL_HEIGHT, "w": PANEL_WIDTH, "x": left, "y": top});
            let id = panels.len() + 1;
            panels.push(panel(sign, id, &place));
            left += PANEL_WIDTH;
        }
        top += PANEL_HEIGHT;
    }
    let dashboard = json!({
        "title": "pgclinic watch", "uid": "pgclinic-watch", "schemaVersion": 39, "version": 1, "editable": true,
        "tags": ["postgresql", "pgclinic"], "time": {"from": "now-6h", "to": "now"}, "refresh": "30s",
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
            {"name": "server", "type": "query", "label": "Server", "multi": true, "includeAll": true, "allValue": ".*",
             "datasource": {"type": "prometheus", "uid": "${datasource}"}, "refresh": 2,
             "query": {"query": "label_values(pgclinic_up, server)", "refId": "server"}},
        ]},
        "panels": panels,
    });
    format!("{dashboard:#}\n")
}

fn panel(sign: &Sign, id: usize, place: &Value) -> Value {
    let (normal, meaning, settled_by) = (sign.normal, sign.meaning, sign.settled_by);
    json!({
        "type": "timeseries", "id": id, "gridPos": place, "title": sign.name,
        "description": format!("{}\n\nNormal: {normal}\n\n{meaning}\n\nSettled by: {settled_by}", sign.summary),
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "fieldConfig": {"defaults": {"unit": unit(sign), "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [{"refId": "A", "expr": query(sign), "legendFormat": legend(sign)}],
    })
}

/// The query of a panel: rates of what only grows, and as few series as a person reads.
fn query(sign: &Sign) -> String {
    const SERIES_MAX: u64 = 12;
    let metric = format!("{}{{server=~\"$server\"}}", sign.metric);
    let figure = match (sign.kind, sign.unit) {
        (SignKind::Counter, _) => format!("rate({metric}[$__rate_interval])"),
        (SignKind::Gauge, SignUnit::Moment) => format!("{metric} * 1000"),
        (SignKind::Gauge, _) => metric,
    };
    let labels: Vec<&str> = std::iter::once("server")
        .chain(sign.labels().iter().copied())
        .collect();
    let by = match (sign.labels().is_empty(), sign.gather) {
        (true, _) => return figure,
        (false, Gather::Sum) => "sum",
        (false, Gather::Max) => "max",
        (false, Gather::Min) => "min",
    };
    format!(
        "topk({SERIES_MAX}, {by} by ({}) ({figure}))",
        labels.join(", ")
    )
}

fn legend(sign: &Sign) -> String {
    let labels = std::iter::once(&"server").chain(sign.labels());
    let labels: Vec<String> = labels.map(|label| format!("{{{{{label}}}}}")).collect();
    labels.join(" ")
}

/// As Grafana calls it.
fn unit(sign: &Sign) -> &'static str {
    match (sign.unit, sign.kind) {
        (SignUnit::Count, SignKind::Gauge) => "short",
        (SignUnit::Count, SignKind::Counter) => "ops",
        (SignUnit::Bytes, SignKind::Gauge) => "bytes",
        (SignUnit::Bytes, SignKind::Counter) => "Bps",
        (SignUnit::Seconds, _) => "s",
        (SignUnit::Moment, _) => "dateTimeAsIso",
        (SignUnit::Ratio, _) => "percentunit",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signs::signs;

    #[test]
    fn every_sign_has_a_panel_with_a_query() {
        let value: Value = serde_json::from_str(&dashboard()).expect("JSON");
        let panels = value["panels"].as_array().expect("panels");
        for sign in signs() {
            let own = panels.iter().find(|panel| panel["title"] == sign.name);
            let query = own.and_then(|panel| panel["targets"][0]["expr"].as_str());
            assert!(
                query.is_some_and(|query| query.contains(sign.metric)),
                "{}",
                sign.name
            );
        }
        let is_right = |panel: &&Value| {
            let place = &panel["gridPos"];
            place["x"].as_u64().unwrap_or(99) + place["w"].as_u64().unwrap_or(99) <= GRID
        };
        assert_eq!(panels.iter().filter(is_right).count(), panels.len());
    }
}
