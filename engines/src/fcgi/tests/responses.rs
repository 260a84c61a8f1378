//! Responses that applications send as they should.

use super::*;

#[test]
fn a_response_is_told() {
    let answer = told(&[stdout("Content-Type: a/b\r\n\r\nhello"), stdout(""), end(0)]);
    assert_eq!(
        answer,
        ("200 Content-Type=a/b\n+hello\nend 5".to_owned(), true)
    );
    // PHP ends STDOUT by END_REQUEST alone.
    let php = told(&[
        stdout("Status: 404 Not Found\r\n\r\nhel"),
        stdout("lo"),
        end(0),
    ]);
    assert_eq!(
        php,
        ("404 Status=404 Not Found\n+hello\nend 5".to_owned(), true)
    );
}

#[test]
fn a_head_may_be_split_over_records_anywhere() {
    let text = "Status: 201 Made\nX-A: b\r\nX-C: d\r\n\r\nbody";
    for at in 0..=text.len() {
        let mut records: Vec<_> = [&text[..at], &text[at..]].into_iter().map(stdout).collect();
        records.retain(|record| record.len() > 8);
        records.insert(1, stderr("in between"));
        records.push(end(0));
        let (story, reusable) = told(&records);
        let story = story.replace("note in between", "").replace("\n\n", "\n");
        let story = story
            .trim_start()
            .replace("\n+", "+")
            .replace("+body", "/body");
        assert!(reusable, "{at}");
        assert!(
            story.starts_with("201 Status=201 Made X-A=b X-C=d"),
            "{at}: {story}"
        );
        assert!(story.ends_with("end 4"), "{at}: {story}");
    }
    let single: Vec<_> = text
        .split("")
        .filter(|c| !c.is_empty())
        .map(stdout)
        .collect();
    let (story, _) = told(&[single.concat(), end(0)]);
    assert_eq!(story, "201 Status=201 Made X-A=b X-C=d\n+body\nend 4");
}

#[test]
fn padding_is_skipped() {
    for padding in [1, 8, 255] {
        let records = [
            record(6, b"X-A: b\r\n", padding),
            record(6, b"\r\nhel", padding),
            record(6, b"lo", padding),
            record(7, b"", padding),
            record(6, b"", padding),
            record(3, &[0; 8], padding),
        ];
        assert_eq!(
            told(&records),
            ("200 X-A=b\n+hello\nend 5".to_owned(), true)
        );
    }
}

#[test]
fn a_response_may_have_no_body() {
    for head in [
        "Status: 204\r\n\r\n",
        "Status: 304\r\n\r\n",
        "Content-Length: 0\r\n\r\n",
    ] {
        let (story, reusable) = told(&[stdout(head), stdout(""), end(0)]);
        assert!(story.ends_with("end 0"), "{story}");
        assert!(reusable);
    }
}

#[test]
fn a_response_to_head_has_no_body() {
    let head = "Content-Length: 100\r\n\r\n";
    for text in [
        head.to_owned(),
        format!("{head}short"),
        format!("{head}{}", "x".repeat(200)),
    ] {
        let bytes = [stdout(&text), stdout(""), end(0)].concat();
        let told = told_to(|| asked_with("HEAD", options(true)), &bytes, false);
        assert_eq!(told, ("200 Content-Length=100\nend 0".to_owned(), true));
    }
}

#[test]
fn stderr_is_told_a_record_at_a_time() {
    let told = told(&[
        stderr("PHP Warning: before"),
        stderr("two"),
        stdout("X-A: b\r\n\r\nhel"),
        stderr("within"),
        stdout("lo"),
        stdout(""),
        stderr("behind"),
        stderr(""),
        end(0),
    ]);
    let expected =
        "note PHP Warning: before\nnote two\n200 X-A=b\n+hel\nnote within\n+lo\nnote behind\nend 5";
    assert_eq!(told, (expected.to_owned(), true));
}

#[test]
fn stderr_is_told_up_to_its_limit() {
    for (bytes, told_bytes) in [(4096, 4096), (4097, 4096), (60_000, 4096)] {
        let text = "e".repeat(bytes);
        let records = [stderr(&text), stderr("more"), stdout("\r\n\r\n"), end(0)];
        let mut client = asked();
        client.receive(&records.concat());
        let notes: Vec<usize> = std::iter::from_fn(|| client.event())
            .filter_map(|event| match event {
                Event::Note { text, .. } => Some(text.len()),
                _ => None,
            })
            .collect();
        assert_eq!(notes, [told_bytes], "of {bytes}");
        assert_eq!(client.stderr_bytes(), bytes as u64 + 4);
    }
    // The next request has a limit of its own.
    let mut client = asked();
    client.receive(&[stderr(&"e".repeat(5000)), stdout("X: y\n\n"), end(0)].concat());
    while client.event().is_some() {}
    assert_eq!(client.request(&params(&[]), options(true)), Ok(2));
    client.receive(&stderr("again"));
    assert_eq!(story(&mut client), "note again");
}

