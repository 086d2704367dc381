//! Does the OAuth set-up let the right people in, and nobody else? Every run has its own provider,
//! its own certificates and its own rules, and goes the whole way: discovery, device flow, token,
//! login.

use std::time::Instant;

use pgclinic_model::document::DecisionCard;
use pgclinic_servers::Session;

use crate::bench::Bench;
use crate::cell::{Arm, Axis, Better, Cell, Metric, Point, RunResult};
use crate::cost::Cost;
use crate::decision::Comparison;
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::need::Need;

mod browser;
mod certificates;
mod checker;
mod https;
mod keycloak;
mod own_set_up;
mod provider;
mod psql;
mod rules;
mod situations;
mod stage;
mod tokens;
mod validator;
mod verdict;

pub use own_set_up::OauthSetUp;
use situations::{SITUATIONS, Situation, situation};
use stage::{Answer, Stage};

/// The experiment that tries logins against an OAuth provider of its own.
#[derive(Debug)]
pub struct OauthLogin {
    /// A user's own issuer and rules, which are then tried instead.
    own: Option<OauthSetUp>,
}

/// With providers of the laboratory's own.
pub static OAUTH_LOGIN: OauthLogin = OauthLogin { own: None };

const EXPLAIN: &str = "\
Starts a small OpenID provider with certificates of its own (discovery, keys, device flow, tokens signed with ES256), \
writes pg_hba.conf and pg_ident.conf with a remark on each line, and logs in over and over with one kind of token: a \
good one, an expired one, one for another audience, without the scope, of another issuer, with a forged signature, of \
somebody whom the map does not know, for somebody else's role, and a good one while the issuer is down. A run that lets \
the wrong user in, or keeps the right one out, counts wrong answers.

PostgreSQL 18 speaks OAUTHBEARER and leaves the checking of tokens to a validator library, which it does not bring \
along, nor does Debian (there are projects, such as Percona's pg_oidc_validator). This experiment compiles one (a page of C, so `cc` must be there) that asks the laboratory; what \
decides is in the laboratory. Without a compiler the rules and the provider are tried all the same, tokens are checked \
beside the server, and each run says so.

The arm psql logs in with psql's own device flow where a psql 18 with libpq-oauth is found (Debian sid's, which \
`cargo xtask servers` makes). Keycloak is the second provider where Java is here and \
`cargo xtask servers --only keycloak` has fetched it; its tokens, signed with RS256, come by its own device flow, whose pages for login and consent the laboratory fills in as a user with a browser does. The arm broken-rules writes the mistakes that people make into both files, reads \
pg_hba_file_rules and pg_ident_file_mappings, and explains each line; it also shows that a reload keeps the old rules, \
without a word to whoever asked for it.

With --issuer URL and --pgdata DIR your own issuer is asked for its discovery document, by curl, whose library psql uses \
too, and your lines of pg_hba.conf and pg_ident.conf are read by a real server and compared with it and with each other. \
Nobody logs in there: that takes a user with a browser.

The issuer's keys are fetched with the first token and kept: when the issuer goes down later, tokens that are still good \
let their owners in until they expire.";

/// The arm of psql, and the one of wrong lines.
const PSQL: &str = "psql";
/// The arm of a user's own issuer and rules.
const OWN_SET_UP: &str = "own-set-up";
const BROKEN_RULES: &str = "broken-rules";

impl Experiment for OauthLogin {
    fn name(&self) -> &str {
        "oauth-login"
    }

    fn question(&self) -> &str {
        "Does the OAuth set-up let the right people in, and nobody else?"
    }

    fn explain(&self) -> &str {
        EXPLAIN
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        if self.own.is_some() {
            let words = "your issuer and your rules, without a login";
            return Matrix {
                arms: vec![Arm::new(OWN_SET_UP, words).on_version("18")],
                axes: Vec::new(),
                blocks: 1,
            };
        }
        let providers: &[&str] = scale.pick(&["own"], &["own", "keycloak"], &["own", "keycloak"]);
        let of = |situation: &Situation| Arm::new(situation.name, situation.words);
        let mut arms: Vec<Arm> = SITUATIONS.iter().map(of).collect();
        arms.push(Arm::new(PSQL, "psql with its own device flow"));
        arms.push(Arm::new(
            BROKEN_RULES,
            "mistakes in pg_hba.conf and pg_ident.conf, each found and explained",
        ));
        Matrix {
            arms: arms.into_iter().map(|arm| arm.on_version("18")).collect(),
            axes: vec![Axis::new("provider", "", providers)],
            blocks: scale.pick(1, 3, 3),
        }
    }

