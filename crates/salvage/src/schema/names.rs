//! The names of things as SQL wants them under an empty `search_path`: with their schema, but for
//! `pg_catalog`.

use pgclinic_format::Oid;

use super::catalog::{Catalogs, PG_CATALOG, Row};
use super::identifier::Quoting;
use super::refusal::{Refusal, Written};

impl Catalogs<'_> {
    /// How names are quoted.
    pub(crate) fn quoting(&self) -> Quoting {
        Quoting { major: self.major }
    }

    /// A name, quoted where needed.
    pub(crate) fn quoted(&self, name: &str) -> String {
        self.quoting().name(name)
    }

    /// A schema's name, not quoted.
    pub(crate) fn schema_name(&self, oid: Oid) -> Written<String> {
        let row = self.row("pg_namespace", oid);
        row.map(|row| row.name("nspname"))
            .ok_or_else(|| Refusal::absent("schema", oid))
    }

    /// `schema.name` always.
    pub(crate) fn with_schema(&self, schema: Oid, name: &str) -> Written<String> {
        Ok(self.quoting().qualified(&self.schema_name(schema)?, name))
    }

    /// `schema.name`, or the name alone in `pg_catalog`.
    pub(crate) fn visible(&self, schema: Oid, name: &str) -> Written<String> {
        if schema == PG_CATALOG {
            return Ok(self.quoted(name));
        }
        self.with_schema(schema, name)
    }

    fn named(
        &self,
        what: &'static str,
        (table, schema, name): (&str, &str, &str),
        oid: Oid,
    ) -> Written<String> {
        let row = self
            .row(table, oid)
            .ok_or_else(|| Refusal::absent(what, oid))?;
        self.visible(row.oid(schema), &row.name(name))
    }

    /// A table, index, sequence, view or composite type.
    pub(crate) fn relation_name(&self, oid: Oid) -> Written<String> {
        self.named("relation", ("pg_class", "relnamespace", "relname"), oid)
    }

    /// The same with its schema always.
    pub(crate) fn qualified_relation(&self, row: Row<'_>) -> Written<String> {
        self.with_schema(row.oid("relnamespace"), &row.name("relname"))
    }

    /// A function by its name alone, as it is called.
    pub(crate) fn function_name(&self, oid: Oid) -> Written<String> {
        self.named("function", ("pg_proc", "pronamespace", "proname"), oid)
    }

    /// A function with the types of its input arguments, always with its schema unless in
    /// `pg_catalog`.
    pub(crate) fn function_signature(&self, oid: Oid) -> Written<String> {
        let row = self
            .row("pg_proc", oid)
            .ok_or_else(|| Refusal::absent("function", oid))?;
        let types: Written<Vec<String>> = row
            .oids("proargtypes")
            .into_iter()
            .map(|oid| self.type_name(oid))
            .collect();
        Ok(format!(
            "{}({})",
            self.function_name(oid)?,
            types?.join(", ")
        ))
    }

    /// An operator between its arguments: bare, or as `OPERATOR(schema.+)`.
    pub(crate) fn operator_name(&self, oid: Oid) -> Written<String> {
        let row = self
            .row("pg_operator", oid)
            .ok_or_else(|| Refusal::absent("operator", oid))?;
        let (schema, name) = (row.oid("oprnamespace"), row.name("oprname"));
        if schema == PG_CATALOG {
            return Ok(name);
        }
        let schema = self.quoted(&self.schema_name(schema)?);
        Ok(format!("OPERATOR({schema}.{name})"))
    }

    /// ` COLLATE …`; nothing of one that is lost, or for none.
    pub(crate) fn collate(&self, oid: Oid) -> String {
        let known = self.known_collation(oid);
        known.map_or_else(String::new, |name| format!(" COLLATE {name}"))
    }

    /// The name of a collation that is not lost; the two of C are the same everywhere.
    pub(crate) fn known_collation(&self, oid: Oid) -> Option<String> {
        const C: Oid = 950;
        const POSIX: Oid = 951;
        match oid {
            C => Some("\"C\"".into()),
            POSIX => Some("\"POSIX\"".into()),
            _ => self.collation_name(oid).ok(),
        }
    }

    /// A collation.
    pub(crate) fn collation_name(&self, oid: Oid) -> Written<String> {
        let names = ("pg_collation", "collnamespace", "collname");
        self.named("collation", names, oid)
    }

    /// An operator class.
    pub(crate) fn opclass_name(&self, oid: Oid) -> Written<String> {
        let names = ("pg_opclass", "opcnamespace", "opcname");
        self.named("operator class", names, oid)
    }

    /// An operator family.
    pub(crate) fn opfamily_name(&self, oid: Oid) -> Written<String> {
        let names = ("pg_opfamily", "opfnamespace", "opfname");
        self.named("operator family", names, oid)
    }

    /// ` schema.class`, unless it is what a column of this type (0: any) gets by itself.
    pub(crate) fn class_if_needed(&self, class: Oid, input: Oid) -> Written<String> {
        let row = self
            .row("pg_opclass", class)
            .ok_or_else(|| Refusal::absent("operator class", class))?;
        let input = self.base_type(input);
        let method = row.oid("opcmethod");
        let own = self.table("pg_opclass").iter().find(|other| {
            other.oid("opcmethod") == method
                && other.oid("opcintype") == input
                && other.flag("opcdefault")
        });
        let usual = row.flag("opcdefault") && own.is_none_or(|own| own.id() == class);
        if usual && input != 0 {
            return Ok(String::new());
        }
        Ok(format!(" {}", self.opclass_name(class)?))
    }

    /// The type below domains.
    pub(crate) fn base_type(&self, oid: Oid) -> Oid {
        let mut oid = oid;
        // Domains over domains.
        for _ in 0..64 {
            match self.row("pg_type", oid) {
                Some(row) if row.letter("typtype") == 'd' => oid = row.oid("typbasetype"),
                _ => break,
            }
        }
        oid
    }

    /// A text search configuration.
    pub(crate) fn configuration_name(&self, oid: Oid) -> Written<String> {
        let names = ("pg_ts_config", "cfgnamespace", "cfgname");
        self.named("text search configuration", names, oid)
    }

    /// A text search dictionary.
    pub(crate) fn dictionary_name(&self, oid: Oid) -> Written<String> {
        let names = ("pg_ts_dict", "dictnamespace", "dictname");
        self.named("text search dictionary", names, oid)
    }

    /// A role, quoted.
    pub(crate) fn role_name(&self, oid: Oid) -> Written<String> {
        let row = self.row("pg_authid", oid);
        row.map(|row| self.quoted(&row.name("rolname")))
            .ok_or_else(|| Refusal::absent("role", oid))
    }

    /// A type with no modifier.
    pub(crate) fn type_name(&self, oid: Oid) -> Written<String> {
        self.type_with(oid, -1)
    }

    /// A type with its modifier, as `format_type` prints it; truth:
    /// `src/backend/utils/adt/format_type.c`.
    pub(crate) fn type_with(&self, oid: Oid, typmod: i64) -> Written<String> {
        let row = self
            .row("pg_type", oid)
            .ok_or_else(|| Refusal::absent("type", oid))?;
        let element = row.oid("typelem");
        if element != 0 && row.int("typlen") == -1 && row.letter("typstorage") != 'p' {
            let element = self
                .row("pg_type", element)
                .ok_or_else(|| Refusal::absent("type", element))?;
            return Ok(format!("{}[]", self.plain_type(element, typmod)?));
        }
        self.plain_type(row, typmod)
    }

    fn plain_type(&self, row: Row<'_>, typmod: i64) -> Written<String> {
        let (oid, name) = (row.id(), row.name("typname"));
        if let Some(text) = sql_type(oid, typmod) {
            return Ok(text);
        }
        let name = match oid {
            // Without a length these are not what their bare names mean to the parser.
            1560 => "\"bit\"".into(),
            1042 => "bpchar".into(),
            _ => self.visible(row.oid("typnamespace"), &name)?,
        };
        if typmod < 0 {
            return Ok(name);
        }
        if let Some(modifier) = spatial_modifier(&row.name("typname"), typmod) {
            return Ok(format!("{name}{modifier}"));
        }
        if row.oid("typmodout") != 0 {
            return Err(Refusal(format!(
                "the modifier {typmod} of type {name} is known to its own functions only"
            )));
        }
        Ok(format!("{name}({typmod})"))
    }
}

