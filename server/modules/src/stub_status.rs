//! `stub_status`: the process's counters as a page and as variables.
//!
//! Source: nginx documentation, `ngx_http_stub_status_module`.

use conf::{Arity, Contexts, DirectiveDef};
use engines::http::Method;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Inherit, Module};
use server_http::reply;
use server_http::stats::{self, Totals};
use server_http::variables;
use server_http::vars::Variable;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "stub_status",
    directives: &[ROWS],
    variables: VARIABLES,
    inherits: &[("stub_status", Inherit::Blocks)],
    ..Module::EMPTY
};

const ROWS: &[DirectiveDef<ConfigBuilder>] = &[DirectiveDef {
    name: "stub_status",
    contexts: Contexts::SERVER.or(Contexts::LOCATION),
    arity: Arity::NOARGS.or(Arity::TAKE1),
    block: false,
    default: "",
    doc: "Answers with the number of connections and requests.",
    syntax: "",
    apply: |b, _| {
        b.set_handler(handle);
        Ok(())
    },
}];

const VARIABLES: &[Variable] = variables! {
    "connections_active": "open client connections" => |_, _, _, out| number(stats::totals().active, out);
    "connections_reading": "connections that send a request head"
        => |_, _, _, out| number(stats::totals().reading, out);
    "connections_writing": "connections that get an answer" => |_, _, _, out| number(stats::totals().writing, out);
    "connections_waiting": "idle connections" => |_, _, _, out| number(stats::totals().waiting, out);
};

fn number(n: u64, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(reply::decimal(n, &mut [0; 20]));
    true
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if !matches!(x.target.method, Method::Get | Method::Head) {
        return Content::Status(405);
    }
    let body = page(&stats::totals());
    reply::text(x, cx, 200, body.into_bytes(), Some(b"text/plain"));
    Content::Sent
}

fn page(now: &Totals) -> String {
    format!(
        "Active connections: {} \nserver accepts handled requests\n {} {} {} \n\
         Reading: {} Writing: {} Waiting: {} \n",
        now.active, now.accepted, now.handled, now.requests, now.reading, now.writing, now.waiting
    )
}
