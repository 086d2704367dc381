//! What is hurt and how: every witness with every way to lose it.

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, Relation};
use pgclinic_format::Fork;
use pgclinic_model::plural;

/// How something is lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Hurt {
    /// One page, or a whole small file, is all zero.
    Zeroed,
    /// Every fifth page is.
    ZeroedFifth,
    /// One page, or a small file, is noise.
    Garbage,
    /// The last quarter is gone, one page at least.
    Truncated,
    /// The file or directory is not there.
    Missing,
    /// One page is what it was on an older day.
    OldCopy,
    /// Some bytes are noise.
    Bytes,
    /// One bit is flipped.
    Bit,
    /// 512 bytes are noise.
    Sector,
    /// One page is another page of its file.
    Misplaced,
    /// The file holds nothing.
    Emptied,
    /// One page is what it was before its last rows came.
    Shortened,
    /// The file is another relation's.
    Foreign,
}

impl Hurt {
    pub(super) fn name(self) -> &'static str {
        match self {
            Hurt::Zeroed => "zeroed",
            Hurt::ZeroedFifth => "zeroed-fifth",
            Hurt::Garbage => "garbage",
            Hurt::Truncated => "truncated",
            Hurt::Missing => "missing",
            Hurt::OldCopy => "old-copy",
            Hurt::Bytes => "bytes",
            Hurt::Bit => "bit",
            Hurt::Sector => "sector",
            Hurt::Misplaced => "misplaced",
            Hurt::Emptied => "emptied",
            Hurt::Shortened => "shortened",
            Hurt::Foreign => "foreign",
        }
    }
}

const OF_PAGES: &[Hurt] = &[
    Hurt::Zeroed,
    Hurt::ZeroedFifth,
    Hurt::Garbage,
    Hurt::Truncated,
    Hurt::Missing,
    Hurt::OldCopy,
];
const OF_FILES: &[Hurt] = &[
    Hurt::Zeroed,
    Hurt::Garbage,
    Hurt::Truncated,
    Hurt::Missing,
    Hurt::OldCopy,
];
/// What a check at level structure leaves to level full: pages that are sound in themselves, and
/// values.
const LEFT_TO_FULL: &[Hurt] = &[
    Hurt::OldCopy,
    Hurt::Shortened,
    Hurt::Foreign,
    Hurt::Misplaced,
    Hurt::Bytes,
    Hurt::Bit,
    Hurt::Sector,
];
const OF_DIRECTORIES: &[Hurt] = &[Hurt::Missing];

