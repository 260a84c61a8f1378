//! JSON of `waterfall`: the formats `firstbyte-waterfall/1` and `firstbyte-waterfall-comparison/1`.
//!
//! New members may be added. Existing members are never removed, and keep their meaning. Times are milliseconds, of a
//! visit from its start.
//!
//! Source: docs/waterfall.md.

use lab::page::analysis::{Stall, WaitParts};
use lab::page::comparison::{
    FigureComparison, ResourceComparison, ResourceFigures, VisitComparison,
};
use lab::page::{AnalysedVisit, FIGURES, Resource, Runs, Views};
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
        json!({ "url": shown.url, "agent": shown.agent, "runs": runs.all().len() })
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
        "agent": visit.agent,
        "view": visit.view.name(),
        "started_unix_ms": visit.started_unix_ms,
        "round_trip_ms": visit.round_trip_ms,
        "timings": visit.timings,
        "notes": visit.notes,
        "total": found.total,
        "by_protocol": found.by_protocol,
        "by_host": found.by_host,
        "staircase": {
            "score": found.staircase.score(),
            "starts": found.staircase.starts,
            "depth": found.staircase.depth,
            "steps": found.staircase.steps,
        },
        "stalls": found.stalls.iter().map(stall).collect::<Vec<_>>(),
        "connections": found.connections,
        "critical_path": found.critical_path,
        "resources": resources.map(|(one, wait)| resource(one, wait.as_ref())).collect::<Vec<_>>(),
    })
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
        "phases": resource.phases,
        "wait": wait,        "head_bytes": resource.head_bytes,
        "body_bytes": resource.body_bytes,
        "content_bytes": resource.content_bytes,
        "mime_type": resource.mime_type,
        "from_cache": resource.from_cache,
        "priority": resource.priority,
        "initiator": resource.initiator,
        "error": resource.error,
    })
}
