//! An experiment along an axis, as the laboratory writes it.

use serde_json::{Value, json};

const AXIS: [&str; 8] = ["0", "1", "5", "10", "20", "50", "100", "500"];

/// Seconds at each place: 13 does not care, 14 does.
fn seconds(arm: &str, at: usize, block: u32) -> f64 {
    let shape = [5.1, 6.2, 2.0, 1.4, 1.05, 0.84, 0.78, 0.71];
    let base = if arm == "14" {
        shape[at]
    } else {
        4.6 + 0.05 * f64::from(u32::try_from(at % 3).unwrap_or(0))
    };
    base * (1.0 + 0.02 * f64::from(block) - 0.03)
}

fn id(arm: &str, at: usize, block: u32) -> String {
    format!("b{block:02}-{arm}-concurrency_{}", AXIS[at])
}

fn runs() -> Vec<Value> {
    let mut runs = Vec::new();
    for block in 1..=3 {
        for arm in ["13", "14"] {
            for (at, value) in AXIS.iter().enumerate() {
                let id = id(arm, at, block);
                let failed = block == 3 && arm == "13" && at == 7;
                let seconds = seconds(arm, at, block);
                let metrics = if failed {
                    json!({})
                } else {
                    json!({"wall_s": seconds, "read_bytes": 123_456_789.0})
                };
                runs.push(json!({
                    "id": id, "machine": "bench1", "arm": arm, "point": {"maintenance_io_concurrency": value},
                    "block": block, "is_control": false, "outcome": if failed { "failed" } else { "done" },
                    "why": if failed { json!("FATAL:  the database system is shutting down") } else { Value::Null },
                    "metrics": metrics, "overlaps": if at == 2 { json!(["a checkpoint"]) } else { json!([]) },
                    "files": [format!("runs/{id}/run.json")], "elapsed_s": seconds + 3.0
                }));
            }
        }
    }
    runs
}

fn line(arm: &str) -> Value {
    let points: Vec<Value> = (0..AXIS.len())
        .map(|at| {
            let blocks: Vec<u32> = if arm == "13" && at == 7 { vec![1, 2] } else { vec![1, 2, 3] };
            let dots: Vec<Value> = blocks
                .iter()
                .map(|block| json!({"run": id(arm, at, *block), "value": seconds(arm, at, *block)}))
                .collect();
            let median = seconds(arm, at, 2);
            json!({"x": AXIS[at], "median": median, "interval": [median * 0.95, median * 1.05], "dots": dots})
        })
        .collect();
    json!({"arm": arm, "points": points})
}

fn effect(arm: &str) -> Value {
    let points: Vec<Value> = (0..AXIS.len())
        .map(|at| {
            let times = seconds(arm, 3, 2) / seconds(arm, at, 2);
            json!({"x": AXIS[at], "times": times, "interval": [times * 0.92, times * 1.09]})
        })
        .collect();
    json!({"name": arm, "against": format!("{arm} at 10"), "points": points})
}

fn published() -> Value {
    let values = [24.707, 29.84, 8.74, 5.777, 4.067, 3.353, 3.007, 2.763];
    let values: Vec<Value> = AXIS
        .iter()
        .zip(values)
        .map(|(x, value)| json!([x, value]))
        .collect();
    let times = [0.234, 0.194, 0.661, 1.0, 1.42, 1.723, 1.921, 2.091];
    let times: Vec<Value> = AXIS
        .iter()
        .zip(times)
        .map(|(x, value)| json!([x, value]))
        .collect();
    json!({"name": "14", "source": "a quick benchmark, 2024; a laptop", "values": values, "against": "14 at 10", "times": times})
}

fn cards() -> Value {
    let side = |at: &str| json!({"arm": "14", "point": {"maintenance_io_concurrency": at}});
    json!([
        {
            "word": "better",
            "headline": "raise maintenance_io_concurrency from 10 to 50: ANALYZE 1.7 times faster [1.5, 1.9] on this disk, cold",
            "metric": "wall_s", "baseline": side("10"), "candidate": side("50"),
            "effect": {"times": 1.68, "times_interval": [1.52, 1.86], "baseline": 1.41, "candidate": 0.84, "confidence": 0.95},
            "basis": "ratios inside 3 blocks, mean by Student, its spread not below that of control runs; errs in 5 % of cases at most",
            "apply": ["ALTER SYSTEM SET maintenance_io_concurrency = 50;", "SELECT pg_reload_conf();"],
            "more_minutes": null,
            "published": {"word": "same", "sentence": "this machine shows the same effect: published 1.7 times faster, here 1.7 times faster", "source": "a quick benchmark, 2024; a laptop"},
            "runs": ["b01-14-concurrency_10", "b01-14-concurrency_50"]
        },
        {
            "word": "undecided",
            "headline": "whether to raise maintenance_io_concurrency from 50 to 500 is open: ANALYZE between 2.1 % slower and 1.3 times faster; about 14 more minutes may tell",
            "metric": "wall_s", "baseline": side("50"), "candidate": side("500"),
            "effect": null, "basis": "2 of 3 blocks have both sides", "apply": [], "more_minutes": 14.0,
            "published": null, "runs": []
        }
    ])
}

/// Two arms along an axis that no scale fits, with a failed run.
pub(crate) fn experiment() -> Value {
    let metric = json!({"name": "wall_s", "words": "time of an ANALYZE", "unit": "s", "better": "lower", "timing": true});
    let axis = json!({"name": "maintenance_io_concurrency", "unit": "", "values": AXIS});
    let bytes = json!({"name": "read_bytes", "words": "read from the disk", "unit": "bytes", "better": "lower", "timing": false});
    let one = |arm: &str| json!({"arm": arm, "points": [{"x": "", "median": 123_456_789.0, "interval": null, "dots": [{"run": id(arm, 0, 1), "value": 123_456_789.0}]}]});
    json!({
        "schema": "pgclinic.lab/1", "tool": {"name": "pgclinic", "version": "0.1.0"},
        "experiment": "analyze-prefetch", "question": "What does maintenance_io_concurrency buy?",
        "plan": {"hash": "0123456789abcdef", "seed": 7, "scale": "quick", "blocks": 3, "alpha": 0.05, "margin": 0.02},
        "folder": "/var/tmp/lab/analyze-prefetch", "command": "pgclinic lab run analyze-prefetch --seed 7",
        "started": "2026-11-21T10:00:00Z", "complete": false,
        "machines": [{"name": "bench1", "environment": {"cpu": "Intel Xeon, 2 cores", "kernel": "6.1.0", "virtual machine": "kvm: the host's cache is out of reach"}}],
        "arms": [
            {"name": "13", "version": "PostgreSQL 13.16", "settings": {"shared_buffers": "128MB"}, "environment": {"jit": "off"}},
            {"name": "14", "version": "PostgreSQL 14.13", "settings": {"shared_buffers": "128MB"}, "environment": {"jit": "on"}}
        ],
        "cards": cards(),
        "figures": [
            {"metric": metric, "primary": true, "held": {}, "axis": axis, "lines": [line("13"), line("14")],
             "effects": [effect("13"), effect("14")], "noise": {"times": 1.04, "pairs": 3}, "published": [published()]},
            {"metric": bytes, "primary": false, "held": {"maintenance_io_concurrency": "0"}, "axis": null,
             "lines": [one("13"), one("14")], "effects": [], "noise": null, "published": []}
        ],
        "remarks": ["the machine is virtual: the host's cache is out of reach"],
        "runs": runs(), "elapsed_s": 734.0
    })
}