/// What is hurt.
#[derive(Clone, Copy, Debug)]
pub(super) enum Object {
    /// A fork of a relation of the database `postgres`, by schema and name.
    Relation(&'static str, &'static str, Fork),
    /// The rows that came last to a page of such a table.
    LastRowsOf(&'static str, &'static str),
    /// The file of such a table, in the place of which another table's is put.
    FileOf([&'static str; 2], [&'static str; 2]),
    /// The table that holds the large objects.
    LargeObjects,
    /// The TOAST table of such a relation.
    ToastOf(&'static str, &'static str),
    /// The index of that TOAST table.
    ToastIndexOf(&'static str, &'static str),
    /// A file by its path in the data directory.
    File(&'static str),
    /// The newest file of a directory, by name.
    Newest(&'static str),
    /// A directory by its path in the data directory.
    Directory(&'static str),
    /// The directory of the database `postgres`.
    DatabaseDirectory,
    /// A file in that directory.
    DatabaseFile(&'static str),
    /// The link of the only tablespace.
    TablespaceLink,
}

/// When a check must not call the cluster healthy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoticedWhen {
    /// Whenever it was hurt.
    Always,
    /// Where rows are lost.
    WithRows,
}

/// A thing that bears witness to others, or to itself.
pub(super) struct Witness {
    pub(super) name: &'static str,
    pub(super) object: Object,
    pub(super) seen: NoticedWhen,
    /// How closely the loss is told: within one in a hundred where a unique key names every row.
    pub(super) is_counted: bool,
    /// Losses that cannot be seen.
    pub(super) blind: &'static [Blind],
    /// Why a salvage does not notice that a page is an older copy of itself.
    pub(super) hides_age: Option<&'static str>,
}

/// A loss that cannot be seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blind {
    pub(super) hurt: Hurt,
    /// In which state; in each, where none is named.
    pub(super) state: Option<&'static str>,
    pub(super) why: &'static str,
}

/// What an older copy of a page means for the salvage of a table without a B-tree of all its rows:
/// a check at level full follows each entry of each index.
const OLD_PAGE: &str =
    "an older copy of a page is sound by itself, and no key counts the rows of the table";
/// What chance writes into a page without a checksum.
pub(super) const NO_CHECKSUM: &str =
    "without data checksums nothing can verify values and headers of rows";
const NO_INDEX: &str = "the page is sound and the table has no index: nothing else names its rows";
/// Where WAL of its change is left, the older page is seen.
const GIN_STATISTICS: &str = "an older metapage of a GIN index whose pending list is empty differs \
    in statistics alone, which nothing else keeps, and misses no entry";
const UNUSED_BUCKET: &str = "pages of buckets that no split has reached yet are all zero by nature";

const fn catalog(name: &'static str, relation: &'static str) -> Witness {
    witness(
        name,
        Object::Relation("pg_catalog", relation, Fork::Main),
        NoticedWhen::WithRows,
    )
}

const fn table(name: &'static str, relation: &'static str) -> Witness {
    Witness {
        is_counted: false,
        hides_age: Some(OLD_PAGE),
        ..keyed(name, relation)
    }
}

/// A table with a key, which counts its rows.
const fn keyed(name: &'static str, relation: &'static str) -> Witness {
    let object = Object::Relation("shop", relation, Fork::Main);
    Witness {
        is_counted: true,
        ..witness(name, object, NoticedWhen::WithRows)
    }
}

const fn last_rows(name: &'static str, relation: &'static str) -> Witness {
    witness(
        name,
        Object::LastRowsOf("shop", relation),
        NoticedWhen::WithRows,
    )
}

const fn index(name: &'static str, schema: &'static str, relation: &'static str) -> Witness {
    witness(
        name,
        Object::Relation(schema, relation, Fork::Main),
        NoticedWhen::Always,
    )
}

const fn witness(name: &'static str, object: Object, seen: NoticedWhen) -> Witness {
    Witness {
        name,
        object,
        seen,
        is_counted: false,
        blind: &[],
        hides_age: None,
    }
}

/// Whatever a random loss hits.
pub(super) static RANDOM: Witness = witness("random", Object::File(""), NoticedWhen::WithRows);

/// All of them.
pub(super) static WITNESSES: &[Witness] = &[
    catalog("pg_class", "pg_class"),
    catalog("pg_attribute", "pg_attribute"),
    catalog("pg_type", "pg_type"),
    catalog("pg_namespace", "pg_namespace"),
    catalog("pg_index", "pg_index"),
    catalog("pg_constraint", "pg_constraint"),
    catalog("pg_attrdef", "pg_attrdef"),
    catalog("pg_proc", "pg_proc"),
    catalog("pg_database", "pg_database"),
    catalog("pg_tablespace", "pg_tablespace"),
    catalog("pg_authid", "pg_authid"),
    index("pg_class-index-oid", "pg_catalog", "pg_class_oid_index"),
    index(
        "pg_class-index-name",
        "pg_catalog",
        "pg_class_relname_nsp_index",
    ),
    index(
        "pg_class-index-file",
        "pg_catalog",
        "pg_class_tblspc_relfilenode_index",
    ),
    index(
        "pg_attribute-index-name",
        "pg_catalog",
        "pg_attribute_relid_attnam_index",
    ),
    index(
        "pg_attribute-index",
        "pg_catalog",
        "pg_attribute_relid_attnum_index",
    ),
    keyed("table-with-key", "customer"),
    keyed("table-with-two-keys", "invoice"),
    keyed("small-table", "small_7"),
    keyed("table-in-a-tablespace", "distant"),
    keyed("late-table", "late"),
    keyed("table-of-many-types", "kinds"),
    table("table-with-toast", "document"),
    table("partition", "reading_old"),
    table("table-with-hash-index", "tag"),
    table("table-with-gist-index", "area"),
    table("table-with-gin-index", "label"),
    table("table-with-spgist-index", "spot"),
    table("table-with-brin-index", "log"),
    table("table-with-toast-and-no-index", "letter"),
    Witness {
        blind: &[Blind {
            hurt: Hurt::OldCopy,
            state: None,
            why: NO_INDEX,
        }],
        ..table("table-without-index", "plain")
    },
    // After VACUUM the table is newer than its index, and whether that is an older copy is a
    // question without a number.
    last_rows("rows-of-a-page", "distant"),
    last_rows("rows-of-a-page-with-hash-index", "tag"),
    last_rows("rows-of-a-page-with-gist-index", "area"),
    witness(
        "file-of-a-partition",
        Object::FileOf(["shop", "reading_old"], ["shop", "reading_new"]),
        NoticedWhen::WithRows,
    ),
    witness("large-objects", Object::LargeObjects, NoticedWhen::WithRows),
    witness(
        "toast",
        Object::ToastOf("shop", "document"),
        NoticedWhen::WithRows,
    ),
    witness(
        "toast-index",
        Object::ToastIndexOf("shop", "document"),
        NoticedWhen::Always,
    ),
    index("primary-key", "shop", "customer_pkey"),
    Witness {
        blind: &[Blind {
            hurt: Hurt::Zeroed,
            state: None,
            why: UNUSED_BUCKET,
        }],
        ..index("hash-index", "shop", "tag_word_idx")
    },
    index("gist-index", "shop", "area_place_idx"),
    Witness {
        blind: &[Blind {
            hurt: Hurt::OldCopy,
            state: Some("stopped"),
            why: GIN_STATISTICS,
        }],
        ..index("gin-index", "shop", "label_words_idx")
    },
    index("spgist-index", "shop", "spot_at_idx"),
    index("brin-index", "shop", "log_id_idx"),
    witness(
        "visibility-map",
        Object::Relation("shop", "customer", Fork::Vm),
        NoticedWhen::WithRows,
    ),
    witness(
        "free-space-map",
        Object::Relation("shop", "customer", Fork::Fsm),
        NoticedWhen::WithRows,
    ),
    witness(
        "control-file",
        Object::File("global/pg_control"),
        NoticedWhen::Always,
    ),
    witness(
        "version-file",
        Object::File("PG_VERSION"),
        NoticedWhen::Always,
    ),
    witness(
        "relation-map",
        Object::DatabaseFile("pg_filenode.map"),
        NoticedWhen::Always,
    ),
    witness(
        "shared-relation-map",
        Object::File("global/pg_filenode.map"),
        NoticedWhen::Always,
    ),
    witness(
        "version-file-of-database",
        Object::DatabaseFile("PG_VERSION"),
        NoticedWhen::Always,
    ),
    witness("pg_xact", Object::Newest("pg_xact"), NoticedWhen::Always),
    witness(
        "pg_multixact-offsets",
        Object::Newest("pg_multixact/offsets"),
        NoticedWhen::WithRows,
    ),
    witness(
        "pg_multixact-members",
        Object::Newest("pg_multixact/members"),
        NoticedWhen::WithRows,
    ),
    witness(
        "wal-segment",
        Object::Newest("pg_wal"),
        NoticedWhen::WithRows,
    ),
    witness(
        "pg_twophase",
        Object::Newest("pg_twophase"),
        NoticedWhen::Always,
    ),
    witness("pg_wal", Object::Directory("pg_wal"), NoticedWhen::Always),
    witness(
        "pg_xact-directory",
        Object::Directory("pg_xact"),
        NoticedWhen::Always,
    ),
    witness("global", Object::Directory("global"), NoticedWhen::Always),
    witness(
        "database-directory",
        Object::DatabaseDirectory,
        NoticedWhen::Always,
    ),
    witness(
        "tablespace-link",
        Object::TablespaceLink,
        NoticedWhen::Always,
    ),
];

/// Where a cell hurts: paths from the data directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Site {
    /// Pages of a file.
    Pages { path: String, blocks: Vec<u64> },
    /// The end of a file, from this length on.
    Tail { path: String, len: u64 },
    /// A file, in the place of which another one is copied.
    Replaced { path: String, by: String },
    /// Bytes of a file.
    Bytes { path: String, offset: u64, len: u64 },
    /// A whole small file.
    File { path: String, len: u64 },
    /// A file that goes.
    Gone { path: String },
    /// A directory that goes.
    DirectoryGone { path: String },
    /// A link that goes.
    LinkGone { path: String },
}

/// One witness, hurt one way.
pub(super) struct Cell {
    pub(super) witness: &'static Witness,
    pub(super) hurt: Hurt,
    pub(super) site: Site,
}

/// Every cell of a cluster; what has no place is left out.
pub(super) fn of(cluster: &Cluster, seed: u64) -> Vec<Cell> {
    let database = cluster.databases.values();
    let database = database
        .into_iter()
        .find(|one| one.name.as_deref() == Some("postgres"));
    let Some(database) = database.map(|database| database.oid) else {
        return Vec::new();
    };
    let finder = Finder {
        cluster,
        database,
        catalog: cluster.catalog(database),
        shared: cluster.catalog(0),
        seed,
    };
    WITNESSES
        .iter()
        .flat_map(|witness| finder.cells(witness))
        .collect()
}

struct Finder<'a> {
    cluster: &'a Cluster,
    database: u32,
    catalog: Catalog,
    shared: Catalog,
    seed: u64,
}

