//! One table of a running server on its way into a file: as a whole, else by ranges of blocks, else row by row, else value by
//! value. What the server does not give is handed to our own reader.

use std::fmt::Write;

use pgclinic_servers::SqlError;

use super::rows_out::{Answer, RowsOut};
use super::snapshots::Reader;
use super::tables::{LiveTable, RangeWay};
use crate::salvage::{LossPlace, PLACES_MAX, PartFile, SalvageError, TableAccount};

/// Blocks that are asked for at once after the table as a whole failed: many where the server scans, few where each row is
/// named.
const SCAN_BLOCKS: u32 = 1024;
const EACH_BLOCKS: u32 = 32;

/// The class of errors that are no matter of a block: no right to read the table, no such column.
const NOT_ALLOWED: &str = "42";

/// Why a table cannot be gone on with.
pub(super) enum Stop {
    /// The connection is gone: the server may have crashed.
    Gone(SqlError),
    /// The destination does not take what is written.
    Failed(SalvageError),
}

/// Where the work on one table stands; it outlives a session.
pub(super) struct TableFile {
    pub(super) file: PartFile,
    pub(super) account: TableAccount,
    /// What the server refused, statement by statement.
    pub(super) log: String,
    /// Ranges of blocks that are still to be asked for, the next one last.
    open: Vec<(u32, u32)>,
    /// Blocks that the server does not give.
    pub(super) bad_blocks: Vec<u32>,
    /// The table was asked for as a whole.
    was_tried: bool,
    way: RangeWay,
    rows: RowsOut,
    /// What was refused last, and its SQLSTATE.
    last_refusal: (String, String),
    /// Why the server gives nothing of the table.
    pub(super) refused_whole: Option<String>,
}

impl TableFile {
    pub(super) fn new(file: PartFile, account: TableAccount, way: RangeWay, rows: RowsOut) -> Self {
        TableFile {
            file,
            account,
            log: String::new(),
            open: Vec::new(),
            bad_blocks: Vec::new(),
            was_tried: false,
            way,
            rows,
            last_refusal: Default::default(),
            refused_whole: None,
        }
    }

    /// Goes on until all blocks were asked for.
    pub(super) fn work(&mut self, session: &mut Reader<'_>, table: &LiveTable) -> Result<(), Stop> {
        if !self.was_tried {
            self.was_tried = true;
            let step = match self.way {
                RangeWay::Scan => SCAN_BLOCKS,
                RangeWay::Each => EACH_BLOCKS,
            };
            let starts = (0..table.blocks).step_by(usize::try_from(step).unwrap_or(1));
            let ranges = starts.map(|from| (from, from.saturating_add(step).min(table.blocks)));
            self.open = ranges.rev().collect();
            if self.copy(session, table, &table.whole())? {
                self.open.clear();
            } else if self.last_refusal.1.starts_with(NOT_ALLOWED) {
                self.open.clear();
                self.refused_whole = Some(self.last_refusal.0.clone());
                self.bad_blocks = (0..table.blocks).collect();
            }
        }
        while let Some((from, to)) = self.open.last().copied() {
            // A range during which the server goes away is there again, in halves.
            let middle = from.midpoint(to);
            self.open.pop();
            if to - from > 1 {
                self.open.extend([(middle, to), (from, middle)]);
                if self.copy(session, table, &table.range(from, to, self.way))? {
                    self.open.truncate(self.open.len() - 2);
                }
            } else {
                self.bad_blocks.push(from);
                if self.copy(session, table, &table.range(from, to, self.way))?
                    || self.rows(session, table, from)?
                {
                    self.bad_blocks.pop();
                }
            }
        }
        Ok(())
    }

    /// Neither the server nor its files give these blocks.
    pub(super) fn lose(&mut self, blocks: &[u32], why: &str) {
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

    /// The rows of a block one by one, if the server can say which there are.
    fn rows(
        &mut self,
        session: &mut Reader<'_>,
        table: &LiveTable,
        block: u32,
    ) -> Result<bool, Stop> {
        let ids = LiveTable {
            columns: "ctid".into(),
            ..table.clone()
        };
        let Some(found) = self.ask(session, &ids.range(block, block + 1, self.way))? else {
            return Ok(false);
        };
        for row in found.into_iter().flatten().flatten() {
            let item = row.trim_end_matches(')').rsplit(',').next();
            let Some(item) = item.and_then(|item| item.parse::<u16>().ok()) else {
                continue;
            };
            if !self.copy(session, table, &table.row(block, item))? {
                self.values(session, table, block, item)?;
            }
        }
        Ok(true)
    }

    /// The values of a row one by one; those that the server does not give are null.
    fn values(
        &mut self,
        session: &mut Reader<'_>,
        table: &LiveTable,
        block: u32,
        item: u16,
    ) -> Result<(), Stop> {
        let mut columns = Vec::new();
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
            match self.ask(session, &probe)? {
                Some(_) => columns.push(quoted),
                None => {
                    columns.push("NULL".into());
                    self.account.places.push(LossPlace {
                        block,
                        item: Some(item),
                        in_toast: false,
                        column: Some(name.clone()),
                        why: "the server does not give this value: see the log beside the file"
                            .into(),
                    });
                }
            }
        }
        let given = LiveTable {
            columns: columns.join(", "),
            ..table.clone()
        };
        match self.copy(session, table, &given.row(block, item))? {
            true => self.account.rows.partial += 1,
            false => {
                self.account.rows.lost += 1;
                let why = "the server does not give this row: see the log beside the file";
                self.account.places.push(LossPlace {
                    block,
                    item: Some(item),
                    in_toast: false,
                    column: None,
                    why: why.into(),
                });
            }
        }
        Ok(())
    }

    /// Adds the rows of a query to the file; all of them, or none and what the server said is in the log.
    fn copy(
        &mut self,
        session: &mut Reader<'_>,
        table: &LiveTable,
        query: &str,
    ) -> Result<bool, Stop> {
        let snapshot = session.snapshot;
        let mark = self.file.bytes();
        let mut failed = None;
        let file = &mut self.file;
        let mut answer = Answer::new(self.rows, &table.shape);
        let copied = session.copy_out(
            &format!("COPY ({query}) TO STDOUT{}", self.rows.with()),
            &mut |data| {
                if failed.is_none() {
                    failed = file.write(answer.take(data)).err();
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
                self.account.rows.written += rows;
                Ok(true)
            }
            Err(error) => {
                self.file.back_to(mark).map_err(Stop::Failed)?;
                self.refused(session, query, error).map(|()| false)
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
        match session.is_over() {
            true => Err(Stop::Gone(error)),
            false => Ok(()),
        }
    }
}
