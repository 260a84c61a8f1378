//! One view of a page: starts the navigation and records events until the page is quiet.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::devtools::Devtools;
use super::events::{AttachedToTarget, LifecycleEvent};
use super::flags::EMPTY_PAGE;
use super::message::Message;
use super::options::Options;
use super::record::{Record, Seen};
use super::trace;
use crate::client::now_ns;
use crate::page::{Agent, TITLE_BYTES_MAX, Visit};

/// Visits the page with a browser that has just been started.
///
/// # Errors
/// As of [`super::visits`].
pub(super) fn visit(
    devtools: &mut Devtools<'_, '_>,
    options: &Options,
    program: &Path,
) -> Result<Visit, String> {
    let version = devtools.call(None, "Browser.getVersion", &json!({}), STARTING_MAX)?;
    let (target, session) = page(devtools)?;
    let mut view = View {
        record: Record::new(options)?,
        devtools,
        options,
        target,
        session,
        sessions: 0,
        navigation: None,
    };
    view.prepare()?;
    view.navigate()?;
    let why = view.watch()?;
    let end = now_ns() as f64 / 1e9;
    let title = view.title();
    let hints = view.hints();
    view.finish()?;
    let mut visit = view.record.visit(end);
    visit.url.clone_from(&options.url);
    visit.title = title;
    visit.view = view.devtools.step.view;
    visit.agent = agent(&version, program);
    visit.notes.extend(why);
    if hints > 0 {
        let note =
            format!("{hints} preconnect and dns-prefetch hints were ignored (prediction is off)");
        visit.notes.push(note);
    }
    Ok(visit)
}

struct View<'v, 'a, 'p> {
    devtools: &'v mut Devtools<'a, 'p>,
    options: &'v Options,
    target: String,
    /// The page's session; frames and workers in other processes have their own.
    session: String,
    sessions: usize,
    /// The number of the command that began it.
    navigation: Option<u64>,
    record: Record,
}

/// The first page of a browser and a session with it.
fn page(devtools: &mut Devtools<'_, '_>) -> Result<(String, String), String> {
    let end = Instant::now() + STARTING_MAX;
    loop {
        let targets = devtools.call(None, "Target.getTargets", &json!({}), CALL_MAX)?;
        let all = targets["targetInfos"].as_array();
        let mut pages = all.into_iter().flatten();
        let is_page = |one: &&Value| one["type"] == "page" && one["url"] == EMPTY_PAGE;
        if let Some(target) = pages.find(is_page).and_then(|one| one["targetId"].as_str()) {
            let attach = json!({"targetId": target, "flatten": true});
            let session = devtools.call(None, "Target.attachToTarget", &attach, CALL_MAX)?;
            let session = session["sessionId"].as_str().unwrap_or_default();
            return Ok((target.to_owned(), session.to_owned()));
        }
        if Instant::now() > end {
            return Err("the browser cannot open a page".to_owned());
        }
        // The window is created after the pipe is open; events before are ignored.
        devtools.next(Instant::now() + PAUSE)?;
    }
}