    fn asks(&self, arm: &Arm, point: &Point, scale: Scale) -> bool {
        let is_keycloak = point.get("provider").is_some_and(|name| name == "keycloak");
        let is_short = arm.name == "good" || arm.name == PSQL;
        // Mistakes in the files are the same whatever the provider, and each run with Keycloak
        // starts it anew.
        match (is_keycloak, scale) {
            (false, _) => true,
            (true, Scale::Published) => arm.name != BROKEN_RULES,
            (true, _) => is_short,
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::exact("wrong_answers", "wrong answers", "", Better::Lower),
            Metric::exact("let_in", "logins that were let in", "", Better::Higher),
            Metric::timing(
                "login_ms",
                "time of a login with a token, median",
                "ms",
                Better::Lower,
            ),
            Metric::timing("token_ms", "time to get a token", "ms", Better::Lower),
        ]
    }

    fn needs(&self, cell: &Cell, _arm: &Arm) -> Vec<Need> {
        let mut needs = vec![Need::Major(18..=18)];
        if cell.at("provider") == "keycloak" {
            needs.extend(keycloak::missing().map(Need::Missing));
        }
        needs
    }

    fn cost(&self, cell: &Cell, scale: Scale) -> Cost {
        match cell.at("provider") {
            "keycloak" => Cost::seconds(35.0)
                .with_data(400 << 20)
                .with_memory(1 << 30),
            _ => Cost::seconds(scale.pick(2.0, 3.0, 8.0)),
        }
    }

    fn base(&self, _cell: &Cell, _arm: &Arm, _scale: Scale) -> Base {
        // A server does not start with rules that it cannot read, as a user's own may be.
        if self.own.is_some() {
            return Base::copied("people");
        }
        // Every run writes both files anew and nothing else.
        Base::shared("people")
    }

    fn fill(&self, _base: &str, _scale: Scale, _seed: u64, session: &mut Session) -> Result<()> {
        session
            .execute("CREATE ROLE alice LOGIN; CREATE ROLE bob LOGIN")
            .map_err(Error::sql("making roles"))
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        if let Some(own) = &self.own {
            return own.try_it(bench);
        }
        let mut stage = Stage::set_up(bench)?;
        let name = bench.arm().name.clone();
        match (situation(&name), name.as_str()) {
            (Some(situation), _) => try_situation(bench, &mut stage, situation),
            (None, PSQL) => try_psql(bench, &stage),
            (None, _) => try_broken_rules(bench, &stage),
        }
    }

    fn advice(&self, arm: &Arm) -> String {
        match situation(&arm.name) {
            Some(Situation { refused_with: None, .. }) => {
                "the rules of this run stand beside its results; put your issuer, scope and names into them"
            }
            _ => "this is no way to log in; what matters is that there is no wrong answer",
        }
        .to_owned()
    }

    fn with_oauth(&self, own: &OauthSetUp) -> Result<Box<dyn Experiment>> {
        let own = Some(own.clone());
        Ok(Box::new(Self { own }))
    }

    fn comparisons(&self, _matrix: &Matrix) -> Vec<Comparison> {
        // No arm is there to be chosen instead of another.
        Vec::new()
    }

    fn verdicts(&self, results: &[RunResult]) -> Vec<DecisionCard> {
        verdict::cards(results)
    }

    fn remarks(&self, results: &[RunResult]) -> Vec<String> {
        let first = |result: &&RunResult| result.cell.block == 1 && !result.cell.is_control;
        let mut remarks: Vec<String> = results.iter().filter(first).map(remark).collect();
        remarks.sort();
        remarks
    }
}

/// `expired: right, as: it expired 60 s ago; 2.1 ms a login`
fn remark(result: &RunResult) -> String {
    let arm = match result.cell.at("provider") {
        "keycloak" => format!("{} with Keycloak", result.cell.arm),
        _ => result.cell.arm.clone(),
    };
    let Some(wrong) = result.metrics.get("wrong_answers") else {
        return format!("{arm}: {}", result.outcome.words());
    };
    let verdict = if *wrong == 0.0 { "right" } else { "WRONG" };
    let answer = result.environment.get("answer").map_or("", String::as_str);
    let time = result
        .metrics
        .get("login_ms")
        .map(|ms| format!("; {ms:.1} ms a login"));
    format!("{arm}: {verdict}: {answer}{}", time.unwrap_or_default())
}

