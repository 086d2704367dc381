//! How values are printed, in the words of a server's settings, and what follows from them.

use std::collections::BTreeSet;
use std::sync::Arc;

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_format::Oid;
use pgclinic_format::datum::{
    ByteaOutput, DateOrder, DateStyle, IntervalStyle, MoneyFormat, Style, TypeInfo, TypeKind, Zone,
};
use serde::Serialize;

use crate::schema::object_names;
use crate::shape::Column;

/// The settings of a session, and their meaning.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TextSettings {
    /// `DateStyle`, such as `ISO` or `SQL, DMY`.
    pub date_style: String,
    /// `IntervalStyle`.
    pub interval_style: String,
    /// `TimeZone`.
    pub time_zone: String,
    /// `bytea_output`.
    pub bytea_output: String,
    /// `extra_float_digits`.
    pub extra_float_digits: i8,
    /// `lc_monetary`.
    pub lc_monetary: String,
    /// `search_path`: objects in these schemas are named without them.
    pub search_path: Vec<String>,
}

impl Default for TextSettings {
    fn default() -> Self {
        TextSettings {
            date_style: "ISO".into(),
            interval_style: "postgres".into(),
            time_zone: "UTC".into(),
            bytea_output: "hex".into(),
            extra_float_digits: 1,
            lc_monetary: "C".into(),
            search_path: vec!["public".into()],
        }
    }
}

/// How the values of a salvage are printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TextStyle {
    /// In the server's words.
    pub settings: TextSettings,
    /// What they mean, without names of objects.
    pub style: Arc<Style>,
}

impl TextStyle {
    /// The meaning of the settings, whose time zone and locale somebody else has read; or which of
    /// them means nothing.
    pub fn new(settings: TextSettings, zone: Zone, money: MoneyFormat) -> Result<Self, String> {
        let (dates, order) = date_style(&settings.date_style)?;
        if !(-15..=3).contains(&settings.extra_float_digits) {
            let digits = settings.extra_float_digits;
            return Err(format!("extra_float_digits is -15 to 3, not {digits}"));
        }
        let style = Style {
            dates,
            order,
            intervals: interval_style(&settings.interval_style)?,
            bytea: bytea_output(&settings.bytea_output)?,
            extra_float_digits: settings.extra_float_digits,
            zone,
            money,
            ..Style::PLAIN
        };
        Ok(TextStyle {
            settings,
            style: Arc::new(style),
        })
    }

    /// The same with names that are right whatever the `search_path`: for values that a server
    /// reads.
    pub(crate) fn for_a_server() -> Self {
        let settings = TextSettings {
            search_path: Vec::new(),
            ..TextSettings::default()
        };
        TextStyle {
            settings,
            ..TextStyle::default()
        }
    }

    /// The style for these columns: with the names of the objects whose numbers their values may
    /// hold.
    pub(crate) fn of_columns<'c>(
        &self,
        cluster: &Cluster,
        catalog: &Catalog,
        columns: impl Iterator<Item = &'c Column>,
    ) -> Arc<Style> {
        let named: BTreeSet<Oid> = columns.flat_map(|column| named_types(&column.ty)).collect();
        if named.is_empty() {
            return Arc::clone(&self.style);
        }
        let names = object_names(cluster, catalog, &self.settings.search_path, &named);
        Arc::new(Style {
            names,
            ..self.style.as_ref().clone()
        })
    }

    /// What a session is to be set to so that it prints the same.
    pub(crate) fn of_session(&self) -> Vec<(String, String)> {
        let TextSettings {
            interval_style,
            time_zone,
            bytea_output,
            extra_float_digits,
            lc_monetary,
            search_path,
            ..
        } = &self.settings;
        let dates = match self.style.dates {
            DateStyle::Iso => "ISO",
            DateStyle::Sql => "SQL",
            DateStyle::Postgres => "Postgres",
            DateStyle::German => "German",
        };
        let order = match self.style.order {
            DateOrder::MonthFirst => "MDY",
            DateOrder::DayFirst => "DMY",
        };
        let quoted = search_path
            .iter()
            .map(|schema| format!("\"{}\"", schema.replace('"', "\"\"")));
        let settings = [
            ("DateStyle", format!("{dates}, {order}")),
            ("IntervalStyle", interval_style.clone()),
            ("TimeZone", time_zone.clone()),
            ("bytea_output", bytea_output.clone()),
            ("extra_float_digits", extra_float_digits.to_string()),
            ("lc_monetary", lc_monetary.clone()),
            ("search_path", quoted.collect::<Vec<String>>().join(", ")),
        ];
        settings
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec()
    }
}

