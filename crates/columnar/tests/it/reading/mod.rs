//! Files of columns, read back.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use arrow_schema::Schema;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The columns and rows of a file, whose extension tells what it is.
pub(crate) fn read(path: &Path) -> (Arc<Schema>, Vec<RecordBatch>) {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_arrow = path
        .extension()
        .is_some_and(|extension| extension == "arrow");
    if is_arrow {
        let reader = FileReader::try_new(file, None).expect("an Arrow file");
        return (
            reader.schema(),
            reader.map(|batch| batch.expect("a batch")).collect(),
        );
    }
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    let schema = Arc::clone(builder.schema());
    let reader = builder.build().expect("a reader");
    (
        schema,
        reader.map(|batch| batch.expect("a batch")).collect(),
    )
}
