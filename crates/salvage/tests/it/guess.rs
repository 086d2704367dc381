//! Columns guessed from rows alone, held to what the catalogs say: the share that is right stands
//! in the guide.

use pgclinic_salvage::guess_columns;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, open, seed, server};

use pgclinic_format::datum::{TypeInfo, TypeKind};

use pgclinic_cluster::{Catalog, Cluster, Column, ForkFiles, RelKind, Relation};

/// Types that look alike in a row are one.
fn family(name: &str) -> &str {
    match name {
        "int4" | "integer" | "oid" | "xid" | "cid" | "regclass" | "regtype" | "regproc" => {
            "integer"
        }
        "int8" | "bigint" | "money" | "xid8" | "pg_lsn" => "bigint",
        "int2" | "smallint" => "smallint",
        "bool" | "boolean" => "boolean",
        "float4" | "real" => "real",
        "float8" | "double precision" => "double precision",
        "timestamp" | "timestamptz" | "timestamp with time zone" => "timestamp",
        "text" | "varchar" | "bpchar" | "json" | "xml" | "citext" => "text",
        "bit" | "varbit" => "varbit",
        "_int4" | "integer[]" => "integer[]",
        "_text" | "text[]" => "text[]",
        other => other,
    }
}

/// The same of a type of the catalogs; what people made of other types is one with these.
fn family_of(ty: &TypeInfo) -> &str {
    match &ty.kind {
        TypeKind::Domain(base) => family_of(base),
        // Its labels stand in the catalogs alone.
        TypeKind::Enum(_) => "integer",
        TypeKind::Composite(_) => "record",
        _ => family(&ty.name),
    }
}

/// Length and alignment as far as walking a row goes.
fn layout(name: &str) -> &'static str {
    match name {
        "boolean" | "\"char\"" => "1",
        "smallint" => "2",
        "integer" | "date" | "real" => "4",
        "bigint" | "timestamp" | "double precision" | "time" => "8",
        "uuid" => "16",
        "interval" | "point" => "16 by 8",
        "name" => "64",
        "macaddr" => "6",
        "macaddr8" => "8 by 4",
        "time with time zone" => "12",
        "box" | "lseg" => "32",
        "line" => "24",
        "tid" => "6 by 2",
        _ => "varlena",
    }
}

fn layout_of(column: &Column) -> &'static str {
    match (column.layout.attlen, column.layout.attalign) {
        (1, _) => "1",
        (2, _) => "2",
        (4, _) => "4",
        (6, 2) => "6 by 2",
        (6, _) => "6",
        (8, 4) => "8 by 4",
        (8, _) => "8",
        (12, _) => "12",
        (16, 1) => "16",
        (16, _) => "16 by 8",
        (24, _) => "24",
        (32, _) => "32",
        (64, _) => "64",
        (-1, _) => "varlena",
        _ => "other",
    }
}

#[derive(Default, Debug)]
struct Score {
    /// Columns of all tables, of whatever is guessed nothing too.
    there: u32,
    tables: u32,
    counted: u32,
    columns: u32,
    seen: u32,
    layouts: u32,
    types: u32,
    wrong: Vec<String>,
}

fn files_of(cluster: &Cluster, catalog: &Catalog, relation: &Relation) -> Option<ForkFiles> {
    let mut files = cluster
        .homes
        .iter()
        .filter_map(|home| cluster.files(home).ok())
        .flatten();
    files.find(|files| {
        files.filenode == relation.filenode
            && files.fork == pgclinic_format::Fork::Main
            && files.home.database == catalog.database
    })
}

