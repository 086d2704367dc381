//! `--alert-command COMMAND`: sh runs it with the message on its standard input. What a server is
//! called never becomes part of a command: it stands in the message.

use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// For a command to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(50);
/// What is read of what it writes.
const ANSWER_BYTES: u64 = 4096;
/// Of what a command writes, in a message.
const OUTPUT_BYTES: usize = 300;

/// Runs it with the message, or says why that failed.
pub(super) fn run(command: &str, message: &str, patience: Duration) -> Result<(), String> {
    let failed = |why: String| format!("--alert-command: {why}");
    let mut shell = Command::new("sh");
    // A group of its own: what it started ends with it.
    shell.args(["-c", command]).process_group(0);
    shell.stdin(Stdio::piped());
    // A file, since what the command leaves behind may keep a pipe open, or fill it.
    let said = tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file)));
    let (mut said, stderr) = said.map_err(|error| failed(error.to_string()))?;
    let mut child = shell
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command may end without reading.
        let _unread = writeln!(stdin, "{message}");
    }
    let end = Instant::now() + patience;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => std::thread::sleep(STEP),
            Ok(None) => {
                end_group(&mut child);
                return Err(failed(format!("no end within {} s", patience.as_secs())));
            }
            Err(error) => return Err(failed(error.to_string())),
        }
    };
    if status.success() {
        return Ok(());
    }
    let mut output = Vec::new();
    let _unread = said
        .rewind()
        .and_then(|()| said.take(ANSWER_BYTES).read_to_end(&mut output));
    let output = String::from_utf8_lossy(&output);
    let end = output.floor_char_boundary(OUTPUT_BYTES);
    let output = output
        .get(..end)
        .unwrap_or_default()
        .trim()
        .replace('\n', " ");
    Err(failed(format!("{status} {output}")))
}

/// Ends a command with everything that it started.
fn end_group(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        let _is_gone = kill_process_group(group, Signal::KILL);
    }
    let _ended = child.kill();
    let _waited = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_message_and_its_failure_is_kept() {
        let home = tempfile::tempdir().expect("a directory");
        let heard = home.path().join("heard");
        let message = "{\"server\":\"$(touch never); `touch never`\"}";
        run(&format!("cat > '{}'", heard.display()), message, PATIENCE).expect("an end");
        assert_eq!(
            std::fs::read_to_string(heard).expect("a file"),
            format!("{message}\n")
        );
        let why = run("echo no >&2; exit 3", message, PATIENCE).expect_err("a failure");
        assert!(why.contains("exit status: 3 no"), "{why}");
    }

    #[test]
    fn what_a_command_started_ends_with_it() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("pid");
        let command = format!("sleep 600 & echo $! > '{}'; wait", path.display());
        let why = run(&command, "{}", Duration::from_millis(300)).expect_err("no end");
        assert!(why.contains("no end within"), "{why}");
        let pid = std::fs::read_to_string(path).expect("a number");
        let state = format!("/proc/{}/stat", pid.trim());
        // Nobody may be there to bury it.
        while let Ok(own) = std::fs::read_to_string(&state) {
            if own.contains(") Z ") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
