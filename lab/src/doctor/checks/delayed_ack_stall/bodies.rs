//! The bodies of a sweep: files in the docroot if there is one, else bodies of the site.

use std::ops::RangeInclusive;

use crate::doctor::docroot::Type;
use crate::doctor::judge::stall::sweep::Subject;
use crate::doctor::{Examination, Failure, NetworkPath};

/// Fields of the request for a body.
pub(super) fn fields(of: &Subject) -> &'static [(&'static str, &'static str)] {
    match of.gzip {
        true => &[("accept-encoding", "gzip")],
        false => &[],
    }
}

/// Returns the bodies of a sweep, smallest first.
///
/// # Errors
/// Files cannot be written, or the server does not serve them; interrupted.
pub(super) fn gather(x: &mut Examination<'_>) -> Result<Vec<Subject>, Failure> {
    let mut subjects = match x.docroot.is_some() {
        true => written(x)?,
        false => site_bodies(x)?,
    };
    subjects.sort_by_key(|one| (one.gzip, one.bytes));
    Ok(subjects)
}

/// Files of as many sizes as the budget allows to examine.
fn written(x: &mut Examination<'_>) -> Result<Vec<Subject>, Failure> {
    let sizes = sizes(x.requests_left());
    let mut subjects = Vec::new();
    for bytes in sizes {
        for gzip in [false, true] {
            let url = x.planted(bytes, kind(gzip))?;
            let bytes = bytes as u64;
            subjects.extend(url.map(|url| Subject { url, bytes, gzip }));
        }
    }
    let Some(probe) = subjects.first().cloned() else {
        return Ok(subjects);
    };
    let response = x.visit(NetworkPath::Direct, |visitor| {
        let mut session = visitor.open(&visitor.dial())?;
        session.exchange(&visitor.get(&probe.url, &[]))
    })??;
    let is_coded = response.field("content-encoding").is_some();
    if response.status != 200 || (response.body_bytes != probe.bytes && !is_coded) {
        return Err(Failure::other(format!(
            "{} is not served from the directory of --docroot: status {}, {} bytes of {}",
            probe.url, response.status, response.body_bytes, probe.bytes
        )));
    }
    Ok(subjects)
}

/// Returns the type of files that servers compress if gzip is accepted, or of files that they never compress.
pub(super) fn kind(gzip: bool) -> Type {
    if gzip { Type::Html } else { Type::Binary }
}

/// Bodies that the plan names and the page refers to, of sizes that can stall.
fn site_bodies(x: &mut Examination<'_>) -> Result<Vec<Subject>, Failure> {
    let mut subjects = Vec::new();
    for body in x.site()? {
        if !BYTES.contains(&(body.bytes as usize)) {
            continue;
        }
        let gzip = [false, true]
            .into_iter()
            .filter(|gzip| !gzip || body.is_compressed);
        subjects.extend(gzip.map(|gzip| Subject {
            url: body.url.clone(),
            bytes: body.bytes,
            gzip,
        }));
    }
    subjects.truncate(2 * count(x.requests_left()));
    Ok(subjects)
}

/// Sizes of files, bytes. They are dense around the segment size, since the edge of stalls is usually there.
fn sizes(requests_left: u32) -> Vec<usize> {
    let count = count(requests_left);
    // An even selection, with the smallest and the largest size.
    let mut sizes: Vec<usize> = (0..count)
        .map(|n| SIZES[n * (SIZES.len() - 1) / (count - 1).max(1)])
        .collect();
    sizes.dedup();
    sizes
}

/// The number of sizes that can be judged with the requests that are left.
fn count(requests_left: u32) -> usize {
    let own = requests_left as usize * SHARE_PERCENT / 100;
    (own / REQUESTS_A_SIZE).clamp(2, SIZES.len())
}

/// The sizes of bodies that are examined.
pub(super) const BYTES: RangeInclusive<usize> = 1..=5000;
const SIZES: [usize; 24] = [
    100, 200, 300, 500, 700, 900, 1100, 1200, 1300, 1400, 1450, 1500, 1550, 1600, 1650, 1700, 1800,
    2000, 2300, 2600, 3000, 3500, 4000, 5000,
];
/// Requests for one size, with gzip and without: five each at first, and twenty for one of both that stalls.
const REQUESTS_A_SIZE: usize = 24;
/// The share of the requests that are left which a sweep may have; the rest finds the edge.
const SHARE_PERCENT: usize = 85;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_from_the_budget() {
        assert_eq!(sizes(u32::MAX), SIZES);
        assert_eq!(sizes(0), [100, 5000]);
        let usual = sizes(350);
        assert_eq!(usual.len(), 12);
        assert_eq!((usual[0], usual[11]), (100, 5000));
    }
}
