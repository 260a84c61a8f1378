//! References found in each language, with their positions.

use super::*;
use crate::tree;

const PATHS: &[&str] = &[
    "a.css",
    "b.css",
    "a.js",
    "b.js",
    "x.png",
    "y.png",
    "img/x y.png",
    "page.html",
    "a.js.map",
    "app.ts",
    "d/a.js",
    "app.webmanifest",
    "s.svg",
];

/// The file with hashes marked as `~`, and the findings.
#[track_caller]
fn marked(path: &str, text: &str) -> (String, Found) {
    let mut paths: Vec<&str> = PATHS.iter().copied().filter(|p| *p != path).collect();
    paths.push(path);
    let tree = tree::of_paths(&paths);
    let found = scan(&tree, &Site::default(), paths.len() - 1, text.as_bytes());
    let mut out = text.to_owned();
    for edge in found.edges.iter().rev() {
        out.insert(edge.at, '~');
    }
    (out, found)
}

fn expect(path: &str, text: &str, expected: &str) {
    let (out, found) = marked(path, text);
    assert_eq!(out, expected);
    assert_eq!(found.broken, [], "{text}");
}

fn named(path: &str, text: &str) -> Vec<String> {
    let (out, found) = marked(path, text);
    assert_eq!(out, text, "nothing is changed");
    let names = found.named.iter().map(|(_, id)| PATHS[*id].to_owned());
    names.collect()
}

#[test]
fn attributes_of_html_are_references() {
    for (text, expected) in [
        (
            "<link href=a.css rel=stylesheet>",
            "<link href=a~.css rel=stylesheet>",
        ),
        (
            "<LINK HREF = 'a.css?v=1#x'>",
            "<LINK HREF = 'a~.css?v=1#x'>",
        ),
        (
            "<img src=\"img/x%20y.png\">",
            "<img src=\"img/x%20y~.png\">",
        ),
        (
            "<img src=\"img/x&#32;y&#46;png\">",
            "<img src=\"img/x&#32;y~&#46;png\">",
        ),
        (
            "<img srcset=\"x.png, y.png 2x,/x.png 3x\">",
            "<img srcset=\"x~.png, y~.png 2x,/x~.png 3x\">",
        ),
        (
            "<link imagesrcset='x.png 1x'>",
            "<link imagesrcset='x~.png 1x'>",
        ),
        ("<video poster=x.png>", "<video poster=x~.png>"),
        (
            "<object data=s.svg></object>",
            "<object data=s~.svg></object>",
        ),
        (
            "<meta property=og:image content=x.png>",
            "<meta property=og:image content=x~.png>",
        ),
        (
            "<meta http-equiv=refresh content='0; URL=x.png'>",
            "<meta http-equiv=refresh content='0; URL=x~.png'>",
        ),
        (
            "<p style=\"background:url(&quot;x.png&quot;)\">",
            "<p style=\"background:url(&quot;x~.png&quot;)\">",
        ),
        (
            "<style>p{background:url(x.png)}</style><a href=y.png>",
            "<style>p{background:url(x~.png)}</style><a href=y~.png>",
        ),
        (
            "<base href='d/'><script src=a.js></script>",
            "<base href='d/'><script src=a~.js></script>",
        ),
        (
            "<base href=//cdn.test/><script src=q.js></script>",
            "<base href=//cdn.test/><script src=q.js></script>",
        ),
        (
            "<use xlink:href='s.svg#i'/>",
            "<use xlink:href='s~.svg#i'/>",
        ),
        (
            "<rect fill='url(s.svg#i)'/>",
            "<rect fill='url(s~.svg#i)'/>",
        ),
        ("<a href=page.html>", "<a href=page.html>"),
        (
            "<!-- <img src=gone.png> --><!--><img src=x.png>",
            "<!-- <img src=gone.png> --><!--><img src=x~.png>",
        ),
        (
            "<title><img src=gone.png></title>",
            "<title><img src=gone.png></title>",
        ),
        (
            "<script>'</p>';</script ><img src=x.png>",
            "<script>'</p>';</script ><img src=x~.png>",
        ),
        ("a < b <3 <img\nsrc=x.png/>", "a < b <3 <img\nsrc=x.png/>"),
    ] {
        if text.contains("x.png/>") {
            // The slash belongs to a value without quotes, so this is another name.
            assert_eq!(marked("p.html", text).1.broken, [(2, "x.png/".to_owned())]);
        } else {
            let (out, found) = marked("p.html", text);
            assert_eq!((out.as_str(), found.broken), (expected, vec![]), "{text}");
        }
    }
}

#[test]
fn what_scripts_read_keeps_its_name() {
    assert_eq!(named("p.html", "<div data-src=x.png>"), ["x.png"]);
    assert_eq!(named("p.html", "<p data-bg='url(x.png)'>"), ["x.png"]);
    assert_eq!(named("p.html", "<a onclick=\"load('b.js')\">"), ["b.js"]);
    assert_eq!(
        named("p.html", "<script>f('<img src=\"x.png\">')</script>"),
        ["x.png"]
    );
    assert_eq!(
        named(
            "p.html",
            "<script type=text/template><img src=y.png></script>"
        ),
        ["y.png"]
    );
    assert_eq!(
        named("p.html", "<a href=\"javascript:go('x.png')\">"),
        ["x.png"]
    );
    assert_eq!(
        named("p.html", "<a href=https://own.test/x.png>"),
        ["x.png"]
    );
    assert_eq!(
        named("c.js", "f(\"img/x y.png\", `${a}/y.png`)"),
        ["img/x y.png", "y.png"]
    );
    assert_eq!(named("c.js", "require(['d/a'])"), ["a.js", "d/a.js"]);
    assert_eq!(
        named("c.js", "import('./a.js' + x); new URL('b.js', location)"),
        ["a.js", "d/a.js", "b.js"]
    );
    assert_eq!(named("c.json", "{\"a\": [\"\\u0078.png\"]}"), ["x.png"]);
    assert_eq!(
        named("c.xml", "<loc>https://own.test/y.png</loc>"),
        ["y.png"]
    );
    assert_eq!(
        named("p.html", "<img alt=x.png title='a.css' id=b.js>"),
        [""; 0]
    );
    assert_eq!(named("c.js", "// x.png\n/* y.png */ x.png"), [""; 0]);
}

