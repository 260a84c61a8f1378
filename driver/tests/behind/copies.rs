//! Detached requests of the simulation: requests to `/copied/` are also sent to a server as a copy, like a mirror.
//!
//! A copy continues after the end of its parent. The number of its request decides about its log entry and its timeout.
//! At the end of a run every copy must have ended once, and only the chosen copies are logged.

use std::cell::RefCell;

use engines::http::Method;
use server_http::exchange::{Ctx, DetachedEnd, DetachedRequest, Exchange};
use server_http::module::{Handler, Module, Step};

/// The module that starts copies, before content handlers.
pub(crate) const MODULE: Module = Module {
    name: "copies",
    handlers: &[Handler::PreContent(copy), Handler::Log(record)],
    ..Module::EMPTY
};

/// One detached request.
#[derive(Debug)]
struct Copy {
    is_logged: bool,
    logs: usize,
    end: Option<DetachedEnd>,
    /// Its parent ended first.
    is_orphan: bool,
}

#[derive(Default)]
struct Copies {
    all: Vec<Copy>,
    /// Client requests that have ended.
    parents: Vec<usize>,
}

/// Counts of copies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) all: u64,
    pub(crate) orphans: u64,
    pub(crate) timed_out: u64,
}

thread_local! {
    static COPIES: RefCell<Copies> = RefCell::default();
}

/// Index of a copy.
struct Number(usize);

/// Forgets the copies of the previous run.
pub(crate) fn forget() {
    COPIES.take();
}

/// Counts the copies of a run.
///
/// # Errors
/// A copy has not ended, or was logged too often or too rarely.
pub(crate) fn check() -> Result<Counts, String> {
    COPIES.with_borrow(|copies| {
        let mut counts = Counts::default();
        for (number, copy) in copies.all.iter().enumerate() {
            if copy.logs != usize::from(copy.is_logged) {
                return Err(format!("the log of copy {number}: {copy:?}"));
            }
            let Some(end) = copy.end else {
                return Err(format!("copy {number} has not ended: {copy:?}"));
            };
            counts.all += 1;
            counts.orphans += u64::from(copy.is_orphan);
            counts.timed_out += u64::from(end == DetachedEnd::TimedOut);
        }
        Ok(counts)
    })
}

/// Returns the number of the client request in the URI.
fn ask(x: &Exchange) -> usize {
    let uri = String::from_utf8_lossy(&x.target.uri);
    let id = uri.rsplit('/').next().and_then(|id| id.parse().ok());
    id.expect("the client sends such URIs")
}

fn copy(x: &mut Exchange, cx: &mut Ctx<'_>) -> Step {
    if x.is_subrequest() || !x.target.uri.starts_with(b"/copied/") {
        return Step::Next;
    }
    let ask = ask(x);
    let is_logged = ask.is_multiple_of(2);
    let number = COPIES.with_borrow_mut(|copies| {
        copies.all.push(Copy {
            is_logged,
            logs: 0,
            end: None,
            is_orphan: false,
        });
        copies.all.len() - 1
    });
    let uri = format!("/copy/{ask}");
    let request = DetachedRequest::child_of(x, cx, uri.as_bytes(), b"");
    let Ok(mut request) = request else {
        return Step::Status(500);
    };
    request = request.method(Method::Get).observed_by(move |_, end| {
        COPIES.with_borrow_mut(|copies| {
            let is_orphan = copies.parents.contains(&ask);
            let copy = &mut copies.all[number];
            assert_eq!(copy.end, None, "it ends once");
            (copy.end, copy.is_orphan) = (Some(end), is_orphan);
        });
    });
    request.exchange.extensions.push(Number(number));
    if is_logged {
        request = request.logged();
    }
    if let Some(ms) = LIMITS_MS[ask % LIMITS_MS.len()] {
        request = request.within(ms);
    }
    request.start(cx);
    Step::Next
}

fn record(x: &mut Exchange, _: &mut Ctx<'_>) {
    COPIES.with_borrow_mut(|copies| match x.extensions.get::<Number>() {
        Some(Number(number)) => copies.all[*number].logs += 1,
        None if x.target.uri.starts_with(b"/copied/") => copies.parents.push(ask(x)),
        None => {}
    });
}

/// Timeouts of copies, milliseconds.
const LIMITS_MS: [Option<u64>; 4] = [None, Some(1), Some(300), Some(20_000)];
