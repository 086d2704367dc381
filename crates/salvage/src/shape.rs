//! What must be known of a table to read its rows: files, columns, types.

use std::collections::HashMap;
use std::sync::Arc;

use pgclinic_cluster::{
    Catalog, Cluster, Comparison, DatabaseDirectory, ForkFiles, Generated, Persistence, ReadGap,
    RelKind, Relation, Segment, fork_path, inventory,
};
use pgclinic_format::datum::{TypeInfo, TypeKind, is_printed};
use pgclinic_format::heap_tuple::{HEAP_MOVED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::oid::DEFAULT_TABLESPACE;
use pgclinic_format::{ColumnLayout, Fork, HeapTuple, Oid, Xid};
use pgclinic_source::{Presence, SourceErrorKind};

use crate::schema::given::{GivenColumn, GivenTable};
use crate::stored_types;
use crate::texts::below_domains;

/// Where the value of a column comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The row's attribute of this index, from 0.
    Attribute(usize),
    /// The row's place and fate.
    System(SystemColumn),
}

/// What a row version says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SystemColumn {
    /// `xmin`: who wrote it.
    Xmin,
    /// `xmax`: who deleted or locked it.
    Xmax,
    /// `ctid`: where it stands.
    Ctid,
    /// What became of it.
    VersionFate,
}

/// A column that is written.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Where its values come from.
    pub origin: Origin,
    /// Their type.
    pub ty: Arc<TypeInfo>,
    /// The type that the catalogs give, where values of it, or parts of them, are written as their
    /// stored bytes.
    pub bytes_of: Option<Arc<TypeInfo>>,
    /// What the type is bound to, as `atttypmod`; -1 for nothing.
    pub typmod: i32,
    /// What a file of columns holds of it.
    pub holding: ColumnEncoding,
    /// What rows have that were written before the column was added.
    pub missing: Missing,
}

impl Column {
    /// The type of its values, where the catalogs do not give it, or a part of it: what is written
    /// of them is none of their values.
    pub(crate) fn lost_type(&self) -> Option<&TypeInfo> {
        let is_unknown = |part: &TypeInfo| part.kind == TypeKind::Unknown;
        self.bytes_of
            .as_deref()
            .filter(|ty| ty.has_part(is_unknown))
    }
}

/// As what the values of a column stand in a file of columns: one kind for all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum ColumnEncoding {
    /// The kind nearest to their type.
    #[default]
    Nearest,
    /// Their text.
    Text,
    /// Their text in the encoding of the database.
    Bytes,
}

/// The value of rows that are older than a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Missing {
    /// Null.
    Null,
    /// This value, with its header where it has one.
    Value(Vec<u8>),
    /// A value that cannot be read.
    Lost,
}

/// Which columns are written besides those that a person sees.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ColumnChoice {
    /// Generated ones that are stored.
    pub generated: bool,
    /// Dropped ones.
    pub dropped: bool,
    /// `xmin`, `xmax`, `ctid` and the verdict, in front.
    pub system: bool,
}

/// A table as its files are read.
#[derive(Clone, Debug)]
pub struct Table {
    /// OID of its database.
    pub database_oid: Oid,
    /// Name of its database.
    pub database: String,
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// OID.
    pub oid: Oid,
    /// It is a materialised view.
    pub is_materialized_view: bool,
    /// The main fork.
    pub files: ForkFiles,
    /// The main fork of its TOAST relation, and its OID.
    pub toast: Option<(Oid, ForkFiles)>,
    /// What is written, in order.
    pub columns: Vec<Column>,
    /// The walk over its rows.
    pub layouts: Vec<ColumnLayout>,
    /// What a person should know of it.
    pub notes: Vec<String>,
    /// Its columns are guessed from its rows.
    pub is_guessed: bool,
    /// `relfrozenxid`: what is not frozen is younger. Invalid where nothing says it.
    pub relfrozenxid: Xid,
}

