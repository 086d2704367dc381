//! Live signs on one screen of a terminal: a line for each family, and a family's signs behind a
//! digit.

use pgclinic_model::document::{
    SettingAdvice, SignKind, SignState, SignValue, WatchDocument, WatchedSign, WatchedTarget,
};

use crate::watched::{extent, figure, headline, standing_out, state};
use crate::words::clean;

/// Figures of a family in its line.
const FIGURES: usize = 3;
/// What texts are wrapped at.
const COLUMNS: usize = 80;
/// The sign that has settings instead of figures.
const SETTINGS: &str = "settings-advised";
/// Points of a line of blocks.
const SPARK: usize = 12;

/// What somebody pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScreenKey {
    /// A digit: a family.
    Digit(u8),
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow: the server before.
    Left,
    /// An arrow: the next server.
    Right,
    /// Back to the overview.
    Back,
}

/// Which part of a document is seen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WatchScreen {
    server: usize,
    family: Option<usize>,
    line: usize,
}

impl WatchScreen {
    /// Does what a key asks for.
    pub fn press(&mut self, key: ScreenKey, document: &WatchDocument) {
        let servers = document.targets.len().max(1);
        match key {
            ScreenKey::Digit(digit) => {
                // The tenth family stands under the zero.
                self.family = Some((usize::from(digit) + 9) % 10);
                self.line = 0;
            }
            ScreenKey::Up => self.line = self.line.saturating_sub(1),
            ScreenKey::Down => self.line += 1,
            ScreenKey::Left => self.server = (self.server + servers - 1) % servers,
            ScreenKey::Right => self.server = (self.server + 1) % servers,
            ScreenKey::Back => self.family = None,
        }
        let signs = self.signs(document).len();
        self.line = self.line.min(signs.saturating_sub(1));
    }

    fn target<'a>(&self, document: &'a WatchDocument) -> Option<&'a WatchedTarget> {
        document
            .targets
            .get(self.server)
            .or(document.targets.first())
    }

    /// The signs of the family that was chosen.
    fn signs<'a>(&self, document: &'a WatchDocument) -> Vec<&'a WatchedSign> {
        let (Some(at), Some(target)) = (self.family, self.target(document)) else {
            return Vec::new();
        };
        let families = families(target);
        let own = families.into_iter().nth(at);
        own.map(|(_, signs)| signs).unwrap_or_default()
    }

    /// So many lines of so many columns at most, everything escaped.
    pub fn lines(&self, document: &WatchDocument, columns: usize, rows: usize) -> Vec<String> {
        let mut lines = vec![format!("{}  {}", state(document.state()), extent(document))];
        let Some(target) = self.target(document) else {
            return lines;
        };
        let place = match document.targets.len() {
            1 => String::new(),
            all => format!("{}/{all} ", self.server + 1),
        };
        let version = target.server_version.as_deref().unwrap_or("?");
        lines.push(format!(
            "{place}{}  PostgreSQL {version}",
            target.target.spec
        ));
        lines.push(String::new());
        let room = rows.saturating_sub(lines.len() + 1);
        let mut own = match (&target.unreachable, self.family) {
            (Some(why), _) => vec![format!("it gives no answer: {why}")],
            (None, None) => overview(target),
            (None, Some(_)) => self.detail(document, room),
        };
        own.truncate(room);
        own.resize(room, String::new());
        lines.append(&mut own);
        lines.push(self.keys(document));
        lines.iter().map(|line| fitted(line, columns)).collect()
    }

    fn keys(&self, document: &WatchDocument) -> String {
        let servers = if document.targets.len() > 1 {
            "  ←→ server"
        } else {
            ""
        };
        match self.family {
            None => format!("1-9 0 a family's signs{servers}  q quit"),
            Some(_) => format!("↑↓ sign  1-9 0 family  Esc back{servers}  q quit"),
        }
    }

    /// The signs of a family, and what the chosen one means.
    fn detail(&self, document: &WatchDocument, room: usize) -> Vec<String> {
        let signs = self.signs(document);
        let Some(own) = signs.get(self.line) else {
            return vec!["there is no such family".to_owned()];
        };
        let mut below = vec![String::new()];
        below.extend(meaning(own));
        let shown = room.saturating_sub(below.len()).max(1);
        let first = (self.line + 1).saturating_sub(shown);
        let rows = signs.iter().enumerate().skip(first).take(shown);
        let mut lines: Vec<String> = rows
            .map(|(at, own)| {
                let mark = if at == self.line { '>' } else { ' ' };
                format!(
                    "{mark} {:<26} {:>16}  {}",
                    own.name,
                    headline(own),
                    beside(own)
                )
            })
            .collect();
        // What the chosen one is made of stands where the list leaves room.
        let left = shown.saturating_sub(lines.len() + 1);
        let made_of = self.made_of(own, document);
        if left > 0 && !made_of.is_empty() {
            lines.push(String::new());
            lines.extend(fitting(made_of, left));
        }
        lines.resize(shown, String::new());
        lines.append(&mut below);
        lines
    }

    /// The figures of a sign; of the settings those that differ, with reason and experiment.
    fn made_of(&self, own: &WatchedSign, document: &WatchDocument) -> Vec<String> {
        let target = self.target(document);
        let advice = target.map_or(&[][..], |target| target.advice.as_slice());
        if own.name == SETTINGS && !advice.is_empty() {
            return advice.iter().flat_map(advised).collect();
        }
        let has_parts = own.values.len() > 1;
        let parts = has_parts.then(|| parts(own));
        parts.into_iter().flatten().collect()
    }
}

