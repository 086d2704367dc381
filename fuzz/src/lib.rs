//! A cluster of PostgreSQL 18 in memory, made from any bytes: pages of 1 kB and few numbers, so
//! that rows refer to each other.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use pgclinic_format::Layout;
use pgclinic_format::attribute::ColumnLayout;
use pgclinic_format::build::{PageBuilder, TupleBuilder, sound_control_file};
use pgclinic_source::Memory;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 1024;
/// The OID of the only database.
pub const DATABASE: u32 = 5;

/// The bytes that decide.
pub struct Choice<'a>(pub &'a [u8]);

impl<'a> Choice<'a> {
    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Up to `most` bytes.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A number that other rows are likely to have too.
    pub fn number(&mut self) -> Option<u32> {
        Some(match self.byte()? {
            byte @ 0..=127 => 16_384 + u32::from(byte % 24),
            byte @ 128..=223 => KNOWN[usize::from(byte) % KNOWN.len()],
            _ => u32::from_le_bytes(*self.bytes(4).first_chunk()?),
        })
    }
}

/// Types, collations, operator families and access methods.
const KNOWN: [u32; 32] = [
    0, 1, 2, 16, 19, 20, 21, 23, 25, 26, 100, 397, 403, 405, 701, 783, 869, 950, 1042, 1700, 1976,
    1988, 1994, 2742, 2950, 3580, 3802, 3904, 4000, 5050, 5051, 4451,
];
/// Kinds of relations and types, persistence, alignment, providers, truth.
const LETTERS: &[u8] = b"rtiSmvcfpIpubedcsid\x00\x01";

