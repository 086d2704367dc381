//! `pgclinic.inspect/1`: one page taken apart.

use serde::{Deserialize, Serialize};

use super::{Coverage, Finding, Level, Place, Target, Tool};

/// A named range of bytes with its value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Field {
    /// PostgreSQL's own name.
    pub name: String,
    /// Half-open offsets in the page.
    pub bytes: [u64; 2],
    /// The value as a person reads it.
    pub value: String,
    /// Flags by name, or what the value means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meaning: Vec<String>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// One value of a tuple.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ValueAnatomy {
    /// `attnum`, from 1.
    pub number: u16,
    /// `attname`.
    pub name: Option<String>,
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// The column was dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
    /// Half-open offsets in the page; absent for null and missing values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<[u64; 2]>,
    /// `value`, `null`, `missing`, `external`, `compressed`, `undecodable`.
    pub state: String,
    /// The text the server would print; null when there is none.
    pub value: Option<String>,
    /// More: the TOAST pointer, why it does not decode, that the text was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One line pointer and what it names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ItemAnatomy {
    /// Line pointer number, from 1.
    pub item: u16,
    /// Offset of the line pointer on the page.
    pub at: u64,
    /// `lp_off`.
    pub lp_off: u16,
    /// `LP_NORMAL` and so on.
    pub lp_flags: String,
    /// `lp_len`.
    pub lp_len: u16,
    /// What is wrong with the line pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Tuple header or index tuple header.
    pub header: Vec<Field>,
    /// What became of the row, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Values by column.
    pub values: Vec<ValueAnatomy>,
}

/// A label for a range of the hex dump.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HexRange {
    /// Half-open offsets in the page.
    pub bytes: [u64; 2],
    /// `pd_lower`, `line pointer 3`, `tuple 3: t_xmin`.
    pub label: String,
    /// `header`, `line-pointer`, `tuple-header`, `tuple-data`, `special`, `free`: for colours.
    pub part: String,
}

/// The page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PageAnatomy {
    /// `heap`, `btree`, `sequence`, `fsm`, `vm`, …, `new`.
    pub page_kind: String,
    /// Header fields.
    pub header: Vec<Field>,
    /// `right`, `wrong`, `off`, `none`.
    pub checksum: String,
    /// The checksum these bytes should carry.
    pub checksum_computed: u16,
    /// Line pointers with their items.
    pub items: Vec<ItemAnatomy>,
    /// Special space, or a map's bits.
    pub special: Vec<Field>,
    /// Labels for the hex dump, in order, covering the page.
    pub ranges: Vec<HexRange>,
    /// The bytes, in base64.
    pub page: String,
}

/// The whole document.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InspectDocument {
    /// `pgclinic.inspect/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// What was looked at.
    pub target: Target,
    /// Level of the checks that ran over the page.
    pub level: Level,
    /// The ledger: one page.
    pub coverage: Coverage,
    /// Which page.
    pub place: Place,
    /// Blocks in the fork.
    pub blocks: u64,
    /// The page taken apart.
    pub anatomy: PageAnatomy,
    /// What the checks say about it.
    pub findings: Vec<Finding>,
    /// Seconds it took.
    pub elapsed_s: f64,
}
