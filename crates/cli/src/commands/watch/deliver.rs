//! Messages about alerts to whoever hears of them, beside the sampling: a thread for each receiver,
//! so that one that hangs keeps no other waiting.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Inbox, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgclinic_model::document::AlertDelivery;
use pgclinic_watch::AlertMessage;

use super::alert_command;
use super::webhook::Webhook;
use crate::env::sleep_unless;

/// Messages that wait; the next ones are counted as failures.
const WAITING_MAX: usize = 1000;
/// Between the attempts to reach a receiver.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];
/// For what waits when the run is over.
const PATIENCE_AT_END: Duration = Duration::from_secs(20);
/// Failures that are kept until somebody asks.
const FAILURES_MAX: usize = 20;

/// Who hears of alerts.
#[derive(Debug, Clone)]
pub(super) enum Receiver {
    /// A command for sh, which gets the message on its standard input.
    Command(String),
    /// A web server, which gets it by POST.
    Webhook(Webhook),
}

impl Receiver {
    fn name(&self) -> &'static str {
        match self {
            Receiver::Command(_) => "command",
            Receiver::Webhook(_) => "webhook",
        }
    }

    fn deliver(&self, message: &str) -> Result<(), String> {
        match self {
            Receiver::Command(command) => {
                alert_command::run(command, message, alert_command::PATIENCE)
            }
            Receiver::Webhook(webhook) => webhook.post(message),
        }
    }
}

/// What became of messages.
#[derive(Debug, Default)]
struct Ledger {
    sent: u64,
    delivered: u64,
    undelivered: u64,
    last_failure: Option<String>,
    /// Those that nobody has asked for yet.
    failures: VecDeque<String>,
}

impl Ledger {
    fn failed(&mut self, why: String) {
        self.undelivered += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.push_back(why.clone());
        }
        self.last_failure = Some(why);
    }
}

/// One receiver with the thread that delivers to it.
struct Courier {
    receiver: &'static str,
    queue: Option<SyncSender<String>>,
    thread: Option<JoinHandle<()>>,
    ledger: Arc<Mutex<Ledger>>,
}

/// Deliver messages until they are dropped.
pub(super) struct Couriers {
    couriers: Vec<Courier>,
    is_over: Arc<AtomicBool>,
}

