//! What the disk below the data directory did (`/proc/diskstats`,
//! `Documentation/admin-guide/iostats.rst` of Linux).

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use pgclinic_servers::Session;

use super::counters::Counters;
use super::wal::rate;
use super::{ReadingError, Sampled, Sampler, Sampling, WatchedServer};

/// Bytes of a sector in the kernel's counters, whatever the disk has.
const SECTOR_BYTES: f64 = 512.0;

/// Samples the disk below the data directory.
pub struct Disk;

struct Readings {
    /// Major and minor number.
    device: (u32, u32),
    counters: Counters,
    last: Option<[f64; 3]>,
    read: Vec<[f64; 2]>,
    written: Vec<[f64; 2]>,
}

impl Sampler for Disk {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn about(&self) -> &'static str {
        "Reads /proc/diskstats: bytes and requests read and written, and the time with requests in flight, of the whole \
         device below the data directory, whoever asked."
    }

    fn cost(&self) -> &'static str {
        "One file a second, under 0.1 ms."
    }

    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn missing(&self, place: &WatchedServer) -> Option<String> {
        let Some(pgdata) = &place.pgdata else {
            return place.not_ours();
        };
        let known = device_of(pgdata).is_some_and(|device| {
            let text = std::fs::read_to_string("/proc/diskstats").unwrap_or_default();
            counters_of(&text, device).is_some()
        });
        let nameless =
            || "the file system of the data directory names no disk that counts".to_owned();
        (!known).then(nameless)
    }

    fn open(&self, place: &WatchedServer) -> Box<dyn Sampling> {
        let device = place.pgdata.as_deref().and_then(device_of);
        Box::new(Readings {
            device: device.unwrap_or_default(),
            counters: Counters::default(),
            last: None,
            read: Vec::new(),
            written: Vec::new(),
        })
    }
}

impl Sampling for Readings {
    fn sample(&mut self, at: f64, _session: &mut Session) -> Result<(), ReadingError> {
        let text = std::fs::read_to_string("/proc/diskstats")?;
        let counters = counters_of(&text, self.device);
        let counters = counters
            .ok_or_else(|| ReadingError("the disk is gone from /proc/diskstats".to_owned()))?;
        for (name, value) in counters {
            self.counters.read(name, value);
        }
        let [_, (_, read), _, (_, written), _] = counters;
        if let Some(before) = self.last.replace([at, read, written]) {
            self.read.extend(rate([before[0], before[1]], [at, read]));
            self.written
                .extend(rate([before[0], before[2]], [at, written]));
        }
        Ok(())
    }

    fn finish(self: Box<Self>, seconds: f64, sampled: &mut Sampled) {
        for (name, growth) in self.counters.growth() {
            match name {
                "busy_ms" => sampled.metric("disk.busy_percent", growth / seconds.max(1e-9) / 10.0),
                _ => sampled.metric(format!("disk.{name}"), growth),
            }
        }
        sampled.series("disk.read_bytes_s", self.read);
        sampled.series("disk.written_bytes_s", self.written);
    }
}

fn device_of(folder: &Path) -> Option<(u32, u32)> {
    let number = std::fs::metadata(folder).ok()?.dev();
    Some((rustix::fs::major(number), rustix::fs::minor(number)))
}

/// Requests and bytes read, requests and bytes written, and milliseconds with requests in flight.
fn counters_of(diskstats: &str, device: (u32, u32)) -> Option<[(&'static str, f64); 5]> {
    let (major, minor) = (device.0.to_string(), device.1.to_string());
    let fields = diskstats
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|fields| {
            fields.first() == Some(&major.as_str()) && fields.get(1) == Some(&minor.as_str())
        })?;
    let field = |position: usize| fields.get(position)?.parse::<f64>().ok();
    Some([
        ("reads", field(3)?),
        ("read_bytes", field(5)? * SECTOR_BYTES),
        ("writes", field(7)?),
        ("written_bytes", field(9)? * SECTOR_BYTES),
        ("busy_ms", field(12)?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_found_by_its_numbers() {
        let text = "   7       0 loop0 1 0 2 0 0 0 0 0 0 0 0\n 259       2 nvme0n1p2 10 1 80 5 20 2 160 9 0 33 14 0 0 0 0\n";
        let counters = counters_of(text, (259, 2)).expect("a disk");
        assert_eq!(
            counters.map(|(_, value)| value),
            [10.0, 40960.0, 20.0, 81920.0, 33.0]
        );
        assert_eq!(counters_of(text, (8, 0)), None);
    }
}
