//! What a message names: files, blocks, transactions, relations.

use pgclinic_cluster::RelationFileName;
use pgclinic_format::{BlockNo, MultiXactId, Oid, Xid};

use super::pasted::Pasted;
use super::pattern;

/// What stands in a message. Everything is as the text has it: nothing was looked up.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    /// `base/16384/28751`, with fork and segment where the message had them.
    pub relation_path: Option<String>,
    /// Any other file, such as `pg_xact/0C7E`.
    pub file: Option<String>,
    /// Block through all segments of the fork.
    pub block: Option<BlockNo>,
    /// Block within the file, as `pg_checksums` and `pg_basebackup` count.
    pub block_in_file: Option<BlockNo>,
    /// Half-open range of blocks.
    pub blocks: Option<[u64; 2]>,
    /// Line pointer number.
    pub item: Option<u16>,
    /// Transaction.
    pub xid: Option<Xid>,
    /// Multixact.
    pub multixact: Option<MultiXactId>,
    /// Number of the value in the TOAST relation.
    pub toast_value: Option<Oid>,
    /// `pg_toast_29580`.
    pub toast_relation: Option<String>,
    /// Name of a sequence, with its schema if the message has one.
    pub sequence: Option<String>,
    /// Name of a table or index, with its schema if the message has one.
    pub relation_name: Option<String>,
    /// OID of a relation.
    pub relation_oid: Option<Oid>,
    /// The checksum in the page's header.
    pub expected_checksum: Option<u16>,
    /// The checksum that the bytes give.
    pub computed_checksum: Option<u16>,
    /// A size that was asked for, in bytes.
    pub bytes: Option<u64>,
    /// First of a range that is not closed yet.
    first: Option<BlockNo>,
}

/// What a brace in a template catches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    Path,
    File,
    Block,
    BlockInFile,
    First,
    Last,
    Item,
    Xid,
    Multi,
    ToastValue,
    ToastRelation,
    Sequence,
    Relation,
    DatabaseRelation,
    Oid,
    Expected,
    Computed,
    ExpectedHex,
    ComputedHex,
    Bytes,
    Number,
    Word,
}

impl Slot {
    pub(super) fn named(name: &str) -> Option<Slot> {
        Some(match name {
            "path" => Slot::Path,
            "file" => Slot::File,
            "block" => Slot::Block,
            "block_in_file" => Slot::BlockInFile,
            "first" => Slot::First,
            "last" => Slot::Last,
            "item" => Slot::Item,
            "xid" => Slot::Xid,
            "multi" => Slot::Multi,
            "toast_value" => Slot::ToastValue,
            "toast_relation" => Slot::ToastRelation,
            "sequence" => Slot::Sequence,
            "relation" => Slot::Relation,
            "database_relation" => Slot::DatabaseRelation,
            "oid" => Slot::Oid,
            "expected" => Slot::Expected,
            "computed" => Slot::Computed,
            "expected_hex" => Slot::ExpectedHex,
            "computed_hex" => Slot::ComputedHex,
            "bytes" => Slot::Bytes,
            "n" => Slot::Number,
            "word" => Slot::Word,
            _ => return None,
        })
    }

    pub(super) fn is_number(self) -> bool {
        !matches!(
            self,
            Slot::Path
                | Slot::File
                | Slot::ToastRelation
                | Slot::Sequence
                | Slot::Relation
                | Slot::DatabaseRelation
                | Slot::Word
        )
    }
}

/// Wordings that tell more about a place, in messages, details, contexts and statements.
const MORE: &[&str] = &[
    "invalid page in block {block} of relation {path}",
    "page verification failed, calculated checksum {computed} but expected {expected}",
    "blocks {first}..{last} of relation {path}",
    "block {block} of relation {path}",
    "block {block} in file {path}",
    "blocks {first}..{last} in file {path}",
    "for toast value {toast_value} in {toast_relation}",
    "could not open file {file}",
    "could not read file {file}",
    "heap table {database_relation}, block {block}, offset {item}",
    "heap table {database_relation}, block {block}",
    "while scanning block {block} and offset {item} of relation {relation}",
    "while scanning block {block} of relation {relation}",
    "while scanning relation {relation}",
    "while vacuuming block {block} and offset {item} of relation {relation}",
    "while vacuuming block {block} of relation {relation}",
    "while vacuuming relation {relation}",
    "while vacuuming index {relation}",
    "while cleaning up index {relation}",
    "contents of table {relation} failed",
    "command was: copy {relation} (",
    "copy {relation}, line",
    "automatic vacuum of table {relation}",
    "automatic analyze of table {relation}",
    "last_value, is_called from {sequence}",
    "block {block} in index {relation}",
    "block {block} of index {relation}",
    "in index {relation}",
    "index {relation} ",
];

/// Stems of the word for a block in the server's languages.
const BLOCK_STEMS: &[&str] = &["bloc", "blok", "bloq", "блок", "ブロック", "块", "블록"];

