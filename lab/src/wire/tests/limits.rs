//! Limits of visits, at each and one past it.

use super::super::options::{MAX_IMPORTS, MAX_REDIRECTS};
use super::*;

#[test]
fn a_page_has_no_more_resources_than_the_limit() {
    let page = |count: usize| {
        let tags: String = (0..count)
            .map(|number| format!("<img src=/{number}>"))
            .collect();
        move |path: &str| match path {
            "/" => html(tags.clone()),
            _ => Answer::new(200, &[], ""),
        }
    };
    for (count, left_out) in [(MAX_RESOURCES - 1, false), (MAX_RESOURCES, true)] {
        let mut options = options(
            serve_with(Protocol::H2, None, page(count)),
            Protocol::H2,
            None,
        );
        options.timeout = 6 * PATIENCE;
        let visit = cold(&options);
        assert_eq!(visit.resources.len(), MAX_RESOURCES);
        assert!(visit.resources.iter().all(|one| one.error.is_none()));
        let is_told = visit
            .notes
            .iter()
            .any(|note| note.starts_with("1 references were skipped"));
        assert_eq!(is_told, left_out);
    }
}

#[test]
fn no_more_redirects_are_followed_than_the_limit() {
    for count in [MAX_REDIRECTS, MAX_REDIRECTS + 1] {
        let address = serve_with(Protocol::H1, None, move |path| match path.len() - 1 {
            length if length < count => Answer::new(302, &[("Location", &format!("{path}a"))], ""),
            _ => html("the page"),
        });
        let visit = cold(&options(address, Protocol::H1, None));
        assert_eq!(visit.resources.len(), MAX_REDIRECTS + 1);
        let last = &visit.resources[MAX_REDIRECTS];
        let told = (count > MAX_REDIRECTS).then_some("more than 20 redirects");
        assert_eq!(last.error.as_deref(), told, "{count}");
    }
}

#[test]
fn no_more_style_sheets_import_each_other_than_the_limit() {
    let address = serve_with(Protocol::H1, None, |path| match path {
        "/" => html("<link rel=stylesheet href=0>"),
        path => {
            let number: usize = path[1..].parse().expect("a number");
            Answer::new(200, &[], format!("@import '{}'", number + 1))
        }
    });
    let visit = cold(&options(address, Protocol::H1, None));
    // The document, its style sheet, and a chain of imports.
    assert_eq!(visit.resources.len(), 2 + MAX_IMPORTS);
}
