//! Looks at some pages of a table, evenly spread, without a server.

use std::fmt::Display;

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, Persistence, RelKind, Relation, Visibility};
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{Attribute, Attributes, Fork, HeapTuple, LpFlags, Page};

use super::sample::{Order, Sample};
use super::wal::writing;
use super::{ColumnShape, TableShape, Writing};
use crate::error::{Error, Result};

/// Pages that are looked at.
const BLOCKS_MAX: u64 = 400;

/// The shape of a table. `relation` is `schema.name`, or a name in `public`; `database` may be left
/// out where only one has such a table.
///
/// # Errors
/// When there is no such table, or its columns cannot be told.
pub fn look(cluster: &Cluster, database: Option<&str>, relation: &str) -> Result<TableShape> {
    let (schema, name) = relation.split_once('.').unwrap_or(("public", relation));
    let catalog = find(cluster, database, schema, name)?;
    let found = catalog
        .by_name(schema, name)
        .ok_or_else(|| refused("there is no such table"))?;
    if !matches!(found.kind, RelKind::Table | RelKind::MaterializedView) {
        return Err(refused(format!("{schema}.{name} is no table")));
    }
    let files = files(cluster, &catalog, found)?;
    let mut looking = Looking::new(cluster, found, &catalog)?;
    looking.read(&files);
    let shape = looking.shape(format!("{schema}.{name}"), &files)?;
    let writing = Some(written(cluster, &catalog, found, &files));
    Ok(TableShape { writing, ..shape })
}

/// How fast the table is written, by the WAL that is there.
fn written(
    cluster: &Cluster,
    catalog: &Catalog,
    relation: &Relation,
    files: &ForkFiles,
) -> Writing {
    let unknown = |why: &str| Writing::Unknown {
        why: why.to_owned(),
    };
    if relation.persistence != Persistence::Permanent {
        return unknown("rows of an unlogged table leave nothing in WAL");
    }
    let Some(classes) = catalog.by_name("pg_catalog", "pg_class") else {
        return unknown("pg_class does not name itself");
    };
    let classes = FileNumber {
        tablespace: classes.tablespace,
        database: catalog.database,
        filenode: classes.filenode,
    };
    writing(cluster, files.number(), classes)
}

fn refused(words: impl Display) -> Error {
    Error::Refused(words.to_string())
}

/// The catalog of the one database that has the table.
fn find(cluster: &Cluster, database: Option<&str>, schema: &str, name: &str) -> Result<Catalog> {
    let named = cluster.databases.values().filter(|known| {
        known.oid != 0 && database.is_none_or(|wanted| known.name.as_deref() == Some(wanted))
    });
    let mut with_it: Vec<Catalog> = named
        .map(|known| cluster.catalog(known.oid))
        .filter(|catalog| catalog.by_name(schema, name).is_some())
        .collect();
    if with_it.len() > 1 {
        let names: Vec<&str> = with_it
            .iter()
            .filter_map(|catalog| catalog.database_name.as_deref())
            .collect();
        return Err(refused(format!(
            "{schema}.{name} is in the databases {}: name one with --database",
            names.join(", ")
        )));
    }
    with_it
        .pop()
        .ok_or_else(|| refused(format!("no database has a table {schema}.{name}")))
}

fn files(cluster: &Cluster, catalog: &Catalog, relation: &Relation) -> Result<ForkFiles> {
    let homes = cluster
        .homes
        .iter()
        .filter(|home| home.database == catalog.database && home.tablespace == relation.tablespace);
    for home in homes {
        let files = cluster
            .files(home)
            .map_err(|trouble| refused(format!("{}: {}", trouble.what, trouble.why)))?;
        let main = files.into_iter().find(|files| {
            files.filenode == relation.filenode
                && files.fork == Fork::Main
                && files.temporary.is_none()
        });
        if let Some(main) = main {
            return Ok(main);
        }
    }
    Err(refused(format!(
        "{} has no file",
        relation.qualified_name()
    )))
}

/// A column that is looked at.
struct SampledColumn {
    name: String,
    type_name: String,
    order: Order,
    is_long: bool,
    sample: Sample,
}

struct Looking<'a> {
    cluster: &'a Cluster,
    visibility: Visibility<'a>,
    relation: &'a Relation,
    /// By place; none for a dropped column.
    columns: Vec<Option<SampledColumn>>,
    blocks_seen: u64,
    blocks_unreadable: u64,
    rows: u64,
}

