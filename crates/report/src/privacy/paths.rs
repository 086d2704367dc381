//! Paths and addresses: what every cluster has stays, each other part of a path has a pseudonym.

use super::names::Names;
use super::pseudonyms::Kind;

/// What the name of a file may end with.
const ENDINGS: &[&str] = &[
    "arrow", "copy", "csv", "gz", "html", "json", "lz4", "parquet", "sql", "tar", "toml", "txt",
    "zst",
];

/// A path, part by part.
pub(super) fn redacted(names: &Names<'_>, path: &str) -> String {
    let parts = path.split('/').map(|part| component(names, part));
    parts.collect::<Vec<_>>().join("/")
}

/// A path, several of a chain, or the URL of a server.
pub(super) fn target(names: &Names<'_>, spec: &str) -> String {
    if let Some(url) = Url::parse(spec) {
        return url.redacted(names);
    }
    let parts = spec.split(" + ").map(|part| redacted(names, part));
    parts.collect::<Vec<_>>().join(" + ")
}

/// What a target names that sentences may repeat.
pub(super) fn learn_target(names: &mut Names<'_>, spec: &str) {
    if let Some(url) = Url::parse(spec) {
        for (kind, part) in url.parts() {
            names.learn(kind, part);
        }
        return;
    }
    for path in spec.split(" + ") {
        for part in path.split('/') {
            if !is_of_every_data_directory(names, part) {
                names.learn(Kind::Path, part);
            }
        }
    }
}

/// One part of a path.
pub(super) fn component(names: &Names<'_>, part: &str) -> String {
    if is_of_every_data_directory(names, part) {
        return part.to_owned();
    }
    let ending = part
        .rsplit_once('.')
        .filter(|(name, ending)| !name.is_empty() && ENDINGS.contains(ending));
    let pseudonym = |name: &str| match names.kind_of(name) {
        Some(Kind::Host) | None => names.pseudonym(Kind::Path, name),
        Some(kind) => names.pseudonym(kind, name),
    };
    match ending {
        Some((name, ending)) => format!("{}.{ending}", pseudonym(name)),
        None => pseudonym(part),
    }
}

fn is_of_every_data_directory(names: &Names<'_>, part: &str) -> bool {
    let is_dots = part.chars().all(|c| c == '.' || c == '~');
    let is_file = part.contains(['.', '_']) && names.vocabulary.has(part);
    let is_folder = matches!(part, "base" | "global");
    is_dots || is_folder || is_file && names.kind_of(part).is_none() || is_number(part)
}

/// `16384`, `16384_fsm.1`, `000000010000000000000002`, `PG_15_202209061`: what only counts.
pub(super) fn is_number(word: &str) -> bool {
    let suffixes = ["_fsm", "_vm", "_init", ".history", ".partial", ".backup"];
    let (stem, segment) = word.rsplit_once('.').unwrap_or((word, ""));
    let stem = if is_digits(segment) { stem } else { word };
    let stem = suffixes
        .iter()
        .find_map(|suffix| stem.strip_suffix(suffix))
        .unwrap_or(stem);
    let versioned = stem
        .strip_prefix("PG_")
        .and_then(|rest| rest.split_once('_'));
    let is_versioned =
        versioned.is_some_and(|(major, catalog)| is_digits(major) && is_digits(catalog));
    is_digits(stem) || is_versioned || is_hexadecimal(stem)
}

/// Digits alone, at least one.
pub(super) fn is_digits(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())
}

/// Long enough that no word is meant, or the name of a file of `pg_xact`, which is in capitals.
fn is_hexadecimal(word: &str) -> bool {
    let has_digit = word.chars().any(|c| c.is_ascii_digit());
    let is_capital = !word.chars().any(|c| c.is_ascii_lowercase());
    let is_long = word.len() >= 8 || word.len() == 4 && is_capital;
    has_digit && is_long && word.chars().all(|c| c.is_ascii_hexdigit())
}

/// `postgres://user@host:port/database?parameters`.
struct Url<'a> {
    scheme: &'a str,
    user: &'a str,
    /// Each with its port.
    hosts: Vec<(&'a str, &'a str)>,
    database: &'a str,
    parameters: &'a str,
}

impl<'a> Url<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (server, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = server.rsplit_once('@').unwrap_or(("", server));
        let (user, _password) = user.split_once(':').unwrap_or((user, ""));
        let hosts = hosts.split(',').map(|host| {
            let is_address = host.starts_with('[') && host.ends_with(']');
            let split = host.rsplit_once(':').filter(|_| !is_address);
            split.unwrap_or((host, ""))
        });
        Some(Url {
            scheme,
            user,
            hosts: hosts.collect(),
            database,
            parameters,
        })
    }

    fn parts(&self) -> Vec<(Kind, &'a str)> {
        let hosts = self.hosts.iter().map(|(host, _)| (Kind::Host, *host));
        let others = [(Kind::Role, self.user), (Kind::Database, self.database)];
        hosts.chain(others).collect()
    }

    fn redacted(&self, names: &Names<'_>) -> String {
        let mut text = format!("{}://", self.scheme);
        if !self.user.is_empty() {
            text.push_str(&names.named(Kind::Role, self.user));
            text.push('@');
        }
        let hosts = self.hosts.iter().map(|(host, port)| {
            let host = names.named(Kind::Host, host);
            if port.is_empty() {
                host
            } else {
                format!("{host}:{port}")
            }
        });
        text.push_str(&hosts.collect::<Vec<_>>().join(","));
        if !self.database.is_empty() {
            text.push('/');
            text.push_str(&names.named(Kind::Database, self.database));
        }
        if !self.parameters.is_empty() {
            text.push('?');
            text.push_str(&names.pseudonym(Kind::Name, self.parameters));
        }
        text
    }
}

/// The URL of a server that the text begins with.
pub(super) fn url_at(text: &str) -> Option<&str> {
    let is_url = ["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    let end = text.find(|c: char| c.is_whitespace() || "'\"`<>()".contains(c));
    is_url.then(|| text.get(..end.unwrap_or(text.len())))?
}
