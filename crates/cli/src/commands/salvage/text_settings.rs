//! How values are printed: the options of `salvage`, with what of them lies on this machine.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use pgclinic_format::datum::{MoneyFormat, MoneySigns, Zone};
use pgclinic_salvage::{TextSettings, TextStyle};

use crate::exit::Failure;

/// Where systems keep the time zone database.
const ZONE_FOLDERS: [&str; 3] = [
    "/usr/share/zoneinfo",
    "/usr/lib/zoneinfo",
    "/usr/share/lib/zoneinfo",
];
/// The longest file of the database has a tenth of this.
const ZONE_BYTES_MAX: u64 = 1 << 16;

#[derive(Debug, Args)]
#[command(next_help_heading = "Text of values, as a server's settings of these names")]
pub(super) struct TextArgs {
    /// ISO, SQL, Postgres or German
    ///
    /// With DMY or MDY, as in 'SQL, DMY'.
    #[arg(long, value_name = "STYLE", default_value = "ISO")]
    date_style: String,
    /// Style of intervals
    ///
    /// postgres, postgres_verbose, sql_standard or iso_8601.
    #[arg(long, value_name = "STYLE", default_value = "postgres")]
    interval_style: String,
    /// Name, hours east, or POSIX rule
    ///
    /// A name of the time zone database, hours east of Greenwich, or a rule such as
    /// EST5EDT,M3.2.0,M11.1.0.
    #[arg(
        long,
        value_name = "ZONE",
        default_value = "UTC",
        allow_hyphen_values = true
    )]
    time_zone: String,
    /// hex or escape
    #[arg(long, value_name = "FORMAT", default_value = "hex")]
    bytea_output: String,
    /// -15 to 3
    ///
    /// From 1 on, floating-point numbers are the shortest that read back as the same.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_hyphen_values = true
    )]
    extra_float_digits: i8,
    /// Locale of this machine, for money
    #[arg(long, value_name = "LOCALE", default_value = "C")]
    lc_monetary: String,
    /// Schemas left out of names
    ///
    /// Separated by commas. Objects in them are named without their schema, in values of type
    /// regclass and its kin.
    #[arg(long, value_name = "SCHEMAS", default_value = "public")]
    search_path: String,
}

impl TextArgs {
    /// What the options mean.
    pub(super) fn style(&self) -> Result<TextStyle, Failure> {
        let schemas = self.search_path.split(',').map(str::trim);
        let settings = TextSettings {
            date_style: self.date_style.clone(),
            interval_style: self.interval_style.clone(),
            time_zone: self.time_zone.clone(),
            bytea_output: self.bytea_output.clone(),
            extra_float_digits: self.extra_float_digits,
            lc_monetary: self.lc_monetary.clone(),
            search_path: schemas
                .filter(|schema| !schema.is_empty())
                .map(|schema| schema.trim_matches('"').to_owned())
                .collect(),
        };
        let zone = zone(&self.time_zone)?;
        let money = money(&self.lc_monetary)?;
        TextStyle::new(settings, zone, money).map_err(Failure::new)
    }
}

