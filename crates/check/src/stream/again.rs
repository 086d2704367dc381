//! Suspects, looked at once more: a page that was written while it was read is torn, and sound a
//! moment later.

use pgclinic_cluster::PageWaits;
use pgclinic_model::document::NotChecked;
use pgclinic_model::plural;
use pgclinic_source::{Clock, Source, SourceErrorKind, StreamedBackup};

use crate::stream::sieve::is_sound;
use crate::stream::{Shape, StreamCheck, Suspect, relation_file};

/// Suspects that could not be read again and are told by name.
const TOLD: usize = 20;

/// What became of a suspect.
enum Look {
    Sound,
    Wrong,
    /// The file ends before it, or is not there any more.
    Gone,
    Refused(String),
}

/// Reads every suspect again from where the files are; what is sound then, or gone, was no damage.
/// What cannot be read again does not count, and is told. `files` is who can be asked, or why
/// nobody can.
pub fn look_again(
    flight: &mut StreamCheck,
    passed: &mut StreamedBackup,
    files: Result<&dyn Source, &str>,
    clock: &dyn Clock,
) {
    let suspects = std::mem::take(&mut flight.suspects);
    let mut unseen: Vec<(Suspect, String)> = Vec::new();
    let mut page = vec![0; usize::try_from(flight.shape.build.block_size).unwrap_or(8192)];
    let is_open = |suspect: &mut Suspect| {
        let seen = match files {
            Ok(files) => look(&flight.shape, suspect, files, &mut page),
            Err(why) => Look::Refused(why.to_owned()),
        };
        let is_kept = passed.is_kept(&suspect.path);
        match seen {
            // Nobody looks at it after us: that it has the same bytes twice does not make it so.
            Look::Wrong => {
                passed.keep_page(&suspect.path, suspect.offset, &page);
                return Ok(true);
            }
            Look::Sound if is_kept => passed.keep_page(&suspect.path, suspect.offset, &page),
            // The kept copy of a catalog may be torn there; zeros say nothing.
            Look::Gone | Look::Refused(_) if is_kept => zero(passed, flight, suspect),
            Look::Sound | Look::Gone | Look::Refused(_) => {
                passed.forget_page(&suspect.path, suspect.offset);
                flight.pages_as_zeros += 1;
            }
        }
        if let Look::Refused(why) = seen {
            unseen.push((suspect.clone(), why));
        }
        Ok(false)
    };
    let settled = PageWaits::default().settle_pages(suspects, clock, is_open);
    flight.suspects = settled.unwrap_or_default();
    tell(flight, &unseen);
}

fn zero(passed: &mut StreamedBackup, flight: &StreamCheck, suspect: &Suspect) {
    let block_bytes = usize::try_from(flight.shape.build.block_size).unwrap_or(8192);
    passed.keep_page(&suspect.path, suspect.offset, &vec![0; block_bytes]);
}

/// Reads the page once.
fn look(shape: &Shape, suspect: &Suspect, files: &dyn Source, page: &mut [u8]) -> Look {
    let Some(name) = relation_file(&suspect.path) else {
        return Look::Gone;
    };
    match files.read_at(&suspect.path, suspect.offset, page) {
        Ok(read) if read < page.len() => return Look::Gone,
        Ok(_) => {}
        Err(error) if error.kind == SourceErrorKind::NotFound => return Look::Gone,
        Err(error) => return Look::Refused(error.why),
    }
    if is_sound(shape, name, page, suspect.offset) {
        Look::Sound
    } else {
        Look::Wrong
    }
}

