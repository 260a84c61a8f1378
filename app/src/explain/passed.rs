//! Upstream servers, to which no request is sent: requests for them are recorded.

use std::sync::Arc;

use server_base::name_servers::NameServers;
use server_base::waker::{WakeQueue, Waker};
use server_http::http::Http;
use server_upstream::balance::Method;
use server_upstream::connector::{Connector, Lookup};
use server_upstream::group::{Group, Groups};
use server_upstream::protocol::RequestForm;
use server_upstream::request::{RequestSpec, UpstreamCall, UpstreamRequest, attempt};
use server_upstream::route::Route;

use super::report::{Passed, PassedTls};
use super::steps::{Teller, lossy_text};

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

    /// Reports a request that this location passes on.
    pub(super) fn report(&self, teller: &Teller<'_>, location: usize) -> Option<Passed> {
        if !self.is_asked() {
            return None;
        }
        let mut passed = Passed {
            server: None,
            name: self.name.clone(),
            group: None,
            method: None,
            tls: None,
            request: Vec::new(),
            parameters: Vec::new(),
        };
        if let Some((route, request)) = &self.first {
            passed.server = Some(route.addr.to_string());
            let group = group_of(teller.http, route, teller.url_behind(location));
            passed.group = group.map(|group| lossy_text(&group.name));
            let method = group.and_then(|group| group.method.as_deref());
            passed.method = method.map(Method::name);
            passed.tls = tls_of(route, teller, location);
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
fn group_of<'h>(http: &'h Http, route: &Route, url: &str) -> Option<&'h Group> {
    let host = url.split_once("//").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let groups = http.main::<Groups>();
    groups.iter().find(|group| {
        let mut servers = group.servers.iter();
        group.is_defined
            && servers.any(|server| server.addresses.contains(&route.addr))
            && (host.contains('$') || host.as_bytes().eq_ignore_ascii_case(&group.name))
    })
}

/// TLS of the route, with the settings of the location.
fn tls_of(route: &Route, teller: &Teller<'_>, location: usize) -> Option<PassedTls> {
    let tls = route.tls.as_ref()?;
    let prefix = teller.pass_of(location).strip_suffix("pass")?;
    let is_on = |setting| teller.is_on(&format!("{prefix}ssl_{setting}"), location);
    let (sends_name, verifies) = (is_on("server_name"), is_on("verify"));
    Some(PassedTls {
        name: (sends_name || verifies).then(|| tls.name.to_str().into_owned()),
        sends_name,
        verifies,
    })
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
