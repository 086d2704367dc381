//! Right and wrong ways to log in, and what must come of each.

/// Whose token is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The issuer that the rule names, by this client.
    Trusted(&'static str),
    /// Another provider.
    Stranger,
    /// The right issuer's, with a changed signature.
    Forger,
}

/// One row of the matrix.
#[derive(Debug)]
pub(super) struct Situation {
    /// The arm.
    pub(super) name: &'static str,
    pub(super) words: &'static str,
    pub(super) token: From,
    /// The person.
    pub(super) user: &'static str,
    /// The role that is asked for.
    pub(super) role: &'static str,
    /// The provider has ended before the first login.
    pub(super) issuer_is_down: bool,
    /// What the server's log must say; `None` when the person must be let in.
    pub(super) refused_with: Option<&'static str>,
}

const GOOD: Situation = Situation {
    name: "good",
    words: "a good token",
    token: From::Trusted("good"),
    user: super::provider::ALICE,
    role: "alice",
    issuer_is_down: false,
    refused_with: None,
};

/// Every situation; the first is the baseline.
pub(super) const SITUATIONS: &[Situation] = &[
    GOOD,
    Situation {
        name: "expired",
        words: "a token that expired a minute ago",
        token: From::Trusted("expired"),
        refused_with: Some("it expired"),
        ..GOOD
    },
    Situation {
        name: "wrong-audience",
        words: "a token for another service",
        token: From::Trusted("wrong-audience"),
        refused_with: Some("its audience is another-service"),
        ..GOOD
    },
    Situation {
        name: "wrong-scope",
        words: "a token that does not allow the database",
        token: From::Trusted("wrong-scope"),
        refused_with: Some("its scope lacks postgres"),
        ..GOOD
    },
    Situation {
        name: "wrong-issuer",
        words: "a good token of another provider",
        token: From::Stranger,
        refused_with: Some("its issuer is"),
        ..GOOD
    },
    Situation {
        name: "forged",
        words: "a good token with another signature",
        token: From::Forger,
        refused_with: Some("its signature is not of the issuer"),
        ..GOOD
    },
    Situation {
        name: "unmapped-user",
        words: "a good token of somebody whom the map does not know",
        user: "mallory@elsewhere.example",
        refused_with: Some("no match in usermap"),
        ..GOOD
    },
    Situation {
        name: "another-role",
        words: "a good token for the role of somebody else",
        role: "bob",
        refused_with: Some("no match in usermap"),
        ..GOOD
    },
    Situation {
        name: "issuer-down",
        words: "a good token, but the issuer is down and its keys are not known yet",
        issuer_is_down: true,
        refused_with: Some("cannot be fetched"),
        ..GOOD
    },
];

/// The situation of this name.
pub(super) fn situation(name: &str) -> Option<&'static Situation> {
    SITUATIONS.iter().find(|situation| situation.name == name)
}