impl Table {
    /// The transaction that wrote the row, or the one that deleted it, is before `relfrozenxid`:
    /// the last one would have been frozen, and the other one's row removed.
    pub(crate) fn is_before_freeze(&self, tuple: HeapTuple<'_>) -> bool {
        let is_before = |xid: Xid| xid.is_normal() && xid.precedes(self.relfrozenxid);
        let written = !tuple.xmin_is_frozen() && tuple.t_infomask() & HEAP_MOVED == 0;
        let deleted = !tuple.has(HEAP_XMAX_INVALID)
            && !tuple.has(HEAP_XMAX_IS_MULTI)
            && !tuple.xmax_is_locked_only();
        self.relfrozenxid.is_normal()
            && ((written && is_before(tuple.t_xmin())) || (deleted && is_before(tuple.t_xmax())))
    }

    /// A table or materialised view of a catalog; why its rows cannot be read, otherwise.
    pub fn of(
        files: &MainForks,
        catalog: &Catalog,
        relation: &Relation,
        choice: ColumnChoice,
    ) -> Result<Self, String> {
        match relation.page_method() {
            Some(AccessMethod::Heap) => {}
            _ => return Err(why_unknown(relation)),
        }
        let unknown = || "its columns are unknown: pg_attribute does not give all of them";
        let columns = relation.columns.as_ref().ok_or_else(unknown)?;
        let layouts = relation.layouts.clone().ok_or_else(unknown)?;
        let mut table = Table {
            database_oid: catalog.database,
            database: database_name(catalog),
            schema: relation.schema.clone(),
            name: relation.name.clone(),
            oid: relation.oid,
            is_materialized_view: relation.kind == RelKind::MaterializedView,
            files: files.of(catalog, relation),
            toast: None,
            columns: Vec::new(),
            layouts,
            notes: Vec::new(),
            is_guessed: false,
            relfrozenxid: relation.relfrozenxid,
        };
        let toast = catalog.relations.get(&relation.toast);
        table.toast = toast.map(|toast| (toast.oid, files.of(catalog, toast)));
        if choice.system {
            table.columns.extend(system_columns());
        }
        for (column, index) in columns.iter().zip(0..) {
            table.add(catalog, column, index, choice);
        }
        Ok(table)
    }

    /// The same of a table whose columns the catalogs do not give, but a person does.
    pub fn of_given(
        files: &MainForks,
        catalog: &Catalog,
        relation: &Relation,
        choice: ColumnChoice,
        given: &GivenTable,
    ) -> Result<Self, String> {
        let columns = given.columns.iter();
        let described = Relation {
            columns: Some(Vec::new()),
            layouts: Some(columns.map(GivenColumn::layout).collect()),
            ..relation.clone()
        };
        let mut table = Table::of(files, catalog, &described, choice)?;
        table.take_given(given, choice);
        Ok(table)
    }

    /// A table whose files are all that there is of it.
    pub(crate) fn of_files(files: ForkFiles, choice: ColumnChoice, given: &GivenTable) -> Self {
        let nowhere = ForkFiles {
            segments: Vec::new(),
            ..files.clone()
        };
        let mut table = Table {
            database_oid: 0,
            database: String::new(),
            schema: given.schema.clone().unwrap_or_else(|| "public".into()),
            name: given.name.clone(),
            oid: 0,
            is_materialized_view: false,
            files,
            toast: Some((Table::ANY_TOAST, nowhere)),
            columns: Vec::new(),
            layouts: given.columns.iter().map(GivenColumn::layout).collect(),
            notes: Vec::new(),
            is_guessed: false,
            relfrozenxid: Xid::INVALID,
        };
        if choice.system {
            table.columns.extend(system_columns());
        }
        table.take_given(given, choice);
        table
    }

    /// Stands for the number of a TOAST relation that nothing tells.
    pub(crate) const ANY_TOAST: Oid = 0;

