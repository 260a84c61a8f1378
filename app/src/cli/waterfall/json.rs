//! JSON of `waterfall`: the formats `firstbyte-waterfall/1` and `firstbyte-waterfall-comparison/1`.
//!
//! Members are added to them, but none is taken away or given another meaning. Times are milliseconds, of a visit from its start.
//!
//! Source: docs/waterfall.md.

use lab::page::analysis::{ConnectionUse, Stall, Step, Sum, WaitParts};
use lab::page::comparison::{
    FigureComparison, ResourceComparison, ResourceFigures, VisitComparison,
};
use lab::page::{AnalysedVisit, FIGURES, PageTimings, Phases, Resource, Runs, Views, Visit};
use lab::report::{Figure, PROGRAM};
use lab::stats::{Comparison, Estimate};
use serde_json::{Map, Value, json};

/// Visits and their analysis.
pub(super) fn views(views: &Views<'_>) -> Value {
    json!({
        "format": "firstbyte-waterfall/1",
        "program": PROGRAM,
        "url": views.first.shown().visit.url,
        "cold": runs(&views.first),
        "warm": views.warm.as_ref().map(runs),
    })
}

/// The comparison of two files.
pub(super) fn comparison(found: &VisitComparison, before: &Runs<'_>, after: &Runs<'_>) -> Value {
    let side = |runs: &Runs<'_>| {
        let shown = runs.shown().visit;
        json!({ "url": shown.url, "agent": agent(shown), "runs": runs.all().len() })
    };
    let protocols = found.protocols.iter();
    json!({
        "format": "firstbyte-waterfall-comparison/1",
        "program": PROGRAM,
        "before": side(before),
        "after": side(after),
        "figures": found.figures.iter().map(figure).collect::<Vec<_>>(),
        "protocols": protocols
            .map(|(name, before, after)| json!({ "protocol": name, "before": before, "after": after }))
            .collect::<Vec<_>>(),
        "resources": found.resources.iter().map(compared_resource).collect::<Vec<_>>(),
    })
}

fn figure(found: &FigureComparison) -> Value {
    json!({
        "figure": found.figure.name,
        "before": found.before.map(estimate),
        "after": found.after.map(estimate),
        "difference": found.difference(),
        "ratio": found.ratio.map(ratio),
    })
}

fn ratio(found: Comparison) -> Value {
    let mut value = estimate(found.ratio);
    value["differs"] = json!(found.differs);
    value["runs_needed"] = json!(found.needed);
    value
}

fn compared_resource(found: &ResourceComparison) -> Value {
    let side = |figures: &ResourceFigures| {
        json!({
            "start_ms": estimate(figures.start_ms),
            "first_byte_ms": estimate(figures.first_byte_ms),
            "total_ms": estimate(figures.total_ms),
            "bytes": figures.bytes,
            "protocol": figures.protocol,
            "status": figures.status,
            "from_cache": figures.from_cache,
        })
    };
    json!({
        "method": found.method,
        "url": found.url,
        "before": found.before.as_ref().map(side),
        "after": found.after.as_ref().map(side),
        "difference_ms": found.difference_ms(),
        "ratio": found.ratio.map(ratio),
    })
}

/// A mean; `low` and `high` are null if the runs support no interval.
fn estimate(found: Estimate) -> Value {
    json!(Figure::from(found))
}

/// Runs of a view: figures of all, and the one in the middle.
fn runs(runs: &Runs<'_>) -> Value {
    let figures = FIGURES.iter();
    let figures = figures.filter_map(|figure| Some((figure.name, estimate(runs.mean(figure)?))));
    json!({
        "runs": runs.all().len(),
        "shown": runs.shown_place() + 1,
        "figures": figures.map(|(name, mean)| (name.to_owned(), mean)).collect::<Map<_, _>>(),
        "visit": visit(runs.shown()),
    })
}