impl View<'_, '_, '_> {
    fn call(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let session = Some(self.session.as_str());
        self.devtools.call(session, method, params, CALL_MAX)
    }

    /// Enables all events, and waits until the browser is idle.
    fn prepare(&mut self) -> Result<(), String> {
        for domain in ["Page.enable", "Inspector.enable"] {
            self.call(domain, &json!({}))?;
        }
        self.call("Network.enable", &network())?;
        self.call("Page.setLifecycleEventsEnabled", &json!({"enabled": true}))?;
        self.call("Target.setAutoAttach", &auto_attach())?;
        let deny = json!({"behavior": "deny"});
        self.devtools
            .call(None, "Browser.setDownloadBehavior", &deny, CALL_MAX)?;
        let trace = trace::parameters(self.options.trace.is_some());
        self.devtools
            .call(None, "Tracing.start", &trace, CALL_MAX)?;
        if self.options.filmstrip {
            let (width, height) = FRAME_PIXELS;
            let format =
                json!({"format": "jpeg", "quality": 40, "maxWidth": width, "maxHeight": height});
            self.call("Page.startScreencast", &format)?;
        }
        // A browser that has just been started computes for a while, which would be in the page's first times.
        let idle = json!({"expression": IDLE, "awaitPromise": true});
        self.call("Runtime.evaluate", &idle)?;
        let rest = Instant::now() + REST;
        while let Some(message) = self.devtools.next(rest)? {
            self.take(message)?;
        }
        Ok(())
    }

    fn navigate(&mut self) -> Result<(), String> {
        // The response arrives with the first byte of the page, perhaps never.
        let session = Some(self.session.as_str());
        let url = json!({"url": self.options.url});
        self.navigation = Some(self.devtools.post(session, "Page.navigate", &url)?);
        Ok(())
    }

    /// Records until the page is quiet. Returns the reason for an earlier end if the report must mention it.
    fn watch(&mut self) -> Result<Option<String>, String> {
        let began = Instant::now();
        let limit = began + self.options.timeout;
        // The load event, or the end of a document that has none because it broke off.
        let mut over: Option<(Seen, Instant)> = None;
        let mut active = began;
        loop {
            let now = Instant::now();
            if now >= limit {
                return self.timed_out(over.is_some()).map(Some);
            }
            if let Some((what, at)) = &over {
                let is_painted = self.record.is_painted() || now - *at >= PAINTING_MAX;
                let is_quiet = self.record.open() == 0 && now - active >= self.options.quiet;
                if is_quiet && is_painted {
                    return Ok(None);
                }
                if now - *at >= self.options.after_load {
                    return Ok(self.unfinished_note(what));
                }
            }
            let Some(message) = self.devtools.next(limit.min(now + LOOK))? else {
                continue;
            };
            match self.take(message)? {
                what @ (Seen::Loaded | Seen::Broken) => over = Some((what, Instant::now())),
                // A script has led to another page.
                Seen::Left => over = None,
                Seen::Transferred => active = Instant::now(),
                Seen::Other => {}
            }
            self.devtools.step.resources = self.record.count();
        }
    }

    /// Returns the note of a view that reached its timeout.
    ///
    /// # Errors
    /// The document has no response.
    fn timed_out(&self, is_over: bool) -> Result<String, String> {
        let (open, seconds) = (self.record.open(), self.options.timeout.as_secs_f64());
        if let Some(url) = self.record.unanswered(&self.options.url) {
            return Err(format!("{url}: no response within {seconds} s"));
        }
        let before = if is_over {
            ""
        } else {
            ", before the load event"
        };
        Ok(format!(
            "the visit was stopped after {seconds} s{before}; {open} requests were unfinished"
        ))
    }

    /// Returns a note if requests were unfinished when the page was left.
    fn unfinished_note(&self, what: &Seen) -> Option<String> {
        let (open, seconds) = (self.record.open(), self.options.after_load.as_secs_f64());
        let event = match what {
            Seen::Broken => "the document was cut off",
            _ => "the load event",
        };
        (open > 0).then(|| {
            format!(
                "the visit was stopped {seconds} s after {event}; {open} requests were unfinished"
            )
        })
    }

    /// Handles a message. A failure of the whole page is an error.
    fn take(&mut self, message: Message) -> Result<Seen, String> {
        if message.id.is_some() {
            return self.take_response(&message);
        }
        match message.method.as_str() {
            "Target.attachedToTarget" => self.attach(message.params).map(|()| Seen::Other),
            "Page.javascriptDialogOpening" => {
                // A dialog would stop the page until somebody answers.
                let session = message.session_id.as_deref();
                let close = json!({"accept": true});
                self.devtools
                    .post(session, "Page.handleJavaScriptDialog", &close)?;
                Ok(Seen::Other)
            }
            "Inspector.targetCrashed" if self.is_of_page(&message) => Err(CRASHED.to_owned()),
            "Page.screencastFrame" => {
                let number = message.params["sessionId"].as_u64();
                let session = message.session_id.as_deref();
                let shown = json!({"sessionId": number});
                // Without it there are no more pictures.
                self.devtools
                    .post(session, "Page.screencastFrameAck", &shown)?;
                self.record.add_frame(message.params);
                Ok(Seen::Other)
            }
            "Page.lifecycleEvent" => {
                let event: LifecycleEvent = super::record::read(message.params);
                Ok(self.record.lifecycle_event(event))
            }
            _ => self.record.take(&message.method, message.params),
        }
    }

    fn is_of_page(&self, message: &Message) -> bool {
        message.session_id.as_ref() == Some(&self.session)
    }

    fn take_response(&mut self, message: &Message) -> Result<Seen, String> {
        if message.id != self.navigation {
            return Ok(Seen::Other);
        }
        if let Some(failure) = &message.error {
            return Err(format!("{}: {}", self.options.url, failure.message));
        }
        match message.result["errorText"].as_str() {
            Some(ABORTED) if self.has_crashed()? => Err(CRASHED.to_owned()),
            Some(why) => {
                // The URL of the redirect that failed, if there was one.
                let url = self.record.unanswered(&self.options.url);
                let url = url.unwrap_or(&self.options.url);
                Err(format!("{url}: {}", explain_error(why)))
            }
            None => Ok(Seen::Other),
        }
    }

    /// Returns whether the navigation ended because the page's process crashed. The end is reported before the crash.
    fn has_crashed(&mut self) -> Result<bool, String> {
        let end = Instant::now() + CRASHING_MAX;
        while let Some(message) = self.devtools.next(end)? {
            if message.method == "Inspector.targetCrashed" && self.is_of_page(&message) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Enables the events of a frame or worker in another process, and lets it run.
    fn attach(&mut self, params: Value) -> Result<(), String> {
        let event: AttachedToTarget = super::record::read(params);
        if event.session_id == self.session {
            return Ok(());
        }
        let session = Some(event.session_id.as_str());
        self.sessions += 1;
        if self.sessions <= SESSIONS_MAX {
            self.devtools.post(session, "Network.enable", &network())?;
            self.devtools
                .post(session, "Target.setAutoAttach", &auto_attach())?;
        }
        if event.waiting_for_debugger {
            let none = json!({});
            self.devtools
                .post(session, "Runtime.runIfWaitingForDebugger", &none)?;
        }
        Ok(())
    }

    /// The page's title, from the browser: the page itself may hang.
    fn title(&mut self) -> Option<String> {
        let target = json!({"targetId": self.target});
        let info = self
            .devtools
            .call(None, "Target.getTargetInfo", &target, CALL_MAX);
        let title = info.ok()?["targetInfo"]["title"].as_str()?.to_owned();
        Some(title).filter(|title| !title.is_empty() && title.len() <= TITLE_BYTES_MAX)
    }

    /// Returns the number of preconnect and dns-prefetch hints in the page; 0 if it does not respond in time.
    fn hints(&mut self) -> u64 {
        let count = json!({"expression": HINTS, "returnByValue": true});
        let session = Some(self.session.as_str());
        let answer = self
            .devtools
            .call(session, "Runtime.evaluate", &count, PAGE_CALL_MAX);
        answer.map_or(0, |answer| answer["result"]["value"].as_u64().unwrap_or(0))
    }

    /// Fetches the trace.
    fn finish(&mut self) -> Result<(), String> {
        self.devtools.post(None, "Tracing.end", &json!({}))?;
        let limit = Instant::now() + TRACE_MAX;
        while !self.record.trace_is_over() {
            let Some(message) = self.devtools.next(limit)? else {
                self.record
                    .notes
                    .push("the browser did not send its trace in time".to_owned());
                break;
            };
            // Later events are not part of the view.
            if message.method.starts_with("Tracing.") {
                self.record.take(&message.method, message.params)?;
            }
        }
        self.record.finish_trace()
    }
}

fn network() -> Value {
    // Bodies are not read, so the browser need not store them.
    json!({"maxTotalBufferSize": 65536, "maxResourceBufferSize": 16384})
}

fn auto_attach() -> Value {
    json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
}

fn agent(version: &Value, program: &Path) -> Agent {
    let product = version["product"].as_str().unwrap_or_default();
    let (name, number) = product.split_once('/').unwrap_or((product, ""));
    let file = program.file_name().unwrap_or_default().to_string_lossy();
    // Chromium calls itself Chrome here.
    let is_chromium = name == "Chrome" && file.contains("chromium");
    Agent {
        name: if is_chromium { "Chromium" } else { name }.to_owned(),
        version: number.to_owned(),
        is_browser: true,
    }
}

/// Returns the browser's name of an error, with an explanation if the name has none.
fn explain_error(error: &str) -> String {
    let meaning = match error {
        "net::ERR_CONNECTION_REFUSED" => "the connection was refused",
        "net::ERR_NAME_NOT_RESOLVED" => "the name has no address",
        "net::ERR_SSL_PROTOCOL_ERROR" => "TLS fails; a server of plain HTTP needs http://",
        "net::ERR_NETWORK_CHANGED" => "network devices of this machine keep changing",
        "net::ERR_INVALID_HTTP_RESPONSE" => "the response is not HTTP",
        "net::ERR_EMPTY_RESPONSE" => "the server closed the connection without a response",
        "net::ERR_CONNECTION_CLOSED"
        | "net::ERR_CONNECTION_RESET"
        | "net::ERR_SOCKET_NOT_CONNECTED" => "the server closed the connection",
        "net::ERR_UNSAFE_PORT" => "browsers do not connect to this port",
        ABORTED => "the response is a download, or has no content",
        "net::ERR_TOO_MANY_REDIRECTS" => "too many redirects",
        _ if error.starts_with("net::ERR_CERT_") => {
            "the certificate is not trusted; --insecure accepts any"
        }
        _ => return error.to_owned(),
    };
    format!("{meaning} ({error})")
}

const CRASHED: &str = "the page's process has crashed";
/// The browser's error of a navigation that was given up.
const ABORTED: &str = "net::ERR_ABORTED";
/// How long after that a crash may be reported.
const CRASHING_MAX: Duration = Duration::from_millis(500);
/// Longest start of a browser.
const STARTING_MAX: Duration = Duration::from_secs(60);
/// Longest response time after the start; the machine may be busy.
const CALL_MAX: Duration = Duration::from_secs(30);
/// Longest response time of a page, which may hang.
const PAGE_CALL_MAX: Duration = Duration::from_secs(2);
/// Longest wait for a trace.
const TRACE_MAX: Duration = Duration::from_secs(30);
/// How long a paint is waited for after the load event; some pages show nothing.
const PAINTING_MAX: Duration = Duration::from_secs(2);
/// How long a browser rests before the page.
const REST: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(20);
const LOOK: Duration = Duration::from_millis(50);
/// Most frames and workers with recorded requests. Others run without a record.
const SESSIONS_MAX: usize = 500;
/// The most pixels of a picture of the filmstrip.
const FRAME_PIXELS: (u32, u32) = (400, 300);
/// Ends when the empty page has nothing to do.
const IDLE: &str = "new Promise(done => requestIdleCallback(done, {timeout: 2000}))";
const HINTS: &str =
    "document.querySelectorAll('link[rel~=preconnect], link[rel~=dns-prefetch]').length";
