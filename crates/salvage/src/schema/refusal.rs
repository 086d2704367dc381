//! Why something is not written: it stands in the file as a comment, and in the account.

use std::fmt;

/// What cannot be written, and why, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) String);

/// Written, or not and why.
pub(crate) type Written<T = ()> = Result<T, Refusal>;

impl Refusal {
    /// `what` is not in the catalogs.
    pub(crate) fn absent(what: &str, oid: u32) -> Self {
        Refusal(format!("{what} {oid} is not in the catalogs"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
