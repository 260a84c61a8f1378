//! `secure_link`, `secure_link_md5`, `secure_link_secret` and their variables.

use base64ct::{Base64UrlUnpadded, Encoding};
use md5::{Digest, Md5};

use crate::site::{NOW_S, Site};

fn hash(text: &str) -> String {
    Base64UrlUnpadded::encode_string(&Md5::digest(text))
}

#[test]
fn a_link_is_good_until_it_expires() {
    let mut site = Site::server(
        "secure_link $arg_md5,$arg_expires;
         secure_link_md5 \"$secure_link_expires$uri key\";
         location / { return 200 \"[$secure_link][$secure_link_expires]\"; }",
    );
    let link = |expires: u64| {
        let md5 = hash(&format!("{expires}/a key"));
        format!("/a?md5={md5}&expires={expires}")
    };
    let body = |site: &mut Site, target: &str| site.get(target).body;
    assert_eq!(body(&mut site, &link(NOW_S)), format!("[1][{NOW_S}]"));
    assert_eq!(
        body(&mut site, &link(NOW_S - 1)),
        format!("[0][{}]", NOW_S - 1)
    );
    let other = link(NOW_S).replace("/a?", "/b?");
    assert_eq!(body(&mut site, &other), format!("[][{NOW_S}]"));
    assert_eq!(body(&mut site, "/a"), "[][]");
    let never = Site::server(
        "secure_link $arg_md5; secure_link_md5 $secure_link$uri;
         location / { return 200 \"[$secure_link][$secure_link_expires]\"; }",
    )
    .get(&format!("/a?md5={}", hash("/a")));
    assert_eq!(never.body, "[1][]");
}

#[test]
fn a_secret_gives_the_part_that_it_protects() {
    let mut site = Site::server(
        "location /p/ {
             secure_link_secret word;
             if ($secure_link = \"\") { return 403; }
             rewrite ^ /secure/$secure_link;
         }
         location /secure/ { internal; return 200 \"$uri [$secure_link]\"; }",
    );
    let digest = Md5::digest("a/b.htmlword");
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let answer = site.get(&format!("/p/{digits}/a/b.html"));
    // The variable keeps the value of its first use.
    assert_eq!(answer.body, "/secure/a/b.html [a/b.html]");
    assert_eq!(site.get(&format!("/p/{digits}/a/c.html")).status, 403);
    assert_eq!(site.get(&format!("/p/{digits}/")).status, 403);
    assert_eq!(site.get("/p/x").status, 403);
    assert_eq!(site.get("/secure/a/b.html").status, 404);
}

#[test]
fn a_level_has_a_secret_or_the_others() {
    let mut site = Site::server(&format!(
        "secure_link_secret word;
         location / {{ return 200 [$secure_link]; }}
         location /other {{
             secure_link {};
             location /other/both {{ secure_link_md5 key; return 200 [$secure_link]; }}
             location /other/one {{ return 200 [$secure_link]; }}
         }}",
        hash("key")
    ));
    let digest = Md5::digest("xword");
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(site.get(&format!("/p/{digits}/x")).body, "[x]");
    assert_eq!(site.get("/other/both").body, "[1]");
    assert_eq!(site.get("/other/one").body, "[]");
}
