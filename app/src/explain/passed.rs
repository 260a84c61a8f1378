//! Upstream servers, to which no request is sent: requests for them are recorded.

use std::sync::Arc;

use server_base::name_servers::NameServers;
use server_base::waker::{WakeQueue, Waker};
use server_http::http::Http;
use server_upstream::connector::{Connector, Lookup};
use server_upstream::group::Groups;
use server_upstream::protocol::RequestForm;
use server_upstream::request::{RequestSpec, UpstreamCall, UpstreamRequest, attempt};
use server_upstream::route::Route;

use super::report::Passed;
use super::steps::lossy_text;

/// Requests to servers and name servers; none is answered.
#[derive(Default)]
pub(super) struct Calls {
    first: Option<(Route, RequestSpec)>,
    name: Option<String>,
    /// Attempts in progress, which never end.
    open: Vec<UpstreamCall>,
}

impl Connector for Calls {
    fn call(&mut self, route: Route, request: RequestSpec, waker: Waker) -> UpstreamRequest {
        let (ours, theirs) = attempt(request.clone(), waker, &WakeQueue::default(), 0);
        self.open.push(theirs);
        self.first.get_or_insert((route, request));
        ours
    }

    fn resolve(&mut self, _: Option<&Arc<NameServers>>, name: &str, _: u64, _: Waker) -> Lookup {
        self.name.get_or_insert_with(|| name.to_owned());
        Lookup::pending()
    }
}

impl Calls {
    /// Returns whether an attempt or a lookup was started.
    pub(super) fn is_asked(&self) -> bool {
        self.first.is_some() || self.name.is_some()
    }

    /// Reports a passed request; `url` is the configured one, as written.
    pub(super) fn report(&self, http: &Http, url: &str) -> Option<Passed> {
        if !self.is_asked() {
            return None;
        }
        let mut passed = Passed {
            server: None,
            name: self.name.clone(),
            group: None,
            request: Vec::new(),
            parameters: Vec::new(),
        };
        if let Some((route, request)) = &self.first {
            passed.server = Some(route.addr.to_string());
            passed.group = group_of(http, route, url);
            match route.protocol.form {
                RequestForm::Head => passed.request = lines(request),
                RequestForm::Key => passed.request = key(request),
                RequestForm::Parameters => passed.parameters = parameters(request),
            }
        }
        Some(passed)
    }
}

/// Returns the group of the server if the host of the URL is its name or has a variable.
fn group_of(http: &Http, route: &Route, url: &str) -> Option<String> {
    let host = url.split_once("//").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let groups = http.main::<Groups>();
    let has_server = groups.iter().filter(|group| {
        let mut servers = group.servers.iter();
        group.is_defined && servers.any(|server| server.addresses.contains(&route.addr))
    });
    let mut names = has_server.map(|group| lossy_text(&group.name));
    names.find(|name| host.contains('$') || host.eq_ignore_ascii_case(name))
}

/// The one command, by its key.
fn key(request: &RequestSpec) -> Vec<String> {
    let keys = request.fields.fields.iter();
    keys.map(|key| format!("get {}", lossy_text(request.fields.bytes(key.value))))
        .collect()
}

/// The parameters, a line each.
fn parameters(request: &RequestSpec) -> Vec<String> {
    let fields = &request.fields;
    let text = |span| lossy_text(fields.bytes(span));
    let lines = fields.fields.iter();
    lines
        .map(|field| format!("{}={}", text(field.name), text(field.value)))
        .collect()
}

/// The request line and the fields, a line each.
fn lines(request: &RequestSpec) -> Vec<String> {
    let fields = &request.fields;
    let text = |span| lossy_text(fields.bytes(span));
    let [method, target, rest @ ..] = &fields.fields[..] else {
        return Vec::new();
    };
    let version = if request.http10 { "1.0" } else { "1.1" };
    let line = format!(
        "{} {} HTTP/{version}",
        text(method.value),
        text(target.value)
    );
    let rest = rest
        .iter()
        .map(|field| format!("{}: {}", text(field.name), text(field.value)));
    std::iter::once(line).chain(rest).collect()
}