fn logins(scale: Scale) -> u32 {
    scale.pick(2, 20, 200)
}

fn try_situation(
    bench: &mut Bench<'_>,
    stage: &mut Stage,
    situation: &Situation,
) -> Result<Measured> {
    let mut wrong = 0;
    if stage.has_validator() {
        let challenge = stage.challenge(bench)?;
        bench.keep("challenge.json", challenge.as_bytes())?;
        wrong += u32::from(!names_the_way(&challenge, &stage.issuer));
    }
    let start = Instant::now();
    let token = stage.token(bench, situation)?;
    let token_ms = start.elapsed().as_secs_f64() * 1e3;
    if situation.issuer_is_down {
        stage.end_provider();
    }
    let mut times = Vec::new();
    let mut let_in = 0;
    for _ in 0..logins(bench.scale()) {
        bench.check_interrupted()?;
        let start = Instant::now();
        let answer = stage.try_token(bench, situation.role, &token)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        let_in += u32::from(matches!(answer, Answer::LetIn(_)));
        wrong += u32::from(!is_right(&answer, situation, stage.has_validator()));
        bench.fact("answer", words(&answer));
    }
    if let Some(reason) = situation.refused_with {
        wrong += log_lacks(bench, stage, reason)?;
    }
    note_wrong_lines(bench)?;
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok(Measured::default()
        .with("wrong_answers", f64::from(wrong))
        .with("let_in", f64::from(let_in))
        .with("login_ms", median)
        .with("token_ms", token_ms)
        .with_series("logins_ms", numbered(&times)))
}

fn numbered(times: &[f64]) -> Vec<[f64; 2]> {
    let number = |(at, time): (usize, &f64)| [at as f64, *time];
    times.iter().enumerate().map(number).collect()
}

/// The challenge must lead to the issuer's own discovery document and name the scope.
fn names_the_way(challenge: &str, issuer: &str) -> bool {
    let json: serde_json::Value = serde_json::from_str(challenge).unwrap_or_default();
    let url = format!("{issuer}/.well-known/openid-configuration");
    json.get("openid-configuration")
        .and_then(|value| value.as_str())
        == Some(&url)
        && json.get("scope").and_then(|value| value.as_str()) == Some(provider::SCOPE)
}

fn is_right(answer: &Answer, situation: &Situation, has_validator: bool) -> bool {
    // Who may use which role is for the server to say; beside it there is no such answer.
    let by_map = situation.refused_with == Some("no match in usermap");
    match (answer, situation.refused_with) {
        (Answer::LetIn(name), None) => name.ends_with(situation.user),
        (Answer::LetIn(_), Some(_)) => by_map && !has_validator,
        (Answer::Refused(_), expected) => expected.is_some(),
    }
}

fn words(answer: &Answer) -> String {
    match answer {
        Answer::LetIn(name) => format!("let in as {name}"),
        Answer::Refused(why) => format!("refused: {why}"),
    }
}

/// The client hears nothing about the reason; the server's log must hold it, and no token.
fn log_lacks(bench: &mut Bench<'_>, stage: &Stage, reason: &str) -> Result<u32> {
    if !stage.has_validator() {
        return Ok(0);
    }
    let log = bench.server()?.log();
    let line = log
        .lines()
        .find(|line| line.contains(reason))
        .map(str::to_owned);
    if let Some(line) = &line {
        let said = line
            .split_once("  ")
            .map_or(line.as_str(), |(_, said)| said);
        bench.fact("answer", format!("refused; the server's log: {said}"));
    }
    Ok(u32::from(line.is_none()))
}

/// The files as they stand must be without a mistake; one is a fact of the run.
fn note_wrong_lines(bench: &mut Bench<'_>) -> Result<()> {
    let mut session = bench.connect()?;
    let wrong = rules::wrong_lines(&mut session)?;
    let words: Vec<String> = wrong.iter().map(rules::WrongLine::words).collect();
    bench.fact(
        "wrong_lines",
        if words.is_empty() {
            "none".to_owned()
        } else {
            words.join("\n")
        },
    );
    Ok(())
}