/// What a sign is, and what settles it.
fn meaning(own: &WatchedSign) -> Vec<String> {
    let words = [
        ("what     ", &own.summary),
        ("normal   ", &own.normal),
        ("meaning  ", &own.meaning),
        ("settled  ", &own.settled_by),
    ];
    let lines = words.into_iter();
    lines
        .flat_map(|(label, text)| wrapped(label, text, COLUMNS))
        .collect()
}

/// A setting in a line, and why in the next ones.
fn advised(own: &SettingAdvice) -> Vec<String> {
    let wanted = if own.advice.is_empty() {
        String::new()
    } else {
        format!(" -> {}", own.advice)
    };
    let head = format!("{} {}{wanted}", own.setting, own.value);
    let why = format!("{} ({})", own.reason, own.settled_by);
    let mut lines = wrapped("  ", &head, COLUMNS);
    lines.extend(wrapped("      ", &why, COLUMNS));
    lines
}

/// The first lines that fit, and how many do not.
fn fitting(mut lines: Vec<String>, room: usize) -> Vec<String> {
    if lines.len() > room {
        lines.truncate(room.saturating_sub(1));
        lines.push("    ... the rest is in --once and on the page of --listen".to_owned());
    }
    lines
}

/// The families of a server in their order.
fn families(target: &WatchedTarget) -> Vec<(&str, Vec<&WatchedSign>)> {
    let mut families: Vec<(&str, Vec<&WatchedSign>)> = Vec::new();
    for sign in &target.signs {
        match families.last_mut() {
            Some((family, signs)) if *family == sign.family => signs.push(sign),
            _ => families.push((&sign.family, vec![sign])),
        }
    }
    families
}

/// A line for each family, then what stands out.
fn overview(target: &WatchedTarget) -> Vec<String> {
    let families = families(target);
    let rows = families.iter().enumerate().map(|(at, (family, signs))| {
        let word = match signs.iter().map(|own| own.state).max() {
            None | Some(SignState::NotAvailable) => "-",
            Some(worst) => state(worst),
        };
        let figures = signs.iter().filter(|own| own.headline.is_some());
        let figures: Vec<String> = figures
            .take(FIGURES)
            .map(|own| format!("{} {}", own.name, headline(own)))
            .collect();
        format!(
            "{} {family:<16} {word:<9} {}",
            (at + 1) % 10,
            figures.join("  ")
        )
    });
    let mut lines: Vec<String> = rows.collect();
    lines.push(String::new());
    for own in standing_out(&target.signs) {
        let why = own.finding.as_deref().unwrap_or_default();
        lines.push(format!("{:<9} {}: {why}", state(own.state), own.name));
    }
    lines
}

