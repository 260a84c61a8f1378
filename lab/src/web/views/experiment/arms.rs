//! Arms side by side: users, page views, failures, truncations.

use super::super::view::{Head, View};
use crate::experiment::Report;
use crate::web::table::{Cell, Format, Table};

/// Adds the table of arms.
pub(super) fn section(report: &Report, view: &mut View) {
    let weights: u64 = report.arms.iter().map(|arm| u64::from(arm.weight)).sum();
    let users = report.users();
    let mut table = Table::new("arms", &COLUMNS);
    for arm in &report.arms {
        table.push(vec![
            Cell::Text(arm.arm.clone()),
            Cell::Count(u64::from(arm.weight)),
            Cell::share(u64::from(arm.weight), weights),
            Cell::Count(arm.users),
            Cell::share(arm.users, users),
            Cell::Count(arm.views),
            Cell::Count(arm.failed_views),
            Cell::share(arm.failed_views, arm.views),
            Cell::Count(arm.files),
            Cell::Count(arm.files_failed),
            Cell::share(arm.files_failed, arm.files),
            Cell::Count(arm.files_truncated),
            Cell::share(arm.files_truncated, arm.files),
            Cell::Count(arm.file_bytes),
        ]);
    }
    let section = view.section("Arms: users, page views, static files", None, table);
    section.note = "As browsers report them. Failed page loads have no times.".to_owned();
}

const COLUMNS: [Head; 14] = [
    ("arm", "Arm", Format::Text),
    ("weight", "Weight", Format::Count),
    ("weight_percent", "%", Format::Percent),
    ("users", "Users", Format::Count),
    ("users_percent", "%", Format::Percent),
    ("views", "Page views", Format::Count),
    ("failed_views", "Failed loads", Format::Count),
    ("failed_views_percent", "%", Format::Percent),
    ("files", "Files", Format::Count),
    ("files_failed", "Failed", Format::Count),
    ("files_failed_percent", "%", Format::Percent),
    ("files_truncated", "Truncated", Format::Count),
    ("files_truncated_percent", "%", Format::Percent),
    ("file_bytes", "Bytes", Format::Bytes),
];
