//! A disk on which each request takes a while, for what only a long way to the disk shows.
//!
//! ```text
//! ext4 in disk.img ─► nbdkit, whose filter `delay` lets each request wait ─► nbdfuse: a file ─► loop device ─► mount
//! ```
//!
//! Requests wait side by side, as on a disk at the other end of a network. It takes root, FUSE and
//! Debian's packages nbdkit, libnbd-bin and fuse3, and no module that kernels of virtual machines
//! lack (dm-delay). The device ends with us.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::run_as::RunAs;
use crate::scratch::{Scratch, unmount_in};
use crate::spawn::{dying_with_us, spawn};

/// What has to be installed.
const PROGRAMS: [&str; 5] = ["nbdkit", "nbdfuse", "mkfs.ext4", "losetup", "mount"];

/// Where programs of the system lie, also for a user whose path lacks them.
const FOLDERS: [&str; 4] = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];

/// Connections between the file and the delay: so many requests can wait at the same time.
const CONNECTIONS: &str = "16";

/// The device is there long before.
const PATIENCE: Duration = Duration::from_secs(20);

const STEP: Duration = Duration::from_millis(20);

/// A mounted disk; it is gone when dropped, or at the next sweep.
#[derive(Debug)]
pub struct SlowDisk {
    device: Option<Child>,
    folder: PathBuf,
    // Dropped last: all of it lies there.
    scratch: Scratch,
}

impl SlowDisk {
    /// A disk of `bytes` bytes in a scratch folder in `base`, on which each request waits for
    /// `delay` (whole milliseconds) before it is begun. It takes room only for what is written.
    ///
    /// # Errors
    /// When this machine cannot make one, with what is missing.
    pub fn make(run_as: &RunAs, base: Option<&Path>, bytes: u64, delay: Duration) -> Result<Self> {
        if let Some(why) = missing() {
            return Err(Error::SlowDisk { why });
        }
        let scratch = Scratch::new(run_as, base)?;
        let image = scratch.path().join("disk.img");
        let made = File::create_new(&image).and_then(|file| file.set_len(bytes));
        made.map_err(Error::io("create", &image))?;
        let device = scratch.path().join("device");
        File::create_new(&device).map_err(Error::io("create", &device))?;
        let folder = scratch.path().join("mounted");
        std::fs::create_dir(&folder).map_err(Error::io("create", &folder))?;
        told("mkfs.ext4", &["-q", "-F", text(&image)])?;
        let mut disk = Self {
            device: None,
            folder,
            scratch,
        };
        disk.device = Some(slowed(&image, &device, delay)?);
        disk.wait_for(&device, bytes)?;
        disk.mount(&device)?;
        // The server's user comes through our own folder to the disk.
        run_as.own(&disk.folder)?;
        Ok(disk)
    }

    /// Where it is mounted; the server's user owns it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn wait_for(&mut self, device: &Path, bytes: u64) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while std::fs::metadata(device).map_or(0, |found| found.len()) != bytes {
            let ended = self.device.as_mut().map(Child::try_wait);
            if let Some(Ok(Some(status))) = ended {
                return Err(failed(&format!("nbdfuse ended with {status}")));
            }
            if Instant::now() >= end {
                return Err(failed("nbdfuse shows no device"));
            }
            std::thread::sleep(STEP);
        }
        Ok(())
    }

    /// Without a page cache of the device's own, so that what the file system has dropped is read
    /// by the long way again.
    fn mount(&self, device: &Path) -> Result<()> {
        let asked = ["--direct-io=on", "--find", "--show", text(device)];
        let loop_device = told("losetup", &asked)?.trim().to_owned();
        let mounted = told("mount", &[&loop_device, text(&self.folder)]);
        // From here on it goes away with the mount, or at once where there is none.
        told("losetup", &["--detach", &loop_device])?;
        mounted.map(|_| ())
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        unmount_in(self.scratch.path());
        if let Some(mut device) = self.device.take() {
            let _ = device.kill();
            let _ = device.wait();
        }
    }
}

/// Why this machine cannot make a slow disk, where that is so.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can mount one".to_owned());
    }
    if !Path::new("/dev/fuse").exists() {
        return Some("this kernel has no /dev/fuse".to_owned());
    }
    let lacking: Vec<&str> = PROGRAMS
        .into_iter()
        .filter(|name| program(name).is_none())
        .collect();
    (!lacking.is_empty()).then(|| {
        format!(
            "{} cannot be found; Debian's packages are nbdkit, libnbd-bin, fuse3 and e2fsprogs",
            lacking.join(", ")
        )
    })
}

fn program(name: &str) -> Option<PathBuf> {
    let mut paths = FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    paths.find(|path| path.is_file())
}

/// The file `device`, behind which the image lies at a distance.
fn slowed(image: &Path, device: &Path, delay: Duration) -> Result<Child> {
    let wait = format!("{}ms", delay.as_millis());
    let mut command = dying_with_us(Path::new("nbdfuse"));
    command
        .args(["-C", CONNECTIONS])
        .arg(device)
        .args(["--socket-activation", "nbdkit"])
        .args(["--exit-with-parent", "--filter=delay", "file"])
        .arg(format!("file={}", image.display()))
        .args([format!("rdelay={wait}"), format!("wdelay={wait}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    spawn(command).map_err(|source| Error::Spawn {
        program: "nbdfuse".into(),
        user: "root".to_owned(),
        source,
    })
}

/// Runs a program of the system to its end, and says what it printed.
fn told(name: &str, arguments: &[&str]) -> Result<String> {
    let path = program(name).unwrap_or_else(|| name.into());
    let output = Command::new(&path)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let output = output.map_err(Error::io("run", &path))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(failed(&format!("{name}: {}", said.trim())))
    }
}

fn failed(why: &str) -> Error {
    Error::SlowDisk {
        why: why.to_owned(),
    }
}

/// Scratch folders have names in ASCII below a folder of ours.
fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn each_read_takes_its_time_and_nothing_is_left() {
        if let Some(why) = missing() {
            println!("not tried: {why}");
            return;
        }
        let run_as = RunAs::new(None).expect("a user");
        let base = tempfile::tempdir().expect("a directory");
        let delay = Duration::from_millis(100);
        let disk = match SlowDisk::make(&run_as, Some(base.path()), 64 << 20, delay) {
            Ok(disk) => disk,
            // A container may forbid mounts to its root.
            Err(why) => return println!("not tried: {why}"),
        };
        let path = disk.folder().join("file");
        std::fs::write(&path, vec![7; 8192]).expect("written");
        let file = File::open(&path).expect("a file");
        file.sync_all().expect("synced");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("dropped");
        let start = Instant::now();
        (&file).read_exact(&mut [0; 8192]).expect("read");
        assert!(start.elapsed() >= delay, "{:?}", start.elapsed());
        drop(file);
        let scratch = disk.scratch.path().to_path_buf();
        drop(disk);
        assert!(!scratch.exists());
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        assert!(!mounts.contains(&scratch.display().to_string()), "{mounts}");
    }
}
