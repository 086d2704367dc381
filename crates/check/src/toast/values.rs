//! Long values and the rows they belong to, both ways.
//!
//! Truth: `heap_fetch_toast_slice` in `src/backend/access/heap/heaptoast.c`,
//! `check_toasted_attribute` in `contrib/amcheck/verify_heapam.c`.

use std::io;

use pgclinic_cluster::{Cluster, Relation};
use pgclinic_format::datum::PackedWalk;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::toast::{MAX_VALUE_BYTES, ToastPointer};
use pgclinic_format::varlena::size_and_method;
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level};
use pgclinic_scan::PageReader;

use crate::check::ForkCx;
use crate::findings::{Draft, Findings};
use crate::heap::stored_values::{Encoding, StoredValues};
use crate::relation_check::{RelationCheck, RelationCx, draft_at};
use crate::toast::external_text::ExternalText;
use crate::toast::orphans::{Orphans, TOAST_VALUE_ORPHANED, TOAST_VALUE_WITHOUT_ROW};
use crate::toast::{
    Fault, Pointer, Run, Runs, collect_pointers, collect_runs, fault_of, for_each_piece,
};

/// Memory for sorting pointers, and for sorting runs: as much of the budget, and at least so many
/// bytes.
const SORT_SHARE: u64 = 8;
const SORT_BYTES_MIN: u64 = 1 << 20;
/// Runs of a value whose blocks may explain what is wrong with it.
const RUNS_FOLLOWED: usize = 100;

/// A value without chunks.
pub const TOAST_VALUE_MISSING: Rule =
    Rule::from_page(include_str!("../../rules/toast-value-missing.md"));

/// A value with a chunk too few or too many.
pub const TOAST_VALUE_INCOMPLETE: Rule =
    Rule::from_page(include_str!("../../rules/toast-value-incomplete.md"));

/// A value of another length.
pub const TOAST_VALUE_SIZE: Rule = Rule::from_page(include_str!("../../rules/toast-value-size.md"));

/// A value that does not unpack.
pub const TOAST_VALUE_CORRUPT: Rule =
    Rule::from_page(include_str!("../../rules/toast-value-corrupt.md"));

/// Compares TOAST pointers with TOAST values, both ways.
pub struct ToastValues;

impl RelationCheck for ToastValues {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &TOAST_VALUE_MISSING,
                &TOAST_VALUE_INCOMPLETE,
                &TOAST_VALUE_SIZE,
                &TOAST_VALUE_CORRUPT,
                &TOAST_VALUE_ORPHANED,
                &TOAST_VALUE_WITHOUT_ROW,
            ]
        }
    }

    fn level(&self) -> Level {
        Level::Full
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Heap
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let fork = relation.fork;
        let own = fork.relation.filter(|_| fork.kind == FileKind::Toast);
        let owner = own.and_then(|own| relation.main_fork_of(own.toast_of));
        let (Some(own), Some(owner), Some(cluster)) = (own, owner, fork.cluster) else {
            return;
        };
        if !relation.settled() {
            return;
        }
        if owner.columns.is_none() {
            relation.not_checked(out, "values", "the columns of its table are unknown", false);
            return;
        }
        if let Err(error) = meet(relation, (own, owner), cluster, out) {
            let why = format!(
                "they could not be sorted in {}: {error}",
                relation.spill_folder.display()
            );
            relation.not_checked(out, "values", &why, false);
        }
    }
}

fn meet<'a>(
    relation: &RelationCx<'a>,
    (own, owner): (&'a Relation, &'a ForkCx<'a>),
    cluster: &Cluster,
    out: &mut Findings,
) -> io::Result<()> {
    let budget = relation.budget;
    let lease = budget.take_some(budget.limit() / SORT_SHARE * 2, SORT_BYTES_MIN * 2);
    let memory = usize::try_from(lease.bytes() / 2).unwrap_or(usize::MAX);
    let mut runs = collect_runs(relation, cluster, memory)?;
    let pointers = collect_pointers(relation, owner, own.oid, cluster, memory)?;
    let lacks_columns = pointers.lacks_columns;
    let mut values = Values {
        relation,
        owner,
        name: own.name.clone(),
        cluster,
        pages: relation.pages(),
        stored: StoredValues::of(&owner.base, Some(relation.catalog)),
        runs: Vec::new(),
        most_runs: most_runs(relation.fork.build.toast_chunk),
        told: None,
        orphans: Orphans::default(),
        faulty: 0,
    };
    let mut last = None;
    for pointer in pointers {
        let pointer = pointer?;
        if relation.is_interrupted() {
            return Ok(());
        }
        let value = pointer.toast.va_valueid;
        if last != Some(value) {
            values.orphans_before(&mut runs, Some(value))?;
            runs.take(value, values.most_runs, &mut values.runs)?;
            values.told = None;
            last = Some(value);
        }
        if pointer.live {
            values.check(pointer, out);
        }
    }
    values.orphans_before(&mut runs, None)?;
    if lacks_columns {
        values.orphans.tell_unowned(relation, out);
    } else {
        values.orphans.tell(relation, owner, values.faulty, out);
    }
    Ok(())
}

