//! What was packed is read back, in either layout, however little memory there is.

use crate::reading;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use pgclinic_columnar::{ColumnKind, Field, Layout, Packer, PackerPlan, cells};

const ROWS: i32 = 10_000;

fn fields() -> Vec<Field> {
    let kinds = [
        ("number", ColumnKind::Int32),
        ("text", ColumnKind::Text),
        (
            "price",
            ColumnKind::Decimal {
                precision: 20,
                scale: 3,
            },
        ),
        ("moment", ColumnKind::TimestampUtc),
        ("list", ColumnKind::List(Box::new(ColumnKind::Int64))),
        ("id", ColumnKind::Uuid),
        ("flag", ColumnKind::Boolean),
    ];
    let field = |(name, kind): (&str, ColumnKind)| Field {
        name: name.into(),
        kind,
    };
    kinds.map(field).to_vec()
}

/// Every seventh row is nothing but nulls, and lists grow from none to three elements.
fn row(number: i32, out: &mut Vec<u8>) {
    if number % 7 == 0 {
        (0..fields().len()).for_each(|_| cells::put_null(out));
        return;
    }
    cells::put(&number.to_le_bytes(), out);
    cells::put(format!("row {number} ä").as_bytes(), out);
    cells::put(&(-i128::from(number)).to_le_bytes(), out);
    cells::put(&(i64::from(number) * 1_000_000).to_le_bytes(), out);
    let start = cells::begin(out);
    for element in 0..number % 4 {
        match element {
            1 => cells::put_null(out),
            _ => cells::put(&i64::from(element).to_le_bytes(), out),
        }
    }
    cells::end(start, out);
    cells::put(&[number.to_le_bytes()[0]; 16], out);
    cells::put(&[u8::from(number % 2 == 0)], out);
}

fn packed(layout: Layout, memory_bytes: usize, portion: usize) -> Vec<u8> {
    let plan = PackerPlan {
        layout,
        fields: fields(),
        memory_bytes,
    };
    let mut packer = Packer::new(&plan).expect("a packer");
    let (mut file, mut rows) = (Vec::new(), Vec::new());
    for number in 0..ROWS {
        row(number, &mut rows);
        if rows.len() >= portion {
            packer.add(&rows, &mut file).expect("rows");
            rows.clear();
        }
    }
    packer.add(&rows, &mut file).expect("rows");
    packer.finish(&mut file).expect("an end");
    file
}

fn hold(batch: &RecordBatch, next: &mut i32) {
    for row in 0..batch.num_rows() {
        let number = *next;
        *next += 1;
        let is_null: Vec<bool> = batch.columns().iter().map(|one| one.is_null(row)).collect();
        assert_eq!(is_null, vec![number % 7 == 0; batch.num_columns()]);
        if number % 7 == 0 {
            continue;
        }
        let column = |at| batch.column(at);
        assert_eq!(column(0).as_primitive::<Int32Type>().value(row), number);
        assert_eq!(
            column(1).as_string::<i32>().value(row),
            format!("row {number} ä")
        );
        let price = column(2).as_primitive::<Decimal128Type>().value(row);
        assert_eq!(price, -i128::from(number));
        let moment = column(3)
            .as_primitive::<TimestampMicrosecondType>()
            .value(row);
        assert_eq!(moment, i64::from(number) * 1_000_000);
        let list = column(4).as_list::<i32>().value(row);
        let list: Vec<Option<i64>> = list.as_primitive::<Int64Type>().iter().collect();
        let expected = [Some(0), None, Some(2)];
        assert_eq!(
            list,
            &expected[..usize::try_from(number % 4).expect("small")]
        );
        assert_eq!(
            column(5).as_fixed_size_binary().value(row),
            [number.to_le_bytes()[0]; 16]
        );
        assert_eq!(column(6).as_boolean().value(row), number % 2 == 0);
    }
}

#[test]
fn rows_come_back_in_their_order() {
    let folder = tempfile::tempdir().expect("a directory");
    for (layout, name) in [
        (Layout::Parquet, "file.parquet"),
        (Layout::Arrow, "file.arrow"),
    ] {
        for (memory_bytes, portion) in [(1 << 30, 1 << 20), (64 << 10, 1000), (4096, 1)] {
            let path = folder.path().join(name);
            std::fs::write(&path, packed(layout, memory_bytes, portion)).expect("written");
            let (schema, batches) = reading::read(&path);
            assert_eq!(schema.field(5).data_type(), &DataType::FixedSizeBinary(16));
            assert_eq!(
                schema
                    .field(5)
                    .metadata()
                    .get("ARROW:extension:name")
                    .map(String::as_str),
                Some("arrow.uuid")
            );
            let mut next = 0;
            batches.iter().for_each(|batch| hold(batch, &mut next));
            assert_eq!(next, ROWS);
        }
    }
}

#[test]
fn cells_of_another_kind_are_refused() {
    let plan = PackerPlan {
        layout: Layout::Parquet,
        fields: fields(),
        memory_bytes: 1 << 20,
    };
    let mut packer = Packer::new(&plan).expect("a packer");
    let (mut file, mut cell) = (Vec::new(), Vec::new());
    cells::put(b"123", &mut cell);
    assert!(packer.add(&cell, &mut file).is_err());
    let mut packer = Packer::new(&plan).expect("a packer");
    let mut cut = Vec::new();
    row(1, &mut cut);
    assert!(packer.add(&cut[..cut.len() - 1], &mut file).is_err());
}
