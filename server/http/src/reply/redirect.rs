//! Internal redirections: the same exchange under another URI, or in a named location.
//!
//! Source: nginx development guide, "HTTP phases"; `error_page`, `try_files`, `index`.

use server_base::errlog::{Level, Printable, Shown};

use super::status;
use crate::debug_http;
use crate::decision::Phase;
use crate::exchange::{Action, Ctx, Exchange, State, UriOrigin};
use crate::route::location::location_changed;
use crate::trace::Event;

/// Sends the exchange through the phases again under another URI.
pub fn redirect(x: &mut Exchange, cx: &mut Ctx<'_>, uri: &[u8], args: &[u8]) {
    if !x.route.spend_redirect() {
        x.log(
            Level::Error,
            format_args!(
                "rewrite or internal redirection cycle while internally redirecting to \"{}\"",
                Printable(uri)
            ),
        );
        return status(x, cx, 500);
    }
    debug_http!(x, "internal redirect: \"{}?{}\"", Shown(uri), Shown(args));
    x.record_event(|| Event::Redirect(uri.to_vec(), args.to_vec()));
    x.progress.action = Action::None;
    x.target.set_uri(uri);
    x.target.set_args(args);
    x.clear_for_redirect();
    x.route.location = x.route.own_server().location;
    location_changed(x);
    x.route.internal = true;
    x.target.origin = UriOrigin::Location;
    x.target.uri_below_alias = false;
    x.progress.state = State::Running;
    x.progress.enter(Phase::ServerRewrite);
}

/// Sends the exchange to a named location.
pub fn redirect_named(x: &mut Exchange, cx: &mut Ctx<'_>, name: &[u8]) {
    let shown = Printable(name);
    if !x.route.spend_redirect() {
        x.log(
            Level::Error,
            format_args!(
                "rewrite or internal redirection cycle while redirect to named location \"{shown}\""
            ),
        );
        return status(x, cx, 500);
    }
    if x.target.uri.is_empty() {
        x.log(
            Level::Error,
            format_args!("empty URI in redirect to named location \"{shown}\""),
        );
        return status(x, cx, 500);
    }
    let Some(location) = x.route.http.servers[x.route.server]
        .named
        .get(name)
        .copied()
    else {
        x.log(
            Level::Error,
            format_args!("could not find named location \"{shown}\""),
        );
        return status(x, cx, 500);
    };
    debug_http!(x, "using location: {shown} {}", x.shown_uri());
    x.clear_for_redirect();
    x.route.internal = true;
    x.route.location = location;
    x.record_event(|| Event::Named(location));
    x.progress.state = State::Running;
    location_changed(x);
    x.progress.enter(Phase::Rewrite);
}

#[cfg(test)]
#[path = "redirect_tests.rs"]
mod tests;