impl Finder<'_> {
    fn cells(&self, witness: &'static Witness) -> Vec<Cell> {
        let sites = match witness.object {
            Object::Relation(schema, name, fork) => self.in_relation(schema, name, fork),
            Object::LastRowsOf(schema, name) => self.in_rows(schema, name),
            Object::FileOf(own, other) => self.replaced(own, other),
            Object::LargeObjects => self.in_large_objects(),
            Object::ToastOf(schema, name) => self.in_toast(schema, name, Part::Table),
            Object::ToastIndexOf(schema, name) => self.in_toast(schema, name, Part::Index),
            Object::File(path) => self.in_file(path.into()),
            Object::Newest(directory) => self
                .newest(directory)
                .map_or_else(Vec::new, |path| self.in_file(path)),
            Object::DatabaseFile(name) => self.in_file(format!("base/{}/{name}", self.database)),
            Object::Directory(path) => directory(path.into()),
            Object::DatabaseDirectory => directory(format!("base/{}", self.database)),
            Object::TablespaceLink => self.tablespace_link(),
        };
        let cell = |(hurt, site)| Cell {
            witness,
            hurt,
            site,
        };
        sites.into_iter().map(cell).collect()
    }

    fn relation(&self, schema: &str, name: &str) -> Option<&Relation> {
        let own = self.catalog.by_name(schema, name);
        own.or_else(|| self.shared.by_name(schema, name))
    }

    fn in_relation(&self, schema: &str, name: &str, fork: Fork) -> Vec<(Hurt, Site)> {
        let relation = self.relation(schema, name);
        relation.map_or_else(Vec::new, |relation| self.in_fork(relation, fork))
    }

    fn in_rows(&self, schema: &str, name: &str) -> Vec<(Hurt, Site)> {
        let Some((path, blocks)) = self.main_file(schema, name) else {
            return Vec::new();
        };
        let blocks = vec![self.seed % blocks];
        vec![(Hurt::Shortened, Site::Pages { path, blocks })]
    }

    fn replaced(&self, own: [&str; 2], other: [&str; 2]) -> Vec<(Hurt, Site)> {
        let file = |[schema, name]: [&str; 2]| Some(self.main_file(schema, name)?.0);
        let both = file(own).zip(file(other));
        let site = both.map(|(path, by)| (Hurt::Foreign, Site::Replaced { path, by }));
        site.into_iter().collect()
    }

    fn in_large_objects(&self) -> Vec<(Hurt, Site)> {
        let (schema, name) = ("pg_catalog", "pg_largeobject");
        let mut sites = self.in_relation(schema, name, Fork::Main);
        let file = self.main_file(schema, name);
        sites.extend(file.map(|(path, _)| (Hurt::Emptied, Site::Tail { path, len: 0 })));
        sites
    }

    /// The first file of such a relation, and how many blocks it has.
    fn main_file(&self, schema: &str, name: &str) -> Option<(String, u64)> {
        self.file_of(self.relation(schema, name)?, Fork::Main)
    }

    fn in_toast(&self, schema: &str, name: &str, part: Part) -> Vec<(Hurt, Site)> {
        let Some(table) = self.relation(schema, name) else {
            return Vec::new();
        };
        let toast = table.toast;
        let relation = match part {
            Part::Table => self.catalog.relations.get(&toast),
            Part::Index => self.catalog.relations.values().find(|relation| {
                relation
                    .index
                    .as_ref()
                    .is_some_and(|index| index.table == toast)
            }),
        };
        relation.map_or_else(Vec::new, |relation| self.in_fork(relation, Fork::Main))
    }

    fn in_fork(&self, relation: &Relation, fork: Fork) -> Vec<(Hurt, Site)> {
        let Some((path, blocks)) = self.file_of(relation, fork) else {
            return Vec::new();
        };
        let page_bytes = u64::from(self.cluster.build.block_size);
        OF_PAGES
            .iter()
            .flat_map(|hurt| self.page_sites(*hurt, &path, blocks, page_bytes))
            .collect()
    }

    fn file_of(&self, relation: &Relation, fork: Fork) -> Option<(String, u64)> {
        let wanted = |files: &ForkFiles| {
            files.filenode == relation.filenode && files.fork == fork && files.temporary.is_none()
        };
        let homes = self.cluster.homes.iter();
        let homes = homes.filter(|home| {
            home.tablespace == relation.tablespace
                && (relation.shared || home.database == self.database)
        });
        let files = homes
            .filter_map(|home| self.cluster.files(home).ok())
            .flatten()
            .find(wanted);
        let files = files.filter(|files| files.bytes() > 0)?;
        let blocks = files.bytes() / u64::from(self.cluster.build.block_size);
        Some((files.path(0), blocks))
    }

    /// Of one page: the first, the last and one by the seed.
    fn page_sites(
        &self,
        hurt: Hurt,
        path: &str,
        blocks: u64,
        page_bytes: u64,
    ) -> Vec<(Hurt, Site)> {
        let path = || path.to_owned();
        let pages = |blocks| {
            (
                hurt,
                Site::Pages {
                    path: path(),
                    blocks,
                },
            )
        };
        match hurt {
            Hurt::Zeroed | Hurt::Garbage | Hurt::OldCopy => {
                let mut chosen = vec![0, self.seed % blocks, blocks - 1];
                chosen.dedup();
                chosen.into_iter().map(|block| pages(vec![block])).collect()
            }
            Hurt::ZeroedFifth => vec![pages((0..blocks).step_by(5).collect())],
            Hurt::Truncated => {
                let len = (blocks - blocks.div_ceil(4)) * page_bytes;
                vec![(hurt, Site::Tail { path: path(), len })]
            }
            Hurt::Missing => vec![(hurt, Site::Gone { path: path() })],
            Hurt::Bytes
            | Hurt::Bit
            | Hurt::Sector
            | Hurt::Misplaced
            | Hurt::Emptied
            | Hurt::Shortened
            | Hurt::Foreign => Vec::new(),
        }
    }

    fn in_file(&self, path: String) -> Vec<(Hurt, Site)> {
        let Ok(len) = self.cluster.source().len(&path) else {
            return Vec::new();
        };
        let site = |hurt: &Hurt| {
            let path = path.clone();
            let site = match hurt {
                Hurt::Truncated => Site::Tail { path, len: len / 2 },
                Hurt::Missing => Site::Gone { path },
                _ => Site::File { path, len },
            };
            (*hurt, site)
        };
        OF_FILES.iter().map(site).collect()
    }

    fn newest(&self, directory: &str) -> Option<String> {
        let entries = self.cluster.source().list(directory).ok()?;
        let names = entries.into_iter().map(|entry| entry.name);
        let plain = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_hexdigit()));
        plain.max().map(|name| format!("{directory}/{name}"))
    }

    fn tablespace_link(&self) -> Vec<(Hurt, Site)> {
        let mut homes = self.cluster.homes.iter();
        let home = homes.find(|home| home.folder.starts_with("pg_tblspc/"));
        let link = home.and_then(|home| home.folder.split('/').nth(1));
        let path = link.map(|link| format!("pg_tblspc/{link}"));
        let site = path.map(|path| (Hurt::Missing, Site::LinkGone { path }));
        site.into_iter().collect()
    }
}

