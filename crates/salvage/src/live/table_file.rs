//! One table of a running server on its way into a file: as a whole, else by ranges of blocks, else
//! row by row. A block of which the server refuses a row is handed to our own reader as one that it
//! refuses whole; only where that cannot look at the files, its rows come value by value.

use std::collections::BTreeSet;
use std::fmt::Write;

use pgclinic_model::document::{LossPlace, PLACES_MAX, RowCounts, TableAccount};
use pgclinic_servers::SqlError;

use super::denied::DENIED;
use super::locks;
use super::rows_out::{Answer, RowsOut};
use super::server_source::literal;
use super::snapshots::Reader;
use super::table_rows::{TableRows, WrittenBytes};
use super::tables::{LiveTable, RangeWay};
use crate::salvage::SalvageError;

/// Blocks that are asked for at once after the table as a whole failed: many where the server
/// scans, few where each row is named.
const SCAN_BLOCKS: u32 = 1024;
const EACH_BLOCKS: u32 = 32;

/// The class of errors that are no matter of a block: no right to read the table, no such column.
const NOT_ALLOWED: &str = "42";
/// `undefined_table`.
const DROPPED: &str = "42P01";

const VALUE_REFUSED: &str = "the server does not give this value: see the log beside the file";

/// Which file of a table rows go into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RowsInto {
    Table,
    Suspects,
}

/// Why a table cannot be gone on with.
pub(super) enum Stop {
    /// The connection is gone: the server may have crashed.
    Gone(SqlError),
    /// The destination does not take what is written.
    Failed(SalvageError),
}

/// What was written and counted at some time.
struct Mark {
    written: WrittenBytes,
    rows: RowCounts,
    places: usize,
    snapshots: usize,
}

/// Where the work on one table stands; it outlives a session.
pub(super) struct TableFile<'a> {
    pub(super) files: TableRows<'a>,
    pub(super) account: TableAccount,
    /// What the server refused, statement by statement.
    pub(super) log: String,
    /// Ranges of blocks that are still to be asked for, the next one last.
    open: Vec<(u32, u32)>,
    /// Blocks that the server does not give whole, in order; nothing of them is in the file.
    pub(super) bad_blocks: Vec<u32>,
    /// Those of them of which it does not even say which rows there are.
    refused_pages: BTreeSet<u32>,
    /// How many of them were asked for row by row, for want of files.
    asked: usize,
    /// Those of them that gave nothing then.
    lost_blocks: Vec<u32>,
    /// The row that is asked for by itself now.
    asking: Option<(u32, u16)>,
    /// Rows during which the server went away; item 0 for the list of a block's rows.
    left_out: BTreeSet<(u32, u16)>,
    /// The table was asked for as a whole.
    was_tried: bool,
    way: RangeWay,
    rows: RowsOut,
    /// What was refused last, and its SQLSTATE.
    last_refusal: (String, String),
    /// Others hold a lock that the table's rows need; nothing more is asked then.
    pub(super) locked: Option<SqlError>,
    /// Why the server gives nothing of the table.
    pub(super) refused_whole: Option<String>,
    /// The role has no right to read it.
    is_denied: bool,
}

impl<'a> TableFile<'a> {
    pub(super) fn new(
        files: TableRows<'a>,
        account: TableAccount,
        way: RangeWay,
        rows: RowsOut,
    ) -> Self {
        TableFile {
            files,
            account,
            log: String::new(),
            open: Vec::new(),
            bad_blocks: Vec::new(),
            refused_pages: BTreeSet::new(),
            asked: 0,
            lost_blocks: Vec::new(),
            asking: None,
            left_out: BTreeSet::new(),
            was_tried: false,
            way,
            rows,
            last_refusal: Default::default(),
            locked: None,
            refused_whole: None,
            is_denied: false,
        }
    }

