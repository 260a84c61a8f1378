//! The core's variables: request, response, connection, server.
//!
//! Source: nginx documentation, `ngx_http_core_module`, "Embedded Variables".

pub(crate) mod lookup;
pub(crate) mod out;

use engines::http::{FieldId, Method, Version};

use crate::conf_core::CoreSrv;
use crate::exchange::{Exchange, Peer};
use crate::variables;
use crate::vars::Variable;

pub use lookup::{
    basic_credentials, basic_user, decode_base64, find_arg, find_cookie, find_cookies, random_id,
};
use lookup::{http_field, join, sent_field, with_dashes};
use out::{Out, put, put_number, put_opt, put_seconds, put_three_digits};

mod proxied;
mod tcp;

/// The lists of variables.
pub const VARIABLES: &[&[Variable]] = &[
    REQUEST,
    RESPONSE,
    CONNECTION,
    proxied::VARIABLES,
    tcp::VARIABLES,
];

const REQUEST: &[Variable] = variables! {
    "request": "request line as received" => |x, _, _, o| {
        let line = x.head.bytes(x.head.line);
        o.extend_from_slice(line);
        !line.is_empty()
    };
    "request_method": "request method" => |x, _, _, o| {
        // An error page is fetched with GET, regardless of the request's method; a subrequest has the method of the client's request.
        let asked = x.target.method != Method::Get || x.is_subrequest();
        let became_get = !asked && x.head.method != Method::Get;
        let name = if became_get {
            b"GET"
        } else {
            x.head.bytes(x.head.method_name)
        };
        o.extend_from_slice(name);
        !name.is_empty()
    };
    "request_uri": "target as received, with arguments" => |x, _, _, o| {
        let target = x.head.bytes(x.head.target);
        o.extend_from_slice(target);
        !target.is_empty()
    };
    "uri": "normalised URI, without arguments" => |x, _, _, o| uri(x, o);
    "document_uri": "the same as $uri" => |x, _, _, o| uri(x, o);
    "args": "arguments of the request line" => |x, _, _, o| put(o, &x.target.args) && x.target.has_args, set_args;
    "query_string": "the same as $args" => |x, _, _, o| put(o, &x.target.args) && x.target.has_args;
    "is_args": "\"?\" if there are arguments" => |x, _, _, o| put(o, if x.target.args.is_empty() { b"" } else { b"?" });
    "arg_": "argument of this name" => |x, _, name, o| match find_arg(&x.target.args, name) {
        Some(value) => put(o, value),
        None => false,
    };
    "http_": "request header field of this name" => |x, _, name, o| http_field(x, name, o);
    "cookie_": "cookie of this name" => |x, _, name, o| {
        x.head
            .fields_by_id(FieldId::Cookie)
            .find_map(|c| find_cookie(c, name))
            .is_some_and(|v| put(o, v))
    };
    "host": "host of the request, else the server's name"
        => |x, _, _, o| if x.target.host.is_empty() { server_name(x, o) } else { put(o, &x.target.host) };
    "request_port": "port of the request's host" => |x, _, _, o| match x.target.host_port {
        Some(port) => put_number(o, u64::from(port)),
        None => true,
    };
    "is_request_port": "\":\" if the request's host has a port"
        => |x, _, _, o| put(o, if x.target.host_port.is_some() { b":" } else { b"" });
    "scheme": "request scheme" => |x, _, _, o| put(o, if x.tls.is_some() { b"https" } else { b"http" });
    "https": "\"on\" over TLS" => |x, _, _, o| put(o, if x.tls.is_some() { b"on" } else { b"" });
    "content_length": "Content-Length of the request" => |x, _, _, o| match x.head.field(FieldId::ContentLength) {
        None => x.body_size().is_some_and(|n| put_number(o, n)),
        field => put_opt(o, field),
    };
    "content_type": "Content-Type of the request" => |x, _, _, o| http_field(x, b"content_type", o);
    "request_length": "bytes of the request" => |x, _, _, o| put_number(o, x.input.bytes);
    "server_protocol": "protocol of the request" => |x, _, _, o| {
        // As in nginx: HTTP/0.9 names none, and a line that could not be read has none.
        let version = x.head.version;
        let is_read = !version.has_request_line() || !x.head.method_name.is_empty();
        is_read && version != Version::Http09 && put(o, version.as_str().as_bytes())
    };
    "http2": "\"h2\" for HTTP/2 over TLS, \"h2c\" for HTTP/2 on a plain connection, else empty"
        => |x, _, _, o| match (x.head.version, &x.tls) {
            (Version::Http2, Some(_)) => put(o, b"h2"),
            (Version::Http2, None) => put(o, b"h2c"),
            _ => true,
        };
    "spdy": "\"3.1\" for SPDY/3.1, else empty" => |x, _, _, o| x.head.version != Version::Spdy31 || put(o, b"3.1");
    "spdy_request_priority": "priority of a request over SPDY, 0 to 7, else empty"
        => |x, _, _, o| x.head.priority.is_none_or(|n| put_number(o, n.into()));
    "request_filename": "path of the file"
        => |x, cx, _, o| crate::paths::map_uri(x, cx).is_ok_and(|path| put(o, &path));
    "document_root": "directory of root or alias" => |x, cx, _, o| {
        crate::paths::push_document_root(x, cx, o);
        true
    };
    "realpath_root": "directory of root or alias with links resolved" => |x, cx, _, o| {
        use std::os::unix::ffi::{OsStrExt, OsStringExt};
        let root = crate::paths::document_root(x, cx);
        match std::fs::canonicalize(std::ffi::OsStr::from_bytes(&root)) {
            Ok(real) => put(o, &real.into_os_string().into_vec()),
            Err(_) => false,
        }
    };
    "request_completion": "\"OK\" when the request was completed"
        => |x, _, _, o| put(o, if x.response.completed { b"OK" } else { b"" });
    "request_id": "random identifier of the request, 32 hexadecimal digits" => |x, _, _, o| {
        let id = *x.vars.request_id.get_or_insert_with(random_id);
        id.iter().all(|b| put(o, format!("{b:02x}").as_bytes()))
    };
    "request_body": "request body, if it was read into memory"
        => |x, _, _, o| put_opt(o, x.body_bytes().filter(|body| !body.is_empty()));
    "request_body_file": "file with the request body" => |x, _, _, o| put_opt(o, x.body_file().map(|file| &*file.path));
    "remote_user": "user of Basic authentication" => |x, _, _, o| match basic_user(x) {
        Some(user) => put(o, &user),
        None => false,
    };
};

