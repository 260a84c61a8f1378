//! Views as CSV and JSON, format `firstbyte-dashboard/1`.
//!
//! Members are added to the format, but none is removed or changes its meaning.

use serde_json::{Map, Value, json};

use super::FORMAT;
use super::http::{CSV, JSON, Response};
use super::params::{Params, metric};
use super::views::{Page, View};
use crate::experiment::Report;
use crate::report::escaped_json;
use crate::time::iso;

/// Returns a table of a view as CSV.
pub(super) fn csv(page: Page, params: &Params, view: &View) -> Response {
    let mut tables = view.tables();
    let found = match &params.table {
        None => tables.next(),
        Some(wanted) => tables.find(|table| table.id == *wanted),
    };
    let Some(table) = found else {
        return Response::line(404, "This view has no such table.");
    };
    let mut response = Response::made(200, CSV, table.csv());
    response.file = Some(format!("{}-{}.csv", page.path(), table.id));
    response
}

/// Returns all tables of a view as JSON.
pub(super) fn json(page: Page, params: &Params, store: &str, view: Option<&View>) -> Response {
    Response::made(200, JSON, text(&value(page, params, store, view)))
}

/// Returns the tables of the view of an experiment, and its whole report.
pub(super) fn experiment(params: &Params, store: &str, view: &View, report: &Report) -> Response {
    let mut all = value(Page::Experiments, params, store, Some(view));
    all["report"] = serde_json::to_value(report).unwrap_or_default();
    Response::made(200, JSON, text(&all))
}

fn value(page: Page, params: &Params, store: &str, view: Option<&View>) -> Value {
    let (from, to) = params.period();
    let mut tables = Map::new();
    for table in view.into_iter().flat_map(View::tables) {
        tables.insert(table.id.to_owned(), table.json());
    }
    let none = Vec::new();
    json!({
        "format": FORMAT,
        "view": page.path(),
        "store": store,
        "at": iso(params.now_s),
        "period": { "from": iso(from), "to": iso(to) },
        "filters": {
            "protocol": params.protocol,
            "server": params.server,
            "country": params.country,
            "metric": metric(params.metric).name,
            "percentile": params.percentile,
        },
        "notes": view.map_or(&none, |view| &view.notes),
        "tables": tables,
    })
}

/// Returns an error as JSON.
pub(super) fn error(status: u16, reason: &str) -> Response {
    let value = json!({ "format": FORMAT, "error": reason });
    Response::made(status, JSON, text(&value))
}

fn text(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).expect("texts and finite numbers are JSON");
    format!("{}\n", escaped_json(&text))
}
