//! Built pages, garbage pages, and pages of a real cluster against the server's own answer.

use std::sync::Arc;

use pgclinic_format::build::{PageBuilder, TupleBuilder, put_u16};
use pgclinic_format::datum::{TypeInfo, TypeKind, builtin};
use pgclinic_format::{ColumnLayout, LinePointer, LpFlags};
use proptest::prelude::*;

use super::*;

fn type_of(oid: Oid) -> Arc<TypeInfo> {
    let unknown = TypeInfo {
        oid,
        name: "unknown".into(),
        len: -1,
        byval: false,
        align: 4,
        kind: TypeKind::Unknown,
    };
    Arc::new(builtin(oid).unwrap_or(unknown))
}

fn column(attnum: u16, name: &str, type_oid: Oid, attlen: i16, attalign: u8) -> Column {
    let layout = ColumnLayout { attlen, attalign };
    Column {
        attnum,
        name: name.into(),
        type_oid,
        typmod: -1,
        not_null: false,
        dropped: false,
        generated: pgclinic_cluster::Generated::No,
        storage: b'x',
        compression: 0,
        layout,
        missing: None,
        collation: 0,
        has_missing: false,
    }
}

fn cx<'a>(kind: PageKind, columns: Option<&'a [Column]>) -> AnatomyCx<'a> {
    AnatomyCx {
        major: 18,
        block: 7,
        kind,
        checksums: Some(true),
        columns,
        types: &type_of,
        cluster: None,
        encoding: Some(6),
        value_bytes_max: 200,
    }
}

fn assert_covered(anatomy: &PageAnatomy, len: usize) {
    let mut at = 0;
    for range in &anatomy.ranges {
        assert_eq!(range.bytes[0], at, "{range:?}");
        assert!(range.bytes[1] > at, "{range:?}");
        at = range.bytes[1];
    }
    assert_eq!(usize::try_from(at), Ok(len));
}

fn heap_columns() -> Vec<Column> {
    vec![
        column(1, "id", 23, 4, 4),
        column(2, "body", 25, -1, 4),
        column(3, "added", 20, 8, 8),
    ]
}

fn anatomy_of(bytes: &[u8], kind: PageKind, columns: Option<&[Column]>) -> PageAnatomy {
    let anatomy = page_anatomy(
        Page::parse(bytes).expect("a block size"),
        &cx(kind, columns),
    );
    assert_covered(&anatomy, bytes.len());
    anatomy
}

const HEAP: PageKind = PageKind::Method(AccessMethod::Heap);

#[test]
fn a_heap_page_shows_its_values() {
    let tuple = TupleBuilder::new(2)
        .ctid(7, 1)
        .data(&[5, 0, 0, 0, 0x07, b'a', b'b'])
        .finish();
    let page = PageBuilder::new(8192, &[]).item(&tuple).finish(7);
    let columns = heap_columns();
    let anatomy = anatomy_of(&page, HEAP, Some(&columns));
    assert_eq!(
        (anatomy.page_kind.as_str(), anatomy.checksum.as_str()),
        ("heap", "right")
    );
    let item = &anatomy.items[0];
    let values: Vec<_> = item
        .values
        .iter()
        .map(|value| (value.state.as_str(), value.value.as_deref()))
        .collect();
    assert_eq!(
        values,
        [
            ("value", Some("5")),
            ("value", Some("ab")),
            ("missing", None)
        ]
    );
    assert_eq!(item.values[0].bytes, Some([8184, 8188]));
    assert_eq!(item.state.as_deref(), Some("live by its hint bits"));
    let ctid = item
        .header
        .iter()
        .find(|field| field.name == "t_ctid")
        .expect("a field");
    assert_eq!((ctid.value.as_str(), ctid.bytes), ("(7,1)", [8172, 8178]));
    assert_eq!(ctid.meaning, ["its own place: no newer version"]);
    assert!(
        anatomy
            .ranges
            .iter()
            .any(|range| range.label == "tuple 1: body" && range.part == "tuple-data")
    );
    assert!(
        anatomy
            .ranges
            .iter()
            .any(|range| range.label == "free space")
    );
}

