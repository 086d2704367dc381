//! What a document holds of the data of those whose cluster it is about, for whoever sends it on.

use serde::{Deserialize, Serialize};

/// What stands in a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Contents {
    /// Names of databases, relations, columns, hosts and directories.
    pub names: bool,
    /// Values or keys of rows, or what a server quotes of them.
    pub values: bool,
    /// Bytes of pages.
    pub pages: bool,
    /// Pseudonyms stand where names and values were.
    pub redacted: bool,
}

impl Contents {
    /// `names, no values of rows, no pages`.
    pub fn words(self) -> String {
        let of = |is_there, what: &str| {
            if is_there {
                what.to_owned()
            } else {
                format!("no {what}")
            }
        };
        let names = if self.redacted {
            "pseudonyms for names".to_owned()
        } else {
            of(self.names, "names")
        };
        let values = of(self.values, "values of rows");
        format!("{names}, {values}, {}", of(self.pages, "pages"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_said_too() {
        let named = Contents {
            names: true,
            pages: true,
            ..Contents::default()
        };
        assert_eq!(named.words(), "names, no values of rows, pages");
        let redacted = Contents {
            redacted: true,
            ..Contents::default()
        };
        let words = "pseudonyms for names, no values of rows, no pages";
        assert_eq!(redacted.words(), words);
    }
}
