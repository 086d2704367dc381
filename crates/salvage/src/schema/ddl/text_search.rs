//! Text search dictionaries and configurations, and what reaches foreign data.

use super::super::catalog::{Catalogs, Row};
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::grants::GrantObject;
use super::item::{Item, Items, Rank, class, is_own};
use super::relations::options;

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_ts_dict").iter() {
        if is_own(catalogs, class::DICTIONARY, row.id()) {
            out.push(dictionary(catalogs, row));
        }
    }
    for row in catalogs.table("pg_ts_config").iter() {
        if is_own(catalogs, class::CONFIGURATION, row.id()) {
            out.push(configuration(catalogs, row));
        }
    }
    for row in catalogs.table("pg_foreign_data_wrapper").iter() {
        if is_own(catalogs, class::WRAPPER, row.id()) {
            out.push(wrapper(catalogs, row));
        }
    }
    for row in catalogs.table("pg_foreign_server").iter() {
        if is_own(catalogs, class::SERVER, row.id()) {
            out.push(server(catalogs, row));
        }
    }
    for row in catalogs.table("pg_user_mapping").iter() {
        if is_own(catalogs, class::USER_MAPPING, row.id()) {
            out.push(user_mapping(catalogs, row));
        }
    }
}

fn other(
    catalogs: &Catalogs<'_>,
    (table, schema, name): (&str, &str, &str),
    oid: u32,
) -> Written<String> {
    let row = catalogs.row(table, oid);
    let row = row.ok_or_else(|| Refusal::absent("text search object", oid))?;
    catalogs.with_schema(row.oid(schema), &row.name(name))
}

fn dictionary(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.with_schema(row.oid("dictnamespace"), &row.name("dictname"));
    let what = named("TEXT SEARCH DICTIONARY", &name);
    let text = name.and_then(|name| {
        let names = ("pg_ts_template", "tmplnamespace", "tmplname");
        let template = other(catalogs, names, row.oid("dicttemplate"))?;
        let options = row.text("dictinitoption").filter(|text| !text.is_empty());
        let options = options
            .map(|text| format!(",\n    {text}"))
            .unwrap_or_default();
        Ok(format!(
            "CREATE TEXT SEARCH DICTIONARY {name} (\n    TEMPLATE = {template}{options}\n);"
        ))
    });
    let key = (class::DICTIONARY, row.id());
    Item::new(Rank::TextSearch, key, what, text).owned_by(row.oid("dictowner"))
}

/// `tokid` to its alias in the parser that comes with the server; truth:
/// `src/backend/tsearch/wparser_def.c`.
const TOKENS: [&str; 24] = [
    "",
    "asciiword",
    "word",
    "numword",
    "email",
    "url",
    "host",
    "sfloat",
    "version",
    "hword_numpart",
    "hword_part",
    "hword_asciipart",
    "blank",
    "tag",
    "protocol",
    "numhword",
    "asciihword",
    "hword",
    "url_path",
    "file",
    "float",
    "int",
    "uint",
    "entity",
];
const DEFAULT_PARSER: u32 = 3722;

fn configuration(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.with_schema(row.oid("cfgnamespace"), &row.name("cfgname"));
    let what = named("TEXT SEARCH CONFIGURATION", &name);
    let text = name.and_then(|name| {
        let names = ("pg_ts_parser", "prsnamespace", "prsname");
        let parser = other(catalogs, names, row.oid("cfgparser"))?;
        let mut text = format!("CREATE TEXT SEARCH CONFIGURATION {name} (\n    PARSER = {parser}\n);");
        let mut maps = catalogs.rows("pg_ts_config_map", "mapcfg", row.id());
        maps.sort_by_key(|map| (map.int("maptokentype"), map.int("mapseqno")));
        if !maps.is_empty() && row.oid("cfgparser") != DEFAULT_PARSER {
            return Err(Refusal("the tokens of its parser are not known here".into()));
        }
        for (number, token) in (0..).zip(TOKENS) {
            let dictionaries: Written<Vec<String>> = maps
                .iter()
                .filter(|map| map.int("maptokentype") == number)
                .map(|map| catalogs.dictionary_name(map.oid("mapdict")))
                .collect();
            let dictionaries = dictionaries?;
            if !dictionaries.is_empty() {
                let token = catalogs.quoted(token);
                let list = dictionaries.join(", ");
                text += &format!(
                    "\nALTER TEXT SEARCH CONFIGURATION {name}\n    ADD MAPPING FOR {token} WITH {list};"
                );
            }
        }
        Ok(text)
    });
    let key = (class::CONFIGURATION, row.id());
    Item::new(Rank::TextSearch, key, what, text).owned_by(row.oid("cfgowner"))
}

fn wrapper(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.quoted(&row.name("fdwname"));
    let text = || -> Written<String> {
        let mut text = format!("CREATE FOREIGN DATA WRAPPER {name}");
        for (word, column) in [("HANDLER", "fdwhandler"), ("VALIDATOR", "fdwvalidator")] {
            if row.oid(column) != 0 {
                text += &format!(" {word} {}", catalogs.function_name(row.oid(column))?);
            }
        }
        Ok(format!("{text}{};", options(catalogs, row, "fdwoptions")))
    };
    let key = (class::WRAPPER, row.id());
    let item = Item::new(
        Rank::Foreign,
        key,
        format!("FOREIGN DATA WRAPPER {name}"),
        text(),
    );
    let item = item.owned_by(row.oid("fdwowner"));
    item.with_rights(GrantObject::Wrapper, row, "fdwacl")
}

fn server(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.quoted(&row.name("srvname"));
    let text = || -> Written<String> {
        let mut text = format!("CREATE SERVER {name}");
        for (word, column) in [("TYPE", "srvtype"), ("VERSION", "srvversion")] {
            if let Some(value) = row.text(column) {
                text += &format!(" {word} {}", super::super::identifier::literal(&value));
            }
        }
        let wrapper = catalogs.row("pg_foreign_data_wrapper", row.oid("srvfdw"));
        let wrapper =
            wrapper.ok_or_else(|| Refusal::absent("foreign data wrapper", row.oid("srvfdw")))?;
        let wrapper = catalogs.quoted(&wrapper.name("fdwname"));
        Ok(format!(
            "{text} FOREIGN DATA WRAPPER {wrapper}{};",
            options(catalogs, row, "srvoptions")
        ))
    };
    let key = (class::SERVER, row.id());
    let item = Item::new(Rank::Foreign, key, format!("SERVER {name}"), text());
    let item = item.owned_by(row.oid("srvowner"));
    item.with_rights(GrantObject::Server, row, "srvacl")
}

fn user_mapping(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = || -> Written<String> {
        let user = match row.oid("umuser") {
            0 => "PUBLIC".into(),
            oid => catalogs.role_name(oid)?,
        };
        let server = catalogs.row("pg_foreign_server", row.oid("umserver"));
        let server = server.ok_or_else(|| Refusal::absent("server", row.oid("umserver")))?;
        Ok(format!(
            "FOR {user} SERVER {}",
            catalogs.quoted(&server.name("srvname"))
        ))
    };
    let text = name().map(|name| {
        format!(
            "CREATE USER MAPPING {name}{};",
            options(catalogs, row, "umoptions")
        )
    });
    let key = (class::USER_MAPPING, row.id());
    let mut item = Item::new(Rank::Foreign, key, named("USER MAPPING", &name()), text);
    item.needs.push((class::SERVER, row.oid("umserver")));
    item
}