const RESPONSE: &[Variable] = variables! {
    "status": "response status" => |x, _, _, o| {
        let status = x.status();
        let status = if status == 0 && x.head.version == Version::Http09 {
            9
        } else {
            status
        };
        match status {
            0..1000 => put_three_digits(o, status.into()),
            _ => put_number(o, status.into()),
        }
    };
    "limit_rate": "limit of the response rate, bytes per second"
        => |x, cx, _, o| put_number(o, x.limit_rate(cx).0), |x, value| x.set_limit_rate(value);
    "bytes_sent": "bytes sent to the client" => |x, _, _, o| put_number(o, x.response.bytes_sent);
    "body_bytes_sent": "bytes of the body sent to the client"
        => |x, _, _, o| put_number(o, x.response.bytes_sent.saturating_sub(x.response.header_bytes));
    "request_time": "time since the head was read, seconds"
        => |x, cx, _, o| put_seconds(o, cx.clock.mono_ms.saturating_sub(x.started_ms));
    "sent_http_": "response header field of this name" => |x, _, name, o| sent_field(x, name, o);
    "sent_trailer_": "trailer field of this name" => |x, _, name, o| {
        let name = with_dashes(name);
        let mut found = x.reply.trailers.named(&name).peekable();
        if found.peek().is_none() {
            return false;
        }
        join(found, b", ", o)
    };
};

const CONNECTION: &[Variable] = variables! {
    "remote_addr": "address of the client" => |x, _, _, o| {
        x.client.peer.push(o);
        true
    };
    "remote_port": "port of the client" => |x, _, _, o| match x.client.peer {
        Peer::Inet(addr) if addr.port() != 0 => put_number(o, u64::from(addr.port())),
        _ => true,
    };
    "binary_remote_addr": "address of the client in binary" => |x, _, _, o| match x.client.peer {
        Peer::Inet(addr) => match addr.ip() {
            std::net::IpAddr::V4(ip) => put(o, &ip.octets()),
            std::net::IpAddr::V6(ip) => put(o, &ip.octets()),
        },
        Peer::Unix => put(o, b"unix:"),
    };
    "server_addr": "address that accepted the request" => |x, _, _, o| {
        crate::reply::push_local_address(x, o);
        true
    };
    "server_port": "port that accepted the request" => |x, _, _, o| {
        match crate::reply::local_port(x, &x.route.http) {
            0 => true,
            port => put_number(o, u64::from(port)),
        }
    };
    "server_name": "first name of the server" => |x, _, _, o| server_name(x, o);
    "connection": "serial number of the connection" => |x, _, _, o| put_number(o, x.client.connection);
    "connection_requests": "requests of the connection so far" => |x, _, _, o| put_number(o, x.client.requests);
    "connection_time": "age of the connection, seconds"
        => |x, cx, _, o| put_seconds(o, cx.clock.mono_ms.saturating_sub(x.client.since_ms));
    "pipe": "\"p\" if the request was pipelined" => |x, _, _, o| put(o, if x.client.pipelined { b"p" } else { b"." });
    "time_local": "local time of the log" => |_, cx, _, o| put(o, cx.clock.log_time.as_bytes());
    "time_iso8601": "local time in ISO 8601" => |_, cx, _, o| put(o, cx.clock.iso_time().as_bytes());
    "msec": "time in seconds with milliseconds" => |_, cx, _, o| put_seconds(o, cx.clock.unix_ms);
    "hostname": "name of the machine" => |_, cx, _, o| put(o, &cx.env.hostname);
    "pid": "process ID of the worker" => |_, cx, _, o| put_number(o, u64::from(cx.env.pid));
    "nginx_version": "version of nginx whose configuration is supported"
        => |_, _, _, o| put(o, NGINX_VERSION.as_bytes());
};

/// `$uri`, which no request has before its target is read.
fn uri(x: &Exchange, out: &mut Out) -> bool {
    put(out, &x.target.uri) && !(x.target.uri.is_empty() && x.head.target.is_empty())
}

fn set_args(x: &mut Exchange, value: &[u8]) {
    x.target.set_args(value);
    x.target.has_args = true;
    x.target.differ();
}

fn server_name(x: &Exchange, out: &mut Out) -> bool {
    put(out, &x.route.srv::<CoreSrv>().name)
}

/// The nginx version with the same configuration and command line.
pub const NGINX_VERSION: &str = "1.31.4";
