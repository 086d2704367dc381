//! Rows on their way into a file of columns.
//!
//! ```text
//! rows ─► gathered, a few MiB ─► batch ─► Parquet: encoded and compressed, until the row group is large enough
//!                                      └► Arrow: written as it is
//! ```

use std::fmt;
use std::mem::take;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use crate::cells;
use crate::gathering::Gathering;
use crate::kind::Field;

/// Bytes of a batch, unless memory is short.
const BATCH_BYTES: usize = 4 << 20;
/// Rows of a batch at most.
const BATCH_ROWS: usize = 64 << 10;
/// Rows of a row group at most.
const GROUP_ROWS: usize = 1 << 20;

/// A file holds 32,767 row groups; after so many of one size they are twice as large.
const GROUPS_OF_A_SIZE: usize = 8192;

/// The layout of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Apache Parquet, compressed with Snappy.
    Parquet,
    /// The Arrow IPC file format, not compressed.
    Arrow,
}

/// What a packer is made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PackerPlan {
    /// The layout of the file.
    pub layout: Layout,
    /// Its columns.
    pub fields: Vec<Field>,
    /// Memory in bytes for what is not written yet; a single row may need more.
    pub memory_bytes: usize,
}

/// Why rows cannot be packed: a mistake of whoever made the cells.
#[derive(Debug)]
pub struct ColumnarError(String);

impl fmt::Display for ColumnarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ColumnarError {}

impl From<ArrowError> for ColumnarError {
    fn from(error: ArrowError) -> Self {
        ColumnarError(error.to_string())
    }
}

impl From<ParquetError> for ColumnarError {
    fn from(error: ParquetError) -> Self {
        ColumnarError(error.to_string())
    }
}

enum Writer {
    Parquet(Box<ArrowWriter<Vec<u8>>>),
    Arrow(Box<FileWriter<Vec<u8>>>),
}

/// Takes rows and gives the bytes of a file.
pub struct Packer {
    layout: Layout,
    /// Made with the first batch, which says how columns are encoded.
    writer: Option<Writer>,
    schema: Arc<Schema>,
    columns: Vec<Gathering>,
    rows: usize,
    batch_bytes: usize,
    group_bytes: usize,
}

impl Packer {
    /// For a file of its own.
    pub fn new(plan: &PackerPlan) -> Result<Self, ColumnarError> {
        let fields = plan
            .fields
            .iter()
            .map(|field| field.kind.field(&field.name));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Packer {
            layout: plan.layout,
            writer: None,
            schema,
            columns: plan
                .fields
                .iter()
                .map(|field| Gathering::new(&field.kind))
                .collect(),
            rows: 0,
            batch_bytes: BATCH_BYTES.min(plan.memory_bytes / 4),
            group_bytes: plan.memory_bytes / 2,
        })
    }

    /// Takes whole rows; appends to `out` what of the file is ready.
    pub fn add(&mut self, mut rows: &[u8], out: &mut Vec<u8>) -> Result<(), ColumnarError> {
        while !rows.is_empty() && !self.columns.is_empty() {
            for column in &mut self.columns {
                let cell = cells::take(&mut rows);
                let cut = || ColumnarError("a row ends before its last column".into());
                column.add(cell.ok_or_else(cut)?)?;
            }
            self.rows += 1;
            // To add up many columns for each row would be most of the work.
            let is_time = self.rows.is_multiple_of(64);
            if self.rows >= BATCH_ROWS || (is_time && self.held() >= self.batch_bytes) {
                self.write_batch(out)?;
            }
        }
        if self.held() >= self.batch_bytes {
            self.write_batch(out)
        } else {
            Ok(())
        }
    }

    fn held(&self) -> usize {
        self.columns.iter().map(Gathering::held).sum()
    }

    fn write_batch(&mut self, out: &mut Vec<u8>) -> Result<(), ColumnarError> {
        if take(&mut self.rows) == 0 {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let writer = begun(self.layout, &self.schema, &self.columns)?;
                self.writer.insert(writer)
            }
        };
        let columns: Result<Vec<_>, _> = self.columns.iter_mut().map(Gathering::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns?)?;
        let ready = match writer {
            Writer::Parquet(writer) => {
                writer.write(&batch)?;
                let doublings = writer.flushed_row_groups().len() / GROUPS_OF_A_SIZE;
                if writer.memory_size() >> doublings >= self.group_bytes {
                    writer.flush()?;
                }
                writer.inner_mut()
            }
            Writer::Arrow(writer) => {
                writer.write(&batch)?;
                writer.get_mut()
            }
        };
        out.append(ready);
        Ok(())
    }

    /// There are no more rows: appends the end of the file.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), ColumnarError> {
        self.write_batch(out)?;
        let writer = match self.writer {
            Some(writer) => writer,
            None => begun(self.layout, &self.schema, &self.columns)?,
        };
        out.extend_from_slice(&match writer {
            Writer::Parquet(writer) => writer.into_inner()?,
            Writer::Arrow(writer) => writer.into_inner()?,
        });
        Ok(())
    }
}

/// A writer whose file begins with what was gathered.
fn begun(
    layout: Layout,
    schema: &Arc<Schema>,
    columns: &[Gathering],
) -> Result<Writer, ColumnarError> {
    Ok(match layout {
        Layout::Parquet => {
            let properties = Some(parquet_properties(schema, columns));
            let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(schema), properties);
            Writer::Parquet(Box::new(writer?))
        }
        Layout::Arrow => Writer::Arrow(Box::new(FileWriter::try_new(Vec::new(), schema)?)),
    })
}

/// A dictionary of values that hardly ever come again takes most of the time, and saves nothing.
fn parquet_properties(schema: &Schema, columns: &[Gathering]) -> WriterProperties {
    let plain = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_created_by("pgclinic".into());
    let columns = schema.fields().iter().zip(columns);
    let varied = columns.filter(|(_, column)| column.is_varied());
    let properties = varied.fold(plain, |properties, (field, _)| {
        let path = ColumnPath::new(vec![field.name().clone()]);
        properties.set_column_dictionary_enabled(path, false)
    });
    properties.build()
}
