//! Pages of diagnoses that were made up.

use serde_json::{Value, json};

use super::html;
use crate::doctor::{Code, Diagnosis, Finding, Severity};

fn diagnosis(text: &str) -> Diagnosis {
    let mut made = Diagnosis::new(text, "h2");
    let stall = Finding::new(
        Code::DelayedAckStall,
        Severity::Bad,
        format!("it stalls {text}"),
    )
    .costs(200.0, 1.0)
    .proof(
        "later_ms",
        json!({"value": 203.25, "low": 201.0, "high": 205.0, "n": 20}),
    )
    .proof(
        "samples",
        json!([{"size_bytes": 400, "took_ms": 1.5}, {"size_bytes": 500, "said": text}]),
    )
    .proof(text, text)
    .fix("nginx: tcp_nodelay on;")
    .fix(format!("firstbyte doctor {text}"));
    made.findings = vec![
        stall,
        Finding::new(Code::NoEarlyData, Severity::Note, "no early data"),
    ];
    made.conditions.insert("processors".to_owned(), json!(2));
    made
}

#[test]
fn findings_have_evidence_and_what_mends_them() {
    let page = html(&diagnosis("https://h/"));
    for text in [
        "<h1>Doctor: https://h/</h1>",
        "Found: 1 bad, 0 warn, 1 note.",
        "<a href=\"#finding-1\">delayed-ack-stall</a>",
        "id=\"finding-1\"",
        "203.2 (201.0 to 205.0), n=20",
        "<th scope=\"col\">size bytes</th>",
        "<strong>nginx</strong> <code>tcp_nodelay on;</code>",
        "<code>firstbyte doctor https://h/</code>",
        "Lost: 200.0 ms and 1.0 round trip. ",
        "<td>2</td>",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let none = html(&Diagnosis::new("http://h/", ""));
    assert!(none.contains("Nothing above note was found"), "{none}");
}

#[test]
fn texts_of_servers_stay_texts() {
    for hostile in [
        "<script>alert(1)</script>",
        "\" onload=\"alert(1)",
        "\u{202e}\0\u{1b}",
    ] {
        let page = html(&diagnosis(hostile));
        assert!(
            !page.contains("<script") && !page.contains(" onload=\""),
            "{page}"
        );
        assert!(!page.contains(['\u{202e}', '\0', '\u{1b}']), "{page}");
    }
}

#[test]
fn evidence_has_limits() {
    let mut made = diagnosis(&"x".repeat(1_000_000));
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    made.measured.insert("deep".to_owned(), deep);
    made.measured
        .insert("long".to_owned(), Value::from(vec![1; 100_000]));
    for n in 0..1_000 {
        made.conditions.insert(format!("n{n}"), json!(n));
    }
    let page = html(&made);
    assert!(!page.contains(">n999<"), "a row beyond the limit");
    assert!(page.len() < 100_000, "{}", page.len());
    assert!(
        page.contains("and 99950 more") && page.contains("and 801 more"),
        "{page}"
    );
}
