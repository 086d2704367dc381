//! One client: its connection, its variables, its rounds.

use std::io;
use std::sync::Mutex;
use std::time::Instant;

use super::connection::{Answer, Broken, Connection, ServerError};
use super::crew::locked;
use super::pace::Pacer;
use super::script::{Random, Script, Step, Template};
use super::tally::Tally;
use super::{Length, Load, Protocol, Weighted};
use pgclinic_servers::ConnectionTarget;

/// The SQLSTATE of a connection that broke.
const CONNECTION_FAILURE: &str = "08006";

/// One connected client.
#[derive(Debug)]
pub(super) struct Client {
    connection: Connection,
    parts: Vec<Part>,
    protocol: Protocol,
    random: Random,
    number: u32,
}

/// One script of the load as this client runs it.
#[derive(Debug)]
struct Part {
    weight: u32,
    statements: Vec<Statement>,
    slots: Vec<i64>,
}

/// One SQL command as it is sent.
#[derive(Debug)]
struct Statement {
    template: Template,
    /// With `$1` in the places of variables.
    sql: String,
    /// Of the prepared statement.
    name: String,
    is_prepared: bool,
}

/// Why a round did not end well.
enum RoundError {
    /// The round failed and the client goes on.
    Sql(ServerError),
    /// The client is over.
    Broken(Broken),
}

impl From<Broken> for RoundError {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl Client {
    /// Connects, and prepares what can be prepared now: a statement over a table that the script
    /// makes itself is prepared when it is first run.
    pub(super) async fn connect(
        load: &Load,
        target: &ConnectionTarget,
        number: u32,
    ) -> Result<Self, Broken> {
        let mut client = Self {
            connection: Connection::open(target).await?,
            parts: parts(load, number),
            protocol: load.protocol,
            random: Random::new(load.seed, number),
            number,
        };
        if load.protocol == Protocol::Prepared {
            for statement in client
                .parts
                .iter_mut()
                .flat_map(|part| &mut part.statements)
            {
                let answer = client.connection.prepare(&statement.name, &statement.sql);
                statement.is_prepared = answer.await?.error.is_none();
            }
        }
        Ok(client)
    }

    /// The same client on a thread that drives no other.
    pub(super) fn alone(self) -> io::Result<Self> {
        Ok(Self {
            connection: self.connection.alone()?,
            ..self
        })
    }

    /// Runs rounds until the window ends or the rounds are done, and books them.
    pub(super) async fn work(
        &mut self,
        load: &Load,
        begin: Instant,
        end: Instant,
        tally: &Mutex<Tally>,
    ) -> io::Result<()> {
        let mut pacer = Pacer::new(load.pace, load.clients, begin)?;
        let mut ended = begin;
        let mut rounds = 0_u64;
        loop {
            let due = pacer.next(ended, &mut self.random);
            if due >= end || load.length == Length::Rounds(rounds) || load.is_stopped() {
                return Ok(());
            }
            let started = if due > ended || pacer.is_open() {
                pacer.wait(due).await?
            } else {
                ended
            };
            if started >= end {
                overdue(load, &mut pacer, &mut self.random, due, end, tally);
                return Ok(());
            }
            let outcome = self.round(load).await;
            ended = Instant::now();
            rounds += 1;
            let mut books = locked(tally);
            if pacer.is_open() {
                books.record_lag(started.saturating_duration_since(due));
            }
            match outcome {
                Ok(()) => books.record(if pacer.is_open() { due } else { started }, ended),
                Err(RoundError::Sql(error)) => books.fail(&error.sqlstate, &error.message, ended),
                Err(RoundError::Broken(broken)) => {
                    let (sqlstate, message) = last_words(&broken);
                    books.fail(&sqlstate, &message, ended);
                    books.lost_clients += 1;
                    return Ok(());
                }
            }
        }
    }

    /// Ends the session in good order.
    pub(super) async fn close(self) {
        self.connection.close().await;
    }

    /// Cancels what still runs, and hangs up.
    pub(super) async fn abandon(self, target: &ConnectionTarget) {
        self.connection.abandon(target).await;
    }

    /// Draws the script of the next round; where there is only one, no number is drawn.
    fn draw(&mut self) -> usize {
        let total: i64 = self.parts.iter().map(|part| i64::from(part.weight)).sum();
        if self.parts.len() < 2 {
            return 0;
        }
        let mut left = self.random.between(1, total.max(1));
        let mut weights = self.parts.iter().map(|part| i64::from(part.weight));
        let found = weights.position(|weight| {
            left -= weight;
            left <= 0
        });
        found.unwrap_or_default()
    }

