//! Numbers that another run has otherwise are written as `N`, so that a page stays as it is: OIDs,
//! files, transactions, checksums, processes.

/// Digits from which on a number is masked wherever it stands.
const DIGITS: usize = 4;
/// Words before a number that is masked however short it is.
const BEFORE: [&str; 11] = [
    "ID",
    "relfrozenxid",
    "transaction",
    "xid",
    "xmin",
    "xmax",
    "checksum",
    "expected",
    "(PID",
    "t_xmin",
    "t_xmax",
];

/// Numbers that are the same everywhere: bytes of a page.
const KEPT: [&str; 1] = ["8192"];

/// Five characters at the beginning, as servers print them with their messages here.
fn is_sqlstate(word: &str) -> bool {
    let is_of_it = |char: char| char.is_ascii_digit() || char.is_ascii_uppercase();
    word.len() == 5 && word.chars().all(is_of_it)
}

/// The text with masks.
pub(super) fn masked(text: &str) -> String {
    let mut out = String::new();
    for (at, word) in text.split_inclusive(char::is_whitespace).enumerate() {
        if KEPT.contains(&word.trim()) || (at == 0 && is_sqlstate(word.trim())) {
            out.push_str(word);
            continue;
        }
        let before = text.split_whitespace().nth(at.wrapping_sub(1));
        let is_of_number = before.is_some_and(|before| BEFORE.contains(&before));
        out.push_str(&masked_word(word, if is_of_number { 1 } else { DIGITS }));
    }
    out
}

/// Runs of digits, and what is of a file's name or an LSN beside a slash.
fn masked_word(word: &str, digits: usize) -> String {
    if is_file_or_lsn(word) {
        let parts = word.split('/');
        let parts: Vec<String> = parts
            .map(|part| runs(part, 1, char::is_ascii_hexdigit))
            .collect();
        return parts.join("/");
    }
    runs(word, digits, char::is_ascii_digit)
}

fn is_file_or_lsn(word: &str) -> bool {
    let plain = word.trim_matches(|char: char| !char.is_ascii_alphanumeric());
    let hex = |part: &str| !part.is_empty() && part.chars().all(|char| char.is_ascii_hexdigit());
    let parts: Vec<&str> = plain.split('/').collect();
    match parts.as_slice() {
        ["pg_xact" | "pg_subtrans" | "pg_multixact", ..] => true,
        [high, low] => hex(high) && hex(low),
        _ => false,
    }
}

/// Replaces runs of at least so many of these characters; words of letters stay.
fn runs(word: &str, at_least: usize, is_of_run: fn(&char) -> bool) -> String {
    let (mut out, mut run) = (String::new(), String::new());
    let end = |run: &mut String, out: &mut String| {
        let is_number = run.chars().any(|char| char.is_ascii_digit());
        if run.len() >= at_least && is_number {
            out.push('N');
        } else {
            out.push_str(run);
        }
        run.clear();
    };
    for char in word.chars() {
        if is_of_run(&char) {
            run.push(char);
        } else {
            end(&mut run, &mut out);
            out.push(char);
        }
    }
    end(&mut run, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn what_varies_is_masked_and_the_message_stays() {
        let pairs = [
            (
                "XX001 ERROR:  invalid page in block 17 of relation base/16384/16390",
                "XX001 ERROR:  invalid page in block 17 of relation base/N/N",
            ),
            (
                "calculated checksum 604 but expected 60",
                "calculated checksum N but expected N",
            ),
            (
                "could not access status of transaction 735\nDETAIL:  Could not open file \"pg_xact/0EC1\": No such file or directory.",
                "could not access status of transaction N\nDETAIL:  Could not open file \"pg_xact/N\": No such file or directory.",
            ),
            (
                "found xmin 3 from before relfrozenxid 725",
                "found xmin N from before relfrozenxid N",
            ),
            (
                "next valid transaction ID 0:726",
                "next valid transaction ID N:N",
            ),
            ("lsn 0/2B2FCD68", "lsn N/N"),
            ("pg_toast.pg_toast_16394", "pg_toast.pg_toast_N"),
            ("chunk 1 (expected 3)", "chunk 1 (expected 3)"),
            (
                "42809 ERROR:  read only 4711 of 8192 bytes",
                "42809 ERROR:  read only N of 8192 bytes",
            ),
        ];
        for (text, expected) in pairs {
            assert_eq!(masked(text), expected);
        }
    }
}