    fn take_given(&mut self, given: &GivenTable, choice: ColumnChoice) {
        for (column, index) in given.columns.iter().zip(0..) {
            let (ty, bytes_of) = if column.dropped {
                (Arc::new(bytes_of(column.layout())), None)
            } else {
                written_as(Arc::clone(&column.ty), column.layout())
            };
            if let Some(ty) = &bytes_of {
                self.notes.push(note_of_bytes(&column.name, &ty.name));
            }
            if !column.dropped || choice.dropped {
                self.columns.push(Column {
                    name: column.name.clone(),
                    origin: Origin::Attribute(index),
                    ty,
                    bytes_of,
                    typmod: -1,
                    holding: ColumnEncoding::Nearest,
                    // What rows have from before a column was added, no row says.
                    missing: if given.confidence.is_some() {
                        Missing::Lost
                    } else {
                        Missing::Null
                    },
                });
            }
        }
        self.is_guessed = given.confidence.is_some();
        self.notes.push(match given.confidence {
            None => "its columns are those that were given".into(),
            Some(confidence) => format!(
                "its columns are guessed from its rows, with a confidence of {} %: --schema takes corrections",
                (confidence * 100.0).floor()
            ),
        });
        self.notes.extend(given.notes.iter().cloned());
    }

    /// The written column that holds this attribute.
    pub(crate) fn name_of_attribute(&self, index: usize) -> Option<&str> {
        let of_attribute = |column: &&Column| column.origin == Origin::Attribute(index);
        let column = self.columns.iter().find(of_attribute)?;
        Some(&column.name)
    }

    fn add(
        &mut self,
        catalog: &Catalog,
        column: &pgclinic_cluster::Column,
        index: usize,
        choice: ColumnChoice,
    ) {
        if column.dropped && !choice.dropped {
            return;
        }
        match column.generated {
            Generated::Virtual => {
                let note = format!(
                    "column {} is generated when it is read: not written",
                    column.name
                );
                self.notes.push(note);
                return;
            }
            Generated::Stored if !choice.generated => return,
            Generated::Stored | Generated::No => {}
        }
        let missing = match (&column.missing, column.has_missing) {
            (Some(value), _) => Missing::Value(value.clone()),
            (None, true) => Missing::Lost,
            (None, false) => Missing::Null,
        };
        let (ty, bytes_of) = type_of(catalog, column);
        if let Some(ty) = &bytes_of {
            self.notes.push(note_of_bytes(&column.name, &ty.name));
        }
        self.columns.push(Column {
            name: column.name.clone(),
            origin: Origin::Attribute(index),
            ty,
            bytes_of,
            typmod: column.typmod,
            holding: ColumnEncoding::Nearest,
            missing,
        });
    }

    /// `database.schema.name`, for messages.
    pub fn full_name(&self) -> String {
        format!("{}.{}.{}", self.database, self.schema, self.name)
    }
}

/// The name of a catalog's database, or its number where the name is lost.
pub(crate) fn database_name(catalog: &Catalog) -> String {
    let name = catalog.database_name.clone();
    name.unwrap_or_else(|| catalog.database.to_string())
}

/// The main forks of a database, as they lie on disk: also those with a segment missing in the
/// middle.
pub struct MainForks {
    homes: Vec<DatabaseDirectory>,
    /// The folder of this major in a tablespace.
    version_folder: String,
    forks: HashMap<(Oid, Oid), ForkFiles>,
    /// Names in `pg_tblspc`, where all that a cluster has should be there.
    links: Option<Vec<String>>,
    /// Folders that cannot be listed.
    pub troubles: Vec<ReadGap>,
}

/// A server reads a relation through a link, and so do reads of the source: whether WAL was applied
/// to the files or not, the first segment is what the link leads to.
fn behind_link(cluster: &Cluster, mut files: ForkFiles) -> ForkFiles {
    if files.segments.is_empty()
        && let Presence::There(len) = Presence::of_file(cluster.source().as_ref(), &files.path(0))
    {
        files.segments.push(Segment { number: 0, len });
    }
    files
}

