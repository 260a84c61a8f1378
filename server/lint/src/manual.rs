//! Sections of `docs/lint.md` about rules, for reports that carry their own explanations.

/// Returns the text about a code, in Markdown and without its heading; `None` for an unknown code.
pub fn section(code: &str) -> Option<&'static str> {
    let start = DOCUMENT.find(&format!("\n### {code}: "))? + 1;
    let (_, text) = DOCUMENT[start..].split_once('\n')?;
    let end = ["\n## ", "\n### "].map(|heading| text.find(heading));
    let end = end.into_iter().flatten().min().unwrap_or(text.len());
    Some(text[..end].trim())
}

const DOCUMENT: &str = include_str!("../../../docs/lint.md");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_a_section() {
        for rule in crate::rules() {
            let text = section(rule.code).unwrap_or_else(|| panic!("{}", rule.code));
            assert!(text.contains("\nSilence: "), "{text}");
            assert!(
                !text.contains("\n## ") && !text.contains("### FB"),
                "{text}"
            );
        }
        assert_eq!(section("FB000"), None);
        assert_eq!(section("FB20"), None);
    }
}