#[test]
fn what_is_wrong_stands_beside_the_field() {
    let tuple = TupleBuilder::new(2)
        .data(&[5, 0, 0, 0, 0x81, b'x'])
        .finish();
    let page = PageBuilder::new(8192, &[])
        .item(&tuple)
        .line_pointer(LinePointer::new(9, LpFlags::Redirect, 0));
    let mut page = page
        .line_pointer(LinePointer::new(8190, LpFlags::Normal, 40))
        .finish(7);
    put_u16(&mut page, 14, 9000);
    let columns = heap_columns();
    let anatomy = anatomy_of(&page, HEAP, Some(&columns));
    assert_eq!(anatomy.checksum, "wrong");
    let upper = anatomy
        .header
        .iter()
        .find(|field| field.name == "pd_upper")
        .expect("a field");
    assert_eq!(upper.fault.as_deref(), Some("is beyond pd_special 8192"));
    let faults: Vec<_> = anatomy
        .items
        .iter()
        .map(|item| item.fault.as_deref())
        .collect();
    assert_eq!(faults[1], Some("redirects to line pointer 9 of 3"));
    assert_eq!(
        faults[2],
        Some("the item ends at 8230, beyond the page of 8192 bytes")
    );
    let body = &anatomy.items[0].values[1];
    assert_eq!(body.state, "undecodable");
    assert!(
        body.note
            .as_deref()
            .is_some_and(|note| note.contains("claims 64 bytes")),
        "{body:?}"
    );
    assert_eq!(anatomy.items[0].values.len(), 3);
}

#[test]
fn a_pointer_to_toast_is_shown_by_its_fields() {
    let mut data = vec![1, 18];
    for word in [3000u32, 2000, 29611, 29580] {
        data.extend_from_slice(&word.to_le_bytes());
    }
    let page = PageBuilder::new(8192, &[])
        .item(&TupleBuilder::new(1).data(&data).finish())
        .finish(7);
    let anatomy = anatomy_of(&page, HEAP, Some(&[column(1, "body", 25, -1, 4)]));
    let value = &anatomy.items[0].values[0];
    assert_eq!(value.state, "external");
    assert_eq!(
        value.note.as_deref(),
        Some("va_rawsize 3000, va_extsize 2000, pglz, va_valueid 29611, va_toastrelid 29580")
    );
}

#[test]
fn a_btree_page_shows_its_links_and_a_posting_list() {
    let mut special = vec![0; 16];
    special[4] = 9;
    special[12] = 1;
    // t_tid: the list begins at byte 16 and has two rows; t_info: 28 bytes.
    let mut tuple = vec![0, 0, 16, 0, 2, 0x20, 28, 0x20];
    tuple.extend_from_slice(&[42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 3, 0, 5, 0]);
    let page = PageBuilder::new(8192, &special).item(&tuple).finish(7);
    let anatomy = anatomy_of(&page, PageKind::Method(AccessMethod::Btree), None);
    let next = anatomy
        .special
        .iter()
        .find(|field| field.name == "btpo_next")
        .expect("a field");
    assert_eq!(next.value, "9");
    let flags = anatomy
        .special
        .iter()
        .find(|field| field.name == "btpo_flags")
        .expect("a field");
    assert_eq!(flags.meaning, ["BTP_LEAF"]);
    let item = &anatomy.items[0];
    assert_eq!(
        (item.state.as_deref(), item.fault.as_deref()),
        (Some("a posting list of 2 rows"), None)
    );
    let list = item
        .header
        .iter()
        .find(|field| field.name == "posting list")
        .expect("a field");
    assert_eq!(list.value, "(3,4) (3,5)");
    let key = item
        .header
        .iter()
        .find(|field| field.name == "key")
        .expect("a field");
    assert_eq!(key.value, "\\x2a00000000000000");
}

/// The states of the entries of a btree page: a pivot with one key attribute, and one place.
fn states_of_btree(next: u8, level: u8, flags: u8) -> Vec<String> {
    let mut special = vec![0u8; 16];
    special[4] = next;
    special[8] = level;
    special[12] = flags;
    let pivot = [0, 0, 131, 0, 1, 0, 16, 0x20, 42, 0, 0, 0, 0, 0, 0, 0];
    let one_place = [0, 0, 131, 0, 5, 0, 16, 0, 42, 0, 0, 0, 0, 0, 0, 0];
    let page = PageBuilder::new(8192, &special)
        .item(&pivot)
        .item(&one_place)
        .finish(7);
    let anatomy = anatomy_of(&page, PageKind::Method(AccessMethod::Btree), None);
    let states = anatomy.items.into_iter();
    states.map(|item| item.state.unwrap_or_default()).collect()
}