impl<'a> Looking<'a> {
    fn new(cluster: &'a Cluster, relation: &'a Relation, catalog: &Catalog) -> Result<Self> {
        let unknown = || {
            refused(format!(
                "the columns of {} cannot be determined",
                relation.qualified_name()
            ))
        };
        let columns = relation.columns.as_ref().ok_or_else(unknown)?;
        let looked = columns.iter().map(|column| {
            (!column.dropped).then(|| {
                let type_name = catalog.type_info(column.type_oid).name.clone();
                SampledColumn {
                    name: column.name.clone(),
                    order: Order::of(&type_name),
                    type_name,
                    is_long: column.layout.attlen < 0,
                    sample: Sample::default(),
                }
            })
        });
        Ok(Looking {
            cluster,
            visibility: Visibility::new(cluster),
            relation,
            columns: looked.collect(),
            blocks_seen: 0,
            blocks_unreadable: 0,
            rows: 0,
        })
    }

    fn read(&mut self, files: &ForkFiles) {
        let build = self.cluster.build;
        let blocks = files.blocks(build.block_size, build.segment_bytes);
        let step = blocks.div_ceil(BLOCKS_MAX).max(1);
        let mut buffer = vec![0; usize::try_from(build.block_size).unwrap_or(8_192)];
        for block in (0..BLOCKS_MAX)
            .map(|number| number * step)
            .take_while(|block| *block < blocks)
        {
            self.blocks_seen += 1;
            let segment = u32::try_from(block / build.segment_blocks()).unwrap_or(u32::MAX);
            let offset = block % build.segment_blocks() * u64::from(build.block_size);
            let read = self
                .cluster
                .source()
                .read_at(&files.path(segment), offset, &mut buffer);
            let whole = read.is_ok_and(|read| read == buffer.len());
            match Page::parse(&buffer)
                .filter(|page| whole && (page.is_new() || page.header_is_sane_to_the_server()))
            {
                Some(page) => self.page(page),
                None => self.blocks_unreadable += 1,
            }
        }
    }

    fn page(&mut self, page: Page<'_>) {
        if page.is_new() {
            return;
        }
        for (_, pointer) in page
            .line_pointers()
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal)
        {
            let tuple = page.item(pointer).and_then(HeapTuple::parse);
            if let Some(tuple) = tuple.filter(|tuple| self.visibility.is_visible(*tuple)) {
                self.row(tuple);
            }
        }
    }

    fn row(&mut self, tuple: HeapTuple<'_>) {
        let layouts = self.relation.layouts.as_deref().unwrap_or_default();
        let attributes: std::result::Result<Vec<Attribute>, _> =
            Attributes::new(tuple, layouts).collect();
        let Ok(attributes) = attributes else { return };
        self.rows += 1;
        for (column, attribute) in self.columns.iter_mut().zip(attributes) {
            let Some(column) = column else { continue };
            let value = match attribute {
                Attribute::Value(range) => tuple.bytes().get(range),
                Attribute::Null | Attribute::Missing => None,
            };
            match value {
                None => column.sample.null(),
                Some(value) if column.is_long => column.sample.long(value),
                Some(value) => column.sample.fixed(value, column.order),
            }
        }
    }

    fn shape(self, table: String, files: &ForkFiles) -> Result<TableShape> {
        if self.rows == 0 {
            return Err(refused(format!(
                "{table} has no row in the pages that were examined"
            )));
        }
        let build = self.cluster.build;
        let blocks = files.blocks(build.block_size, build.segment_bytes);
        let columns = self.columns.into_iter().flatten();
        let columns: Vec<ColumnShape> = columns
            .map(|column| {
                column
                    .sample
                    .shape(&column.name, &column.type_name, column.is_long)
            })
            .collect();
        let read = self
            .blocks_seen
            .saturating_sub(self.blocks_unreadable)
            .max(1);
        Ok(TableShape {
            schema: "pgclinic.lab-shape/1".into(),
            table,
            blocks,
            blocks_seen: self.blocks_seen,
            blocks_unreadable: self.blocks_unreadable,
            rows_seen: self.rows,
            rows: u64::try_from(u128::from(self.rows) * u128::from(blocks) / u128::from(read))
                .unwrap_or(u64::MAX),
            columns,
            writing: None,
        })
    }
}
