//! Day numbers and the Gregorian calendar.

/// Days from 1970-01-01, where Unix counts from, to 2000-01-01, where PostgreSQL does.
pub const DAYS_FROM_1970_TO_2000: i64 = 10_957;

/// A day of the Gregorian calendar; year 0 is 1 BC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Civil {
    /// Year, astronomically counted.
    pub year: i64,
    /// Month from 1.
    pub month: i64,
    /// Day of the month from 1.
    pub day: i64,
}

/// The calendar day of a day number since 2000-01-01, by counting from March in eras of 400 years.
pub fn civil(day: i64) -> Civil {
    const ERA_DAYS: i64 = 146_097;
    // 2000-03-01 begins an era.
    let since = day.saturating_sub(60);
    let in_era = since.rem_euclid(ERA_DAYS);
    let year_in_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / (ERA_DAYS - 1)) / 365;
    let in_year = in_era - (365 * year_in_era + year_in_era / 4 - year_in_era / 100);
    let march_month = (5 * in_year + 2) / 153;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = 2000 + since.div_euclid(ERA_DAYS) * 400 + year_in_era + i64::from(month <= 2);
    Civil {
        year,
        month,
        day: in_year - (153 * march_month + 2) / 5 + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        let date = |day| {
            let Civil { year, month, day } = civil(day);
            (year, month, day)
        };
        assert_eq!(date(-DAYS_FROM_1970_TO_2000), (1970, 1, 1));
        assert_eq!(date(0), (2000, 1, 1));
        assert_eq!(date(59), (2000, 2, 29));
        assert_eq!(date(60), (2000, 3, 1));
        assert_eq!(date(-2_451_545), (-4713, 11, 24));
    }

    #[test]
    fn no_day_number_is_too_far() {
        assert!(civil(i64::MIN).year < 0);
        assert!(civil(i64::MAX).year > 0);
    }
}
