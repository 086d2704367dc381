//! The register of formats.

use crate::format::Format;

pgclinic_format::registry! {
    /// Every format, in the order of `--help`; the first is the default.
    pub static FORMATS: [Format] = [
        text::Text,
        json::Json,
        html::Html,
        prometheus::Prometheus,
        nagios::Nagios,
        jsonl::JsonLines,
        sarif::Sarif,
        junit::JUnit,
    ];
}

/// The format that `--format` calls `name`.
pub fn by_name(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}
