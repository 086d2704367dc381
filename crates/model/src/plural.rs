//! Counts in messages.

/// `1 page`, `7 pages`.
pub fn plural(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_many() {
        let told = [0, 1, 2].map(|number| plural(number, "page"));
        assert_eq!(told, ["0 pages", "1 page", "2 pages"]);
    }
}