fn hold(cluster: &Cluster, catalog: &Catalog, relation: &Relation, score: &mut Score) {
    let own = files_of(cluster, catalog, relation);
    let (Some(own), Some(columns)) = (own, &relation.columns) else {
        return;
    };
    let standing = columns.iter().filter(|column| !column.dropped).count();
    score.there += u32::try_from(standing).expect("few");
    let Some(guessed) = guess_columns(cluster, &own) else {
        score.wrong.push(format!("{}: nothing", relation.name));
        return;
    };
    score.tables += 1;
    score.columns += u32::try_from(columns.len()).expect("few");
    score.counted += u32::from(guessed.len() == columns.len());
    let told = columns.iter().zip(&guessed);
    let told = told.filter(|(column, guess)| !column.dropped && guess.confidence > 0.0);
    for (column, guess) in told {
        score.seen += 1;
        let truth = catalog.type_info(column.type_oid);
        let (truth, found) = (family_of(&truth), family(&guess.type_name));
        let has_layout = layout_of(column) == layout(found);
        score.layouts += u32::from(has_layout);
        let is_right = truth == plain(found) || truth == found;
        score.types += u32::from(is_right);
        if !has_layout || !is_right {
            let words = format!("{}.{} {truth} as {guess:?}", relation.name, column.name);
            score.wrong.push(words);
        }
    }
}

fn scored(takes: &dyn Fn(&Relation) -> bool) -> Score {
    let cluster = open(&seed(&server(15), Checksums::On).pgdata);
    let mut databases = cluster.databases.values();
    let clinic = databases.find(|known| known.name.as_deref() == Some("clinic"));
    let catalog = cluster.catalog(clinic.expect("clinic").oid);
    let mut score = Score::default();
    for relation in catalog.relations.values() {
        let of_the_system = ["pg_", "information_schema"]
            .iter()
            .any(|own| relation.schema.starts_with(own));
        if relation.kind == RelKind::Table && !of_the_system && takes(relation) {
            hold(&cluster, &catalog, relation, &mut score);
        }
    }
    score
}

/// Over all tables, and without the one that has a column of nearly every built-in type; the
/// figures stand in the guide.
#[test]
fn most_columns_are_guessed_right() {
    let all = scored(&|_| true);
    let score = scored(&|relation| relation.name != "all_types");
    println!("all tables: {all:#?}\nwithout all_types: {score:?}");
    assert!(
        score.tables >= 30 && score.counted == score.tables,
        "{score:?}"
    );
    assert!(score.layouts * 100 >= score.seen * 97, "{score:?}");
    assert!(score.types * 100 >= score.seen * 90, "{score:?}");
    // What is guessed of the widest table has the right number of columns, or nothing is.
    assert_eq!(all.counted, all.tables, "{all:?}");
}

/// Of a table whose one column is of a type that is not tried nothing is guessed, rather than
/// something wrong.
#[test]
fn what_no_layout_fits_is_not_guessed() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    let sql = "CREATE TABLE public.rights AS SELECT makeaclitem(10, 10, 'SELECT', true) AS item FROM generate_series(1, 100)";
    session.execute(sql).expect("a table");
    drop(session);
    running.stop(StopMode::Fast).expect("stopped");
    let cluster = open(&copy.pgdata);
    let mut databases = cluster.databases.values();
    let clinic = databases.find(|known| known.name.as_deref() == Some("clinic"));
    let catalog = cluster.catalog(clinic.expect("clinic").oid);
    let relation = catalog.by_name("public", "rights").expect("a table");
    let files = files_of(&cluster, &catalog, relation).expect("a file");
    assert_eq!(guess_columns(&cluster, &files), None);
}

