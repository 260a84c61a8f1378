//! Elements of the queue.

use super::engine::Batch;
use crate::connection::Connection;
use crate::experiment::{ArmFigures, ExperimentSettings, Visit};
use crate::query::OpenSample;

/// An element of the queue. Rows are boxed: samples are short.
pub(super) enum Item {
    Row(Box<Connection>),
    Open(OpenSample),
    Visit(Box<Visit>),
    Arm(Box<ArmFigures>),
    Settings(Box<(u64, ExperimentSettings)>),
}

impl Item {
    /// Returns whether it counts as a row: a connection or a page view.
    pub(super) fn is_row(&self) -> bool {
        matches!(self, Self::Row(_) | Self::Visit(_))
    }

    /// Moves it to a batch.
    pub(super) fn add_to(self, batch: &mut Batch) {
        match self {
            Self::Row(row) => batch.rows.push(*row),
            Self::Open(sample) => batch.open.push(sample),
            Self::Visit(visit) => batch.experiments.visits.push(*visit),
            Self::Arm(figures) => batch.experiments.arms.push(*figures),
            Self::Settings(settings) => batch.experiments.settings.push(*settings),
        }
    }
}
