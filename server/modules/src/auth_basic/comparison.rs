//! Compares a name and a password with a user file; slow hashes are computed on another thread.
//!
//! A refusal takes as long as the costliest entry of the file, so that its time does not reveal whether a name exists.
//! For an unknown name, or after a fast comparison, the password is also compared with the costliest entry, and the
//! result is dropped. If a file mixes slow hash forms, each takes its own time.
//!
//! The exchange waits for its comparison. The key of a comparison contains all inputs of the verdict, so a verdict is
//! never used for another question.

use std::hint::black_box;

use server_base::errlog::Level;
use server_base::offload::{Full, Job, Progress};
use server_http::exchange::{Ctx, Exchange, State, Wait};
use server_http::phases::delay_counts_from;

use super::cost::{cost_us, is_negligible, is_quick};
use super::entries::Entry;
use super::password::{self, Verdict, is_hashed};
use super::{user_file, verified};

/// The inputs of a question: whether the file has this user with this password.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// The path of the user file.
    pub(super) path: Vec<u8>,
    /// The name.
    pub(super) user: Vec<u8>,
    /// The password of the request.
    pub(super) password: Vec<u8>,
}

/// The state of a question.
pub(super) enum Answer {
    /// It is answered.
    Verdict(Verdict),
    /// In progress: the exchange waits and then calls [`answer`] again.
    Wait,
    /// The status of a failure; the reason has been logged.
    Failed(u16),
}

/// A comparison that an exchange waits for.
struct Pending {
    question: Question,
    /// The stored hash of the user.
    stored: Option<Vec<u8>>,
    job: Job<Verdict>,
    since_ms: u64,
}

/// Compares a password, or continues the comparison in progress.
pub(super) fn answer(x: &mut Exchange, cx: &mut Ctx<'_>, question: Question) -> Answer {
    // An aborted request body leads to an error page, which may need another comparison.
    match x.extensions.take::<Pending>() {
        Some(pending) if pending.question == question => look(x, cx, pending),
        _ => begin(x, cx, question),
    }
}

fn begin(x: &mut Exchange, cx: &mut Ctx<'_>, question: Question) -> Answer {
    let entry = match user_file::find(x, cx, &question.path, &question.user) {
        Ok(entry) => entry,
        Err(status) => return Answer::Failed(status),
    };
    let now_ms = cx.clock.mono_ms;
    let comparison = Comparison::new(entry, &question.password, now_ms);
    if let Some(verdict) = comparison.at_once(&question.password) {
        return Answer::Verdict(verdict);
    }
    let stored = comparison.stored.clone();
    let dummy = comparison.dummy.clone().unwrap_or_default();
    let same = [
        &question.user,
        stored.as_deref().unwrap_or_default(),
        &dummy,
        &question.password,
    ];
    let given = question.password.clone();
    let job = verified::join(&same, || Job::begin(cx.env, move || comparison.run(&given)));
    match job {
        Ok(job) => {
            let since_ms = now_ms;
            let pending = Pending {
                question,
                stored,
                job,
                since_ms,
            };
            look(x, cx, pending)
        }
        Err(Full) => {
            let text = format_args!("too many password comparisons are waiting");
            x.log(Level::Error, text);
            Answer::Failed(503)
        }
    }
}

/// Returns the verdict of a finished comparison, or continues to wait.
fn look(x: &mut Exchange, cx: &Ctx<'_>, pending: Pending) -> Answer {
    let now_ms = cx.clock.mono_ms;
    match pending.job.progress() {
        Progress::Pending => {
            pending.job.wakes(x.waker(cx).remote());
            x.progress.state = State::Waiting(Wait::woken());
            x.extensions.push(pending);
            Answer::Wait
        }
        Progress::Done(verdict) => {
            match &pending.stored {
                Some(stored) if verdict == Verdict::Right => {
                    verified::remember(stored, &pending.question.password, now_ms);
                }
                _ => delay_counts_from(x, pending.since_ms),
            }
            Answer::Verdict(verdict)
        }
        Progress::Broken => {
            x.log(
                Level::Alert,
                format_args!("cannot compare a password: internal error"),
            );
            Answer::Failed(500)
        }
    }
}

/// The inputs of a comparison.
struct Comparison {
    stored: Option<Vec<u8>>,
    /// The verdict, if it is known without a comparison.
    verdict: Option<Verdict>,
    /// A hash that a refused password is also compared with, for equal time.
    dummy: Option<Vec<u8>>,
}

impl Comparison {
    fn new(entry: Entry, given: &[u8], now_ms: u64) -> Self {
        let own_us = match &entry.stored {
            Some(stored) => cost_us(stored, given.len()),
            None => 0,
        };
        let verdict = match &entry.stored {
            None => Some(Verdict::Nobody),
            Some(stored) if is_hashed(stored) && verified::knows(stored, given, now_ms) => {
                Some(Verdict::Right)
            }
            Some(stored) if is_quick(stored, given) => {
                let verdict = password::compare(stored, given);
                if verdict == Verdict::Right && is_hashed(stored) {
                    verified::remember(stored, given, now_ms);
                }
                Some(verdict)
            }
            Some(_) => None,
        };
        let dummy = entry
            .costliest
            .filter(|costliest| is_negligible(own_us, cost_us(costliest, given.len())));
        Self {
            stored: entry.stored,
            verdict,
            dummy,
        }
    }

    /// Returns the verdict if the remaining work is fast enough for this thread.
    fn at_once(&self, given: &[u8]) -> Option<Verdict> {
        let dummy_is_quick = || {
            self.dummy
                .as_ref()
                .is_none_or(|dummy| is_quick(dummy, given))
        };
        match self.verdict? {
            Verdict::Right => Some(Verdict::Right),
            _ => dummy_is_quick().then(|| self.run(given)),
        }
    }

    /// Runs the remaining comparisons.
    fn run(&self, given: &[u8]) -> Verdict {
        let verdict = match (&self.verdict, &self.stored) {
            (Some(verdict), _) => *verdict,
            (None, Some(stored)) => password::compare(stored, given),
            (None, None) => Verdict::Nobody,
        };
        if verdict != Verdict::Right
            && let Some(dummy) = &self.dummy
        {
            black_box(password::compare(black_box(dummy), given));
        }
        verdict
    }
}
