//! header-bloat: the head of the first response.

use crate::doctor::judge::header_bloat::{Figures, judge};
use crate::doctor::{Examination, Failure, Finding};

/// Looks at the head of the first response.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let response = &x.first.response;
    let bytes =
        |(name, value): &(String, String)| (name.clone(), (name.len() + value.len()) as u64);
    let figures = Figures {
        url: x.plan.url.to_string(),
        head_bytes: response.head_bytes,
        text_bytes: response.head_text_bytes,
        body_bytes: response.body_bytes,
        fields: response.fields.iter().map(bytes).collect(),
        round_trip_ms: x.round_trip_ms(),
    };
    x.measure("head", figures.measured());
    Ok(judge(&figures).into_iter().collect())
}
