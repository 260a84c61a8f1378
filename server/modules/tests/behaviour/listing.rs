//! Directories: listings, and random files.

use crate::site::Site;

fn site(inner: &str) -> Site {
    Site::server(inner)
        .file("/www/d/b.txt", "12345")
        .file("/www/d/a&b", "")
        .file("/www/d/.hidden", "")
        .dir("/www/d/z")
}

#[test]
fn a_page_lists_directories_first() {
    let mut site = site("autoindex on;");
    let answer = site.get("/d/");
    assert_eq!(answer.field("Content-Type"), "text/html");
    assert_eq!(answer.field("Content-Length"), "");
    let time = "06-Nov-1994 08:49";
    let pad = |n| " ".repeat(n);
    assert_eq!(
        answer.body,
        format!(
            "<html>\r\n<head><title>Index of /d/</title></head>\r\n<body>\r\n\
             <h1>Index of /d/</h1><hr><pre><a href=\"../\">../</a>\r\n\
             <a href=\"z/\">z/</a>{} {time}                   -\r\n\
             <a href=\"a%26b\">a&amp;b</a>{} {time}                   0\r\n\
             <a href=\"b.txt\">b.txt</a>{} {time}                   5\r\n\
             </pre><hr></body>\r\n</html>\r\n",
            pad(48),
            pad(47),
            pad(45)
        )
    );
    assert_eq!(site.get("/none/").status, 404);
    let head = site.send("HEAD /d/ HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    let post = site.send("POST /d/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_ne!(post.status, 200);
}

#[test]
fn an_index_comes_before_a_listing() {
    let mut site = site("autoindex on; index b.txt;");
    assert_eq!(site.get("/d/").body, "12345");
    assert!(site.get("/d/z/").body.contains("Index of /d/z/"));
}

#[test]
fn a_uri_is_escaped_on_its_page() {
    let mut site = Site::server("autoindex on;").dir("/www/<b>");
    let body = site.get("/%3Cb%3E/").body;
    assert!(body.contains("<title>Index of /&lt;b&gt;/</title>"));
    assert!(body.contains("<h1>Index of /&lt;b&gt;/</h1>"));
}

#[test]
fn names_are_measured_in_characters_where_the_charset_is_utf8() {
    let name = "é".repeat(30);
    let site = |charset: &str| {
        Site::server(&format!("autoindex on; {charset}")).file(&format!("/www/d/{name}"), "")
    };
    let body = site("charset utf-8;").get("/d/").body;
    assert!(body.contains(&format!(">{name}</a>{} 06", " ".repeat(20))));
    assert!(site("").get("/d/").body.contains("..&gt;</a>"));
}

#[test]
fn data_formats_have_their_types() {
    let mut site = site(
        "autoindex on;
         location /d/ { autoindex_format json; }
         location /p/ { alias /www/d/; autoindex_format jsonp; }
         location /x/ { alias /www/d/; autoindex_format xml; }",
    );
    let time = "Sun, 06 Nov 1994 08:49:37 GMT";
    let json = format!(
        "[\r\n{{ \"name\":\"z\", \"type\":\"directory\", \"mtime\":\"{time}\" }},\r\n\
         {{ \"name\":\"a&b\", \"type\":\"file\", \"mtime\":\"{time}\", \"size\":0 }},\r\n\
         {{ \"name\":\"b.txt\", \"type\":\"file\", \"mtime\":\"{time}\", \"size\":5 }}\r\n]"
    );
    let answer = site.get("/d/");
    assert_eq!(answer.field("Content-Type"), "application/json");
    assert_eq!(answer.body, json);
    let answer = site.get("/p/");
    assert_eq!(answer.field("Content-Type"), "application/json");
    assert_eq!(answer.body, json);
    let answer = site.get("/p/?a=b&callback=my.f_1");
    assert_eq!(answer.field("Content-Type"), "application/javascript");
    assert_eq!(answer.body, format!("/* callback */\r\nmy.f_1({json});"));
    assert_eq!(site.get("/p/?callback=alert(1)").status, 400);
    assert_eq!(
        site.get(&format!("/p/?callback={}", "a".repeat(129)))
            .status,
        400
    );
    let answer = site.get("/x/");
    assert_eq!(answer.field("Content-Type"), "text/xml; charset=utf-8");
    assert_eq!(
        answer.body,
        "<?xml version=\"1.0\"?>\r\n<list>\r\n\
         <directory mtime=\"1994-11-06T08:49:37Z\">z</directory>\r\n\
         <file mtime=\"1994-11-06T08:49:37Z\" size=\"0\">a&amp;b</file>\r\n\
         <file mtime=\"1994-11-06T08:49:37Z\" size=\"5\">b.txt</file>\r\n</list>\r\n"
    );
}

#[test]
fn a_random_index_is_a_file_of_the_directory() {
    let mut site = Site::server("location / { random_index on; index one; }")
        .file("/www/d/one", "1")
        .file("/www/d/two", "2")
        .file("/www/d/.hidden", "3")
        .dir("/www/d/sub")
        .file("/www/only/x", "x");
    for _ in 0..20 {
        assert!(["1", "2"].contains(&site.get("/d/").body.as_str()));
    }
    assert_eq!(site.get("/only/").body, "x");
    // Without a file the next handler decides.
    assert_eq!(site.get("/d/sub/").status, 403);
    assert_eq!(site.get("/none/").status, 404);
}
