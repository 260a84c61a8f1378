//! The reasons for which a beacon is refused: status, counter, text.

use std::fmt;

use engines::beacon::Fault;
use server_http::meters::Event;

/// A reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RejectReason {
    /// The field `Content-Type` is not that of `sendBeacon`.
    ContentType,
    /// A page of another origin, or no page, sent it.
    CrossSite,
    /// The body is longer than `max_size`.
    TooLarge,
    /// The address sends more than its rate.
    AddressRate,
    /// The user sends more than the rate.
    UserRate,
    /// The body is no beacon.
    Body(Fault),
    /// The request has no cookie of a user.
    NoUser,
    /// The cookie of the user was not issued by a server with this key.
    ForgedUser,
    /// The page has files of an arm to which the user does not belong.
    ForgedArm,
    /// A beacon of this view was accepted before.
    Replay,
    /// No experiment of the user was live when the view began.
    NotLive,
}

impl RejectReason {
    /// Returns the status of the response.
    pub(super) fn status(self) -> u16 {
        match self {
            Self::ContentType => 415,
            Self::CrossSite | Self::ForgedUser | Self::ForgedArm => 403,
            Self::TooLarge => 413,
            Self::AddressRate | Self::UserRate => 429,
            Self::Body(_) | Self::NoUser => 400,
            Self::Replay => 409,
            // The page did nothing wrong.
            Self::NotLive => 204,
        }
    }

    /// Returns the counter.
    pub(super) fn event(self) -> Event {
        match self {
            Self::ContentType => Event::BeaconContentType,
            Self::CrossSite => Event::BeaconCrossSite,
            Self::TooLarge => Event::BeaconTooLarge,
            Self::AddressRate => Event::BeaconAddressRate,
            Self::UserRate => Event::BeaconUserRate,
            Self::Body(Fault::Version) => Event::BeaconVersion,
            Self::Body(Fault::Malformed) => Event::BeaconMalformed,
            Self::Body(Fault::Limit) => Event::BeaconLimit,
            Self::Body(Fault::Old) => Event::BeaconOld,
            Self::Body(Fault::Backwards) => Event::BeaconBackwards,
            Self::Body(Fault::Future) => Event::BeaconFuture,
            Self::NoUser => Event::BeaconNoUser,
            Self::ForgedUser => Event::BeaconForgedUser,
            Self::ForgedArm => Event::BeaconForgedArm,
            Self::Replay => Event::BeaconReplay,
            Self::NotLive => Event::BeaconNotLive,
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ContentType => "its type is not \"text/plain\"",
            Self::CrossSite => "it was not sent by a page of this host",
            Self::TooLarge => "it is larger than \"max_size\"",
            Self::AddressRate => "the rate of its address is exceeded",
            Self::UserRate => "the rate of its user is exceeded",
            Self::Body(fault) => return fault.fmt(f),
            Self::NoUser => "it has no user",
            Self::ForgedUser => "the cookie of its user is forged",
            Self::ForgedArm => "its files belong to another arm",
            Self::Replay => "the view was already recorded",
            Self::NotLive => "no experiment was live when the view began",
        })
    }
}
