//! Every btree operator class of a real server against our own comparison: the server ranks values
//! of a table, the table's files are read without it, and each pair of values must compare as its
//! ranks do, ties included.

mod cases;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cases::{CASES, Case, SETUP, UNCOMPARED};
use pgclinic_cluster::{Catalog, Cluster, HeapScan, Relation};
use pgclinic_format::Fork;
use pgclinic_format::order::{Order, Unordered};
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{TempCopy, all_majors, copy_of, seed};

/// Values of one column with the server's rank of each.
type Ranked = Vec<(Vec<u8>, u32)>;

#[test]
fn thirteen_orders_as_we_do() {
    orders_as_we_do(13);
}

#[test]
fn fifteen_orders_as_we_do() {
    orders_as_we_do(15);
}

#[test]
fn eighteen_orders_as_we_do() {
    orders_as_we_do(18);
}

fn orders_as_we_do(major: u16) {
    let installation = all_majors()
        .into_iter()
        .find(|installation| installation.major == major)
        .unwrap();
    let copy = copy_of(&seed(&installation, Checksums::On));
    let mut server = copy.start().unwrap();
    let cases: Vec<&Case> = CASES.iter().filter(|case| case.since <= major).collect();
    fill(&server, &cases);
    let ranks: Vec<_> = cases.iter().map(|case| ranks(&server, case)).collect();
    let classes = btree_classes(&server);
    server.stop(StopMode::Fast).unwrap();

    let compared: BTreeSet<String> = cases.iter().map(|case| case.class.to_owned()).collect();
    let reasoned = UNCOMPARED.iter().map(|(class, _)| (*class).to_owned());
    let known: BTreeSet<String> = compared.into_iter().chain(reasoned).collect();
    let forgotten: Vec<&String> = classes.difference(&known).collect();
    assert!(
        forgotten.is_empty(),
        "operator classes of {major} without a comparison or a reason: {forgotten:?}"
    );

    let cluster = open(&copy);
    let catalog = cluster.catalog(first_database(&cluster));
    for (case, ranks) in cases.iter().zip(&ranks) {
        let (order, values) = read(&cluster, &catalog, case, ranks);
        compare_all(case, &order, &values);
    }
    foreign_collations_have_a_reason(&catalog);
}

fn open(copy: &TempCopy) -> Cluster {
    Cluster::open(Arc::new(DataDirectory::open(&copy.pgdata).unwrap())).unwrap()
}

/// The OID of `postgres`, which moved between majors.
fn first_database(cluster: &Cluster) -> u32 {
    let named = |name: &Option<String>| name.as_deref() == Some("postgres");
    let found = cluster.databases.values().find(|own| named(&own.name));
    found.unwrap().oid
}

fn fill(server: &Server, cases: &[&Case]) {
    let mut session = server.connect("postgres").unwrap();
    session.execute(SETUP).unwrap();
    for case in cases {
        let Case {
            name,
            ty,
            class,
            before,
            ..
        } = case;
        let collate = if case.collate { " COLLATE \"C\"" } else { "" };
        let create = format!(
            "CREATE TABLE {name} (id int4 GENERATED ALWAYS AS IDENTITY, v {ty}{collate});
             CREATE INDEX {name}_v ON {name} USING btree (v {class});"
        );
        session
            .execute(&create)
            .unwrap_or_else(|error| panic!("{create}: {error}"));
        session.execute(before).unwrap();
        for value in case.values {
            let insert = format!("INSERT INTO {name} (v) SELECT ({value})::{ty}");
            session
                .execute(&insert)
                .unwrap_or_else(|error| panic!("{insert}: {error}"));
        }
    }
}

