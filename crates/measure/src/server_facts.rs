//! What is known of a cluster's server beside its files: who asks for a measurement fills it in.

use std::collections::BTreeMap;

use pgclinic_cluster::Cluster;

/// Nothing of it is known unless somebody says so.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ServerFacts {
    /// Its version with the minor release, `15.6`.
    pub version: Option<String>,
    /// Its settings, by name; what it was asked for and lacks is not among them.
    pub settings: Option<BTreeMap<String, String>>,
    /// It was compiled with LZ4.
    pub lz4: Option<bool>,
    /// It was compiled with io_uring.
    pub io_uring: Option<bool>,
    /// Why the kernel that it runs on refuses io_uring.
    pub io_uring_forbidden: Option<String>,
}

impl ServerFacts {
    /// A setting in lower case: as the server has it, else as its files say, else by its default;
    /// nothing where files that may set it are not at hand.
    pub fn setting(&self, cluster: &Cluster, name: &str, default: &str) -> Option<String> {
        if let Some(settings) = &self.settings {
            return settings.get(name).map(|value| value.to_ascii_lowercase());
        }
        let of_files = cluster.setting(name);
        of_files.or_else(|| cluster.has_all_settings().then(|| default.to_owned()))
    }

    /// Major and minor.
    pub fn release(&self) -> Option<(u16, u16)> {
        let (major, minor) = self.version.as_ref()?.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }
}