fn visit(
    AnalysedVisit {
        visit,
        analysis: found,
    }: &AnalysedVisit<'_>,
) -> Value {
    let resources = visit.resources.iter().zip(&found.waits);
    json!({
        "url": visit.url,
        "title": visit.title,
        "agent": agent(visit),
        "view": visit.view.name(),
        "started_unix_ms": visit.started_unix_ms,
        "round_trip_ms": visit.round_trip_ms,
        "timings": timings(&visit.timings),
        "notes": visit.notes,
        "total": sum(&found.total),
        "by_protocol": found.by_protocol.iter().map(sum).collect::<Vec<_>>(),
        "by_host": found.by_host.iter().map(sum).collect::<Vec<_>>(),
        "staircase": {
            "score": found.staircase.score(),
            "starts": found.staircase.starts,
            "depth": found.staircase.depth,
            "steps": found.staircase.steps.iter().map(step).collect::<Vec<_>>(),
        },
        "stalls": found.stalls.iter().map(stall).collect::<Vec<_>>(),
        "connections": found.connections.iter().map(connection).collect::<Vec<_>>(),
        "critical_path": found.critical_path,
        "resources": resources.map(|(one, wait)| resource(one, wait.as_ref())).collect::<Vec<_>>(),
    })
}

fn agent(visit: &Visit) -> Value {
    let agent = &visit.agent;
    json!({ "name": agent.name, "version": agent.version, "is_browser": agent.is_browser })
}

fn timings(timings: &PageTimings) -> Value {
    json!({
        "first_byte_ms": timings.first_byte_ms,
        "first_paint_ms": timings.first_paint_ms,
        "first_contentful_paint_ms": timings.first_contentful_paint_ms,
        "largest_contentful_paint_ms": timings.largest_contentful_paint_ms,
        "dom_content_loaded_ms": timings.dom_content_loaded_ms,
        "load_ms": timings.load_ms,
    })
}

fn sum(sum: &Sum) -> Value {
    json!({
        "name": sum.name,
        "requests": sum.requests,
        "from_cache": sum.from_cache,
        "failed": sum.failed,
        "bytes": sum.bytes,
        "content_bytes": sum.content_bytes,
        "unknown_bytes": sum.unknown_bytes,
        "connections": sum.connections,
    })
}

fn step(step: &Step) -> Value {
    json!({ "resource": step.resource, "behind": step.behind, "queued_ms": step.queued_ms })
}

fn stall(stall: &Stall) -> Value {
    json!({
        "resource": stall.resource,
        "from_ms": stall.from_ms,
        "to_ms": stall.to_ms,
        "rest_bytes": stall.rest_bytes,
        "cause": stall.cause.name(),
    })
}

fn connection(used: &ConnectionUse) -> Value {
    json!({
        "id": used.id,
        "host": used.host,
        "remote": used.remote,
        "protocol": used.protocol,
        "opened_ms": used.opened_ms,
        "opened_for": used.opened_for,
        "connect_ms": used.connect_ms,
        "tls_ms": used.tls_ms,
        "resources": used.resources,
        "streams_max": used.streams_max,
        "last_ms": used.last_ms,
        "busy_ms": used.busy_ms,
        "idle_ms": used.idle_ms,
    })
}

fn resource(resource: &Resource, wait: Option<&WaitParts>) -> Value {
    json!({
        "url": resource.url,
        "method": resource.method,
        "kind": resource.kind.name(),
        "status": resource.status,
        "protocol": resource.protocol,
        "connection": resource.connection,
        "remote": resource.remote,
        "start_ms": resource.start_ms,
        "first_byte_ms": resource.first_byte_ms(),
        "end_ms": resource.end_ms(),
        "phases": phases(&resource.phases),
        "wait": wait.map(|parts| json!({
            "queue_ms": parts.queue_ms,
            "round_trip_ms": parts.round_trip_ms,
            "server_ms": parts.server_ms,
            "unexplained_ms": parts.unexplained_ms,
        })),
        "head_bytes": resource.head_bytes,
        "body_bytes": resource.body_bytes,
        "content_bytes": resource.content_bytes,
        "mime_type": resource.mime_type,
        "from_cache": resource.from_cache,
        "priority": resource.priority,
        "initiator": resource.initiator,
        "error": resource.error,
    })
}

fn phases(phases: &Phases) -> Value {
    json!({
        "queued_ms": phases.queued_ms,
        "dns_ms": phases.dns_ms,
        "connect_ms": phases.connect_ms,
        "tls_ms": phases.tls_ms,
        "send_ms": phases.send_ms,
        "wait_ms": phases.wait_ms,
        "receive_ms": phases.receive_ms,
    })
}