/// The longest value in chunks of so many bytes, each of them a run.
fn most_runs(chunk_bytes: u32) -> usize {
    usize::try_from(MAX_VALUE_BYTES / chunk_bytes.max(1)).unwrap_or(usize::MAX)
}

/// What was found of a value, as one pointer describes it.
#[derive(Clone)]
enum ValueState {
    Sound,
    Faulty(Fault),
    Corrupt(String),
}

struct Values<'a, 'r> {
    relation: &'r RelationCx<'a>,
    owner: &'a ForkCx<'a>,
    name: String,
    cluster: &'r Cluster,
    pages: PageReader<'a>,
    /// What is known of the columns of its table.
    stored: StoredValues,
    /// Of the value at hand.
    runs: Vec<Run>,
    /// Runs that the longest value has.
    most_runs: usize,
    /// The last pointer to the value at hand, and what it was found to be.
    told: Option<(ToastPointer, ValueState)>,
    orphans: Orphans,
    /// Pointers of live rows that lead to no such value.
    faulty: u64,
}

impl Values<'_, '_> {
    fn orphans_before(&mut self, runs: &mut Runs, value: Option<u32>) -> io::Result<()> {
        while let Some(orphan) = runs
            .value()
            .filter(|own| value.is_none_or(|value| *own < value))
        {
            runs.take(orphan, self.most_runs, &mut self.runs)?;
            self.orphans.add(&self.runs);
        }
        Ok(())
    }

    /// Several rows may point to one value where a table is damaged: it is looked at once.
    fn check(&mut self, pointer: Pointer, out: &mut Findings) {
        let verdict = match self.told.take() {
            Some((toast, verdict)) if toast == pointer.toast => verdict,
            _ => self.verdict(pointer),
        };
        match &verdict {
            ValueState::Sound => {}
            ValueState::Faulty(fault) => {
                self.faulty += 1;
                self.tell(pointer, fault, out);
            }
            ValueState::Corrupt(words) => {
                let words = format!("value {}: {words}", pointer.toast.va_valueid);
                out.add(self.draft(&TOAST_VALUE_CORRUPT, pointer, words));
            }
        }
        self.told = Some((pointer.toast, verdict));
    }

    fn verdict(&mut self, pointer: Pointer) -> ValueState {
        let toast = pointer.toast;
        let chunk_bytes = self.relation.fork.build.toast_chunk;
        match fault_of(&self.runs, toast, chunk_bytes) {
            Some(fault) => ValueState::Faulty(fault),
            None if toast.is_compressed() => self
                .unpack(toast)
                .map_or(ValueState::Sound, ValueState::Corrupt),
            None => {
                let fault = self.text_fault(pointer);
                fault.map_or(ValueState::Sound, ValueState::Corrupt)
            }
        }
    }

