//! The rules of HTTP caching as pure functions: a shared cache of a gateway.
//!
//! Heads enter as [`FieldList`]s, times as arguments. Wall-clock times are seconds since 1970-01-01 UTC, as in nginx's
//! stored heads; durations are seconds, at most [`DELTA_SECONDS_MAX`].
//!
//! Absent: I/O, clocks, keys of stored responses, and nginx's own rules (`X-Accel-Expires`, `*_cache_valid`), which
//! enter as settings of a [`FreshnessPolicy`]. `Surrogate-Control` is not implemented.
//!
//! Source: RFC 9111 (rules), RFC 9110 (fields), RFC 5861 (stale responses), RFC 9213 (`CDN-Cache-Control`), RFC 9211
//! (`Cache-Status`).

mod age;
mod cache_status;
mod date;
mod directives;
mod field_list;
mod freshness;
mod invalidation;
mod message;
mod partial;
mod preconditions;
mod request_directives;
mod response_directives;
mod reuse;
mod storable;
mod stored;
mod stored_fields;
mod structured_field;
mod targeted;
mod update;
mod uri_reference;
mod validation;
mod vary;
mod vary_value;

pub use age::{current_age_s, initial_age_s, parse_age};
pub use cache_status::{CacheStatus, ForwardReason, Outcome};
pub use date::parse_date;
pub use directives::{DELTA_SECONDS_MAX, DirectiveSet, delta_seconds};
pub use field_list::FieldList;
pub use freshness::{
    FreshnessPolicy, Heuristic, Lifetime, LifetimeSource, is_heuristically_cacheable, lifetime,
};
pub use invalidation::{invalidated_targets, invalidates, is_safe};
pub use message::{Expires, IgnoredFields, RequestFacts, ResponseFacts};
pub use partial::{
    ContentRange, can_combine, completing_fields, may_store_incomplete, parse_content_range,
    requested_part,
};
pub use preconditions::{Precondition, evaluate_precondition, range_applies};
pub use request_directives::RequestDirectives;
pub use response_directives::ResponseDirectives;
pub use reuse::{
    Reuse, StalePermission, ValidationReason, can_satisfy, is_error_status, may_serve_on_error,
    may_serve_while_updating, reuse,
};
pub use storable::{
    NotStored, SetCookie, StorePolicy, check_storable, keeps_set_cookie, stored_method,
};
pub use stored::{Mark, Stored};
pub use stored_fields::{served_fields, stored_fields};
pub use targeted::{CDN_CACHE_CONTROL, targeted_directives};
pub use update::{HeadEffect, head_effect, updated_fields};
pub use uri_reference::{TargetUri, resolve_same_origin};
pub use validation::{Candidate, Validators, conditional_fields, confirms, freshened};
pub use vary::{Vary, VaryPolicy};

#[cfg(test)]
mod reuse_tests;
#[cfg(test)]
mod storable_tests;
#[cfg(test)]
mod testing_tests;
#[cfg(test)]
mod tests;
