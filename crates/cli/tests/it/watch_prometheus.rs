//! What is made for Prometheus and Grafana, in a real Prometheus (Debian's package): its own tool
//! on rules, recorded series and metrics, and the server itself with every query of every panel.
//!
//! `PGCLINIC_PROMETHEUS` names the directory of its programs; where it is set, nothing is skipped.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pgclinic_servers::Checksums;
use pgclinic_testkit::{as_primary, execute, started};
use serde_json::Value;

use crate::common::{pgclinic, skipped, text, url};
use crate::watch_background::{PATIENCE, Running, get};

/// One of its programs, if there is one.
fn program(name: &str) -> Option<PathBuf> {
    if let Some(home) = std::env::var_os("PGCLINIC_PROMETHEUS") {
        return Some(Path::new(&home).join(name));
    }
    let runs = Command::new(name).arg("--version").output();
    runs.is_ok().then(|| name.into())
}

/// Its complaints about names are ours to weigh; what it cannot parse is an error.
pub(crate) fn promtool_accepts(metrics: &str) {
    let Some(promtool) = program("promtool") else {
        return skipped("no promtool to check metrics with");
    };
    let mut promtool = Command::new(promtool);
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    let piped = promtool.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = piped.spawn().expect("promtool");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(metrics.as_bytes()).expect("metrics");
    drop(stdin);
    let code = child.wait().expect("an end").code();
    assert!(matches!(code, Some(0 | 3)), "promtool: {code:?}");
}

fn write_rules(home: &Path) {
    let rules = pgclinic(&["watch", "--rules"]).exits(0).out;
    fs::write(home.join("rules.yml"), rules).expect("a file");
}

#[test]
fn alerts_fire_on_recorded_series() {
    let Some(promtool) = program("promtool") else {
        return skipped("no promtool to test alerts with");
    };
    let home = tempfile::tempdir().expect("a directory");
    write_rules(home.path());
    let series = include_str!("../../../watch/alerts/series.yml");
    fs::write(home.path().join("series.yml"), series).expect("a file");
    let mut promtool = Command::new(promtool);
    promtool.args(["test", "rules", "series.yml"]);
    let ran = promtool.current_dir(home.path()).output();
    let ran = ran.expect("promtool");
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert!(ran.status.success(), "{out}{err}");
}

/// A server of its own that scrapes one address each second, ended on drop.
struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    fn scraping(program: &Path, target: SocketAddr, home: &Path) -> Self {
        write_rules(home);
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yml]\n\
             scrape_configs: [{{job_name: pgclinic, static_configs: [{{targets: ['{target}']}}]}}]\n"
        );
        fs::write(home.join("prometheus.yml"), config).expect("a file");
        let mut command = Command::new(program);
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
        command
            .arg("--web.listen-address=127.0.0.1:0")
            .current_dir(home);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("Prometheus");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut all = String::new();
        let address = lines.find_map(|line| {
            let line = line.ok()?;
            all += &line;
            let (_, address) = line.split_once("\"Listening on\" address=")?;
            address.trim().parse().ok()
        });
        // Whatever it logs after that has somebody who reads it.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.unwrap_or_else(|| panic!("no address: {all}"));
        Prometheus { child, address }
    }

    fn ask(&self, path: &str) -> Value {
        let body = get(self.address, path);
        let answer: Value = serde_json::from_str(&body).unwrap_or_default();
        assert!(
            answer["status"] == "success" || answer.is_null(),
            "{path}: {answer}"
        );
        answer
    }

    fn query(&self, expression: &str) -> Vec<Value> {
        let answer = self.ask(&format!("/api/v1/query?query={}", encoded(expression)));
        let result = answer["data"]["result"].as_array();
        result.cloned().unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Title and query of each panel, with what Grafana fills in.
fn panels() -> Vec<(String, String)> {
    let dashboard = pgclinic(&["watch", "--dashboard"]).exits(0).out;
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| {
        let title = panel["title"].as_str().expect("a title").to_owned();
        let targets = panel["targets"].as_array().into_iter().flatten();
        targets.map(move |target| {
            let query = target["expr"].as_str().expect("a query");
            let query = query.replace("$server", ".*");
            (title.clone(), query.replace("$__rate_interval", "20s"))
        })
    });
    targets.collect()
}

#[test]
fn every_query_of_every_panel_and_alert_runs_in_prometheus() {
    let Some(prometheus) = program("prometheus") else {
        return skipped("no Prometheus to run the queries of panels in");
    };
    let (copy, server) = started(18, Checksums::On, &as_primary().with("io_method", "worker"));
    execute(&server, "CHECKPOINT");
    let url = url(&server, "postgres");
    let [states, home] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let words = ["watch", &url, "--listen", "127.0.0.1:0", "--interval", "1"];
    let files = ["--scrub", "1GB/s", "--measure", "1GB/s", "--state"];
    let running = Running::new(&[&words[..], &files, &[text(states.path())]].concat());
    running.until("/metrics", |body| {
        body.contains("pgclinic_scrub_last_complete") && body.contains("pgclinic_measured_")
    });
    let prometheus = Prometheus::scraping(&prometheus, running.address, home.path());
    let end = Instant::now() + PATIENCE;
    // Two scrapes are needed for a rate.
    while prometheus
        .query("rate(pgclinic_commits_total[20s])")
        .is_empty()
    {
        assert!(Instant::now() < end, "nothing was scraped");
        std::thread::sleep(Duration::from_millis(200));
    }
    let metrics = get(running.address, "/metrics");
    let is_there = |metric: &str| metrics.contains(&format!("\n{metric}{{"));
    let mut filled = 0;
    for (title, query) in panels() {
        let found = prometheus.query(&query);
        let metric = query
            .split(['(', '{'])
            .find(|word| word.starts_with("pgclinic_"));
        let metric = metric.expect("a metric");
        assert_eq!(!found.is_empty(), is_there(metric), "{title}: {query}");
        assert!(
            found.len() <= 12 || metric == "pgclinic_up",
            "{title}: {query}"
        );
        filled += usize::from(!found.is_empty());
    }
    assert!(filled > 60, "{filled} panels have data");
    let servers = prometheus.ask("/api/v1/label/server/values?match[]=pgclinic_up");
    assert_eq!(servers["data"].as_array().map(Vec::len), Some(1));
    rules_are_healthy(&prometheus);
    drop(copy);
}

/// Every alert was evaluated, and none of an untouched server fires at once but of its age.
fn rules_are_healthy(prometheus: &Prometheus) {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = prometheus.ask("/api/v1/rules");
        let groups = answer["data"]["groups"].as_array().into_iter().flatten();
        let rules: Vec<&Value> = groups
            .flat_map(|own| own["rules"].as_array().into_iter().flatten())
            .collect();
        let unknown = rules.iter().filter(|own| own["health"] != "ok");
        let unknown: Vec<_> = unknown
            .map(|own| (&own["name"], &own["lastError"]))
            .collect();
        if rules.len() > 20 && unknown.is_empty() {
            let is_firing = |own: &&&Value| own["state"] == "firing";
            let firing: Vec<_> = rules
                .iter()
                .filter(is_firing)
                .map(|own| &own["name"])
                .collect();
            return assert!(firing.is_empty(), "{firing:?}");
        }
        assert!(Instant::now() < end, "{unknown:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}
