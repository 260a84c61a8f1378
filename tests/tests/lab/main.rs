//! Tests of the verbs that measure, of experiments, maps, stores and dashboards, and of `firstbyte freeze`.

#[path = "../common/lab.rs"]
mod lab;
#[path = "../common/map.rs"]
mod map;
#[path = "../common/recorded.rs"]
mod recorded;
#[path = "../common/tls_client.rs"]
mod tls_client;

mod experiment;
mod experiment_beacon;
mod experiment_browsers;
mod experiment_end_to_end;
mod experiment_figures;
mod experiment_hosts;
mod experiment_power;
mod fail_conditions;
mod freeze;
mod freeze_sources;
mod lab_dashboard;
mod lab_verb;
mod map_follow;
mod map_logs;
mod rtt_map;
mod rtt_map_faults;
mod schemes;
mod verb_outputs;
mod verb_statuses;
mod verb_widths;
mod waterfall;
mod waterfall_har;
mod waterfall_pages;
mod waterfall_wire;
