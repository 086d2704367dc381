//! What a log says of storage: each message once per cause, with how often, when and where.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::entries::LogEntry;
use crate::server_messages::explain_logged;
use crate::server_messages::facts::Facts;
use crate::server_messages::message::Match;
use crate::server_messages::{FIRST_LINE, Names, Resolved, SERVER_MESSAGES, place, visible};

/// Causes that are distinguished; entries of more are counted.
const CAUSES_MAX: usize = 1000;
/// Blocks that are listed for a cause.
const BLOCKS_MAX: usize = 8;
/// Shapes of messages that no page knows, remembered so that they are looked up only once.
const SHAPES_MAX: usize = 64 * 1024;
/// Messages of storage's SQLSTATEs, or PANICs, that no page knows and that are listed.
const UNKNOWN_MAX: usize = 20;
/// Bytes of a message that are shown.
const SHOWN_BYTES_MAX: usize = 300;

/// What a server logs of every statement when it is told to; it quotes what users write.
const OF_STATEMENTS: &[&str] = &[
    "statement: ",
    "duration: ",
    "execute ",
    "parse ",
    "bind ",
    "AUDIT: ",
];

/// One message about one thing.
#[derive(Clone, Debug)]
pub struct CauseInLog {
    /// The page, and what the first entry names.
    pub found: Match,
    /// Entries.
    pub count: u64,
    /// Time of the first one that has a time.
    pub first_time: Option<String>,
    /// Time of the last one that has a time.
    pub last_time: Option<String>,
    /// Database of the first one, where the log has it.
    pub database: Option<String>,
    /// The first entry's severity and message.
    pub example: String,
    blocks: BTreeSet<u32>,
    has_more_blocks: bool,
}

/// The account of a log.
#[derive(Debug, Default)]
pub struct LogSummary {
    entries: u64,
    first_time: Option<String>,
    last_time: Option<String>,
    /// By place of the page in the register, then by what it is about.
    causes: BTreeMap<(usize, String), CauseInLog>,
    /// Of causes that had no more room.
    entries_left_out: u64,
    unknown: BTreeMap<String, u64>,
    unknown_left_out: u64,
    shapes_without_page: HashSet<u64>,
}

/// What an entry means for storage; nothing where it means nothing, or quotes what a user wrote.
pub fn explained(entry: &LogEntry) -> Option<Match> {
    (!quotes_a_statement(entry))
        .then(|| explain_logged(entry))
        .flatten()
}

fn quotes_a_statement(entry: &LogEntry) -> bool {
    let mut starts = OF_STATEMENTS.iter();
    starts.any(|start| entry.message.starts_with(start))
}

impl LogSummary {
    /// Counts an entry in.
    pub fn add(&mut self, entry: &LogEntry) {
        self.entries += 1;
        note_time(&mut self.first_time, &mut self.last_time, entry);
        if quotes_a_statement(entry) {
            return;
        }
        let shape = shape(entry);
        if self.shapes_without_page.contains(&shape) && !is_of_storage(entry) {
            return;
        }
        match explain_logged(entry) {
            Some(found) => self.add_found(found, entry),
            None if is_of_storage(entry) => self.add_unknown(entry),
            None if self.shapes_without_page.len() < SHAPES_MAX => {
                self.shapes_without_page.insert(shape);
            }
            None => {}
        }
    }

    fn add_found(&mut self, found: Match, entry: &LogEntry) {
        let name = found.message.name;
        let place = SERVER_MESSAGES
            .iter()
            .position(|message| message.name == name);
        let key = (place.unwrap_or(usize::MAX), subject(&found.facts));
        if !self.causes.contains_key(&key) && self.causes.len() >= CAUSES_MAX {
            self.entries_left_out += 1;
            return;
        }
        let block = found.facts.block.or(found.facts.block_in_file);
        let cause = self
            .causes
            .entry(key)
            .or_insert_with(|| new_cause(found, entry));
        cause.count += 1;
        note_time(&mut cause.first_time, &mut cause.last_time, entry);
        if let Some(block) = block {
            cause.add_block(block);
        }
    }