    /// A script once. What fails leaves no transaction open.
    async fn round(&mut self, load: &Load) -> Result<(), RoundError> {
        let (at, mut sql_commands) = (self.draw(), 0);
        let steps = load
            .scripts
            .get(at)
            .map_or(&[] as &[Step], |own| own.script.steps.as_slice());
        for step in steps {
            let Some(part) = self.parts.get_mut(at) else {
                unreachable!("every script has its part")
            };
            match step {
                Step::Set { slot, to } => match to.value(&part.slots, &mut self.random) {
                    Ok(value) => {
                        if let Some(place) = part.slots.get_mut(*slot) {
                            *place = value;
                        }
                    }
                    Err(none) => {
                        let error = ServerError {
                            sqlstate: none.sqlstate.to_owned(),
                            message: none.why.to_owned(),
                            is_last: false,
                        };
                        return self.failed(error, b'T').await;
                    }
                },
                Step::Sql(_) => {
                    let answer = self.send(at, sql_commands).await?;
                    sql_commands += 1;
                    if let Some(error) = answer.error {
                        return self.failed(error, answer.status).await;
                    }
                }
            }
        }
        Ok(())
    }

    async fn send(&mut self, at: usize, index: usize) -> Result<Answer, Broken> {
        let part = self.parts.get_mut(at);
        let found = part.and_then(|part| Some((part.statements.get_mut(index)?, &part.slots)));
        let Some((statement, own)) = found else {
            unreachable!("every SQL step has its statement")
        };
        if self.protocol == Protocol::Simple {
            return if statement.template.slots().is_empty() {
                self.connection.simple(&statement.sql).await
            } else {
                let sql = statement.template.with_values(own);
                self.connection.simple(&sql).await
            };
        }
        let slots = statement.template.slots().iter();
        let values: Vec<i64> = slots
            .map(|slot| own.get(*slot).copied().unwrap_or_default())
            .collect();
        if self.protocol == Protocol::Extended {
            return self.connection.extended(&statement.sql, &values).await;
        }
        if !statement.is_prepared {
            let answer = self
                .connection
                .prepare(&statement.name, &statement.sql)
                .await?;
            if answer.error.is_some() {
                return Ok(answer);
            }
            statement.is_prepared = true;
        }
        self.connection.execute(&statement.name, &values).await
    }

    async fn failed(&mut self, error: ServerError, status: u8) -> Result<(), RoundError> {
        if status != b'I' {
            self.connection.simple("ROLLBACK").await?;
        }
        Err(RoundError::Sql(error))
    }

    /// The client's number, from 0.
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

fn parts(load: &Load, number: u32) -> Vec<Part> {
    let mut names = (0..).map(|number| format!("lab_{number}"));
    let part = |own: &Weighted| Part {
        weight: own.weight,
        statements: statements(&own.script, &mut names),
        slots: own.script.slots(number),
    };
    load.scripts.iter().map(part).collect()
}

fn statements(script: &Script, names: &mut impl Iterator<Item = String>) -> Vec<Statement> {
    let templates = script.steps.iter().filter_map(|step| match step {
        Step::Sql(template) => Some(template),
        Step::Set { .. } => None,
    });
    let statement = |(template, name): (&Template, String)| Statement {
        template: template.clone(),
        sql: template.with_parameters(),
        name,
        is_prepared: false,
    };
    templates.zip(names).map(statement).collect()
}

/// Books this and the following rounds that fell due before the end and will never begin; there may
/// be very many of them, and whoever wants the load to end does not wait for their count.
fn overdue(
    load: &Load,
    pacer: &mut Pacer,
    random: &mut Random,
    first: Instant,
    end: Instant,
    tally: &Mutex<Tally>,
) {
    let mut due = first;
    while pacer.is_open() && due < end && !load.is_stopped() {
        locked(tally).never_began(due);
        due = pacer.next(due, random);
    }
}

fn last_words(broken: &Broken) -> (String, String) {
    match broken {
        Broken::Refused(error) => (error.sqlstate.clone(), error.message.clone()),
        other => (CONNECTION_FAILURE.to_owned(), other.to_string()),
    }
}
