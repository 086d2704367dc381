//! Time zones: what a clock on the wall shows at a moment, from the files of the time zone database
//! or from a rule.
//!
//! ```text
//! TZif   header (44 bytes: magic, version, six counts), block of version 1 with times of 32 bits,
//!        header, block with times of 64 bits, then a line feed, a rule for all later times, a line feed
//! rule   EST5EDT,M3.2.0,M11.1.0: names and hours west of Greenwich, when summer time begins and ends
//! ```
//!
//! Truth: RFC 8536; `src/timezone/localtime.c`, which extends the file's times by its rule as it is
//! done here.

use std::borrow::Cow;

use super::zone_rule::Rule;

const HEADER_BYTES: usize = 44;
const KIND_BYTES: usize = 6;

/// What clocks show for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LocalTimeType {
    /// Seconds east of Greenwich.
    pub(super) east: i32,
    pub(super) is_summer: bool,
    pub(super) abbreviation: Cow<'static, str>,
}

/// A time zone: its offsets from UTC at every moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Moments in seconds since 1970, rising, each with what holds from then on.
    changes: Vec<(i64, usize)>,
    kinds: Cow<'static, [LocalTimeType]>,
    /// What holds before the first change.
    first: usize,
    /// What holds from the last change on.
    rule: Option<Rule>,
}

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Zone = Zone {
        changes: Vec::new(),
        kinds: Cow::Borrowed(
            const {
                &[LocalTimeType {
                    east: 0,
                    is_summer: false,
                    abbreviation: Cow::Borrowed("UTC"),
                }]
            },
        ),
        first: 0,
        rule: None,
    };

    /// From the text of a rule, as `<+03>-3` or `CET-1CEST,M3.5.0,M10.5.0/3`.
    pub fn of_rule(text: &str) -> Option<Zone> {
        let rule = Rule::parse(text)?;
        Some(Zone {
            changes: Vec::new(),
            kinds: Cow::Owned(vec![rule.standard.clone()]),
            first: 0,
            rule: Some(rule),
        })
    }

    /// From the bytes of a file of the time zone database.
    pub fn of_file(bytes: &[u8]) -> Option<Zone> {
        let first = Counts::parse(bytes)?;
        if first.version < b'2' {
            return zone(bytes.get(HEADER_BYTES..)?, &first, 4, None);
        }
        let second = bytes.get(HEADER_BYTES..)?.get(first.block_bytes(4)?..)?;
        let counts = Counts::parse(second)?;
        let block = second.get(HEADER_BYTES..)?;
        let footer = block.get(counts.block_bytes(8)?..)?;
        let footer = footer.strip_prefix(b"\n")?.split(|byte| *byte == b'\n');
        let rule = footer.into_iter().next().unwrap_or_default();
        zone(block, &counts, 8, std::str::from_utf8(rule).ok())
    }

    /// Seconds east of Greenwich, and the abbreviation, at a moment in seconds since 1970.
    pub fn at(&self, moment: i64) -> (i32, &str) {
        let later = self.changes.partition_point(|(from, _)| *from <= moment);
        let rule = self.rule.as_ref().filter(|_| later == self.changes.len());
        let kind = match (rule, later.checked_sub(1)) {
            (Some(rule), _) => Some(rule.at(moment)),
            (None, Some(last)) => {
                let change = self.changes.get(last);
                change.and_then(|(_, kind)| self.kinds.get(*kind))
            }
            (None, None) => self.kinds.get(self.first),
        };
        kind.map_or((0, "UTC"), |kind| (kind.east, &kind.abbreviation))
    }
}

struct Counts {
    version: u8,
    universal: usize,
    standard: usize,
    leaps: usize,
    times: usize,
    kinds: usize,
    letters: usize,
}

impl Counts {
    fn parse(bytes: &[u8]) -> Option<Counts> {
        let header = bytes.get(..HEADER_BYTES)?;
        if !header.starts_with(b"TZif") {
            return None;
        }
        let count = |number: usize| usize::try_from(word(header.get(20 + 4 * number..)?)?).ok();
        Some(Counts {
            version: *header.get(4)?,
            universal: count(0)?,
            standard: count(1)?,
            leaps: count(2)?,
            times: count(3)?,
            kinds: count(4)?,
            letters: count(5)?,
        })
    }

    /// The length of a block whose times have so many bytes.
    fn block_bytes(&self, width: usize) -> Option<usize> {
        let leaps = self.leaps.checked_mul(width + 4)?;
        let kinds = self.kinds.checked_mul(KIND_BYTES)?;
        let times = self.times.checked_mul(width + 1)?;
        let others = [kinds, self.letters, leaps, self.standard, self.universal];
        others.into_iter().try_fold(times, usize::checked_add)
    }
}