#[test]
fn an_end_of_stdout_is_not_the_end_of_the_response() {
    let bytes = [stdout("X-A: b\r\n\r\nhello"), stdout("")].concat();
    for keep in [true, false] {
        let asked = || asked_with("GET", options(keep));
        assert_eq!(told_to(asked, &bytes, false).0, "200 X-A=b\n+hello");
        let more = [bytes.clone(), stderr("late"), end(0)].concat();
        let expected = "200 X-A=b\n+hello\nnote late\nend 5".to_owned();
        assert_eq!(told_to(asked, &more, false), (expected, keep));
    }
}

#[test]
fn end_request_alone_ends_the_response() {
    let bytes = [stdout("X-A: b\r\n\r\nhello"), end(0)].concat();
    let told = told_to(|| asked_with("GET", options(false)), &bytes, false);
    assert_eq!(told, ("200 X-A=b\n+hello\nend 5".to_owned(), false));
}

#[test]
fn an_application_status_is_not_looked_at() {
    for status in [0_u32, 1, 255, u32::MAX] {
        let mut content = status.to_be_bytes().to_vec();
        content.extend_from_slice(&[0; 4]);
        let (story, reusable) = told(&[stdout("X-A: b\r\n\r\nhello"), record(3, &content, 0)]);
        assert_eq!(
            (story.as_str(), reusable),
            ("200 X-A=b\n+hello\nend 5", true)
        );
    }
}

#[test]
fn the_end_of_the_connection_ends_what_is_whole() {
    let short = || asked_with("GET", options(false));
    for (records, method) in [
        (vec![stdout("Content-Length: 5\r\n\r\nhello")], "GET"),
        (vec![stdout("Content-Length: 5\r\n\r\n")], "HEAD"),
        (vec![stdout("Status: 204\r\n\r\n")], "GET"),
        (
            vec![stdout("Status: 304\r\nContent-Length: 9\r\n\r\n")],
            "GET",
        ),
    ] {
        let asked = || asked_with(method, options(false));
        let (story, reusable) = told_to(asked, &records.concat(), true);
        assert!(story.contains("\nend "), "{story}");
        assert!(!reusable);
    }
    let ended = [stdout("X-A: b\r\n\r\nhello"), stdout("")].concat();
    let expected = "200 X-A=b\n+hello\nend 5";
    assert_eq!(told_to(asked, &ended, true), (expected.to_owned(), false));
    assert_eq!(told_to(short, &ended, true), (expected.to_owned(), false));
    let waiting = told_to(short, &ended, false).0;
    assert_eq!(waiting, "200 X-A=b\n+hello", "END_REQUEST is yet to come");
    let eof = format!("{expected}\nEof");
    // An application may close the connection despite a request to keep it open.
    let closed = [ended, end(0)].concat();
    assert_eq!(told_to(asked, &closed, true), (eof, false));
}

#[test]
fn a_large_body_goes_along_with_its_buffer() {
    let body: Vec<u8> = (0..60_000_u32).map(|at| (at % 251) as u8).collect();
    let mut bytes = stdout("X-A: b\r\n\r\n");
    for piece in body.chunks(8000) {
        bytes.extend_from_slice(&record(6, piece, 5));
    }
    bytes.extend_from_slice(&end(0));
    let at = bytes.as_ptr();
    let mut client = asked();
    client.receive_buffer(&mut bytes);
    assert_eq!(bytes.capacity(), 0);
    let data: Vec<_> = std::iter::from_fn(|| client.event())
        .filter_map(|event| match event {
            Event::Data { bytes, .. } => Some(bytes),
            _ => None,
        })
        .collect();
    assert_eq!((data.len(), data[0].as_ptr()), (1, at));
    assert_eq!(data[0], body);
    assert!(client.is_reusable());
}

#[test]
fn a_body_of_tiny_records_does_not_keep_a_large_buffer() {
    let mut bytes = stdout("X-A: b\r\n\r\n");
    for _ in 0..4000 {
        bytes.extend_from_slice(&record(6, b"x", 255));
    }
    let mut client = asked();
    client.receive_buffer(&mut bytes);
    let partial: usize = std::iter::from_fn(|| client.event())
        .map(|event| match event {
            Event::Data { bytes, .. } => bytes.capacity(),
            _ => 0,
        })
        .sum();
    assert!(partial < 8000, "{partial} bytes are held for 4000");
}
