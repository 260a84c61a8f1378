//! Families of experiments, by arm. There are none without experiments.

use server_http::arm_meters::ArmFigures;

use super::format::{MetricType, Writer, seconds};

/// Name without `firstbyte_experiment_`, type, help and value of a family.
type Figure = (
    &'static str,
    MetricType,
    &'static str,
    fn(&ArmFigures) -> u64,
);

/// Writes the families of experiments.
pub(super) fn write(page: &mut Writer, arms: &[ArmFigures]) {
    if arms.is_empty() {
        return;
    }
    for (name, kind, help, value) in FAMILIES {
        let name = format!("firstbyte_experiment_{name}");
        let sample = match kind {
            MetricType::Counter => format!("{name}_total"),
            _ => name.clone(),
        };
        let is_bytes = name.ends_with("_bytes");
        page.family(&name, *kind, if is_bytes { "bytes" } else { "" }, help);
        for arm in arms {
            page.sample(&sample, &labels(arm), value(arm));
        }
    }
    let name = "firstbyte_experiment_cpu_seconds";
    let help = "Processor time of connections of an arm, estimated from one in 64 of their steps.";
    page.family(name, MetricType::Counter, "seconds", help);
    for arm in arms {
        let us = arm.counts.cpu_ns / 1000;
        page.sample(&format!("{name}_total"), &labels(arm), seconds(us));
    }
}

/// Returns the labels of an arm.
fn labels(arm: &ArmFigures) -> [(&'static str, &str); 2] {
    [
        ("experiment", arm.experiment.as_str()),
        ("arm", arm.arm.as_str()),
    ]
}

#[rustfmt::skip] // One line a family.
const FAMILIES: &[Figure] = &[
    ("connections", MetricType::Counter, "Connections of an arm, open or closed.", |arm| arm.connections),
    ("requests", MetricType::Counter, "Requests of an arm that have ended.", |arm| arm.counts.requests),
    ("truncated_responses", MetricType::Counter, "Responses of an arm that ended before their Content-Length or their last chunk.", |arm| arm.counts.truncated),
    ("aborted_requests", MetricType::Counter, "Requests of an arm that the client aborted before the end of the response.", |arm| arm.counts.aborted),
    ("promised_bytes", MetricType::Counter, "Expected bytes (Content-Length) of response bodies of an arm.", |arm| arm.counts.promised_bytes),
    ("sent_bytes", MetricType::Counter, "Sent bytes of an arm's response bodies with a Content-Length.", |arm| arm.counts.sent_bytes),
    ("open_connections", MetricType::Gauge, "Open connections of an arm.", |arm| arm.open),
    ("memory_bytes", MetricType::Gauge, "Memory of open connections of an arm, without buffers of the kernel.", |arm| arm.memory_bytes),
];