#[test]
fn css_is_read_past_comments_and_escapes() {
    expect(
        "c.css",
        "@import 'a.css' screen; @import url(b.css);/*url(gone.png)*/p{src:url( \"x.png\" ),url(y.png?#i)}",
        "@import 'a~.css' screen; @import url(b~.css);/*url(gone.png)*/p{src:url( \"x~.png\" ),url(y~.png?#i)}",
    );
    expect(
        "c.css",
        "p{a:url(im\\67/x\\ y.png)}",
        "p{a:url(im\\67/x\\ y~.png)}",
    );
    expect(
        "c.css",
        "p{a:image-set('x.png' 1x,url(y.png) 2x);content:'x.png'}",
        "p{a:image-set('x~.png' 1x,url(y~.png) 2x);content:'x.png'}",
    );
    expect(
        "c.css",
        "@namespace url(gone.xml);a{b:url(data:x)}",
        "@namespace url(gone.xml);a{b:url(data:x)}",
    );
    expect(
        "c.css",
        "a{}\n/*# sourceMappingURL=a.js.map */",
        "a{}\n/*# sourceMappingURL=a.js~.map */",
    );
    let (_, found) = marked("c.css", "a{}\nb{c:url(gone.png)}");
    assert_eq!(found.broken, [(2, "gone.png".to_owned())]);
}

#[test]
fn scripts_refer_to_modules() {
    for (text, expected) in [
        ("import './a.js'", "import './a~.js'"),
        (
            "import x,{y}from\"./b.js\";export*from'/d/a.js'",
            "import x,{y}from\"./b~.js\";export*from'/d/a~.js'",
        ),
        ("import('./a.js').then()", "import('./a~.js').then()"),
        (
            "import( './a.js' , {with:{}})",
            "import( './a~.js' , {with:{}})",
        ),
        (
            "new URL('x.png', import.meta.url)",
            "new URL('x~.png', import.meta.url)",
        ),
        (
            "x=1\n//# sourceMappingURL=a.js.map",
            "x=1\n//# sourceMappingURL=a.js~.map",
        ),
        (
            "if(a)/'/.test(b);import'./a.js'",
            "if(a)/'/.test(b);import'./a~.js'",
        ),
        ("a=b/2;c='/';import'./a.js'", "a=b/2;c='/';import'./a~.js'"),
        (
            "`a${{b:'}'}}c`;import'./a.js'",
            "`a${{b:'}'}}c`;import'./a~.js'",
        ),
        ("a=/[/']/g;import'./a.js'", "a=/[/']/g;import'./a~.js'"),
    ] {
        expect("c.js", text, expected);
    }
    let (_, found) = marked("c.js", "a\nimport './gone.js'");
    assert_eq!(found.broken, [(2, "./gone.js".to_owned())]);
}

#[test]
fn json_of_known_forms_has_references() {
    expect(
        "c.webmanifest",
        "{\"icons\":[{\"src\":\"x.png\"}],\"start_url\":\"/gone\"}",
        "{\"icons\":[{\"src\":\"x~.png\"}],\"start_url\":\"/gone\"}",
    );
    expect(
        "c.map",
        "{\"sources\":[\"app.ts\",\"gone.ts\"],\"file\":\"a.js\"}",
        "{\"sources\":[\"app~.ts\",\"gone.ts\"],\"file\":\"a.js\"}",
    );
    assert_eq!(
        named(
            "c.map",
            "{\"sourceRoot\": \"/src\",\"sources\":[\"app.ts\"]}"
        ),
        ["app.ts"]
    );
    expect(
        "p.html",
        "<script type=importmap>{\"imports\":{\"a\":\"./a.js\",\"./b.js\":\"/b.js\"}}</script>",
        "<script type=importmap>{\"imports\":{\"a\":\"./a~.js\",\"./b~.js\":\"/b~.js\"}}</script>",
    );
}

#[test]
fn digests_and_manifests_are_seen() {
    let (_, found) = marked("p.html", "<script src=a.js integrity='sha256-x'></script>");
    assert_eq!(found.edges[0].integrity, Some(28..36));
    let (_, found) = marked("p.html", "<link rel=manifest href=a.js>");
    assert_eq!(found.named, [(1, 2)]);
}

#[test]
fn input_that_is_cut_off_anywhere_is_read() {
    let page = "<!doctype html><base href='d/'><a b='c' href=\"x&#46;png\"><style>@import 'a.css';a{b:url('x\\2e')}</style>\
                <script>import `x${'y'}`; /re[/]/g; 'a\\u{6a}'</script><img srcset='a 1x, b'><!-- x --><meta content=x>";
    for end in 0..page.len() {
        for name in [
            "c.html",
            "c.svg",
            "c.css",
            "c.js",
            "c.json",
            "c.map",
            "c.webmanifest",
            "c.xml",
        ] {
            marked(name, &page[..end]);
        }
    }
}
