//! One client: its connection, its variables, its rounds.

use std::io;
use std::sync::Mutex;
use std::time::Instant;

use super::connection::{Answer, Broken, Connection, ServerError};
use super::crew::locked;
use super::pace::Pacer;
use super::script::{Random, Step, Template};
use super::tally::Tally;
use super::{Length, Load, Protocol};
use pgclinic_servers::Target;

/// The SQLSTATE of a connection that broke.
const CONNECTION_FAILURE: &str = "08006";

/// One connected client.
#[derive(Debug)]
pub(super) struct Client {
    connection: Connection,
    statements: Vec<Statement>,
    protocol: Protocol,
    slots: Vec<i64>,
    random: Random,
    number: u32,
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
enum Trouble {
    /// The round failed and the client goes on.
    Sql(ServerError),
    /// The client is over.
    Broken(Broken),
}

impl From<Broken> for Trouble {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl Client {
    /// Connects, and prepares what can be prepared now: a statement over a table that the script makes itself is
    /// prepared when it is first run.
    pub(super) async fn connect(load: &Load, target: &Target, number: u32) -> Result<Self, Broken> {
        let mut client = Self {
            connection: Connection::open(target).await?,
            statements: statements(load),
            protocol: load.protocol,
            slots: load.script.slots(number),
            random: Random::new(load.seed, number),
            number,
        };
        if load.protocol == Protocol::Prepared {
            for statement in &mut client.statements {
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
                overdue(&mut pacer, &mut self.random, due, end, tally);
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
                Err(Trouble::Sql(error)) => books.fail(&error.sqlstate, &error.message, ended),
                Err(Trouble::Broken(broken)) => {
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
    pub(super) async fn abandon(self, target: &Target) {
        self.connection.abandon(target).await;
    }

    /// The script once. What fails leaves no transaction open.
    async fn round(&mut self, load: &Load) -> Result<(), Trouble> {
        let mut sql_commands = 0;
        for step in &load.script.steps {
            match step {
                Step::Set { slot, to } => match to.value(&self.slots, &mut self.random) {
                    Ok(value) => {
                        if let Some(place) = self.slots.get_mut(*slot) {
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
                    let answer = self.send(sql_commands).await?;
                    sql_commands += 1;
                    if let Some(error) = answer.error {
                        return self.failed(error, answer.status).await;
                    }
                }
            }
        }
        Ok(())
    }

    async fn send(&mut self, index: usize) -> Result<Answer, Broken> {
        let Some(statement) = self.statements.get_mut(index) else {
            unreachable!("every SQL step has its statement")
        };
        if self.protocol == Protocol::Simple {
            return if statement.template.slots().is_empty() {
                self.connection.simple(&statement.sql).await
            } else {
                let sql = statement.template.with_values(&self.slots);
                self.connection.simple(&sql).await
            };
        }
        let slots = statement.template.slots().iter();
        let values: Vec<i64> = slots
            .map(|slot| self.slots.get(*slot).copied().unwrap_or_default())
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

    async fn failed(&mut self, error: ServerError, status: u8) -> Result<(), Trouble> {
        if status != b'I' {
            self.connection.simple("ROLLBACK").await?;
        }
        Err(Trouble::Sql(error))
    }

    /// The client's number, from 0.
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

fn statements(load: &Load) -> Vec<Statement> {
    let templates = load.script.steps.iter().filter_map(|step| match step {
        Step::Sql(template) => Some(template),
        Step::Set { .. } => None,
    });
    let statement = |(number, template): (usize, &Template)| Statement {
        template: template.clone(),
        sql: template.with_parameters(),
        name: format!("lab_{number}"),
        is_prepared: false,
    };
    templates.enumerate().map(statement).collect()
}

/// Books this and the following rounds that fell due before the end and will never begin.
fn overdue(
    pacer: &mut Pacer,
    random: &mut Random,
    first: Instant,
    end: Instant,
    tally: &Mutex<Tally>,
) {
    let mut due = first;
    while pacer.is_open() && due < end {
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