    /// Goes on until all blocks were asked for.
    pub(super) fn work(&mut self, session: &mut Reader<'_>, table: &LiveTable) -> Result<(), Stop> {
        if !self.was_tried {
            self.was_tried = true;
            self.open = self.ranges(table.blocks);
            if self.copy_into(RowsInto::Table, session, table, &table.copied_whole())? {
                self.open.clear();
            } else if self.is_absent() {
                self.open.clear();
                return Ok(());
            } else if self.last_refusal.1.starts_with(NOT_ALLOWED) {
                self.refuse_whole(table);
                return Ok(());
            } else if !table.has_known_size && self.locked.is_none() {
                let blocks = self.blocks_now(session, table)?;
                self.open = self.ranges(blocks.unwrap_or(0));
            }
            self.lose_without_pages();
        }
        while let Some((from, to)) = self.open_range() {
            // A range during which the server goes away is there again, in halves.
            let middle = from.midpoint(to);
            self.open.pop();
            if to - from > 1 {
                self.open.extend([(middle, to), (from, middle)]);
                if self.copy(session, table, &table.range(from, to, self.way))? {
                    self.open.truncate(self.open.len() - 2);
                }
            } else {
                // A block during which the server goes away is one that it does not give.
                self.bad_blocks.push(from);
                let mark = self.mark();
                match self.block(session, table, from) {
                    Ok(true) => {
                        self.bad_blocks.pop();
                    }
                    Ok(false) => self.back_to(mark)?,
                    Err(stop) => {
                        self.back_to(mark)?;
                        return Err(stop);
                    }
                }
            }
        }
        Ok(())
    }

    /// Ranges of so many blocks, the first one last.
    fn ranges(&self, blocks: u32) -> Vec<(u32, u32)> {
        let step = match self.way {
            RangeWay::Scan => SCAN_BLOCKS,
            RangeWay::Each => EACH_BLOCKS,
        };
        let starts = (0..blocks).step_by(usize::try_from(step).unwrap_or(1));
        let ranges = starts.map(|from| (from, from.saturating_add(step).min(blocks)));
        ranges.rev().collect()
    }

    fn blocks_now(
        &mut self,
        session: &mut Reader<'_>,
        table: &LiveTable,
    ) -> Result<Option<u32>, Stop> {
        let rows = self.ask(session, &table.size())?;
        let blocks = rows.into_iter().flatten().flatten().flatten().next();
        Ok(blocks.and_then(|blocks| blocks.parse().ok()))
    }

    /// The server knows no such table any more.
    pub(super) fn is_absent(&self) -> bool {
        self.last_refusal.1 == DROPPED
    }

    /// The server gives nothing of the table: its files are asked for all of it.
    pub(super) fn refuse_whole(&mut self, table: &LiveTable) {
        self.open.clear();
        let (words, state) = &self.last_refusal;
        self.refused_whole = Some(words.clone());
        self.is_denied = state == DENIED;
        self.bad_blocks = (0..table.blocks).collect();
        self.lose_without_pages();
    }

    /// The range of blocks that is asked for next.
    fn open_range(&self) -> Option<(u32, u32)> {
        let next = self.open.last().filter(|_| self.locked.is_none());
        next.copied()
    }

    /// The server counts no page of the table and does not give it all the same: its file is gone.
    /// A table without pages has no range of blocks that could be asked for by itself.
    fn lose_without_pages(&mut self) {
        let (words, _) = &self.last_refusal;
        let has_pages = !self.open.is_empty() || !self.bad_blocks.is_empty();
        if has_pages || words.is_empty() || self.locked.is_some() {
            return;
        }
        let why = format!("the server does not give the table: {words}");
        self.account.places.push(LossPlace::page(0, why));
        if self.is_denied {
            self.leave(1);
        }
    }

    /// Asks for the blocks that the server does not give whole row by row, and value by value:
    /// nobody can look at its files.
    pub(super) fn rest(&mut self, session: &mut Reader<'_>, table: &LiveTable) -> Result<(), Stop> {
        if self.refused_whole.is_some() {
            return Ok(());
        }
        let is_given = |own: &Self| own.locked.is_none();
        while let Some(block) = self
            .bad_blocks
            .get(self.asked)
            .copied()
            .filter(|_| is_given(self))
        {
            let mark = self.mark();
            match self.each_row(session, table, block) {
                Ok(true) => {}
                Ok(false) => self.lost_blocks.push(block),
                Err(stop) => {
                    self.back_to(mark)?;
                    let item = self.asking.take().map_or(0, |(_, item)| item);
                    let is_new = self.left_out.insert((block, item));
                    if item == 0 && !is_new {
                        self.lost_blocks.push(block);
                        self.asked += 1;
                    }
                    return Err(stop);
                }
            }
            self.asked += 1;
        }
        Ok(())
    }

    /// The server went away too often: what was not asked for is lost.
    pub(super) fn give_up(&mut self, error: &SqlError) {
        self.account.notes.push(format!("given up: {error}"));
        if let Some((from, _)) = self.open.last() {
            let why =
                "given up: the server went away again and again; nothing from here on was read";
            self.account.places.push(LossPlace::page(*from, why));
        }
    }