fn zone(name: &str) -> Result<Zone, Failure> {
    if matches!(name.to_ascii_uppercase().as_str(), "UTC" | "ETC/UTC") {
        return Ok(Zone::UTC);
    }
    if let Some(hours) = name.parse::<f64>().ok().filter(|hours| hours.abs() < 168.0) {
        return fixed(hours).ok_or_else(|| unknown(name));
    }
    let found = ZONE_FOLDERS.iter().find_map(|folder| file_of(folder, name));
    if let Some(path) = found {
        let failed = |why: String| Failure::new(format!("{}: {why}", path.display()));
        let bytes = fs::read(&path).map_err(|error| failed(error.to_string()))?;
        return Zone::of_file(&bytes)
            .ok_or_else(|| failed("it is not a file of a time zone".into()));
    }
    Zone::of_rule(name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Failure {
    Failure::new(format!(
        "there is no time zone {name:?} in {}, and it is no rule",
        ZONE_FOLDERS.join(", ")
    ))
}

/// So many hours east of Greenwich, named as the server names it.
fn fixed(hours: f64) -> Option<Zone> {
    // Within a week.
    let seconds = (hours * 3600.0).round();
    let size = pgclinic_model::whole(seconds.abs());
    let mut shown = format!("{:02}", size / 3600);
    for part in [size / 60 % 60, size % 60] {
        if !size.is_multiple_of(3600) && (part != 0 || shown.len() == 2) {
            shown.push_str(&format!(":{part:02}"));
        }
    }
    // A rule counts west of Greenwich.
    let (east, west) = if seconds > 0.0 {
        ('+', '-')
    } else {
        ('-', '+')
    };
    Zone::of_rule(&format!("<{east}{shown}>{west}{shown}"))
}

/// The file of a zone; capital letters do not count, as in the server.
fn file_of(folder: &str, name: &str) -> Option<PathBuf> {
    let mut path = PathBuf::from(folder);
    for part in name.split('/') {
        if part.is_empty() || part.starts_with('.') {
            return None;
        }
        path = match path.join(part) {
            exact if exact.exists() => exact,
            _ => entry_like(&path, part)?,
        };
    }
    let found = fs::metadata(&path).ok()?;
    (found.is_file() && found.len() <= ZONE_BYTES_MAX).then_some(path)
}

fn entry_like(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let is_like = |path: &PathBuf| {
        let own = path.file_name().and_then(|own| own.to_str());
        own.is_some_and(|own| own.eq_ignore_ascii_case(name))
    };
    entries.flatten().map(|entry| entry.path()).find(is_like)
}

/// What the locale says of money, asked of the program `locale` that every system with more than
/// one locale has.
fn money(locale: &str) -> Result<MoneyFormat, Failure> {
    if matches!(locale, "C" | "POSIX") {
        return Ok(MoneyFormat::C);
    }
    let mut command = Command::new("locale");
    command.args(["-k", "LC_MONETARY"]).stdin(Stdio::null());
    let answer = command.env("LC_ALL", locale).output();
    let unknown = || Failure::new(format!("this machine has no locale {locale:?}"));
    let answer = answer.map_err(|error| Failure::new(format!("cannot run locale: {error}")))?;
    if !answer.status.success() || !answer.stderr.is_empty() {
        return Err(unknown());
    }
    let text = String::from_utf8(answer.stdout).map_err(|_| {
        Failure::new(format!(
            "locale {locale:?} is not one of UTF-8: name that one"
        ))
    })?;
    Ok(money_in(&text))
}

/// From lines such as `mon_decimal_point=","`; truth: `cash_out` in `cash.c` for what stands where
/// a locale has nothing.
fn money_in(text: &str) -> MoneyFormat {
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(own, _)| *own == key);
        found.map_or("", |(_, value)| value.trim_matches('"'))
    };
    let number = |key: &str| {
        let first = value(key).split(';').next().unwrap_or_default();
        first.parse::<u8>().unwrap_or(u8::MAX)
    };
    let point = match *value("mon_decimal_point").as_bytes() {
        [point] => point,
        _ => b'.',
    };
    let otherwise = |key: &str, usual: &'static str| match value(key) {
        "" => Cow::Borrowed(usual.as_bytes()),
        text => Cow::Owned(text.as_bytes().to_vec()),
    };
    let signs = |side: char| MoneySigns {
        symbol_first: number(&format!("{side}_cs_precedes")) != 0,
        space: number(&format!("{side}_sep_by_space")),
        position: number(&format!("{side}_sign_posn")),
    };
    MoneyFormat {
        places: match number("frac_digits") {
            places @ 0..=10 => places,
            _ => 2,
        },
        point,
        separator: otherwise("mon_thousands_sep", if point == b',' { "." } else { "," }),
        group: match number("mon_grouping") {
            group @ 1..=6 => group,
            _ => 3,
        },
        symbol: otherwise("currency_symbol", "$"),
        plus: otherwise("positive_sign", ""),
        minus: otherwise("negative_sign", "-"),
        positive: signs('p'),
        negative: signs('n'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_that_says_nothing_is_that_of_c() {
        let silent = "currency_symbol=\"\"\nmon_decimal_point=\"\"\nmon_grouping=-1\nfrac_digits=-1\np_cs_precedes=-1\n";
        assert_eq!(money_in(silent), MoneyFormat::C);
    }

    #[test]
    fn a_locale_says_where_its_signs_stand() {
        let german = "currency_symbol=\"€\"\nmon_decimal_point=\",\"\nmon_thousands_sep=\".\"\nmon_grouping=3;3\n\
            positive_sign=\"\"\nnegative_sign=\"-\"\nfrac_digits=2\np_cs_precedes=0\np_sep_by_space=1\n\
            n_cs_precedes=0\nn_sep_by_space=1\np_sign_posn=1\nn_sign_posn=1\n";
        let format = money_in(german);
        let signs = MoneySigns {
            symbol_first: false,
            space: 1,
            position: 1,
        };
        assert_eq!((format.point, format.negative), (b',', signs));
        assert_eq!(format.symbol.as_ref(), "€".as_bytes());
    }

    #[test]
    fn zones_have_names_hours_or_rules() {
        let at = |name: &str| {
            let zone = zone(name).unwrap_or_else(|_| panic!("{name}"));
            let (east, name) = zone.at(0);
            (east, name.to_owned())
        };
        assert_eq!(at("utc"), (0, "UTC".into()));
        assert_eq!(at("5.5"), (19_800, "+05:30".into()));
        assert_eq!(at("-7"), (-25_200, "-07".into()));
        assert_eq!(at("<+03>-3"), (10_800, "+03".into()));
        assert!(zone("../../etc/passwd").is_err());
        assert!(zone("Nowhere/Atall").is_err());
    }
}