/// What PostGIS binds a column to; truth: `postgis_typmod_out` in `postgis/gserialized_typmod.c`,
/// `TYPMOD_GET_SRID` in `liblwgeom/liblwgeom.h.in`.
///
/// ```text
/// 28   27 to 8   7 to 2   1       0
/// sign SRID      kind     has Z   has M
/// ```
fn spatial_modifier(type_name: &str, typmod: i64) -> Option<String> {
    const KINDS: [&str; 16] = [
        "Geometry",
        "Point",
        "LineString",
        "Polygon",
        "MultiPoint",
        "MultiLineString",
        "MultiPolygon",
        "GeometryCollection",
        "CircularString",
        "CompoundCurve",
        "CurvePolygon",
        "MultiCurve",
        "MultiSurface",
        "PolyhedralSurface",
        "Triangle",
        "Tin",
    ];
    if !matches!(type_name, "geometry" | "geography") {
        return None;
    }
    let srid = ((typmod & 0x0FFF_FF00) - (typmod & 0x1000_0000)) >> 8;
    let kind = usize::try_from(typmod >> 2 & 0x3F).ok()?;
    let kind = KINDS.get(kind)?;
    let z = if typmod & 2 != 0 { "Z" } else { "" };
    let m = if typmod & 1 != 0 { "M" } else { "" };
    Some(match srid {
        0 => format!("({kind}{z}{m})"),
        srid => format!("({kind}{z}{m},{srid})"),
    })
}

