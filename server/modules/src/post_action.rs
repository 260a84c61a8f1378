//! `post_action`: a request of the server after a response, such as a report of the sent bytes.
//!
//! It continues the client's request without its client ([`DetachedRequest::continued`]), in the location of the
//! directive's URI. It has no effect on the response, and does not delay the connection. Its own response is read as that of
//! a mirror: a small rest behind the head, so that the connection is kept. The number of such requests at a time has a limit,
//! since no client waits for them.
//!
//! Absent: post actions of post actions, and of other requests of the server itself.
//!
//! Source: nginx 1.31.4 (its documentation does not have it).

use std::cell::Cell;
use std::rc::Rc;

use conf::Contexts;
use server_base::errlog::{Level, Printable};
use server_base::from_args::Text;
use server_http::decision::Phase;
use server_http::exchange::{Ctx, DetachedRequest, Exchange};
use server_http::module::{Handler, Module};
use server_http::{phases, settings};

/// The module. Its log handler takes parts of the exchange, so that it comes after all others.
pub(crate) const MODULE: Module = Module {
    name: "post_action",
    directives: &[PLAIN],
    settings: &[<PostActionLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::Log(start)],
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct PostActionLoc: Location / PLAIN {
        /// URI or named location of a request that the server makes after each response; empty for none.
        to "post_action": Text = Text(Vec::new()), "", Contexts::HTTP_TO_IF;
    }
}

/// Starts the request after an ended one.
fn start(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let http = Rc::clone(&x.route.http);
    let to = x.loc::<PostActionLoc>(&http).to.0.as_slice();
    let is_unread = x.progress.phase == Phase::PostRead && !x.progress.header_sent;
    if to.is_empty() || x.is_subrequest() || is_unread {
        return;
    }
    let Some(running) = Running::begin() else {
        let to = Printable(to);
        let text = format_args!("no post action \"{to}\", since {RUNNING_MAX} are in progress");
        return x.log(Level::Error, text);
    };
    let uri = to.starts_with(b"/").then_some(to);
    if let Ok(mut request) = DetachedRequest::continued(x, cx, uri) {
        if uri.is_none() {
            phases::redirect_named(&mut request.exchange, cx, to);
        }
        // nginx sends no response head and reads no body.
        let request = request.head_only().logged_as_subrequest();
        request.observed_by(move |_, _| drop(running)).start(cx);
    }
}

/// A post action in progress; the drop uncounts it.
struct Running;

impl Running {
    /// Counts one more, unless there are too many.
    fn begin() -> Option<Self> {
        let is_free = RUNNING.get() < RUNNING_MAX;
        is_free.then(|| {
            RUNNING.set(RUNNING.get() + 1);
            Self
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(RUNNING.get() - 1);
    }
}

/// Maximum number of post actions of a thread at a time. It leaves most of nginx's 512 `worker_connections` free, since no client
/// waits for a post action.
const RUNNING_MAX: usize = 128;

thread_local! {
    /// Post actions of this thread in progress.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_at_a_time_has_a_limit() {
        let mut all: Vec<_> = (0..RUNNING_MAX).map_while(|_| Running::begin()).collect();
        assert_eq!(all.len(), RUNNING_MAX);
        assert!(Running::begin().is_none());
        all.pop();
        assert!(Running::begin().is_some());
        drop(all);
        assert_eq!(RUNNING.get(), 0);
    }
}
