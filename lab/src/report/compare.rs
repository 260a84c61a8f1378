//! Compares two reports from different times: the better one, and differences in their conditions.

use super::comparison::{self, ComparisonReport};
use super::format::{FORMAT, Report};
use super::server::ServerReport;
use crate::load::tell_apart;

/// Compares two reports from different times: each server of the first with the one of the same name or place.
///
/// # Errors
/// They cannot be compared.
pub fn of_reports(first: &Report, second: &Report) -> Result<Vec<ComparisonReport>, String> {
    let mut all = Vec::new();
    for (place, server) in first.servers.iter().enumerate() {
        let same = |other: &&ServerReport| other.name == server.name;
        let other = second
            .servers
            .iter()
            .find(same)
            .or(second.servers.get(place));
        let Some(other) = other else {
            return Err(format!(
                "the second report has nothing beside {}",
                server.name
            ));
        };
        let is_measured = |one: &ServerReport| one.blocks.iter().any(|block| block.done > 0);
        if !is_measured(server) || !is_measured(other) {
            return Err(format!("nothing was measured of {}", server.name));
        }
        let mut found = comparison::of_reports(server, other);
        for figure in &mut found {
            tell_apart(&mut [&mut figure.first, &mut figure.second]);
        }
        all.extend(found);
    }
    Ok(all)
}

/// Reads a report.
///
/// # Errors
/// It is none, or one of another format.
pub fn read(text: &str) -> Result<Report, String> {
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    match value.get("format").and_then(serde_json::Value::as_str) {
        Some(FORMAT) => {}
        Some(other) => return Err(format!("its format is \"{other}\", not \"{FORMAT}\"")),
        None => return Err(format!("it has no format; \"{FORMAT}\" is needed")),
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Differences between the settings and conditions of two reports, which may explain those between figures.
#[must_use]
pub fn differences(first: &Report, second: &Report) -> Vec<String> {
    let parts = |report: &Report| {
        let settings = serde_json::to_value(&report.settings).unwrap_or_default();
        let conditions = serde_json::to_value(&report.conditions).unwrap_or_default();
        [settings, conditions]
    };
    let mut found = Vec::new();
    for (own, other) in parts(first).iter().zip(parts(second).iter()) {
        for (name, value) in own.as_object().into_iter().flatten() {
            let there = other.get(name).unwrap_or(&serde_json::Value::Null);
            let expected = ["load_average", "busy", "steal", "round_trip_us", "seed"];
            if value != there && !expected.contains(&name.as_str()) {
                found.push(format!("{name}: {value} and {there}"));
            }
        }
    }
    found
}
