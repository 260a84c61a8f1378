//! Lines of an exchange in the error log of its location.
//!
//! Source: nginx documentation, `error_log`; nginx's order of the request fields in a line.

use std::fmt;

use engines::http::{BodyLength, FieldId};
use server_base::errlog::{self, Details, Level, Printable, Record, Shown, Topics, message_text};

use super::{Ctx, Exchange};
use crate::conf_core::CoreSrv;
use crate::debug_http;
use crate::decision::Phase;
use crate::trace::Event;

impl Exchange {
    /// Writes to the location's error log with the action, the client, the server and the request line, as nginx does.
    pub fn log(&self, level: Level, text: fmt::Arguments<'_>) {
        match self.progress.action.text() {
            Some(action) => self.log_while(level, action, text),
            None => self.log_text(level, text),
        }
    }

    /// Writes a line as [`Exchange::log`] does, with an action of its own.
    pub fn log_while(&self, level: Level, action: &str, text: fmt::Arguments<'_>) {
        self.log_text(level, format_args!("{text} while {action}"));
    }

    fn log_text(&self, level: Level, text: fmt::Arguments<'_>) {
        self.record_event(|| Event::Log(level, message_text(text)));
        let log = self.route.core_loc().log();
        if !log.enabled(level) && !self.client.debug {
            return;
        }
        let check = self.upstream.as_ref().and_then(|up| up.check.as_deref());
        if let Some(check) = check {
            return log.record(&Record {
                level,
                topics: Topics::NONE,
                connection: None,
                message: format_args!("{text}, {check}"),
                request: None,
                everywhere: false,
            });
        }
        let known = |id| self.head.field(id);
        let upstream = self.upstream.as_ref().and_then(|upstream| upstream.url());
        let details = Details {
            client: self.client.peer,
            server: &self.route.srv::<CoreSrv>().name,
            request: (self.head.line.len > 0).then(|| self.head.bytes(self.head.line)),
            subrequest: self.is_subrequest().then_some(&self.target.uri),
            upstream: upstream.as_deref(),
            host: known(FieldId::Host),
            referrer: known(FieldId::Referer),
        };
        log.record(&Record {
            level,
            topics: Topics::NONE,
            connection: Some(self.client.connection),
            message: text,
            request: Some(&details),
            everywhere: self.client.debug,
        });
    }

    /// Records an event of an exchange that is being explained.
    #[inline(always)] // A branch for each note, where most exchanges have none.
    pub fn record_event(&self, event: impl FnOnce() -> Event) {
        if let Some(trace) = &self.trace {
            trace.push(self.route.location, event());
        }
    }

    /// Whether debugging messages about this exchange are logged.
    pub fn is_debugged(&self) -> bool {
        let log = || self.route.core_loc().log();
        errlog::debugging() && (self.client.debug || log().enabled(Level::Debug))
    }

    /// Writes a debugging message. Called by `debug_http!`, which checks the log level first.
    #[cold]
    pub fn debug(&self, topics: Topics, text: fmt::Arguments<'_>) {
        let log = self.route.core_loc().log();
        log.record(&Record {
            level: Level::Debug,
            topics,
            connection: Some(self.client.connection),
            message: text,
            request: None,
            everywhere: self.client.debug,
        });
    }

    /// Logs the request line and the header as they came.
    #[cold]
    pub(crate) fn debug_head(&self) {
        let head = &self.head;
        debug_http!(self, "http process request line");
        let line = Shown(head.bytes(head.line));
        debug_http!(self, "http request line: \"{line}\"");
        debug_http!(self, "http process request header line");
        for field in &head.fields {
            let (name, value) = (head.bytes(field.name), head.bytes(field.value));
            debug_http!(self, "http header: \"{}: {}\"", Shown(name), Shown(value));
        }
        debug_http!(self, "http header done");
    }

    /// Logs the URI that was made of the request line.
    #[cold]
    pub(crate) fn debug_uri(&self) {
        debug_http!(self, "http uri: \"{}\"", Shown(&self.target.uri));
        debug_http!(self, "http args: \"{}\"", Shown(&self.target.args));
        debug_http!(self, "http exten: \"{}\"", Shown(self.target.extension()));
    }

    /// `"uri?args"`, for debugging messages.
    pub fn shown_uri(&self) -> impl fmt::Display {
        fmt::from_fn(|f| {
            write!(
                f,
                "\"{}?{}\"",
                Shown(&self.target.uri),
                Shown(&self.target.args)
            )
        })
    }

    /// The name of the phase in nginx's debugging messages.
    pub(crate) fn shown_phase(&self) -> &'static str {
        match self.progress.phase {
            Phase::ServerRewrite | Phase::Rewrite => "rewrite",
            _ => "generic",
        }
    }

    /// The length of the request body; as in nginx -1 if there is none, or if its length was not announced.
    pub(crate) fn shown_length(&self) -> i128 {
        match self.head.body {
            BodyLength::Length(n) => i128::from(n),
            BodyLength::None | BodyLength::Unknown => -1,
        }
    }

    /// Logs that a `set` variable was read before it was set.
    pub fn warn_uninitialized(&self, _cx: &Ctx<'_>, name: &[u8]) {
        if self.route.core_loc().warn_uninitialized() {
            let name = Printable(name);
            self.log(
                Level::Warn,
                format_args!("using uninitialized \"{name}\" variable"),
            );
        }
    }
}

/// Logs a debugging message about an exchange; its arguments are evaluated only if the log has debugging messages.
#[macro_export]
macro_rules! debug_http {
    ($x:expr, $($text:tt)+) => {
        if ::server_base::errlog::debugging() {
            $x.debug(::server_base::errlog::Topics::HTTP, format_args!($($text)+));
        }
    };
}
