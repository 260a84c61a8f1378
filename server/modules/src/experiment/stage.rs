//! Fields of responses: the cookie, and who may store the response.
//!
//! Source: RFC 9111 section 5.2.2.7 (`private`).

use std::rc::Rc;

use engines::http::FieldId;
use server_http::exchange::{Ctx, Exchange};
use server_http::experiments::Assigned;

use super::ExperimentMain;

/// Adds the fields of a response.
pub(super) fn run(x: &mut Exchange, _: &mut Ctx<'_>) -> Result<(), u16> {
    if x.extensions.get::<Assigned>().is_some() {
        set_cookies(x);
    }
    Ok(())
}

/// Sets new cookies. A response that depends on a user is private, or a shared cache would hand one user's arm to others.
#[cold]
fn set_cookies(x: &mut Exchange) {
    let http = Rc::clone(&x.route.http);
    let main: &ExperimentMain = http.main();
    let is_secure = x.tls.is_some();
    let Some(assigned) = x.extensions.get_mut::<Assigned>() else {
        return;
    };
    let fields = &mut x.reply.fields;
    // An error of a later stage sends another head, with the fields of this one.
    for cookie in &mut assigned.cookies {
        if let Some(user) = cookie.user
            && std::mem::take(&mut cookie.is_new)
        {
            let field = main.cookies[usize::from(cookie.name)].field(user, is_secure);
            fields.push_id(FieldId::SetCookie, b"Set-Cookie", &field);
        }
    }
    if assigned.members.is_empty() {
        return;
    }
    let mut all = fields.fields.iter();
    let is_private = all.any(|field| {
        field.id == FieldId::CacheControl && forbids_sharing(fields.bytes(field.value))
    });
    if !is_private {
        fields.push_id(FieldId::CacheControl, b"Cache-Control", b"private");
    }
}

/// Returns whether a `Cache-Control` keeps a response out of shared caches. `private="..."` does not: it is about fields.
fn forbids_sharing(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|directive| {
        let directive = directive.trim_ascii();
        [&b"private"[..], b"no-store"]
            .iter()
            .any(|name| directive.eq_ignore_ascii_case(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_no_store_forbid_sharing() {
        for value in ["private", "PRIVATE", "max-age=1, private", "no-store ,a"] {
            assert!(forbids_sharing(value.as_bytes()), "{value}");
        }
        for value in [
            "",
            "public",
            "private=\"set-cookie\"",
            "no-cache",
            "privately",
        ] {
            assert!(!forbids_sharing(value.as_bytes()), "{value}");
        }
    }
}