fn try_psql(bench: &mut Bench<'_>, stage: &Stage) -> Result<Measured> {
    if !stage.has_validator() {
        return Err(Error::Skip(validator::no_compiler().unwrap_or_default()));
    }
    let start = Instant::now();
    let answer = psql::log_in(bench, stage)?;
    let login_ms = start.elapsed().as_secs_f64() * 1e3;
    bench.fact("answer", words(&answer));
    let right = answer == Answer::LetIn(format!("oauth:{}", provider::ALICE));
    Ok(Measured::default()
        .with("wrong_answers", f64::from(u32::from(!right)))
        .with(
            "let_in",
            f64::from(u32::from(matches!(answer, Answer::LetIn(_)))),
        )
        .with("login_ms", login_ms))
}

fn try_broken_rules(bench: &mut Bench<'_>, stage: &Stage) -> Result<Measured> {
    let mut session = bench.connect()?;
    let (mut hba, mut ident) = (rules::hba(&stage.issuer, provider::SCOPE), rules::ident());
    let mut missed = u32::from(!rules::wrong_lines(&mut session)?.is_empty());
    for (text, broken) in [
        (&mut hba, rules::BROKEN_HBA),
        (&mut ident, rules::BROKEN_IDENT),
    ] {
        for (line, _) in broken {
            text.push_str(line);
            text.push('\n');
        }
    }
    stage::write_rules(bench, &hba, &ident)?;
    let wrong = rules::wrong_lines(&mut session)?;
    let expected = rules::BROKEN_HBA.iter().chain(rules::BROKEN_IDENT);
    for (_, error) in expected.clone() {
        missed += u32::from(!wrong.iter().any(|line| line.error.contains(error)));
    }
    missed += u32::from(wrong.len() != expected.count());
    missed += wrong
        .iter()
        .map(|line| u32::from(rules::explain(&line.error).is_none()))
        .sum::<u32>();
    let words: Vec<String> = wrong.iter().map(rules::WrongLine::words).collect();
    bench.keep("wrong_lines.txt", words.join("\n").as_bytes())?;
    bench.keep("pg_hba_broken.conf", hba.as_bytes())?;
    let let_in = after_reload(bench, stage, &mut session)?;
    bench.fact(
        "answer",
        format!(
            "{} wrong lines found and explained; the reload kept the old rules",
            wrong.len()
        ),
    );
    Ok(Measured::default()
        .with("wrong_answers", f64::from(missed))
        .with("let_in", f64::from(let_in)))
}

/// A reload with wrong lines changes nothing: who was let in before still is.
fn after_reload(bench: &mut Bench<'_>, stage: &Stage, session: &mut Session) -> Result<u32> {
    let good = SITUATIONS
        .first()
        .ok_or_else(|| Error::Refused("no situations".to_owned()))?;
    session
        .execute("SELECT pg_reload_conf()")
        .map_err(Error::sql("reloading the rules"))?;
    let token = stage.token(bench, good)?;
    let answer = stage.try_token(bench, good.role, &token)?;
    Ok(u32::from(matches!(answer, Answer::LetIn(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_right_by_who_is_let_in_as_whom() {
        let good = situation("good").expect("a situation");
        let unmapped = situation("unmapped-user").expect("a situation");
        let alice = Answer::LetIn("oauth:alice@example.com".to_owned());
        let refused = Answer::Refused("no".to_owned());
        assert!(is_right(&alice, good, true) && !is_right(&refused, good, true));
        assert!(!is_right(
            &Answer::LetIn("oauth:bob@example.com".to_owned()),
            good,
            true
        ));
        assert!(is_right(&refused, unmapped, true) && !is_right(&alice, unmapped, true));
        assert!(is_right(&alice, unmapped, false));
    }

    #[test]
    fn a_challenge_must_lead_to_the_issuer_of_the_rule() {
        let challenge = r#"{ "status": "invalid_token", "openid-configuration": "https://i/.well-known/openid-configuration", "scope": "openid postgres" }"#;
        assert!(names_the_way(challenge, "https://i"));
        assert!(!names_the_way(challenge, "https://j") && !names_the_way("", "https://i"));
    }
}