/// The figures of a sign, the largest first.
fn parts(own: &WatchedSign) -> impl Iterator<Item = String> {
    let mut values: Vec<_> = own.values.iter().collect();
    let size = |value: &SignValue| value.per_second.unwrap_or(value.value);
    values.sort_by(|a, b| size(b).total_cmp(&size(a)));
    values.into_iter().map(|value| {
        let labels: Vec<&str> = value.labels.values().map(String::as_str).collect();
        let shown = match (own.kind, value.per_second) {
            (SignKind::Counter, Some(rate)) => figure(rate, own.unit, own.kind),
            _ => figure(value.value, own.unit, SignKind::Gauge),
        };
        format!("    {shown:>16}  {}", labels.join(" "))
    })
}

/// A line of blocks, or why there is no figure.
fn beside(own: &WatchedSign) -> String {
    match (&own.not_available, &own.finding) {
        (Some(why), _) => why.clone(),
        (None, Some(why)) => format!("{} {why}", state(own.state)),
        (None, None) => blocks(&own.history),
    }
}

fn blocks(figures: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let figures = figures
        .get(figures.len().saturating_sub(SPARK)..)
        .unwrap_or_default();
    let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let range = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low;
    let block = |own: &f64| {
        let height = if range > 0.0 {
            (own - low) / range * 7.0
        } else {
            0.0
        };
        let at = usize::try_from(pgclinic_model::whole(height)).unwrap_or(0);
        BLOCKS.get(at.min(7)).copied().unwrap_or(' ')
    };
    figures.iter().map(block).collect()
}

/// Cut to the columns of the screen, with a mark where something is missing.
fn fitted(line: &str, columns: usize) -> String {
    let line = clean(line);
    if line.chars().count() <= columns {
        return line;
    }
    let kept = line.chars().take(columns.saturating_sub(1));
    kept.chain(['…']).collect()
}

fn wrapped(label: &str, text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![label.to_owned()];
    for word in text.split(' ') {
        let Some(last) = lines.last_mut() else {
            continue;
        };
        if last.chars().count() + word.chars().count() + 1 > columns {
            lines.push(format!("{:1$}{word} ", "", label.len()));
        } else {
            last.push_str(word);
            last.push(' ');
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_ends_at_the_edge_and_steers_nothing() {
        assert_eq!(fitted("abcdef", 4), "abc…");
        assert_eq!(fitted("a\u{1b}[2J", 40), "a\\u{1b}[2J");
    }

    #[test]
    fn a_setting_stands_with_its_reason_and_experiment() {
        let own = SettingAdvice {
            setting: "fsync".into(),
            value: "off".into(),
            advice: "on".into(),
            reason: "after a crash of the machine the cluster may be beyond recovery".into(),
            settled_by: "pgclinic lab run filesystem".into(),
        };
        let lines = advised(&own);
        assert_eq!(lines.first().map(|own| own.trim()), Some("fsync off -> on"));
        let words: Vec<&str> = lines.iter().map(|own| own.trim()).collect();
        assert!(
            words.join(" ").ends_with("(pgclinic lab run filesystem)"),
            "{words:?}"
        );
        assert!(lines.iter().all(|own| own.chars().count() <= 81));
        assert_eq!(fitting(lines.clone(), 2).len(), 2);
        assert_eq!(fitting(lines.clone(), 9), lines);
    }

    #[test]
    fn a_history_is_a_line_of_blocks() {
        assert_eq!(blocks(&[0.0, 7.0, 3.5]), "▁█▄");
        assert_eq!(blocks(&[5.0, 5.0]), "▁▁");
        assert_eq!(blocks(&[]), "");
    }
}
