//! Long values of catalogs and the statements made of them: in memory as far as a lease goes, else
//! in a temporary file.
//!
//! ```text
//! value of a catalog ─► store ─┬─ held: fits the lease
//!                              └─ put aside ─► LongText: read, decoded and written piece by piece
//! ```

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pgclinic_cluster::CatalogEncoding;
use pgclinic_spill::{Lease, Limit, MemoryPlan, Part, Span, Spool};

/// Gives bytes piece by piece.
type Fill<'f, E> = &'f mut dyn FnMut(&mut dyn FnMut(&[u8])) -> Result<(), E>;

/// What a part of a tree takes in memory, roughly: a field with its name and value.
const TREE_PART_BYTES: u64 = 128;

/// How much of the catalogs may be held, and where the rest goes.
pub(crate) struct CatalogRoom {
    pub(crate) memory: MemoryPlan,
    pub(crate) folder: PathBuf,
    pub(crate) text: CatalogText,
}

/// Which of the long values in catalogs somebody will ask for; the others are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CatalogText {
    All,
    /// What columns are computed by: neither bodies, nor other stored trees, nor comments.
    OfColumns,
    /// Names and types alone.
    None,
}

impl CatalogRoom {
    /// For all that catalogs hold.
    pub(crate) fn of(memory: &MemoryPlan, folder: &Path) -> Self {
        CatalogRoom {
            memory: memory.clone(),
            folder: folder.to_owned(),
            text: CatalogText::All,
        }
    }

    /// The same for what columns are computed by.
    pub(crate) fn of_columns(self) -> Self {
        CatalogRoom {
            text: CatalogText::OfColumns,
            ..self
        }
    }

    /// For names and types alone.
    pub(crate) fn brief() -> Self {
        CatalogRoom {
            text: CatalogText::None,
            ..CatalogRoom::unlimited()
        }
    }

    /// For who holds everything in memory.
    pub(crate) fn unlimited() -> Self {
        CatalogRoom {
            memory: MemoryPlan::unlimited(),
            folder: PathBuf::new(),
            text: CatalogText::All,
        }
    }
}

/// Keeps bytes. Clones share it.
#[derive(Clone)]
pub(crate) struct TextStore {
    shared: Arc<Shared>,
}

struct Shared {
    lease: Mutex<Lease>,
    spool: Spool,
    value_bytes_max: u64,
    /// Why something could not be read back, until somebody asks.
    failure: Mutex<Option<String>>,
}

/// Bytes in a store.
#[derive(Clone)]
pub(crate) enum Kept {
    /// In memory.
    Here(Arc<Vec<u8>>),
    /// In its file.
    Aside(Span),
}

impl Kept {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Kept::Here(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            Kept::Aside(span) => span.len,
        }
    }
}

impl Default for TextStore {
    fn default() -> Self {
        TextStore::new(&CatalogRoom::unlimited())
    }
}

impl TextStore {
    pub(crate) fn new(room: &CatalogRoom) -> Self {
        let threads = std::num::NonZeroUsize::MIN;
        TextStore {
            shared: Arc::new(Shared {
                lease: Mutex::new(room.memory.part(Part::CatalogValues).take(0)),
                spool: Spool::new(&room.folder),
                value_bytes_max: room.memory.limit(Limit::CatalogValueBytes, threads),
                failure: Mutex::new(None),
            }),
        }
    }

    /// Values and texts that are longer are never made in memory.
    pub(crate) fn value_bytes_max(&self) -> u64 {
        self.shared.value_bytes_max
    }

    /// Parts of a tree that fit in what a value may take.
    pub(crate) fn tree_parts_max(&self) -> usize {
        let parts = self.value_bytes_max().saturating_mul(2) / TREE_PART_BYTES;
        usize::try_from(parts).unwrap_or(usize::MAX)
    }

    /// Keeps bytes that are there.
    pub(crate) fn keep(&self, bytes: &[u8]) -> io::Result<Kept> {
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if lock(&self.shared.lease).try_grow(len) {
            Ok(Kept::Here(Arc::new(bytes.to_vec())))
        } else {
            self.shared.spool.append(bytes).map(Kept::Aside)
        }
    }

    /// Keeps about so many bytes, which `fill` gives piece by piece.
    pub(crate) fn keep_pieces<E: From<io::Error>>(
        &self,
        bytes: usize,
        fill: Fill<'_, E>,
    ) -> Result<Kept, E> {
        let len = u64::try_from(bytes).unwrap_or(u64::MAX);
        if lock(&self.shared.lease).try_grow(len) {
            let mut held = Vec::with_capacity(bytes);
            fill(&mut |piece| held.extend_from_slice(piece))?;
            return Ok(Kept::Here(Arc::new(held)));
        }
        let spool = &self.shared.spool;
        let (start, mut failure) = (spool.end(), None);
        fill(&mut |piece| {
            if failure.is_none() {
                failure = spool.append(piece).err();
            }
        })?;
        match failure {
            Some(error) => Err(error.into()),
            None => Ok(Kept::Aside(Span {
                start,
                len: spool.end() - start,
            })),
        }
    }