    fn add_unknown(&mut self, entry: &LogEntry) {
        let example = example(entry);
        if self.unknown.len() < UNKNOWN_MAX || self.unknown.contains_key(&example) {
            *self.unknown.entry(example).or_default() += 1;
        } else {
            self.unknown_left_out += 1;
        }
    }

    /// The causes, what explains most first.
    pub fn causes(&self) -> impl Iterator<Item = &CauseInLog> {
        self.causes.values()
    }

    /// The message, when the log is a paste that holds one of storage and no other entry.
    pub fn only_entry(&self) -> Option<&Match> {
        let cause = self.causes.values().next();
        cause
            .filter(|_| self.entries == 1)
            .map(|cause| &cause.found)
    }

    /// The account for people. `resolve` looks up what an entry names, where there is a cluster.
    pub fn render(
        &self,
        lines: u64,
        mut resolve: impl FnMut(&Facts) -> Option<Resolved>,
    ) -> String {
        let overview = self.overview(lines);
        if self.about() == 0 {
            return format!("Nothing here is about storage.\n\n{overview}\n");
        }
        let mut text = format!("{FIRST_LINE}\n\n{overview}\n");
        for cause in self.causes() {
            let resolved = resolve(&cause.found.facts);
            text.push_str(&cause.render(resolved.as_ref()));
        }
        text.push_str(&self.render_rest());
        text
    }

    /// Entries about storage.
    fn about(&self) -> u64 {
        self.causes().map(|cause| cause.count).sum::<u64>()
            + self.entries_left_out
            + self.unknown.values().sum::<u64>()
            + self.unknown_left_out
    }

    fn overview(&self, lines: u64) -> String {
        let about = self.about();
        let span = span(self.first_time.as_deref(), self.last_time.as_deref());
        let causes = self.causes.len();
        format!(
            "{} with {}{span}: {about} about storage, of {}.",
            counted(lines, "line"),
            counted(self.entries, "entry"),
            counted(u64::try_from(causes).unwrap_or(u64::MAX), "cause"),
        )
    }

    fn render_rest(&self) -> String {
        let mut text = String::new();
        if !self.unknown.is_empty() {
            text.push_str("\n# not in the textbook\n\n");
        }
        for (example, count) in &self.unknown {
            text.push_str(&format!("- {}: {example}\n", times(*count)));
        }
        for (count, what) in [
            (self.unknown_left_out, "that no page knows"),
            (self.entries_left_out, "of further causes"),
        ] {
            if count > 0 {
                text.push_str(&format!(
                    "\n{} {what} are not listed.\n",
                    counted(count, "entry")
                ));
            }
        }
        text
    }
}

impl CauseInLog {
    fn add_block(&mut self, block: u32) {
        if self.blocks.len() < BLOCKS_MAX {
            self.blocks.insert(block);
        } else if !self.blocks.contains(&block) {
            self.has_more_blocks = true;
        }
    }

    fn render(&self, resolved: Option<&Resolved>) -> String {
        let Match { message, facts } = &self.found;
        let names = Names { facts, resolved };
        let span = span(self.first_time.as_deref(), self.last_time.as_deref());
        let mut lines = vec![
            String::new(),
            format!("# {}: {}{span}", message.name, times(self.count)),
            String::new(),
            format!("- first logged: {}", self.example),
        ];
        lines.extend(place(&names));
        if resolved.is_none() {
            lines.extend(self.named(&names));
        }
        lines.extend(self.listed_blocks());
        let step = message.next_steps(&names).into_iter().next();
        lines.extend(step.map(|step| format!("- next: {}", visible(&step))));
        lines.push(format!(
            "- what it means: `pgclinic explain {}`",
            message.name
        ));
        lines.join("\n") + "\n"
    }

