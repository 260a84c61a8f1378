//! The steps that find the place of an exchange: its server by a name, its location by the URI.
//!
//! The tables that they search are [`names`](crate::names) and [`location`](crate::location); the result is
//! [`RequestRoute`](crate::exchange::RequestRoute).

pub(crate) mod location;
pub(crate) mod server;
