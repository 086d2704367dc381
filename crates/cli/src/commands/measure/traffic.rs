//! A table of traffic: lines of a label, a comma and a number.

use std::path::Path;

use crate::exit::Failure;

/// Labels and how often each happens. A first line without a number is a heading.
pub(in crate::commands) fn read(path: &Path) -> Result<Vec<(String, u64)>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    parse(&text).map_err(|why| Failure::new(format!("{}, {why}", path.display())))
}

fn parse(text: &str) -> Result<Vec<(String, u64)>, String> {
    let lines = (1u64..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let mut traffic = Vec::new();
    for (index, (number, line)) in lines.enumerate() {
        let parts = line.rsplit_once(',');
        let times = parts.and_then(|(_, times)| times.trim().parse().ok());
        match (parts, times) {
            (Some((label, _)), Some(times)) => traffic.push((label.trim().to_owned(), times)),
            _ if index == 0 => {}
            _ => {
                return Err(format!(
                    "line {number}: {line:?} is no label, comma and number"
                ));
            }
        }
    }
    if traffic.is_empty() {
        Err("it holds no line of a label, a comma and a number".into())
    } else {
        Ok(traffic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_and_comments_are_left_out() {
        let read = parse("when,logins\n# quiet\nafternoon,1000\n\nBlack Friday, 5 pm,60000\n");
        let said = [
            ("afternoon".to_owned(), 1000),
            ("Black Friday, 5 pm".to_owned(), 60_000),
        ];
        assert_eq!(read, Ok(said.to_vec()));
        let wrong = parse("a,1\nb\n").expect_err("no number");
        assert_eq!(wrong, "line 2: \"b\" is no label, comma and number");
        assert!(parse("").is_err());
    }
}
