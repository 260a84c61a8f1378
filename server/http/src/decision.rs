//! The phases that an exchange runs through, and decisions of their handlers.

/// A phase. [`Handler`](crate::handler::Handler) describes those that handlers of modules run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// After the head was read.
    PostRead,
    /// `rewrite` directives of the server.
    ServerRewrite,
    /// The core finds the location.
    FindConfig,
    /// `rewrite` directives of the location.
    Rewrite,
    /// The core looks for a location again if the URI changed.
    PostRewrite,
    /// Limits.
    PreAccess,
    /// Access control.
    Access,
    /// The core refuses a request that no access handler allowed.
    PostAccess,
    /// `try_files`, mirrors.
    PreContent,
    /// The handler that answers.
    Content,
}

/// The decision of a rewrite, limit or pre-content handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Go on with the next handler.
    Next,
    /// Answer with this status.
    Status(u16),
    /// The response is made.
    Sent,
    /// The exchange was redirected internally: go on from the phase it names.
    Restart,
    /// Nothing yet: run this handler's phase again when the exchange's timer fires.
    Wait,
}

/// The decision of an access handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// This handler has no say.
    NoOpinion,
    /// Allowed.
    Allow,
    /// Refused with this status.
    Deny(u16),
    /// Nothing yet: ask again when the exchange's timer fires.
    Wait,
}

/// The result of a content handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Not mine.
    Declined,
    /// Answer with this status.
    Status(u16),
    /// The response is made.
    Sent,
    /// The exchange was redirected internally.
    Restart,
    /// Nothing yet: run this handler again when the exchange's timer fires, or when its request body is there.
    Wait,
}

/// The result of a limit (`limit_req`, `limit_conn`) for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitResult {
    /// Within the limit.
    Passed,
    /// Delayed.
    Delayed,
    /// Refused.
    Rejected,
    /// Would be delayed, but the limit only counts.
    DelayedDryRun,
    /// Would be refused, but the limit only counts.
    RejectedDryRun,
}

/// The results of limits for a request; `None` before a limit applied. A request is counted once, with its internal redirects
/// and all requests of the server that it has led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitResults {
    /// Of `limit_req`.
    pub rate: Option<LimitResult>,
    /// Of `limit_conn`.
    pub connections: Option<LimitResult>,
}

/// Closes the connection without a response.
pub const CLOSE_WITHOUT_RESPONSE: u16 = 444;
/// The client took too long to send its request.
pub const REQUEST_TIMEOUT: u16 = 408;
/// The client is gone.
pub const CLIENT_CLOSED: u16 = 499;
