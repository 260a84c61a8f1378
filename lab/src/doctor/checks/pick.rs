//! Bodies for checks that compare sizes: from the docroot if there is one, else from the site.

use std::ops::RangeInclusive;

use crate::client::Url;
use crate::doctor::docroot::Type;
use crate::doctor::examine::Examination;
use crate::doctor::failure::Failure;

/// A body and its bytes without a content coding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picked {
    pub(super) url: Url,
    pub(super) bytes: u64,
}

/// Returns the smallest body of the site, at most `most` bytes; with a docroot a file of [`SMALL_BYTES`].
///
/// # Errors
/// The file cannot be written, or the site not be examined.
pub(super) fn small(x: &mut Examination<'_>, most: u64) -> Result<Option<Picked>, Failure> {
    if let Some(url) = x.planted(SMALL_BYTES, Type::Binary)? {
        let bytes = SMALL_BYTES as u64;
        return Ok(Some(Picked { url, bytes }));
    }
    let site = x
        .site()?
        .into_iter()
        .filter(|body| body.bytes > 0 && body.bytes <= most);
    let smallest = site.min_by_key(|body| body.bytes);
    Ok(smallest.map(|body| Picked {
        url: body.url,
        bytes: body.bytes,
    }))
}

/// Returns the largest body of the site within `bytes`, else the largest above them; with a docroot a file of `planted` bytes.
///
/// # Errors
/// The file cannot be written, or the site not be examined.
pub(super) fn large(
    x: &mut Examination<'_>,
    bytes: RangeInclusive<u64>,
    planted: usize,
) -> Result<Option<Picked>, Failure> {
    if let Some(url) = x.planted(planted, Type::Binary)? {
        let bytes = planted as u64;
        return Ok(Some(Picked { url, bytes }));
    }
    let site = x.site()?;
    let within = |least: u64, most: u64| {
        let bodies = site.iter();
        let bodies = bodies.filter(|body| (least..=most).contains(&body.bytes));
        bodies.max_by_key(|body| body.bytes)
    };
    let largest = within(*bytes.start(), *bytes.end()).or_else(|| within(*bytes.start(), u64::MAX));
    Ok(largest.map(|body| Picked {
        url: body.url.clone(),
        bytes: body.bytes,
    }))
}

/// A body that fits into a segment.
const SMALL_BYTES: usize = 500;
