//! What a figure is of: a few pairs of name and value.
//!
//! Fifty servers have tens of thousands of figures at once, and a node of a tree takes half a
//! kilobyte however few pairs it holds.

use std::collections::BTreeMap;
use std::ops::Index;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Pairs of name and value in the order of names; each name once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Labels(Box<[(String, String)]>);

impl Labels {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&String> {
        let own = self.0.iter().find(|(own, _)| own == name);
        own.map(|(_, value)| value)
    }

    /// All pairs, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// All names, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|(name, _)| name)
    }

    /// All values, in the order of names.
    pub fn values(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same with one more pair, which takes the place of one of the same name.
    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        let more = (name.to_owned(), value.to_owned());
        self.0.into_iter().chain([more]).collect()
    }

    /// Those of these names.
    #[must_use]
    pub fn only(&self, names: &[String]) -> Self {
        let own = self.0.iter().filter(|(name, _)| names.contains(name));
        Self(own.cloned().collect())
    }
}

impl Index<&str> for Labels {
    type Output = String;

    /// # Panics
    /// Where there is no such name.
    fn index(&self, name: &str) -> &String {
        let value = self.get(name);
        value.unwrap_or_else(|| panic!("there is no label {name}"))
    }
}

impl FromIterator<(String, String)> for Labels {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        // Of two with one name the last one counts, as in a map.
        let unique: BTreeMap<String, String> = pairs.into_iter().collect();
        Self(unique.into_iter().collect())
    }
}

impl<const LEN: usize> From<[(String, String); LEN]> for Labels {
    fn from(pairs: [(String, String); LEN]) -> Self {
        pairs.into_iter().collect()
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs = BTreeMap::<String, String>::deserialize(deserializer)?;
        Ok(pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(own: &[(&str, &str)]) -> Labels {
        let own = own.iter();
        own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn pairs_are_sorted_and_each_name_is_there_once() {
        let labels = pairs(&[("server", "s"), ("database", "a"), ("server", "t")]);
        assert_eq!(labels, pairs(&[("database", "a"), ("server", "t")]));
        assert_eq!(labels["server"], "t");
        let database = labels.only(&["database".to_owned()]);
        assert_eq!(database, pairs(&[("database", "a")]));
        assert_eq!(database.with("server", "t"), labels);
        let json = serde_json::to_string(&labels).expect("JSON");
        assert_eq!(json, r#"{"database":"a","server":"t"}"#);
        let read: Labels = serde_json::from_str(&json).expect("labels");
        assert_eq!(read, labels);
    }
}
