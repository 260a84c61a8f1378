//! The pages of the dashboard and their views.

use store::Error;

use super::view::{Context, View};
use super::{
    compare, connections, experiments, map, networks, overview, requests, servers, stalls, times,
};

/// A page of the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::web) enum Page {
    Overview,
    Map,
    Times,
    Requests,
    Connections,
    Stalls,
    Networks,
    Servers,
    Compare,
    Experiments,
}

impl Page {
    /// All pages, in the order of the navigation.
    pub(in crate::web) const ALL: [Self; 10] = [
        Self::Overview,
        Self::Map,
        Self::Times,
        Self::Requests,
        Self::Connections,
        Self::Stalls,
        Self::Networks,
        Self::Servers,
        Self::Compare,
        Self::Experiments,
    ];

    /// Path below the site, without a slash.
    pub(in crate::web) fn path(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Map => "map",
            Self::Times => "times",
            Self::Requests => "requests",
            Self::Connections => "connections",
            Self::Stalls => "stalls",
            Self::Networks => "networks",
            Self::Servers => "servers",
            Self::Compare => "compare",
            Self::Experiments => "experiments",
        }
    }

    /// Name for readers.
    pub(in crate::web) fn label(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Map => "Map",
            Self::Times => "Times",
            Self::Requests => "Requests",
            Self::Connections => "Connections",
            Self::Stalls => "Stalls",
            Self::Networks => "Networks",
            Self::Servers => "Servers",
            Self::Compare => "Compare",
            Self::Experiments => "Experiments",
        }
    }

    /// Whether the page is about a period, with filters. An experiment has its own period.
    pub(in crate::web) fn has_period(self) -> bool {
        !matches!(self, Self::Experiments)
    }

    /// Whether the page has the choice of a metric.
    pub(in crate::web) fn has_metric(self) -> bool {
        matches!(
            self,
            Self::Overview | Self::Map | Self::Servers | Self::Compare
        )
    }

    /// Whether the page has the choice of a percentile.
    pub(in crate::web) fn has_percentile(self) -> bool {
        matches!(self, Self::Overview | Self::Map)
    }

    /// Makes the view.
    pub(in crate::web) fn view(self, context: &Context<'_>) -> Result<View, Error> {
        match self {
            Self::Overview => overview::view(context),
            Self::Map => map::view(context),
            Self::Times => times::view(context),
            Self::Requests => requests::view(context),
            Self::Connections => connections::view(context),
            Self::Stalls => stalls::view(context),
            Self::Networks => networks::view(context),
            Self::Servers => servers::view(context),
            Self::Compare => compare::view(context),
            Self::Experiments => experiments::view(context),
        }
    }
}