/// A column of a catalog.
pub type Column = (&'static str, ColumnLayout);

/// A catalog whose columns `pg_attribute` tells.
pub struct Catalog {
    /// OID, and the number of its file.
    pub oid: u32,
    /// Name.
    pub name: &'static str,
    /// What is asked of it.
    pub columns: &'static [Column],
}

const fn of(name: &'static str, attlen: i16, attalign: u8) -> Column {
    (name, ColumnLayout { attlen, attalign })
}
const fn oid(name: &'static str) -> Column {
    of(name, 4, 4)
}
const fn letter(name: &'static str) -> Column {
    of(name, 1, 1)
}
const fn name(column: &'static str) -> Column {
    of(column, 64, 1)
}
const fn long(name: &'static str) -> Column {
    of(name, -1, 4)
}
const fn int2(name: &'static str) -> Column {
    of(name, 2, 2)
}
const fn int8(name: &'static str) -> Column {
    of(name, 8, 8)
}

/// The catalogs that are read beside `pg_class`, `pg_attribute` and `pg_namespace`.
pub const CATALOGS: [Catalog; 8] = [
    Catalog {
        oid: 1247,
        name: "pg_type",
        columns: &[
            oid("oid"),
            name("typname"),
            int2("typlen"),
            letter("typbyval"),
            letter("typtype"),
            letter("typalign"),
            oid("typrelid"),
            oid("typelem"),
            oid("typbasetype"),
        ],
    },
    Catalog {
        oid: 3501,
        name: "pg_enum",
        columns: &[
            oid("oid"),
            oid("enumtypid"),
            oid("enumsortorder"),
            name("enumlabel"),
        ],
    },
    Catalog {
        oid: 3541,
        name: "pg_range",
        columns: &[
            oid("rngtypid"),
            oid("rngsubtype"),
            oid("rngmultitypid"),
            oid("rngcollation"),
            oid("rngsubopc"),
        ],
    },
    Catalog {
        oid: 2610,
        name: "pg_index",
        columns: &[
            oid("indexrelid"),
            oid("indrelid"),
            int2("indnkeyatts"),
            letter("indisunique"),
            letter("indnullsnotdistinct"),
            letter("indisexclusion"),
            letter("indimmediate"),
            letter("indisvalid"),
            letter("indisready"),
            letter("indislive"),
            long("indkey"),
            long("indcollation"),
            long("indclass"),
            long("indoption"),
        ],
    },
    Catalog {
        oid: 2616,
        name: "pg_opclass",
        columns: &[
            oid("oid"),
            oid("opcmethod"),
            name("opcname"),
            oid("opcfamily"),
            oid("opcintype"),
            oid("opckeytype"),
        ],
    },
    Catalog {
        oid: 2603,
        name: "pg_amproc",
        columns: &[
            oid("amprocfamily"),
            oid("amproclefttype"),
            oid("amprocrighttype"),
            int2("amprocnum"),
            oid("amproc"),
        ],
    },
    Catalog {
        oid: 3456,
        name: "pg_collation",
        columns: &[
            oid("oid"),
            name("collname"),
            letter("collprovider"),
            letter("collisdeterministic"),
            long("collcollate"),
            long("colllocale"),
            long("collversion"),
        ],
    },
    Catalog {
        oid: 2224,
        name: "pg_sequence",
        columns: &[oid("seqrelid"), int8("seqmin"), int8("seqmax")],
    },
];

/// Files in the making: rows by path, packed into pages at the end.
#[derive(Default)]
pub struct Files {
    rows: BTreeMap<String, Vec<Vec<u8>>>,
    bytes: BTreeMap<String, Vec<u8>>,
}

impl Files {
    /// With the rows that tell of [`CATALOGS`].
    pub fn new() -> Self {
        let mut files = Files::default();
        for catalog in &CATALOGS {
            let class = [
                ("oid", catalog.oid),
                ("relfilenode", catalog.oid),
                ("relnatts", count(catalog.columns.len())),
            ];
            files.class(catalog.name, b'r', &class);
            for (column, number) in catalog.columns.iter().zip(1..) {
                files.attribute(catalog.oid, *column, &[("attnum", number)]);
            }
        }
        files
    }

    /// A row of `pg_class`.
    pub fn class(&mut self, relation: &str, kind: u8, values: &[(&str, u32)]) {
        let columns = layout().pg_class.iter();
        let columns: Vec<Column> = columns.map(|own| (own.name, own.layout)).collect();
        let row = row(&columns, |column, layout| match column {
            "relname" => padded(relation),
            "relkind" => vec![kind],
            "relpersistence" => vec![b'p'],
            "relispopulated" => vec![1],
            "relam" if !values.iter().any(|(own, _)| *own == "relam") => vec![2, 0, 0, 0],
            "relnamespace" => vec![11, 0, 0, 0],
            _ => given(column, layout, values),
        });
        self.row(1259, row);
    }

    /// A row of `pg_attribute`.
    pub fn attribute(&mut self, relation: u32, column: Column, values: &[(&str, u32)]) {
        let (name, own) = column;
        let columns = layout().pg_attribute.iter();
        let columns: Vec<Column> = columns.map(|own| (own.name, own.layout)).collect();
        let row = row(&columns, |column, layout| match column {
            "attrelid" => relation.to_le_bytes().to_vec(),
            "attname" => padded(name),
            "attlen" => own.attlen.to_le_bytes().to_vec(),
            "attalign" => vec![match own.attalign {
                1 => b'c',
                2 => b's',
                4 => b'i',
                _ => b'd',
            }],
            "attstorage" => vec![if own.attlen == -1 { b'x' } else { b'p' }],
            _ => given(column, layout, values),
        });
        self.row(1249, row);
    }

    /// A row of one of [`CATALOGS`], its long values as they are.
    pub fn catalog(&mut self, oid: u32, values: &[(&str, u32)], long: &[(&str, &[u8])]) {
        let catalog = CATALOGS.iter().find(|own| own.oid == oid);
        let columns = catalog.map_or(&[][..], |own| own.columns);
        let row = row(columns, |column, layout| {
            match long.iter().find(|(own, _)| *own == column) {
                Some((_, payload)) => varlena(payload),
                None => given(column, layout, values),
            }
        });
        self.row(oid, row);
    }

    /// A row of the catalog that the bytes choose, with values that they choose too.
    pub fn any_row(&mut self, choice: &mut Choice<'_>) -> Option<()> {
        let number = usize::from(choice.byte()?) % (CATALOGS.len() + 2);
        let own = |columns: &[pgclinic_format::layout::CatalogColumn]| -> Vec<Column> {
            columns.iter().map(|own| (own.name, own.layout)).collect()
        };
        let (oid, columns) = match CATALOGS.get(number) {
            Some(catalog) => (catalog.oid, catalog.columns.to_vec()),
            None if number == CATALOGS.len() => (1259, own(layout().pg_class)),
            None => (1249, own(layout().pg_attribute)),
        };
        let mut values = Vec::new();
        for (_, layout) in &columns {
            values.push(any_value(*layout, choice)?);
        }
        let mut values = values.into_iter();
        let row = row(&columns, |_, _| values.next().unwrap_or_default());
        self.row(oid, row);
        Some(())
    }

    fn row(&mut self, file: u32, row: Vec<u8>) {
        let path = format!("base/{DATABASE}/{file}");
        self.rows.entry(path).or_default().push(row);
    }

    /// Adds a page to a file.
    pub fn page(&mut self, file: u32, page: &[u8]) {
        let path = format!("base/{DATABASE}/{file}");
        self.bytes.entry(path).or_default().extend_from_slice(page);
    }

    /// The cluster.
    pub fn cluster(self) -> Memory {
        let source = Memory::new("made")
            .with("PG_VERSION", "18\n")
            .with(format!("base/{DATABASE}/PG_VERSION"), "18\n")
            .with("global/pg_control", sound_control_file(PAGE_BYTES as u32))
            .with("pg_xact/0000", vec![0x55; PAGE_BYTES]);
        for (path, rows) in self.rows {
            source.insert(path, packed(&rows));
        }
        for (path, bytes) in self.bytes {
            source.insert(path, bytes);
        }
        source
    }
}

fn layout() -> &'static Layout {
    Layout::of_major(18).expect("a major")
}