    /// The bytes in memory; nothing where they cannot be read back, which
    /// [`TextStore::take_failure`] then says.
    pub(crate) fn bytes<'k>(&self, kept: &'k Kept) -> Option<Cow<'k, [u8]>> {
        match kept {
            Kept::Here(bytes) => Some(Cow::Borrowed(bytes.as_slice())),
            Kept::Aside(span) => match self.shared.spool.bytes(*span) {
                Ok(bytes) => Some(Cow::Owned(bytes)),
                Err(error) => {
                    lock(&self.shared.failure).get_or_insert(error.to_string());
                    None
                }
            },
        }
    }

    /// Why something could not be read back since the last question.
    pub(crate) fn take_failure(&self) -> Option<String> {
        lock(&self.shared.failure).take()
    }

    fn each_piece(
        &self,
        kept: &Kept,
        give: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        match kept {
            Kept::Here(bytes) => give(bytes),
            Kept::Aside(span) => self.shared.spool.each_piece(*span, give),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A long text of a catalog between dollar signs, never in memory as a whole.
#[derive(Clone)]
pub(crate) struct LongText {
    store: TextStore,
    kept: Kept,
    words: CatalogEncoding,
    /// Not all of its bytes stand for something: what is UTF-8 is written, and escapes for the
    /// others.
    has_odd_bytes: bool,
    tag: String,
}

impl LongText {
    /// Reads it once: whether it is text, and which tag does not occur in it.
    pub(crate) fn of(store: &TextStore, kept: &Kept, words: CatalogEncoding) -> io::Result<Self> {
        let mut text = LongText {
            store: store.clone(),
            kept: kept.clone(),
            words,
            has_odd_bytes: false,
            tag: String::new(),
        };
        let mut has_odd_bytes = false;
        text.each_stored(&mut |piece| {
            has_odd_bytes |= words.text(piece).is_none();
            Ok(())
        })?;
        text.has_odd_bytes = has_odd_bytes;
        let mut tags = TagSearch::default();
        text.each_decoded(&mut |piece| {
            tags.look(piece.as_bytes());
            Ok(())
        })?;
        text.tag = tags.tag();
        Ok(text)
    }

    fn each(&self, give: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        give(self.tag.as_bytes())?;
        self.each_decoded(&mut |piece| give(piece.as_bytes()))?;
        give(self.tag.as_bytes())
    }

    fn each_decoded(&self, give: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        self.each_stored(&mut |piece| {
            if self.has_odd_bytes {
                give(&CatalogEncoding::with_escapes(piece))
            } else {
                give(&self.words.readable(piece))
            }
        })
    }

    /// Pieces up to the first zero byte. No encoding of a server has an ASCII byte within a
    /// character, so that each piece ends behind one.
    fn each_stored(&self, give: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let (mut held, mut is_over) = (Vec::new(), false);
        self.store.each_piece(&self.kept, &mut |piece| {
            if is_over {
                return Ok(());
            }
            let end = piece.iter().position(|byte| *byte == 0);
            is_over = end.is_some();
            held.extend_from_slice(piece.get(..end.unwrap_or(piece.len())).unwrap_or_default());
            let whole = held.iter().rposition(u8::is_ascii).map_or(0, |at| at + 1);
            give(held.get(..whole).unwrap_or_default())?;
            held.drain(..whole);
            Ok(())
        })?;
        give(&held)
    }
}

/// Looks for the longest `$_xx…` in a text that comes in pieces.
#[derive(Default)]
struct TagSearch {
    has_dollar: bool,
    /// Of the place at hand: nothing, `$`, or `$_` with so many `x`.
    state: TagState,
    most: Option<usize>,
}

#[derive(Default, Clone, Copy)]
enum TagState {
    #[default]
    Outside,
    Dollar,
    Begun(usize),
}

impl TagSearch {
    fn look(&mut self, text: &[u8]) {
        for byte in text {
            self.state = match (self.state, byte) {
                (_, b'$') => {
                    self.has_dollar = true;
                    TagState::Dollar
                }
                (TagState::Dollar, b'_') => TagState::Begun(0),
                (TagState::Begun(count), b'x') => TagState::Begun(count + 1),
                _ => TagState::Outside,
            };
            if let TagState::Begun(count) = self.state {
                self.most = self.most.max(Some(count));
            }
        }
    }

    /// What `dollar_quoted` takes.
    fn tag(&self) -> String {
        match (self.has_dollar, self.most) {
            (false, _) => "$$".into(),
            (true, None) => "$_$".into(),
            (true, Some(count)) => format!("$_{}$", "x".repeat(count + 1)),
        }
    }
}

/// The text of a statement, of which some may stand in a store.
#[derive(Clone, Default)]
pub(crate) struct Statement {
    pieces: Vec<Piece>,
}

#[derive(Clone)]
enum Piece {
    Plain(String),
    Kept(TextStore, Kept),
    Long(LongText),
}

/// Shorter texts stay where they are.
const SHORT_BYTES: usize = 128;

impl From<String> for Statement {
    fn from(text: String) -> Self {
        Statement {
            pieces: vec![Piece::Plain(text)],
        }
    }
}

impl Statement {
    /// The same with more at its end.
    pub(crate) fn with(mut self, text: &str) -> Self {
        self.push(text);
        self
    }

    /// The same with a long text at its end.
    pub(crate) fn with_long(mut self, text: LongText) -> Self {
        self.pieces.push(Piece::Long(text));
        self
    }

    pub(crate) fn push(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Plain(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Plain(text.to_owned())),
        }
    }

    /// Adds another one.
    pub(crate) fn append(&mut self, other: &Statement) {
        for piece in &other.pieces {
            match piece {
                Piece::Plain(text) => self.push(text),
                other => self.pieces.push(other.clone()),
            }
        }
    }

    /// The same, held by the store.
    pub(crate) fn kept_in(mut self, store: &TextStore) -> io::Result<Self> {
        for piece in &mut self.pieces {
            if let Piece::Plain(text) = piece
                && text.len() > SHORT_BYTES
            {
                *piece = Piece::Kept(store.clone(), store.keep(text.as_bytes())?);
            }
        }
        Ok(self)
    }

    /// Nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Plain(text) => text.is_empty(),
            Piece::Kept(_, kept) => kept.len() == 0,
            Piece::Long(_) => false,
        })
    }

    /// Gives it in pieces, each of them whole characters or a part of one text.
    ///
    /// # Errors
    ///
    /// What the temporary file says, or the taker.
    pub(crate) fn each(&self, give: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Plain(text) => give(text.as_bytes()),
            Piece::Kept(store, kept) => store.each_piece(kept, give),
            Piece::Long(text) => text.each(give),
        })
    }

    /// All of it in memory.
    ///
    /// # Errors
    ///
    /// What the temporary file says.
    pub(crate) fn text(&self) -> io::Result<String> {
        let mut text = Vec::new();
        self.each(&mut |piece| {
            text.extend_from_slice(piece);
            Ok(())
        })?;
        String::from_utf8(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Takes those words off the list that occur in it.
    ///
    /// # Errors
    ///
    /// What the temporary file says.
    pub(crate) fn find(&self, words: &mut Vec<String>) -> io::Result<()> {
        let overlap = words.iter().map(String::len).max().unwrap_or(0);
        let mut held: Vec<u8> = Vec::new();
        self.each(&mut |piece| {
            held.extend_from_slice(piece);
            let text = String::from_utf8_lossy(&held);
            words.retain(|word| !text.contains(word.as_str()));
            let rest = held.len().saturating_sub(overlap);
            held.drain(..rest);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::identifier::dollar_quoted;
    use super::*;

    const UTF8: i32 = 6;
    const EUC_JP: i32 = 1;

    fn narrow(folder: &Path) -> TextStore {
        TextStore::new(&CatalogRoom::of(&MemoryPlan::new(8), folder))
    }

    #[test]
    fn a_long_text_reads_as_a_short_one_does() {
        let folder = tempfile::tempdir().expect("a directory");
        let store = narrow(folder.path());
        let texts = [
            (UTF8, "no tag at all ".repeat(20_000)),
            (UTF8, "über $ ß ".repeat(20_000)),
            (
                UTF8,
                format!("{}$_xx$_x{}", "€".repeat(30_000), "x".repeat(70_000)),
            ),
        ];
        for (encoding, text) in texts {
            let words = CatalogEncoding::of(Some(encoding));
            let stored = [text.as_bytes(), b"\0behind"].concat();
            let kept = store.keep(&stored).expect("kept");
            assert!(matches!(kept, Kept::Aside(_)));
            let long = LongText::of(&store, &kept, words).expect("read");
            let made = Statement::from("AS ".to_owned()).with_long(long).with(";");
            let expected = format!("AS {};", dollar_quoted(&text));
            assert!(made.text().expect("read") == expected, "{encoding}");
        }
    }

    #[test]
    fn odd_bytes_are_escaped_as_in_a_short_text() {
        let folder = tempfile::tempdir().expect("a directory");
        let store = narrow(folder.path());
        for encoding in [UTF8, EUC_JP] {
            let words = CatalogEncoding::of(Some(encoding));
            let mut stored = "a\u{fc}".as_bytes().repeat(40_000);
            stored.extend_from_slice(b"b\xff\xfe c");
            let kept = store.keep(&stored).expect("kept");
            let long = LongText::of(&store, &kept, words).expect("read");
            let made = Statement::default().with_long(long).text().expect("read");
            assert!(
                made == dollar_quoted(&words.readable(&stored)),
                "{encoding}"
            );
        }
    }

    #[test]
    fn words_are_found_across_pieces() {
        let folder = tempfile::tempdir().expect("a directory");
        let store = narrow(folder.path());
        let text = format!("{}\"anna\"{}", "-".repeat((64 << 10) - 3), "-".repeat(9));
        let statement = Statement::from(text).kept_in(&store).expect("kept");
        let mut words = vec!["\"anna\"".to_owned(), "\"berta\"".to_owned()];
        statement.find(&mut words).expect("read");
        assert_eq!(words, ["\"berta\""]);
    }
}
