//! Minor releases of one major: `15.0..15.20`.

use std::fmt;

/// From a minor to a later one, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinorRange {
    /// 13 to 18.
    pub major: u16,
    /// The first minor.
    pub first: u16,
    /// The last one, which is later.
    pub last: u16,
}

impl MinorRange {
    /// Reads `15.0..15.20`.
    ///
    /// # Errors
    /// A sentence that says how it is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no range of minor releases; write 15.0..15.20");
        let (first, last) = text.split_once("..").ok_or_else(wrong)?;
        let version = |text: &str| {
            let (major, minor) = text.trim().split_once('.')?;
            Some((major.parse::<u16>().ok()?, minor.parse::<u16>().ok()?))
        };
        let (major, first) = version(first).ok_or_else(wrong)?;
        let (other, last) = version(last).ok_or_else(wrong)?;
        if major != other {
            return Err(format!(
                "{text:?} has releases of two majors; a bisection stays within one"
            ));
        }
        if first >= last {
            return Err(format!(
                "{text:?} does not go from a release to a later one"
            ));
        }
        Ok(Self { major, first, last })
    }

    /// `15.7`.
    pub fn version(&self, minor: u16) -> String {
        format!("{}.{minor}", self.major)
    }
}

impl fmt::Display for MinorRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.version(self.first), self.version(self.last));
        write!(f, "{first}..{last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_stays_within_a_major_and_goes_forward() {
        let range = MinorRange::parse("15.0..15.20").expect("a range");
        assert_eq!(range.to_string(), "15.0..15.20");
        assert_eq!(range.version(7), "15.7");
        for wrong in [
            "15",
            "15..16",
            "15.3..14.9",
            "15.6..15.5",
            "15.6..15.6",
            "a.b..c.d",
        ] {
            assert!(MinorRange::parse(wrong).is_err(), "{wrong}");
        }
    }
}
