//! Views: figures of a period as charts and tables.

mod bins;
mod compare;
mod connections;
mod experiment;
mod experiments;
mod lead;
mod map;
mod networks;
mod overview;
mod page;
mod requests;
mod servers;
mod stalls;
mod times;
mod view;

pub(super) use experiment::view as experiment;
pub(super) use lead::{Form, Lead};
pub(super) use map::country_name;
pub(super) use page::Page;
pub(super) use view::{Context, Section, Tile, UNKNOWN, View};