fn count(len: usize) -> u32 {
    u32::try_from(len).expect("a short list")
}

fn padded(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(64, 0);
    bytes
}

fn varlena(payload: &[u8]) -> Vec<u8> {
    let header = (count(payload.len()) + 4) << 2;
    [&header.to_le_bytes()[..], payload].concat()
}

fn given(column: &str, layout: ColumnLayout, values: &[(&str, u32)]) -> Vec<u8> {
    let value = values.iter().find(|(own, _)| *own == column);
    let mut bytes = value.map_or(0, |(_, value)| *value).to_le_bytes().to_vec();
    match usize::try_from(layout.attlen) {
        Ok(len) => bytes.resize(len, 0),
        Err(_) => bytes = varlena(&[]),
    }
    bytes
}

fn any_value(layout: ColumnLayout, choice: &mut Choice<'_>) -> Option<Vec<u8>> {
    Some(match layout.attlen {
        4 => choice.number()?.to_le_bytes().to_vec(),
        1 => match choice.byte()? {
            byte @ 0..=200 => vec![LETTERS[usize::from(byte) % LETTERS.len()]],
            byte => vec![byte],
        },
        2 => i16::from(choice.byte()?.cast_signed())
            .to_le_bytes()
            .to_vec(),
        -1 => {
            let most = usize::from(choice.byte()?);
            varlena(choice.bytes(most))
        }
        64 => {
            let mut bytes = vec![choice.byte()?];
            bytes.resize(64, 0);
            bytes
        }
        len => {
            let len = usize::try_from(len).ok()?;
            let mut bytes = choice.bytes(len).to_vec();
            bytes.resize(len, 0);
            bytes
        }
    })
}

fn row(columns: &[Column], mut value: impl FnMut(&str, ColumnLayout) -> Vec<u8>) -> Vec<u8> {
    let mut data: Vec<u8> = Vec::new();
    for (name, layout) in columns {
        data.resize(data.len().next_multiple_of(usize::from(layout.attalign)), 0);
        data.extend(value(name, *layout));
    }
    let count = u16::try_from(columns.len()).expect("few columns");
    TupleBuilder::new(count).data(&data).finish()
}

/// As many rows a page as fit; one that fits on none is left out.
fn packed(rows: &[Vec<u8>]) -> Vec<u8> {
    let empty = || PageBuilder::new(1024, &[]);
    let (mut bytes, mut page, mut used, mut block) = (Vec::new(), empty(), 24, 0);
    for row in rows {
        let room = row.len().next_multiple_of(8) + 4;
        if 24 + room > PAGE_BYTES {
            continue;
        }
        if used + room > PAGE_BYTES {
            bytes.extend(page.finish(block));
            (page, used, block) = (empty(), 24, block + 1);
        }
        page = page.item(row);
        used += room;
    }
    bytes.extend(page.finish(block));
    bytes
}
