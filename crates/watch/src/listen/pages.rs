//! The pages of one sample. Each is made when it is asked for, once: of fifty servers they take
//! tens of megabytes, and most of them nobody asks for.
//!
//! One thread makes all of them. What making one takes is given back to the memory of the thread
//! that made it; were it another thread each time, all of them would keep as much.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

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
            made: Default::default(),
        }
    }

    fn place(&self, kind: PageKind) -> &OnceLock<Option<Arc<str>>> {
        let [overview, prometheus, openmetrics, json] = &self.made;
        match kind {
            PageKind::Overview => overview,
            PageKind::Prometheus => prometheus,
            PageKind::OpenMetrics => openmetrics,
            PageKind::Json => json,
        }
    }

    fn make(&self, kind: PageKind) -> Option<Arc<str>> {
        let make = || (self.make)(kind).map(Arc::from);
        self.place(kind).get_or_init(make).clone()
    }
}

/// A page that somebody waits for.
type Order = (Arc<Pages>, PageKind, Sender<Option<Arc<str>>>);

/// The thread that makes pages; it ends with the last copy of this.
#[derive(Debug, Clone)]
pub(super) struct PageMaker(Sender<Order>);

impl PageMaker {
    pub(super) fn start() -> std::io::Result<Self> {
        let (orders, inbox) = channel();
        let thread = std::thread::Builder::new().name("pages".into());
        thread.spawn(move || make_all(&inbox))?;
        Ok(Self(orders))
    }

    /// The page, shared by all who ask for it.
    pub(super) fn page(&self, pages: Arc<Pages>, kind: PageKind) -> Option<Arc<str>> {
        if let Some(made) = pages.place(kind).get() {
            return made.clone();
        }
        let (sender, made) = channel();
        self.0.send((pages, kind, sender)).ok()?;
        made.recv().ok()?
    }
}

fn make_all(inbox: &Receiver<Order>) {
    for (pages, kind, sender) in inbox {
        // Whoever asked may have gone away.
        let _sent = sender.send(pages.make(kind));
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
        let (pages, maker) = (Arc::new(pages), PageMaker::start().expect("a thread"));
        let page = |kind| maker.page(Arc::clone(&pages), kind);
        assert_eq!(count.load(Ordering::Relaxed), 0);
        for _ in 0..3 {
            assert_eq!(page(PageKind::Prometheus).as_deref(), Some("Prometheus"));
            assert_eq!(page(PageKind::Json), None);
        }
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
