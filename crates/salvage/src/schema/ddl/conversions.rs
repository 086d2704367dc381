//! Transforms, conversions, text search parsers and templates; truth: `src/bin/pg_dump/pg_dump.c`.

use super::super::catalog::{Catalogs, Row};
use super::super::identifier::literal;
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::item::{Item, Items, Rank, class, is_own};

/// What writes the things of one kind.
type Write = fn(&Catalogs<'_>, Row<'_>) -> Item;

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    let kinds: [(&str, u32, Write); 4] = [
        ("pg_transform", class::TRANSFORM, transform),
        ("pg_conversion", class::CONVERSION, conversion),
        ("pg_ts_parser", class::PARSER, parser),
        ("pg_ts_template", class::TEMPLATE, template),
    ];
    for (table, class, write) in kinds {
        for row in catalogs.table(table).iter() {
            if is_own(catalogs, class, row.id()) {
                out.push(write(catalogs, row));
            }
        }
    }
}

fn transform(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = || -> Written<String> {
        let ty = catalogs.type_name(row.oid("trftype"))?;
        let language = row.oid("trflang");
        let known = catalogs.row("pg_language", language);
        let known = known.ok_or_else(|| Refusal::absent("language", language))?;
        let language = catalogs.quoted(&known.name("lanname"));
        Ok(format!("FOR {ty} LANGUAGE {language}"))
    };
    let text = || -> Written<String> {
        let mut parts = Vec::new();
        for (word, column) in [("FROM SQL", "trffromsql"), ("TO SQL", "trftosql")] {
            if row.oid(column) != 0 {
                let function = catalogs.function_signature(row.oid(column))?;
                parts.push(format!("{word} WITH FUNCTION {function}"));
            }
        }
        Ok(format!(
            "CREATE TRANSFORM {} ({});",
            name()?,
            parts.join(", ")
        ))
    };
    let key = (class::TRANSFORM, row.id());
    Item::new(Rank::Cast, key, named("TRANSFORM", &name()), text())
}

/// The server's names of its encodings; truth: `src/include/mb/pg_wchar.h`.
#[rustfmt::skip]
const ENCODINGS: [&str; 42] = [
    "SQL_ASCII", "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "UTF8", "MULE_INTERNAL", "LATIN1", "LATIN2", "LATIN3", "LATIN4",
    "LATIN5", "LATIN6", "LATIN7", "LATIN8", "LATIN9", "LATIN10", "WIN1256", "WIN1258", "WIN866", "WIN874", "KOI8R", "WIN1251", "WIN1252",
    "ISO_8859_5", "ISO_8859_6", "ISO_8859_7", "ISO_8859_8", "WIN1250", "WIN1253", "WIN1254", "WIN1255", "WIN1257", "KOI8U",
    "SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004",
];

/// The name of an encoding of this number.
pub(crate) fn encoding_name(number: i64) -> Option<&'static str> {
    let at = usize::try_from(number).ok()?;
    ENCODINGS.get(at).copied()
}

fn conversion(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.with_schema(row.oid("connamespace"), &row.name("conname"));
    let what = named("CONVERSION", &name);
    let text = name.and_then(|name| {
        let encoding = |column: &str| {
            let known = encoding_name(row.int(column));
            let known = known.ok_or_else(|| Refusal("its encodings are not known".into()));
            known.map(literal)
        };
        let (from, to) = (encoding("conforencoding")?, encoding("contoencoding")?);
        let function = catalogs.function_name(row.oid("conproc"))?;
        let usual = if row.flag("condefault") {
            "DEFAULT "
        } else {
            ""
        };
        Ok(format!(
            "CREATE {usual}CONVERSION {name} FOR {from} TO {to} FROM {function};"
        ))
    });
    let key = (class::CONVERSION, row.id());
    Item::new(Rank::Cast, key, what, text).owned_by(row.oid("conowner"))
}

fn parser(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.with_schema(row.oid("prsnamespace"), &row.name("prsname"));
    let columns = [
        ("START", "prsstart"),
        ("GETTOKEN", "prstoken"),
        ("END", "prsend"),
        ("HEADLINE", "prsheadline"),
        ("LEXTYPES", "prslextype"),
    ];
    of_functions(catalogs, row, ("PARSER", class::PARSER, name), &columns)
}

fn template(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.with_schema(row.oid("tmplnamespace"), &row.name("tmplname"));
    let columns = [("INIT", "tmplinit"), ("LEXIZE", "tmpllexize")];
    of_functions(catalogs, row, ("TEMPLATE", class::TEMPLATE, name), &columns)
}

fn of_functions(
    catalogs: &Catalogs<'_>,
    row: Row<'_>,
    (word, class, name): (&str, u32, Written<String>),
    columns: &[(&str, &str)],
) -> Item {
    let what = named(&format!("TEXT SEARCH {word}"), &name);
    let text = name.and_then(|name| {
        let used = columns.iter().filter(|(_, column)| row.oid(column) != 0);
        let part = |(part, column): &(&str, &str)| {
            let function = catalogs.function_name(row.oid(column))?;
            Ok(format!("{part} = {function}"))
        };
        let parts: Written<Vec<String>> = used.map(part).collect();
        Ok(format!(
            "CREATE TEXT SEARCH {word} {name} ({});",
            parts?.join(", ")
        ))
    });
    Item::new(Rank::TextSearch, (class, row.id()), what, text)
}