    /// What neither the server nor its files give.
    pub(super) fn lose(&mut self, why: &str) {
        let left = self.bad_blocks.get(self.asked..).unwrap_or_default();
        self.lost_blocks.extend(left);
        let blocks = std::mem::take(&mut self.lost_blocks);
        if blocks.is_empty() {
            return;
        }
        self.account.pages.unread += blocks.len() as u64;
        if self.is_denied {
            self.leave(blocks.len() as u64);
        }
        let places = &mut self.account.places;
        if let Some(refusal) = &self.refused_whole {
            let why = format!(
                "the server does not give the table ({refusal}), and its files cannot be read through it: {why}"
            );
            places.push(LossPlace::page(0, why));
            return;
        }
        let why =
            format!("the server refuses the page, and its files cannot be read through it: {why}");
        let told = blocks.iter().take(PLACES_MAX);
        places.extend(told.map(|block| LossPlace::page(*block, &why)));
        let omitted = blocks.len().saturating_sub(PLACES_MAX);
        self.account.places_omitted += omitted as u64;
    }

    /// Nothing is known to be lost of pages that the role may not read.
    fn leave(&mut self, pages: u64) {
        self.account.out_of_reach = true;
        self.account.pages_not_read += pages;
    }

    /// All rows of a block, at once or one by one; false, with some of them in the file, where the
    /// server refuses one.
    fn block(
        &mut self,
        session: &mut Reader<'_>,
        table: &LiveTable,
        block: u32,
    ) -> Result<bool, Stop> {
        if self.copy(session, table, &table.range(block, block + 1, self.way))? {
            return Ok(true);
        }
        let Some(items) = self.items(session, table, block)? else {
            self.refused_pages.insert(block);
            return Ok(false);
        };
        for item in items {
            if !self.copy(session, table, &table.row(block, item))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Each row of a block with the values that the server gives; false where it does not say which
    /// rows there are.
    fn each_row(
        &mut self,
        session: &mut Reader<'_>,
        table: &LiveTable,
        block: u32,
    ) -> Result<bool, Stop> {
        if self.refused_pages.contains(&block) {
            return Ok(false);
        }
        let Some(items) = self.items(session, table, block)? else {
            return Ok(false);
        };
        for item in items {
            if self.left_out.contains(&(block, item)) {
                self.lose_row(
                    block,
                    item,
                    "the server goes away when it is asked for this row",
                );
                continue;
            }
            self.asking = Some((block, item));
            if !self.copy(session, table, &table.row(block, item))? {
                self.values(session, table, block, item)?;
            }
            self.asking = None;
        }
        Ok(true)
    }

    /// Which rows a block has, if the server can say it.
    fn items(
        &mut self,
        session: &mut Reader<'_>,
        table: &LiveTable,
        block: u32,
    ) -> Result<Option<Vec<u16>>, Stop> {
        let ids = LiveTable {
            columns: "ctid".into(),
            ..table.clone()
        };
        let found = self.ask(session, &ids.range(block, block + 1, self.way))?;
        let item = |row: String| row.trim_end_matches(')').rsplit(',').next()?.parse().ok();
        Ok(found.map(|found| {
            found
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(item)
                .collect()
        }))
    }

    fn lose_row(&mut self, block: u32, item: u16, why: &str) {
        self.account.rows.lost += 1;
        self.account.places.push(LossPlace {
            block,
            item: Some(item),
            in_toast: false,
            column: None,
            why: why.into(),
        });
    }

    /// The values of a row one by one; those that the server does not give are null.
    fn values(
        &mut self,
        session: &mut Reader<'_>,
        table: &LiveTable,
        block: u32,
        item: u16,
    ) -> Result<(), Stop> {
        let (mut columns, mut reasons) = (Vec::new(), Vec::new());
        for name in &table.column_names {
            let quoted = format!("\"{}\"", name.replace('"', "\"\""));
            let one = LiveTable {
                columns: quoted.clone(),
                ..table.clone()
            };
            // Only the length travels.
            let probe = format!(
                "SELECT pg_catalog.length(v::text) FROM ({}) t(v)",
                one.row(block, item)
            );
            if self.ask(session, &probe)?.is_some() {
                columns.push(quoted);
                continue;
            }
            columns.push("NULL".into());
            reasons.push(format!("partial: column {name}: {VALUE_REFUSED}"));
            self.account.places.push(LossPlace {
                block,
                item: Some(item),
                in_toast: false,
                column: Some(name.clone()),
                why: VALUE_REFUSED.into(),
            });
        }
        let is_apart = self.files.parts_suspects() && !reasons.is_empty();
        let into = if is_apart {
            columns.insert(0, literal(&reasons.join("; ")));
            RowsInto::Suspects
        } else {
            RowsInto::Table
        };
        let given = LiveTable {
            columns: columns.join(", "),
            ..table.clone()
        };
        let row = format!("({})", given.row(block, item));
        if self.copy_into(into, session, table, &row)? {
            self.account.rows.partial += 1;
            self.account.rows.suspect += u64::from(into == RowsInto::Suspects);
        } else {
            let why = "the server does not give this row: see the log beside the file";
            self.lose_row(block, item, why);
        }
        Ok(())
    }

    fn mark(&self) -> Mark {
        Mark {
            written: self.files.written(),
            rows: self.account.rows,
            places: self.account.places.len(),
            snapshots: self.account.snapshots.len(),
        }
    }

    /// Takes back what was written and counted since.
    fn back_to(&mut self, mark: Mark) -> Result<(), Stop> {
        self.account.rows = mark.rows;
        self.account.places.truncate(mark.places);
        self.account.snapshots.truncate(mark.snapshots);
        self.files.back_to(mark.written).map_err(Stop::Failed)
    }

    /// Adds the rows of a query to the table's file; all of them, or none and what the server said
    /// is in the log.
    fn copy(
        &mut self,
        session: &mut Reader<'_>,
        table: &LiveTable,
        query: &str,
    ) -> Result<bool, Stop> {
        self.copy_into(RowsInto::Table, session, table, &format!("({query})"))
    }

    /// Of a table by its name, or of a query in parentheses.
    fn copy_into(
        &mut self,
        into: RowsInto,
        session: &mut Reader<'_>,
        table: &LiveTable,
        from: &str,
    ) -> Result<bool, Stop> {
        let mut tries = 1;
        loop {
            match self.copy_once(into, session, table, from)? {
                Ok(()) => return Ok(true),
                Err(error) if locks::is_locked_out(&error) && tries < locks::TRIES => tries += 1,
                Err(error) => return self.refused(session, from, error).map(|()| false),
            }
        }
    }

    /// The same; what the server says where it gives none.
    fn copy_once(
        &mut self,
        into: RowsInto,
        session: &mut Reader<'_>,
        table: &LiveTable,
        from: &str,
    ) -> Result<Result<(), SqlError>, Stop> {
        let snapshot = session.snapshot;
        let mark = self.files.written();
        let mut failed = None;
        let files = &mut self.files;
        let rows = match into {
            RowsInto::Table => self.rows,
            RowsInto::Suspects => RowsOut::Csv,
        };
        let mut answer = Answer::new(rows, &table.shape);
        let copied = session.copy_out(
            &format!("COPY {from} TO STDOUT{}", rows.with()),
            &mut |data| {
                if failed.is_none() {
                    let rows = answer.take(data);
                    failed = match into {
                        RowsInto::Table => files.write(rows).err(),
                        RowsInto::Suspects => files.write_suspects(rows).err(),
                    };
                }
            },
        );
        if let Some(failed) = failed {
            return Err(Stop::Failed(failed));
        }
        match copied {
            Ok(rows) => {
                let known = &mut self.account.snapshots;
                if snapshot > 0 && known.last() != Some(&snapshot) {
                    known.push(snapshot);
                }
                self.account.rows.live += rows;
                self.account.rows.found += rows;
                self.account.rows.written += rows;
                Ok(Ok(()))
            }
            Err(error) => {
                self.files.back_to(mark).map_err(Stop::Failed)?;
                Ok(Err(error))
            }
        }
    }

    fn ask(
        &mut self,
        session: &mut Reader<'_>,
        query: &str,
    ) -> Result<Option<Vec<pgclinic_servers::TextRow>>, Stop> {
        match session.query(query) {
            Ok(rows) => Ok(Some(rows)),
            Err(error) => self.refused(session, query, error).map(|()| None),
        }
    }

    fn refused(&mut self, session: &Reader<'_>, query: &str, error: SqlError) -> Result<(), Stop> {
        let state = error
            .message()
            .map_or("-----", |message| message.sqlstate.as_str());
        self.last_refusal = (error.to_string(), state.to_owned());
        // Writing to a String cannot fail.
        let _written = writeln!(
            self.log,
            "{state}\t{}\t{query}",
            error.to_string().replace('\n', " | ")
        );
        if session.is_over() {
            return Err(Stop::Gone(error));
        }
        if locks::is_locked_out(&error) {
            self.locked = Some(error);
        }
        Ok(())
    }
}