    fn tell(&self, pointer: Pointer, fault: &Fault, out: &mut Findings) {
        let value = pointer.toast.va_valueid;
        let name = &self.name;
        let (rule, words) = match fault {
            Fault::Missing => (
                &TOAST_VALUE_MISSING,
                format!("value {value} has no chunk in {name}"),
            ),
            Fault::Gap { number, .. } => (
                &TOAST_VALUE_INCOMPLETE,
                format!("chunk {number} of value {value} is missing in {name}"),
            ),
            Fault::Doubled { number } => (
                &TOAST_VALUE_INCOMPLETE,
                format!("chunk {number} of value {value} is a duplicate in {name}"),
            ),
            Fault::TooMany { number, expected } => {
                let words = format!(
                    "value {value} has a chunk {number} in {name}, which is more than its {expected}"
                );
                (&TOAST_VALUE_INCOMPLETE, words)
            }
            Fault::Size { found } => {
                let words = format!(
                    "the chunks of value {value} hold {found} bytes, or one in the middle is short; the row says {}",
                    pointer.toast.va_extsize
                );
                (&TOAST_VALUE_SIZE, words)
            }
        };
        let says = match fault {
            Fault::Missing => Some(format!(
                "missing chunk number 0 for toast value {value} in {name}"
            )),
            Fault::Gap {
                number,
                instead: None,
            } if self.runs.iter().all(|run| run.full && run.last_full) => Some(format!(
                "missing chunk number {number} for toast value {value} in {name}"
            )),
            Fault::Gap {
                number,
                instead: Some(instead),
            } => Some(format!(
                "unexpected chunk number {instead} (expected {number}) for toast value {value} in {name}"
            )),
            _ => None,
        };
        let mut draft = self.draft(rule, pointer, words);
        if let Some(says) = says {
            draft = draft.server_says(format!("ERROR:  {says}"));
        }
        out.add(draft);
    }

    fn draft(&self, rule: &'static Rule, pointer: Pointer, words: String) -> Draft {
        let own = draft_at(self.owner, rule, Some(pointer.block), words);
        let mut draft = own
            .item(pointer.item)
            .attribute(pointer.attribute)
            .rows(1)
            .fact("value", pointer.toast.va_valueid);
        for run in self.runs.iter().take(RUNS_FOLLOWED) {
            draft = draft.follows(self.relation.fork, run.block);
        }
        // What is missing stood elsewhere.
        draft.follows_fork(self.relation.fork)
    }

    /// Why the value does not unpack. It is followed piece by piece, and never held.
    fn unpack(&mut self, toast: ToastPointer) -> Option<String> {
        let mut packed = Packed::new(toast);
        let (pages, cluster) = (&mut self.pages, self.cluster);
        for_each_piece(pages, cluster, &self.runs, &mut |piece| packed.feed(piece))?;
        packed.finish().err()
    }

    /// What is wrong with text that stands there as it is.
    fn text_fault(&mut self, pointer: Pointer) -> Option<String> {
        let column = usize::from(pointer.attribute).checked_sub(1)?;
        let encoding = self.stored.text_encoding(column)?;
        let mut text = ExternalText::new(encoding == Encoding::Utf8);
        let (pages, cluster) = (&mut self.pages, self.cluster);
        for_each_piece(pages, cluster, &self.runs, &mut |piece| text.feed(piece))?;
        text.finish()
    }
}

/// A compressed value on its way. It begins with its own word of size and method.
struct Packed {
    raw_bytes: u32,
    word: Vec<u8>,
    walk: Result<Option<PackedWalk>, String>,
}

impl Packed {
    fn new(toast: ToastPointer) -> Self {
        Packed {
            raw_bytes: toast.va_rawsize.saturating_sub(4),
            word: Vec::new(),
            walk: Ok(None),
        }
    }

    fn feed(&mut self, piece: &[u8]) {
        let missing = 4 - self.word.len();
        let (word, data) = piece.split_at(missing.min(piece.len()));
        self.word.extend_from_slice(word);
        if let (Some(word), Ok(None)) = (self.word.first_chunk(), &self.walk) {
            self.walk = begin(u32::from_le_bytes(*word), self.raw_bytes).map(Some);
        }
        if let Ok(Some(walk)) = &mut self.walk
            && let Err(error) = walk.feed(data)
        {
            self.walk = Err(error.to_string());
        }
    }

    fn finish(self) -> Result<(), String> {
        let walk = self.walk?.ok_or("it is too short for its own length")?;
        walk.finish().map_err(|error| error.to_string())
    }
}

fn begin(word: u32, raw_bytes: u32) -> Result<PackedWalk, String> {
    let (own_bytes, method) = size_and_method(word);
    if own_bytes != raw_bytes {
        return Err(format!(
            "it says that it unpacks to {own_bytes} bytes, its row says {raw_bytes}"
        ));
    }
    PackedWalk::new(method, raw_bytes.into()).map_err(|error| error.to_string())
}
