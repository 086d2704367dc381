//! Lines of jsonlog (jsonlog.c, from 15 on), also when an operator or a container runtime puts them
//! into an object of its own.

use serde_json::{Map, Value};

use super::entries::LogEntry;

/// Objects around the server's own: `{"record": {…}}` is one.
const DEPTH_MAX: usize = 3;

/// What a line of JSON is.
pub(super) enum JsonLine {
    /// An entry.
    Entry(Box<LogEntry>),
    /// Another program's wrapping around a line of text.
    Text(String),
}

/// Reads one line; `None` when it is no JSON object or says nothing of a server.
pub(super) fn json_line(line: &str) -> Option<JsonLine> {
    let object = line
        .starts_with('{')
        .then(|| serde_json::from_str(line).ok())??;
    read(&object, DEPTH_MAX)
}

fn read(object: &Map<String, Value>, depth: usize) -> Option<JsonLine> {
    if let Some(entry) = entry(object) {
        return Some(JsonLine::Entry(Box::new(entry)));
    }
    if let Some(text) = text(object, &["log", "MESSAGE"]) {
        return Some(JsonLine::Text(text));
    }
    let inner = object.values().filter_map(Value::as_object);
    inner
        .take_while(|_| depth > 0)
        .find_map(|object| read(object, depth - 1))
}

fn entry(object: &Map<String, Value>) -> Option<LogEntry> {
    Some(LogEntry {
        time: text(object, &["timestamp", "log_time"]),
        severity: text(object, &["error_severity"])?,
        sqlstate: text(object, &["state_code", "sql_state_code"]),
        database: text(object, &["dbname", "database_name"]),
        message: text(object, &["message"])?,
        detail: text(object, &["detail"]).unwrap_or_default(),
        context: text(object, &["context"]).unwrap_or_default(),
    })
}

/// The first of these keys that has a text.
fn text(object: &Map<String, Value>, keys: &[&str]) -> Option<String> {
    let values = keys.iter().filter_map(|key| object.get(*key)?.as_str());
    values
        .map(|value| value.trim_end().to_owned())
        .find(|value| !value.is_empty())
}