fn word(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_be_bytes(*bytes.first_chunk()?))
}

fn time(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        4 => word(bytes).map(i64::from),
        _ => Some(i64::from_be_bytes(*bytes.first_chunk()?)),
    }
}

fn zone(block: &[u8], counts: &Counts, width: usize, rule: Option<&str>) -> Option<Zone> {
    let (times, rest) = block.split_at_checked(counts.times.checked_mul(width)?)?;
    let (numbers, rest) = rest.split_at_checked(counts.times)?;
    let (raw, rest) = rest.split_at_checked(counts.kinds.checked_mul(KIND_BYTES)?)?;
    let letters = rest.get(..counts.letters)?;
    let kinds: Option<Vec<LocalTimeType>> = raw
        .chunks_exact(KIND_BYTES)
        .map(|raw| kind(raw, letters))
        .collect();
    let kinds = kinds.filter(|kinds| !kinds.is_empty())?;
    let mut changes = Vec::with_capacity(counts.times);
    for (at, number) in times.chunks_exact(width).zip(numbers) {
        let number = usize::from(*number);
        kinds.get(number)?;
        changes.push((time(at)?, number));
    }
    if !changes.is_sorted_by_key(|(from, _)| *from) {
        return None;
    }
    let rule = match rule {
        None | Some("") => None,
        Some(text) => Some(Rule::parse(text)?),
    };
    Some(Zone {
        first: first(&kinds, &changes),
        changes,
        kinds: Cow::Owned(kinds),
        rule,
    })
}

fn kind(raw: &[u8], letters: &[u8]) -> Option<LocalTimeType> {
    let [_, _, _, _, is_summer, at] = *raw.first_chunk()?;
    let name = letters.get(usize::from(at)..)?;
    let name = name.split(|byte| *byte == 0).next()?;
    Some(LocalTimeType {
        east: word(raw)?,
        is_summer: is_summer != 0,
        abbreviation: Cow::Owned(String::from_utf8(name.to_vec()).ok()?),
    })
}

/// What held before the first change: the first kind where no change leads to it, else the standard
/// time before the first summer time, else any standard time.
fn first(kinds: &[LocalTimeType], changes: &[(i64, usize)]) -> usize {
    if changes.iter().all(|(_, kind)| *kind != 0) {
        return 0;
    }
    let is_standard = |kind: &LocalTimeType| !kind.is_summer;
    let to = changes.first().map_or(0, |(_, kind)| *kind);
    let before = match kinds.get(to) {
        Some(kind) if kind.is_summer => kinds.get(..to).unwrap_or_default(),
        _ => &[],
    };
    let found = before.iter().rposition(is_standard);
    found
        .or_else(|| kinds.iter().position(is_standard))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One change in 1900 from LMT to CET, and a rule.
    fn file() -> Vec<u8> {
        let counts = |version: u8, counts: [u32; 6]| {
            let mut header = b"TZif".to_vec();
            header.push(version);
            header.extend([0; 15]);
            header.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
            header
        };
        let mut bytes = counts(b'2', [0, 0, 0, 0, 1, 1]);
        bytes.extend([0; 6]);
        bytes.extend([0]);
        bytes.extend(counts(b'2', [0, 0, 0, 1, 2, 8]));
        bytes.extend((-2_208_988_800_i64).to_be_bytes());
        bytes.push(1);
        for (east, at) in [(3208_i32, 0), (3600, 4)] {
            bytes.extend(east.to_be_bytes());
            bytes.extend([0, at]);
        }
        bytes.extend(b"LMT\0CET\0");
        bytes.extend(b"\nCET-1CEST,M3.5.0,M10.5.0/3\n");
        bytes
    }

    #[test]
    fn a_file_tells_the_past_and_its_rule_the_rest() {
        let zone = Zone::of_file(&file()).expect("a zone");
        assert_eq!(zone.at(-2_208_988_801), (3208, "LMT"));
        // From the last change on the rule holds.
        assert_eq!(zone.at(1_700_000_000), (3600, "CET"));
        assert_eq!(zone.at(1_720_000_000), (7200, "CEST"));
    }

    #[test]
    fn no_bytes_are_trusted() {
        let file = file();
        for end in 0..file.len() - 28 {
            assert_eq!(Zone::of_file(file.get(..end).expect("shorter")), None);
        }
        let mut lying = file;
        lying.splice(32..36, [0xFF; 4]);
        assert_eq!(Zone::of_file(&lying), None);
    }

    #[test]
    fn universal_time_has_no_changes() {
        assert_eq!(Zone::UTC.at(i64::MIN), (0, "UTC"));
        assert_eq!(Zone::UTC.at(i64::MAX), (0, "UTC"));
    }
}
