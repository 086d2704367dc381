//! What a real server printed for real bytes. The pairs of `datum_golden.tsv` were read with
//! `pageinspect` (`heap_page_item_attrs`) from a PostgreSQL 15; `Limits::major` says so.

use std::sync::Arc;

use pgclinic_format::datum::{Field, Limits, TypeInfo, TypeKind, builtin, builtin_oids, to_text};

const PAIRS: &str = include_str!("datum_golden.tsv");

const MOOD: u32 = 19735;
const POSINT: u32 = 19742;
const PAIR: u32 = 19748;

fn named(name: &str) -> TypeInfo {
    if let Some(element) = name.strip_suffix("[]") {
        return array_of(user(element));
    }
    let built_in = builtin_oids()
        .into_iter()
        .filter_map(builtin)
        .find(|ty| ty.name == name);
    built_in.unwrap_or_else(|| user(name))
}

fn user(name: &str) -> TypeInfo {
    let builtin = |oid| Arc::new(builtin(oid).unwrap());
    let (oid, len, align, kind) = match name {
        "mood" => {
            let labels = [(19736, "sad"), (19738, "ok"), (19740, "happy \"x\"")];
            (
                MOOD,
                4,
                4,
                TypeKind::Enum(
                    labels
                        .map(|(oid, label)| (oid, label.as_bytes().to_vec()))
                        .to_vec(),
                ),
            )
        }
        "posint" => (POSINT, 4, 4, TypeKind::Domain(builtin(23))),
        "posints" => (
            19745,
            -1,
            4,
            TypeKind::Domain(Arc::new(array_of(user("posint")))),
        ),
        "pair" => (
            PAIR,
            -1,
            8,
            TypeKind::Composite(vec![field("a", builtin(23)), field("b", builtin(25))]),
        ),
        "wide" => (19751, -1, 8, TypeKind::Composite(wide())),
        "textrange" => (19755, -1, 4, TypeKind::Range(builtin(25))),
        "hstore" => (16428, -1, 4, TypeKind::Base),
        "citext" => (16556, -1, 4, TypeKind::Base),
        "ltree" => (16661, -1, 4, TypeKind::Base),
        "cube" => (16846, -1, 8, TypeKind::Base),
        other => panic!("the pairs name an unknown type {other}"),
    };
    TypeInfo {
        oid,
        name: name.to_owned(),
        len,
        byval: false,
        align,
        kind,
    }
}

/// `wide` lost an attribute, which its values still have room for.
fn wide() -> Vec<Field> {
    let of = |name, oid| field(name, Arc::new(builtin(oid).unwrap()));
    let gone = Field {
        dropped: true,
        ..of("gone", 21)
    };
    let pair = field("e", Arc::new(user("pair")));
    let posint = field("g", Arc::new(user("posint")));
    vec![
        of("a", 16),
        of("b", 20),
        gone,
        of("c", 1700),
        of("d", 1009),
        pair,
        of("f", 1184),
        posint,
    ]
}

fn field(name: &str, ty: Arc<TypeInfo>) -> Field {
    Field {
        name: name.to_owned(),
        ty,
        collation: 0,
        dropped: false,
    }
}

fn array_of(element: TypeInfo) -> TypeInfo {
    let (name, align) = (format!("_{}", element.name), element.align.max(4));
    TypeInfo {
        oid: 0,
        name,
        len: -1,
        byval: false,
        align,
        kind: TypeKind::Array(Arc::new(element)),
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .map(|digit| (digit as char).to_digit(16).unwrap() as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn uncopy(text: &str) -> String {
    let mut out = String::new();
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        match (sign, sign == '\\') {
            (_, true) => match signs.next() {
                Some('t') => out.push('\t'),
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            _ => out.push(sign),
        }
    }
    out
}

#[test]
fn every_value_is_printed_as_the_server_does() {
    let limits = Limits {
        major: 15,
        ..Limits::default()
    };
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in PAIRS.lines().filter(|line| !line.starts_with('#')) {
        let [name, hex, text] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let printed = to_text(&named(name), &unhex(hex), limits).map_err(|error| error.to_string());
        count += 1;
        if printed.as_ref() != Ok(&uncopy(text)) {
            wrong.push(format!(
                "{name} {hex}\n  server {text}\n  here   {printed:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count > 400, "only {count} pairs were read");
}