fn tell(flight: &mut StreamCheck, unseen: &[(Suspect, String)]) {
    for (suspect, why) in unseen.iter().take(TOLD) {
        flight.not_checked.push(NotChecked {
            what: format!("block {} of {}", suspect.block, suspect.path),
            why: format!(
                "it looked wrong, but it may have been written at that moment, and it could not be read again: {why}"
            ),
            inherent: false,
        });
    }
    if unseen.len() > TOLD {
        flight.not_checked.push(NotChecked {
            what: format!(
                "{} that looked wrong",
                plural(unseen.len() - TOLD, "more page")
            ),
            why: "they could not be read again either".into(),
            inherent: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use pgclinic_cluster::Build;
    use pgclinic_format::Layout;
    use pgclinic_format::build::PageBuilder;
    use pgclinic_source::{Entry, Memory, Result as Read, SourceError, SourceSpec};

    use super::*;
    use crate::stream::{PageSums, Shape};

    const PATH: &str = "base/5/16384";

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep(&self, _time: Duration) {}
    }

    /// A file that is torn when it is read the first times.
    struct Torn(Mutex<u32>, Memory);

    impl Source for Torn {
        fn spec(&self) -> &SourceSpec {
            self.1.spec()
        }

        fn list(&self, folder: &str) -> Read<Vec<Entry>> {
            self.1.list(folder)
        }

        fn len(&self, path: &str) -> Read<u64> {
            self.1.len(path)
        }

        fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Read<usize> {
            let read = self.1.read_at(path, offset, buf)?;
            let mut left = self.0.lock().expect("nobody panicked");
            if *left > 0 {
                *left -= 1;
                buf[8000..].fill(0xEE);
            }
            Ok(read)
        }
    }

    struct Denied(SourceSpec);

    impl Source for Denied {
        fn spec(&self) -> &SourceSpec {
            &self.0
        }

        fn list(&self, folder: &str) -> Read<Vec<Entry>> {
            Err(SourceError::new(
                folder,
                SourceErrorKind::Io,
                "permission denied",
            ))
        }

        fn len(&self, path: &str) -> Read<u64> {
            Err(SourceError::new(
                path,
                SourceErrorKind::Io,
                "permission denied",
            ))
        }

        fn read_at(&self, path: &str, _: u64, _: &mut [u8]) -> Read<usize> {
            Err(SourceError::new(
                path,
                SourceErrorKind::Io,
                "permission denied",
            ))
        }
    }

    /// After one suspect page was looked at again there: suspects that are left, bytes that are
    /// shown, and gaps.
    fn after(files: Result<&dyn Source, &str>) -> (usize, Vec<u8>, Vec<String>) {
        let mut flight = StreamCheck::new(Shape {
            build: Build::USUAL,
            layout: Layout::of_major(18).expect("a layout"),
            sums: PageSums::On,
            suspects_max: 10,
        });
        let mut passed = StreamedBackup::new("test", &std::env::temp_dir()).expect("a directory");
        passed.add_gone(PATH, 8192);
        passed.keep_page(PATH, 0, &[0xEE; 8192]);
        flight.suspects.push(Suspect {
            path: PATH.into(),
            offset: 0,
            block: 0,
        });
        look_again(&mut flight, &mut passed, files, &Still);
        let mut bytes = vec![1; 8192];
        passed.read_at(PATH, 0, &mut bytes).expect("bytes");
        let gaps = flight
            .not_checked
            .iter()
            .map(|gap| format!("{}: {}", gap.what, gap.why));
        (flight.suspects.len(), bytes, gaps.collect())
    }

    fn sound() -> Vec<u8> {
        PageBuilder::new(8192, &[]).item(&[7; 40]).finish(0)
    }

    #[test]
    fn a_page_that_was_torn_is_no_damage() {
        let torn = Torn(Mutex::new(3), Memory::new("server").with(PATH, sound()));
        assert_eq!(after(Ok(&torn)), (0, vec![0; 8192], vec![]));
        let gone = Memory::new("server");
        assert_eq!(
            after(Ok(&gone)),
            (0, vec![0; 8192], vec![]),
            "dropped meanwhile"
        );
        let shorter = Memory::new("server").with(PATH, Vec::new());
        assert_eq!(
            after(Ok(&shorter)),
            (0, vec![0; 8192], vec![]),
            "truncated meanwhile"
        );
    }

    #[test]
    fn a_page_that_stays_wrong_counts_as_it_is_now() {
        let mut wrong = sound();
        wrong[8191] ^= 1;
        let server = Memory::new("server").with(PATH, wrong.clone());
        assert_eq!(after(Ok(&server)), (1, wrong, vec![]));
    }

    #[test]
    fn what_nobody_may_read_again_does_not_count_and_is_told() {
        let name = "denied".into();
        let denied = Denied(SourceSpec::Memory { name });
        for files in [Ok(&denied as &dyn Source), Err("permission denied")] {
            let (left, bytes, gaps) = after(files);
            assert_eq!((left, bytes), (0, vec![0; 8192]));
            assert_eq!(gaps.len(), 1);
            assert!(
                gaps[0].starts_with("block 0 of base/5/16384: it looked wrong"),
                "{gaps:?}"
            );
            assert!(gaps[0].ends_with("permission denied"), "{gaps:?}");
        }
    }
}