#[test]
fn entries_of_a_btree_are_what_their_page_makes_of_them() {
    let (leaf, half_dead) = (1, 17);
    assert_eq!(
        states_of_btree(9, 0, leaf),
        [
            "the high key, a pivot tuple with 1 key attribute",
            "the row in block 131 of the table"
        ]
    );
    assert_eq!(
        states_of_btree(0, 1, 0),
        [
            "a pivot tuple with 1 key attribute; the page below is 131",
            "the page below is 131"
        ]
    );
    assert_eq!(
        states_of_btree(0, 0, leaf)[0],
        "a pivot tuple with 1 key attribute, where a leaf page has rows"
    );
    assert_eq!(
        states_of_btree(9, 0, half_dead)[0],
        "a pivot tuple with 1 key attribute"
    );
}

#[test]
fn a_page_of_zeros_is_new() {
    let anatomy = anatomy_of(&[0; 8192], HEAP, None);
    assert_eq!(
        (anatomy.page_kind.as_str(), anatomy.checksum.as_str()),
        ("new", "none")
    );
    assert!(anatomy.header.iter().all(|field| field.fault.is_none()));
}

#[test]
fn maps_are_summed_up() {
    let mut page = PageBuilder::new(8192, &[]).finish(0);
    page[24..].fill(0);
    page[24] = 0b0000_1101;
    let anatomy = anatomy_of(&page, PageKind::VisibilityMap, None);
    let values: Vec<_> = anatomy
        .special
        .iter()
        .map(|field| field.value.as_str())
        .collect();
    assert_eq!(values, ["228704 to 261375", "2 pages", "1 page"]);
    let anatomy = anatomy_of(&page, PageKind::FreeSpaceMap, None);
    assert_eq!(anatomy.special[0].value, "13");
}

fn kinds() -> Vec<PageKind> {
    use AccessMethod::*;
    let methods = [Heap, Btree, Hash, Gist, Gin, Spgist, Brin, Sequence].map(PageKind::Method);
    methods
        .into_iter()
        .chain([
            PageKind::FreeSpaceMap,
            PageKind::VisibilityMap,
            PageKind::Unknown,
        ])
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// No bytes stop it, every byte has a label, and it stays small.
    #[test]
    fn garbage_is_taken_apart_without_harm(bytes in prop::collection::vec(any::<u8>(), 1024), lower in 0u16..1100, upper in 0u16..1100, special in 1000u16..1030) {
        let columns = heap_columns();
        let mut page = bytes;
        for shaped in [false, true] {
            if shaped {
                put_u16(&mut page, 12, lower);
                put_u16(&mut page, 14, upper);
                put_u16(&mut page, 16, special);
            }
            for kind in kinds() {
                let anatomy = anatomy_of(&page, kind, Some(&columns));
                prop_assert!(anatomy.items.len() <= ITEMS_MAX);
            }
        }
    }
}

#[test]
fn line_pointers_that_all_name_the_whole_page_stay_bounded() {
    let mut page = vec![0; 32768];
    let pointer = LinePointer::new(0, LpFlags::Normal, 0x7FFF);
    for chunk in page.chunks_exact_mut(4) {
        chunk.copy_from_slice(&pointer.0.to_le_bytes());
    }
    put_u16(&mut page, 12, 32764);
    let columns = heap_columns();
    let anatomy = anatomy_of(&page, HEAP, Some(&columns));
    assert_eq!(anatomy.items.len(), ITEMS_MAX);
}

/// On clusters that a server made.
mod seeded {
    use super::*;

    /// The rows of a real table, as its pages give them and as the server does.
    #[test]
    fn values_are_those_that_the_server_shows() {
        let seeded = pgclinic_testkit::seed(&pgclinic_testkit::server(15), Default::default());
        let copy = pgclinic_testkit::copy_of(&seeded);
        let source = pgclinic_source::DataDirectory::open(&copy.pgdata).expect("a data directory");
        let cluster = Cluster::open(Arc::new(source)).expect("a cluster");
        let clinic = cluster
            .databases
            .values()
            .find(|database| database.name.as_deref() == Some("clinic"));
        let catalog = cluster.catalog(clinic.expect("the seeds have it").oid);
        let table = catalog
            .by_name("public", "measurements")
            .expect("the seeds have it");
        let columns = table.columns.as_deref().expect("its columns are known");
        let types = |oid| catalog.type_info(oid);
        let path = format!("base/{}/{}", catalog.database, table.filenode);
        let mut bytes = vec![0; 8192];
        cluster
            .source()
            .read_at(&path, 0, &mut bytes)
            .expect("its first page");
        let page = Page::parse(&bytes).expect("a page");
        let cx = AnatomyCx {
            major: 15,
            block: 0,
            types: &types,
            cluster: Some(&cluster),
            value_bytes_max: 10_000,
            ..cx(HEAP, Some(columns))
        };
        let anatomy = page_anatomy(page, &cx);
        assert_covered(&anatomy, 8192);
        let live = anatomy
            .items
            .iter()
            .filter(|item| item.state.as_deref() == Some("live"));
        let ours: Vec<Vec<Option<String>>> = live
            .map(|item| {
                item.values
                    .iter()
                    .map(|value| value.value.clone())
                    .collect()
            })
            .collect();
        let server = copy.start().expect("the copy is sound");
        let mut session = server.connect("clinic").expect("a connection");
        let theirs = session
            .query("SELECT * FROM public.measurements WHERE ctid < '(1,0)' ORDER BY ctid")
            .expect("the server reads it");
        assert!(ours.len() > 50, "{} rows", ours.len());
        assert_eq!(ours, theirs);
    }