fn ranks(server: &Server, case: &Case) -> BTreeMap<u32, u32> {
    let mut session = server.connect("postgres").unwrap();
    let sql = format!(
        "SELECT id, dense_rank() OVER (ORDER BY v USING {}) FROM {}",
        case.less, case.name
    );
    let rows = session
        .query(&sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let number = |column: &Option<String>| column.as_deref().unwrap().parse::<u32>().unwrap();
    rows.iter()
        .map(|row| (number(&row[0]), number(&row[1])))
        .collect()
}

fn btree_classes(server: &Server) -> BTreeSet<String> {
    let mut session = server.connect("postgres").unwrap();
    let sql = "SELECT opcname FROM pg_opclass JOIN pg_am ON pg_am.oid = opcmethod
               WHERE amname = 'btree' AND opcnamespace = 'pg_catalog'::regnamespace";
    let rows = session.query(sql).unwrap();
    assert!(rows.len() >= 43, "a server has its operator classes");
    rows.into_iter()
        .map(|row| row[0].clone().unwrap())
        .collect()
}

/// The order of the table's index, and what the table's file holds.
fn read(
    cluster: &Cluster,
    catalog: &Catalog,
    case: &Case,
    ranks: &BTreeMap<u32, u32>,
) -> (Order, Ranked) {
    let table = catalog.by_name("public", case.name).unwrap();
    let relation = catalog
        .by_name("public", &format!("{}_v", case.name))
        .unwrap();
    let index = relation.index.as_ref().unwrap();
    let key = &relation.columns.as_ref().unwrap()[0];
    // The type of the table's column: an index of names keeps C strings.
    let column = &table.columns.as_ref().unwrap()[1];
    let oid = if column.layout.attlen == -1 {
        key.type_oid
    } else {
        column.type_oid
    };
    let order = catalog.key_order(index, 0, &catalog.type_info(oid));
    let order = order
        .expect("its class is in the catalogs")
        .unwrap_or_else(|why| panic!("{}: {why}", case.name));
    let values = values_of(cluster, table, column.layout.attlen, ranks);
    assert_eq!(values.len(), ranks.len(), "{}", case.name);
    (order, values)
}

fn values_of(
    cluster: &Cluster,
    table: &Relation,
    attlen: i16,
    ranks: &BTreeMap<u32, u32>,
) -> Ranked {
    let home = cluster
        .homes
        .iter()
        .find(|home| home.database == first_database(cluster))
        .unwrap();
    let forks = cluster.files(home).unwrap();
    let files = forks
        .iter()
        .find(|files| files.filenode == table.filenode && files.fork == Fork::Main)
        .unwrap();
    let layouts = table.layouts.as_ref().unwrap();
    let mut values = Vec::new();
    HeapScan::new(cluster, files, layouts).each_row(|row| {
        let bytes = if attlen == -1 {
            row.payload(1)
        } else {
            row.bytes(1)
        };
        if let (Some(bytes), Some(rank)) = (bytes, row.u32(0).and_then(|id| ranks.get(&id))) {
            values.push((bytes.to_vec(), *rank));
        }
    });
    values
}

fn compare_all(case: &Case, order: &Order, values: &Ranked) {
    assert!(values.len() > 1, "{} has values", case.name);
    for (a, a_rank) in values {
        for (b, b_rank) in values {
            let ours = order.compare(a, b);
            let servers = a_rank.cmp(b_rank);
            assert_eq!(
                ours,
                Some(servers),
                "{} ({}): {a:02x?} against {b:02x?}",
                case.name,
                case.class
            );
        }
        assert_cut_values_are_harmless(order, a);
    }
}

/// Every shorter and every slightly changed value gives an answer or none, and no panic.
fn assert_cut_values_are_harmless(order: &Order, value: &[u8]) {
    for end in 0..value.len() {
        let _ = order.compare(&value[..end], value);
        let mut changed = value.to_vec();
        changed[end] ^= 0xA5;
        let _ = order.compare(&changed, value);
    }
}

/// Collations of a library have no order, but equal bytes are equal under the deterministic ones.
fn foreign_collations_have_a_reason(catalog: &Catalog) {
    let relation = catalog.by_name("public", "foreign_v").unwrap();
    let index = relation.index.as_ref().unwrap();
    let text = catalog.type_info(25);
    let order = |column| catalog.key_order(index, column, &text).unwrap();
    let equality = |column| catalog.key_equality(index, column, &text).unwrap();
    let Err(Unordered::Collation(collation)) = order(0) else {
        panic!("ICU orders by rules of its own: {:?}", order(0));
    };
    assert_eq!(collation.library, "ICU");
    assert!(matches!(order(1), Err(Unordered::Collation(_))));
    let equal = equality(0).unwrap();
    assert_eq!(equal.compare(b"a", b"a"), Some(Ordering::Equal));
    assert_ne!(equal.compare(b"a", b"b"), Some(Ordering::Equal));
    assert!(matches!(equality(1), Err(Unordered::Collation(_))));
}
