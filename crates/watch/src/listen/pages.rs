//! The pages of one sample. Each is made when it is asked for, once: of fifty servers they take tens
//! of megabytes, and most of them nobody asks for.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// `/`.
    Overview,
    /// `/metrics`, the text format 0.0.4.
    Prometheus,
    /// `/metrics` for whoever accepts OpenMetrics.
    OpenMetrics,
    /// `/json`: the document.
    Json,
}

type MakePage = dyn Fn(PageKind) -> Option<String> + Send + Sync;

/// The pages of one sample.
pub struct Pages {
    make: Box<MakePage>,
    /// Held while one is made: what making one takes is not taken several times at once.
    making: Mutex<()>,
    made: [OnceLock<Option<Arc<str>>>; 4],
}

impl fmt::Debug for Pages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pages").finish_non_exhaustive()
    }
}

impl Pages {
    /// Pages that this makes; none where one cannot be made.
    pub fn new(make: impl Fn(PageKind) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            make: Box::new(make),
            making: Mutex::new(()),
            made: Default::default(),
        }
    }

    /// The page, shared by all who ask for it.
    pub(super) fn page(&self, kind: PageKind) -> Option<Arc<str>> {
        let [overview, prometheus, openmetrics, json] = &self.made;
        let made = match kind {
            PageKind::Overview => overview,
            PageKind::Prometheus => prometheus,
            PageKind::OpenMetrics => openmetrics,
            PageKind::Json => json,
        };
        let make = || {
            let _alone = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            (self.make)(kind).map(Arc::from)
        };
        made.get_or_init(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_page_is_made_once_and_only_when_it_is_asked_for() {
        let count = Arc::new(AtomicU32::new(0));
        let own = Arc::clone(&count);
        let pages = Pages::new(move |kind| {
            own.fetch_add(1, Ordering::Relaxed);
            (kind != PageKind::Json).then(|| format!("{kind:?}"))
        });
        assert_eq!(count.load(Ordering::Relaxed), 0);
        for _ in 0..3 {
            assert_eq!(
                pages.page(PageKind::Prometheus).as_deref(),
                Some("Prometheus")
            );
            assert_eq!(pages.page(PageKind::Json), None);
        }
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