    /// Every page of every relation in its database's own folder, with what is wrong by our word.
    fn faults_of(cluster: &Cluster, database: Oid) -> Vec<String> {
        let catalog = cluster.catalog(database);
        let types = |oid| catalog.type_info(oid);
        let mut faults = Vec::new();
        for home in cluster
            .homes
            .iter()
            .filter(|home| home.database == database)
        {
            for files in cluster.files(home).expect("a directory") {
                let Some(relation) = catalog.by_file(home.tablespace, files.filenode) else {
                    continue;
                };
                let kind = match files.fork {
                    pgclinic_format::Fork::Vm => PageKind::VisibilityMap,
                    pgclinic_format::Fork::Fsm => PageKind::FreeSpaceMap,
                    _ => relation
                        .page_method()
                        .map_or(PageKind::Unknown, PageKind::Method),
                };
                let bytes =
                    pgclinic_source::read_all(cluster.source().as_ref(), &files.path(0), 1 << 26)
                        .expect("a file");
                for (page, block) in bytes.chunks_exact(8192).zip(0..) {
                    let cx = AnatomyCx {
                        major: cluster.layout.major,
                        block,
                        types: &types,
                        cluster: Some(cluster),
                        ..cx(kind, relation.columns.as_deref())
                    };
                    let anatomy = page_anatomy(Page::parse(page).expect("a page"), &cx);
                    assert_covered(&anatomy, 8192);
                    faults.extend(words(&anatomy).map(|fault| {
                        format!("{} block {block}: {fault}", relation.qualified_name())
                    }));
                }
            }
        }
        faults
    }

    /// Statistics (`anyarray`) hold arrays of types that only the catalogs know.
    fn words(anatomy: &PageAnatomy) -> impl Iterator<Item = String> {
        let fields = anatomy.header.iter().chain(
            anatomy
                .special
                .iter()
                .filter(|field| !field.name.starts_with("fp_")),
        );
        let fields = fields.chain(anatomy.items.iter().flat_map(|item| &item.header));
        let fields = fields.filter_map(|field| {
            field
                .fault
                .as_ref()
                .map(|fault| format!("{} {fault}", field.name))
        });
        let items = anatomy.items.iter().filter_map(|item| {
            item.fault
                .as_ref()
                .map(|fault| format!("item {} {fault}", item.item))
        });
        let values = anatomy
            .items
            .iter()
            .flat_map(|item| &item.values)
            .filter(|value| {
                value.state == "undecodable" && value.type_name.as_deref() != Some("anyarray")
            });
        let values = values.map(|value| format!("{value:?}"));
        fields
            .chain(items)
            .chain(values)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Without this, a wrong word about a sound page would only be seen by a person.
    #[test]
    fn sound_pages_of_every_kind_have_no_fault() {
        for major in [13, 18] {
            let seeded =
                pgclinic_testkit::seed(&pgclinic_testkit::server(major), Default::default());
            let source =
                pgclinic_source::DataDirectory::open(&seeded.pgdata).expect("a data directory");
            let cluster = Cluster::open(Arc::new(source)).expect("a cluster");
            let clinic = cluster
                .databases
                .values()
                .find(|database| database.name.as_deref() == Some("clinic"));
            let faults = faults_of(&cluster, clinic.expect("the seeds have it").oid);
            assert!(
                faults.is_empty(),
                "{major}: {} faults, such as {:#?}",
                faults.len(),
                faults.iter().take(20).collect::<Vec<_>>()
            );
        }
    }
}
