//! The settings of a server that change how it prints values, each with the value that a salvage
//! has unless told otherwise.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::zone::Zone;

/// `DateStyle`, its first word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateStyle {
    /// `2001-02-16 20:38:40+00`
    #[default]
    Iso,
    /// `02/16/2001 20:38:40 UTC`
    Sql,
    /// `Fri Feb 16 20:38:40 2001 UTC`
    Postgres,
    /// `16.02.2001 20:38:40 UTC`
    German,
}

/// `DateStyle`, its second word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateOrder {
    /// The month stands before the day; `YMD` prints so too.
    #[default]
    MonthFirst,
    /// The day stands before the month.
    DayFirst,
}

/// `IntervalStyle`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IntervalStyle {
    /// `1 year 2 mons 3 days 04:05:06`
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`
    PostgresVerbose,
    /// `+1-2 +3 +4:05:06`
    SqlStandard,
    /// `P1Y2M3DT4H5M6S`
    Iso8601,
}

/// `bytea_output`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ByteaOutput {
    /// `\x00ff`
    #[default]
    Hex,
    /// `\000\377`
    Escape,
}

/// Where a locale puts the currency and the sign of an amount, as `localeconv` gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MoneySigns {
    /// `cs_precedes`
    pub symbol_first: bool,
    /// `sep_by_space`
    pub space: u8,
    /// `sign_posn`
    pub position: u8,
}

/// What `lc_monetary` names, with what the server takes where a locale has nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MoneyFormat {
    /// Digits behind the decimal point.
    pub places: u8,
    /// The decimal point.
    pub point: u8,
    /// Between groups of digits.
    pub separator: Cow<'static, [u8]>,
    /// Digits in a group.
    pub group: u8,
    /// The currency.
    pub symbol: Cow<'static, [u8]>,
    /// What stands for plus.
    pub plus: Cow<'static, [u8]>,
    /// What stands for minus.
    pub minus: Cow<'static, [u8]>,
    /// Of amounts that are not negative.
    pub positive: MoneySigns,
    /// Of negative amounts.
    pub negative: MoneySigns,
}

impl MoneyFormat {
    /// The locale `C`.
    pub const C: MoneyFormat = {
        let signs = MoneySigns {
            symbol_first: true,
            space: u8::MAX,
            position: u8::MAX,
        };
        MoneyFormat {
            places: 2,
            point: b'.',
            separator: Cow::Borrowed(b","),
            group: 3,
            symbol: Cow::Borrowed(b"$"),
            plus: Cow::Borrowed(b""),
            minus: Cow::Borrowed(b"-"),
            positive: signs,
            negative: signs,
        }
    };
}

/// The names that values stand for which hold the OID of an object: by the OID of their type
/// (`regclass`, …), then of the object. Roles, also those of an `aclitem`, stand under `regrole`.
/// An object without a name is printed as its number.
pub type ObjectNames = BTreeMap<u32, HashMap<u32, Vec<u8>>>;

/// How values are printed, by the settings of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Style {
    /// `DateStyle`.
    pub dates: DateStyle,
    /// `DateStyle`.
    pub order: DateOrder,
    /// `IntervalStyle`.
    pub intervals: IntervalStyle,
    /// `bytea_output`.
    pub bytea: ByteaOutput,
    /// `extra_float_digits`, -15 to 3.
    pub extra_float_digits: i8,
    /// `TimeZone`.
    pub zone: Zone,
    /// `lc_monetary`.
    pub money: MoneyFormat,
    /// Names from the catalogs.
    pub names: ObjectNames,
}

impl Style {
    /// `DateStyle` ISO, `IntervalStyle` postgres, `TimeZone` UTC, `bytea_output` hex,
    /// `extra_float_digits` 1, `lc_monetary` C, and no names.
    pub const PLAIN: Style = Style {
        dates: DateStyle::Iso,
        order: DateOrder::MonthFirst,
        intervals: IntervalStyle::Postgres,
        bytea: ByteaOutput::Hex,
        extra_float_digits: 1,
        zone: Zone::UTC,
        money: MoneyFormat::C,
        names: BTreeMap::new(),
    };

    /// Dates and times are printed as in [`Style::PLAIN`].
    pub(super) fn has_plain_dates(&self) -> bool {
        self.dates == DateStyle::Iso && self.zone == Zone::UTC
    }
}

impl Default for Style {
    fn default() -> Self {
        Style::PLAIN
    }
}