/// Tables whose columns have the types of their names, with values as people have them.
const TOLD: [&str; 4] = [
    "SELECT i::bigint AS bigint, point(i % 90 + 0.5, -i) AS point, box(point(i, i + 1), point(-1, 2)) AS box, \
       path(format('[(0,0),(%s,1),(2,2)]', i)) AS path, polygon(format('((0,0),(%s,1),(2,9))', i)) AS polygon, 'word ' || i AS text \
     FROM generate_series(1, 400) i",
    "SELECT i AS integer, ('08:00:2b:01:02:' || lpad(to_hex(i % 256), 2, '0'))::macaddr AS macaddr, \
       macaddr8(('08:00:2b:01:02:' || lpad(to_hex(i % 256), 2, '0'))::macaddr) AS macaddr8, time '00:30' + i * interval '97 s' AS \"time\", \
       (time '23:59:59' - i * interval '7 s') AT TIME ZONE interval '03:30' AS timetz, ('10.' || i % 256 || '.0.0/16')::cidr AS cidr, \
       ('10.1.2.' || i % 250 + 1)::inet AS inet, (i::bit(20))::varbit AS varbit, to_tsquery('simple', 'fox & q' || i) AS tsquery, \
       ('$.a[*] ? (@ > ' || i || ')')::jsonpath AS jsonpath, i::bigint AS bigint FROM generate_series(1, 400) i",
    "SELECT i AS integer, int4range(i, i + 10) AS int4range, int8range(i, i + 10) AS int8range, numrange(i / 3.0, NULL) AS numrange, \
       daterange(date '2000-01-01', date '2000-01-02' + i) AS daterange, tsrange(NULL, timestamp '2020-01-01' + i * interval '1 h') AS tsrange, \
       tstzrange(NULL, timestamptz '2020-01-01 00:00+00' + i * interval '1 h') AS tstzrange, \
       datemultirange(daterange(date '2000-01-01', date '2000-01-02' + i)) AS datemultirange, ARRAY[i::bigint, NULL] AS _int8, \
       ARRAY[timestamptz '2020-01-01 00:00+00'] AS _timestamptz, ARRAY[md5(i::text)::uuid] AS _uuid, ARRAY[i / 7.0] AS _numeric, \
       ARRAY[i % 2 = 0, NULL] AS _bool, ARRAY['a' || i]::varchar[] AS _varchar FROM generate_series(1, 400) i",
    "SELECT i AS integer, ext.hstore(ARRAY['a', 'b c'], ARRAY[i::text, NULL]) AS hstore, ('top.n' || i || '.leaf')::ext.ltree AS ltree, \
       ext.cube(ARRAY[i, 1.0], ARRAY[2.0, i]) AS cube, (i || ':' || i + 20 || ':' || i + 3)::pg_snapshot AS pg_snapshot, \
       jsonb_build_object('i', i) AS jsonb FROM generate_series(1, 400) i",
];

/// The catalog's name of a guess.
fn plain(name: &str) -> String {
    let (element, is_array) = match name.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (name, false),
    };
    let element = match element {
        "time with time zone" => "timetz",
        "timestamp with time zone" => "timestamptz",
        "bit varying" => "varbit",
        "boolean" if is_array => "bool",
        "bigint" if is_array => "int8",
        other => other,
    };
    if is_array {
        format!("_{element}")
    } else {
        element.to_owned()
    }
}

/// Types that lie like no other, or that tell of their values which they can be, are guessed for
/// what they are.
#[test]
fn types_that_can_be_told_apart_are_told() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    for (number, rows) in TOLD.iter().enumerate() {
        let sql = format!("CREATE TABLE public.told_{number} AS {rows}");
        session
            .execute(&sql)
            .unwrap_or_else(|error| panic!("{rows}: {error}"));
    }
    drop(session);
    running.stop(StopMode::Fast).expect("stopped");
    let cluster = open(&copy.pgdata);
    let mut databases = cluster.databases.values();
    let clinic = databases.find(|known| known.name.as_deref() == Some("clinic"));
    let catalog = cluster.catalog(clinic.expect("clinic").oid);
    let mut wrong = Vec::new();
    for number in 0..TOLD.len() {
        let relation = catalog.by_name("public", &format!("told_{number}"));
        let relation = relation.expect("a table");
        let files = files_of(&cluster, &catalog, relation).expect("a file");
        let guessed = guess_columns(&cluster, &files).expect("a guess");
        let found: Vec<String> = guessed
            .iter()
            .map(|column| plain(&column.type_name))
            .collect();
        let columns = relation.columns.as_ref().expect("columns");
        let expected: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        if found != expected {
            wrong.push(format!("{expected:?} are guessed as {guessed:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