impl MainForks {
    /// Those of one database.
    pub fn of_database(cluster: &Cluster, database: Oid) -> Self {
        let own = cluster
            .homes
            .iter()
            .filter(|home| home.database == database);
        let mut found = MainForks {
            homes: own.cloned().collect(),
            version_folder: format!(
                "PG_{}_{}",
                cluster.layout.major, cluster.layout.catalog_version
            ),
            forks: HashMap::new(),
            links: links_of(cluster, database),
            troubles: Vec::new(),
        };
        for home in &found.homes {
            match cluster.files(home) {
                Ok(files) => {
                    let main = files
                        .into_iter()
                        .filter(|files| files.fork == Fork::Main && files.temporary.is_none())
                        .map(|files| behind_link(cluster, files));
                    let keyed = main.map(|files| ((home.tablespace, files.filenode), files));
                    found.forks.extend(keyed);
                }
                Err(trouble) => found.troubles.push(trouble),
            }
        }
        found
    }

    /// The relation is unlogged and has its init fork alone: a base backup leaves the main fork
    /// out, and a server in recovery removes it until recovery ends.
    pub(crate) fn leave_out(
        &self,
        cluster: &Cluster,
        catalog: &Catalog,
        relation: &Relation,
    ) -> bool {
        if relation.persistence != Persistence::Unlogged {
            return false;
        }
        if cluster.leaves_unlogged_out() {
            return true;
        }
        let files = self.of(catalog, relation);
        let init = fork_path(&files.home.folder, files.filenode, Fork::Init, 0);
        let has_init = || !Presence::of_file(cluster.source().as_ref(), &init).is_missing();
        cluster.removes_unlogged() && files.segments.is_empty() && has_init()
    }

    /// The files of a relation; without segments where there are none.
    pub(crate) fn of(&self, catalog: &Catalog, relation: &Relation) -> ForkFiles {
        let key = (relation.tablespace, relation.filenode);
        self.forks.get(&key).cloned().unwrap_or_else(|| ForkFiles {
            home: self.home(catalog, relation.tablespace),
            filenode: relation.filenode,
            fork: Fork::Main,
            temporary: None,
            segments: Vec::new(),
        })
    }

    /// Why the files of a relation cannot be seen, though they may be there; nothing where they
    /// are, and where they are missing for sure.
    pub(crate) fn unseen(&self, relation: &Relation) -> Option<String> {
        let key = (relation.tablespace, relation.filenode);
        if let Some(files) = self.forks.get(&key) {
            let path = files.path(0);
            let is_file = !files.segments.is_empty();
            return (!is_file).then(|| format!("{path} is there, and is not a regular file"));
        }
        let home = self
            .homes
            .iter()
            .find(|home| home.tablespace == relation.tablespace);
        let Some(home) = home else {
            if self.has_no_link(relation.tablespace) {
                return None;
            }
            return Some(match relation.tablespace {
                DEFAULT_TABLESPACE => "the directory of its database is not there".to_owned(),
                other => format!("pg_tblspc/{other} has no directory of its database"),
            });
        };
        let mut troubles = self.troubles.iter();
        let trouble = troubles.find(|trouble| trouble.what == home.folder)?;
        Some(format!(
            "{} cannot be listed: {}",
            trouble.what, trouble.why
        ))
    }

    /// A tablespace that is not linked, or whose link leads to no directory of the database, is
    /// missing, and not out of reach.
    fn has_no_link(&self, tablespace: Oid) -> bool {
        let number = tablespace.to_string();
        let links = self.links.as_ref();
        tablespace != DEFAULT_TABLESPACE && links.is_some_and(|links| !links.contains(&number))
    }