    /// What it is about, in the log's own words.
    fn named(&self, names: &Names<'_>) -> Option<String> {
        let subject = subject(names.facts);
        let database = self.database.as_ref();
        let of = database.map_or_else(String::new, |name| {
            format!(" of database {}", visible(name))
        });
        (!subject.is_empty()).then(|| format!("- about: {}{of}", visible(&subject)))
    }

    fn listed_blocks(&self) -> Option<String> {
        let blocks: Vec<String> = self.blocks.iter().map(u32::to_string).collect();
        let more = if self.has_more_blocks {
            " and more"
        } else {
            ""
        };
        (blocks.len() > 1).then(|| format!("- blocks: {}{more}", blocks.join(", ")))
    }
}

fn new_cause(found: Match, entry: &LogEntry) -> CauseInLog {
    CauseInLog {
        found,
        count: 0,
        first_time: None,
        last_time: None,
        database: entry.database.clone(),
        example: example(entry),
        blocks: BTreeSet::new(),
        has_more_blocks: false,
    }
}

fn note_time(first: &mut Option<String>, last: &mut Option<String>, entry: &LogEntry) {
    if entry.time.is_some() {
        if first.is_none() {
            first.clone_from(&entry.time);
        }
        last.clone_from(&entry.time);
    }
}

/// What the entries of one cause have in common: the relation, or the file that is no relation's.
fn subject(facts: &Facts) -> String {
    let path = facts.relation_path.as_deref().map(without_segment);
    let names = [
        path,
        facts.toast_relation.as_deref(),
        facts.sequence.as_deref(),
        facts.relation_name.as_deref(),
        facts.file.as_deref(),
    ];
    let name = names.into_iter().flatten().next().map(str::to_owned);
    let oid = facts.relation_oid.map(|oid| format!("OID {oid}"));
    name.or(oid).unwrap_or_default()
}

/// `base/5/16384` of `base/5/16384.1`: damage of one relation is one cause.
fn without_segment(path: &str) -> &str {
    match path.rsplit_once('.') {
        Some((relation, segment)) if segment.bytes().all(|byte| byte.is_ascii_digit()) => relation,
        _ => path,
    }
}

/// Its state or its severity says that it matters, whatever its words are.
fn is_of_storage(entry: &LogEntry) -> bool {
    let state = entry.sqlstate.as_deref().unwrap_or_default();
    entry.severity == "PANIC" || state.starts_with("XX") || state.starts_with("58")
}

/// The same for messages that differ in numbers and in names in quotes.
fn shape(entry: &LogEntry) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut quote = None;
    for byte in entry.message.bytes() {
        match (quote, byte) {
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) | (None, b'0'..=b'9') => {}
            (None, b'"') => quote = Some(byte),
            (None, byte) => byte.hash(&mut hasher),
        }
    }
    entry.sqlstate.hash(&mut hasher);
    hasher.finish()
}

/// Severity and message in one line, safe for a terminal.
fn example(entry: &LogEntry) -> String {
    let line = entry.message.lines().next().unwrap_or_default();
    let end = line.floor_char_boundary(SHOWN_BYTES_MAX);
    let message = visible(line.get(..end).unwrap_or(line));
    let dots = if end < line.len() { "…" } else { "" };
    let state = entry
        .sqlstate
        .as_ref()
        .map_or_else(String::new, |state| format!("{state}: "));
    match entry.severity.as_str() {
        "" => format!("{message}{dots}"),
        severity => format!("{severity}:  {}{message}{dots}", visible(&state)),
    }
}

fn span(first: Option<&str>, last: Option<&str>) -> String {
    match (first, last) {
        (Some(first), Some(last)) if first == last => format!(", at {}", visible(first)),
        (Some(first), Some(last)) => format!(", from {} to {}", visible(first), visible(last)),
        _ => String::new(),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

fn counted(count: u64, noun: &str) -> String {
    match (count, noun) {
        (1, noun) => format!("1 {noun}"),
        (count, "entry") => format!("{count} entries"),
        (count, noun) => format!("{count} {noun}s"),
    }
}
