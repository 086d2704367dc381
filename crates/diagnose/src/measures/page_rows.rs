//! The rows of a heap page, judged once for all measures.

use pgclinic_cluster::{RowState, row_state};
use pgclinic_format::{HeapTuple, LpFlags, Page};

use crate::check::ForkCx;

/// What a line pointer marked as used holds.
#[derive(Clone, Copy, Debug)]
pub struct PageRow<'a> {
    /// Its line pointer, from 1.
    pub number: u16,
    /// `lp_len`.
    pub len: u16,
    /// The row; nothing where the line pointer leads nowhere.
    pub tuple: Option<HeapTuple<'a>>,
    /// What became of it.
    pub state: RowState,
}

impl PageRow<'_> {
    /// New queries see it.
    pub fn is_live(&self) -> bool {
        self.state == RowState::Live
    }
}

/// Puts the rows of a page into `rows`.
pub(super) fn judge<'a>(page: Page<'a>, fork: &ForkCx<'_>, rows: &mut Vec<PageRow<'a>>) {
    rows.clear();
    let Some(cluster) = fork.cluster else {
        return;
    };
    let (log, multixacts) = (&cluster.transactions, &cluster.multixacts);
    for (number, pointer) in page.line_pointers() {
        if pointer.flags() != LpFlags::Normal {
            continue;
        }
        let tuple = page.item(pointer).and_then(HeapTuple::parse);
        let state = tuple.map(|tuple| row_state(tuple, log, multixacts));
        rows.push(PageRow {
            number,
            len: pointer.lp_len(),
            tuple,
            state: state.unwrap_or(RowState::Unknown),
        });
    }
}