fn locked(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Couriers {
    /// To these receivers.
    pub(super) fn start(receivers: Vec<Receiver>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let courier = |receiver| Courier::start(receiver, &is_over);
        Self {
            couriers: receivers.into_iter().map(courier).collect(),
            is_over,
        }
    }

    /// Queues a message for everybody.
    pub(super) fn send(&self, message: &AlertMessage) {
        let text = serde_json::to_string(message);
        for courier in &self.couriers {
            courier.send(message.alert, text.as_deref().ok());
        }
    }

    /// How deliveries stand.
    pub(super) fn deliveries(&self) -> Vec<AlertDelivery> {
        self.couriers.iter().map(Courier::delivery).collect()
    }

    /// What went wrong since it was asked last.
    pub(super) fn failures(&self) -> Vec<String> {
        let couriers = self.couriers.iter();
        couriers
            .flat_map(|own| std::mem::take(&mut locked(&own.ledger).failures))
            .collect()
    }
}

impl Couriers {
    /// What waits is tried once more; what went wrong since it was asked last.
    pub(super) fn end(mut self) -> Vec<String> {
        self.wait();
        self.failures()
    }

    fn wait(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for courier in &mut self.couriers {
            courier.queue = None;
        }
        for courier in &mut self.couriers {
            if let Some(thread) = courier.thread.take() {
                let _ended = thread.join();
            }
        }
    }
}

impl Drop for Couriers {
    fn drop(&mut self) {
        self.wait();
    }
}

impl Courier {
    fn start(receiver: Receiver, is_over: &Arc<AtomicBool>) -> Self {
        let name = receiver.name();
        let (queue, inbox) = sync_channel(WAITING_MAX);
        let ledger = Arc::default();
        let (own_ledger, own_is_over) = (Arc::clone(&ledger), Arc::clone(is_over));
        let thread = std::thread::spawn(move || {
            deliver_all(&inbox, &receiver, &own_ledger, &own_is_over);
        });
        Self {
            receiver: name,
            queue: Some(queue),
            thread: Some(thread),
            ledger,
        }
    }

    fn send(&self, alert: &str, text: Option<&str>) {
        let queue = self.queue.as_ref().zip(text);
        let is_sent = queue.is_some_and(|(queue, text)| queue.try_send(text.to_owned()).is_ok());
        let mut ledger = locked(&self.ledger);
        ledger.sent += 1;
        if !is_sent {
            let waiting = format!(
                "{alert}: {WAITING_MAX} messages wait for the {}",
                self.receiver
            );
            ledger.failed(waiting);
        }
    }

    fn delivery(&self) -> AlertDelivery {
        let own = locked(&self.ledger);
        AlertDelivery {
            receiver: self.receiver.to_owned(),
            delivered: own.delivered,
            undelivered: own.undelivered,
            waiting: own.sent.saturating_sub(own.delivered + own.undelivered),
            last_failure: own.last_failure.clone(),
        }
    }
}

fn deliver_all(
    inbox: &Inbox<String>,
    receiver: &Receiver,
    ledger: &Mutex<Ledger>,
    is_over: &AtomicBool,
) {
    let mut over_at = None;
    // One that did not take the message before is tried once: it has had its attempts.
    let mut attempts = PAUSES.len() + 1;
    while let Ok(message) = inbox.recv() {
        if is_over.load(Ordering::Relaxed) {
            let since: &Instant = over_at.get_or_insert_with(Instant::now);
            if attempts == 1 || since.elapsed() > PATIENCE_AT_END {
                let why = format!("the run ended before the {} had it", receiver.name());
                locked(ledger).failed(why);
                continue;
            }
        }
        match delivered(receiver, &message, attempts, is_over) {
            Ok(()) => {
                attempts = PAUSES.len() + 1;
                locked(ledger).delivered += 1;
            }
            Err(why) => {
                attempts = 1;
                locked(ledger).failed(why);
            }
        }
    }
}

fn delivered(
    receiver: &Receiver,
    message: &str,
    attempts: usize,
    is_over: &AtomicBool,
) -> Result<(), String> {
    let mut pauses = PAUSES.into_iter().take(attempts.saturating_sub(1));
    loop {
        let ended = receiver.deliver(message);
        match (ended, pauses.next()) {
            (Err(_), Some(pause)) if !is_over.load(Ordering::Relaxed) => {
                sleep_unless(is_over, pause);
            }
            (ended, _) => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_that_fails_is_counted_and_keeps_no_other_waiting() {
        let home = tempfile::tempdir().expect("a directory");
        let heard = home.path().join("heard");
        let receivers = [
            "echo no >&2; exit 3".to_owned(),
            format!("cat >> '{}'", heard.display()),
        ];
        let couriers = Couriers::start(receivers.into_iter().map(Receiver::Command).collect());
        // At the end of a run nothing is tried twice.
        couriers.is_over.store(true, Ordering::Relaxed);
        for courier in &couriers.couriers {
            courier.send("PgclinicA", Some("first"));
            courier.send("PgclinicA", Some("second"));
        }
        let is_done = |own: &AlertDelivery| own.waiting == 0;
        while !couriers.deliveries().iter().all(is_done) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let [failing, other] = couriers.deliveries().try_into().expect("two receivers");
        assert_eq!((failing.delivered, failing.undelivered), (0, 2));
        assert_eq!((other.delivered, other.undelivered), (2, 0));
        let failures = couriers.failures();
        assert!(failures[0].contains("exit status: 3 no"), "{failures:?}");
        assert_eq!(
            std::fs::read_to_string(heard).expect("messages"),
            "first\nsecond\n"
        );
    }
}