/// The words may stand in any order, and the last one of a kind counts.
fn date_style(text: &str) -> Result<(DateStyle, DateOrder), String> {
    let (mut style, mut order) = (DateStyle::Iso, None);
    for word in text.split(',') {
        match word.trim().to_ascii_lowercase().as_str() {
            "iso" => style = DateStyle::Iso,
            "sql" => style = DateStyle::Sql,
            "postgres" => style = DateStyle::Postgres,
            "german" => {
                style = DateStyle::German;
                order = order.or(Some(DateOrder::DayFirst));
            }
            "mdy" | "us" | "noneuro" | "noneuropean" | "ymd" => order = Some(DateOrder::MonthFirst),
            "dmy" | "euro" | "european" => order = Some(DateOrder::DayFirst),
            other => {
                return Err(format!(
                    "DateStyle knows no {other:?}: ISO, SQL, Postgres or German, and MDY, DMY or YMD"
                ));
            }
        }
    }
    Ok((style, order.unwrap_or_default()))
}

fn interval_style(text: &str) -> Result<IntervalStyle, String> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "postgres" => IntervalStyle::Postgres,
        "postgres_verbose" => IntervalStyle::PostgresVerbose,
        "sql_standard" => IntervalStyle::SqlStandard,
        "iso_8601" => IntervalStyle::Iso8601,
        _ => {
            return Err(format!(
                "IntervalStyle knows no {text:?}: postgres, postgres_verbose, sql_standard or iso_8601"
            ));
        }
    })
}

fn bytea_output(text: &str) -> Result<ByteaOutput, String> {
    match text.to_ascii_lowercase().as_str() {
        "hex" => Ok(ByteaOutput::Hex),
        "escape" => Ok(ByteaOutput::Escape),
        _ => Err(format!("bytea_output knows no {text:?}: hex or escape")),
    }
}

/// Types in a type whose values are names of objects.
fn named_types(ty: &TypeInfo) -> Vec<Oid> {
    const ACLITEM: Oid = 1033;
    const ROLE: Oid = 4096;
    let (mut open, mut found) = (vec![ty], Vec::new());
    while let Some(ty) = open.pop() {
        match &ty.kind {
            TypeKind::Base => match ty.oid {
                ACLITEM => found.push(ROLE),
                24 | 2202..=2206 | 3734 | 3769 | 4089 | ROLE | 4191 => found.push(ty.oid),
                _ => {}
            },
            TypeKind::Domain(inner)
            | TypeKind::Array(inner)
            | TypeKind::Range(inner)
            | TypeKind::Multirange(inner) => open.push(inner),
            TypeKind::Composite(fields) => open.extend(fields.iter().map(|field| &*field.ty)),
            TypeKind::Enum(_) | TypeKind::Bytes | TypeKind::Unknown => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_they_mean_to_the_server() {
        let known = |text| date_style(text).expect("known");
        assert_eq!(known("ISO"), (DateStyle::Iso, DateOrder::MonthFirst));
        assert_eq!(known("sql, dmy"), (DateStyle::Sql, DateOrder::DayFirst));
        assert_eq!(known("German"), (DateStyle::German, DateOrder::DayFirst));
        assert_eq!(
            known("MDY, German"),
            (DateStyle::German, DateOrder::MonthFirst)
        );
        assert!(date_style("julian").is_err());
        assert!(interval_style("verbose").is_err());
        assert!(bytea_output("octal").is_err());
    }
}