impl Facts {
    /// The file and the block that a message names, by their shapes alone.
    pub(super) fn of_any_language(text: &Pasted) -> Facts {
        let mut facts = Facts::default();
        let of_file = |char: char| char.is_ascii_alphanumeric() || "/_.".contains(char);
        let words = text.plain().split(|char| !of_file(char));
        let files = ["base/", "global/", "pg_"];
        let file = words
            .map(|word| word.trim_end_matches('.').trim_start_matches("./"))
            .find(|word| word.contains('/') && files.iter().any(|start| word.starts_with(start)));
        if let Some(file) = file {
            facts.put_name(Slot::File, file);
        }
        facts.block = block_in(text.lower());
        facts
    }

    /// Adds what the rest of the text tells; what is known stays.
    pub(super) fn complete(&mut self, text: &Pasted) {
        for template in MORE {
            if let Some(more) = pattern::find(template, text) {
                self.add(more);
            }
        }
    }

    fn add(&mut self, more: Facts) {
        let place_is_known =
            self.relation_path.is_some() || self.block.is_some() || self.blocks.is_some();
        if !place_is_known {
            self.relation_path = more.relation_path;
            self.block = more.block;
            self.blocks = more.blocks;
            self.item = self.item.or(more.item);
        }
        self.file = self.file.take().or(more.file);
        self.toast_value = self.toast_value.or(more.toast_value);
        self.toast_relation = self.toast_relation.take().or(more.toast_relation);
        self.sequence = self.sequence.take().or(more.sequence);
        self.relation_name = self.relation_name.take().or(more.relation_name);
        self.expected_checksum = self.expected_checksum.or(more.expected_checksum);
        self.computed_checksum = self.computed_checksum.or(more.computed_checksum);
    }

    pub(super) fn put(&mut self, slot: Slot, value: &str) {
        match slot {
            Slot::Path | Slot::File | Slot::Relation => self.put_name(slot, value),
            Slot::DatabaseRelation => self.put_name(Slot::Relation, without_database(value)),
            Slot::ToastRelation => self.toast_relation = Some(value.to_owned()),
            Slot::Sequence => self.sequence = Some(value.to_owned()),
            Slot::Block => self.block = value.parse().ok(),
            Slot::BlockInFile => self.block_in_file = value.parse().ok(),
            Slot::First => self.first = value.parse().ok(),
            Slot::Last => self.close(value.parse().ok()),
            Slot::Item => self.item = value.parse().ok(),
            Slot::Xid => self.xid = value.parse().ok().map(Xid),
            Slot::Multi => self.multixact = value.parse().ok().map(MultiXactId),
            Slot::ToastValue => self.toast_value = value.parse().ok(),
            Slot::Oid => self.relation_oid = value.parse().ok(),
            Slot::Expected => self.expected_checksum = value.parse().ok(),
            Slot::Computed => self.computed_checksum = value.parse().ok(),
            Slot::ExpectedHex => self.expected_checksum = u16::from_str_radix(value, 16).ok(),
            Slot::ComputedHex => self.computed_checksum = u16::from_str_radix(value, 16).ok(),
            Slot::Bytes => self.bytes = value.parse().ok(),
            Slot::Number | Slot::Word => {}
        }
    }

    /// Some messages have a path where others have a name, and files of relations or others.
    fn put_name(&mut self, slot: Slot, value: &str) {
        let in_home = ["base/", "global/", "pg_tblspc/"]
            .iter()
            .any(|folder| value.contains(folder));
        let file_name = value.rsplit('/').next().and_then(RelationFileName::parse);
        let of_relation = in_home && file_name.is_some();
        match slot {
            Slot::Relation if !in_home => self.relation_name = Some(value.to_owned()),
            Slot::File if !of_relation => self.file = Some(value.to_owned()),
            _ => self.relation_path = Some(value.to_owned()),
        }
    }

    fn close(&mut self, last: Option<BlockNo>) {
        if let (Some(first), Some(last)) = (self.first.take(), last)
            && first <= last
        {
            self.blocks = Some([u64::from(first), u64::from(last) + 1]);
            self.block = Some(first);
        }
    }
}

/// The number after the first word for a block.
fn block_in(text: &str) -> Option<BlockNo> {
    let of_number = |char: char| char.is_ascii_digit();
    BLOCK_STEMS.iter().find_map(|stem| {
        let (_, behind) = text.split_once(stem)?;
        let behind = behind.trim_start_matches(char::is_alphabetic).trim_start();
        let end = behind.find(|char| !of_number(char)).unwrap_or(behind.len());
        behind.get(..end)?.parse().ok()
    })
}

/// `public.docs` of `shop.public.docs`.
fn without_database(name: &str) -> &str {
    let relation = name.split_once('.').map(|(_database, relation)| relation);
    relation
        .filter(|relation| relation.contains('.'))
        .unwrap_or(name)
}