#[derive(Clone, Copy)]
enum Part {
    Table,
    Index,
}

fn directory(path: String) -> Vec<(Hurt, Site)> {
    let site = |hurt: &Hurt| (*hurt, Site::DirectoryGone { path: path.clone() });
    OF_DIRECTORIES.iter().map(site).collect()
}

/// Without these no row is vouched for: an account says so as a whole, and names no table.
const VOUCH_FOR_ALL: &[&str] = &["pg_wal", "pg_xact", "pg_multixact", "global/pg_control"];
/// The directory with the names of all databases, and the control file.
const SHARED: &str = "global";

impl Hurt {
    /// Level structure looks at pages and what names them, and leaves this to level full.
    pub(super) fn is_left_to_full(self) -> bool {
        LEFT_TO_FULL.contains(&self)
    }
}

impl Cell {
    /// An account that calls itself incomplete names each table whose rows are lost.
    pub(super) fn is_of_named_tables(&self) -> bool {
        let path = self.site.path();
        path != SHARED && !VOUCH_FOR_ALL.iter().any(|all| path.starts_with(all))
    }

    /// Some bytes of a page are others, which its structure need not show.
    pub(super) fn changes_values(&self) -> bool {
        let is_of_page = |path: &String| {
            let mut homes = ["base/", "global/", "pg_tblspc/"].into_iter();
            homes.any(|home| path.starts_with(home))
        };
        let is_slight = matches!(self.hurt, Hurt::Bytes | Hurt::Bit | Hurt::Sector);
        is_slight && matches!(&self.site, Site::Bytes { path, .. } if is_of_page(path))
    }
}

impl Site {
    fn path(&self) -> &str {
        match self {
            Site::Pages { path, .. }
            | Site::Tail { path, .. }
            | Site::Replaced { path, .. }
            | Site::Bytes { path, .. }
            | Site::File { path, .. }
            | Site::Gone { path }
            | Site::DirectoryGone { path }
            | Site::LinkGone { path } => path,
        }
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        match self {
            Site::Pages { path, blocks } => match blocks.as_slice() {
                [one] => format!("{path}, block {one}"),
                many => format!("{path}, {} blocks", many.len()),
            },
            Site::Replaced { path, by } => format!("{path}, by {by}"),
            Site::Tail { path, len } => format!("{path}, from byte {len} on"),
            Site::Bytes { path, offset, len } => {
                format!("{path}, {} from {offset} on", plural(*len, "byte"))
            }
            Site::File { path, .. } | Site::Gone { path } => path.clone(),
            Site::DirectoryGone { path } | Site::LinkGone { path } => path.clone(),
        }
    }
}