/// Types whose names are the standard's; truth: `format_type_extended`.
pub(super) fn sql_type(oid: Oid, typmod: i64) -> Option<String> {
    let sized = |name: &str, size: i64| match typmod {
        ..0 => name.to_owned(),
        _ => format!("{name}({size})"),
    };
    let timed = |name: &str, zone: &str| format!("{} {zone} time zone", sized(name, typmod));
    Some(match oid {
        16 => "boolean".into(),
        20 => "bigint".into(),
        21 => "smallint".into(),
        23 => "integer".into(),
        // A key word since 17, but a name all the same.
        114 => "json".into(),
        700 => "real".into(),
        701 => "double precision".into(),
        1042 if typmod >= 0 => sized("character", typmod - 4),
        1043 => sized("character varying", typmod - 4),
        1083 => timed("time", "without"),
        1114 => timed("timestamp", "without"),
        1184 => timed("timestamp", "with"),
        1186 => interval(typmod),
        1266 => timed("time", "with"),
        1560 if typmod >= 0 => sized("bit", typmod),
        1562 => sized("bit varying", typmod),
        1700 if typmod >= 4 => {
            let (precision, scale) = ((typmod - 4) >> 16 & 0xFFFF, (typmod - 4) & 0x7FF);
            format!("numeric({precision},{})", (scale ^ 1024) - 1024)
        }
        1700 => "numeric".into(),
        _ => return None,
    })
}

/// Fields in the upper half, precision in the lower; truth: `intervaltypmodout`.
fn interval(typmod: i64) -> String {
    if typmod < 0 {
        return "interval".into();
    }
    const FIELDS: [(i64, &str); 13] = [
        (0x0004, " year"),
        (0x0002, " month"),
        (0x0008, " day"),
        (0x0400, " hour"),
        (0x0800, " minute"),
        (0x1000, " second"),
        (0x0006, " year to month"),
        (0x0408, " day to hour"),
        (0x0C08, " day to minute"),
        (0x1C08, " day to second"),
        (0x0C00, " hour to minute"),
        (0x1C00, " hour to second"),
        (0x1800, " minute to second"),
    ];
    let (fields, precision) = (typmod >> 16 & 0x7FFF, typmod & 0xFFFF);
    let found = FIELDS.iter().find(|(mask, _)| *mask == fields);
    let fields = found.map_or("", |(_, words)| words);
    match precision {
        0xFFFF => format!("interval{fields}"),
        _ => format!("interval{fields}({precision})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spatial_columns_keep_what_they_are_bound_to() {
        let of = |typmod| spatial_modifier("geometry", typmod).unwrap_or_default();
        assert_eq!(of(4326 << 8 | 1 << 2), "(Point,4326)");
        assert_eq!(of(6 << 2 | 3), "(MultiPolygonZM)");
        assert_eq!(of(3857 << 8), "(Geometry,3857)");
        assert_eq!(spatial_modifier("vector", 3), None);
    }

    #[test]
    fn types_are_named_as_the_standard_names_them() {
        let name = |oid, typmod| sql_type(oid, typmod).unwrap_or_default();
        assert_eq!(name(1043, 44), "character varying(40)");
        assert_eq!(name(1700, (10 << 16 | 2) + 4), "numeric(10,2)");
        assert_eq!(name(1700, (3 << 16 | 0x7FE) + 4), "numeric(3,-2)");
        assert_eq!(name(1184, 3), "timestamp(3) with time zone");
        assert_eq!(name(1186, 0x1C08_0003), "interval day to second(3)");
        assert_eq!(name(1186, 0x7FFF_0002), "interval(2)");
        assert_eq!(
            (name(1560, -1), name(1560, 11)),
            ("".into(), "bit(11)".into())
        );
    }
}