    fn home(&self, catalog: &Catalog, tablespace: Oid) -> DatabaseDirectory {
        let known = self.homes.iter().find(|home| home.tablespace == tablespace);
        known.cloned().unwrap_or_else(|| DatabaseDirectory {
            tablespace,
            database: catalog.database,
            folder: match tablespace {
                DEFAULT_TABLESPACE => format!("base/{}", catalog.database),
                other => format!(
                    "pg_tblspc/{other}/{}/{}",
                    self.version_folder, catalog.database
                ),
            },
        })
    }
}

/// Tablespaces that lead to a directory of the database, or to one that is out of reach.
fn links_of(cluster: &Cluster, database: Oid) -> Option<Vec<String>> {
    if !cluster.may_compare(Comparison::FilesWithCatalogs) {
        return None;
    }
    let entries = cluster.source().list("pg_tblspc").ok()?;
    let leads = |name: &String| {
        let tablespace = name.parse().unwrap_or(0);
        let directory = inventory::directory_of(cluster, database, tablespace);
        match Presence::of_directory(cluster.source().as_ref(), &directory) {
            Presence::There(_) => true,
            Presence::Missing => false,
            Presence::Unreadable(error) => error.kind != SourceErrorKind::Dangling,
        }
    };
    let names = entries.into_iter().map(|entry| entry.name);
    Some(names.filter(leads).collect())
}

fn system_columns() -> [Column; 4] {
    let column = |name: &str, origin, oid| Column {
        name: name.into(),
        origin: Origin::System(origin),
        ty: Arc::new(pgclinic_format::datum::builtin(oid).expect("a type of every server")),
        bytes_of: None,
        typmod: -1,
        holding: ColumnEncoding::Nearest,
        missing: Missing::Null,
    };
    [
        column("xmin", SystemColumn::Xmin, 28),
        column("xmax", SystemColumn::Xmax, 28),
        column("ctid", SystemColumn::Ctid, 27),
        column("verdict", SystemColumn::VersionFate, 25),
    ]
}

/// The type as which a column is written, and its own where that is another: what is not known here
/// is given as its bytes.
fn type_of(
    catalog: &Catalog,
    column: &pgclinic_cluster::Column,
) -> (Arc<TypeInfo>, Option<Arc<TypeInfo>>) {
    if column.dropped {
        return (Arc::new(bytes_of(column.layout)), None);
    }
    written_as(catalog.type_info(column.type_oid), column.layout)
}

/// A type as which values are written, and their own where that is another.
fn written_as(ty: Arc<TypeInfo>, layout: ColumnLayout) -> (Arc<TypeInfo>, Option<Arc<TypeInfo>>) {
    if is_printed(&ty) {
        return (ty, None);
    }
    let is_whole = matches!(below_domains(&ty).kind, TypeKind::Base | TypeKind::Unknown);
    let inside = if is_whole {
        None
    } else {
        stored_types::with_bytes(&ty)
    };
    let written = inside.unwrap_or_else(|| bytes_of(layout));
    (Arc::new(written), Some(ty))
}

/// What a person should know of a column whose values are written as their stored bytes.
pub(crate) fn note_of_bytes(column: &str, ty: &str) -> String {
    format!(
        "column {column} is of type {ty}, whose text is not known here: its stored bytes are written as bytea, which the type itself does not read"
    )
}

/// A dropped column has forgotten its type: its bytes are left.
fn bytes_of(layout: ColumnLayout) -> TypeInfo {
    TypeInfo {
        len: layout.attlen,
        align: layout.attalign,
        ..pgclinic_format::datum::builtin(17).expect("bytea is built in")
    }
}

/// Why the rows of a table cannot be found in its files.
fn why_unknown(relation: &Relation) -> String {
    match relation.unknown_storage() {
        Some(name) => {
            format!("it is stored by the access method {name}, whose pages are not known here")
        }
        None => "its access method is none that can be read here".into(),
    }
}
